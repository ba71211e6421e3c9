/* SPDX-License-Identifier: Apache-2.0 */
/* Messages of the command line: one line each, safe for a terminal whatever they quote. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/util.h"
#include "cli/cli.h"

static void put_line(const char *prefix, const char *text)
{
	struct buf b = BUF_INIT(16384);
	buf_add_str(&b, prefix);
	buf_add_terminal(&b, text, strlen(text));
	buf_add_char(&b, '\n');
	if (!b.error && write(STDERR_FILENO, b.data, b.len) < 0)
		perror("sandlock");
	buf_done(&b);
}

int cli_error(int code, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	auto_free char *text = xvasprintf(fmt, ap);
	va_end(ap);
	put_line("sandlock: ", text);
	return code;
}

void cli_warning(const char *text)
{
	put_line("sandlock: warning: ", text);
}
