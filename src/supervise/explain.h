/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Refusals that the kernel makes by itself, told as events: with --explain the installed filter
 * sends here whatever it or the kernel's rules might refuse. What the ordinary filter would refuse
 * is refused here with the same errno; what it would let through is judged as Landlock, the mounts
 * and the scopes will judge it, told if they will refuse, and then executed by the kernel, whose
 * own check stays the guard.
 */
#pragma once

#include "supervise/call.h"

/* What the call is called in an event: "open" for all that open by path, else its own name. */
const char *explain_op(const struct call *call);

/* Answers CALL; HANDLER is asked as it would be without --explain. */
struct verdict explain_call(struct call *call, call_handler handler);

/* --- Between its files -------------------------------------------------------------------- */

/*
 * Tells of CALL if the kernel will refuse it. 0, or -EAGAIN where only a worker could know. Others
 * mean that nothing could be found out.
 */
typedef int (*explain_fn)(struct call *call);
int explain_open(struct call *call);
int explain_truncate(struct call *call);
int explain_create(struct call *call);
int explain_remove(struct call *call);
int explain_link(struct call *call);
int explain_exec(struct call *call);
int explain_metadata(struct call *call); /* in the base */
int explain_bind(struct call *call);
int explain_signal(struct call *call); /* without the base */
