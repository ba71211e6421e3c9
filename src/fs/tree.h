/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whole trees: copied or linked with all metadata, and removed. Walked by a list of directories, so
 * that depth costs neither stack nor descriptors.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "sys/fs_call.h"

struct layer;

struct tree_copy {
	const struct fs_io *io;
	/* Where it comes from is an upper tree: whiteouts are left out and modes are the logged
	 * ones. NULL: a plain tree. */
	struct layer *layer;
	bool link; /* files become second names of the same ones where that is possible */
};

/*
 * Makes NAME2 in DIR2, which must not exist, like NAME in DIR: contents with holes, modes, owners
 * where permitted, attributes, ACLs, times of modification; files that are one there are one here.
 * A failure leaves a part for tree_remove.
 */
int tree_copy(const struct tree_copy *how, int dir, const char *name, int dir2, const char *name2);

/* Removes NAME in DIR with all that is in it. 0 where it is not there. */
int tree_remove(const struct fs_io *io, int dir, const char *name);

/* Makes the contents of TO (opened for writing) those of FROM. */
int tree_copy_data(const struct fs_io *io, int from, int to);
/*
 * Makes carried attributes and time of TO (may be O_PATH) those of FROM, its mode MODE and,
 * WITH_OWNER and where that is permitted, its owner FROM's.
 */
int tree_copy_metadata(const struct fs_io *io, int from, int to, mode_t mode, bool with_owner);
/* An object of the kind of NAME in DIR without contents and with its metadata. */
int tree_copy_shell(const struct tree_copy *how, int dir, const char *name, int dir2,
		    const char *name2);

/*
 * A number that is another one after any change to NAME of DIR or to anything in it: over names,
 * inodes, sizes, and both times.
 */
int tree_print(int dir, const char *name, uint64_t *ret_print);
/* Whether anything in NAME of DIR, itself included, was changed after SINCE. Negative errno. */
int tree_is_changed(int dir, const char *name, const struct timespec *since);
