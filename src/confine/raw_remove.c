/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Removing one of our own directories with raw system calls: at most REMOVE_DEPTH deep per pass, no
 * link is followed, nothing outside the given directory is touched. Deeper trees are flattened by
 * moving a directory that lies too deep up to the top and going on. Time is bounded.
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

#define REMOVE_DEPTH	  32
#define UAPI_NR_FCHMODAT2 452 /* fchmodat2(2): the same number on all architectures */
/* Nobody waits longer than this for what a hostile tree makes of its removal. */
#define REMOVE_NS 5000000000LL

struct remover {
	int top;
	unsigned long serial; /* of the names that too deep directories get in TOP */
	int64_t deadline;
};

static bool is_dot(const char *name)
{
	return name[0] == '.' && (!name[1] || (name[1] == '.' && !name[2]));
}

/*
 * Opens a directory of ours for emptying, whatever its mode says. The mode is changed through a
 * descriptor, so that nothing put in its place is touched (chmod(2) follows links).
 */
static int open_dir(int at, const char *name)
{
	int flags = O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
	int fd = raw_openat(at, name, O_RDONLY | flags, 0);
	if (fd == -EACCES) {
		int handle = raw_openat(at, name, O_PATH | flags, 0);
		if (handle < 0)
			return handle;
		/* fchmodat2(2), Linux 6.6; without it such a directory stays and is reported. */
		raw_syscall4(UAPI_NR_FCHMODAT2, handle, "", 0700, AT_EMPTY_PATH);
		raw_close(handle);
		fd = raw_openat(at, name, O_RDONLY | flags, 0);
	}
	if (fd >= 0)
		raw_syscall2(SYS_fchmod, fd, 0700);
	return fd;
}

static void copy_name(char *to, const char *from)
{
	size_t len = raw_strlen(from);
	for (size_t i = 0; i <= len && i < 256; i++)
		((volatile char *)to)[i] = from[i];
}

/* Unlinks all that can go from FD. True with the name of a directory that is left in SUB. */
static bool empty_files(const struct remover *rm, int fd, char *sub)
{
	_Alignas(8) char buf[4096] = {0};
	bool found = false;
	raw_syscall3(SYS_lseek, fd, 0, 0);
	for (;;) {
		long n = raw_syscall3(SYS_getdents64, fd, buf, sizeof(buf));
		if (n <= 0 || raw_monotonic_ns() >= rm->deadline)
			return found;
		for (long at = 0; at < n;) {
			struct raw_dirent *d = (struct raw_dirent *)(void *)(buf + at);
			at += d->reclen;
			if (is_dot(d->name) || raw_syscall3(SYS_unlinkat, fd, d->name, 0) >= 0)
				continue;
			long r = raw_syscall3(SYS_unlinkat, fd, d->name, AT_REMOVEDIR);
			if (r < 0 && r != -ENOTDIR && !found) {
				copy_name(sub, d->name);
				found = true;
			}
		}
	}
}

/* Moves NAME from AT into the top directory under a name that is free there. */
static bool move_up(struct remover *rm, int at, const char *name)
{
	while (raw_monotonic_ns() < rm->deadline) {
		char to[32] = ".sandlock-deep-0000000000000000";
		unsigned long v = rm->serial++;
		for (size_t i = 30; v; v >>= 4)
			to[i--] = "0123456789abcdef"[v & 15];
		long r = raw_syscall5(SYS_renameat2, at, name, rm->top, to,
				      1 /* RENAME_NOREPLACE */);
		if (r >= 0)
			return true;
		if (r != -EEXIST)
			return false;
	}
	return false;
}

/* Goes down the tree by first directories, and moves what lies too deep up. False: no way on. */
static bool remove_pass(struct remover *rm)
{
	int stack[REMOVE_DEPTH] = {rm->top};
	char sub[256] = {0};
	int depth = 0;
	bool progress = false;
	while (empty_files(rm, stack[depth], sub)) {
		progress = true;
		if (depth == REMOVE_DEPTH - 1) {
			progress = move_up(rm, stack[depth], sub);
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
	return progress && raw_monotonic_ns() < rm->deadline;
}

void raw_remove_tree(int dir_fd, const char *name)
{
	int64_t now = raw_monotonic_ns();
	/* The serial begins where nobody can foresee it. */
	struct remover rm = {.deadline = now + REMOVE_NS, .serial = (unsigned long)now};
	rm.top = open_dir(dir_fd, name);
	if (rm.top < 0)
		return;
	while (remove_pass(&rm))
		;
	raw_close(rm.top);
	raw_syscall3(SYS_unlinkat, dir_fd, name, AT_REMOVEDIR);
}
