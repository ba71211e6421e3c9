/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The TOML 1.0 reader: the document as lines. It is strict: what the specification does not allow
 * is an error, and the first error ends the reading. See toml_internal.h for its parts.
 */
#include <errno.h>

#include "base/toml_internal.h"
#include "base/util.h"
#include "base/value_internal.h"

/* [key] or [[key]] */
static int read_header(struct toml *t)
{
	AUTO(toml_key_done) struct toml_key key = {.n = 0};
	bool is_element = toml_peek(t, 1) == '[';

	t->p += is_element ? 2 : 1;
	toml_skip_blanks(t);
	int r = toml_read_key(t, &key);
	if (r < 0)
		return r;
	if (!toml_starts(t, is_element ? "]]" : "]"))
		return toml_fail_expected(t, is_element ? "]] after the name of an array of tables"
							: "] after the name of a table");
	r = toml_open_table(t, &key, is_element);
	if (r < 0)
		return r;
	t->p += is_element ? 2 : 1;
	return toml_take_line_end(t);
}

/* key = value */
static int read_pair(struct toml *t)
{
	AUTO(toml_key_done) struct toml_key key = {.n = 0};
	AUTO(value_free) struct value *v = NULL;
	struct value *table = NULL;
	int r = toml_read_key(t, &key);

	if (r < 0)
		return r;
	if (toml_peek(t, 0) != '=')
		return toml_fail_expected(t, "= after the key");
	size_t depth = t->table_depth + key.n - 1;
	if (depth > VALUE_DEPTH_MAX)
		return toml_fail_depth(t);
	r = toml_reach_key(t, t->table, &key, &table);
	if (r < 0)
		return r;
	t->p++;
	toml_skip_blanks(t);
	r = toml_read_value(t, depth, &v);
	if (r < 0)
		return r;
	toml_put_key_take(t, table, &key, take_ptr(v));
	return toml_take_line_end(t);
}

static int read_document(struct toml *t)
{
	int r = toml_check_text(t);

	while (r == 0) {
		toml_skip_lines(t);
		if (t->p == t->end)
			return 0;
		r = toml_peek(t, 0) == '[' ? read_header(t) : read_pair(t);
	}
	return r;
}

int toml_parse(const char *text, size_t len, const char *what, struct value **ret_root,
	       struct err *err)
{
	if (len > VALUE_TEXT_MAX)
		return value_fail(err, E2BIG, what, 1, "text is larger than 1 MiB");
	AUTO(value_free) struct value *root = value_new(VALUE_TABLE);
	struct toml t = {.p = text,
			 .end = text + len,
			 .line = 1,
			 .what = what,
			 .err = err,
			 .root = root,
			 .table = root,
			 .table_depth = 1};

	root->line = 1;
	int r = read_document(&t);
	toml_index_done(&t.index);
	if (r < 0)
		return r;
	*ret_root = take_ptr(root);
	return 0;
}
