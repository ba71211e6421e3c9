/* SPDX-License-Identifier: Apache-2.0 */
/* The engine's other half: what lies beside far targets, and making things durable. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/util.h"
#include "fs/file.h"
#include "fs/move_internal.h"
#include "fs/tree.h"

/* Beyond so many ops one sync of the file system is cheaper than one for each. */
enum { SINGLE_SYNCS = 4 };

static const char temps_name[] = "temps";

int move_open(struct move *m, struct err *err)
{
	m->new_dir = fs_open_dir(m->set, "new", O_RDONLY);
	m->old_dir = fs_open_dir(m->set, "old", O_RDONLY);
	if (m->new_dir < 0 || m->old_dir < 0)
		return err_sys(err, m->new_dir < 0 ? -m->new_dir : -m->old_dir,
			       "the journal of change set %s is incomplete", m->id);
	return 0;
}

void move_done(struct move *m)
{
	m->new_dir = util_close(m->new_dir);
	m->old_dir = util_close(m->old_dir);
	journal_done(&m->temps);
}

static int stage_one(struct move *m, size_t i, bool after, struct place *p)
{
	const struct op *op = &m->journal->ops[i];
	const struct op_side *wanted = after ? &op->after : &op->before;
	struct slot_name slot = slot_name(op);
	struct slot_name temp = temp_name(m, op);
	struct op t = {.kind = OP_SWAP, .layer = op->layer, .slot = (uint32_t)i};
	int r = place_find(m, op, p);
	if (r < 0)
		return r;
	t.is_new = wanted->exists;
	t.is_dir = wanted->exists ? after : !after;
	t.after.exists = true;
	if (wanted->exists) {
		struct tree_copy how = {.io = m->io};
		r = tree_remove(m->io, p->dir, temp.text);
		if (r >= 0)
			r = tree_copy(&how, after ? m->new_dir : m->old_dir, slot.text, p->dir,
				      temp.text);
	}
	if (r >= 0)
		r = fs_identify(m->io, p->dir, wanted->exists ? temp.text : p->name, &t.after.id);
	if (r < 0)
		return r;
	struct op *added = journal_add(&m->temps);
	*added = t;
	added->path = xstrdup(op->path);
	return 0;
}

/* The file system of the first far op's directory, or the one of the set. */
static int sync_far(struct move *m)
{
	for (size_t layer = 0; layer < m->n_roots; layer++) {
		bool has_far = false;
		for (size_t i = 0; i < m->journal->n && !has_far; i++)
			has_far = m->journal->ops[i].layer == layer && m->journal->ops[i].is_far;
		if (!has_far)
			continue;
		auto_close int fd = fs_open_dir(m->roots[layer], "", O_RDONLY);
		int r = fd < 0 ? fd : fs_sync_all(m->io, fd);
		if (r < 0)
			return r;
	}
	return 0;
}

static int write_temps(struct move *m)
{
	AUTO(buf_done) struct buf text = BUF_INIT(JOURNAL_MAX);
	int r = journal_encode(&m->temps, &text);
	return r < 0 ? r : file_write(m->io, m->set, temps_name, text.data, text.len);
}

bool move_has_far(const struct move *m)
{
	for (size_t i = 0; i < m->journal->n; i++)
		if (m->journal->ops[i].is_far && m->journal->ops[i].kind == OP_SWAP)
			return true;
	return false;
}

bool move_has_temps(const struct move *m)
{
	struct stat st;
	return fs_stat(m->set, temps_name, &st) == 0;
}

int move_stage(struct move *m, bool after, struct err *err)
{
	AUTO(place_done) struct place p = {.dir = -1};
	if (!move_has_far(m))
		return 0;
	journal_done(&m->temps);
	/* An empty one says already that something may lie beside the targets. */
	int r = write_temps(m);
	if (r >= 0)
		r = move_widen(m);
	for (size_t i = 0; r >= 0 && i < m->journal->n; i++) {
		const struct op *op = &m->journal->ops[i];
		if (!op->is_far || op->kind != OP_SWAP)
			continue;
		r = stage_one(m, i, after, &p);
		if (r < 0) {
			char quoted[QUOTE_SIZE];
			return err_sys(err, -r, "%s cannot be prepared beside its place",
				       quote_str(op->path, quoted, sizeof(quoted)));
		}
	}
	if (r >= 0)
		r = sync_far(m);
	if (r >= 0)
		r = write_temps(m);
	return r < 0 ? err_sys(err, -r, "the journal cannot be written") : 0;
}

int move_load(struct move *m)
{
	auto_free char *data = NULL;
	size_t len = 0;
	int r = file_read(m->set, temps_name, JOURNAL_MAX, &data, &len);
	if (r < 0)
		return r == -ENOENT ? 0 : r;
	return journal_decode(data, len, &m->temps);
}

int move_clean(struct move *m, bool after)
{
	AUTO(place_done) struct place p = {.dir = -1};
	journal_done(&m->temps);
	if (!move_has_temps(m))
		return 0;
	int worst = move_widen(m);
	for (size_t i = 0; worst >= 0 && i < m->journal->n; i++) {
		const struct op *op = &m->journal->ops[i];
		if (!op->is_far || op->kind != OP_SWAP)
			continue;
		struct slot_name temp = temp_name(m, op);
		int r = place_find(m, op, &p);
		if (r >= 0)
			r = tree_remove(m->io, p.dir, temp.text);
		if (r < 0 && r != -ENOENT)
			worst = r;
	}
	if (worst >= 0)
		worst = move_dirs(m, after, NULL);
	if (worst < 0)
		return worst;
	int r = fs_unlink(m->io, m->set, temps_name, 0);
	return r == -ENOENT ? 0 : r;
}

static int sync_place(struct move *m, const struct op *op, const struct place *p)
{
	auto_close int dir = fs_open_dir(p->dir, "", O_RDONLY);
	int r = dir < 0 ? dir : fs_sync(m->io, dir);
	if (r < 0 || op->kind == OP_SWAP || !S_ISREG(op->before.mode))
		return r;
	auto_close int fd = fs_open_file(p->dir, p->name, O_RDONLY);
	return fd < 0 ? fd : fs_sync(m->io, fd);
}

int move_sync(struct move *m)
{
	AUTO(place_done) struct place p = {.dir = -1};
	int r = m->journal->n > SINGLE_SYNCS ? -EAGAIN : 0;
	for (size_t i = 0; r >= 0 && i < m->journal->n; i++) {
		const struct op *op = &m->journal->ops[i];
		r = op->is_dir || op->is_far ? -EAGAIN : place_find(m, op, &p);
		if (r >= 0)
			r = sync_place(m, op, &p);
	}
	if (r >= 0)
		return fs_sync(m->io, m->new_dir);
	/* Too many, or one that may not be opened. */
	r = fs_sync_all(m->io, m->set);
	return r < 0 ? r : sync_far(m);
}
