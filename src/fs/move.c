/* SPDX-License-Identifier: Apache-2.0 */
/* The engine: one op from any state to the wanted one, and all of them in order. */
#include "fs/move.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/util.h"
#include "fs/move_internal.h"
#include "fs/tree.h"

/* --- Places ------------------------------------------------------------------------------- */

void place_done(struct place *p)
{
	p->dir = util_close(p->dir);
	free(p->parent);
	p->parent = NULL;
	p->name = NULL;
}

void place_done_cleanup(struct place *p)
{
	place_done(p);
}

int place_find(const struct move *m, const struct op *op, struct place *p)
{
	const char *slash = strrchr(op->path, '/');
	size_t len = slash ? (size_t)(slash - op->path) : 0;
	if (op->layer >= m->n_roots)
		return -EINVAL;
	p->name = slash ? slash + 1 : *op->path ? op->path : ".";
	/* Ops come in the order of paths: most lie where the one before did. */
	if (p->dir >= 0 && p->layer == op->layer && strlen(p->parent) == len &&
	    memcmp(p->parent, op->path, len) == 0)
		return 0;
	char *parent = xstrndup(op->path, len);
	int fd = fs_open_dir(m->roots[op->layer], parent, O_PATH);
	if (fd < 0) {
		free(parent);
		return fd;
	}
	const char *name = p->name;
	place_done(p);
	*p = (struct place){.dir = fd, .layer = op->layer, .parent = parent, .name = name};
	return 0;
}

struct slot_name slot_name(const struct op *op)
{
	struct slot_name s;
	snprintf(s.text, sizeof(s.text), "%u", op->slot);
	return s;
}

struct slot_name temp_name(const struct move *m, const struct op *op)
{
	struct slot_name s;
	snprintf(s.text, sizeof(s.text), ".sandlock-%.40s-%u", m->id, op->slot);
	return s;
}

/* --- Swapping ----------------------------------------------------------------------------- */

struct swap {
	const struct fs_io *io;
	int dir; /* the target */
	const char *name;
	int slot_dir;
	const char *slot;
	struct fs_id mover; /* the object whose place tells the state */
	bool in_target;	    /* where it is wanted */
};

/* What a swap in three steps leaves when it is stopped: its third name. */
static int settle_aux(const struct swap *s, const char *aux)
{
	struct fs_id id;
	int r = fs_identify(s->io, s->slot_dir, aux, &id);
	if (r < 0)
		return r == -ENOENT ? 0 : r;
	r = fs_identify(s->io, s->slot_dir, s->slot, &id);
	if (r == -ENOENT)
		return fs_rename(s->io, s->slot_dir, aux, s->slot_dir, s->slot, RENAME_NOREPLACE);
	return r < 0 ? r : fs_rename(s->io, s->slot_dir, aux, s->dir, s->name, RENAME_NOREPLACE);
}

static int exchange(const struct swap *s, const char *aux)
{
	int r = fs_rename(s->io, s->slot_dir, s->slot, s->dir, s->name, RENAME_EXCHANGE);
	if (r != -EINVAL && r != -ENOSYS)
		return r;
	/* A file system that cannot exchange two names. */
	r = fs_rename(s->io, s->dir, s->name, s->slot_dir, aux, RENAME_NOREPLACE);
	if (r >= 0)
		r = fs_rename(s->io, s->slot_dir, s->slot, s->dir, s->name, RENAME_NOREPLACE);
	return r < 0 ? r
		     : fs_rename(s->io, s->slot_dir, aux, s->slot_dir, s->slot, RENAME_NOREPLACE);
}

static int move_once(const struct swap *s, bool has_other, const char *aux)
{
	if (has_other)
		return exchange(s, aux);
	return s->in_target
		       ? fs_rename(s->io, s->slot_dir, s->slot, s->dir, s->name, RENAME_NOREPLACE)
		       : fs_rename(s->io, s->dir, s->name, s->slot_dir, s->slot, RENAME_NOREPLACE);
}

/* A directory that moves to another one is written to: its parent is an entry of it. */
static int open_up(const struct fs_io *io, int dir, const char *name)
{
	struct stat st;
	int r = fs_stat(dir, name, &st);
	if (r < 0)
		return r == -ENOENT ? 0 : r;
	if (!S_ISDIR(st.st_mode) || (st.st_mode & 0300) == 0300 || st.st_uid != geteuid())
		return 0;
	auto_close int fd = fs_open_any(dir, name);
	return fd < 0 ? fd : fs_set_mode(io, fd, (st.st_mode & 07777) | 0300);
}

static int swap_run(const struct swap *s)
{
	char aux[96];
	struct fs_id at_target = {0};
	struct fs_id at_slot = {0};
	snprintf(aux, sizeof(aux), "%s.x", s->slot);
	int r = settle_aux(s, aux);
	if (r < 0)
		return r;
	int target = fs_identify(s->io, s->dir, s->name, &at_target);
	int slot = fs_identify(s->io, s->slot_dir, s->slot, &at_slot);
	if ((target < 0 && target != -ENOENT) || (slot < 0 && slot != -ENOENT))
		return target < 0 && target != -ENOENT ? target : slot;
	bool mover_in_target = target == 0 && fs_id_same(&at_target, &s->mover);
	bool mover_in_slot = slot == 0 && fs_id_same(&at_slot, &s->mover);
	if (!mover_in_target && !mover_in_slot)
		return -ESTALE;
	if (mover_in_target == s->in_target)
		return 0;
	bool has_other = (s->in_target ? target : slot) == 0;
	r = move_once(s, has_other, aux);
	if (r != -EACCES && r != -EPERM)
		return r;
	int opened = open_up(s->io, s->dir, s->name);
	if (opened >= 0)
		opened = open_up(s->io, s->slot_dir, s->slot);
	return opened < 0 ? opened : move_once(s, has_other, aux);
}

/* Gives a directory at NAME back the mode that it had before it was opened up. */
static int settle_mode(const struct fs_io *io, int dir, const char *name,
		       const struct op_side *side)
{
	struct stat st;
	if (!side->exists || !S_ISDIR(side->mode) || (side->mode & 0300) == 0300)
		return 0;
	int r = fs_stat(dir, name, &st);
	if (r < 0 || !S_ISDIR(st.st_mode) || (st.st_mode & 07777) == (side->mode & 07777))
		return r;
	auto_close int fd = fs_open_any(dir, name);
	return fd < 0 ? fd : fs_set_mode(io, fd, side->mode & 07777);
}

static const struct op *temp_of(const struct move *m, size_t i)
{
	/* They were written in the order of their ops. */
	size_t low = 0;
	size_t high = m->temps.n;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (m->temps.ops[middle].slot < i)
			low = middle + 1;
		else
			high = middle;
	}
	return low < m->temps.n && m->temps.ops[low].slot == i ? &m->temps.ops[low] : NULL;
}

static int run_swap(struct move *m, size_t i, const struct place *p, bool after)
{
	const struct op *op = &m->journal->ops[i];
	struct slot_name slot = slot_name(op);
	struct slot_name temp = temp_name(m, op);
	struct swap s = {.io = m->io,
			 .dir = p->dir,
			 .name = p->name,
			 .slot_dir = m->new_dir,
			 .slot = slot.text,
			 .mover = op->after.exists ? op->after.id : op->before.id,
			 .in_target = op->after.exists ? after : !after};
	if (op->is_far) {
		const struct op *t = temp_of(m, i);
		if (!t)
			return 0; /* it was never staged */
		s.slot_dir = p->dir;
		s.slot = temp.text;
		s.mover = t->after.id;
		s.in_target = t->is_dir == after;
	}
	int r = swap_run(&s);
	if (r < 0)
		return r;
	const struct op_side *here = after ? &op->after : &op->before;
	const struct op_side *there = after ? &op->before : &op->after;
	r = settle_mode(m->io, p->dir, p->name, here);
	return r < 0 ? r : settle_mode(m->io, s.slot_dir, s.slot, there);
}

/* --- Changing in place -------------------------------------------------------------------- */

static int open_copy(const struct move *m, const struct op *op, bool after, bool data)
{
	struct slot_name slot = slot_name(op);
	int dir = after ? m->new_dir : m->old_dir;
	return data ? fs_open_file(dir, slot.text, O_RDONLY) : fs_open_any(dir, slot.text);
}

static int open_to_write(const struct move *m, int dir, const char *name)
{
	struct stat st;
	int fd = fs_open_file(dir, name, O_WRONLY);
	if (fd != -EACCES)
		return fd;
	auto_close int held = fs_open_any(dir, name);
	int r = held < 0 ? held : fs_stat(held, "", &st);
	if (r >= 0)
		r = fs_set_mode(m->io, held, (st.st_mode & 07777) | 0200);
	return r < 0 ? r : fs_open_file(dir, name, O_WRONLY);
}

static int run_in_place(struct move *m, const struct op *op, const struct place *p, bool after)
{
	struct fs_id id;
	bool data = op->kind == OP_DATA;
	int r = fs_identify(m->io, p->dir, p->name, &id);
	if (r < 0 && r != -ENOENT)
		return r;
	if (r < 0 || !fs_id_same(&id, &op->before.id))
		return -ESTALE;
	auto_close int from = open_copy(m, op, after, data);
	if (from < 0)
		return from;
	auto_close int to = data ? open_to_write(m, p->dir, p->name) : fs_open_any(p->dir, p->name);
	if (to < 0)
		return to;
	if (data)
		r = tree_copy_data(m->io, from, to);
	return r < 0 ? r
		     : tree_copy_metadata(m->io, from, to, after ? op->after.mode : op->before.mode,
					  op->has_owner);
}

/* --- All ---------------------------------------------------------------------------------- */

/* Whether what is at the place is what the plan was made for. */
static int is_as_planned(const struct move *m, const struct op *op, const struct place *p,
			 bool after)
{
	struct stat st;
	int r = fs_stat(p->dir, p->name, &st);
	const struct op_side *expected = after ? &op->before : &op->after;
	if (r < 0 && r != -ENOENT)
		return r;
	if ((r == 0) != expected->exists)
		return -ESTALE;
	if (r == 0 && m->is_first && !op->is_dir &&
	    (st.st_ctim.tv_sec != op->seen.tv_sec || st.st_ctim.tv_nsec != op->seen.tv_nsec))
		return -ESTALE;
	return 0;
}

/* Makes directories that stay, and change, accessible while they do. */
int move_widen(struct move *m)
{
	for (size_t i = 0; i < m->journal->n; i++) {
		const struct op *op = &m->journal->ops[i];
		struct stat st;
		if (!op->is_dir ||
		    ((op->before.mode & 0700) == 0700 && (op->after.mode & 0700) == 0700))
			continue;
		AUTO(place_done) struct place p = {.dir = -1};
		int r = place_find(m, op, &p);
		if (r >= 0)
			r = fs_stat(p.dir, p.name, &st);
		if (r < 0)
			return r;
		if (!S_ISDIR(st.st_mode) || (st.st_mode & 0700) == 0700 || st.st_uid != geteuid())
			continue;
		auto_close int fd = fs_open_any(p.dir, p.name);
		r = fd < 0 ? fd : fs_set_mode(m->io, fd, (st.st_mode & 07777) | 0700);
		if (r < 0)
			return r;
	}
	return 0;
}

static int run_op(struct move *m, size_t i, bool after, bool check, struct place *p)
{
	const struct op *op = &m->journal->ops[i];
	int r = place_find(m, op, p);
	if (r >= 0)
		r = op->kind == OP_SWAP ? run_swap(m, i, p, after) : run_in_place(m, op, p, after);
	/* In recovery what others have put in place meanwhile stays. */
	return r == -ESTALE && !check ? 0 : r;
}

static int fail_op(const struct op *op, int r, struct err *err)
{
	char quoted[QUOTE_SIZE];
	quote_str(*op->path ? op->path : ".", quoted, sizeof(quoted));
	if (r == -ESTALE)
		return err_set(err, ESTALE, "%s was changed by another program just now", quoted);
	return err_sys(err, -r, "%s cannot be changed", quoted);
}

/* All at once, before the first step: one step may change what another one's name leads to. */
static int check_all(const struct move *m, bool after, struct err *err)
{
	AUTO(place_done) struct place p = {.dir = -1};
	for (size_t i = 0; i < m->journal->n; i++) {
		const struct op *op = &m->journal->ops[i];
		int r = place_find(m, op, &p);
		if (r >= 0)
			r = is_as_planned(m, op, &p, after);
		if (r < 0)
			return fail_op(op, r, err);
	}
	return 0;
}

int move_dirs(struct move *m, bool after, struct err *err)
{
	AUTO(place_done) struct place p = {.dir = -1};
	/* The deepest first: a closed one is in the way of those below. */
	for (size_t i = m->journal->n; i > 0; i--) {
		if (!m->journal->ops[i - 1].is_dir)
			continue;
		int r = run_op(m, i - 1, after, false, &p);
		if (r < 0)
			return fail_op(&m->journal->ops[i - 1], r, err);
	}
	return 0;
}

int move_run(struct move *m, bool after, bool check, struct err *err)
{
	AUTO(place_done) struct place p = {.dir = -1};
	int r = check ? check_all(m, after, err) : 0;
	if (r < 0)
		return r;
	r = move_widen(m);
	if (r < 0)
		return err_sys(err, -r, "a directory cannot be made accessible");
	for (size_t i = 0; i < m->journal->n; i++) {
		if (m->journal->ops[i].is_dir)
			continue;
		r = run_op(m, i, after, check, &p);
		if (r < 0)
			return fail_op(&m->journal->ops[i], r, err);
	}
	return move_dirs(m, after, err);
}

/* --- Looking ------------------------------------------------------------------------------ */

/* 1: the object at the place is the one of SIDE, as it was left. */
static int is_side(const struct op *op, const struct place *p, const struct op_side *side,
		   const struct timespec *since, const uint64_t *print)
{
	struct stat st;
	int r = fs_stat(p->dir, p->name, &st);
	if (r < 0 && r != -ENOENT)
		return r;
	if ((r == 0) != side->exists)
		return 0;
	if (r < 0)
		return 1;
	if (st.st_mode != side->mode)
		return 0;
	if (op->is_dir)
		return 1;
	if (S_ISREG(side->mode) && (uint64_t)st.st_size != side->size)
		return 0;
	if (!S_ISDIR(side->mode) &&
	    (st.st_mtim.tv_sec != side->mtime.tv_sec || st.st_mtim.tv_nsec != side->mtime.tv_nsec))
		return 0;
	if (print) {
		uint64_t now = 0;
		r = tree_print(p->dir, p->name, &now);
		return r < 0 ? r : now == *print;
	}
	r = tree_is_changed(p->dir, p->name, since);
	return r < 0 ? r : !r;
}

int move_prints(struct move *m, bool after, uint64_t *ret_prints)
{
	AUTO(place_done) struct place p = {.dir = -1};
	for (size_t i = 0; i < m->journal->n; i++) {
		const struct op *op = &m->journal->ops[i];
		const struct op_side *side = after ? &op->after : &op->before;
		ret_prints[i] = 0;
		if (!side->exists || op->is_dir)
			continue;
		int r = place_find(m, op, &p);
		if (r >= 0)
			r = tree_print(p.dir, p.name, &ret_prints[i]);
		if (r < 0)
			return r;
	}
	return 0;
}

int move_is_intact(struct move *m, bool after, const struct timespec *since, const uint64_t *prints,
		   const char **ret_path)
{
	AUTO(place_done) struct place p = {.dir = -1};
	for (size_t i = 0; i < m->journal->n; i++) {
		const struct op *op = &m->journal->ops[i];
		int r = place_find(m, op, &p);
		if (r == -ENOENT || r == -ENOTDIR || r == -ELOOP)
			r = 0; /* not even its directory */
		else if (r >= 0)
			r = is_side(op, &p, after ? &op->after : &op->before, since,
				    prints ? &prints[i] : NULL);
		if (r <= 0) {
			*ret_path = op->path;
			return r;
		}
	}
	return 1;
}
