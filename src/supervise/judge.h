/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the handlers of path calls ask about an object that was resolved: whether a grant covers it,
 * whether it is the task's own, whether it may be touched without waiting; and how they refuse.
 */
#pragma once

#include <stdbool.h>

#include "supervise/act.h"
#include "supervise/call.h"
#include "supervise/grants.h"
#include "supervise/resolve.h"

/*
 * The deepest grant with all RIGHTS (enum grant_right) that covers the object, in RET, or NULL. A
 * name counts only if it leads to the object in the task's own view: descriptors from elsewhere
 * (another mount namespace, a mount that was taken off) have names too. 0, or a negative errno
 * (-EAGAIN: on a worker). Between act_begin and act_end.
 */
int judge_grant(struct call *call, const struct resolved *r, unsigned int rights,
		const struct grant **ret);
/*
 * 1: the task may change the object, since a write grant covers it or since it has no name and so
 * came into being in the sandbox; 0: it may not; or a negative errno as above.
 */
int judge_write(struct call *call, const struct resolved *r);
/* Whether nobody can be kept waiting by the object's file system; else the work is a worker's. */
bool judge_is_quick(const struct call *call, const struct resolved *r);

/* The verdict for a negative errno of the functions above and of resolve.h. */
struct verdict judge_failed(int error);
/*
 * Refuses OP on what the task called TEXT ("": by a descriptor) with ERROR; FLAG ("-w", "-r", NULL:
 * none) is the option that would allow it.
 */
struct verdict judge_refuse(struct call *call, const char *op, const char *text,
			    const struct resolved *r, const char *flag, int error);
