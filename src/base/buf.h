/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A growing byte buffer that is born with its maximum, and the escapes that everything printed goes
 * through.
 *
 * DATA is NULL while nothing was added, else NUL-terminated behind LEN bytes. The first failure
 * (-E2BIG past the maximum, -ENOMEM) sticks in ERROR: later additions do nothing and return it, so
 * a writer may add unchecked and look at the end. An addition that fails adds nothing.
 */
#pragma once

#include <stdarg.h>
#include <stddef.h>

struct buf {
	char *data;
	size_t len;
	size_t cap;
	size_t max; /* LEN never exceeds it */
	int error;  /* 0, -E2BIG or -ENOMEM */
};

#define BUF_INIT(maximum)                                                                          \
	{                                                                                          \
		.max = (maximum)                                                                   \
	}

void buf_done(struct buf *b);
void buf_done_cleanup(struct buf *b);
/* Empties the buffer, keeps its memory and maximum, and forgets a failure. */
void buf_clear(struct buf *b);

int buf_add(struct buf *b, const char *data, size_t len);
int buf_add_str(struct buf *b, const char *s);
int buf_add_char(struct buf *b, char c);
int buf_printf(struct buf *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
int buf_vprintf(struct buf *b, const char *fmt, va_list ap) __attribute__((format(printf, 2, 0)));

/* The text, never NULL, borrowed until the next addition. */
const char *buf_text(const struct buf *b);
/* Hands over the text (owned by the caller, never NULL) and leaves an empty buffer. */
char *buf_take(struct buf *b);

/*
 * Adds S as a JSON string with its quotes. Characters that may not reach a terminal are \u escapes;
 * a byte that is no UTF-8 appears as the four characters \xNN, since JSON cannot hold it.
 */
int buf_add_json(struct buf *b, const char *s, size_t len);
/*
 * Adds S so that a POSIX shell reads one word with exactly these bytes. Plain words stay as they
 * are; text that may not reach a terminal takes the $'…' form, which bash, zsh and POSIX 2024 know.
 */
int buf_add_shell(struct buf *b, const char *s);
/*
 * Adds S fit for a terminal or a log line: controls and bytes that are no UTF-8 as \xNN, other
 * characters that may not be shown as \u{N}. Doing it twice changes nothing more.
 */
int buf_add_terminal(struct buf *b, const char *s, size_t len);

/*
 * Writes S between double quotes into OUT, fit for a terminal, and cut with "..." where it is too
 * long for SIZE (at least 16); returns OUT. For values in messages.
 */
const char *quote_text(const char *s, size_t len, char *out, size_t size);
const char *quote_str(const char *s, char *out, size_t size);

/* The size of OUT that messages use. */
#define QUOTE_SIZE 96
