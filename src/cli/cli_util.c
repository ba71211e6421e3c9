/* SPDX-License-Identifier: Apache-2.0 */
/* Messages of the command line: one line each, safe for a terminal whatever they quote. */
#include <limits.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/util.h"
#include "cli/cli.h"

/* How long a message waits for a reader of standard error: the run's end does not depend on it. */
#define MESSAGE_WAIT_MS 200

static void put_line(const char *prefix, const char *text)
{
	/* At most PIPE_BUF bytes: where poll sees room for them, the write does not block
	 * (pipe(7)). */
	struct buf b = BUF_INIT(PIPE_BUF);
	for (size_t n = strlen(text);; n /= 2) {
		buf_clear(&b);
		buf_add_str(&b, prefix);
		buf_add_terminal(&b, text, n);
		buf_add_char(&b, '\n');
		if (!b.error || !n)
			break; /* what is too long is cut */
	}
	struct pollfd pfd = {.fd = STDERR_FILENO, .events = POLLOUT};
	if (!b.error && poll(&pfd, 1, MESSAGE_WAIT_MS) == 1 && (pfd.revents & POLLOUT))
		(void)!write(STDERR_FILENO, b.data, b.len);
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
