/* SPDX-License-Identifier: Apache-2.0 */
/* Reasons of failing calls in words; see the header. */
#include "lib/call_reason.h"

#include <errno.h>
#include <linux/seccomp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/utsname.h>

#define LANDLOCK_SINCE KERNEL(5, 13)

void call_place_init(struct call_place *ret_place)
{
	struct call_place p = {0};
	struct utsname u;
	int mode = prctl(PR_GET_SECCOMP, 0, 0, 0, 0);
	/* EINVAL is a kernel without seccomp; any other failure can only be a filter's answer. */
	p.outer_filter = mode == SECCOMP_MODE_FILTER || (mode < 0 && errno != EINVAL);
	if (uname(&u) == 0) {
		char *rest = NULL;
		unsigned int major = (unsigned int)strtoul(u.release, &rest, 10);
		unsigned long minor = rest && *rest == '.' ? strtoul(rest + 1, NULL, 10) : 0;
		p.kernel = KERNEL(major, (unsigned int)(minor % 1000));
		snprintf(p.release, sizeof(p.release), "%s", u.release);
		snprintf(p.machine, sizeof(p.machine), "%s", u.machine);
	}
	*ret_place = p;
}

__attribute__((format(printf, 2, 3))) static struct call_reason say(enum call_verdict verdict,
								    const char *fmt, ...)
{
	struct call_reason reason = {.verdict = verdict};
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(reason.why, sizeof(reason.why), fmt, ap);
	va_end(ap);
	reason.by_filter = verdict == CALL_BLOCKED && strstr(reason.why, "filter");
	return reason;
}

static bool too_old(const struct call_place *place, unsigned int since)
{
	return since && place->kernel && place->kernel < since;
}

static struct call_reason say_too_old(const struct call_place *place, unsigned int since)
{
	return say(CALL_MISSING, "Linux %u.%u or later is needed, and this is %s", since / 1000,
		   since % 1000, place->release);
}

static struct call_reason judge_refused(const struct call_place *place, const char *call)
{
	if (place->outer_filter)
		return say(CALL_BLOCKED, "an outer seccomp filter or a security module blocks %s",
			   call);
	return say(CALL_BLOCKED, "a security module or a setting of the kernel blocks %s", call);
}

struct call_reason call_judge(const struct call_place *place, const char *call, unsigned int since,
			      int code)
{
	switch (code) {
	case ENOSYS:
		if (too_old(place, since))
			return say_too_old(place, since);
		if (place->outer_filter)
			return say(CALL_BLOCKED, "an outer seccomp filter hides %s", call);
		return say(CALL_MISSING, "the kernel was built without %s", call);
	case EINVAL:
	case E2BIG:
	case ENOTTY:
		/* Of an old call this says something about its arguments, not about the place. */
		if (!since)
			return say(CALL_OTHER, "%s", "");
		if (too_old(place, since))
			return say_too_old(place, since);
		if (place->outer_filter)
			return say(CALL_BLOCKED, "an outer seccomp filter refuses it");
		return say(CALL_MISSING, "this kernel does not know it");
	case ENODEV:
	case EOPNOTSUPP:
		return say(CALL_MISSING, "this kernel or file system does not support it");
	case EPERM:
		return judge_refused(place, call);
	case EACCES:
		return say(CALL_BLOCKED, "this user may not, or %s blocks it",
			   place->outer_filter ? "an outer seccomp filter or a security module"
					       : "a security module");
	case ENOSPC:
	case EUSERS:
		return say(CALL_BLOCKED, "a limit of the kernel is reached or set to zero");
	case EROFS:
		return say(CALL_BLOCKED, "it is mounted read-only");
	default:
		return say(CALL_OTHER, "%s", "");
	}
}

struct call_reason call_judge_landlock(const struct call_place *place, int code)
{
	static const char call[] = "landlock_create_ruleset";
	if (code == ENOSYS && too_old(place, LANDLOCK_SINCE))
		return say(CALL_MISSING,
			   "this kernel (%s) is too old: Linux 5.13 or later has Landlock",
			   place->release);
	if (code == ENOSYS && !place->outer_filter)
		return say(CALL_MISSING,
			   "this kernel was built without it (CONFIG_SECURITY_LANDLOCK)");
	if (code == ENOSYS)
		return say(CALL_BLOCKED, "an outer seccomp filter hides %s: allow it there", call);
	if (code == EOPNOTSUPP)
		return say(CALL_MISSING,
			   "it was not enabled at boot: add landlock to the lsm= boot parameter%s",
			   place->outer_filter ? ", unless an outer seccomp filter only says so"
					       : "");
	if (code == EPERM || code == EACCES)
		return say(CALL_BLOCKED, "an outer seccomp filter blocks %s: allow it there", call);
	return call_judge(place, call, LANDLOCK_SINCE, code);
}
