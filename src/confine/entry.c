/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Making and removing a sandbox's entry with raw system calls: see entry.h. Whoever tidies the
 * registry may remove a directory between its making and its locking, and the runtime directory
 * while it is empty: then all begins again.
 */
#include "confine/entry.h"

#include <errno.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "confine/job.h"
#include "confine/raw_util.h"

#define TRIES	     50
#define EASY_NUMBERS 16

static int open_dir(int at, const char *name)
{
	return raw_openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
}

static bool is_private(int fd)
{
	struct stat st;
	raw_zero(&st, sizeof(st));
	return raw_syscall2(SYS_fstat, fd, &st) == 0 && !(st.st_mode & 077) &&
	       st.st_uid == (uid_t)raw_syscall0(SYS_geteuid);
}

static int open_runtime_dir(const struct job_entry *e, bool make)
{
	int fd = open_dir(e->top_fd, e->top_name);
	if (fd == -ENOENT && make) {
		long r = raw_syscall3(SYS_mkdirat, e->top_fd, e->top_name, 0700);
		if (r < 0 && r != -EEXIST)
			return (int)r;
		fd = open_dir(e->top_fd, e->top_name);
	}
	if (fd < 0 || is_private(fd))
		return fd;
	raw_close(fd);
	return -EPERM;
}

static void put_number(char *to, unsigned int n)
{
	char text[ENTRY_DIGITS];
	size_t len = 0;
	do {
		text[len++] = (char)('0' + n % 10);
		n /= 10;
	} while (n);
	while (len)
		*to++ = text[--len];
	*to = '\0';
}

/* The first number that is free; -EEXIST if there was none. */
static long make_numbered(struct job_entry *e, int dir)
{
	long r = -EEXIST;
	for (unsigned int i = 1; r == -EEXIST && i <= EASY_NUMBERS * 2; i++) {
		unsigned int n = (unsigned int)raw_monotonic_ns();
		put_number(e->digits, i <= EASY_NUMBERS ? i : n);
		r = raw_syscall3(SYS_mkdirat, dir, e->name, 0700);
	}
	return r;
}

/* Whether the name still is the directory that FD is. */
static bool is_in_place(int dir, const char *name, int fd)
{
	struct stat mine;
	struct stat now;
	raw_zero(&mine, sizeof(mine));
	raw_zero(&now, sizeof(now));
	return raw_syscall2(SYS_fstat, fd, &mine) == 0 &&
	       raw_syscall4(SYS_newfstatat, dir, name, &now, AT_SYMLINK_NOFOLLOW) == 0 &&
	       mine.st_ino == now.st_ino && mine.st_dev == now.st_dev;
}

/* The locked directory; -ENOENT or -EAGAIN to begin again. */
static int lock_new(const struct job_entry *e, int dir)
{
	int fd = open_dir(dir, e->name);
	if (fd < 0)
		return fd;
	long r = raw_syscall2(SYS_flock, fd, LOCK_EX | LOCK_NB);
	if (r == 0 && is_in_place(dir, e->name, fd))
		return fd;
	raw_close(fd);
	return r < 0 && r != -EWOULDBLOCK ? (int)r : -EAGAIN;
}

int entry_make(struct job_entry *e)
{
	int r = -EAGAIN;
	for (int i = 0; i < TRIES && (r == -EAGAIN || r == -ENOENT); i++) {
		int dir = open_runtime_dir(e, true);
		r = dir < 0 ? dir : (int)make_numbered(e, dir);
		if (r == 0)
			r = lock_new(e, dir);
		if (dir >= 0)
			raw_close(dir);
	}
	if (r < 0) {
		e->error = -r;
		e->name[0] = '\0';
	}
	return r;
}

void entry_remove(const struct job_entry *e)
{
	if (e->top_fd < 0 || !e->name || !e->name[0])
		return;
	int dir = open_runtime_dir(e, false);
	if (dir >= 0) {
		/* A short run has put nothing into it. */
		if (raw_syscall3(SYS_unlinkat, dir, e->name, AT_REMOVEDIR) < 0)
			raw_remove_tree(dir, e->name);
		raw_close(dir);
	}
	raw_syscall3(SYS_unlinkat, e->top_fd, e->top_name, AT_REMOVEDIR);
}
