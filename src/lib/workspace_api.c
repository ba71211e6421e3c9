/* SPDX-License-Identifier: Apache-2.0 */
/* The public calls on a run's workspace. */
#include <errno.h>

#include "base/util.h"
#include "lib/launch.h"
#include "lib/workspace.h"

static int check(const struct sandlock_process *p, struct sandlock_error *err)
{
	if (p->ended && workspace_is_open(p->workspace))
		return 0;
	return api_fail(err, SANDLOCK_E_STATE, EINVAL,
			p->ended ? "There is no layer to decide about"
				 : "The layer is decided about when the run has ended");
}

int sandlock_process_changes(struct sandlock_process *p, const char *format,
			     int (*fn)(void *data, const char *text, size_t len), void *data,
			     struct sandlock_error *err)
{
	int r = check(p, err);
	return r < 0 ? r : workspace_show(p->workspace, format, fn, data, err);
}

int sandlock_process_land(struct sandlock_process *p, const char *action,
			  struct sandlock_error *err)
{
	int r = check(p, err);
	if (r < 0)
		return r;
	if (str_eq(action, "commit"))
		return workspace_commit(p->workspace, err);
	if (str_eq(action, "abort"))
		return workspace_abort(p->workspace, err);
	if (str_eq(action, "keep"))
		return workspace_keep(p->workspace, err);
	return api_fail(err, SANDLOCK_E_INVALID, EINVAL, "The action is commit, abort or keep");
}

int sandlock_process_landing(const struct sandlock_process *p, struct sandlock_error *err)
{
	if (err && p->landing.code)
		*err = p->landing;
	return -p->landing.code;
}

const char *sandlock_process_note(const struct sandlock_process *p, size_t i)
{
	return workspace_note(p->workspace, i);
}
