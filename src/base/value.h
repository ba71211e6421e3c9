/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tree that a TOML or JSON text is read into: one shape for both, so that everything above
 * knows one. Every node remembers the line it came from (1-based; 0 when made by hand), for error
 * messages. Strings may hold NUL bytes only where the text had an escape for one; LEN counts them.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;

enum value_kind {
	VALUE_NULL, /* JSON only */
	VALUE_BOOL,
	VALUE_INT,
	VALUE_FLOAT,
	VALUE_STRING,
	VALUE_OFFSET_DATETIME, /* the four TOML date-times: TEXT in normal form (upper-case T, Z) */
	VALUE_LOCAL_DATETIME,
	VALUE_LOCAL_DATE,
	VALUE_LOCAL_TIME,
	VALUE_ARRAY,
	VALUE_TABLE,
	VALUE_KIND_COUNT,
};

struct value {
	enum value_kind kind;
	int line;
	bool boolean;
	int64_t integer;
	double real;
	char *str; /* VALUE_STRING and date-times: owned, NUL-terminated */
	size_t len;
	size_t n; /* arrays and tables: number of children */
	struct value **items;
	char **keys; /* tables: keys[i] names items[i], in the order of the text */
	size_t *key_lens;
	uint8_t toml_flags; /* private to the TOML reader */
};

/* The largest text that the readers take, in bytes. */
#define VALUE_TEXT_MAX ((size_t)1024 * 1024)
/* The deepest nesting of arrays and tables that the readers take; the root counts as one. */
#define VALUE_DEPTH_MAX 128

/* As messages say it: "string", "array", "local date-time". */
const char *value_kind_name(enum value_kind kind);
void value_free(struct value *v);
void value_free_cleanup(struct value **v);
/* Borrowed child of a table, NULL if absent or V is no table. */
struct value *value_get(const struct value *v, const char *key);

struct value *value_new(enum value_kind kind);
struct value *value_new_string(const char *s);
struct value *value_new_int(int64_t i);
struct value *value_new_bool(bool b);
/* Appends CHILD, which the parent now owns. A key that is there already is replaced. */
void value_table_put_take(struct value *table, const char *key, struct value *child);
void value_array_add_take(struct value *array, struct value *child);

/*
 * Read LEN bytes of TOML 1.0 or JSON (RFC 8259; duplicate keys refused). WHAT names the source in
 * messages ("profile web.toml"), which read "WHAT:LINE: reason" and hold nothing unprintable. The
 * root is a table for TOML, a table or an array for JSON. Returns -EINVAL for what is malformed,
 * -E2BIG past VALUE_TEXT_MAX or VALUE_DEPTH_MAX, -ENOMEM.
 *
 * TOML: a byte order mark at the start is skipped, a line end in a string is always one newline, a
 * leap second is refused, an integer beyond 64 bits is an error.
 */
int toml_parse(const char *text, size_t len, const char *what, struct value **ret_root,
	       struct err *err);
int json_parse(const char *text, size_t len, const char *what, struct value **ret_root,
	       struct err *err);

/*
 * Write V as text that the readers read back to the same tree; the result is owned by the caller.
 * toml_write takes a table: plain values first, then a [section] for each table; arrays stay
 * inline. json_write indents by two blanks. Both end with a newline. All text is safe for a
 * terminal.
 *
 * What a form cannot hold: null is left out of TOML; date-times, inf and nan become strings in
 * JSON; a byte that is no UTF-8 becomes the text \xNN in both.
 */
char *toml_write(const struct value *v);
char *json_write(const struct value *v);
/* One line without blanks and without a newline. */
char *json_write_compact(const struct value *v);
