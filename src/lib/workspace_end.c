/* SPDX-License-Identifier: Apache-2.0 */
/* The end of a workspace: nothing runs in it any more. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/util.h"
#include "fs/commit.h"
#include "fs/format.h"
#include "lib/launch.h"
#include "lib/lib_internal.h"
#include "lib/workspace_internal.h"

enum {
	LOCK_WAIT_MS = 5000, /* for another commit to the same directory */
	KEEP_SETS = 100,
	KEEP_DAYS = 30,
};

bool workspace_is_open(const struct workspace *ws)
{
	return ws && ws->open;
}

const char *workspace_note(const struct workspace *ws, size_t i)
{
	return ws && i < ws->notes.n ? ws->notes.v[i] : NULL;
}

/* What was changed below since the run began is a conflict then as now. */
static int mark_kept(struct workspace *ws)
{
	int r = 0;
	if (ws->set.status == SET_RUNNING)
		r = set_change_status(&ws->set, SET_KEPT, &ws->set.info.began);
	ws->open = false;
	ws->set.lock = util_close(ws->set.lock);
	return r;
}

int workspace_keep(struct workspace *ws, struct sandlock_error *err)
{
	int r = mark_kept(ws);
	if (r < 0)
		return api_fail(err, lib_code(-r), -r, "Change set %s cannot be kept: %s",
				ws->set.id, strerror(-r));
	strv_add_take(
		&ws->notes,
		xasprintf("the changes are kept as %s; \"sandlock changes apply %s%s\" commits "
			  "them, \"sandlock changes discard %s%s\" removes them",
			  ws->set.id, ws->set.id, ws->storage, ws->set.id, ws->storage));
	return 0;
}

int workspace_abort(struct workspace *ws, struct sandlock_error *err)
{
	ws->open = false;
	int r = set_remove(&ws->set);
	ws->set.lock = util_close(ws->set.lock);
	return r < 0 ? api_fail(err, lib_code(-r), -r, "Change set %s cannot be removed: %s",
				ws->set.id, strerror(-r))
		     : 0;
}

void workspace_is_torn(struct workspace *ws)
{
	ws->torn = true;
}

static enum plan_conflicts conflicts_of(const struct workspace *ws)
{
	switch (ws->on_conflict) {
	case ON_CONFLICT_THEIRS:
		return PLAN_THEIRS;
	case ON_CONFLICT_OURS:
		return PLAN_OURS;
	case ON_CONFLICT_ABORT:
		break;
	}
	return PLAN_ABORT;
}

/* Whether nothing at all was done in the layers: then a commit has nothing to look for. */
static bool is_untouched(struct workspace *ws)
{
	AUTO(set_changes_done) struct set_changes sc = {0};
	for (size_t i = 0; i < ws->n_roots; i++) {
		AUTO(fs_names_done) struct fs_names names = {0};
		auto_close int dir = set_open_layer(&ws->set, i);
		auto_close int upper = dir < 0 ? dir : fs_open_dir(dir, "upper", O_RDONLY);
		if (upper < 0 || fs_list(upper, 1, &names) < 0 || names.n > 0)
			return false;
	}
	return set_changes_read(&ws->set, NULL, &sc, NULL) >= 0 && set_changes_count(&sc) == 0;
}

int workspace_commit(struct workspace *ws, struct sandlock_error *err)
{
	struct commit_options options = {.conflicts = conflicts_of(ws), .wait_ms = LOCK_WAIT_MS};
	struct commit_result result = {0};
	struct err e = {0};
	if (ws->dry_run)
		return api_fail(err, SANDLOCK_E_STATE, EINVAL, "A dry run commits nothing");
	if (is_untouched(ws))
		return workspace_abort(ws, err);
	if (ws->torn) {
		(void)mark_kept(ws);
		return api_fail(
			err, SANDLOCK_E_STATE, EINTR,
			"The changes were not committed: the run ended while a directory "
			"was being renamed; they are kept as %s, and \"sandlock changes show "
			"%s%s\" shows them",
			ws->set.id, ws->set.id, ws->storage);
	}
	if (commit_apply(&ws->set, &options, &result, &e) < 0) {
		(void)mark_kept(ws);
		return api_fail(err, lib_code(e.code), e.code,
				"The changes were not committed: %.250s; they are kept as %s, and "
				"\"sandlock changes apply %s%s\" tries again",
				e.msg, ws->set.id, ws->set.id, ws->storage);
	}
	ws->open = false;
	ws->set.lock = util_close(ws->set.lock);
	if (result.n_skipped)
		strv_add_take(&ws->notes,
			      xasprintf("%zu changes were left out, because the files were changed "
					"meanwhile (--on-conflict theirs)",
					result.n_skipped));
	(void)store_retain(&ws->store,
			   &(struct retention){.max_sets = KEEP_SETS,
					       .max_age_s = (uint64_t)KEEP_DAYS * 24 * 3600});
	return 0;
}

int workspace_end(struct workspace *ws, bool well, struct sandlock_error *err)
{
	if (!workspace_is_open(ws) || ws->dry_run)
		return 0;
	switch (well ? ws->on_exit : ws->on_error) {
	case ACTION_COMMIT:
		return workspace_commit(ws, err);
	case ACTION_ABORT:
		return workspace_abort(ws, err);
	case ACTION_KEEP:
		return workspace_keep(ws, err);
	case ACTION_DEFER:
		break;
	}
	return 0;
}

int workspace_show(struct workspace *ws, const char *format,
		   int (*out)(void *data, const char *text, size_t len), void *data,
		   struct sandlock_error *err)
{
	AUTO(set_changes_done) struct set_changes sc = {0};
	enum format_kind kind = FORMAT_TEXT;
	struct err e = {0};
	if (!workspace_is_open(ws))
		return api_fail(err, SANDLOCK_E_STATE, EINVAL, "There is no open layer to look at");
	if (format && format_kind_parse(format, &kind) < 0)
		return api_fail(err, SANDLOCK_E_INVALID, EINVAL,
				"The format of changes is text, json, patch or stat");
	int r = set_changes_read(&ws->set, NULL, &sc, &e);
	if (r >= 0)
		r = format_changes(kind, &sc, &ws->set.info, out, data, &e);
	if (r < 0 && !e.code)
		err_set(&e, -r, "The changes cannot be written: %s", strerror(-r));
	return r < 0 ? lib_fail(err, &e) : 0;
}

void workspace_free(struct workspace *ws, bool started)
{
	if (!ws)
		return;
	if (ws->open && started && !ws->dry_run)
		(void)mark_kept(ws);
	else if (ws->open)
		(void)workspace_abort(ws, NULL);
	for (size_t i = 0; i < ws->n_roots; i++)
		free(ws->roots[i].store);
	free(ws->roots);
	set_done(&ws->set);
	store_done(&ws->store);
	strv_done(&ws->hidden);
	strv_done(&ws->notes);
	free(ws->cwd);
	free(ws->storage);
	free(ws);
}
