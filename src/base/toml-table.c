/* SPDX-License-Identifier: Apache-2.0 */
/*
 * TOML: what may be defined where. The rule behind all of them: a table or key is defined once.
 *
 * A table that a header passes through ([a.b] passes a) is not yet defined by that and may get its
 * own header later; one that dotted keys made is defined by them and gets no header; what was
 * written as a value ({…} or […]) is complete and is never added to.
 */
#include <assert.h>
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/toml_internal.h"
#include "base/util.h"
#include "base/value_internal.h"

/* --- The index of all keys ----------------------------------------------------------------- */

static size_t hash_key(const struct value *table, const char *key, size_t len)
{
	uint64_t h = (uint64_t)(uintptr_t)table * 0x9e3779b97f4a7c15ULL;

	for (size_t i = 0; i < len; i++) {
		h = (h ^ (unsigned char)key[i]) * 0x100000001b3ULL;
		h ^= h >> 29;
	}
	return (size_t)(h ^ h >> 32);
}

/* The row of the key, or the free one where it would go. */
static struct toml_row *find_row(const struct toml_index *index, const struct value *table,
				 const char *key, size_t len)
{
	size_t mask = index->size - 1;

	for (size_t i = hash_key(table, key, len) & mask;; i = (i + 1) & mask) {
		struct toml_row *row = &index->rows[i];
		if (!row->table ||
		    (row->table == table && row->len == len && memcmp(row->key, key, len) == 0))
			return row;
	}
}

static void grow_index(struct toml_index *index)
{
	struct toml_index larger = {.size = index->size ? index->size * 2 : 64};

	larger.rows = xcalloc(larger.size, sizeof(*larger.rows));
	larger.used = index->used;
	for (size_t i = 0; i < index->size; i++) {
		const struct toml_row *row = &index->rows[i];
		if (row->table)
			*find_row(&larger, row->table, row->key, row->len) = *row;
	}
	free(index->rows);
	*index = larger;
}

void toml_index_done(struct toml_index *index)
{
	free(index->rows);
	*index = (struct toml_index){0};
}

static struct value *lookup(const struct toml *t, const struct value *table,
			    const struct toml_part *part)
{
	if (t->index.size == 0)
		return NULL;
	return find_row(&t->index, table, part->s, part->len)->child;
}

/* Adds CHILD under KEY, which the table owns from now on. */
static void add_child_take(struct toml *t, struct value *table, char *key, size_t len,
			   struct value *child)
{
	if (t->index.used * 4 >= t->index.size * 3)
		grow_index(&t->index);
	value_table_append_take(table, key, len, child);
	*find_row(&t->index, table, key, len) =
		(struct toml_row){.table = table, .key = key, .len = len, .child = child};
	t->index.used++;
}

static struct value *new_table(const struct toml *t, unsigned int flags)
{
	struct value *v = value_new(VALUE_TABLE);
	v->line = t->line;
	v->toml_flags = (uint8_t)flags;
	return v;
}

static char *copy_part(const struct toml_part *part)
{
	char *s = xzalloc(part->len + 1);
	memcpy(s, part->s, part->len);
	return s;
}

static int fail_defined(struct toml *t, const struct toml_key *key, size_t n,
			const struct value *before)
{
	char quoted[QUOTE_SIZE];
	return toml_fail(t, "%s is already defined in line %d",
			 toml_key_quote(key, n, quoted, sizeof(quoted)), before->line);
}

/* --- Headers ------------------------------------------------------------------------------- */

/* The table that a header enters at V, which stands under the first N parts of KEY. */
static int enter(struct toml *t, const struct toml_key *key, size_t n, struct value *v,
		 struct value **ret_table)
{
	if (!value_is_container(v) || (v->toml_flags & TOML_INLINE))
		return fail_defined(t, key, n, v);
	*ret_table = v->kind == VALUE_ARRAY ? v->items[v->n - 1] : v;
	return 0;
}

/* Walks to the table that holds the last part of a header's key. */
static int walk_header(struct toml *t, const struct toml_key *key, struct value **ret_parent)
{
	struct value *table = t->root;

	for (size_t i = 0; i + 1 < key->n; i++) {
		const struct toml_part *part = &key->parts[i];
		struct value *child = lookup(t, table, part);
		if (!child) {
			child = new_table(t, 0);
			add_child_take(t, table, copy_part(part), part->len, child);
		}
		int r = enter(t, key, i + 1, child, &table);
		if (r < 0)
			return r;
	}
	*ret_parent = table;
	return 0;
}

static int open_plain(struct toml *t, const struct toml_key *key, struct value *parent)
{
	const struct toml_part *last = &key->parts[key->n - 1];
	struct value *v = lookup(t, parent, last);

	if (!v) {
		v = new_table(t, TOML_HEADER);
		add_child_take(t, parent, copy_part(last), last->len, v);
	} else if (v->kind != VALUE_TABLE || v->toml_flags != 0) {
		return fail_defined(t, key, key->n, v);
	}
	v->toml_flags = TOML_HEADER;
	v->line = t->line;
	t->table = v;
	return 0;
}

static int open_element(struct toml *t, const struct toml_key *key, struct value *parent)
{
	const struct toml_part *last = &key->parts[key->n - 1];
	struct value *v = lookup(t, parent, last);

	if (!v) {
		v = value_new(VALUE_ARRAY);
		v->line = t->line;
		v->toml_flags = TOML_TABLES;
		add_child_take(t, parent, copy_part(last), last->len, v);
	} else if (v->toml_flags != TOML_TABLES) {
		return fail_defined(t, key, key->n, v);
	}
	struct value *element = new_table(t, TOML_HEADER);
	value_array_add_take(v, element);
	t->table = element;
	return 0;
}

/*
 * An array of tables takes a level of its own, so the depth is counted on the way down, with every
 * array that a part names.
 */
static int check_header_depth(struct toml *t, const struct toml_key *key, bool is_element)
{
	size_t depth = 1 + key->n + is_element;
	struct value *table = t->root;

	for (size_t i = 0; table && i + 1 < key->n; i++) {
		struct value *child = lookup(t, table, &key->parts[i]);
		table = child;
		if (child && child->kind == VALUE_ARRAY) {
			depth++;
			table = child->n > 0 ? child->items[child->n - 1] : NULL;
		}
	}
	if (depth > VALUE_DEPTH_MAX)
		return toml_fail_depth(t);
	t->table_depth = depth;
	return 0;
}

int toml_open_table(struct toml *t, const struct toml_key *key, bool is_element)
{
	struct value *parent = NULL;
	int r = check_header_depth(t, key, is_element);

	if (r < 0)
		return r;
	r = walk_header(t, key, &parent);
	if (r < 0)
		return r;
	return is_element ? open_element(t, key, parent) : open_plain(t, key, parent);
}

/* --- Keys ---------------------------------------------------------------------------------- */

int toml_reach_key(struct toml *t, struct value *table, const struct toml_key *key,
		   struct value **ret_table)
{
	for (size_t i = 0; i + 1 < key->n; i++) {
		const struct toml_part *part = &key->parts[i];
		struct value *child = lookup(t, table, part);
		if (!child) {
			child = new_table(t, TOML_DOTTED);
			add_child_take(t, table, copy_part(part), part->len, child);
		} else if (child->kind != VALUE_TABLE ||
			   (child->toml_flags & (TOML_HEADER | TOML_INLINE))) {
			return fail_defined(t, key, i + 1, child);
		}
		child->toml_flags |= TOML_DOTTED;
		table = child;
	}
	struct value *taken = lookup(t, table, &key->parts[key->n - 1]);
	if (taken)
		return fail_defined(t, key, key->n, taken);
	*ret_table = table;
	return 0;
}

void toml_put_key_take(struct toml *t, struct value *table, struct toml_key *key, struct value *v)
{
	struct toml_part *last = &key->parts[key->n - 1];

	add_child_take(t, table, take_ptr(last->s), last->len, v);
}
