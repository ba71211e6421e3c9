/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A send call under way: what was read of it, how far it is. It survives the handler where it has
 * to wait; descriptors to pass and payload are then read again, so that many waiting senders hold
 * little.
 */
#pragma once

#include "supervise/msg.h"
#include "supervise/pending.h"
#include "supervise/sock.h"

struct send_op {
	int fd; /* borrowed from the call: the copy of the task's socket */
	struct sock_info info;
	int flags;	  /* as the task gave them */
	const char *name; /* of the call, for events */
	/* sendmmsg */
	bool many;
	uint64_t vector;
	unsigned int n;
	unsigned int done; /* messages sent */
	/* the current message */
	bool loaded;
	struct msg msg;
	bool named; /* TARGET is where it goes */
	struct sock_target target;
	size_t sent; /* bytes of a stream */
};

struct send_op *send_op_new(void);
void send_op_free(struct send_op *op);
void send_op_free_cleanup(struct send_op **op);
/* Drops the current message. */
void send_op_next(struct send_op *op);

/*
 * Sends as much of the current message as can be sent at once. 1: it is sent, OP->sent tells how
 * much; -EAGAIN: the rest would wait; another negative errno.
 */
int send_step(struct call *call, struct send_op *op);
