/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One system call that a sandboxed task waits for: what a handler sees of it, and what it may
 * answer. Everything that is read from the task is hostile and is read once, into our memory; what
 * was judged is what is used. A handler never blocks: what may take long says so and is run again
 * on a worker, or waits as a pending operation (pending.h).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "policy/net_table.h"
#include "policy/syscall.h"
#include "sys/uapi.h"

struct box;

struct call {
	struct box *box; /* borrowed: the sandbox */
	const struct syscall_row *row;
	uint64_t id; /* of the notification */
	pid_t tid;   /* of the task, as this process sees it; > 0 */
	struct seccomp_data data;
	int pidfd; /* of the thread (of its group on kernels before 6.9); -1 until asked for */
	bool pidfd_kept; /* it belongs to the sandbox's table of tasks */
	bool on_worker;	 /* may block, within reason */
	int fds[8]; /* copies of the task's descriptors that call_fd gave, closed with the call */
	size_t n_fds;
	/* A handler's own, kept while the call waits and is run again; 0 at first. */
	int64_t wait_deadline_ms;
	int wait_ms;
	int64_t patience_ms; /* atomic: how much longer than usual it may stay with a worker */
	void *kept;
	void (*free_kept)(void *kept); /* NULL: nothing is kept */
	int64_t room_until_ms;	       /* the engine's: until when it waits for a worker's room */
	/* ask.h: the destination that is asked about for it, and what was answered. */
	struct net_point ask_point;
	bool ask_wanted;
	unsigned char ask_answer; /* enum ask_answer */
};

/* What becomes of the call. Zeroed: refused with EACCES. */
enum answer {
	ANSWER_ERRNO,	 /* fails with VALUE, a positive errno; EACCES if that is 0 */
	ANSWER_VALUE,	 /* returns VALUE without being executed */
	ANSWER_CONTINUE, /* the kernel executes it: only if registers alone decided, or if what the
			    kernel checks behind it is the real guard */
	ANSWER_FD,	 /* FD (taken, closed here) is put into the task and its number returned */
	ANSWER_WORKER,	 /* nothing was done: run the handler again where it may block */
	ANSWER_PENDING,	 /* a pending operation will answer (pending.h) */
	ANSWER_GONE,	 /* the task is gone: nobody to answer */
};

struct verdict {
	enum answer answer;
	int64_t value;
	int fd;
	bool cloexec;
};

static inline struct verdict verdict_errno(int code)
{
	return (struct verdict){.answer = ANSWER_ERRNO, .value = code};
}

static inline struct verdict verdict_value(int64_t value)
{
	return (struct verdict){.answer = ANSWER_VALUE, .value = value};
}

static inline struct verdict verdict_continue(void)
{
	return (struct verdict){.answer = ANSWER_CONTINUE};
}

/* The result of a system call made for the task: VALUE as it is, or -1 with errno in CODE. */
static inline struct verdict verdict_result(int64_t value, int code)
{
	return value < 0 ? verdict_errno(code) : verdict_value(value);
}

/* Takes FD. */
static inline struct verdict verdict_fd(int fd, bool cloexec)
{
	return (struct verdict){.answer = ANSWER_FD, .fd = fd, .cloexec = cloexec};
}

/* A handler: one per family of system calls (handlers/). */
typedef struct verdict (*call_handler)(struct call *call);

/* Argument I as the kernel takes an int, or whole. */
static inline int call_int(const struct call *call, unsigned int i)
{
	return (int)(uint32_t)call->data.args[i];
}

static inline uint64_t call_arg(const struct call *call, unsigned int i)
{
	return call->data.args[i];
}

/* Whether the task still waits for this very call: what was read of it came from it. */
bool call_is_alive(const struct call *call);
/*
 * Reads N bytes (of the caller's own bound) at ADDR of the task's memory. 0, -EFAULT where it is
 * not mapped, -EACCES where this process may not read the task (it is not dumpable), -ESRCH when
 * the task is gone. Nothing is left half-read.
 */
int call_read(struct call *call, uint64_t addr, void *ret_data, size_t n);
/*
 * Reads a NUL-terminated text of less than SIZE bytes, page by page. Returns its length, or
 * -ENAMETOOLONG where there is no NUL in reach, or what call_read returns.
 */
ssize_t call_read_str(struct call *call, uint64_t addr, char *ret_text, size_t size);
/* Writes N bytes to the task's memory, for results only (sizes, addresses): as call_read. */
int call_write(struct call *call, uint64_t addr, const void *data, size_t n);
/* A pidfd of the task, borrowed, or a negative errno. */
int call_pidfd(struct call *call);
/*
 * A copy of the task's descriptor FD (the same open file description), borrowed: it is closed when
 * the call has been answered. Negative errno (-EBADF and so on; -EPERM where pidfd_getfd is
 * barred).
 */
int call_fd(struct call *call, int fd);
/* The same, owned by the caller. */
int call_fd_take(struct call *call, int fd);
/*
 * The object behind the task's descriptor FD as an O_PATH descriptor, owned by the caller: works
 * for files where pidfd_getfd is barred. AT_FDCWD: its working directory. Negative errno.
 */
int call_fd_path(struct call *call, int fd);

/* Whether ANSWER_WORKER would find room now: else the call would fail with EAGAIN. */
bool call_may_work(const struct call *call);

/* What a refusal tells (docs: events). Texts are borrowed for the call. */
struct refusal {
	const char *op;	      /* "connect", "chmod" */
	const char *object;   /* what was asked for, as the task named it */
	const char *resolved; /* what that turned out to be, NULL: the same or unknown */
	const char *layer;    /* NULL: "supervisor" */
	const char *rule;     /* in words: "no write grant covers it" */
	const char *allow;    /* the flag that would allow it, shell-quoted; NULL: none would */
	int error;
};
/* Tells REFUSAL as an event and returns the verdict that goes with it. */
struct verdict call_refuse(struct call *call, const struct refusal *refusal);
/* Tells it alone. Without an errno it is news, and no refusal. */
void call_tell(struct call *call, const struct refusal *refusal);
/* What the task's program calls itself; chosen by the sandbox. "" if it is not known. */
void call_program(const struct call *call, char *ret_name, size_t size);
