/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The error object: made once, at the origin, in memory that the caller gives; callers only put
 * words in front. Functions that take one return a negative errno and fill it on failure only.
 */
#pragma once

struct err {
	int code;      /* positive errno of the failure, 0 while nothing failed */
	char msg[512]; /* one line, no newline, whole sentence without the final stop */
};

/* Fills ERR (may be NULL) and returns -CODE. CODE is a positive errno. */
int err_set(struct err *err, int code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
/* As err_set, and appends ": " and the text of the errno. */
int err_sys(struct err *err, int code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
/* Puts words and ": " in front of the message (ERR may be NULL); returns -err->code or -EINVAL. */
int err_prefix(struct err *err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
