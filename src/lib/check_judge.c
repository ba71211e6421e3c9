/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From what a probe left to a row: a wrong outcome is "failed", an errno is judged as that of any
 * start would be (call_reason.h).
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/util.h"
#include "lib/check.h"

static const enum check_status status_of[] = {
	[CALL_OTHER] = CHECK_FAILED,
	[CALL_MISSING] = CHECK_MISSING,
	[CALL_BLOCKED] = CHECK_BLOCKED,
};

static struct call_reason judge_errno(const struct check_env *env, const struct probe *p,
				      const struct probe_result *res)
{
	if (str_eq(p->id, "landlock") && str_eq(res->call, "landlock_create_ruleset"))
		return call_judge_landlock(&env->place, res->error);
	/* The limit of layers has the errno of an unknown structure. */
	if (res->error == E2BIG && str_eq(p->id, "landlock-layers"))
		return (struct call_reason){CALL_BLOCKED, false, "no further layer can be stacked"};
	if (res->error == EBUSY && str_eq(p->id, "seccomp-listener"))
		return (struct call_reason){CALL_BLOCKED, false,
					    "this process has a supervisor already"};
	return call_judge(&env->place, res->call, p->since, res->error);
}

/* The words of what happened, owned, or NULL. */
static char *describe(const struct probe_result *res, const char *why)
{
	if (res->error)
		return xasprintf("%s: %s%s%s%s", res->call, strerror(res->error), *why ? " (" : "",
				 why, *why ? ")" : "");
	if (res->call)
		return xasprintf("%s: %s", res->call, res->note);
	if (res->note && str_ends(res->note, "signal"))
		return xasprintf("%s %ld (%s)", res->note, res->value, strsignal((int)res->value));
	return res->note ? xstrdup(res->note) : NULL;
}

void check_judge(const struct check_env *env, const struct probe *p, const struct probe_result *res,
		 struct check_row *row)
{
	struct call_reason reason = {.verdict = CALL_OTHER};
	row->status = (enum check_status)res->status;
	row->required = p->required;
	if (res->error) {
		reason = judge_errno(env, p, res);
		row->status = status_of[reason.verdict];
	}
	if (row->status == CHECK_OK) {
		if (p->value_label)
			row->detail = xasprintf("%s %ld", p->value_label, res->value);
		else if (res->note)
			row->detail = xstrdup(res->note);
		return;
	}
	row->detail = describe(res, reason.why);
	if (row->status != CHECK_UNTRIED && p->remedy)
		row->remedy = xstrdup(p->remedy);
}
