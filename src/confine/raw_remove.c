/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Removing one of our own directories with raw system calls: at most REMOVE_DEPTH deep per pass, no
 * link is followed, nothing outside the given directory is touched. Deeper trees are flattened by
 * moving a directory that lies too deep up to the top and going on.
 */
#include <dirent.h>
#include <errno.h>

#include "confine/job.h"
#include "confine/raw_util.h"

struct raw_dirent {
	uint64_t ino;
	int64_t off;
	uint16_t reclen;
	uint8_t type;
	char name[];
};

#define REMOVE_DEPTH 32

static bool is_dot(const char *name)
{
	return name[0] == '.' && (!name[1] || (name[1] == '.' && !name[2]));
}

static int open_dir(int at, const char *name)
{
	int fd = raw_openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
	if (fd == -EACCES) {
		/* Ours, but its mode keeps us out; O_NOFOLLOW below guards against an exchange. */
		raw_syscall3(SYS_fchmodat, at, name, 0700);
		fd = raw_openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
	}
	/* It may be closed to writing by its mode; it is ours. */
	if (fd >= 0)
		raw_syscall2(SYS_fchmod, fd, 0700);
	return fd;
}

/* Unlinks all non-directories in FD; copies the name of one directory left to SUB (255 bytes). */
static bool empty_files(int fd, char *sub)
{
	_Alignas(8) char buf[4096] = {0};
	bool found = false;
	raw_syscall3(SYS_lseek, fd, 0, 0);
	for (;;) {
		long n = raw_syscall3(SYS_getdents64, fd, buf, sizeof(buf));
		if (n <= 0)
			return found;
		for (long at = 0; at < n;) {
			struct raw_dirent *d = (struct raw_dirent *)(void *)(buf + at);
			at += d->reclen;
			if (is_dot(d->name))
				continue;
			long r = raw_syscall3(SYS_unlinkat, fd, d->name, 0);
			if (r < 0 && r != -EISDIR && r != -EPERM)
				continue;
			if (r < 0 && raw_syscall3(SYS_unlinkat, fd, d->name, 0x200) < 0 && !found) {
				size_t len = raw_strlen(d->name);
				for (size_t i = 0; i <= len && i < 256; i++)
					((volatile char *)sub)[i] = d->name[i];
				found = true;
			}
		}
	}
}

/* Goes down the tree by first directories; a directory below REMOVE_DEPTH moves up to TOP. */
static bool remove_pass(int top)
{
	int stack[REMOVE_DEPTH];
	char sub[256] = {0};
	int depth = 0;
	bool progress = false;
	stack[0] = top;
	while (empty_files(stack[depth], sub)) {
		progress = true;
		if (depth == REMOVE_DEPTH - 1) {
			raw_syscall5(SYS_renameat2, stack[depth], sub, top, ".deep", 0);
			break;
		}
		int fd = open_dir(stack[depth], sub);
		if (fd < 0) {
			progress = false;
			break;
		}
		stack[++depth] = fd;
	}
	while (depth > 0)
		raw_close(stack[depth--]);
	return progress;
}

void raw_remove_tree(int dir_fd, const char *name)
{
	int top = open_dir(dir_fd, name);
	if (top < 0)
		return;
	for (long tries = 0; tries < 20000 && remove_pass(top); tries++)
		;
	raw_close(top);
	raw_syscall3(SYS_unlinkat, dir_fd, name, 0x200);
}
