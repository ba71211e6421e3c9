/* SPDX-License-Identifier: Apache-2.0 */
/* Failures and warnings of the public API, made at their origin. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "lib/launch.h"

int api_fail(struct sandlock_error *err, enum sandlock_code code, int sys_errno, const char *fmt,
	     ...)
{
	if (!err)
		return -(int)code;
	va_list ap;
	va_start(ap, fmt);
	err->code = (int)code;
	err->sys_errno = sys_errno;
	vsnprintf(err->msg, sizeof(err->msg), fmt, ap);
	va_end(ap);
	return -(int)code;
}

void warn_add(struct strv *warnings, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	char *text = xvasprintf(fmt, ap);
	va_end(ap);
	if (strv_has(warnings, text))
		free(text);
	else
		strv_add_take(warnings, text);
}
