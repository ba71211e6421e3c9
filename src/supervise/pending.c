/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls that wait. A task in a notification's wait takes no signal but a fatal one (the filter's
 * wait-killable flag), so that what was done for it is never done twice; for calls that would wait
 * long, the loop looks for signals itself and lets the call be interrupted as the kernel would.
 */
#include "supervise/pending.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/util.h"
#include "supervise/supervisor_internal.h"
#include "sys/at.h"

#define LOOK_MS	       10  /* how often a waiting task is looked at, where few wait */
#define LOOK_CROWD     64  /* that many more make it so much rarer */
#define ERESTARTSYS_NR 512 /* include/linux/errno.h of the kernel: restarts as SA_RESTART says */

struct waiting {
	struct watch watch; /* first: an event leads here */
	struct waiting *next;
	struct supervised *sv;
	struct call call;
	struct pending_op op;
	int watched_fd; /* -1: none */
	int64_t retry_at;
	int64_t look_at;
	bool signalled; /* a signal was pending at the last look */
};

static void stop_watching(struct supervisor *sup, struct waiting *w)
{
	if (w->watched_fd >= 0)
		epoll_ctl(sup->epoll_fd, EPOLL_CTL_DEL, w->watched_fd, NULL);
	w->watched_fd = -1;
}

static void on_ready(struct supervisor *sup, struct watch *watch, uint32_t events);

/* Looking must not become all that the loop does when many wait. */
static int64_t look_ms(const struct supervisor *sup)
{
	return LOOK_MS + LOOK_MS * (int64_t)(sup->n_waiting / LOOK_CROWD);
}

static void arm(struct supervisor *sup, struct waiting *w)
{
	int64_t now = supervise_now_ms();
	struct epoll_event ev = {.events = w->op.events | EPOLLONESHOT, .data.ptr = &w->watch};
	if (w->op.fd != w->watched_fd)
		stop_watching(sup, w);
	if (w->op.fd >= 0) {
		int op = w->watched_fd >= 0 ? EPOLL_CTL_MOD : EPOLL_CTL_ADD;
		if (epoll_ctl(sup->epoll_fd, op, w->op.fd, &ev) == 0)
			w->watched_fd = w->op.fd;
		else if (!w->op.retry_ms)
			w->op.retry_ms = LOOK_MS; /* it cannot be waited for: look again */
	}
	w->retry_at = w->op.retry_ms ? now + w->op.retry_ms : 0;
	if (!w->look_at)
		w->look_at = now + look_ms(sup);
}

static void unlink_waiting(struct supervisor *sup, struct waiting *w)
{
	for (struct waiting **p = &sup->waiting; *p; p = &(*p)->next) {
		if (*p == w) {
			*p = w->next;
			break;
		}
	}
	w->sv->n_waiting--;
	sup->n_waiting--;
}

static void free_waiting(struct supervisor *sup, struct waiting *w)
{
	stop_watching(sup, w);
	if (w->op.free)
		w->op.free(&w->op);
	call_done(&w->call);
	free(w);
}

/* Ends the wait with VERDICT. The list must not be walked over W any more. */
static void settle(struct supervisor *sup, struct waiting *w, struct verdict verdict)
{
	unlink_waiting(sup, w);
	stop_watching(sup, w);
	if (w->op.free)
		w->op.free(&w->op);
	call_answer(&w->call, verdict);
	free(w);
}

static void resume(struct supervisor *sup, struct waiting *w, bool timed_out)
{
	struct verdict verdict = w->op.resume(&w->call, &w->op, timed_out);
	if (verdict.answer == ANSWER_PENDING)
		arm(sup, w);
	else
		settle(sup, w, verdict);
}

static void on_ready(struct supervisor *sup, struct watch *watch, uint32_t events)
{
	struct waiting *w = (struct waiting *)(void *)watch;
	(void)events;
	/* An event fetched before this one was settled may name it: it is looked up first. */
	for (struct waiting *p = sup->waiting; p; p = p->next) {
		if (p == w) {
			resume(sup, w, false);
			return;
		}
	}
}

/*
 * Each waiting call holds a descriptor or more of this process, which may be a host that needs its
 * own: a sandbox gets a quarter of what there can be, all together half.
 */
static bool has_room(const struct supervisor *sup, const struct supervised *sv)
{
	struct rlimit limit;
	size_t most = WAITING_MAX;
	if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || sv->removed)
		return false;
	if (limit.rlim_cur / 4 < most)
		most = (size_t)limit.rlim_cur / 4;
	return sv->n_waiting < most && sup->n_waiting < limit.rlim_cur / 2;
}

struct verdict call_wait(struct call *call, const struct pending_op *op)
{
	struct supervised *sv = supervised_of(call);
	struct supervisor *sup = sv->sup;
	bool lock = call->on_worker;
	struct pending_op copy = *op;
	if (lock)
		pthread_mutex_lock(&sup->lock);
	bool room = has_room(sup, sv);
	if (room) {
		struct waiting *w = xnew(struct waiting);
		w->watch.fn = on_ready;
		w->sv = sv;
		w->op = copy;
		w->watched_fd = -1;
		call_move(&w->call, call);
		w->call.on_worker = false;
		/* Many may wait, and it can be had again. */
		w->call.pidfd = util_close(w->call.pidfd);
		sv->n_waiting++;
		sup->n_waiting++;
		w->next = sup->waiting;
		sup->waiting = w;
		arm(sup, w);
	}
	if (lock)
		pthread_mutex_unlock(&sup->lock);
	if (!room && copy.free)
		copy.free(&copy);
	if (!room)
		return verdict_errno(EAGAIN);
	return (struct verdict){.answer = ANSWER_PENDING};
}

/* --- Signals ---------------------------------------------------------------------------------- */

static uint64_t status_mask(const char *text, const char *name)
{
	const char *line = strstr(text, name);
	return line ? strtoull(line + strlen(name), NULL, 16) : 0;
}

/*
 * Whether the task would take a signal now: 0, EINTR, or the kernel's own number for "restart if
 * the handler says so", which may be answered only where that signal is certain to be this task's
 * (another thread could take one that is sent to the process, and then the number would be seen).
 */
static int signal_answer(struct waiting *w)
{
	char path[40];
	char text[4096];
	snprintf(path, sizeof(path), "/proc/%d/status", w->call.tid);
	if (at_read_file(AT_FDCWD, path, text, sizeof(text)) <= 0)
		return 0;
	uint64_t blocked = status_mask(text, "\nSigBlk:");
	uint64_t own = status_mask(text, "\nSigPnd:") & ~blocked;
	uint64_t shared = status_mask(text, "\nShdPnd:") & ~blocked;
	const char *threads = strstr(text, "\nThreads:");
	bool alone = threads && strtol(threads + 9, NULL, 10) == 1;
	bool before = w->signalled;
	w->signalled = own || shared;
	if (own || (shared && alone))
		return ERESTARTSYS_NR;
	/* A process's signal that nobody has taken for a while waits for this thread. */
	return shared && before ? EINTR : 0;
}

/* Looks after one waiting call. Returns whether it was settled. */
static bool look_after(struct supervisor *sup, struct waiting *w, int64_t now)
{
	if (w->look_at <= now) {
		w->look_at = now + look_ms(sup);
		if (!call_is_alive(&w->call)) {
			settle(sup, w, (struct verdict){.answer = ANSWER_GONE});
			return true;
		}
		int code = w->op.interruptible ? signal_answer(w) : 0;
		if (code) {
			struct verdict verdict = verdict_errno(code);
			if (w->op.interrupted)
				verdict = w->op.interrupted(&w->op, code);
			settle(sup, w, verdict);
			return true;
		}
	}
	if (w->op.deadline_ms && w->op.deadline_ms <= now) {
		resume(sup, w, true);
		return true;
	}
	if (w->retry_at && w->retry_at <= now) {
		resume(sup, w, false);
		return true;
	}
	return false;
}

int64_t pending_next_ms(const struct supervisor *sup)
{
	int64_t next = 0;
	for (const struct waiting *w = sup->waiting; w; w = w->next) {
		int64_t at = w->look_at;
		if (w->retry_at && w->retry_at < at)
			at = w->retry_at;
		if (w->op.deadline_ms && w->op.deadline_ms < at)
			at = w->op.deadline_ms;
		if (!next || at < next)
			next = at;
	}
	return next;
}

void pending_run_due(struct supervisor *sup)
{
	int64_t now = supervise_now_ms();
	/* Resuming removes no other, and what it adds comes in front: each is seen once. */
	struct waiting *w = sup->waiting;
	while (w) {
		struct waiting *next = w->next;
		look_after(sup, w, now);
		w = next;
	}
}

void pending_drop(struct supervisor *sup, struct supervised *sv)
{
	struct waiting **p = &sup->waiting;
	while (*p) {
		struct waiting *w = *p;
		if (w->sv != sv) {
			p = &w->next;
			continue;
		}
		*p = w->next;
		sv->n_waiting--;
		sup->n_waiting--;
		free_waiting(sup, w);
	}
}
