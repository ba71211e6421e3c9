/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Byte buffers and escapes; see the header. No addition takes more memory than twice the maximum,
 * and what an escape adds never holds a byte that a terminal would act on.
 */
#include "base/buf.h"

#include <assert.h>
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "base/util.h"

#define BUF_FIRST_CAP 64

void buf_done(struct buf *b)
{
	if (!b)
		return;
	free(b->data);
	b->data = NULL;
	b->len = 0;
	b->cap = 0;
	b->error = 0;
}

void buf_done_cleanup(struct buf *b)
{
	buf_done(b);
}

void buf_clear(struct buf *b)
{
	b->len = 0;
	b->error = 0;
	if (b->data)
		b->data[0] = '\0';
}

/* Makes room for EXTRA more bytes and the NUL behind them. */
static int buf_reserve(struct buf *b, size_t extra)
{
	if (b->error)
		return b->error;
	if (extra > b->max || b->len > b->max - extra || b->len + extra == SIZE_MAX)
		return b->error = -E2BIG;
	size_t need = b->len + extra + 1;
	if (need <= b->cap)
		return 0;
	size_t cap = b->cap ? b->cap : BUF_FIRST_CAP;
	while (cap < need)
		cap = cap > SIZE_MAX / 2 ? need : cap * 2;
	char *data = realloc(b->data, cap);
	if (!data)
		return b->error = -ENOMEM;
	b->data = data;
	b->cap = cap;
	return 0;
}

int buf_add(struct buf *b, const char *data, size_t len)
{
	int r = buf_reserve(b, len);
	if (r < 0)
		return r;
	if (len)
		memcpy(b->data + b->len, data, len);
	b->len += len;
	b->data[b->len] = '\0';
	return 0;
}

int buf_add_str(struct buf *b, const char *s)
{
	return buf_add(b, s, strlen(s));
}

int buf_add_char(struct buf *b, char c)
{
	return buf_add(b, &c, 1);
}

int buf_vprintf(struct buf *b, const char *fmt, va_list ap)
{
	if (b->error)
		return b->error;
	va_list again;
	va_copy(again, ap);
	int n = vsnprintf(NULL, 0, fmt, again);
	va_end(again);
	if (n < 0)
		return b->error = -E2BIG;
	int r = buf_reserve(b, (size_t)n);
	if (r < 0)
		return r;
	vsnprintf(b->data + b->len, (size_t)n + 1, fmt, ap);
	b->len += (size_t)n;
	return 0;
}

int buf_printf(struct buf *b, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	int r = buf_vprintf(b, fmt, ap);
	va_end(ap);
	return r;
}

const char *buf_text(const struct buf *b)
{
	return b->data ? b->data : "";
}

char *buf_take(struct buf *b)
{
	char *data = b->data ? b->data : xstrdup("");
	b->data = NULL;
	b->len = 0;
	b->cap = 0;
	return data;
}

/* --- Escapes ------------------------------------------------------------------------------- */

static void add_json_char(struct buf *b, const char *s, size_t n, uint32_t cp)
{
	static const char named[] = {['\b'] = 'b', ['\f'] = 'f', ['\n'] = 'n', ['\r'] = 'r',
				     ['\t'] = 't', ['"'] = '"',	 ['\\'] = '\\'};

	if (cp < sizeof(named) && named[cp])
		buf_printf(b, "\\%c", named[cp]);
	else if (!utf8_is_unsafe(cp))
		buf_add(b, s, n);
	else if (cp < 0x10000)
		buf_printf(b, "\\u%04x", (unsigned int)cp);
	else
		buf_printf(b, "\\u%04x\\u%04x", (unsigned int)(0xd7c0 + (cp >> 10)),
			   (unsigned int)(0xdc00 | (cp & 0x3ff)));
}

/* Drops what was added since START where something failed; every escape ends with it. */
static int whole_or_nothing(struct buf *b, size_t start)
{
	if (b->error && b->data) {
		b->len = start;
		b->data[start] = '\0';
	}
	return b->error;
}

int buf_add_json(struct buf *b, const char *s, size_t len)
{
	size_t start = b->len;

	buf_add_char(b, '"');
	for (size_t i = 0; i < len && !b->error;) {
		uint32_t cp = 0;
		size_t n = utf8_decode(s + i, len - i, &cp);
		if (n == 0) {
			buf_printf(b, "\\\\x%02x", (unsigned char)s[i++]);
			continue;
		}
		add_json_char(b, s + i, n, cp);
		i += n;
	}
	buf_add_char(b, '"');
	return whole_or_nothing(b, start);
}

static bool is_plain_word(const char *s)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
				    "@%+:,./_-";
	return *s && s[strspn(s, plain)] == '\0';
}

/* Whether every character of S may be shown. */
static bool is_showable(const char *s, size_t len)
{
	for (size_t i = 0; i < len;) {
		uint32_t cp = 0;
		size_t n = utf8_decode(s + i, len - i, &cp);
		if (n == 0 || utf8_is_unsafe(cp))
			return false;
		i += n;
	}
	return true;
}

/* The $'…' form: every byte that is not printable ASCII as three octal digits. */
static void add_shell_escaped(struct buf *b, const char *s)
{
	buf_add_str(b, "$'");
	for (; *s && !b->error; s++) {
		unsigned char c = (unsigned char)*s;
		if (c == '\'' || c == '\\')
			buf_printf(b, "\\%c", c);
		else if (c < 0x20 || c >= 0x7f)
			buf_printf(b, "\\%03o", c);
		else
			buf_add_char(b, (char)c);
	}
	buf_add_char(b, '\'');
}

int buf_add_shell(struct buf *b, const char *s)
{
	size_t start = b->len;

	if (is_plain_word(s))
		return buf_add_str(b, s);
	if (!is_showable(s, strlen(s))) {
		add_shell_escaped(b, s);
		return whole_or_nothing(b, start);
	}
	buf_add_char(b, '\'');
	for (; *s && !b->error; s++) {
		if (*s == '\'')
			buf_add_str(b, "'\\''");
		else
			buf_add_char(b, *s);
	}
	buf_add_char(b, '\'');
	return whole_or_nothing(b, start);
}

/* Writes the terminal form of the first character of S to OUT; returns how many bytes were read. */
static size_t terminal_char(const char *s, size_t len, char *out, size_t size)
{
	uint32_t cp = 0;
	size_t n = utf8_decode(s, len, &cp);

	if (n == 0 || (n == 1 && utf8_is_unsafe(cp))) {
		snprintf(out, size, "\\x%02x", (unsigned char)s[0]);
		return 1;
	}
	if (utf8_is_unsafe(cp))
		snprintf(out, size, "\\u{%x}", (unsigned int)cp);
	else
		snprintf(out, size, "%.*s", (int)n, s);
	return n;
}

int buf_add_terminal(struct buf *b, const char *s, size_t len)
{
	size_t start = b->len;

	for (size_t i = 0; i < len && !b->error;) {
		char shown[16];
		i += terminal_char(s + i, len - i, shown, sizeof(shown));
		buf_add_str(b, shown);
	}
	return whole_or_nothing(b, start);
}

const char *quote_text(const char *s, size_t len, char *out, size_t size)
{
	assert(size >= 16);
	size_t n = 0;
	size_t fits = 1; /* the longest text behind which "..." and the quote still fit */

	out[n++] = '"';
	for (size_t i = 0; i < len;) {
		char shown[16];
		i += terminal_char(s + i, len - i, shown, sizeof(shown));
		size_t m = strlen(shown);
		if (n + m + 2 > size) {
			memcpy(out + fits, "...\"", sizeof("...\""));
			return out;
		}
		memcpy(out + n, shown, m);
		n += m;
		if (n + sizeof("...\"") <= size)
			fits = n;
	}
	out[n++] = '"';
	out[n] = '\0';
	return out;
}

const char *quote_str(const char *s, char *out, size_t size)
{
	return quote_text(s, strlen(s), out, size);
}
