/* SPDX-License-Identifier: Apache-2.0 */
/*
 * TOML: the text as bytes, lines and blanks. LINE is always the line that P stands in.
 */
#include <errno.h>
#include <stdarg.h>
#include <string.h>

#include "base/err.h"
#include "base/toml_internal.h"
#include "base/utf8.h"
#include "base/value_internal.h"

/* So many bytes of what was found are shown in a message, less where that would cut a character. */
#define SHOWN_MAX 24

int toml_fail(struct toml *t, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	int r = value_vfail(t->err, EINVAL, t->what, t->line, fmt, ap);
	va_end(ap);
	return r;
}

int toml_fail_depth(struct toml *t)
{
	return value_fail(t->err, E2BIG, t->what, t->line, "nesting is deeper than %d levels",
			  VALUE_DEPTH_MAX);
}

int toml_fail_memory(struct toml *t)
{
	return value_fail(t->err, ENOMEM, t->what, t->line, "out of memory");
}

int toml_fail_expected(struct toml *t, const char *expected)
{
	char quoted[QUOTE_SIZE];
	size_t n = 0;

	if (t->p == t->end)
		return toml_fail(t, "%s expected at the end of the text", expected);
	while (toml_peek(t, n) && !strchr("\r\n", toml_peek(t, n)))
		n++;
	if (n == 0)
		return toml_fail(t, "%s expected at the end of the line", expected);
	if (n > SHOWN_MAX) {
		for (n = SHOWN_MAX; ((unsigned char)t->p[n] & 0xc0) == 0x80; n--)
			;
	}
	return toml_fail(t, "%s expected at %s", expected,
			 quote_text(t->p, n, quoted, sizeof(quoted)));
}

/* Checks the character at P; returns its bytes or a failure. */
static int check_char(struct toml *t)
{
	uint32_t cp = 0;
	size_t n = utf8_decode(t->p, (size_t)(t->end - t->p), &cp);

	if (n == 0)
		return toml_fail(t, "byte 0x%02x is not UTF-8", (unsigned char)*t->p);
	if (cp == '\n')
		t->line++;
	else if (cp == '\r' && toml_peek(t, 1) != '\n')
		return toml_fail(t, "carriage return without a newline");
	else if ((cp < 0x20 && cp != '\t' && cp != '\r') || cp == 0x7f)
		return toml_fail(t, "control character 0x%02x; write it as an escape in a string",
				 (unsigned int)cp);
	return (int)n;
}

int toml_check_text(struct toml *t)
{
	if (toml_starts(t, "\xef\xbb\xbf"))
		t->p += 3;
	const char *start = t->p;

	while (t->p < t->end) {
		int n = check_char(t);
		if (n < 0)
			return n;
		t->p += n;
	}
	t->p = start;
	t->line = 1;
	return 0;
}

char toml_peek(const struct toml *t, size_t n)
{
	return (size_t)(t->end - t->p) > n ? t->p[n] : '\0';
}

bool toml_starts(const struct toml *t, const char *s)
{
	size_t n = strlen(s);
	return (size_t)(t->end - t->p) >= n && memcmp(t->p, s, n) == 0;
}

void toml_skip_blanks(struct toml *t)
{
	while (toml_peek(t, 0) == ' ' || toml_peek(t, 0) == '\t')
		t->p++;
}

bool toml_take_newline(struct toml *t)
{
	if (toml_peek(t, 0) == '\r')
		t->p++;
	if (toml_peek(t, 0) != '\n')
		return false;
	t->p++;
	t->line++;
	return true;
}

static void skip_comment(struct toml *t)
{
	if (toml_peek(t, 0) != '#')
		return;
	while (t->p < t->end && *t->p != '\n' && *t->p != '\r')
		t->p++;
}

void toml_skip_lines(struct toml *t)
{
	do {
		toml_skip_blanks(t);
		skip_comment(t);
	} while (toml_take_newline(t));
}

int toml_take_line_end(struct toml *t)
{
	toml_skip_blanks(t);
	skip_comment(t);
	if (t->p == t->end || toml_take_newline(t))
		return 0;
	return toml_fail_expected(t, "end of the line");
}
