/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sendto with an address, sendmsg and sendmmsg. A datagram Unix socket can name its destination in
 * each call, one of a socketpair too, and which socket a number means can change at any time: so
 * each of these calls is made here, on a copy, with a destination that was judged.
 *
 * The name of a call on any other socket is no destination: a stream fails with it, the rest of
 * Unix and TCP pass over it. It is not handed on.
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/syscall.h>

#include "base/util.h"
#include "supervise/box.h"
#include "supervise/handlers/handlers.h"
#include "supervise/pending.h"
#include "supervise/send.h"

enum {
	MESSAGES_MAX = 1024,	 /* of one sendmmsg: UIO_MAXIOV */
	LOOP_BYTES = 256 * 1024, /* more goes to a worker */
	LOOP_MESSAGES = 8,
	RETRY_FIRST_MS = 1,
	RETRY_LAST_MS = 20,
};

#define MMSG_LEN_AT MSG_HEADER_SIZE

/* --- One message -------------------------------------------------------------------------- */

/* Judges where the current message goes. True: OP knows it. */
static bool judge(struct call *call, struct send_op *op, struct verdict *ret)
{
	const struct msg *m = &op->msg;
	if (!m->name.len)
		return true;
	if (op->info.domain == AF_UNIX && op->info.type == SOCK_STREAM) {
		struct sockaddr_storage peer;
		socklen_t n = sizeof(peer);
		bool connected = getpeername(op->fd, (struct sockaddr *)&peer, &n) == 0;
		*ret = verdict_errno(connected ? EISCONN : EOPNOTSUPP);
		return false;
	}
	if ((op->info.domain == AF_UNIX && op->info.type == SOCK_SEQPACKET) ||
	    sock_is_tcp(&op->info))
		return true;
	bool allowed = sock_judge(call, op->name, &op->info, &m->name, &op->target, ret);
	op->named = allowed && op->target.addr.len;
	return allowed;
}

static struct verdict failed(int r)
{
	if (r == -ESRCH)
		return (struct verdict){.answer = ANSWER_GONE};
	return verdict_errno(-r);
}

/* Reads the next message of sendmmsg, or the one of the others. */
static bool load(struct call *call, struct send_op *op, struct verdict *ret)
{
	int r = 0;
	if (op->many)
		r = msg_read(call, op->vector + (uint64_t)op->done * MSG_MHEADER_SIZE, &op->msg);
	op->loaded = r == 0;
	if (r < 0)
		*ret = failed(r);
	return r == 0 && judge(call, op, ret);
}

/* A stream's writer learns of the missing reader by a signal first, unless it asked not to. */
static void tell_broken_pipe(struct call *call, const struct send_op *op)
{
	if (op->info.type != SOCK_STREAM || (op->flags & MSG_NOSIGNAL))
		return;
	int pidfd = call_pidfd(call);
	if (pidfd >= 0 && call_is_alive(call))
		syscall(SYS_pidfd_send_signal, pidfd, SIGPIPE, NULL, 0);
}

static struct verdict fail(struct call *call, struct send_op *op, int code)
{
	if (code == ESRCH)
		return (struct verdict){.answer = ANSWER_GONE};
	if (op->info.type == SOCK_STREAM && op->sent)
		return verdict_value((int64_t)op->sent);
	if (code == EPIPE)
		tell_broken_pipe(call, op);
	return verdict_errno(code);
}

/* The call's end: what failed counts only where nothing was sent before. */
static struct verdict end_many(const struct send_op *op, struct verdict failed)
{
	if (op->many && op->done && failed.answer == ANSWER_ERRNO)
		return verdict_value(op->done);
	return failed;
}

/* --- Waiting ------------------------------------------------------------------------------ */

static struct verdict run(struct call *call, struct send_op *op, bool *ret_waits);

static struct verdict resume(struct call *call, struct pending_op *p, bool timed_out)
{
	struct send_op *op = p->data;
	bool waits = false;
	if (timed_out)
		return end_many(op, fail(call, op, EAGAIN));
	struct verdict verdict = run(call, op, &waits);
	if (!waits)
		return verdict;
	p->retry_ms = p->retry_ms * 2 < RETRY_LAST_MS ? p->retry_ms * 2 : RETRY_LAST_MS;
	return (struct verdict){.answer = ANSWER_PENDING};
}

static struct verdict interrupted(struct pending_op *p, int code)
{
	const struct send_op *op = p->data;
	if (op->many && op->done)
		return verdict_value(op->done);
	return op->sent ? verdict_value((int64_t)op->sent) : verdict_errno(code);
}

static void free_op(struct pending_op *p)
{
	send_op_free(p->data);
}

/*
 * Readiness tells when a stream or the own queue has room; that the queue of a datagram's receiver
 * has, only trying does.
 */
static struct verdict wait_for(struct call *call, struct send_op *op)
{
	bool datagram = op->info.type != SOCK_STREAM;
	struct pending_op p = {
		.resume = resume,
		.interrupted = interrupted,
		.free = free_op,
		.data = op,
		.fd = datagram ? -1 : op->fd,
		.events = EPOLLOUT,
		.retry_ms = datagram ? RETRY_FIRST_MS : 0,
		.deadline_ms = sock_send_deadline(op->fd, sock_now_ms()),
		.interruptible = true,
	};
	/* What there is no room to wait for ends as a signal would end it. */
	struct verdict partial = interrupted(&p, EAGAIN);
	struct verdict verdict = call_wait(call, &p);
	return verdict.answer == ANSWER_PENDING ? verdict : partial;
}

/* Tells how much of a message of sendmmsg was sent, and goes on to the next. */
static int close_message(struct call *call, struct send_op *op)
{
	uint32_t length = (uint32_t)op->sent;
	uint64_t at = op->vector + (uint64_t)op->done * MSG_MHEADER_SIZE + MMSG_LEN_AT;
	int r = call_write(call, at, &length, sizeof(length));
	op->done++;
	send_op_next(op);
	return r;
}

/* Sends until the end, a failure, or until it would have to wait (*RET_WAITS). */
static struct verdict run(struct call *call, struct send_op *op, bool *ret_waits)
{
	struct verdict verdict = {0};
	size_t bytes = 0;
	bool patient = !op->info.nonblock && !(op->flags & MSG_DONTWAIT);
	for (;;) {
		if (!op->loaded && !load(call, op, &verdict)) {
			/* Anew where it may block; not once something was sent. */
			if (verdict.answer == ANSWER_WORKER && op->done)
				return verdict_value(op->done);
			return end_many(op, verdict);
		}
		int r = send_step(call, op);
		if (r == -EAGAIN && patient) {
			*ret_waits = true;
			return verdict;
		}
		if (r < 0 && !(op->many && op->sent))
			return end_many(op, fail(call, op, -r));
		if (!op->many)
			return verdict_value((int64_t)op->sent);
		bytes += op->sent;
		if (close_message(call, op) < 0 || r < 0 || op->done == op->n)
			return verdict_value(op->done);
		/* Fewer than were asked for is an answer that the call has. */
		if (bytes > (size_t)4 * LOOP_BYTES && !call->on_worker)
			return verdict_value(op->done);
	}
}

/* --- The calls ---------------------------------------------------------------------------- */

static int read_sendto(struct call *call, struct send_op *op)
{
	msg_from_buffer(call_arg(call, 1), call_arg(call, 2), &op->msg);
	op->flags = call_int(call, 3);
	if (!call_arg(call, 4))
		return 0;
	return sock_addr_read(call, call_arg(call, 4), call_int(call, 5), &op->msg.name);
}

static int read_call(struct call *call, struct send_op *op)
{
	op->name = call->row->name;
	if (str_eq(op->name, "sendto"))
		return read_sendto(call, op);
	if (str_eq(op->name, "sendmsg")) {
		op->flags = call_int(call, 2);
		return msg_read(call, call_arg(call, 1), &op->msg);
	}
	if (!str_eq(op->name, "sendmmsg"))
		return -EPERM;
	uint32_t n = (uint32_t)call_int(call, 2);
	op->many = true;
	op->vector = call_arg(call, 1);
	op->n = n < MESSAGES_MAX ? n : MESSAGES_MAX;
	op->flags = call_int(call, 3);
	return 0;
}

/* Zero copy would pin our memory, not the task's; ENOBUFS is its documented "send it copied". */
static int check_flags(int flags)
{
	if (flags & MSG_FASTOPEN)
		return -EOPNOTSUPP;
	return flags & MSG_ZEROCOPY ? -ENOBUFS : 0;
}

struct verdict handle_send(struct call *call)
{
	/* There are no sockets then whose calls name a destination: see socket.c. */
	if (!call->box->have_getfd)
		return verdict_continue();

	AUTO(send_op_free) struct send_op *op = send_op_new();
	bool waits = false;
	op->fd = sock_copy(call, call_int(call, 0));
	if (op->fd < 0)
		return sock_no_copy(call, call->row->name, op->fd);
	int r = sock_info_get(op->fd, &op->info);
	if (r == 0)
		r = read_call(call, op);
	if (r == 0)
		r = check_flags(op->flags);
	if (r < 0)
		return failed(r);
	if (op->many && !op->n)
		return verdict_value(0);
	if ((op->msg.total > LOOP_BYTES || op->n > LOOP_MESSAGES) && !call->on_worker)
		return sock_to_worker(call);
	struct verdict verdict = run(call, op, &waits);
	if (verdict.answer == ANSWER_WORKER)
		return sock_to_worker(call);
	return waits ? wait_for(call, take_ptr(op)) : verdict;
}
