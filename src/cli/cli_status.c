/* SPDX-License-Identifier: Apache-2.0 */
/* One JSON line that says how a run ended, on every path. */
#include "cli/cli_status.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"

static const char *const reasons[] = {
	[SANDLOCK_EXITED] = "exited",
	[SANDLOCK_SIGNALED] = "signaled",
	[SANDLOCK_TIMED_OUT] = "timeout",
	[SANDLOCK_KILLED] = "killed",
	[SANDLOCK_LIMIT] = "limit",
	[SANDLOCK_START_FAILED] = "start_failed",
	[SANDLOCK_COMMIT_FAILED] = "commit_failed",
};

void status_write(int fd, const struct sandlock_result *result, const char *error)
{
	if (fd < 0)
		return;
	struct buf b = BUF_INIT(8192);
	buf_printf(&b, "{\"exit_code\":%d", result->exit_code);
	if (result->signal)
		buf_printf(&b, ",\"signal\":%d", result->signal);
	buf_printf(&b, ",\"reason\":\"%s\",\"timed_out\":%s,\"run_ms\":%llu",
		   reasons[result->reason], result->reason == SANDLOCK_TIMED_OUT ? "true" : "false",
		   (unsigned long long)result->run_ms);
	if (result->reason != SANDLOCK_START_FAILED)
		buf_printf(&b, ",\"peak_rss_bytes\":%llu,\"peak_scope\":\"%s\"",
			   (unsigned long long)result->peak_rss_bytes,
			   result->peak_is_tree ? "tree" : "process");
	if (error) {
		buf_add_str(&b, ",\"error\":");
		buf_add_json(&b, error, strlen(error));
	}
	buf_add_str(&b, "}\n");
	for (size_t at = 0; !b.error && at < b.len;) {
		ssize_t n = write(fd, b.data + at, b.len - at);
		if (n < 0 && errno != EINTR)
			break;
		at += n > 0 ? (size_t)n : 0;
	}
	buf_done(&b);
}
