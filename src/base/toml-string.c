/* SPDX-License-Identifier: Apache-2.0 */
/*
 * TOML: strings and keys. A line end inside a string is stored as one newline, however it is
 * written in the text.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/toml_internal.h"
#include "base/utf8.h"
#include "base/util.h"

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* Reads the LEN hexadecimal digits of a \u or \U escape; P stands behind that letter. */
static int read_unicode_escape(struct toml *t, size_t len, struct buf *ret)
{
	uint32_t cp = 0;

	for (size_t i = 0; i < len; i++) {
		int digit = hex_digit(toml_peek(t, i));
		if (digit < 0)
			return toml_fail(t, "%zu hexadecimal digits must follow \\%c", len,
					 len == 4 ? 'u' : 'U');
		cp = cp << 4 | (uint32_t)digit;
	}
	if (!utf8_is_scalar(cp))
		return toml_fail(t, "there is no character U+%04X", (unsigned int)cp);
	char encoded[4];
	buf_add(ret, encoded, utf8_put(cp, encoded));
	t->p += len;
	return 0;
}

/* Reads the escape at P, which is not a line that ends in a backslash. */
static int read_escape(struct toml *t, struct buf *ret)
{
	static const char from[] = "btnfr\"\\";
	static const char to[] = "\b\t\n\f\r\"\\";
	char c = toml_peek(t, 1);
	const char *hit = c ? strchr(from, c) : NULL;

	if (hit) {
		buf_add_char(ret, to[hit - from]);
		t->p += 2;
		return 0;
	}
	if (c == 'u' || c == 'U') {
		t->p += 2;
		return read_unicode_escape(t, c == 'u' ? 4 : 8, ret);
	}
	return toml_fail_expected(t, "a valid escape (\\b \\t \\n \\f \\r \\\" \\\\ \\u \\U)");
}

/* Takes a backslash with nothing but blanks behind it, and all blank lines that follow. */
static bool take_line_continuation(struct toml *t)
{
	size_t n = 1;

	while (toml_peek(t, n) == ' ' || toml_peek(t, n) == '\t')
		n++;
	if (toml_peek(t, n) != '\n' && toml_peek(t, n) != '\r')
		return false;
	t->p += n;
	do
		toml_skip_blanks(t);
	while (toml_take_newline(t));
	return true;
}

static int read_single_line(struct toml *t, char quote, struct buf *ret)
{
	for (t->p++; toml_peek(t, 0) != quote;) {
		char c = toml_peek(t, 0);
		if (c == '\0' || c == '\n' || c == '\r')
			return toml_fail(t, "string is not closed at the end of the line");
		if (c == '\\' && quote == '"') {
			int r = read_escape(t, ret);
			if (r < 0)
				return r;
			continue;
		}
		buf_add_char(ret, c);
		t->p++;
	}
	t->p++;
	return 0;
}

/* How many of QUOTE stand at P, at most five: three that close and two that belong to the text. */
static size_t count_quotes(const struct toml *t, char quote)
{
	size_t n = 0;
	while (n < 5 && toml_peek(t, n) == quote)
		n++;
	return n;
}

/* One character, escape or line end of a multi-line string. */
static int read_multi_line_step(struct toml *t, char quote, struct buf *ret)
{
	if (toml_take_newline(t))
		return buf_add_char(ret, '\n');
	if (*t->p == '\\' && quote == '"')
		return take_line_continuation(t) ? 0 : read_escape(t, ret);
	return buf_add_char(ret, *t->p++);
}

static int read_multi_line(struct toml *t, char quote, struct buf *ret)
{
	int first_line = t->line;

	t->p += 3;
	toml_take_newline(t);
	while (t->p < t->end) {
		size_t quotes = count_quotes(t, quote);
		if (quotes >= 3) {
			buf_add(ret, t->p, quotes - 3);
			t->p += quotes;
			return 0;
		}
		int r = read_multi_line_step(t, quote, ret);
		if (r < 0)
			return r;
	}
	return toml_fail(t, "string that begins in line %d is not closed", first_line);
}

int toml_read_string(struct toml *t, struct buf *ret)
{
	char quote = toml_peek(t, 0);
	bool multi = toml_peek(t, 1) == quote && toml_peek(t, 2) == quote;
	int r = multi ? read_multi_line(t, quote, ret) : read_single_line(t, quote, ret);
	if (r == 0 && ret->error)
		return toml_fail_memory(t);
	return r;
}

/* --- Keys ---------------------------------------------------------------------------------- */

static bool is_bare(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '_' || c == '-';
}

static int read_key_part(struct toml *t, struct toml_part *ret)
{
	AUTO(buf_done) struct buf b = BUF_INIT(VALUE_TEXT_MAX);
	char c = toml_peek(t, 0);

	if (c == '"' || c == '\'') {
		if (toml_peek(t, 1) == c && toml_peek(t, 2) == c)
			return toml_fail(t, "a key cannot be a multi-line string");
		int r = read_single_line(t, c, &b);
		if (r < 0)
			return r;
	} else {
		size_t n = 0;
		while (is_bare(toml_peek(t, n)))
			n++;
		if (n == 0)
			return toml_fail_expected(t, "a key");
		buf_add(&b, t->p, n);
		t->p += n;
	}
	if (b.error)
		return toml_fail_memory(t);
	ret->len = b.len;
	ret->s = buf_take(&b);
	return 0;
}

int toml_read_key(struct toml *t, struct toml_key *key)
{
	for (;;) {
		if (key->n == ARRAY_SIZE(key->parts))
			return toml_fail_depth(t);
		int r = read_key_part(t, &key->parts[key->n]);
		if (r < 0)
			return r;
		key->n++;
		toml_skip_blanks(t);
		if (toml_peek(t, 0) != '.')
			return 0;
		t->p++;
		toml_skip_blanks(t);
	}
}

void toml_key_done(struct toml_key *key)
{
	for (size_t i = 0; i < key->n; i++)
		free(key->parts[i].s);
	key->n = 0;
}

void toml_key_done_cleanup(struct toml_key *key)
{
	toml_key_done(key);
}

const char *toml_key_quote(const struct toml_key *key, size_t n, char *out, size_t size)
{
	AUTO(buf_done) struct buf b = BUF_INIT(2 * VALUE_TEXT_MAX);

	for (size_t i = 0; i < n; i++) {
		if (i > 0)
			buf_add_char(&b, '.');
		buf_add(&b, key->parts[i].s, key->parts[i].len);
	}
	return quote_text(buf_text(&b), b.len, out, size);
}
