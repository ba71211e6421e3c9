/* SPDX-License-Identifier: Apache-2.0 */
/* The list of directories that the walks over trees go by; private to tree*.c. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

struct tree_dir {
	size_t parent; /* SIZE_MAX: the top */
	char *name;
};

struct tree_walk {
	int root; /* borrowed */
	struct tree_dir *dirs;
	size_t n;
	size_t room;
	struct buf path;
};

void tree_walk_init(struct tree_walk *w, int root, const char *name);
void tree_walk_done_cleanup(struct tree_walk *w);
int tree_walk_add(struct tree_walk *w, size_t parent, const char *name);
/* The path of directory I with TOP as the top's name; borrowed until the next; NULL: too long. */
const char *tree_walk_path(struct tree_walk *w, size_t i, const char *top);
