/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The one path resolver: from the task's own root, working directory and descriptors, with the
 * task's process in place of /proc/self, to an O_PATH descriptor of the object and its canonical
 * name. What is judged is that descriptor, and that descriptor is what is used.
 */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <sys/types.h>

#include "supervise/call.h"

enum resolve_flags {
	RESOLVE_NOFOLLOW = 1 << 0, /* a symbolic link as last component is the object itself */
	RESOLVE_EMPTY = 1 << 1,	   /* AT_EMPTY_PATH: an empty path means DIRFD's object */
	RESOLVE_PARENT = 1 << 2,   /* the object is the parent directory, LAST the name in it */
	/*
	 * As for creating: like PARENT unless the last component is a symbolic link, which is
	 * followed to the place it names. (O_CREAT without O_NOFOLLOW.)
	 */
	RESOLVE_CREATE = 1 << 3,
};

struct resolved {
	int fd; /* O_PATH; owned; the object, or its parent directory (then LAST is set) */
	char path[PATH_MAX]; /* canonical, in the task's view; of FD's object; " (deleted)" cut off
			      */
	char last[NAME_MAX + 2]; /* PARENT, CREATE: the last component ("" if it was "/" or ended in
				    ".."; a trailing slash is kept; what is too long for a
				    name is cut, but still too long) */
	bool deleted;		 /* FD's object has no name any more */
	bool anonymous;		 /* it never had one: pipe, socket, memfd, … */
	uint32_t mode;		 /* st_mode, st_dev, st_ino of FD's object */
	uint64_t dev;
	uint64_t ino;
	uint64_t mnt; /* id of the mount that FD came by */
};

#define RESOLVED_INIT                                                                              \
	{                                                                                          \
		.fd = -1                                                                           \
	}

void resolved_done(struct resolved *r);
void resolved_done_cleanup(struct resolved *r);

/*
 * Resolves PATH (bytes that were read from the task) from the task's descriptor DIRFD (AT_FDCWD:
 * its working directory). 0, or the errno that the kernel would give the task: -ENOENT, -ENOTDIR,
 * -ELOOP, -EACCES, -ENAMETOOLONG, -EBADF …; -EAGAIN: nothing is known yet, run on a worker
 * (ANSWER_WORKER), which happens only if CALL is not on one and the path is not in the cache.
 * Between act_begin and act_end (act.h), so that directories are searched with the task's rights.
 */
int resolve_path(struct call *call, int dirfd, const char *path, unsigned int flags,
		 struct resolved *ret);
/* The object of descriptor FD of the task. */
int resolve_fd(struct call *call, int fd, struct resolved *ret);
/* Fills in what else R says of R->fd, which the caller has set. 0 or a negative errno. */
int resolved_describe(struct call *call, struct resolved *r);
/* Reads argument PATH_ARG as a path and resolves it from descriptor argument DIRFD_ARG (-1:
 * working directory). RET_TEXT (PATH_MAX bytes) gets what the task wrote, "" if unreadable. */
int resolve_arg(struct call *call, int dirfd_arg, unsigned int path_arg, unsigned int flags,
		struct resolved *ret, char *ret_text);
