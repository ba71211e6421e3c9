/* SPDX-License-Identifier: Apache-2.0 */
/*
 * JSON in and out. jansson judges the text (strictly, with duplicate keys refused); since it keeps
 * no line numbers, a second walk over the text, which is then known to be well-formed, gives each
 * value its line. Nothing here recurses, and jansson only sees text whose nesting was checked.
 */
#include <assert.h>
#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/util.h"
#include "base/value.h"
#include "base/value_internal.h"

/* Checks the nesting of text that need not be well-formed; only brackets outside strings count. */
static int check_depth(const char *text, size_t len, const char *what, struct err *err)
{
	int line = 1;
	size_t depth = 0;
	bool in_string = false;

	for (size_t i = 0; i < len; i++) {
		char c = text[i];
		if (c == '\n') {
			line++;
		} else if (in_string) {
			i += c == '\\';
			in_string = c != '"';
		} else if (c == '"') {
			in_string = true;
		} else if (c == '[' || c == '{') {
			if (++depth > VALUE_DEPTH_MAX)
				return value_fail(err, E2BIG, what, line,
						  "nesting is deeper than %d levels",
						  VALUE_DEPTH_MAX);
		} else if ((c == ']' || c == '}') && depth > 0) {
			depth--;
		}
	}
	return 0;
}

/* --- Lines --------------------------------------------------------------------------------- */

/* A walk over well-formed text that stops at each value (not at keys), in the order of the text. */
struct line_walk {
	const char *p;
	const char *end;
	int line;
};

/* Behind the string that begins at P. Well-formed strings hold no newline. */
static const char *skip_string(const char *p, const char *end)
{
	for (p++; p < end && *p != '"'; p++)
		p += *p == '\\';
	return p < end ? p + 1 : end;
}

static bool is_key(const struct line_walk *w, const char *behind)
{
	while (behind < w->end && strchr(" \t\r\n", *behind))
		behind++;
	return behind < w->end && *behind == ':';
}

static int next_line(struct line_walk *w)
{
	while (w->p < w->end) {
		char c = *w->p;
		if (c == '\n')
			w->line++;
		if (strchr(" \t\r\n,:]}", c)) {
			w->p++;
			continue;
		}
		if (c == '"') {
			w->p = skip_string(w->p, w->end);
			if (is_key(w, w->p))
				continue;
			return w->line;
		}
		w->p++;
		if (c != '[' && c != '{') {
			while (w->p < w->end && !strchr(" \t\r\n,:]}", *w->p))
				w->p++;
		}
		return w->line;
	}
	return w->line;
}

/* --- From jansson -------------------------------------------------------------------------- */

static struct value *value_from_scalar(const json_t *j)
{
	struct value *v;

	switch (json_typeof(j)) {
	case JSON_STRING: {
		size_t len = json_string_length(j);
		char *s = xzalloc(len + 1);
		memcpy(s, json_string_value(j), len);
		return value_new_text_take(VALUE_STRING, s, len);
	}
	case JSON_INTEGER:
		return value_new_int(json_integer_value(j));
	case JSON_REAL:
		v = value_new(VALUE_FLOAT);
		v->real = json_real_value(j);
		return v;
	case JSON_TRUE:
	case JSON_FALSE:
		return value_new_bool(json_is_true(j));
	case JSON_NULL:
		return value_new(VALUE_NULL);
	case JSON_OBJECT:
		return value_new(VALUE_TABLE);
	case JSON_ARRAY:
		return value_new(VALUE_ARRAY);
	}
	return value_new(VALUE_NULL);
}

/* An array or object whose children are being taken over. */
struct json_level {
	json_t *j;
	struct value *v;
	size_t index; /* arrays: the next child */
	void *iter;   /* objects: the next child, NULL at the end */
};

static struct json_level level_of(json_t *j, struct value *v)
{
	return (struct json_level){.j = j, .v = v, .iter = json_object_iter(j)};
}

/* Takes over the next child of TOP; NULL where there is none. Objects keep the text's order. */
static json_t *take_next(struct json_level *top, struct line_walk *w, struct value **ret_child)
{
	json_t *j;

	if (top->v->kind == VALUE_ARRAY) {
		j = json_array_get(top->j, top->index++);
		if (!j)
			return NULL;
		*ret_child = value_from_scalar(j);
		value_array_add_take(top->v, *ret_child);
	} else {
		if (!top->iter)
			return NULL;
		j = json_object_iter_value(top->iter);
		const char *key = json_object_iter_key(top->iter);
		*ret_child = value_from_scalar(j);
		value_table_append_take(top->v, xstrdup(key), strlen(key), *ret_child);
		top->iter = json_object_iter_next(top->j, top->iter);
	}
	(*ret_child)->line = next_line(w);
	return j;
}

static struct value *value_from_json(json_t *root, const char *text, size_t len)
{
	struct line_walk w = {.p = text, .end = text + len, .line = 1};
	struct json_level levels[VALUE_DEPTH_MAX];
	size_t depth = 0;
	struct value *v = value_from_scalar(root);

	v->line = next_line(&w);
	levels[depth++] = level_of(root, v);
	while (depth > 0) {
		struct value *child = NULL;
		json_t *j = take_next(&levels[depth - 1], &w, &child);
		if (!j) {
			depth--;
		} else if (value_is_container(child)) {
			assert(depth < VALUE_DEPTH_MAX);
			levels[depth++] = level_of(j, child);
		}
	}
	return v;
}

int json_parse(const char *text, size_t len, const char *what, struct value **ret_root,
	       struct err *err)
{
	json_error_t why;

	if (len > VALUE_TEXT_MAX)
		return value_fail(err, E2BIG, what, 1, "text is larger than 1 MiB");
	int r = check_depth(text, len, what, err);
	if (r < 0)
		return r;
	json_t *root = json_loadb(text, len, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &why);
	if (!root) {
		int code = json_error_code(&why) == json_error_out_of_memory ? ENOMEM : EINVAL;
		return value_fail(err, code, what, why.line > 0 ? why.line : 1, "%s", why.text);
	}
	*ret_root = value_from_json(root, text, len);
	json_decref(root);
	return 0;
}

/* --- Out ----------------------------------------------------------------------------------- */

/* An array or table that is being written. */
struct write_level {
	const struct value *v;
	size_t next;
};

struct json_writer {
	struct buf out;
	bool indent;
	struct write_level *levels;
	size_t depth;
};

static void write_line_break(struct json_writer *w)
{
	if (w->indent)
		buf_printf(&w->out, "\n%*s", (int)w->depth * 2, "");
}

/* A scalar, or an empty container; false for a container whose children must be written. */
static bool write_leaf(struct json_writer *w, const struct value *v)
{
	switch (v->kind) {
	case VALUE_BOOL:
		buf_add_str(&w->out, v->boolean ? "true" : "false");
		return true;
	case VALUE_INT:
		buf_printf(&w->out, "%lld", (long long)v->integer);
		return true;
	case VALUE_FLOAT:
		if (!isfinite(v->real))
			buf_add_char(&w->out, '"');
		value_add_real(&w->out, v->real);
		if (!isfinite(v->real))
			buf_add_char(&w->out, '"');
		return true;
	case VALUE_STRING:
	case VALUE_OFFSET_DATETIME:
	case VALUE_LOCAL_DATETIME:
	case VALUE_LOCAL_DATE:
	case VALUE_LOCAL_TIME:
		buf_add_json(&w->out, v->str, v->len);
		return true;
	case VALUE_ARRAY:
		if (v->n == 0)
			buf_add_str(&w->out, "[]");
		return v->n == 0;
	case VALUE_TABLE:
		if (v->n == 0)
			buf_add_str(&w->out, "{}");
		return v->n == 0;
	case VALUE_NULL:
	case VALUE_KIND_COUNT:
		break;
	}
	buf_add_str(&w->out, "null");
	return true;
}

/* Writes V, or what opens it and makes it the innermost level. */
static void write_begin(struct json_writer *w, const struct value *v)
{
	if (write_leaf(w, v))
		return;
	buf_add_char(&w->out, v->kind == VALUE_ARRAY ? '[' : '{');
	w->levels = xrealloc(w->levels, w->depth + 1, sizeof(*w->levels));
	w->levels[w->depth++] = (struct write_level){.v = v};
}

static void write_step(struct json_writer *w)
{
	struct write_level *top = &w->levels[w->depth - 1];
	const struct value *v = top->v;

	if (top->next == v->n) {
		w->depth--;
		write_line_break(w);
		buf_add_char(&w->out, v->kind == VALUE_ARRAY ? ']' : '}');
		return;
	}
	size_t i = top->next++;
	if (i > 0)
		buf_add_char(&w->out, ',');
	write_line_break(w);
	if (v->kind == VALUE_TABLE) {
		buf_add_json(&w->out, v->keys[i], v->key_lens[i]);
		buf_add_str(&w->out, w->indent ? ": " : ":");
	}
	write_begin(w, v->items[i]);
}

static char *write_json(const struct value *v, bool indent)
{
	struct json_writer w = {.out = BUF_INIT(VALUE_WRITE_MAX), .indent = indent};

	write_begin(&w, v);
	while (w.depth > 0)
		write_step(&w);
	if (indent)
		buf_add_char(&w.out, '\n');
	free(w.levels);
	return value_take_text(&w.out);
}

char *json_write(const struct value *v)
{
	return write_json(v, true);
}

char *json_write_compact(const struct value *v)
{
	return write_json(v, false);
}
