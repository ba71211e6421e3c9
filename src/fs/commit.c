/* SPDX-License-Identifier: Apache-2.0 */
/* Transactions over the engine of move.h. */
#include "fs/commit.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/util.h"
#include "fs/file.h"
#include "fs/format.h"
#include "fs/move.h"
#include "fs/tree.h"
#include "sys/at.h"

static const char journal_name[] = "journal";

struct locks {
	int *fds;
	size_t n;
};

static void locks_done_cleanup(struct locks *l)
{
	while (l->n)
		util_close(l->fds[--l->n]);
	free(l->fds);
}

/* One transaction of a set. */
struct transaction {
	struct set *set;
	struct journal journal;
	struct move move;
	int *roots; /* owned, with the descriptors; NULL: borrowed by MOVE */
	size_t n_roots;
};

static void transaction_init(struct transaction *t, struct set *set, const int *roots, size_t n)
{
	*t = (struct transaction){.set = set};
	t->move = (struct move){.io = set->store->io,
				.id = set->id,
				.set = set->dir,
				.new_dir = -1,
				.old_dir = -1,
				.roots = roots,
				.n_roots = n,
				.journal = &t->journal};
}

static void transaction_done_cleanup(struct transaction *t)
{
	move_done(&t->move);
	journal_done(&t->journal);
	for (size_t i = 0; i < t->n_roots; i++)
		util_close(t->roots[i]);
	free(t->roots);
}

static int remove_journal(struct set *set)
{
	static const char *const names[] = {journal_name, "journal.tmp", "temps", "temps.tmp",
					    "new",	  "old",	 "list",  "list.tmp"};
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		int r = tree_remove(set->store->io, set->dir, names[i]);
		if (r < 0)
			return r;
	}
	return 0;
}

/*
 * Back to the state before. Where the tree is as it was, its new change times are ours, and later
 * ones are conflicts; where somebody has worked in it, the old time stays.
 */
static int roll_back(struct transaction *t, bool after, enum set_status status,
		     const struct timespec *since, struct err *err)
{
	static const struct timespec never = {.tv_sec = LONG_MAX};
	const char *path = NULL;
	int r = move_run(&t->move, after, false, err);
	if (r < 0)
		return r;
	r = move_sync(&t->move);
	if (r >= 0)
		r = move_clean(&t->move, after);
	if (r >= 0) {
		bool intact = move_is_intact(&t->move, after, &never, NULL, &path) > 0;
		r = set_change_status(t->set, status, intact ? NULL : since);
	}
	if (r >= 0 && status == SET_KEPT)
		r = remove_journal(t->set);
	return r < 0 ? err_sys(err, -r, "change set %s cannot be taken back", t->set->id) : 0;
}

/* Takes back what was prepared beside far targets, and the modes that were in the way. */
static int undo_stage(struct transaction *t, bool after)
{
	struct err err = {0};
	if (!move_has_temps(&t->move))
		return 0;
	journal_done(&t->move.temps);
	int r = move_run(&t->move, after, false, &err);
	return r < 0 ? r : move_clean(&t->move, after);
}

/* From the durable journal on: the move itself, and back if it fails. */
static int run(struct transaction *t, bool after, enum set_status from, enum set_status done,
	       const struct timespec *since, struct err *err)
{
	int r = move_run(&t->move, after, true, err);
	if (r >= 0) {
		r = move_sync(&t->move);
		if (r >= 0)
			r = set_change_status(t->set, done, NULL);
		if (r >= 0) {
			/* It is done; what this leaves the next sweep takes. */
			(void)move_clean(&t->move, after);
			return 0;
		}
		err_sys(err, -r, "the changes cannot be made durable");
	}
	struct err second = {0};
	if (roll_back(t, !after, from, since, &second) < 0)
		err_prefix(err, "%s; `sandlock changes recover` will finish that", second.msg);
	return r;
}

static int write_journal(struct transaction *t, struct err *err)
{
	AUTO(buf_done) struct buf text = BUF_INIT(JOURNAL_MAX);
	const struct fs_io *io = t->set->store->io;
	int dir = t->set->dir;
	/* What is put beside far targets is found by the journal, so that is durable before. */
	bool sync = move_has_far(&t->move);
	int r = journal_encode(&t->journal, &text);
	if (r >= 0)
		r = file_prepare(io, dir, journal_name, text.data, text.len, sync);
	if (r >= 0)
		r = fs_rename(io, dir, "journal.tmp", dir, journal_name, 0);
	if (r >= 0 && sync)
		r = fs_sync(io, dir);
	if (r < 0)
		return err_sys(err, -r, "the journal of change set %s cannot be written",
			       t->set->id);
	return move_stage(&t->move, true, err);
}

enum { LIST_MAX = 64 * 1024 * 1024 };

static int add_to_list(void *data, const char *text, size_t len)
{
	return buf_add(data, text, len);
}

/* For `show`, later. A list that is too long is left out: nothing depends on it. */
static int write_list(struct set *set, struct set_changes *sc)
{
	AUTO(buf_done) struct buf text = BUF_INIT(LIST_MAX);
	const struct fs_io *io = set->store->io;
	if (format_changes(FORMAT_TEXT, sc, &set->info, add_to_list, &text, NULL) < 0)
		return 0;
	int r = file_prepare(io, set->dir, "list", text.data, text.len, false);
	return r < 0 ? r : fs_rename(io, set->dir, "list.tmp", set->dir, "list", 0);
}

int commit_show_list(const struct set *set, int (*out)(void *data, const char *text, size_t len),
		     void *data, struct err *err)
{
	auto_free char *text = NULL;
	size_t len = 0;
	int r = file_read(set->dir, "list", LIST_MAX, &text, &len);
	if (r >= 0)
		r = out(data, text, len);
	return r < 0 ? err_sys(err, -r, "the list of change set %s cannot be shown", set->id) : 0;
}

/* Everything that was staged, the journal and the status become durable by one sync. */
static int begin(struct transaction *t, struct err *err)
{
	const struct timespec since = t->set->since;
	int r = set_prepare_status(t->set, SET_COMMITTING, &since, false);
	if (r >= 0)
		r = fs_sync_all(t->set->store->io, t->set->dir);
	if (r >= 0)
		r = set_place_status(t->set);
	return r < 0 ? err_sys(err, -r, "the status of change set %s cannot be written", t->set->id)
		     : 0;
}

static int check_conflicts(const struct set_changes *sc, const struct commit_options *options,
			   struct err *err)
{
	AUTO(buf_done) struct buf path = BUF_INIT(CHANGES_PATH_MAX);
	char first[QUOTE_SIZE] = "";
	size_t n = 0;
	if (options->conflicts != PLAN_ABORT)
		return 0;
	for (size_t i = 0; i < sc->n; i++)
		for (struct change *c = sc->changes[i].root; c; c = change_next(c)) {
			if (!c->is_chosen || c->conflict == CONFLICT_NONE)
				continue;
			if (n++ == 0 && change_path(c, &path) >= 0)
				quote_str(buf_text(&path), first, sizeof(first));
		}
	if (n == 0)
		return 0;
	if (n == 1)
		return err_set(err, ESTALE, "%s was changed by another program since the run began",
			       first);
	return err_set(err, ESTALE,
		       "%s and %zu more were changed by other programs since the run began", first,
		       n - 1);
}

static int make_plan(struct transaction *t, const struct set_changes *sc,
		     const struct commit_options *options, struct commit_result *result,
		     struct err *err)
{
	struct set *set = t->set;
	const struct fs_io *io = set->store->io;
	struct plan plan = {.io = io, .conflicts = options->conflicts, .journal = &t->journal};
	int r = remove_journal(set);
	if (r >= 0)
		r = fs_make_dir(io, set->dir, "new", 0700);
	if (r >= 0)
		r = fs_make_dir(io, set->dir, "old", 0700);
	if (r < 0)
		return err_sys(err, -r, "no journal can be made");
	r = move_open(&t->move, err);
	if (r < 0)
		return r;
	plan.new_dir = t->move.new_dir;
	plan.old_dir = t->move.old_dir;
	r = fs_mount_id(plan.new_dir, &plan.mount);
	for (size_t i = 0; r >= 0 && i < sc->n; i++)
		r = plan_layer(&plan, &sc->layers[i], (uint32_t)i, &sc->changes[i], err);
	result->n_skipped = plan.n_skipped;
	return r;
}

static int apply(struct set *set, struct set_changes *sc, const struct commit_options *options,
		 struct commit_result *result, struct err *err)
{
	AUTO(transaction_done) struct transaction t;
	struct timespec since = set->since;
	transaction_init(&t, set, sc->roots, sc->n);
	t.move.is_first = true;
	int r = make_plan(&t, sc, options, result, err);
	if (r >= 0 && t.journal.n == 0)
		return remove_journal(set);
	if (r >= 0) {
		r = write_list(set, sc);
		if (r < 0)
			err_sys(err, -r, "the list of the changes cannot be written");
	}
	if (r >= 0)
		r = write_journal(&t, err);
	if (r >= 0)
		r = begin(&t, err);
	if (r < 0) {
		/* Nothing was put in place yet; the status may say "committing" already. */
		int back = undo_stage(&t, false);
		if (back >= 0)
			back = set_change_status(set, SET_KEPT, &since);
		if (back >= 0)
			(void)remove_journal(set);
		return r;
	}
	r = run(&t, true, SET_KEPT, SET_COMMITTED, &since, err);
	if (r >= 0)
		memcpy(result->id, set->id, sizeof(result->id));
	return r;
}

/* A part becomes a set of its own, whose journal is all that it has. */
static int apply_part(struct set *set, struct set_changes *sc, const struct commit_options *options,
		      struct commit_result *result, struct err *err)
{
	AUTO(set_done) struct set part = {.dir = -1, .lock = -1};
	int r = set_create(set->store, &set->info, &part, err);
	if (r < 0)
		return r;
	r = apply(&part, sc, options, result, err);
	if (r >= 0 && result->id[0])
		return 0;
	/* What was taken back has new change times, which are ours. */
	if (r < 0 && part.status == SET_KEPT && set->status == SET_KEPT)
		(void)set_change_status(set, SET_KEPT, &part.since);
	(void)set_remove(&part);
	return r;
}

static int note_landed(struct transaction *t, bool after)
{
	auto_free uint64_t *prints = xcalloc(t->journal.n + 1, sizeof(uint64_t));
	int r = move_prints(&t->move, after, prints);
	return r < 0 ? r : set_note_landed(t->set, prints, t->journal.n);
}

/*
 * The layer's names of what has landed go, which changes the inodes once more; what they are like
 * then is noted, unless somebody has worked there in between.
 */
static int drop_layers(struct set *set, const int *roots, size_t n)
{
	static const struct timespec never = {.tv_sec = LONG_MAX};
	AUTO(transaction_done) struct transaction t;
	auto_free char *data = NULL;
	size_t len = 0;
	const char *path = NULL;
	struct stat st;
	transaction_init(&t, set, roots, n);
	if (fs_stat(set->dir, "layers", &st) == -ENOENT)
		return 0;
	int r = set_remove_layers(set);
	if (r >= 0)
		r = file_read(set->dir, journal_name, JOURNAL_MAX, &data, &len);
	if (r >= 0)
		r = journal_decode(data, len, &t.journal);
	if (r < 0 || move_is_intact(&t.move, true, &never, NULL, &path) <= 0)
		return r;
	return note_landed(&t, true);
}

int commit_apply(struct set *set, const struct commit_options *options, struct commit_result *ret,
		 struct err *err)
{
	AUTO(locks_done) struct locks locks = {0};
	AUTO(set_changes_done) struct set_changes sc = {0};
	struct commit_result result = {0};
	if (set->status != SET_KEPT && set->status != SET_RUNNING)
		return err_set(err, EINVAL, "change set %s is %s, not kept", set->id,
			       set_status_name(set->status));
	if (set->status == SET_RUNNING)
		set->since = set->info.began;
	int r = store_lock_workdirs(set, options->wait_ms, &locks.fds, &locks.n, err);
	if (r >= 0)
		r = set_changes_read(set, options->only, &sc, err);
	if (r >= 0)
		r = check_conflicts(&sc, options, err);
	if (r < 0)
		return r;
	for (size_t i = 0; i < sc.n; i++)
		for (struct change *c = sc.changes[i].root; c; c = change_next(c))
			result.n_changes += c->is_chosen && c->kind != CHANGE_NONE;
	r = options->only ? apply_part(set, &sc, options, &result, err)
			  : apply(set, &sc, options, &result, err);
	if (r < 0)
		return r;
	/* What has landed is safe; a layer that cannot be removed now is so at the next sweep. */
	if (!options->only && result.id[0])
		(void)drop_layers(set, sc.roots, sc.n);
	else if (!options->only)
		(void)set_remove(set);
	*ret = result;
	return 0;
}

/* --- A journal that is there -------------------------------------------------------------- */

static int load_transaction(struct transaction *t, struct set *set, struct err *err)
{
	auto_free char *data = NULL;
	size_t len = 0;
	char quoted[QUOTE_SIZE];
	transaction_init(t, set, NULL, 0);
	int r = file_read(set->dir, journal_name, JOURNAL_MAX, &data, &len);
	if (r >= 0)
		r = journal_decode(data, len, &t->journal);
	if (r < 0)
		return err_sys(err, -r, "the journal of change set %s cannot be read", set->id);
	t->roots = xcalloc(set->info.n_workdirs + 1, sizeof(int));
	for (size_t i = 0; i < set->info.n_workdirs; i++) {
		const struct set_workdir *w = &set->info.workdirs[i];
		struct fs_id id;
		int fd = at_open(AT_FDCWD, w->path, O_DIRECTORY, 0);
		t->roots[i] = fd;
		t->n_roots = i + 1;
		r = fd < 0 ? fd : fs_identify(set->store->io, fd, ".", &id);
		if (r < 0 || !fs_id_same(&id, &w->id))
			return err_set(err, ESTALE,
				       "%s is not the directory that change set %s was made in",
				       quote_str(w->path, quoted, sizeof(quoted)), set->id);
	}
	t->move.roots = t->roots;
	t->move.n_roots = t->n_roots;
	return move_open(&t->move, err);
}

struct direction {
	bool after; /* where it goes */
	enum set_status from;
	enum set_status in_work;
	enum set_status done;
	const char *verb;
};

static int turn(struct set *set, const struct direction *d, bool force, unsigned int wait_ms,
		struct err *err)
{
	AUTO(locks_done) struct locks locks = {0};
	AUTO(transaction_done) struct transaction t;
	const char *path = NULL;
	char quoted[QUOTE_SIZE];
	struct timespec since = set->since;
	transaction_init(&t, set, NULL, 0);
	if (set->status != d->from)
		return err_set(err, EINVAL, "change set %s is %s: there is nothing to %s", set->id,
			       set_status_name(set->status), d->verb);
	int r = store_lock_workdirs(set, wait_ms, &locks.fds, &locks.n, err);
	if (r >= 0)
		r = load_transaction(&t, set, err);
	if (r < 0)
		return r;
	auto_free uint64_t *prints = NULL;
	if (!set_read_landed(set, t.journal.n, &prints))
		prints = NULL;
	r = force ? 1 : move_is_intact(&t.move, !d->after, &since, prints, &path);
	if (r == 0)
		return err_set(err, ESTALE,
			       "%s was changed since; --on-conflict ours does it anyway",
			       quote_str(path, quoted, sizeof(quoted)));
	if (r < 0)
		return err_sys(err, -r, "%s cannot be looked at",
			       quote_str(path, quoted, sizeof(quoted)));
	r = move_stage(&t.move, d->after, err);
	if (r >= 0) {
		r = set_change_status(set, d->in_work, &since);
		if (r < 0)
			err_sys(err, -r, "the status cannot be written");
	}
	if (r < 0) {
		(void)undo_stage(&t, !d->after);
		set->status = d->from;
		return r;
	}
	r = run(&t, d->after, d->from, d->done, &since, err);
	/* Without it an undo after this goes by times, which is stricter. */
	if (r >= 0)
		(void)note_landed(&t, d->after);
	return r;
}

int commit_undo(struct set *set, bool force, unsigned int wait_ms, struct err *err)
{
	static const struct direction undo = {false, SET_COMMITTED, SET_UNDOING, SET_UNDONE,
					      "undo"};
	return turn(set, &undo, force, wait_ms, err);
}

int commit_redo(struct set *set, bool force, unsigned int wait_ms, struct err *err)
{
	static const struct direction redo = {true, SET_UNDONE, SET_REDOING, SET_COMMITTED, "redo"};
	return turn(set, &redo, force, wait_ms, err);
}

/* --- Recovery ----------------------------------------------------------------------------- */

int commit_recover(struct set *set, struct err *err)
{
	AUTO(locks_done) struct locks locks = {0};
	AUTO(transaction_done) struct transaction t;
	struct timespec since = set->since;
	transaction_init(&t, set, NULL, 0);
	bool in_work = set->status == SET_COMMITTING || set->status == SET_UNDOING ||
		       set->status == SET_REDOING;
	if (!in_work)
		return 0;
	int r = store_lock_workdirs(set, 5000, &locks.fds, &locks.n, err);
	if (r >= 0)
		r = load_transaction(&t, set, err);
	if (r >= 0 && move_load(&t.move) < 0)
		r = err_set(err, EINVAL, "the journal of change set %s is damaged", set->id);
	if (r < 0)
		return r;
	return roll_back(&t, set->status == SET_UNDOING,
			 set->status == SET_COMMITTING ? SET_KEPT
			 : set->status == SET_UNDOING  ? SET_COMMITTED
						       : SET_UNDONE,
			 &since, err);
}

/* What may lie beside far targets, of a transaction that had not begun or was done already. */
static int clean_temps(struct set *set)
{
	AUTO(transaction_done) struct transaction t;
	struct err err = {0};
	struct stat st;
	transaction_init(&t, set, NULL, 0);
	if (fs_stat(set->dir, "temps", &st) == -ENOENT)
		return 0;
	int r = load_transaction(&t, set, &err);
	return r < 0 ? r : undo_stage(&t, set->status == SET_COMMITTED);
}

static int drop_layers_by_path(struct set *set)
{
	AUTO(transaction_done) struct transaction t;
	struct err err = {0};
	struct stat st;
	transaction_init(&t, set, NULL, 0);
	if (fs_stat(set->dir, "layers", &st) == -ENOENT)
		return 0;
	if (load_transaction(&t, set, &err) < 0)
		return set_remove_layers(set);
	return drop_layers(set, t.roots, t.n_roots);
}

/* A set that nobody holds and that is in no transaction: what a killed process left behind. */
static int tidy(struct set *set)
{
	struct stat st;
	int r = clean_temps(set);
	if (r < 0)
		return r;
	switch (set->status) {
	case SET_RUNNING:
		if (!set->info.keep_on_death)
			return set_remove(set);
		return set_change_status(set, SET_KEPT, &set->info.began);
	case SET_KEPT:
		if (fs_stat(set->dir, "layers", &st) == -ENOENT)
			return set_remove(set); /* a part that was taken back */
		return remove_journal(set);
	case SET_COMMITTED:
		return drop_layers_by_path(set);
	case SET_UNDONE:
	case SET_COMMITTING:
	case SET_UNDOING:
	case SET_REDOING:
	case SET_STATUS_COUNT:
		break;
	}
	return 0;
}

/* What is hidden is half removed, or, if it is old enough, half made. */
static void remove_hidden(const struct store *store)
{
	enum { OLD_ENOUGH_S = 60 };
	AUTO(fs_names_done) struct fs_names names = {0};
	struct timespec now;
	auto_close int dir = fs_open_dir(store->dir, "changes", O_RDONLY);
	if (dir < 0 || fs_list(dir, 1000000, &names) < 0)
		return;
	clock_gettime(CLOCK_REALTIME, &now);
	for (size_t i = 0; i < names.n; i++) {
		struct stat st;
		if (names.v[i][0] != '.' || fs_stat(dir, names.v[i], &st) < 0)
			continue;
		if (str_starts(names.v[i], ".gone-") ||
		    now.tv_sec - st.st_ctim.tv_sec > OLD_ENOUGH_S)
			(void)tree_remove(store->io, dir, names.v[i]);
	}
}

/* One whose beginning a power failure has swallowed: nothing of it can have been put in place. */
static bool is_stillborn(const struct store *store, const char *id)
{
	struct stat st;
	auto_close int all = fs_open_dir(store->dir, "changes", O_PATH);
	auto_close int dir = all < 0 ? all : fs_open_dir(all, id, O_PATH);
	return dir >= 0 && fs_stat(dir, journal_name, &st) == -ENOENT;
}

static int sweep_one(const struct store *store, const char *id, struct err *err)
{
	AUTO(set_done) struct set set = {.dir = -1, .lock = -1};
	int r = set_open(store, id, true, &set, err);
	if (r == -EINVAL && is_stillborn(store, id)) {
		auto_close int all = fs_open_dir(store->dir, "changes", O_PATH);
		return all < 0 ? all : tree_remove(store->io, all, id);
	}
	if (r < 0)
		return r == -EBUSY || r == -ENOENT ? 0 : r;
	r = commit_recover(&set, err);
	if (r < 0)
		return r;
	r = tidy(&set);
	return r < 0 ? err_sys(err, -r, "change set %s cannot be tidied", id) : 0;
}

int commit_sweep(const struct store *store, struct err *err)
{
	AUTO(fs_names_done) struct fs_names names = {0};
	int worst = store_list(store, &names);
	if (worst < 0)
		return err_sys(err, -worst, "the change sets cannot be listed");
	remove_hidden(store);
	for (size_t i = 0; i < names.n; i++) {
		struct err e = {0};
		int r = sweep_one(store, names.v[i], &e);
		if (r >= 0 || worst < 0)
			continue;
		worst = r;
		if (err)
			*err = e;
	}
	return worst;
}
