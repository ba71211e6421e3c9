/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sending one message on a copy of the task's socket. Nothing here waits: MSG_DONTWAIT holds for
 * the call, whatever the task does to the description meanwhile.
 */
#include "supervise/send.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/util.h"
#include "supervise/box.h"

enum {
	CHUNK = 256 * 1024,		/* of a stream, at a time */
	CHUNKS_PER_STEP = 4,		/* others wait for the loop */
	DATAGRAM_MAX = 4 * 1024 * 1024, /* far above what any queue takes by default */
	SKB_OVERHEAD = 32,
};

struct send_op *send_op_new(void)
{
	struct send_op *op = xnew(struct send_op);
	op->target = (struct sock_target)SOCK_TARGET_INIT;
	return op;
}

void send_op_next(struct send_op *op)
{
	msg_done(&op->msg);
	sock_target_done(&op->target);
	op->loaded = false;
	op->named = false;
	op->sent = 0;
}

void send_op_free(struct send_op *op)
{
	if (!op)
		return;
	send_op_next(op);
	free(op);
}

void send_op_free_cleanup(struct send_op **op)
{
	send_op_free(*op);
}

/*
 * What a receiver that asked for credentials sees is this process's number: only a privileged
 * process may give another. Ids are the sandbox's: without this, root's real ids would be sent.
 */
static void add_credentials(const struct call *call, const struct send_op *op,
			    struct msg_control *c)
{
	struct ucred cred = {getpid(), call->box->host_uid, call->box->host_gid};
	bool asked = c->creds || call->box->as_root;
	if (op->info.domain == AF_UNIX && asked)
		msg_control_add(c, SOL_SOCKET, SCM_CREDENTIALS, &cred, sizeof(cred));
}

static ssize_t send_part(struct call *call, struct send_op *op, struct iovec *data,
			 const struct msg_control *control, bool last)
{
	struct sock_ids ids;
	struct msghdr h = {.msg_iov = data,
			   .msg_iovlen = 1,
			   .msg_control = control->data,
			   .msg_controllen = control->len};
	int flags = op->flags | MSG_DONTWAIT | MSG_NOSIGNAL;
	if (!last)
		flags &= ~(MSG_EOR | MSG_OOB);
	if (op->named) {
		h.msg_name = &op->target.addr.storage;
		h.msg_namelen = op->target.addr.len;
	}
	if (!call_is_alive(call))
		return -ESRCH;
	if (!sock_ids_begin(call->box, &ids))
		return -EACCES;
	ssize_t r = sendmsg(op->fd, &h, flags);
	if (r < 0)
		r = -errno;
	sock_ids_end(&ids);
	return r;
}

/* Ancillary data goes with the first byte. */
static int make_control(struct call *call, const struct send_op *op, struct msg_control *ret)
{
	*ret = (struct msg_control){0};
	if (op->sent)
		return 0;
	int r = msg_control_make(call, &op->msg, op->info.domain == AF_UNIX, ret);
	if (r == 0)
		add_credentials(call, op, ret);
	return r;
}

/* Returns bytes sent, or a negative errno. */
static ssize_t send_chunk(struct call *call, struct send_op *op, char *buffer, size_t size)
{
	AUTO(msg_control_done) struct msg_control control = {0};
	int r = make_control(call, op, &control);
	if (r < 0)
		return r;
	ssize_t n = msg_gather(call, &op->msg, op->sent, buffer, size);
	if (n < 0)
		return n;
	bool whole = op->sent + (size_t)n == op->msg.total;
	if (op->info.type != SOCK_STREAM && !whole)
		return -EFAULT;
	struct iovec data = {buffer, (size_t)n};
	return send_part(call, op, &data, &control, whole);
}

static int send_stream(struct call *call, struct send_op *op)
{
	size_t left = op->msg.total - op->sent;
	size_t size = left < CHUNK ? left : CHUNK;
	auto_free char *buffer = xzalloc(size + 1);
	for (int i = 0; i < CHUNKS_PER_STEP; i++) {
		left = op->msg.total - op->sent;
		ssize_t r = send_chunk(call, op, buffer, left < size ? left : size);
		if (r < 0)
			return (int)r;
		op->sent += (size_t)r;
		if (op->sent >= op->msg.total)
			return 1;
	}
	return -EAGAIN;
}

static int check_datagram(const struct send_op *op)
{
	int space = 0;
	socklen_t n = sizeof(space);
	if (op->msg.total > DATAGRAM_MAX)
		return -EMSGSIZE;
	if (op->info.domain == AF_UNIX &&
	    getsockopt(op->fd, SOL_SOCKET, SO_SNDBUF, &space, &n) == 0 &&
	    (int64_t)op->msg.total > (int64_t)space - SKB_OVERHEAD)
		return -EMSGSIZE;
	return 0;
}

int send_step(struct call *call, struct send_op *op)
{
	if (op->info.type == SOCK_STREAM)
		return send_stream(call, op);
	int r = check_datagram(op);
	if (r < 0)
		return r;
	auto_free char *buffer = xzalloc(op->msg.total + 1);
	ssize_t n = send_chunk(call, op, buffer, op->msg.total);
	if (n < 0)
		return (int)n;
	op->sent = (size_t)n;
	return 1;
}
