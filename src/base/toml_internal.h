/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The parts of the TOML reader: scanning (toml-scan.c), strings and keys (toml-string.c), numbers
 * and date-times (toml-scalar.c), values with their nesting (toml-value.c), what may be defined
 * where (toml-table.c), and the document (toml.c).
 *
 * The text was checked as a whole before any part sees it: it is UTF-8, its only controls are tab,
 * newline, and a carriage return before a newline. So the parts look for structure alone.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/value.h"

struct err;

/* What the reader remembers of tables and arrays in toml_flags, to judge a later definition. */
enum toml_flag {
	TOML_HEADER = 1 << 0, /* table: named by [x], or an element of [[x]] */
	TOML_DOTTED = 1 << 1, /* table: made by a dotted key */
	TOML_INLINE = 1 << 2, /* table or array: written as a value, complete and closed */
	TOML_TABLES = 1 << 3, /* array: grown by [[x]] */
};

/* One row of the index of all keys, so that a table with many keys costs no search. */
struct toml_row {
	const struct value *table; /* NULL: free */
	const char *key;	   /* borrowed from the table */
	size_t len;
	struct value *child;
};

struct toml_index {
	struct toml_row *rows;
	size_t size; /* a power of two, or 0 */
	size_t used;
};

struct toml {
	const char *p;
	const char *end;
	int line;
	const char *what;
	struct err *err;
	struct value *root;
	struct value *table; /* the one that the last header opened */
	size_t table_depth;  /* how deep it lies; the root is 1 */
	struct toml_index index;
};

struct toml_part {
	char *s;
	size_t len;
};

/* A key with its dots taken apart; at least one part once it was read. */
struct toml_key {
	struct toml_part parts[VALUE_DEPTH_MAX];
	size_t n;
};

/* --- toml-scan.c */
/* Fills the error with place and reason; returns -EINVAL. */
int toml_fail(struct toml *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
int toml_fail_depth(struct toml *t);
int toml_fail_memory(struct toml *t);
/* The failure where EXPECTED should have come; names what stands there instead. */
int toml_fail_expected(struct toml *t, const char *expected);
/* Checks the whole text for encoding and controls, and skips a byte order mark. */
int toml_check_text(struct toml *t);
/* The character N places ahead, '\0' past the end. */
char toml_peek(const struct toml *t, size_t n);
bool toml_starts(const struct toml *t, const char *s);
void toml_skip_blanks(struct toml *t);
/* Takes a newline (with its carriage return) if one is there. */
bool toml_take_newline(struct toml *t);
/* Skips blanks, newlines and comments. */
void toml_skip_lines(struct toml *t);
/* Takes blanks, a comment and the end of the line or of the text. */
int toml_take_line_end(struct toml *t);

/* --- toml-string.c */
/* Reads the string of any of the four forms that begins here (with a quote). */
int toml_read_string(struct toml *t, struct buf *ret);
int toml_read_key(struct toml *t, struct toml_key *key);
void toml_key_done(struct toml_key *key);
void toml_key_done_cleanup(struct toml_key *key);
/* The first N parts with their dots, quoted for a message. */
const char *toml_key_quote(const struct toml_key *key, size_t n, char *out, size_t size);

/* --- toml-scalar.c */
/* Reads a boolean, number or date-time. */
int toml_read_scalar(struct toml *t, struct value **ret_v);

/* --- toml-value.c */
/* Reads the value that begins here, for a key that lies DEPTH deep, with all that it holds. */
int toml_read_value(struct toml *t, size_t depth, struct value **ret_v);

/* --- toml-table.c */
void toml_index_done(struct toml_index *index);
/* Makes the table that [KEY] or, with IS_ELEMENT, [[KEY]] opens the current one. */
int toml_open_table(struct toml *t, const struct toml_key *key, bool is_element);
/*
 * The table that takes the last part of KEY, which is written in TABLE; makes those on the way and
 * checks that the name is free.
 */
int toml_reach_key(struct toml *t, struct value *table, const struct toml_key *key,
		   struct value **ret_table);
/* Puts V under the last part of KEY into TABLE (of toml_reach_key); hands over that part and V. */
void toml_put_key_take(struct toml *t, struct value *table, struct toml_key *key, struct value *v);
