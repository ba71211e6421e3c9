/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tasks that have confined themselves further with Landlock: an inner sandbox without a supervisor
 * of its own, say. The supervisor cannot see what their own domain forbids, so what it does for
 * others it does not do for them where Landlock would have judged it.
 */
#pragma once

#include <stdbool.h>

#include "supervise/call.h"

/* Whether the caller, or a process that it descends from, has done so. */
bool narrow_has(const struct call *call);
/* Refuses with CODE because of that; WHAT: "TCP port". */
struct verdict narrow_refuse(struct call *call, const char *op, const char *what, int code);
