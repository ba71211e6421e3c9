/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The engine that brings trees to the state after or before a change set, from any state in
 * between: commit, undo, redo and recovery are all this. Each step looks at what is where, by
 * inode, and does only what is missing.
 *
 * The directories of a change set: `new` and `old` hold an object per op, named by its slot's
 * number. On one file system an OP_SWAP has one object in `new` only, which is the version that is
 * not in the tree. Otherwise both hold copies, and what is to be put in place is first copied
 * beside the target under a name of ours (far transaction), of which the file `temps` tells.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "fs/journal.h"
#include "sys/fs_call.h"

struct err;

struct move {
	const struct fs_io *io;
	const char *id; /* of the change set: part of the temporary names */
	int set;	/* its directory */
	int new_dir;	/* -1 until move_open */
	int old_dir;
	const int *roots; /* the workdirs, by layer */
	size_t n_roots;
	bool is_first; /* a plan's: what is below must not have changed since the plan was made */
	const struct journal *journal;
	struct journal temps; /* what is staged beside far targets, by number of op in SLOT */
};

/* Opens `new` and `old` of SET. */
int move_open(struct move *m, struct err *err);
void move_done(struct move *m);

/*
 * Copies what a transaction towards AFTER (else BEFORE) will put in place beside the far targets
 * and writes `temps`, durably. To be called before the status says that the transaction runs.
 */
int move_stage(struct move *m, bool after, struct err *err);
/* Whether the journal has far ops that need `temps`, and whether there may be any beside targets.
 */
bool move_has_far(const struct move *m);
bool move_has_temps(const struct move *m);
/* Reads `temps` again, for recovery. -EINVAL: it is damaged, so nothing was moved yet. */
int move_load(struct move *m);
/*
 * Brings all to the state AFTER or BEFORE. With CHECK, what is in place must be what the journal
 * says (-ESTALE: somebody has changed it meanwhile, ERR names it). Does not sync.
 */
int move_run(struct move *m, bool after, bool check, struct err *err);
/* Makes what move_run did durable. */
int move_sync(struct move *m);
/* Removes what lies beside far targets, and `temps`; the state is AFTER or before. */
int move_clean(struct move *m, bool after);

/* For each op what tree_print says of its target, 0 where that does not matter. */
int move_prints(struct move *m, bool after, uint64_t *ret_prints);
/*
 * Whether what is in the tree is still what the change set left there (AFTER) or found; positive
 * yes, 0 no: RET_PATH (borrowed) names the first that is not. PRINTS, of when it was put there,
 * tell any change; without them (NULL) one that is later than SINCE.
 */
int move_is_intact(struct move *m, bool after, const struct timespec *since, const uint64_t *prints,
		   const char **ret_path);
