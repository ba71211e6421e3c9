/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tasks that have confined themselves further with Landlock: an inner sandbox without a supervisor
 * of its own, say. What the supervisor does for others where Landlock would have judged it, it
 * leaves to the kernel for them, or does it under the same rules.
 */
#pragma once

#include <stdbool.h>

#include "supervise/call.h"

/* Whether the caller, or a process that it descends from, has done so. */
bool narrow_has(const struct call *call);
/* Refuses with CODE because of that; WHAT: "abstract socket". */
struct verdict narrow_refuse(struct call *call, const char *op, const char *what, int code);
/*
 * Returns FN(ARG), run under the rulesets that the caller is under, in a thread of its own where
 * there are any; EACCES where they are not known or cannot be entered.
 */
int narrow_run(const struct call *call, int (*fn)(void *arg), void *arg);
