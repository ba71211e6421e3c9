/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A domain passes to all descendants, so a task is narrowed if a process above it is. Orphans come
 * to the guardian and lose their ancestors: once anybody is narrowed, a child of the guardian that
 * is not the command itself is taken for narrowed.
 */
#include "supervise/narrow.h"

#include <errno.h>

#include "base/util.h"
#include "supervise/box.h"
#include "supervise/handlers/handlers.h"
#include "supervise/own.h"
#include "sys/proc.h"

enum { ANCESTORS_MAX = 4096 };

struct verdict handle_narrow(struct call *call)
{
	struct box *box = call->box;
	unsigned int n = box->n_narrowed;
	pid_t parent = 0;
	unsigned long long start = 0;
	if (call->on_worker)
		return verdict_errno(EPERM);
	if (n > ARRAY_SIZE(box->narrowed))
		return verdict_continue();
	pid_t pid = proc_group(call->tid);
	/* Who cannot be named makes all of them suspect. */
	if (pid <= 0 || own_parent(pid, &parent, &start) < 0)
		n = ARRAY_SIZE(box->narrowed);
	if (n < ARRAY_SIZE(box->narrowed)) {
		box->narrowed[n].pid = pid;
		box->narrowed[n].start = start;
	}
	__atomic_store_n(&box->n_narrowed, n + 1, __ATOMIC_RELEASE);
	return verdict_continue();
}

static bool is_noted(const struct box *box, unsigned int n, pid_t pid, unsigned long long start)
{
	for (unsigned int i = 0; i < n; i++) {
		if (box->narrowed[i].pid == pid && box->narrowed[i].start == start)
			return true;
	}
	return false;
}

bool narrow_has(const struct call *call)
{
	const struct box *box = call->box;
	unsigned int n = __atomic_load_n(&box->n_narrowed, __ATOMIC_ACQUIRE);
	if (n == 0)
		return false;
	pid_t pid = n > ARRAY_SIZE(box->narrowed) ? -1 : proc_group(call->tid);
	for (int i = 0; i < ANCESTORS_MAX && pid > 1; i++) {
		pid_t parent = 0;
		unsigned long long start = 0;
		if (own_parent(pid, &parent, &start) < 0 || is_noted(box, n, pid, start))
			return true;
		if (parent == box->guardian_pid)
			return pid != box->main_pid;
		pid = parent;
	}
	return true;
}

struct verdict narrow_refuse(struct call *call, const char *op, const char *what, int code)
{
	struct refusal refusal = {
		.op = op,
		.object = what,
		.rule = "the program has confined itself with Landlock, whose rules the supervisor "
			"cannot see",
		.error = code,
	};
	return call_refuse(call, &refusal);
}
