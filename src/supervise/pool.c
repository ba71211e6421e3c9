/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Workers for what may take long: a path that is not in the kernel's cache, a file system across a
 * network. They are made at the first slow call, own no state of the loop, are capped, and are
 * never waited for: a piece of work that outlasts its time is answered with EIO by the loop. What a
 * worker has found is answered by the loop.
 *
 * A sandbox can make the kernel hold a worker (connect.c), as many as its share. Those that are
 * held take no place from others: there may be so many workers more.
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/util.h"
#include "supervise/supervisor_internal.h"

#define STACK_BYTES ((size_t)512 * 1024)
#define IDLE_MS	    10000 /* a worker without work ends after so long */

enum work_state { WORK_QUEUED, WORK_RUNNING, WORK_FINISHED };

struct work {
	struct work *next;
	struct supervised *sv; /* a reference */
	struct call call;
	struct verdict verdict;
	enum work_state state;
	bool abandoned; /* answered by the loop already */
	int64_t due_ms;
	int64_t since_ms; /* when a worker took it */
	bool held;	  /* for longer than it should be */
};

/* Shared with the workers, which may outlive the supervisor: the last one frees it. */
struct pool {
	pthread_mutex_t lock;
	pthread_cond_t more;
	unsigned int refs; /* under LOCK */
	bool stopped;
	struct work *all; /* queued, running and finished */
	unsigned int threads;
	unsigned int idle;
	unsigned int queued;
	int event_fd; /* tells the loop of what is finished */
};

static int64_t due_of(const struct work *work)
{
	return work->due_ms + __atomic_load_n(&work->call.patience_ms, __ATOMIC_RELAXED);
}

static void work_free(struct work *work)
{
	if (work->verdict.answer == ANSWER_FD && work->state == WORK_FINISHED)
		close(work->verdict.fd);
	call_done(&work->call);
	struct supervisor *sup = work->sv->sup;
	supervised_unref(work->sv);
	supervisor_put(sup);
	free(work);
}

/* With the lock held, which it releases. */
static void pool_unref(struct pool *pool)
{
	bool last = --pool->refs == 0;
	pthread_mutex_unlock(&pool->lock);
	if (!last)
		return;
	while (pool->all) {
		struct work *work = pool->all;
		pool->all = work->next;
		work_free(work);
	}
	close(pool->event_fd);
	pthread_cond_destroy(&pool->more);
	pthread_mutex_destroy(&pool->lock);
	free(pool);
}

/* Of the sandbox that has the fewest workers now; its oldest piece, which is the last one. */
static struct work *take_queued(struct pool *pool)
{
	struct work *found = NULL;
	for (struct work *work = pool->all; work; work = work->next) {
		if (work->state == WORK_QUEUED && work->sv->n_running < POOL_SHARE &&
		    (!found || work->sv->n_running <= found->sv->n_running))
			found = work;
	}
	if (found) {
		found->sv->n_running++;
		found->state = WORK_RUNNING;
		found->since_ms = supervise_now_ms();
		pool->queued--;
	}
	return found;
}

/* Waits for work. False when the worker should end. */
static bool await_work(struct pool *pool)
{
	struct timespec until;
	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += IDLE_MS / 1000;
	pool->idle++;
	int r = pthread_cond_timedwait(&pool->more, &pool->lock, &until);
	pool->idle--;
	return r == 0 || pool->queued;
}

static void *worker_main(void *arg)
{
	struct pool *pool = arg;
	uint64_t one = 1;
	pthread_mutex_lock(&pool->lock);
	for (;;) {
		struct work *work = pool->stopped ? NULL : take_queued(pool);
		if (!work) {
			if (!pool->stopped && await_work(pool))
				continue;
			break;
		}
		pthread_mutex_unlock(&pool->lock);
		struct verdict verdict = dispatch_call(&work->call);
		pthread_mutex_lock(&pool->lock);
		work->sv->n_running--;
		work->verdict = verdict;
		work->state = WORK_FINISHED;
		(void)!write(pool->event_fd, &one, sizeof(one));
	}
	pool->threads--;
	pool_unref(pool);
	return NULL;
}

/* A detached thread that takes no signal of the host's. */
static int start_worker(struct pool *pool)
{
	pthread_attr_t attr;
	pthread_t thread;
	sigset_t all;
	sigset_t old;
	sigfillset(&all);
	if (pthread_attr_init(&attr))
		return -EAGAIN;
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	pthread_attr_setstacksize(&attr, STACK_BYTES);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	pool->refs++;
	pool->threads++;
	int r = pthread_create(&thread, &attr, worker_main, pool);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	pthread_attr_destroy(&attr);
	if (r) {
		pool->refs--;
		pool->threads--;
	}
	return r ? -EAGAIN : 0;
}

/* --- The loop's side, with the supervisor's lock held ----------------------------------------- */

/* Takes one finished or abandoned piece out of the pool, NULL if there is none. */
static struct work *take_finished(struct pool *pool)
{
	for (struct work **p = &pool->all; *p; p = &(*p)->next) {
		struct work *work = *p;
		if (work->state == WORK_FINISHED) {
			*p = work->next;
			return work;
		}
	}
	return NULL;
}

static void on_finished(struct supervisor *sup, struct watch *watch, uint32_t events)
{
	struct pool *pool = sup->pool;
	uint64_t n = 0;
	(void)watch;
	(void)events;
	(void)!read(pool->event_fd, &n, sizeof(n));
	for (;;) {
		pthread_mutex_lock(&pool->lock);
		struct work *work = take_finished(pool);
		pthread_mutex_unlock(&pool->lock);
		if (!work)
			return;
		work->sv->n_working--;
		if (!work->abandoned && !work->sv->removed) {
			call_answer(&work->call, work->verdict);
			work->verdict = (struct verdict){.answer = ANSWER_GONE};
		}
		work_free(work);
	}
}

static int pool_start(struct supervisor *sup)
{
	if (sup->pool)
		return 0;
	struct pool *pool = xnew(struct pool);
	pthread_condattr_t attr;
	struct epoll_event ev = {.events = EPOLLIN, .data.ptr = &sup->pool_watch};
	pool->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (pool->event_fd < 0 ||
	    epoll_ctl(sup->epoll_fd, EPOLL_CTL_ADD, pool->event_fd, &ev) < 0) {
		util_close(pool->event_fd);
		free(pool);
		return -EAGAIN;
	}
	pthread_mutex_init(&pool->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&pool->more, &attr);
	pthread_condattr_destroy(&attr);
	pool->refs = 1;
	sup->pool_watch.fn = on_finished;
	sup->pool = pool;
	return 0;
}

/* When the next worker that is at work counts as held, if anything waits for one; 0: never. */
static int64_t next_held(const struct pool *pool)
{
	int64_t next = 0;
	for (const struct work *work = pool->queued ? pool->all : NULL; work; work = work->next) {
		int64_t at = work->since_ms + POOL_HELD_MS;
		if (work->state == WORK_RUNNING && !work->held && (!next || at < next))
			next = at;
	}
	return next;
}

/* Whether one more worker may be made. */
static bool has_place(struct pool *pool)
{
	unsigned int held = 0;
	int64_t now = supervise_now_ms();
	for (struct work *work = pool->all; work; work = work->next) {
		if (work->state == WORK_RUNNING && work->since_ms + POOL_HELD_MS <= now)
			work->held = true;
		held += work->state == WORK_RUNNING && work->held;
	}
	return pool->threads < POOL_THREADS + held && pool->threads < POOL_THREADS_MAX;
}

/* The queue is bounded by sandbox only: one that fills it takes no room from the others. */
bool call_may_work(const struct call *call)
{
	return supervised_of(call)->n_working < WORKING_MAX;
}

int pool_submit(struct supervisor *sup, struct call *call)
{
	struct supervised *sv = supervised_of(call);
	if (sv->n_working >= WORKING_MAX)
		return -EBUSY;
	if (pool_start(sup) < 0)
		return -EAGAIN;
	struct pool *pool = sup->pool;
	struct work *work = xnew(struct work);
	work->due_ms = supervise_now_ms() + sup->pool_timeout_ms;
	pthread_mutex_lock(&pool->lock);
	bool room = true;
	if (pool->idle <= pool->queued && has_place(pool))
		room = start_worker(pool) == 0 || pool->threads > 0;
	if (room) {
		call_move(&work->call, call);
		work->call.on_worker = true;
		work->verdict.answer = ANSWER_GONE;
		work->sv = sv;
		supervised_ref(sv);
		__atomic_add_fetch(&sup->refs, 1, __ATOMIC_RELAXED);
		sv->n_working++;
		work->next = pool->all;
		pool->all = work;
		pool->queued++;
		pthread_cond_signal(&pool->more);
	}
	pthread_mutex_unlock(&pool->lock);
	if (!room)
		free(work);
	return room ? 0 : -EAGAIN;
}

int64_t pool_next_ms(const struct supervisor *sup)
{
	struct pool *pool = sup->pool;
	int64_t next = 0;
	if (!pool)
		return 0;
	pthread_mutex_lock(&pool->lock);
	next = next_held(pool);
	for (const struct work *work = pool->all; work; work = work->next) {
		if (!work->abandoned && (!next || due_of(work) < next))
			next = due_of(work);
	}
	pthread_mutex_unlock(&pool->lock);
	return next;
}

/* What has taken too long is answered; a worker that is still at it finds nobody to tell. */
void pool_run_due(struct supervisor *sup)
{
	struct pool *pool = sup->pool;
	if (!pool)
		return;
	int64_t now = supervise_now_ms();
	pthread_mutex_lock(&pool->lock);
	for (struct work *work = pool->all; work; work = work->next) {
		if (work->abandoned || work->state == WORK_FINISHED || due_of(work) > now)
			continue;
		work->abandoned = true;
		/* The call itself stays the worker's: a copy without descriptors answers. */
		struct call copy = work->call;
		copy.n_fds = 0;
		copy.pidfd = -1;
		call_answer(&copy, verdict_errno(EIO));
		if (work->state == WORK_QUEUED) {
			work->state = WORK_FINISHED;
			pool->queued--;
		}
	}
	/* One each time: it takes what it finds, and the next one is held later. */
	if (has_place(pool) && pool->queued && !pool->idle)
		start_worker(pool);
	pthread_mutex_unlock(&pool->lock);
}

bool pool_drain(struct supervisor *sup, struct supervised *sv, int64_t ms)
{
	struct pool *pool = sup->pool;
	int64_t until = supervise_now_ms() + ms;
	for (;;) {
		if (!pool)
			return true;
		pthread_mutex_lock(&pool->lock);
		for (struct work *work = pool->all; work; work = work->next) {
			if (work->sv != sv || work->state != WORK_QUEUED)
				continue;
			work->abandoned = true;
			work->state = WORK_FINISHED;
			pool->queued--;
		}
		bool idle = sv->n_running == 0;
		pthread_mutex_unlock(&pool->lock);
		if (idle || supervise_now_ms() >= until)
			return idle;
		usleep(500);
	}
}

void pool_free(struct supervisor *sup)
{
	struct pool *pool = sup->pool;
	if (!pool)
		return;
	sup->pool = NULL;
	epoll_ctl(sup->epoll_fd, EPOLL_CTL_DEL, pool->event_fd, NULL);
	pthread_mutex_lock(&pool->lock);
	pool->stopped = true;
	pthread_cond_broadcast(&pool->more);
	pool_unref(pool);
}
