/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A domain passes to all descendants, so a task is narrowed if a process above it is. Orphans come
 * to the guardian and lose their ancestors: once anybody is narrowed, a child of the guardian that
 * is not the command itself is taken for narrowed, by rules that are not known.
 *
 * A domain cannot be entered from outside, but the ruleset that it was made of can. Whoever still
 * holds that ruleset could add to it, for what is done here only: it made the rules itself, and the
 * policy of this sandbox is judged besides.
 */
#include "supervise/narrow.h"

#include <errno.h>
#include <pthread.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/util.h"
#include "supervise/box.h"
#include "supervise/handlers/handlers.h"
#include "supervise/own.h"
#include "sys/proc.h"

enum { ANCESTORS_MAX = 4096, NARROWED_MAX = ARRAY_SIZE(((struct box *)NULL)->narrowed) };

struct verdict handle_narrow(struct call *call)
{
	struct box *box = call->box;
	unsigned int n = box->n_narrowed;
	pid_t parent = 0;
	unsigned long long start = 0;
	if (call->on_worker)
		return verdict_errno(EPERM);
	if (n > NARROWED_MAX)
		return verdict_continue();
	pid_t pid = proc_group(call->tid);
	auto_close int ruleset = call_fd_take(call, call_int(call, 0));
	/* Who cannot be named, or by what, makes all of them suspect. */
	if (pid <= 0 || ruleset < 0 || own_parent(pid, &parent, &start) < 0)
		n = NARROWED_MAX;
	if (n < NARROWED_MAX) {
		box->narrowed[n].pid = pid;
		box->narrowed[n].start = start;
		box->narrowed[n].ruleset = take_fd(&ruleset);
	}
	__atomic_store_n(&box->n_narrowed, n + 1, __ATOMIC_RELEASE);
	return verdict_continue();
}

/* --- Who is ----------------------------------------------------------------------------------- */

struct layers {
	bool unknown; /* narrowed, by nobody knows what */
	size_t n;
	int rulesets[NARROWED_MAX]; /* borrowed */
};

/* The rulesets of one process, the latest first. */
static void add_layers(const struct box *box, unsigned int n, pid_t pid, unsigned long long start,
		       struct layers *ret)
{
	for (unsigned int i = n; i-- > 0;) {
		if (box->narrowed[i].pid == pid && box->narrowed[i].start == start)
			ret->rulesets[ret->n++] = box->narrowed[i].ruleset;
	}
}

static void find_layers(const struct call *call, struct layers *ret)
{
	const struct box *box = call->box;
	unsigned int n = __atomic_load_n(&box->n_narrowed, __ATOMIC_ACQUIRE);
	*ret = (struct layers){.unknown = n > NARROWED_MAX};
	if (n == 0 || n > NARROWED_MAX)
		return;
	pid_t pid = proc_group(call->tid);
	for (int i = 0; i < ANCESTORS_MAX && pid > 1; i++) {
		pid_t parent = 0;
		unsigned long long start = 0;
		if (own_parent(pid, &parent, &start) < 0)
			break;
		add_layers(box, n, pid, start, ret);
		if (parent == box->guardian_pid) {
			ret->unknown = pid != box->main_pid;
			return;
		}
		pid = parent;
	}
	ret->unknown = true;
}

bool narrow_has(const struct call *call)
{
	struct layers layers;
	find_layers(call, &layers);
	return layers.unknown || layers.n > 0;
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

/* --- Under the same rules --------------------------------------------------------------------- */

struct confined {
	const struct layers *layers;
	int (*fn)(void *arg);
	void *arg;
	int code;
};

/* A thread alone enters the domain, and ends with it. The oldest layer comes first. */
static void *confined_main(void *data)
{
	struct confined *c = data;
	c->code = EACCES;
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return NULL;
	for (size_t i = c->layers->n; i-- > 0;) {
		if (syscall(SYS_landlock_restrict_self, c->layers->rulesets[i], 0) < 0)
			return NULL;
	}
	c->code = c->fn(c->arg);
	return NULL;
}

int narrow_run(const struct call *call, int (*fn)(void *arg), void *arg)
{
	struct layers layers;
	pthread_t thread;
	find_layers(call, &layers);
	if (layers.unknown)
		return EACCES;
	if (layers.n == 0)
		return fn(arg);
	struct confined c = {.layers = &layers, .fn = fn, .arg = arg, .code = EACCES};
	if (pthread_create(&thread, NULL, confined_main, &c))
		return EAGAIN;
	pthread_join(thread, NULL);
	return c.code;
}
