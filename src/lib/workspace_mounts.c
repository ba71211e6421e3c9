/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A workdir among the mounts. A layer lies over one mount, so there may be none below it; and what
 * is mounted twice has two names, of which the layer covers one.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/path.h"
#include "base/util.h"
#include "lib/launch.h"
#include "lib/workspace_internal.h"
#include "sys/at.h"

/* A line of mountinfo (proc_pid_mountinfo(5)), borrowed from its text. */
struct mount_line {
	unsigned long long id;
	char *device; /* "major:minor" */
	char *root;   /* what of the file system is mounted */
	char *point;  /* where */
	bool read_only;
};

/* Blanks and such are octal there. In place. */
static void decode(char *text)
{
	char *to = text;
	for (const char *from = text; *from; to++) {
		if (from[0] == '\\' && from[1] && from[2] && from[3]) {
			*to = (char)((from[1] & 7) << 6 | (from[2] & 7) << 3 | (from[3] & 7));
			from += 4;
		} else {
			*to = *from++;
		}
	}
	*to = '\0';
}

static bool parse(char *line, struct mount_line *ret)
{
	char *words[6] = {NULL};
	char *rest = line;
	for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
		words[i] = strsep(&rest, " ");
		if (!words[i])
			return false;
	}
	decode(words[3]);
	decode(words[4]);
	*ret = (struct mount_line){.id = strtoull(words[0], NULL, 10),
				   .device = words[2],
				   .root = words[3],
				   .point = words[4],
				   .read_only = strncmp(words[5], "ro", 2) == 0};
	return true;
}

struct mounts {
	FILE *f;
	char *line;
	size_t size;
};

static int mounts_open(struct mounts *m, struct sandlock_error *err)
{
	m->f = fopen("/proc/self/mountinfo", "re");
	return m->f ? 0
		    : api_fail(err, SANDLOCK_E_UNSUPPORTED, errno,
			       "The mounts cannot be listed (/proc/self/mountinfo): %s",
			       strerror(errno));
}

static bool mounts_next(struct mounts *m, struct mount_line *ret)
{
	while (getline(&m->line, &m->size, m->f) > 0)
		if (parse(m->line, ret))
			return true;
	return false;
}

static void mounts_close(struct mounts *m)
{
	fclose(m->f);
	free(m->line);
}

int workspace_check_mounts(const char *root, struct sandlock_error *err)
{
	char quoted[2][QUOTE_SIZE];
	struct mounts m = {0};
	struct mount_line line;
	int r = mounts_open(&m, err);
	if (r < 0)
		return r;
	while (r == 0 && mounts_next(&m, &line)) {
		if (str_eq(line.point, root) || !path_is_beneath(line.point, root))
			continue;
		r = api_fail(err, SANDLOCK_E_UNSUPPORTED, EINVAL,
			     "--workdir %s has a mount below it (%s), over which no one layer can "
			     "lie: name directories beside it instead",
			     quote_str(root, quoted[0], QUOTE_SIZE),
			     quote_str(line.point, quoted[1], QUOTE_SIZE));
	}
	mounts_close(&m);
	return r;
}

/* --- Other names -------------------------------------------------------------------------- */

static uint64_t mount_of(const char *path)
{
	struct at_info info;
	auto_close int fd = at_open(AT_FDCWD, path, 0, 0);
	return fd >= 0 && at_info(fd, &info) == 0 ? info.mnt : 0;
}

/* PATH, which lies in LINE's mount, as its file system has it. */
static char *inner_path(const struct mount_line *line, const char *path)
{
	const char *below = path_relative_to(path, line->point);
	auto_free char *joined = below && *below ? path_join(line->root, below) : NULL;
	return joined ? path_normalize(joined) : xstrdup(line->root);
}

/* The device and the inner path of ROOT, both owned. */
static int find_inner(const char *root, uint64_t mount, char **ret_device, char **ret_inner,
		      struct sandlock_error *err)
{
	struct mounts m = {0};
	struct mount_line line;
	int r = mounts_open(&m, err);
	if (r < 0)
		return r;
	r = -SANDLOCK_E_UNSUPPORTED;
	while (r < 0 && mounts_next(&m, &line)) {
		if (line.id != mount)
			continue;
		*ret_device = xstrdup(line.device);
		*ret_inner = inner_path(&line, root);
		r = 0;
	}
	mounts_close(&m);
	return r == 0 ? 0
		      : api_fail(err, SANDLOCK_E_UNSUPPORTED, ENOENT,
				 "The mount of --workdir %s is not to be found", root);
}

/* Whether the part of LINE's mount that GRANT opens holds INNER, or lies in it. */
static bool overlaps(const struct mount_line *line, const char *grant, uint64_t grant_mount,
		     const char *inner)
{
	auto_free char *from = NULL;
	if (line->id == grant_mount)
		from = inner_path(line, grant);
	else if (path_is_beneath(line->point, grant))
		from = xstrdup(line->root);
	return from && (path_is_beneath(inner, from) || path_is_beneath(from, inner));
}

static int check_grant(const char *root, uint64_t mount, const char *device, const char *inner,
		       const char *grant, struct sandlock_error *err)
{
	char quoted[3][QUOTE_SIZE];
	struct mounts m = {0};
	struct mount_line line;
	uint64_t grant_mount = mount_of(grant);
	int r = mounts_open(&m, err);
	if (r < 0)
		return r;
	while (r == 0 && mounts_next(&m, &line)) {
		if (line.id == mount || line.read_only || !str_eq(line.device, device) ||
		    !overlaps(&line, grant, grant_mount, inner))
			continue;
		r = api_fail(err, SANDLOCK_E_INVALID, EINVAL,
			     "Write grant %s reaches --workdir %s past its layer, since the same "
			     "file system is mounted at %s: use a narrower grant",
			     quote_str(grant, quoted[0], QUOTE_SIZE),
			     quote_str(root, quoted[1], QUOTE_SIZE),
			     quote_str(line.point, quoted[2], QUOTE_SIZE));
	}
	mounts_close(&m);
	return r;
}

int workspace_check_grants(const char *root, const struct strv *grants, struct sandlock_error *err)
{
	auto_free char *device = NULL;
	auto_free char *inner = NULL;
	uint64_t mount = mount_of(root);
	int r = grants->n ? find_inner(root, mount, &device, &inner, err) : 0;
	for (size_t i = 0; r == 0 && i < grants->n; i++) {
		auto_free char *real = realpath(grants->v[i], NULL);
		if (real && !path_is_beneath(real, root))
			r = check_grant(root, mount, device, inner, real, err);
	}
	return r;
}
