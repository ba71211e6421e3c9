/* SPDX-License-Identifier: Apache-2.0 */
/*
 * TOML: values with their nesting. A stack of open arrays and inline tables stands in place of
 * recursion; what is open belongs to its parent from the start, so a failure frees one root.
 */
#include <assert.h>
#include <errno.h>
#include <string.h>

#include "base/toml_internal.h"
#include "base/util.h"
#include "base/value_internal.h"

/* The arrays and inline tables that are open, innermost last. */
struct nest {
	struct value *open[VALUE_DEPTH_MAX];
	size_t n;
	size_t depth; /* of the innermost open one; of the key where none is open */
	size_t outer[VALUE_DEPTH_MAX]; /* DEPTH as it was before each was opened */
};

static int read_string_value(struct toml *t, struct value **ret_v)
{
	AUTO(buf_done) struct buf b = BUF_INIT(VALUE_TEXT_MAX);
	int r = toml_read_string(t, &b);

	if (r < 0)
		return r;
	size_t len = b.len;
	*ret_v = value_new_text_take(VALUE_STRING, buf_take(&b), len);
	return 0;
}

/* Reads a scalar, or opens an array or inline table. */
static int begin_value(struct toml *t, struct value **ret_v)
{
	int line = t->line;
	char c = toml_peek(t, 0);
	int r = 0;

	if (c == '[' || c == '{') {
		*ret_v = value_new(c == '[' ? VALUE_ARRAY : VALUE_TABLE);
		t->p++;
	} else if (c == '"' || c == '\'') {
		r = read_string_value(t, ret_v);
	} else {
		r = toml_read_scalar(t, ret_v);
	}
	if (r == 0)
		(*ret_v)->line = line;
	return r;
}

/* Makes V the innermost open one; it lies DEPTH deep. A failure leaves it to its parent. */
static int push(struct toml *t, struct nest *nest, struct value *v, size_t depth)
{
	if (depth > VALUE_DEPTH_MAX)
		return toml_fail_depth(t);
	assert(nest->n < VALUE_DEPTH_MAX);
	nest->outer[nest->n] = nest->depth;
	nest->open[nest->n++] = v;
	nest->depth = depth;
	return 0;
}

static void pop(struct nest *nest)
{
	struct value *v = nest->open[--nest->n];

	v->toml_flags = TOML_INLINE;
	nest->depth = nest->outer[nest->n];
}

/* The next element of the innermost array, or its end. */
static int array_step(struct toml *t, struct nest *nest, struct value *array)
{
	struct value *v = NULL;

	toml_skip_lines(t);
	if (array->n > 0 && toml_peek(t, 0) != ']') {
		if (toml_peek(t, 0) != ',')
			return toml_fail_expected(t, "a comma or ]");
		t->p++;
		toml_skip_lines(t);
	}
	if (toml_peek(t, 0) == ']') {
		t->p++;
		pop(nest);
		return 0;
	}
	int r = begin_value(t, &v);
	if (r < 0)
		return r;
	value_array_add_take(array, v);
	return value_is_container(v) ? push(t, nest, v, nest->depth + 1) : 0;
}

/* Reads KEY = and the value (or what opens it) into TABLE, an inline table. */
static int read_pair(struct toml *t, struct nest *nest, struct value *table)
{
	AUTO(toml_key_done) struct toml_key key = {.n = 0};
	struct value *holder = NULL;
	struct value *v = NULL;
	int r = toml_read_key(t, &key);

	if (r < 0)
		return r;
	if (toml_peek(t, 0) != '=')
		return toml_fail_expected(t, "= after the key");
	if (nest->depth + key.n - 1 > VALUE_DEPTH_MAX)
		return toml_fail_depth(t);
	r = toml_reach_key(t, table, &key, &holder);
	if (r < 0)
		return r;
	t->p++;
	toml_skip_blanks(t);
	r = begin_value(t, &v);
	if (r < 0)
		return r;
	toml_put_key_take(t, holder, &key, v);
	return value_is_container(v) ? push(t, nest, v, nest->depth + key.n) : 0;
}

/* The next pair of the innermost inline table, or its end. It must stay on one line. */
static int table_step(struct toml *t, struct nest *nest, struct value *table)
{
	toml_skip_blanks(t);
	if (toml_peek(t, 0) == '}') {
		t->p++;
		pop(nest);
		return 0;
	}
	if (table->n > 0) {
		if (toml_peek(t, 0) != ',')
			return toml_fail_expected(t, "a comma or }, in the same line");
		t->p++;
		toml_skip_blanks(t);
	}
	return read_pair(t, nest, table);
}

static int step(struct toml *t, struct nest *nest)
{
	struct value *top = nest->open[nest->n - 1];

	return top->kind == VALUE_ARRAY ? array_step(t, nest, top) : table_step(t, nest, top);
}

int toml_read_value(struct toml *t, size_t depth, struct value **ret_v)
{
	struct nest nest = {.depth = depth};
	AUTO(value_free) struct value *root = NULL;
	int r = begin_value(t, &root);

	if (r < 0)
		return r;
	if (value_is_container(root))
		r = push(t, &nest, root, depth + 1);
	while (r == 0 && nest.n > 0)
		r = step(t, &nest);
	if (r < 0)
		return r;
	*ret_v = take_ptr(root);
	return 0;
}
