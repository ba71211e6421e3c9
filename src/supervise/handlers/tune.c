/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Priorities, schedulers, processors and limits of another process, without the base: done here for
 * processes of the sandbox, with no more rights than the caller has; others are not there. What
 * names a group or a user of processes would reach the host's, and is refused.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/util.h"
#include "supervise/box.h"
#include "supervise/handlers/handlers.h"
#include "supervise/own.h"
#include "supervise/sock.h"

enum {
	WHO_PROCESS = 0,       /* of setpriority */
	IO_WHO_PROCESS = 1,    /* of ioprio_set */
	MASK_BYTES_MAX = 1024, /* processors: more than any kernel counts */
	ATTR_BYTES_MIN = 48,   /* of struct sched_attr, as it was first */
	ATTR_BYTES_MAX = 128,
};

/* With the caller's ids and none of our capabilities. */
#define AS_CALLER(call, expression)                                                                \
	({                                                                                         \
		struct sock_ids ids_;                                                              \
		long result_ = -1;                                                                 \
		int code_ = EPERM;                                                                 \
		if (sock_ids_begin((call)->box, &ids_)) {                                          \
			result_ = (expression);                                                    \
			code_ = errno;                                                             \
			sock_ids_end(&ids_);                                                       \
		}                                                                                  \
		verdict_result(result_, code_);                                                    \
	})

/*
 * Limits are judged by the real ids as well. The saved one stays root's: it is the way back, and
 * keeps the sandbox from tracing this thread meanwhile.
 */
static long limit_by_real_ids(const struct box *box, pid_t pid, int resource,
			      const struct rlimit64 *new, struct rlimit64 *old)
{
	if (!box->as_root)
		return syscall(SYS_prlimit64, pid, resource, new, old);
	uid_t uid = getuid();
	gid_t gid = getgid();
	if (syscall(SYS_setresgid, box->host_gid, -1, -1) < 0)
		return -1;
	long r = syscall(SYS_setresuid, box->host_uid, -1, -1);
	if (r == 0)
		r = syscall(SYS_prlimit64, pid, resource, new, old);
	int code = errno;
	if (syscall(SYS_setresuid, uid, -1, -1) < 0 || syscall(SYS_setresgid, gid, -1, -1) < 0)
		util_abort("a supervisor thread cannot take its real ids back");
	errno = code;
	return r;
}

static struct verdict set_limit(struct call *call, pid_t pid)
{
	struct rlimit64 wanted = {0};
	struct rlimit64 old = {0};
	int resource = call_int(call, 1);
	struct rlimit64 *new = call_arg(call, 2) ? &wanted : NULL;
	int r = new ? call_read(call, call_arg(call, 2), new, sizeof(*new)) : 0;
	if (r < 0)
		return verdict_errno(-r);
	struct verdict verdict =
		AS_CALLER(call, limit_by_real_ids(call->box, pid, resource, new, &old));
	if (verdict.answer == ANSWER_VALUE && call_arg(call, 3))
		r = call_write(call, call_arg(call, 3), &old, sizeof(old));
	return r < 0 ? verdict_errno(-r) : verdict;
}

static struct verdict set_scheduler(struct call *call, pid_t pid)
{
	int param = 0; /* struct sched_param has a priority and no more */
	bool whole = str_eq(call->row->name, "sched_setscheduler");
	int r = call_read(call, call_arg(call, whole ? 2 : 1), &param, sizeof(param));
	if (r < 0)
		return verdict_errno(-r);
	int policy = whole ? call_int(call, 1) : 0;
	return AS_CALLER(call, whole ? syscall(SYS_sched_setscheduler, pid, policy, &param)
				     : syscall(SYS_sched_setparam, pid, &param));
}

static struct verdict set_attr(struct call *call, pid_t pid)
{
	uint32_t attr[ATTR_BYTES_MAX / sizeof(uint32_t)] = {0};
	uint32_t size = 0;
	int r = call_read(call, call_arg(call, 1), &size, sizeof(size));
	if (r < 0)
		return verdict_errno(-r);
	if (size == 0)
		size = ATTR_BYTES_MIN;
	if (size < ATTR_BYTES_MIN || size > sizeof(attr))
		return verdict_errno(E2BIG);
	r = call_read(call, call_arg(call, 1), attr, size);
	if (r < 0)
		return verdict_errno(-r);
	attr[0] = size;
	return AS_CALLER(call, syscall(SYS_sched_setattr, pid, attr, call_int(call, 2)));
}

static struct verdict set_affinity(struct call *call, pid_t pid)
{
	unsigned char mask[MASK_BYTES_MAX] = {0};
	size_t n = (uint32_t)call_int(call, 1);
	if (n > sizeof(mask))
		n = sizeof(mask);
	int r = call_read(call, call_arg(call, 2), mask, n);
	if (r < 0)
		return verdict_errno(-r);
	return AS_CALLER(call, syscall(SYS_sched_setaffinity, pid, n, mask));
}

static struct verdict set_priority(struct call *call, pid_t pid)
{
	return AS_CALLER(call, syscall(call->data.nr, call_int(call, 0), pid, call_int(call, 2)));
}

struct verdict handle_tune(struct call *call)
{
	const char *name = call->row->name;
	bool has_which = str_eq(name, "setpriority") || str_eq(name, "ioprio_set");
	pid_t pid = call_int(call, has_which ? 1 : 0);
	if (has_which &&
	    call_int(call, 0) != (str_eq(name, "ioprio_set") ? IO_WHO_PROCESS : WHO_PROCESS))
		return call_refuse(call, &(struct refusal){.op = name,
							   .object = "a group or a user",
							   .rule = "it may have other processes",
							   .error = EPERM});
	if (pid <= 0)
		return verdict_errno(pid < 0 ? EINVAL : EPERM);
	if (!own_process(call->box, pid) || !call_is_alive(call))
		return verdict_errno(ESRCH);
	if (has_which)
		return set_priority(call, pid);
	if (str_eq(name, "prlimit64"))
		return set_limit(call, pid);
	if (str_eq(name, "sched_setattr"))
		return set_attr(call, pid);
	if (str_eq(name, "sched_setaffinity"))
		return set_affinity(call, pid);
	if (str_starts(name, "sched_set"))
		return set_scheduler(call, pid);
	/* Pages of another process: nobody but the machine's administrator moves them. */
	return verdict_errno(EPERM);
}
