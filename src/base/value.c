/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The value tree; see the header. Nothing here recurses, so the depth of a tree costs no stack.
 */
#include "base/value.h"

#include <assert.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/util.h"
#include "base/value_internal.h"

const char *value_kind_name(enum value_kind kind)
{
	static const char *const names[VALUE_KIND_COUNT] = {
		[VALUE_NULL] = "null",
		[VALUE_BOOL] = "boolean",
		[VALUE_INT] = "integer",
		[VALUE_FLOAT] = "float",
		[VALUE_STRING] = "string",
		[VALUE_OFFSET_DATETIME] = "date-time",
		[VALUE_LOCAL_DATETIME] = "local date-time",
		[VALUE_LOCAL_DATE] = "local date",
		[VALUE_LOCAL_TIME] = "local time",
		[VALUE_ARRAY] = "array",
		[VALUE_TABLE] = "table",
	};
	assert((size_t)kind < ARRAY_SIZE(names));
	return names[kind];
}

/* Frees a value whose children are gone. */
static void free_one(struct value *v)
{
	free(v->str);
	free(v->items);
	free(v->keys);
	free(v->key_lens);
	free(v);
}

/*
 * Goes down to the last child and up again. The way up is kept in the slot of the child that is
 * being freed, so this needs no memory, however deep the tree is.
 */
void value_free(struct value *v)
{
	struct value *parent = NULL;

	while (v) {
		if (v->n > 0) {
			struct value *child = v->items[v->n - 1];
			v->items[v->n - 1] = parent;
			parent = v;
			v = child;
			continue;
		}
		free_one(v);
		v = parent;
		if (v) {
			v->n--;
			parent = v->items[v->n];
			if (v->keys)
				free(v->keys[v->n]);
		}
	}
}

void value_free_cleanup(struct value **v)
{
	value_free(*v);
}

static size_t find_key(const struct value *table, const char *key)
{
	size_t len = strlen(key);

	for (size_t i = 0; i < table->n; i++) {
		if (table->key_lens[i] == len && memcmp(table->keys[i], key, len) == 0)
			return i;
	}
	return table->n;
}

struct value *value_get(const struct value *v, const char *key)
{
	if (!v || v->kind != VALUE_TABLE)
		return NULL;
	size_t i = find_key(v, key);
	return i < v->n ? v->items[i] : NULL;
}

struct value *value_new(enum value_kind kind)
{
	struct value *v = xnew(struct value);
	v->kind = kind;
	return v;
}

struct value *value_new_text_take(enum value_kind kind, char *str, size_t len)
{
	struct value *v = value_new(kind);
	v->str = str;
	v->len = len;
	return v;
}

struct value *value_new_string(const char *s)
{
	return value_new_text_take(VALUE_STRING, xstrdup(s), strlen(s));
}

struct value *value_new_int(int64_t i)
{
	struct value *v = value_new(VALUE_INT);
	v->integer = i;
	return v;
}

struct value *value_new_bool(bool b)
{
	struct value *v = value_new(VALUE_BOOL);
	v->boolean = b;
	return v;
}

/* How many children have room once there are N: none, then 4, then every power of two. */
static size_t room_after(size_t n)
{
	if (n == 0)
		return 4;
	return n >= 4 && (n & (n - 1)) == 0 ? n * 2 : 0;
}

void value_array_add_take(struct value *array, struct value *child)
{
	assert(array->kind == VALUE_ARRAY);
	size_t room = room_after(array->n);
	if (room)
		array->items = xrealloc(array->items, room, sizeof(void *));
	array->items[array->n++] = child;
}

void value_table_append_take(struct value *table, char *key, size_t len, struct value *child)
{
	assert(table->kind == VALUE_TABLE);
	size_t room = room_after(table->n);
	if (room) {
		table->items = xrealloc(table->items, room, sizeof(void *));
		table->keys = xrealloc(table->keys, room, sizeof(*table->keys));
		table->key_lens = xrealloc(table->key_lens, room, sizeof(*table->key_lens));
	}
	table->keys[table->n] = key;
	table->key_lens[table->n] = len;
	table->items[table->n++] = child;
}

void value_table_put_take(struct value *table, const char *key, struct value *child)
{
	assert(table->kind == VALUE_TABLE);
	size_t i = find_key(table, key);
	if (i == table->n) {
		value_table_append_take(table, xstrdup(key), strlen(key), child);
		return;
	}
	value_free(table->items[i]);
	table->items[i] = child;
}

/* --- Messages ------------------------------------------------------------------------------ */

/* So much of a source's name is shown: of a longer one the end, which tells more. */
#define WHAT_SHOWN 160

int value_vfail(struct err *err, int code, const char *what, int line, const char *fmt, va_list ap)
{
	auto_free char *reason = xvasprintf(fmt, ap);
	AUTO(buf_done) struct buf b = BUF_INIT(VALUE_WRITE_MAX);
	size_t n = strlen(what);

	if (n > WHAT_SHOWN) {
		buf_add_str(&b, "...");
		what += n - WHAT_SHOWN;
		n = WHAT_SHOWN;
	}
	buf_add_terminal(&b, what, n);
	buf_printf(&b, ":%d: ", line);
	buf_add_terminal(&b, reason, strlen(reason));
	return err_set(err, code, "%s", buf_text(&b));
}

int value_fail(struct err *err, int code, const char *what, int line, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	int r = value_vfail(err, code, what, line, fmt, ap);
	va_end(ap);
	return r;
}

/* --- Text ---------------------------------------------------------------------------------- */

/* The C locale; glibc gives the same static object each time, so it is never freed. */
static locale_t c_locale(void)
{
	locale_t c = newlocale(LC_ALL_MASK, "C", NULL);
	if (!c)
		util_abort("out of memory");
	return c;
}

double value_read_real(const char *text)
{
	return strtod_l(text, NULL, c_locale());
}

void value_add_real(struct buf *b, double real)
{
	char text[40] = "";

	if (isnan(real) || isinf(real)) {
		buf_printf(b, "%s%s", signbit(real) ? "-" : "", isnan(real) ? "nan" : "inf");
		return;
	}
	locale_t old = uselocale(c_locale());
	for (int digits = 15; digits <= 17; digits++) {
		snprintf(text, sizeof(text), "%.*g", digits, real);
		if (value_read_real(text) == real)
			break;
	}
	uselocale(old);
	buf_add_str(b, text);
	if (!strpbrk(text, ".e"))
		buf_add_str(b, ".0");
}

char *value_take_text(struct buf *b)
{
	if (b->error)
		util_abort("out of memory");
	return buf_take(b);
}
