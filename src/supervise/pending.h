/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls that wait: for a descriptor to become ready, or to be tried again. The loop keeps them,
 * looks whether their task still waits, and resumes them; nothing blocks meanwhile. A signal that
 * the task would take ends the wait with EINTR, as the kernel's own call would.
 */
#pragma once

#include "supervise/call.h"

struct pending_op {
	/*
	 * Called when the descriptor is ready or the time has come, with the same call.
	 * ANSWER_PENDING keeps waiting (FD, EVENTS, RETRY_MS may be changed before).
	 */
	struct verdict (*resume)(struct call *call, struct pending_op *op, bool timed_out);
	/* What a signal makes of it (CODE: the errno to answer with), e.g. a partial count; may be
	 * NULL. */
	struct verdict (*interrupted)(struct pending_op *op, int code);
	void (*free)(struct pending_op *op); /* releases DATA; called exactly once */
	void *data;
	int fd;		     /* waited for; borrowed from DATA; -1: none. Need not be O_NONBLOCK. */
	uint32_t events;     /* EPOLLIN, EPOLLOUT */
	int retry_ms;	     /* resumed after so many ms in any case; 0: never */
	int64_t deadline_ms; /* CLOCK_MONOTONIC; then resumed with TIMED_OUT set; 0: none */
	bool interruptible;  /* a signal ends it with EINTR */
};

/* Takes OP (copied; DATA with it). Returns the verdict to hand on: ANSWER_PENDING, or EAGAIN where
 * the sandbox has too many waiting calls already. */
struct verdict call_wait(struct call *call, const struct pending_op *op);
