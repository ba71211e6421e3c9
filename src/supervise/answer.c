/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From a verdict to the kernel. Whatever goes wrong here leaves the call refused: an unknown
 * verdict, a descriptor that cannot be injected, a pool without room. A task that is gone needs no
 * answer.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/util.h"
#include "events/event.h"
#include "supervise/supervisor_internal.h"
#include "sys/at.h"

#define ERRNO_MAX     4095
#define ROOM_RETRY_MS 5

void call_done(struct call *call)
{
	for (size_t i = 0; i < call->n_fds; i++)
		util_close(call->fds[i]);
	call->n_fds = 0;
	if (call->free_kept)
		call->free_kept(call->kept);
	call->free_kept = NULL;
	call->kept = NULL;
	if (!call->pidfd_kept)
		util_close(call->pidfd);
	call->pidfd = -1;
	call->pidfd_kept = false;
}

void call_move(struct call *to, struct call *from)
{
	*to = *from;
	/* What the table keeps may be closed there before this call is answered. */
	if (to->pidfd_kept)
		to->pidfd = -1;
	to->pidfd_kept = from->pidfd_kept = false;
	from->n_fds = 0;
	from->kept = NULL;
	from->free_kept = NULL;
	from->pidfd = -1;
}

static void send_response(const struct call *call, int64_t value, int error, bool go_on)
{
	union {
		struct seccomp_notif_resp resp;
		char space[512];
	} u;
	memset(&u, 0, sizeof(u));
	u.resp.id = call->id;
	u.resp.val = value;
	u.resp.error = error;
	u.resp.flags = go_on ? SECCOMP_USER_NOTIF_FLAG_CONTINUE : 0;
	/* A signal to this process, a stop included, may come between: nobody else would answer. */
	int r;
	do {
		r = ioctl(call->box->listener, SECCOMP_IOCTL_NOTIF_SEND, &u.resp);
	} while (r < 0 && errno == EINTR);
	/* Who waits and cannot be answered is ended: it would wait for ever, and its call is
	 * undecided. */
	if (r < 0 && errno != ENOENT && errno != EINPROGRESS && call_is_alive(call))
		kill(call->tid, SIGKILL);
}

static void send_errno(const struct call *call, int64_t code)
{
	if (code <= 0 || code > ERRNO_MAX)
		code = EACCES;
	send_response(call, 0, -(int)code, false);
}

/*
 * First the descriptor, then its number. Both at once (SECCOMP_ADDFD_FLAG_SEND) would be one call
 * less, but that one waits for the task, and if this process is stopped or signalled meanwhile the
 * kernel takes the descriptor back and lets the task's call return 0, as if that were its number.
 */
static void send_fd(const struct call *call, int fd, bool cloexec)
{
	struct seccomp_notif_addfd add = {
		.id = call->id,
		.srcfd = (uint32_t)fd,
		.newfd_flags = cloexec ? O_CLOEXEC : 0,
	};
	int r;
	do {
		r = ioctl(call->box->listener, SECCOMP_IOCTL_NOTIF_ADDFD, &add);
	} while (r < 0 && errno == EINTR);
	if (r >= 0)
		send_response(call, r, 0, false);
	else if (errno != ENOENT)
		send_errno(call, errno == EBADF ? EMFILE : errno);
}

/* A crowd waits for its turn: what it asks for gives no EAGAIN outside. */
static struct verdict look_for_room(struct call *call, struct pending_op *op, bool timed_out)
{
	(void)op;
	if (call_may_work(call))
		return (struct verdict){.answer = ANSWER_WORKER};
	return timed_out ? verdict_errno(EAGAIN) : (struct verdict){.answer = ANSWER_PENDING};
}

static void to_worker(struct call *call)
{
	struct supervisor *sup = supervised_of(call)->sup;
	struct pending_op op = {.resume = look_for_room, .fd = -1, .retry_ms = ROOM_RETRY_MS};
	if (call->on_worker) {
		send_errno(call, EAGAIN);
		return;
	}
	int r = pool_submit(sup, call);
	if (r == 0)
		return;
	int64_t now = supervise_now_ms();
	if (!call->room_until_ms)
		call->room_until_ms = now + sup->pool_timeout_ms;
	op.deadline_ms = call->room_until_ms;
	if (r != -EBUSY || now >= call->room_until_ms ||
	    call_wait(call, &op).answer != ANSWER_PENDING)
		send_errno(call, EAGAIN);
}

void call_answer(struct call *call, struct verdict verdict)
{
	switch (verdict.answer) {
	case ANSWER_VALUE:
		send_response(call, verdict.value, 0, false);
		break;
	case ANSWER_CONTINUE:
		send_response(call, 0, 0, true);
		break;
	case ANSWER_FD:
		send_fd(call, verdict.fd, verdict.cloexec);
		close(verdict.fd);
		break;
	case ANSWER_WORKER:
		to_worker(call);
		break;
	case ANSWER_PENDING:
		break;
	case ANSWER_GONE:
		/* Should it be alive after all, it must not wait for ever. */
		send_errno(call, ESRCH);
		break;
	case ANSWER_ERRNO:
	default:
		send_errno(call, verdict.value);
		break;
	}
	call_done(call);
}

void call_run(struct call *call)
{
	call_answer(call, dispatch_call(call));
}

/* --- Refusals --------------------------------------------------------------------------------- */

void call_program(const struct call *call, char *ret_name, size_t size)
{
	char path[40];
	snprintf(path, sizeof(path), "/proc/%d/comm", call->tid);
	ssize_t n = at_read_file(AT_FDCWD, path, ret_name, size);
	n = n > 0 && call_is_alive(call) ? n : 0;
	ret_name[n] = '\0';
	ret_name[strcspn(ret_name, "\n")] = '\0';
}

void call_tell(struct call *call, const struct refusal *refusal)
{
	struct supervised *sv = supervised_of(call);
	char program[64];
	AUTO(buf_done) struct buf object = BUF_INIT((size_t)3 * EVENT_TEXT_MAX);
	pthread_mutex_lock(&sv->event_lock);
	if (sv->event_fn) {
		call_program(call, program, sizeof(program));
		buf_add_str(&object, refusal->object ? refusal->object : "");
		if (refusal->resolved && !str_eq(refusal->resolved, refusal->object))
			buf_printf(&object, " -> %s", refusal->resolved);
		struct event e = {.pid = call->tid,
				  .program = program,
				  .op = refusal->op,
				  .object = buf_text(&object),
				  .layer = refusal->layer ? refusal->layer : "supervisor",
				  .rule = refusal->rule,
				  .allow = refusal->allow,
				  .error = refusal->error};
		sv->event_fn(sv->event_data, &e);
	}
	pthread_mutex_unlock(&sv->event_lock);
}

struct verdict call_refuse(struct call *call, const struct refusal *refusal)
{
	call_tell(call, refusal);
	return verdict_errno(refusal->error);
}
