/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Error objects. Text that does not fit is cut at a character boundary of UTF-8; nothing allocates.
 */
#include "base/err.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Cuts a half-written UTF-8 sequence that truncation may have left at the end of MSG. */
static void trim_utf8(char *msg, size_t size)
{
	size_t n = strlen(msg);
	if (n + 1 < size)
		return;
	while (n > 0 && ((unsigned char)msg[n - 1] & 0xc0) == 0x80)
		n--;
	if (n > 0 && ((unsigned char)msg[n - 1] & 0x80))
		n--;
	msg[n] = '\0';
}

int err_set(struct err *err, int code, const char *fmt, ...)
{
	if (!err)
		return -code;
	err->code = code;
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(err->msg, sizeof(err->msg), fmt, ap);
	va_end(ap);
	trim_utf8(err->msg, sizeof(err->msg));
	return -code;
}

int err_sys(struct err *err, int code, const char *fmt, ...)
{
	if (!err)
		return -code;
	err->code = code;
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(err->msg, sizeof(err->msg), fmt, ap);
	va_end(ap);
	size_t n = strlen(err->msg);
	snprintf(err->msg + n, sizeof(err->msg) - n, ": %s", strerrordesc_np(code));
	trim_utf8(err->msg, sizeof(err->msg));
	return -code;
}

int err_prefix(struct err *err, const char *fmt, ...)
{
	if (!err)
		return -EINVAL;
	char old[sizeof(err->msg)];
	memcpy(old, err->msg, sizeof(old));
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(err->msg, sizeof(err->msg), fmt, ap);
	va_end(ap);
	size_t n = strlen(err->msg);
	snprintf(err->msg + n, sizeof(err->msg) - n, ": %s", old);
	trim_utf8(err->msg, sizeof(err->msg));
	return err->code ? -err->code : -EINVAL;
}
