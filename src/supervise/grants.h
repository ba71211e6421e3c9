/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the policy grants, as the supervisor judges it: canonical paths of the grants, found once at
 * the start with the same descriptors that the kernel's rules were made from. The Landlock rules
 * and the mounts of the base remain the guard of what the kernel executes; this is the judge of
 * what the supervisor does itself, and of what it explains.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum grant_right {
	GRANT_READ = 1 << 0,   /* read, list, execute */
	GRANT_WRITE = 1 << 1,  /* everything */
	GRANT_DEVICE = 1 << 2, /* a standard device: read and write its content, nothing else */
};

struct grant {
	char *path; /* owned; canonical */
	unsigned int rights;
	bool is_dir;
	uint64_t dev; /* of the grant's object */
	uint64_t ino;
	uint64_t mnt; /* id of the mount it was opened by */
	bool quick;   /* its file system answers without a server */
	/* O_PATH in this process's own mount namespace, owned; -1: not a write grant, or of a mount
	 * that is the base's own. */
	int fd;
};

struct grants {
	struct grant *v; /* owned */
	size_t n;
};

void grants_done(struct grants *g);
/* Adds GRANT; what it owns is taken, a descriptor that is not to be kept closed. */
void grants_add_take(struct grants *g, struct grant *grant);
/* Adds a grant; PATH is copied, FD (-1: of a mount that is the base's own) taken. */
void grants_add(struct grants *g, const char *path, unsigned int rights, int fd);
/* The grant that covers PATH (canonical: no links, dots or double slashes) with all RIGHTS, the
 * deepest one; NULL if none does. A file's grant covers that file only. */
const struct grant *grants_find(const struct grants *g, const char *path, unsigned int rights);
/* The same, of those that lie outside of INNER (NULL: of all), which covers it as well. */
const struct grant *grants_find_outer(const struct grants *g, const char *path, unsigned int rights,
				      const struct grant *inner);
/* Number of write grants on directories: two make renames across them the supervisor's work. */
size_t grants_count_write_dirs(const struct grants *g);
