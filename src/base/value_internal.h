/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the readers and writers of TOML and JSON share and nobody else needs.
 */
#pragma once

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/value.h"

struct buf;

/* Fills ERR with "WHAT:LINE: reason", everything unprintable escaped; returns -CODE. */
int value_fail(struct err *err, int code, const char *what, int line, const char *fmt, ...)
	__attribute__((format(printf, 5, 6)));
int value_vfail(struct err *err, int code, const char *what, int line, const char *fmt, va_list ap)
	__attribute__((format(printf, 5, 0)));

/* Appends CHILD under KEY (LEN bytes, owned by the table from now on), which must not be there yet.
 */
void value_table_append_take(struct value *table, char *key, size_t len, struct value *child);
/* A string or date-time of LEN bytes at STR, which the value now owns. */
struct value *value_new_text_take(enum value_kind kind, char *str, size_t len);

static inline bool value_is_container(const struct value *v)
{
	return v->kind == VALUE_ARRAY || v->kind == VALUE_TABLE;
}

/* Reads a number that is known to be well-formed, whatever the locale of the process is. */
double value_read_real(const char *text);
/* Adds REAL with the fewest digits that read back to it; always with a point or an exponent. */
void value_add_real(struct buf *b, double real);

/* The largest text that a writer makes; past it the process ends, as for memory that is gone. */
#define VALUE_WRITE_MAX ((size_t)1 << 30)
/* The text of B, or the abort hook where it failed. */
char *value_take_text(struct buf *b);
