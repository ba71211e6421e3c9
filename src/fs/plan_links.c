/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hard links across the two layers. A new name of a file that stays below is, in the upper layer, a
 * name of that file's copy; in the tree it has to become one of the file itself.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "fs/plan.h"
#include "fs/plan_internal.h"
#include "fs/tree.h"

struct group {
	struct change **nodes;
	size_t n;
	size_t room;
};

static int by_inode(const void *a, const void *b)
{
	const struct change *x = *(struct change *const *)a;
	const struct change *y = *(struct change *const *)b;
	return x->after.ino < y->after.ino ? -1 : x->after.ino > y->after.ino;
}

static void collect(struct changes *changes, struct group *g)
{
	for (struct change *c = changes->root; c; c = change_next(c)) {
		if (c->after.kind != NODE_FILE || c->after.nlink < 2)
			continue;
		if (g->n == g->room) {
			g->room = g->room ? g->room * 2 : 64;
			g->nodes = xrealloc(g->nodes, g->room, sizeof(struct change *));
		}
		g->nodes[g->n++] = c;
	}
	if (g->n)
		qsort(g->nodes, g->n, sizeof(struct change *), by_inode);
}

/* The op that brings C about; NULL: none does. */
static struct op *op_of(const struct plan *plan, const struct change *c)
{
	while (c && !c->op_number)
		c = c->parent;
	return c ? &plan->journal->ops[c->op_number - 1] : NULL;
}

static bool stays_below(const struct plan *plan, const struct layer *layer, const struct change *c)
{
	if (c->before.kind != NODE_FILE || (layer->uid != 0 && c->before.uid != layer->uid))
		return false;
	const struct op *op = c->op_number ? op_of(plan, c) : NULL;
	if (op)
		return op->kind != OP_SWAP && !op->is_far;
	return c->kind == CHANGE_NONE;
}

/* Where the staged object of C is: a directory and a name in it. */
static int open_staged(const struct plan *plan, const struct change *c, const struct op *op,
		       char *ret_name, size_t size)
{
	AUTO(buf_done) struct buf path = BUF_INIT(CHANGES_PATH_MAX);
	AUTO(buf_done) struct buf staged = BUF_INIT(CHANGES_PATH_MAX);
	if (c->op_number) {
		snprintf(ret_name, size, "%u", op->slot);
		return fs_open_dir(plan->new_dir, "", O_PATH);
	}
	snprintf(ret_name, size, "%s", c->name);
	int r = change_path(c->parent, &path);
	buf_printf(&staged, "%u%s", op->slot, buf_text(&path) + strlen(op->path));
	return r < 0 || staged.error ? -E2BIG
				     : fs_open_dir(plan->new_dir, buf_text(&staged), O_PATH);
}

static int refresh(const struct plan *plan, struct op *op, int dir, const char *name)
{
	struct stat st;
	int r = fs_stat(dir, name, &st);
	if (r < 0)
		return r;
	op->after.mode = st.st_mode;
	op->after.size = (uint64_t)st.st_size;
	op->after.mtime = st.st_mtim;
	return fs_identify(plan->io, dir, name, &op->after.id);
}

static int link_one(struct plan *plan, struct layer *layer, struct change *c,
		    const struct change *partner)
{
	AUTO(buf_done) struct buf path = BUF_INIT(CHANGES_PATH_MAX);
	struct op *op = op_of(plan, c);
	char name[256];
	struct stat st;
	if (!op || op->kind != OP_SWAP || op->is_far || !c->is_chosen || c->kind == CHANGE_NONE)
		return 0;
	int r = change_path(partner->parent, &path);
	auto_close int low = r < 0 ? r : fs_open_dir(layer->lower, buf_text(&path), O_PATH);
	auto_close int dir = open_staged(plan, c, op, name, sizeof(name));
	if (low < 0 || dir < 0)
		return low < 0 ? low : dir;
	r = tree_remove(plan->io, dir, name);
	if (r >= 0)
		r = fs_hard_link(plan->io, low, partner->name, dir, name);
	if (r >= 0 && c->op_number)
		r = refresh(plan, op, dir, name);
	struct op *other = r >= 0 && partner->op_number ? op_of(plan, partner) : NULL;
	if (!other)
		return r;
	/* The new name has changed the partner's change time. */
	r = fs_stat(low, partner->name, &st);
	if (r >= 0)
		other->seen = st.st_ctim;
	return r;
}

int plan_links(struct plan *plan, struct layer *layer, struct changes *changes)
{
	struct group g = {0};
	int r = 0;
	collect(changes, &g);
	for (size_t i = 0; r >= 0 && i < g.n;) {
		size_t end = i;
		const struct change *partner = NULL;
		for (; end < g.n && g.nodes[end]->after.ino == g.nodes[i]->after.ino; end++)
			if (!partner && stays_below(plan, layer, g.nodes[end]))
				partner = g.nodes[end];
		for (; i < end; i++)
			if (r >= 0 && partner && g.nodes[i] != partner)
				r = link_one(plan, layer, g.nodes[i], partner);
	}
	free(g.nodes);
	return r;
}
