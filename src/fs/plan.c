/* SPDX-License-Identifier: Apache-2.0 */
/* Planning a commit. */
#include "fs/plan.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/util.h"
#include "fs/plan_internal.h"
#include "fs/tree.h"
#include "sys/at.h"

/* What one change needs. */
struct work {
	struct plan *plan;
	struct layer *layer;
	uint32_t index;
	int up;	 /* directory of the name, O_PATH; -1: not there */
	int low; /* likewise, below */
	const struct change *c;
	const char *name;
	bool is_far;
	bool can_replace; /* names in LOW may be changed */
};

static bool is_later(const struct timespec *a, const struct timespec *b)
{
	return a->tv_sec != b->tv_sec ? a->tv_sec > b->tv_sec : a->tv_nsec > b->tv_nsec;
}

static bool replaces(const struct change *c)
{
	return c->kind == CHANGE_ADDED || c->kind == CHANGE_DELETED ||
	       (c->kind == CHANGE_MODIFIED && (c->what & (CHANGE_TYPE | CHANGE_CONTENT)));
}

static bool stays_dir(const struct change *c)
{
	return c->before.kind == NODE_DIR && c->after.kind == NODE_DIR;
}

/* Files with other names, or of another owner, keep their inode. */
static bool stays_file(const struct work *w)
{
	const struct change *c = w->c;
	return c->kind == CHANGE_MODIFIED && c->before.kind == NODE_FILE &&
	       c->after.kind == NODE_FILE &&
	       (c->before.nlink > 1 || !w->can_replace || c->before.uid != c->after.uid ||
		(c->before.gid != c->after.gid && !(c->what & CHANGE_OWNER)));
}

static struct op_side side_of(const struct stat *st)
{
	return (struct op_side){.exists = true,
				.mode = st->st_mode,
				.size = (uint64_t)st->st_size,
				.mtime = st->st_mtim};
}

static int fill_before(const struct work *w, struct op *op)
{
	struct stat st;
	if (w->c->before.kind == NODE_ABSENT)
		return 0;
	int r = fs_stat(w->low, w->name, &st);
	if (r < 0)
		return r;
	op->before = side_of(&st);
	op->seen = st.st_ctim;
	return fs_identify(w->plan->io, w->low, w->name, &op->before.id);
}

/* The upper object, as it is to be in the tree, becomes `new/SLOT`. */
static int stage_new(const struct work *w, struct op *op, const char *slot)
{
	struct stat st;
	struct tree_copy how = {.io = w->plan->io, .layer = w->layer, .link = true};
	if (w->c->after.kind == NODE_ABSENT)
		return 0;
	int r = op->kind == OP_META ? tree_copy_shell(&how, w->up, w->name, w->plan->new_dir, slot)
				    : tree_copy(&how, w->up, w->name, w->plan->new_dir, slot);
	if (r >= 0)
		r = fs_stat(w->plan->new_dir, slot, &st);
	if (r < 0)
		return r;
	op->after = side_of(&st);
	if (op->kind == OP_META)
		op->after.size = w->c->after.size;
	return fs_identify(w->plan->io, w->plan->new_dir, slot, &op->after.id);
}

static int stage_old(const struct work *w, const struct op *op, const char *slot)
{
	struct tree_copy how = {.io = w->plan->io};
	if (w->c->before.kind == NODE_ABSENT)
		return 0;
	if (op->kind == OP_META)
		return tree_copy_shell(&how, w->low, w->name, w->plan->old_dir, slot);
	if (op->kind == OP_SWAP && !op->is_far)
		return 0;
	return tree_copy(&how, w->low, w->name, w->plan->old_dir, slot);
}

static int add_op(const struct work *w, const char *path)
{
	char slot[16];
	const struct change *c = w->c;
	struct op op = {.layer = w->index,
			.slot = (uint32_t)w->plan->journal->n,
			.is_far = w->is_far,
			.has_owner = c->what & CHANGE_OWNER};
	if (!replaces(c)) {
		op.kind = OP_META;
		op.is_dir = stays_dir(c);
	} else if (stays_file(w)) {
		op.kind = OP_DATA;
	} else {
		if (!w->can_replace)
			return -EACCES;
		op.kind = OP_SWAP;
	}
	snprintf(slot, sizeof(slot), "%u", op.slot);
	int r = fill_before(w, &op);
	if (r >= 0)
		r = stage_new(w, &op, slot);
	if (r >= 0)
		r = stage_old(w, &op, slot);
	if (r < 0)
		return r;
	struct op *added = journal_add(w->plan->journal);
	*added = op;
	added->path = xstrdup(path);
	return 0;
}

static void close_dir(struct plan_dir *d)
{
	if (!d->dir)
		return;
	util_close(d->up);
	util_close(d->low);
	d->dir = NULL;
}

/* The directories that a change lies in, and what may be done in the lower one. */
static int open_dir(struct plan *plan, struct layer *layer, const struct change *dir,
		    struct plan_dir *d)
{
	AUTO(buf_done) struct buf path = BUF_INIT(CHANGES_PATH_MAX);
	struct stat st;
	uint64_t mount = 0;
	int r = change_path(dir, &path);
	if (r < 0)
		return r;
	*d = (struct plan_dir){.dir = dir, .up = -1};
	if (dir->after.kind == NODE_DIR)
		d->up = fs_open_dir(layer->upper, buf_text(&path), O_PATH);
	d->low = fs_open_dir(layer->lower, buf_text(&path), O_PATH);
	if (d->low < 0 || (d->up < 0 && d->up != -1))
		return d->low < 0 ? d->low : d->up;
	r = fs_mount_id(d->low, &mount);
	if (r >= 0)
		r = fs_stat(d->low, "", &st);
	if (r < 0)
		return r;
	d->is_far = mount != plan->mount;
	/* Our own directories are opened up for the time of the commit. */
	d->can_replace = at_access(d->low, W_OK | X_OK) == 0 || st.st_uid == layer->uid;
	return 0;
}

static int open_work(struct work *w)
{
	const struct change *dir = w->c->parent ? w->c->parent : w->c;
	struct plan_dir *d = &w->plan->at;
	w->name = w->c->parent ? w->c->name : ".";
	if (d->dir != dir) {
		close_dir(d);
		int r = open_dir(w->plan, w->layer, dir, d);
		if (r < 0) {
			close_dir(d);
			return r;
		}
	}
	w->up = d->up;
	w->low = d->low;
	w->is_far = d->is_far;
	w->can_replace = d->can_replace;
	return 0;
}

static int plan_change(struct plan *plan, struct layer *layer, uint32_t index,
		       const struct change *c, struct err *err)
{
	AUTO(buf_done) struct buf path = BUF_INIT(CHANGES_PATH_MAX);
	struct work w = {.plan = plan, .layer = layer, .index = index, .c = c, .up = -1, .low = -1};
	char quoted[QUOTE_SIZE];
	int r = open_work(&w);
	/* The time of a directory that is not ours is the kernel's business, and so is that of one
	 * in which somebody else worked meanwhile. */
	bool is_theirs =
		(layer->uid != 0 && c->before.uid != layer->uid) ||
		((c->before.mode & 0700) == 0700 && is_later(&c->before.mtime, &layer->since));
	bool skip = r >= 0 && c->kind == CHANGE_NONE && is_theirs;
	if (r >= 0 && !skip)
		r = change_path(c, &path);
	if (r >= 0 && !skip)
		r = add_op(&w, buf_text(&path));
	if (r < 0) {
		(void)change_path(c, &path);
		return err_sys(err, -r, "the change of %s cannot be prepared",
			       quote_str(path.len ? buf_text(&path) : ".", quoted, sizeof(quoted)));
	}
	return 0;
}

static bool has_conflict(const struct change *top)
{
	const struct change *end = change_skip(top);
	for (const struct change *c = top; c != end; c = change_next(c))
		if (c->conflict != CONFLICT_NONE)
			return true;
	return false;
}

/* Whether C and all below it is one op. */
static bool is_whole_op(const struct change *c)
{
	return c->kind == CHANGE_ADDED || c->kind == CHANGE_DELETED || (c->what & CHANGE_TYPE);
}

static bool is_skipped(struct plan *plan, const struct change *c)
{
	if (plan->conflicts != PLAN_THEIRS || c->kind == CHANGE_NONE)
		return false;
	return is_whole_op(c) ? has_conflict(c) : c->conflict != CONFLICT_NONE;
}

/* Removes from the staged tree `new/SLOT` of TOP what was not chosen. */
static int trim(const struct plan *plan, const struct change *top, uint32_t slot)
{
	AUTO(buf_done) struct buf path = BUF_INIT(CHANGES_PATH_MAX);
	AUTO(buf_done) struct buf whole = BUF_INIT(CHANGES_PATH_MAX);
	const struct change *end = change_skip(top);
	int r = change_path(top, &whole);
	size_t skip = whole.len;
	for (const struct change *c = top; r >= 0 && c != end;) {
		if (c->is_chosen || c->after.kind == NODE_ABSENT) {
			c = change_next(c);
			continue;
		}
		r = change_path(c->parent, &path);
		buf_clear(&whole);
		buf_printf(&whole, "%u%s", slot, buf_text(&path) + skip);
		auto_close int dir = fs_open_dir(plan->new_dir, buf_text(&whole), O_PATH);
		r = r < 0 ? r : dir < 0 ? dir : tree_remove(plan->io, dir, c->name);
		c = change_skip(c);
	}
	return r;
}

static void mark_touched(struct plan *plan, struct changes *changes)
{
	for (struct change *c = changes->root; c;) {
		bool whole = is_whole_op(c);
		if (c->is_chosen && replaces(c) && c->parent && !is_skipped(plan, c))
			c->parent->is_touched = true;
		c = whole ? change_skip(c) : change_next(c);
	}
}

static bool is_wanted(const struct change *c)
{
	if (c->kind != CHANGE_NONE)
		return c->is_chosen;
	return stays_dir(c) && (c->is_touched || (c->is_chosen && (c->what & CHANGE_TIME)));
}

static int plan_all(struct plan *plan, struct layer *layer, uint32_t index, struct changes *changes,
		    struct err *err)
{
	mark_touched(plan, changes);
	for (struct change *c = changes->root; c;) {
		bool whole = is_whole_op(c);
		if (is_skipped(plan, c)) {
			plan->n_skipped++;
		} else if (is_wanted(c)) {
			size_t n = plan->journal->n;
			int r = plan_change(plan, layer, index, c, err);
			if (r < 0)
				return r;
			if (plan->journal->n > n)
				c->op_number = n + 1;
			if (whole && plan->journal->n > n) {
				r = trim(plan, c, (uint32_t)n);
				if (r < 0)
					return err_sys(err, -r, "the choice cannot be prepared");
			}
		}
		c = whole ? change_skip(c) : change_next(c);
	}
	int r = plan_links(plan, layer, changes);
	return r < 0 ? err_sys(err, -r, "the hard links cannot be prepared") : 0;
}

int plan_layer(struct plan *plan, struct layer *layer, uint32_t index, struct changes *changes,
	       struct err *err)
{
	int r = plan_all(plan, layer, index, changes, err);
	close_dir(&plan->at);
	return r;
}
