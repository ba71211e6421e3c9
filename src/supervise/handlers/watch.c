/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inotify_add_watch: tells who uses a file and when, so it takes a grant to read it. The watch is
 * made on the object that was judged, by a copy of the task's inotify descriptor.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/inotify.h>
#include <sys/stat.h>

#include "base/util.h"
#include "supervise/box.h"
#include "supervise/handlers/handlers.h"
#include "supervise/judge.h"
#include "sys/at.h"

/* 1: it may be watched; 0: it may not. */
static int judge(struct call *call, const struct resolved *r)
{
	const struct grant *grant = NULL;
	if (r->anonymous)
		return 1;
	int e = judge_grant(call, r, GRANT_READ, &grant);
	if (e == 0 && !grant)
		e = judge_grant(call, r, GRANT_WRITE, &grant);
	return e < 0 ? e : grant != NULL;
}

static int find(struct call *call, const char *text, uint32_t mask, struct resolved *ret)
{
	unsigned int flags = mask & IN_DONT_FOLLOW ? RESOLVE_NOFOLLOW : 0;
	int r = resolve_path(call, AT_FDCWD, text, flags, ret);
	if (r < 0)
		return r;
	if ((mask & IN_ONLYDIR) && !S_ISDIR(ret->mode))
		return -ENOTDIR;
	return judge_is_quick(call, ret) ? judge(call, ret) : -EAGAIN;
}

struct verdict handle_watch(struct call *call)
{
	char text[PATH_MAX];
	uint32_t mask = (uint32_t)call_int(call, 2);
	int inotify = call_fd(call, call_int(call, 0));
	bool hides = inotify == -EPERM && call->box->have_getfd;
	if (inotify == -EPERM)
		return call_refuse(
			call,
			&(struct refusal){
				.op = "inotify_add_watch",
				.object = "descriptor",
				.rule = hides ? "the program does not let itself be looked at (it "
						"is not dumpable)"
					      : "pidfd_getfd is barred here, which watching takes",
				.error = hides ? EACCES : EOPNOTSUPP});
	if (inotify < 0)
		return judge_failed(inotify);
	ssize_t n = call_read_str(call, call_arg(call, 1), text, sizeof(text));
	if (n < 0)
		return judge_failed((int)n);
	AUTO(resolved_done) struct resolved r = RESOLVED_INIT;
	struct act act;
	if (act_begin(call->box, &act) < 0)
		return verdict_errno(EACCES);
	int allowed = find(call, text, mask, &r);
	int wd = allowed > 0 ? at_watch(inotify, r.fd, mask) : allowed;
	act_end(&act);
	if (allowed == 0)
		return judge_refuse(call, "inotify_add_watch", text, &r, "-r", EACCES);
	if (wd == -EAGAIN && allowed > 0)
		wd = -EIO;
	return wd < 0 ? judge_failed(wd) : verdict_value(wd);
}
