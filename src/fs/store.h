/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where change sets are kept: one directory each below the user's state directory (0700), with
 *
 *   lock      held (flock) by whoever works on the set, a run as long as it lives
 *   info      what the set is of: workdirs, command, when it began; never changed
 *   status    one word and a time, replaced as a whole
 *   layers/N  upper and work directory of workdir N, and the modes that were changed to read it
 *   journal, new, old, temps    see move.h
 *   landed    what was put in place, by which a later change is seen
 *   list      what a commit did, as `show` prints it
 *
 * A lock that is free and a status that says "in work" are the sign of a process that died.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include "base/strv.h"
#include "sys/fs_call.h"

struct buf;
struct err;

enum set_status {
	SET_RUNNING,
	SET_KEPT,
	SET_COMMITTING,
	SET_COMMITTED,
	SET_UNDOING,
	SET_UNDONE,
	SET_REDOING,
	SET_STATUS_COUNT,
};

const char *set_status_name(enum set_status status);

struct set_workdir {
	char *path; /* owned, absolute, links followed */
	struct fs_id id;
};

struct set_info {
	struct set_workdir *workdirs;
	size_t n_workdirs;
	struct strv command;
	struct timespec began;
	bool keep_on_death; /* what becomes of the layer when the run's processes are killed */
};

void set_info_done(struct set_info *info);
void set_info_done_cleanup(struct set_info *info);
int set_info_encode(const struct set_info *info, struct buf *out);
/* -EINVAL for what set_info_encode cannot have written, a cut end included. */
int set_info_decode(const char *text, size_t len, struct set_info *ret);

struct store {
	int dir;
	char *path;
	const struct fs_io *io;
};

/*
 * Opens the state directory, made if need be: PATH, or the user's own (NULL). Refuses one that
 * another may write or own, and links in place of it.
 */
int store_open(const char *path, const struct fs_io *io, struct store *ret, struct err *err);
void store_done(struct store *store);
void store_done_cleanup(struct store *store);

struct set {
	const struct store *store;
	int dir;
	int lock; /* -1: not ours */
	char id[48];
	struct set_info info;
	enum set_status status;
	struct timespec since; /* of the status; for SET_KEPT: what is later below is a conflict */
};

/* A new one for INFO, locked, without layers; its status is SET_RUNNING. */
int set_create(const struct store *store, const struct set_info *info, struct set *ret,
	       struct err *err);
/* Makes `layers/N`, with an upper directory like the workdir N, and opens it. */
int set_make_layer(struct set *set, size_t n, struct err *err);
int set_open_layer(const struct set *set, size_t n);
/* Opens ID ("" or NULL: the newest). LOCK: -EBUSY, if somebody works on it. */
int set_open(const struct store *store, const char *id, bool lock, struct set *ret,
	     struct err *err);
void set_done(struct set *set);
void set_done_cleanup(struct set *set);

/* Durably. SINCE: when the status began; NULL: at this moment. */
int set_change_status(struct set *set, enum set_status status, const struct timespec *since);
/* In two steps, for a sync between them: set_place_status makes it so. */
int set_prepare_status(struct set *set, enum set_status status, const struct timespec *since,
		       bool sync);
int set_place_status(struct set *set);
/* What the targets of the N ops are like now that the status says so (move_prints). */
int set_note_landed(struct set *set, const uint64_t *prints, size_t n);
/* The prints noted since the status is what it is; false where that is not known. */
bool set_read_landed(const struct set *set, size_t n, uint64_t **ret_prints);
/* Removes the whole set, which is locked by us. */
int set_remove(struct set *set);
int set_remove_layers(struct set *set);

/* The ids of all sets, the oldest first. */
int store_list(const struct store *store, struct fs_names *ret);

struct retention {
	size_t max_sets; /* committed and undone ones; 0: no limit */
	uint64_t max_age_s;
	uint64_t max_bytes;
};

/* Forgets committed and undone sets, the oldest first. Kept ones stay, whatever their number. */
int store_retain(const struct store *store, const struct retention *limits);

/*
 * Locks the workdirs of SET against other commits of this user: theirs exclusively, the directories
 * above them shared. Waits at most WAIT_MS. RET_FDS has *RET_N descriptors to close.
 */
int store_lock_workdirs(const struct set *set, unsigned int wait_ms, int **ret_fds, size_t *ret_n,
			struct err *err);
