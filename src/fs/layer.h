/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One layer of a workspace: the directory that it lies over (lower), and what the sandbox wrote
 * (upper), as overlayfs with user attributes leaves it. Read from outside, as the ordinary user,
 * when nothing runs in it any more.
 *
 * All in the upper directory is hostile in names, kinds, modes, sizes and contents, but it was made
 * through overlayfs, which keeps its own attributes (user.overlay.X) to itself: what a program sets
 * under such a name arrives as user.overlay.overlay.X, and is not carried anywhere.
 *
 * A directory or file that its owner may not read is made readable when it must be read; the mode
 * that it had is logged first (file `modes` beside it), so that a later look knows it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <time.h>

#include "fs/inode_map.h"
#include "sys/fs_call.h"

struct err;

struct layer {
	int dir; /* where `upper` and `modes` are */
	int upper;
	int lower;
	struct timespec since; /* what changed below later than this is a conflict */
	const struct fs_io *io;
	uid_t uid; /* ours */
	gid_t gid;
	struct inode_map modes; /* that were changed */
};

/*
 * Opens the layer that lies in the directory DIR, which stays the caller's, over the directory
 * LOWER (a path, links followed).
 */
int layer_open(int dir, const char *lower, const struct timespec *since, const struct fs_io *io,
	       struct layer *ret, struct err *err);
void layer_done(struct layer *layer);

/* The directory PATH of the upper tree, for reading. */
int layer_open_dir(struct layer *layer, const char *path);
/* The file NAME of the upper directory DIR, for reading. */
int layer_open_file(struct layer *layer, int dir, const char *name);
/* A short attribute of the upper object FD (O_PATH) of the directory DIR; its length. */
ssize_t layer_xattr(struct layer *layer, int dir, int fd, const char *name, void *out, size_t size);
/* The mode that ST (of an upper object) had before it was made readable. */
mode_t layer_mode(const struct layer *layer, const struct stat *st);

/* Whether an attribute goes where its file goes; all others are the file system's or ours. */
bool layer_is_carried(const char *xattr);
