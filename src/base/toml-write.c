/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The TOML writer. Every string is a basic string in one line with escapes for all that may not be
 * shown, so the text of a policy can be printed to a terminal and read back to the same tree.
 */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/utf8.h"
#include "base/util.h"
#include "base/value.h"
#include "base/value_internal.h"

/* An array in a line that would be longer gets a line for each element. */
#define LINE_WIDTH 100

static void write_char(struct buf *b, const char *s, size_t n, uint32_t cp)
{
	static const char named[] = {['\b'] = 'b', ['\f'] = 'f', ['\n'] = 'n', ['\r'] = 'r',
				     ['\t'] = 't', ['"'] = '"',	 ['\\'] = '\\'};

	if (cp < sizeof(named) && named[cp])
		buf_printf(b, "\\%c", named[cp]);
	else if (!utf8_is_unsafe(cp))
		buf_add(b, s, n);
	else if (cp < 0x10000)
		buf_printf(b, "\\u%04X", (unsigned int)cp);
	else
		buf_printf(b, "\\U%08X", (unsigned int)cp);
}

static void write_string(struct buf *b, const char *s, size_t len)
{
	buf_add_char(b, '"');
	for (size_t i = 0; i < len;) {
		uint32_t cp = 0;
		size_t n = utf8_decode(s + i, len - i, &cp);
		if (n == 0) {
			buf_printf(b, "\\\\x%02x", (unsigned char)s[i++]);
			continue;
		}
		write_char(b, s + i, n, cp);
		i += n;
	}
	buf_add_char(b, '"');
}

static void write_key(struct buf *b, const char *key, size_t len)
{
	static const char bare[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";

	if (len > 0 && strspn(key, bare) == len)
		buf_add(b, key, len);
	else
		write_string(b, key, len);
}

static void write_scalar(struct buf *b, const struct value *v)
{
	switch (v->kind) {
	case VALUE_BOOL:
		buf_add_str(b, v->boolean ? "true" : "false");
		return;
	case VALUE_INT:
		buf_printf(b, "%lld", (long long)v->integer);
		return;
	case VALUE_FLOAT:
		value_add_real(b, v->real);
		return;
	case VALUE_STRING:
		write_string(b, v->str, v->len);
		return;
	case VALUE_OFFSET_DATETIME:
	case VALUE_LOCAL_DATETIME:
	case VALUE_LOCAL_DATE:
	case VALUE_LOCAL_TIME:
		buf_add(b, v->str, v->len);
		return;
	case VALUE_NULL:
	case VALUE_ARRAY:
	case VALUE_TABLE:
	case VALUE_KIND_COUNT:
		break;
	}
	assert(!"a scalar that TOML has");
}

/* --- Inline values ------------------------------------------------------------------------- */

/* A container that is being written, and the way to it. */
struct level {
	const struct value *v;
	size_t next;
	bool is_first; /* nothing written yet */
};

struct levels {
	struct level *v;
	size_t n;
};

static void push(struct levels *levels, const struct value *v)
{
	levels->v = xrealloc(levels->v, levels->n + 1, sizeof(*levels->v));
	levels->v[levels->n++] = (struct level){.v = v, .is_first = true};
}

static void begin_inline(struct buf *b, struct levels *levels, const struct value *v)
{
	if (!value_is_container(v)) {
		write_scalar(b, v);
		return;
	}
	buf_add_char(b, v->kind == VALUE_ARRAY ? '[' : '{');
	push(levels, v);
}

static void step_inline(struct buf *b, struct levels *levels)
{
	struct level *top = &levels->v[levels->n - 1];
	const struct value *v = top->v;
	bool is_table = v->kind == VALUE_TABLE;

	if (top->next == v->n) {
		buf_add_str(b, !is_table ? "]" : top->is_first ? "}" : " }");
		levels->n--;
		return;
	}
	size_t i = top->next++;
	if (v->items[i]->kind == VALUE_NULL)
		return;
	buf_add_str(b, !top->is_first ? ", " : is_table ? " " : "");
	top->is_first = false;
	if (is_table) {
		write_key(b, v->keys[i], v->key_lens[i]);
		buf_add_str(b, " = ");
	}
	begin_inline(b, levels, v->items[i]);
}

static void write_inline(struct buf *b, const struct value *v)
{
	struct levels levels = {0};

	begin_inline(b, &levels, v);
	while (levels.n > 0)
		step_inline(b, &levels);
	free(levels.v);
}

/* One element per line, for an array that is too long for one line. */
static void write_tall_array(struct buf *b, const struct value *v)
{
	buf_add_str(b, "[\n");
	for (size_t i = 0; i < v->n; i++) {
		if (v->items[i]->kind == VALUE_NULL)
			continue;
		buf_add_char(b, '\t');
		write_inline(b, v->items[i]);
		buf_add_str(b, ",\n");
	}
	buf_add_char(b, ']');
}

/* --- Sections ------------------------------------------------------------------------------ */

static void write_pair(struct buf *b, const struct value *table, size_t i)
{
	const struct value *v = table->items[i];
	size_t start = b->len;

	write_key(b, table->keys[i], table->key_lens[i]);
	buf_add_str(b, " = ");
	size_t before_value = b->len;
	write_inline(b, v);
	if (v->kind == VALUE_ARRAY && v->n > 1 && !b->error && b->len - start > LINE_WIDTH) {
		b->len = before_value;
		write_tall_array(b, v);
	}
	buf_add_char(b, '\n');
}

static bool is_plain(const struct value *v)
{
	return v->kind != VALUE_TABLE && v->kind != VALUE_NULL;
}

/* Whether TABLE needs a header of its own: it has plain values, or no table in it implies it. */
static bool needs_header(const struct value *table)
{
	bool has_tables = false;

	for (size_t i = 0; i < table->n; i++) {
		if (is_plain(table->items[i]))
			return true;
		has_tables |= table->items[i]->kind == VALUE_TABLE;
	}
	return !has_tables;
}

/* [a.b.c] for the innermost level; each level's NEXT stands behind the child that was entered. */
static void write_header(struct buf *b, const struct levels *levels)
{
	buf_add_str(b, b->len ? "\n[" : "[");
	for (size_t i = 0; i + 1 < levels->n; i++) {
		const struct level *l = &levels->v[i];
		if (i > 0)
			buf_add_char(b, '.');
		write_key(b, l->v->keys[l->next - 1], l->v->key_lens[l->next - 1]);
	}
	buf_add_str(b, "]\n");
}

/* The header, unless a section further in implies it, and the plain values of the innermost table.
 */
static void write_section(struct buf *b, const struct levels *levels)
{
	const struct value *table = levels->v[levels->n - 1].v;

	if (levels->n > 1 && needs_header(table))
		write_header(b, levels);
	for (size_t i = 0; i < table->n; i++) {
		if (is_plain(table->items[i]))
			write_pair(b, table, i);
	}
}

/* Enters the next table below the innermost one, or leaves that. */
static void step_section(struct buf *b, struct levels *levels)
{
	struct level *top = &levels->v[levels->n - 1];

	while (top->next < top->v->n) {
		const struct value *child = top->v->items[top->next++];
		if (child->kind == VALUE_TABLE) {
			push(levels, child);
			write_section(b, levels);
			return;
		}
	}
	levels->n--;
}

char *toml_write(const struct value *v)
{
	struct buf b = BUF_INIT(VALUE_WRITE_MAX);
	struct levels levels = {0};

	assert(v->kind == VALUE_TABLE);
	push(&levels, v);
	write_section(&b, &levels);
	while (levels.n > 0)
		step_section(&b, &levels);
	free(levels.v);
	return value_take_text(&b);
}
