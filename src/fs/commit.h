/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Commit, undo, redo and recovery of a change set.
 *
 * Whole or not at all: the journal is complete and durable before the workdir is touched, the
 * status says what is going on, and whoever finds a set whose process has died brings it back to
 * where it was (commit_recover). A failure on the way is taken back at once, and the set stays as
 * it was. So a tree is the old or the new one, after recovery; while a commit runs others can see
 * it in work.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "fs/plan.h"
#include "fs/store.h"

struct buf;
struct err;

struct commit_options {
	enum plan_conflicts conflicts;
	const char *only; /* what of it; NULL: all */
	unsigned int wait_ms;
};

struct commit_result {
	size_t n_changes;
	size_t n_skipped;
	char id[48]; /* of the set that can be undone; "" where there was nothing to do */
};

/* All that the layers of SET, which is kept or running and locked by us, change. */
struct set_changes {
	int *roots; /* the workdirs, O_PATH; borrowed from LAYERS */
	int *dirs;
	struct layer *layers;
	struct changes *changes;
	size_t n;
};

int set_changes_read(struct set *set, const char *only, struct set_changes *ret, struct err *err);
void set_changes_done(struct set_changes *sc);
void set_changes_done_cleanup(struct set_changes *sc);
size_t set_changes_count(const struct set_changes *sc);

/*
 * Puts what SET holds into its workdirs. -ESTALE: conflicts, and nothing was done; the message
 * names one and says how many. After success, or where there was nothing, the set is committed or
 * removed (RET->id). With ONLY the part becomes a set of its own, and this one stays kept.
 */
int commit_apply(struct set *set, const struct commit_options *options, struct commit_result *ret,
		 struct err *err);
/* Writes out what a committed or undone set changed, a line for each (format.h). */
int commit_show_list(const struct set *set, int (*out)(void *data, const char *text, size_t len),
		     void *data, struct err *err);
/* Takes a committed set back, or an undone one forth. FORCE: whatever was changed since. */
int commit_undo(struct set *set, bool force, unsigned int wait_ms, struct err *err);
int commit_redo(struct set *set, bool force, unsigned int wait_ms, struct err *err);
/* Brings a set, locked by us, whose process died in a transaction to where it was before. */
int commit_recover(struct set *set, struct err *err);
/*
 * Does so for all sets of the store that nobody holds, and removes dead runs that do not ask to be
 * kept. Goes on past failures; returns the first one.
 */
int commit_sweep(const struct store *store, struct err *err);
