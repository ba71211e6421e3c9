/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The public functions on change sets. Each first looks after what killed processes have left: that
 * is where recovery happens without anybody asking for it.
 */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/timestamp.h"
#include "base/util.h"
#include "base/value.h"
#include "fs/commit.h"
#include "fs/format.h"
#include "lib/lib_internal.h"

/* How long another commit on the same directory is waited for. */
#define LOCK_WAIT_MS 5000

static int open_store(const char *storage, struct store *store, struct err *err)
{
	int r = store_open(storage, NULL, store, err);
	/* What cannot be recovered concerns this call only if it is about that very set. */
	return r < 0 ? r : (commit_sweep(store, NULL), 0);
}

/* The newest set of STATUS. */
static int find_newest(const struct store *store, enum set_status status, char *ret_id, size_t size,
		       struct err *err)
{
	AUTO(fs_names_done) struct fs_names names = {0};
	int r = store_list(store, &names);
	if (r < 0)
		return err_sys(err, -r, "the change sets cannot be listed");
	for (size_t i = names.n; i > 0; i--) {
		AUTO(set_done) struct set set = {.dir = -1, .lock = -1};
		if (set_open(store, names.v[i - 1], false, &set, NULL) < 0 || set.status != status)
			continue;
		snprintf(ret_id, size, "%s", set.id);
		return 0;
	}
	return err_set(err, ENOENT, "there is no change set that is %s", set_status_name(status));
}

static int open_set(const struct store *store, const char *id, enum set_status status,
		    struct set *set, struct err *err)
{
	char newest[64];
	if (!id) {
		int r = find_newest(store, status, newest, sizeof(newest), err);
		if (r < 0)
			return r;
		id = newest;
	}
	return set_open(store, id, true, set, err);
}

static struct value *describe(const struct set *set)
{
	char text[TIMESTAMP_TEXT_SIZE];
	struct value *row = value_new(VALUE_TABLE);
	struct value *workdirs = value_new(VALUE_ARRAY);
	struct value *command = value_new(VALUE_ARRAY);
	struct timestamp began = {.sec = set->info.began.tv_sec,
				  .ns = (int32_t)set->info.began.tv_nsec};
	value_table_put_take(row, "id", value_new_string(set->id));
	value_table_put_take(row, "status", value_new_string(set_status_name(set->status)));
	value_table_put_take(row, "began", value_new_string(timestamp_print_ms(began, text)));
	for (size_t i = 0; i < set->info.n_workdirs; i++)
		value_array_add_take(workdirs, value_new_string(set->info.workdirs[i].path));
	for (size_t i = 0; i < set->info.command.n; i++)
		value_array_add_take(command, value_new_string(set->info.command.v[i]));
	value_table_put_take(row, "workdirs", workdirs);
	value_table_put_take(row, "command", command);
	return row;
}

int sandlock_changes_list(const char *storage, char **ret_json, struct sandlock_error *error)
{
	AUTO(store_done) struct store store = {.dir = -1};
	AUTO(fs_names_done) struct fs_names names = {0};
	AUTO(value_free) struct value *rows = value_new(VALUE_ARRAY);
	struct err err = {0};
	if (open_store(storage, &store, &err) < 0)
		return lib_fail(error, &err);
	int r = store_list(&store, &names);
	if (r < 0) {
		err_sys(&err, -r, "the change sets cannot be listed");
		return lib_fail(error, &err);
	}
	for (size_t i = 0; i < names.n; i++) {
		AUTO(set_done) struct set set = {.dir = -1, .lock = -1};
		if (set_open(&store, names.v[i], false, &set, NULL) >= 0)
			value_array_add_take(rows, describe(&set));
	}
	*ret_json = json_write(rows);
	return 0;
}

/* A reader that has gone or a full disk is an error; a slow one is waited for. */
static int write_out(void *data, const char *text, size_t len)
{
	int fd = *(int *)data;
	while (len) {
		ssize_t n = write(fd, text, len);
		if (n < 0 && errno == EAGAIN) {
			struct pollfd p = {.fd = fd, .events = POLLOUT};
			(void)poll(&p, 1, -1);
			continue;
		}
		if (n < 0 && errno != EINTR)
			return -errno;
		text += n > 0 ? n : 0;
		len -= n > 0 ? (size_t)n : 0;
	}
	return 0;
}

int sandlock_changes_show(const char *storage, const char *id, const char *format, int fd,
			  struct sandlock_error *error)
{
	AUTO(store_done) struct store store = {.dir = -1};
	AUTO(set_done) struct set set = {.dir = -1, .lock = -1};
	AUTO(set_changes_done) struct set_changes sc = {0};
	struct err err = {0};
	enum format_kind kind = FORMAT_TEXT;
	int r = format ? format_kind_parse(format, &kind) : 0;
	if (r < 0)
		r = err_set(&err, EINVAL,
			    "there is no format of that name: text, json, patch, stat");
	if (r >= 0)
		r = open_store(storage, &store, &err);
	if (r >= 0)
		r = open_set(&store, id, SET_KEPT, &set, &err);
	if (r < 0)
		return lib_fail(error, &err);
	if (set.status == SET_KEPT) {
		r = set_changes_read(&set, NULL, &sc, &err);
		if (r >= 0)
			r = format_changes(kind, &sc, &set.info, write_out, &fd, &err);
	} else if (kind == FORMAT_TEXT) {
		r = commit_show_list(&set, write_out, &fd, &err);
	} else {
		r = err_set(&err, EINVAL,
			    "change set %s is %s: only its list of names can be shown", set.id,
			    set_status_name(set.status));
	}
	return r < 0 ? lib_fail(error, &err) : 0;
}

static int parse_conflicts(const char *text, enum plan_conflicts *ret, struct err *err)
{
	if (!text || str_eq(text, "abort"))
		*ret = PLAN_ABORT;
	else if (str_eq(text, "theirs"))
		*ret = PLAN_THEIRS;
	else if (str_eq(text, "ours"))
		*ret = PLAN_OURS;
	else
		return err_set(err, EINVAL, "--on-conflict takes abort, theirs or ours");
	return 0;
}

int sandlock_changes_apply(const char *storage, const char *id, const char *only,
			   const char *on_conflict, char **ret_id, struct sandlock_error *error)
{
	AUTO(store_done) struct store store = {.dir = -1};
	AUTO(set_done) struct set set = {.dir = -1, .lock = -1};
	struct commit_options options = {.only = only, .wait_ms = LOCK_WAIT_MS};
	struct commit_result result = {0};
	struct err err = {0};
	int r = parse_conflicts(on_conflict, &options.conflicts, &err);
	if (r >= 0)
		r = open_store(storage, &store, &err);
	if (r >= 0)
		r = open_set(&store, id, SET_KEPT, &set, &err);
	if (r >= 0)
		r = commit_apply(&set, &options, &result, &err);
	if (r < 0)
		return lib_fail(error, &err);
	if (ret_id)
		*ret_id = xstrdup(result.id);
	return 0;
}

static int turn(const char *storage, const char *id, const char *on_conflict, bool undo,
		struct sandlock_error *error)
{
	AUTO(store_done) struct store store = {.dir = -1};
	AUTO(set_done) struct set set = {.dir = -1, .lock = -1};
	enum plan_conflicts conflicts = PLAN_ABORT;
	struct err err = {0};
	int r = parse_conflicts(on_conflict, &conflicts, &err);
	if (r >= 0 && conflicts == PLAN_THEIRS)
		r = err_set(&err, EINVAL, "undo and redo take --on-conflict abort or ours");
	if (r >= 0)
		r = open_store(storage, &store, &err);
	if (r >= 0)
		r = open_set(&store, id, undo ? SET_COMMITTED : SET_UNDONE, &set, &err);
	if (r >= 0 && undo)
		r = commit_undo(&set, conflicts == PLAN_OURS, LOCK_WAIT_MS, &err);
	else if (r >= 0)
		r = commit_redo(&set, conflicts == PLAN_OURS, LOCK_WAIT_MS, &err);
	return r < 0 ? lib_fail(error, &err) : 0;
}

int sandlock_changes_undo(const char *storage, const char *id, const char *on_conflict,
			  struct sandlock_error *error)
{
	return turn(storage, id, on_conflict, true, error);
}

int sandlock_changes_redo(const char *storage, const char *id, const char *on_conflict,
			  struct sandlock_error *error)
{
	return turn(storage, id, on_conflict, false, error);
}

int sandlock_changes_discard(const char *storage, const char *id, struct sandlock_error *error)
{
	AUTO(store_done) struct store store = {.dir = -1};
	AUTO(set_done) struct set set = {.dir = -1, .lock = -1};
	struct err err = {0};
	int r = id ? open_store(storage, &store, &err)
		   : err_set(&err, EINVAL, "a change set must be named to be discarded");
	if (r >= 0)
		r = set_open(&store, id, true, &set, &err);
	if (r >= 0 && (set.status == SET_COMMITTING || set.status == SET_UNDOING ||
		       set.status == SET_REDOING))
		r = err_set(&err, EBUSY, "change set %s must be recovered first", set.id);
	if (r >= 0) {
		r = set_remove(&set);
		if (r < 0)
			err_sys(&err, -r, "change set %s cannot be removed", set.id);
	}
	return r < 0 ? lib_fail(error, &err) : 0;
}

int sandlock_changes_recover(const char *storage, struct sandlock_error *error)
{
	AUTO(store_done) struct store store = {.dir = -1};
	struct err err = {0};
	int r = store_open(storage, NULL, &store, &err);
	if (r >= 0)
		r = commit_sweep(&store, &err);
	return r < 0 ? lib_fail(error, &err) : 0;
}
