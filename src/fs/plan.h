/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From a change set to a journal: the ops, and in the storage all that they need, complete, before
 * anything is touched. Nothing of the workdir is changed here.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "fs/changes.h"
#include "fs/journal.h"
#include "fs/layer.h"

struct err;

enum plan_conflicts {
	PLAN_ABORT,  /* refuse */
	PLAN_THEIRS, /* leave out what was changed below */
	PLAN_OURS,   /* take the sandbox's version */
};

/* Where a change lies. */
struct plan_dir {
	const struct change *dir; /* NULL: nothing is open */
	int up;			  /* O_PATH; -1: not there */
	int low;
	bool is_far;
	bool can_replace; /* names in LOW may be changed */
};

struct plan {
	const struct fs_io *io;
	int new_dir; /* borrowed: where the objects are put */
	int old_dir;
	uint64_t mount; /* of both */
	enum plan_conflicts conflicts;
	struct journal *journal; /* grows */
	struct plan_dir at;	 /* private */
	size_t n_skipped;	 /* because of PLAN_THEIRS */
};

/* Adds the chosen changes of LAYER, which is number INDEX. */
int plan_layer(struct plan *plan, struct layer *layer, uint32_t index, struct changes *changes,
	       struct err *err);
