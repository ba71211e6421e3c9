/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Between the files of the engine: loop (supervisor.c), waiting calls (pending.c), workers
 * (pool.c), answers (answer.c) and dispatch (dispatch.c).
 */
#pragma once

#include <pthread.h>

#include "supervise/call.h"
#include "supervise/handlers/handlers.h"
#include "supervise/pending.h"
#include "supervise/supervisor.h"

/* What an epoll event leads to; embedded in its owner, which outlives the step. */
struct watch {
	void (*fn)(struct supervisor *sup, struct watch *watch, uint32_t events);
};

struct waiting;
struct pool;

/* A task that has called lately. Its pidfd names it for ever: a number is given to others. */
struct task {
	pid_t tid;
	int pidfd; /* owned; -1: no task here */
};

enum { TASKS_KEPT = 8 };

/* A box with what the engine keeps of it; BOX comes first, so that a call's box leads here. */
struct supervised {
	struct box box;
	struct watch watch;
	struct supervisor *sup;
	struct supervised *next_dead;
	unsigned int refs; /* atomic: the owner's one, and one per piece of work in the pool */
	/* atomic: one of what REFS hold, one of the loop's fetched events */
	unsigned int memory_refs;
	bool removed;
	struct task tasks[TASKS_KEPT];	     /* the loop's alone, by the number's low bits */
	struct supervisor_guest *own_guests; /* of box_attach, by their NEXT_OWN */
	size_t n_waiting;
	size_t n_working;	/* pieces in the pool */
	unsigned int n_running; /* of them, under the pool's lock: with a worker now */
	pthread_mutex_t event_lock;
	box_event_fn event_fn;
	void *event_data;
};

struct supervisor_guest {
	struct watch watch;
	struct supervisor_guest *next;
	struct supervisor_guest *next_own;
	int fd;
	int (*fn)(void *data, bool ready);
	void *data;
	int64_t due_ms; /* 0: never */
	bool dead;
};

struct supervisor {
	unsigned int refs;    /* atomic: the owner's one, and one per piece of work in the pool */
	pthread_mutex_t lock; /* held while anything is handled, never while waiting */
	int epoll_fd;
	struct watch pool_watch;
	struct pool *pool; /* made with the first piece of work */
	struct waiting *waiting;
	size_t n_waiting;
	struct supervised *dead; /* removed; their memory is freed before the next wait */
	struct supervisor_guest *guests;
	struct supervisor_guest *dead_guests;
	int handled; /* notifications in this step */
	int64_t pool_timeout_ms;
	uint16_t req_size; /* what the kernel's structures take (seccomp(2)) */
	uint16_t resp_size;
	const struct syscall_row *rows[SYSCALL_NR_MAX + 1]; /* of this architecture */
};

enum {
	WAITING_MAX = 512, /* calls of one sandbox that may wait */
	WORKING_MAX = 32,  /* pieces of one sandbox in the pool */
	POOL_THREADS = 8,
	POOL_SHARE = 6, /* of them, for one sandbox: whose work hangs leaves some to the others */
	POOL_THREADS_MAX = 256, /* with those that are held */
	POOL_HELD_MS = 250,
	POOL_TIMEOUT_MS = 30000,
};

int64_t supervise_now_ms(void);
void supervisor_put(struct supervisor *sup);
struct supervised *supervised_of(const struct call *call);
void supervised_ref(struct supervised *sv);
void supervised_unref(struct supervised *sv);

/* Which handler a call goes to, and what it says. */
struct verdict dispatch_call(struct call *call);
/* Runs CALL, answers it if it can be answered now, and releases it. */
void call_run(struct call *call);
/* Answers CALL and releases it; for ANSWER_WORKER and ANSWER_PENDING its contents have moved. */
void call_answer(struct call *call, struct verdict verdict);
/* Releases what CALL holds. */
void call_done(struct call *call);
/* Moves what FROM holds. */
void call_move(struct call *to, struct call *from);

/* Waiting calls: all with the supervisor's lock held. */
int64_t pending_next_ms(const struct supervisor *sup); /* 0: none */
void pending_run_due(struct supervisor *sup);
void pending_drop(struct supervisor *sup, struct supervised *sv); /* all of SV's */

/* The pool. Takes CALL's contents if it returns 0; -EBUSY: no room now, -EAGAIN: no worker can be
 * made. */
int pool_submit(struct supervisor *sup, struct call *call);
void pool_free(struct supervisor *sup);
/* Drops what is queued of SV and waits until no worker is at work for it: whether none is. */
bool pool_drain(struct supervisor *sup, struct supervised *sv, int64_t ms);
int64_t pool_next_ms(const struct supervisor *sup);
void pool_run_due(struct supervisor *sup);
