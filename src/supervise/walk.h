/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The careful walk of a task's path, one component at a time: for paths with symbolic links, which
 * the kernel would follow with this process's root and this process's /proc/self.
 */
#pragma once

#include <sys/types.h>

#include "supervise/call.h"

/*
 * Walks PATH from START (taken) with FLAGS of enum resolve_flags. 0 and an O_PATH descriptor, with
 * LAST (NAME_MAX + 2 bytes) as struct resolved has it; or a negative errno.
 */
int walk_path(struct call *call, int start, const char *path, unsigned int flags, int *ret_fd,
	      char *ret_last);

/*
 * Splits PATH into its parent (PATH_MAX bytes; "." where it has none) and the last component with
 * its trailing slash; that is "" where the path names no entry of a directory ("/", ".", ".."), and
 * then the parent is the whole path. 0, or -ENAMETOOLONG for a path that no call takes.
 */
int walk_split(const char *path, char *ret_parent, char *ret_last);
/* The task's root directory as an O_PATH descriptor, which is the box's: none of its tasks can
 * change it. Or a negative errno. */
int walk_root(struct call *call);
