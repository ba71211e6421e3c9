/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From what a probe left to a row: the errno decides between missing and blocked, together with the
 * kernel's version and whether a seccomp filter lies around this process, since ENOSYS alone does
 * not tell an old kernel from a filter that hides a call.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/util.h"
#include "lib/check.h"

struct verdict {
	enum check_status status;
	const char *why; /* NULL: the errno says it all */
};

static struct verdict judge_enosys(const struct check_env *env, const struct probe *p)
{
	if (p->since && env->kernel < p->since)
		return (struct verdict){CHECK_MISSING, "this kernel is too old"};
	if (env->outer_filter)
		return (struct verdict){CHECK_BLOCKED, "an outer seccomp filter hides the call"};
	return (struct verdict){CHECK_MISSING, "the kernel was built without it"};
}

static struct verdict judge_refused(const struct check_env *env)
{
	if (env->outer_filter)
		return (struct verdict){
			CHECK_BLOCKED, "an outer seccomp filter, a security module or the kernel's "
				       "settings forbid it"};
	return (struct verdict){CHECK_BLOCKED,
				"a security module or the kernel's settings forbid it"};
}

static struct verdict judge_unknown(const struct check_env *env, const struct probe *p)
{
	if (env->outer_filter && p->since && env->kernel >= p->since)
		return (struct verdict){
			CHECK_BLOCKED,
			"this kernel should know it: an outer seccomp filter refuses it"};
	return (struct verdict){CHECK_MISSING, "this kernel does not know it"};
}

static struct verdict judge_errno(const struct check_env *env, const struct probe *p, int code)
{
	switch (code) {
	case ENOSYS:
		return judge_enosys(env, p);
	case EOPNOTSUPP:
		return (struct verdict){CHECK_MISSING,
					str_starts(p->id, "landlock")
						? "the kernel has it, but it was not switched "
						  "on at boot"
						: NULL};
	case EINVAL:
	case E2BIG:
	case ENOTTY:
	case ENODEV:
		return judge_unknown(env, p);
	case EPERM:
		return judge_refused(env);
	case EACCES:
		return (struct verdict){CHECK_BLOCKED,
					"this user may not, or a security module forbids it"};
	case ENOSPC:
	case EUSERS:
		return (struct verdict){CHECK_BLOCKED,
					"a limit of the kernel is reached or set to zero"};
	case EBUSY:
		return (struct verdict){CHECK_BLOCKED, "this process has a supervisor already"};
	case EROFS:
		return (struct verdict){CHECK_BLOCKED, "it is mounted read-only"};
	default:
		return (struct verdict){CHECK_FAILED, NULL};
	}
}

static char *describe(const struct probe *p, const struct probe_result *res, const char *why)
{
	if (res->error)
		return xasprintf("%s: %s%s%s%s", res->call, strerror(res->error), why ? " (" : "",
				 why ? why : "", why ? ")" : "");
	if (res->call)
		return xasprintf("%s: %s", res->call, res->note);
	if (res->note && str_ends(res->note, "signal"))
		return xasprintf("%s %ld", res->note, res->value);
	return res->note ? xstrdup(res->note) : NULL;
}

static char *remedy_for(const struct check_env *env, const struct probe *p,
			const struct check_row *row)
{
	if (row->status == CHECK_OK || row->status == CHECK_UNTRIED || !p->remedy)
		return NULL;
	if (row->status != CHECK_MISSING || !p->since || env->kernel >= p->since)
		return xstrdup(p->remedy);
	return xasprintf("Linux %u.%u or later has it; %s", p->since / 1000, p->since % 1000,
			 p->remedy);
}

void check_judge(const struct check_env *env, const struct probe *p, const struct probe_result *res,
		 struct check_row *row)
{
	struct verdict v = {(enum check_status)res->status, NULL};
	if (res->error)
		v = judge_errno(env, p, res->error);
	/* The layers' limit has the errno of an unknown structure. */
	if (res->error == E2BIG && str_eq(p->id, "landlock-layers"))
		v = (struct verdict){CHECK_BLOCKED, "no further layer can be stacked"};
	row->status = v.status;
	row->error = res->error;
	row->required = p->required;
	if (v.status == CHECK_OK)
		row->detail =
			p->value_label ? xasprintf("%s %ld", p->value_label, res->value) : NULL;
	else
		row->detail = describe(p, res, v.why);
	row->remedy = remedy_for(env, p, row);
}
