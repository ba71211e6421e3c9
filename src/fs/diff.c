/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The difference of two texts by lines: Myers' search for a shortest edit script from both ends,
 * in linear space, with a list of boxes instead of recursion. A box whose search gets too dear is
 * taken as replaced as a whole: right, and not the shortest.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/util.h"
#include "fs/format.h"

enum { LINES_MAX = 1000000, COST_MAX = 1000 };

/* Lines that a hunk shows before and after its changes. */
#define CONTEXT ((size_t)3)

struct line {
	const char *text;
	size_t len; /* with its newline, if it has one */
	uint64_t hash;
};

struct text {
	struct line *lines;
	size_t n;
	bool *changed;
};

struct box {
	size_t a0, a1, b0, b1;
};

struct diff {
	struct text a;
	struct text b;
	struct box *boxes;
	size_t n_boxes;
	size_t room;
	long *forward; /* by diagonal, offset by CENTRE */
	long *backward;
	long centre;
};

static void split(const char *text, size_t len, struct text *out)
{
	size_t room = 0;
	while (len) {
		const char *end = memchr(text, '\n', len);
		size_t n = end ? (size_t)(end - text) + 1 : len;
		if (out->n == room) {
			room = room ? room * 2 : 64;
			out->lines = xrealloc(out->lines, room, sizeof(*out->lines));
		}
		uint64_t hash = 14695981039346656037u;
		for (size_t i = 0; i < n; i++)
			hash = (hash ^ (unsigned char)text[i]) * 1099511628211u;
		out->lines[out->n++] = (struct line){.text = text, .len = n, .hash = hash};
		text += n;
		len -= n;
	}
	out->changed = xcalloc(out->n + 1, sizeof(bool));
}

static bool same(const struct diff *d, size_t i, size_t k)
{
	const struct line *a = &d->a.lines[i];
	const struct line *b = &d->b.lines[k];
	return a->hash == b->hash && a->len == b->len && memcmp(a->text, b->text, a->len) == 0;
}

static void push(struct diff *d, struct box box)
{
	if (d->n_boxes == d->room) {
		d->room = d->room ? d->room * 2 : 64;
		d->boxes = xrealloc(d->boxes, d->room, sizeof(*d->boxes));
	}
	d->boxes[d->n_boxes++] = box;
}

/* One more step forward on diagonal K; where it ends. */
static long step_forward(const struct diff *d, const struct box *x, long k, long cost)
{
	const long *v = d->forward + d->centre;
	long n = (long)(x->a1 - x->a0);
	long m = (long)(x->b1 - x->b0);
	long i = k == -cost || (k != cost && v[k - 1] < v[k + 1]) ? v[k + 1] : v[k - 1] + 1;
	while (i < n && i - k < m && same(d, x->a0 + (size_t)i, x->b0 + (size_t)(i - k)))
		i++;
	return i;
}

static long step_backward(const struct diff *d, const struct box *x, long k, long cost)
{
	const long *v = d->backward + d->centre;
	long n = (long)(x->a1 - x->a0);
	long m = (long)(x->b1 - x->b0);
	long i = k == -cost || (k != cost && v[k - 1] < v[k + 1]) ? v[k + 1] : v[k - 1] + 1;
	while (i < n && i - k < m && same(d, x->a1 - 1 - (size_t)i, x->b1 - 1 - (size_t)(i - k)))
		i++;
	return i;
}

/* Finds a point that a shortest script passes; false if that costs too much. */
static bool find_middle(struct diff *d, const struct box *x, size_t *ret_a, size_t *ret_b)
{
	long n = (long)(x->a1 - x->a0);
	long m = (long)(x->b1 - x->b0);
	long delta = n - m;
	long *forward = d->forward + d->centre;
	long *backward = d->backward + d->centre;
	forward[1] = backward[1] = 0;
	forward[-1] = backward[-1] = -1;
	for (long cost = 0; cost <= COST_MAX && cost <= (n + m + 1) / 2; cost++) {
		for (long k = -cost; k <= cost; k += 2) {
			long i = step_forward(d, x, k, cost);
			forward[k] = i;
			long other = delta - k;
			if (!(delta & 1) || other < -(cost - 1) || other > cost - 1)
				continue;
			if (i + backward[other] >= n && i <= n && i - k <= m) {
				*ret_a = x->a0 + (size_t)i;
				*ret_b = x->b0 + (size_t)(i - k);
				return i >= 0 && i - k >= 0;
			}
		}
		for (long k = -cost; k <= cost; k += 2) {
			long i = step_backward(d, x, k, cost);
			backward[k] = i;
			long other = delta - k;
			if ((delta & 1) || other < -cost || other > cost)
				continue;
			if (i + forward[other] >= n && i <= n && i - k <= m) {
				*ret_a = x->a1 - (size_t)i;
				*ret_b = x->b1 - (size_t)(i - k);
				return i >= 0 && i - k >= 0;
			}
		}
	}
	return false;
}

static void mark(bool *changed, size_t from, size_t to)
{
	for (size_t i = from; i < to; i++)
		changed[i] = true;
}

static void solve(struct diff *d, struct box x)
{
	while (x.a0 < x.a1 && x.b0 < x.b1 && same(d, x.a0, x.b0)) {
		x.a0++;
		x.b0++;
	}
	while (x.a0 < x.a1 && x.b0 < x.b1 && same(d, x.a1 - 1, x.b1 - 1)) {
		x.a1--;
		x.b1--;
	}
	size_t a = 0;
	size_t b = 0;
	bool split_it = x.a0 < x.a1 && x.b0 < x.b1 && find_middle(d, &x, &a, &b) &&
			!(a == x.a0 && b == x.b0) && !(a == x.a1 && b == x.b1);
	if (!split_it) {
		mark(d->a.changed, x.a0, x.a1);
		mark(d->b.changed, x.b0, x.b1);
		return;
	}
	push(d, (struct box){x.a0, a, x.b0, b});
	push(d, (struct box){a, x.a1, b, x.b1});
}

static int diff_run(struct diff *d, const char *old_text, size_t old_len, const char *new_text,
		    size_t new_len)
{
	split(old_text, old_len, &d->a);
	split(new_text, new_len, &d->b);
	if (d->a.n > LINES_MAX || d->b.n > LINES_MAX)
		return -E2BIG;
	d->centre = COST_MAX + 2;
	d->forward = xcalloc((size_t)(2 * d->centre + 1), sizeof(long));
	d->backward = xcalloc((size_t)(2 * d->centre + 1), sizeof(long));
	push(d, (struct box){0, d->a.n, 0, d->b.n});
	while (d->n_boxes)
		solve(d, d->boxes[--d->n_boxes]);
	return 0;
}

static void diff_done_cleanup(struct diff *d)
{
	free(d->a.lines);
	free(d->a.changed);
	free(d->b.lines);
	free(d->b.changed);
	free(d->boxes);
	free(d->forward);
	free(d->backward);
}

static void add_line(struct buf *out, char sign, const struct line *line)
{
	buf_add_char(out, sign);
	buf_add(out, line->text, line->len);
	if (line->text[line->len - 1] != '\n')
		buf_add_str(out, "\n\\ No newline at end of file\n");
}

static void add_range(struct buf *out, char sign, size_t start, size_t n)
{
	/* An empty range names the line before it. */
	buf_printf(out, "%c%zu", sign, n ? start + 1 : start);
	if (n != 1)
		buf_printf(out, ",%zu", n);
}

/* From I, K on: where the run of changes ends. */
static void skip_changes(const struct diff *d, size_t *i, size_t *k)
{
	while (*i < d->a.n && d->a.changed[*i])
		++*i;
	while (*k < d->b.n && d->b.changed[*k])
		++*k;
}

static void add_body(const struct diff *d, struct buf *out, size_t i, size_t k, size_t end_i,
		     size_t end_k)
{
	while (i < end_i || k < end_k) {
		if (i < end_i && d->a.changed[i]) {
			add_line(out, '-', &d->a.lines[i++]);
		} else if (k < end_k && d->b.changed[k]) {
			add_line(out, '+', &d->b.lines[k++]);
		} else {
			add_line(out, ' ', &d->a.lines[i]);
			i++;
			k++;
		}
	}
}

/* The hunk whose first change is at I, K; moves both behind its last one. */
static void add_hunk(const struct diff *d, struct buf *out, size_t *i, size_t *k)
{
	size_t before = *i < CONTEXT ? *i : CONTEXT;
	size_t start_i = *i - before;
	size_t start_k = *k - before;
	size_t end = 0; /* lines alike after the last change */
	for (;;) {
		skip_changes(d, i, k);
		size_t alike = 0;
		while (*i + alike < d->a.n && *k + alike < d->b.n && !d->a.changed[*i + alike] &&
		       !d->b.changed[*k + alike] && alike <= 2 * CONTEXT)
			alike++;
		bool at_end = *i + alike >= d->a.n && *k + alike >= d->b.n;
		end = alike < CONTEXT ? alike : CONTEXT;
		if (at_end || alike > 2 * CONTEXT)
			break;
		*i += alike;
		*k += alike;
	}
	size_t end_i = *i + end;
	size_t end_k = *k + end;
	buf_add_str(out, "@@ ");
	add_range(out, '-', start_i, end_i - start_i);
	buf_add_char(out, ' ');
	add_range(out, '+', start_k, end_k - start_k);
	buf_add_str(out, " @@\n");
	add_body(d, out, start_i, start_k, end_i, end_k);
}

int diff_unified(const char *old_text, size_t old_len, const char *new_text, size_t new_len,
		 struct buf *out)
{
	AUTO(diff_done) struct diff d = {0};
	int r = diff_run(&d, old_text, old_len, new_text, new_len);
	if (r < 0)
		return r;
	size_t i = 0;
	size_t k = 0;
	while (i < d.a.n || k < d.b.n) {
		bool change = (i < d.a.n && d.a.changed[i]) || (k < d.b.n && d.b.changed[k]);
		if (change) {
			add_hunk(&d, out, &i, &k);
		} else {
			i++;
			k++;
		}
	}
	return out->error;
}

int diff_count(const char *old_text, size_t old_len, const char *new_text, size_t new_len,
	       size_t *ret_added, size_t *ret_removed)
{
	AUTO(diff_done) struct diff d = {0};
	int r = diff_run(&d, old_text, old_len, new_text, new_len);
	size_t added = 0;
	size_t removed = 0;
	if (r < 0)
		return r;
	for (size_t i = 0; i < d.a.n; i++)
		removed += d.a.changed[i];
	for (size_t i = 0; i < d.b.n; i++)
		added += d.b.changed[i];
	*ret_added = added;
	*ret_removed = removed;
	return 0;
}
