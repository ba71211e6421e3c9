/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Exclusive locks and leases: with either a program that may only read a file keeps its owner
 * waiting. They are made on a copy of the task's descriptor, that is on the same open file, and a
 * lock that another holds is waited for by trying again.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/util.h"
#include "supervise/box.h"
#include "supervise/handlers/handlers.h"
#include "supervise/judge.h"
#include "supervise/pending.h"
#include "sys/at.h"

enum { RETRY_FIRST_MS = 1, RETRY_MAX_MS = 20 };

/* 1: the open file was opened for writing, or what it is of may be written; 0: not. */
static int judge(struct call *call, int fd, struct resolved *r)
{
	int flags = fcntl(fd, F_GETFL);
	if (flags < 0)
		return -errno;
	if (flags & O_PATH)
		return -EBADF;
	if ((flags & O_ACCMODE) != O_RDONLY)
		return 1;
	r->fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	if (r->fd < 0)
		return -errno;
	struct act act;
	int e = act_begin(call->box, &act);
	if (e < 0)
		return e;
	e = resolved_describe(call, r);
	if (e == 0)
		e = judge_write(call, r);
	act_end(&act);
	return e;
}

/* A file system that asks a server for a lock could keep everybody waiting. */
static bool may_block(const struct call *call, int fd)
{
	struct at_info info;
	struct resolved r = RESOLVED_INIT;
	if (call->on_worker || at_info(fd, &info) < 0)
		return false;
	r.dev = info.dev;
	return !judge_is_quick(call, &r);
}

struct lock_wait {
	int fd; /* borrowed: the call keeps its copies while it waits */
	int op;
};

static void free_wait(struct pending_op *op)
{
	free(op->data);
}

static struct verdict try_again(struct call *call, struct pending_op *op, bool timed_out)
{
	const struct lock_wait *wait = op->data;
	if (flock(wait->fd, wait->op | LOCK_NB) == 0)
		return verdict_value(0);
	if (errno != EWOULDBLOCK)
		return verdict_errno(errno);
	op->retry_ms = op->retry_ms * 2 < RETRY_MAX_MS ? op->retry_ms * 2 : RETRY_MAX_MS;
	return (struct verdict){.answer = ANSWER_PENDING};
}

static struct verdict lock(struct call *call, int fd, int op)
{
	if (flock(fd, op | LOCK_NB) == 0)
		return verdict_value(0);
	if (errno != EWOULDBLOCK || (op & LOCK_NB))
		return verdict_errno(errno);
	struct lock_wait *wait = xnew(struct lock_wait);
	wait->op = op;
	wait->fd = fd;
	struct verdict verdict = call_wait(call, &(struct pending_op){.resume = try_again,
								      .free = free_wait,
								      .data = wait,
								      .fd = -1,
								      .retry_ms = RETRY_FIRST_MS,
								      .interruptible = true});
	/* Too many wait. EAGAIN would say that the caller did not want to. */
	return verdict.answer == ANSWER_PENDING ? verdict : verdict_errno(ENOLCK);
}

static pid_t process_of(pid_t tid)
{
	char path[32];
	char text[1024];
	snprintf(path, sizeof(path), "/proc/%d/status", tid);
	ssize_t n = at_read_file(AT_FDCWD, path, text, sizeof(text));
	const char *line = n > 0 ? strstr(text, "\nTgid:") : NULL;
	return line ? (pid_t)strtol(line + strlen("\nTgid:"), NULL, 10) : -1;
}

/*
 * Whoever takes a lease is told by a signal that it ends, unless the open file has an owner
 * already: the task must be that before there is a lease.
 */
static struct verdict lease(struct call *call, int fd, int type)
{
	struct f_owner_ex owner = {0};
	struct f_owner_ex task = {.type = F_OWNER_PID, .pid = process_of(call->tid)};
	if (task.pid <= 0 || !call_is_alive(call))
		return (struct verdict){.answer = ANSWER_GONE};
	if (fcntl(fd, F_GETOWN_EX, &owner) < 0)
		return verdict_errno(errno);
	if (owner.pid == 0 && fcntl(fd, F_SETOWN_EX, &task) < 0)
		return verdict_errno(errno);
	struct act act;
	if (act_begin(call->box, &act) < 0)
		return verdict_errno(EACCES);
	int r = fcntl(fd, F_SETLEASE, type);
	int code = errno;
	act_end(&act);
	if (r < 0 && owner.pid == 0)
		fcntl(fd, F_SETOWN_EX, &owner);
	return verdict_result(r, code);
}

static struct verdict refuse_unknown(struct call *call, const char *op)
{
	bool hides = call->box->have_getfd;
	return call_refuse(
		call, &(struct refusal){
			      .op = op,
			      .object = "descriptor",
			      .rule = hides ? "the program does not let itself be looked at (it is "
					      "not dumpable)"
					    : "pidfd_getfd is barred here, which judging it takes",
			      .error = hides ? EACCES : EOPNOTSUPP});
}

struct verdict handle_lock(struct call *call)
{
	bool is_lease = call->data.nr == SYS_fcntl;
	const char *op = is_lease ? "lease" : "flock";
	int type = call_int(call, is_lease ? 2 : 1);
	if (is_lease && call_int(call, 1) != F_SETLEASE)
		return verdict_errno(EACCES);
	/* To give a lease up needs no right. */
	if (is_lease && type == F_UNLCK)
		return verdict_continue();
	int fd = call_fd(call, call_int(call, 0));
	if (fd == -EPERM)
		return refuse_unknown(call, op);
	if (fd < 0)
		return judge_failed(fd);
	if (may_block(call, fd))
		return (struct verdict){.answer = ANSWER_WORKER};
	AUTO(resolved_done) struct resolved r = RESOLVED_INIT;
	int allowed = judge(call, fd, &r);
	if (allowed < 0)
		return judge_failed(allowed);
	if (!allowed)
		return judge_refuse(call, op, "", &r, "-w", EACCES);
	return is_lease ? lease(call, fd, type) : lock(call, fd, type);
}
