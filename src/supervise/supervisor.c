/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The loop. A listener is received from once per readiness that epoll reports, level-triggered: so
 * the receive never blocks (it ignores O_NONBLOCK), and several queued calls are all seen. What has
 * been removed is freed before the next wait only, since events that were fetched may name it.
 */
#include "supervise/supervisor.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/util.h"
#include "events/event.h"
#include "policy/policy.h"
#include "supervise/supervisor_internal.h"

#define EVENTS_PER_STEP 64

int64_t supervise_now_ms(void)
{
	struct timespec ts;
	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

/* --- Boxes ------------------------------------------------------------------------------------ */

struct box *box_new(void)
{
	struct supervised *sv = xnew(struct supervised);
	sv->box.listener = -1;
	sv->refs = sv->memory_refs = 1;
	for (size_t i = 0; i < TASKS_KEPT; i++)
		sv->tasks[i].pidfd = -1;
	sv->box.tasks = sv->tasks;
	pthread_mutex_init(&sv->event_lock, NULL);
	return &sv->box;
}

static struct supervised *supervised_from(struct box *box)
{
	return (struct supervised *)(void *)box;
}

struct supervised *supervised_of(const struct call *call)
{
	return supervised_from(call->box);
}

void box_on_event(struct box *box, box_event_fn fn, void *data)
{
	struct supervised *sv = supervised_from(box);
	pthread_mutex_lock(&sv->event_lock);
	sv->event_fn = fn;
	sv->event_data = data;
	pthread_mutex_unlock(&sv->event_lock);
}

void supervised_ref(struct supervised *sv)
{
	__atomic_add_fetch(&sv->refs, 1, __ATOMIC_RELAXED);
}

static void put_memory(struct supervised *sv)
{
	if (__atomic_sub_fetch(&sv->memory_refs, 1, __ATOMIC_ACQ_REL) == 0)
		free(sv);
}

/* Descriptors go at once, also where the memory may still be named by an event. */
void supervised_unref(struct supervised *sv)
{
	if (__atomic_sub_fetch(&sv->refs, 1, __ATOMIC_ACQ_REL))
		return;
	util_close(sv->box.listener);
	for (size_t i = 0; i < TASKS_KEPT; i++)
		util_close(sv->tasks[i].pidfd);
	box_release(&sv->box);
	pthread_mutex_destroy(&sv->event_lock);
	put_memory(sv);
}

void box_free(struct box *box)
{
	if (box)
		supervised_unref(supervised_from(box));
}

static void detach_own(struct supervisor *sup, struct supervised *sv);

/* --- One notification ------------------------------------------------------------------------- */

/* The kernel wants the request zeroed. A task that died meanwhile gives ENOENT. */
static void on_listener(struct supervisor *sup, struct watch *watch, uint32_t events)
{
	struct supervised *sv =
		(struct supervised *)(void *)((char *)watch - offsetof(struct supervised, watch));
	union {
		struct seccomp_notif req;
		char space[512];
	} u;
	if (sv->removed)
		return;
	if (!(events & EPOLLIN)) {
		/* Nobody is left who could call. */
		epoll_ctl(sup->epoll_fd, EPOLL_CTL_DEL, sv->box.listener, NULL);
		return;
	}
	memset(&u, 0, sup->req_size);
	if (ioctl(sv->box.listener, SECCOMP_IOCTL_NOTIF_RECV, &u.req) < 0)
		return;
	struct call call = {.box = &sv->box,
			    .id = u.req.id,
			    .tid = (pid_t)u.req.pid,
			    .data = u.req.data,
			    .pidfd = -1};
	if (call.data.nr >= 0 && call.data.nr <= SYSCALL_NR_MAX)
		call.row = sup->rows[call.data.nr];
	sup->handled++;
	call_run(&call);
}

/* --- The loop --------------------------------------------------------------------------------- */

static int query_sizes(struct supervisor *sup)
{
	struct seccomp_notif_sizes sizes = {0};
	if (syscall(SYS_seccomp, SECCOMP_GET_NOTIF_SIZES, 0, &sizes) < 0)
		return -errno;
	if (sizes.seccomp_notif > 512 || sizes.seccomp_notif_resp > 512)
		return -E2BIG;
	sup->req_size = sizes.seccomp_notif;
	if (sup->req_size < sizeof(struct seccomp_notif))
		sup->req_size = sizeof(struct seccomp_notif);
	sup->resp_size = sizes.seccomp_notif_resp;
	return 0;
}

/* What is done under it takes a moment: a spin is shorter than a sleep. */
static void init_lock(pthread_mutex_t *lock)
{
	pthread_mutexattr_t attr;
	pthread_mutexattr_init(&attr);
	pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_ADAPTIVE_NP);
	pthread_mutex_init(lock, &attr);
	pthread_mutexattr_destroy(&attr);
}

struct supervisor *supervisor_new(void)
{
	struct supervisor *sup = xnew(struct supervisor);
	sup->refs = 1;
	sup->pool_timeout_ms = POOL_TIMEOUT_MS;
	init_lock(&sup->lock);
	sup->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	struct epoll_event none;
	/* A wait that an outer filter refuses is met now: the loop could not live without it. */
	int r = sup->epoll_fd < 0 || epoll_wait(sup->epoll_fd, &none, 1, 0) != 0 ? -errno
										 : query_sizes(sup);
	if (r < 0) {
		supervisor_free(sup);
		errno = -r;
		return NULL;
	}
	enum filter_arch arch = filter_native_arch();
	for (size_t i = 0; i < syscall_table_n; i++) {
		int nr = syscall_table[i].nr[arch];
		if (nr >= 0 && nr <= SYSCALL_NR_MAX)
			sup->rows[nr] = &syscall_table[i];
	}
	return sup;
}

static void bury(struct supervisor *sup)
{
	while (sup->dead) {
		struct supervised *sv = sup->dead;
		sup->dead = sv->next_dead;
		put_memory(sv);
	}
	while (sup->dead_guests) {
		struct supervisor_guest *guest = sup->dead_guests;
		sup->dead_guests = guest->next;
		free(guest);
	}
}

/* A worker that is stuck may still look at the lock when the loop is long gone. */
void supervisor_put(struct supervisor *sup)
{
	if (__atomic_sub_fetch(&sup->refs, 1, __ATOMIC_ACQ_REL))
		return;
	pthread_mutex_destroy(&sup->lock);
	free(sup);
}

void supervisor_free(struct supervisor *sup)
{
	if (!sup)
		return;
	pool_free(sup);
	bury(sup);
	util_close(sup->epoll_fd);
	supervisor_put(sup);
}

int supervisor_fd(const struct supervisor *sup)
{
	return sup->epoll_fd;
}

/* The nearest time at which something is due, 0: none. */
static int64_t next_due(const struct supervisor *sup)
{
	int64_t next = pending_next_ms(sup);
	int64_t pool = pool_next_ms(sup);
	if (pool && (!next || pool < next))
		next = pool;
	for (const struct supervisor_guest *g = sup->guests; g; g = g->next) {
		if (g->due_ms && (!next || g->due_ms < next))
			next = g->due_ms;
	}
	return next;
}

static int timeout_locked(const struct supervisor *sup)
{
	int64_t due = next_due(sup);
	if (!due)
		return -1;
	int64_t left = due - supervise_now_ms();
	return left < 0 ? 0 : left > 3600000 ? 3600000 : (int)left;
}

int supervisor_timeout_ms(struct supervisor *sup)
{
	pthread_mutex_lock(&sup->lock);
	int ms = timeout_locked(sup);
	pthread_mutex_unlock(&sup->lock);
	return ms;
}

static void call_guest(struct supervisor_guest *guest, bool ready)
{
	int ms = guest->fn(guest->data, ready);
	guest->due_ms = ms < 0 ? 0 : supervise_now_ms() + ms;
}

static void run_guests_due(struct supervisor *sup)
{
	int64_t now = sup->guests ? supervise_now_ms() : 0;
	for (struct supervisor_guest *g = sup->guests; g; g = g->next) {
		if (!g->dead && g->due_ms && g->due_ms <= now)
			call_guest(g, false);
	}
}

int supervisor_step(struct supervisor *sup, int timeout_ms)
{
	struct epoll_event events[EVENTS_PER_STEP];
	pthread_mutex_lock(&sup->lock);
	bury(sup);
	int due = timeout_locked(sup);
	pthread_mutex_unlock(&sup->lock);
	if (due >= 0 && (timeout_ms < 0 || due < timeout_ms))
		timeout_ms = due;
	int n = epoll_wait(sup->epoll_fd, events, EVENTS_PER_STEP, timeout_ms);
	pthread_mutex_lock(&sup->lock);
	sup->handled = 0;
	for (int i = 0; i < n; i++) {
		struct watch *watch = events[i].data.ptr;
		watch->fn(sup, watch, events[i].events);
	}
	if (due >= 0) {
		pending_run_due(sup);
		pool_run_due(sup);
		run_guests_due(sup);
	}
	int handled = sup->handled;
	pthread_mutex_unlock(&sup->lock);
	return handled;
}

int supervisor_add_take(struct supervisor *sup, struct box *box)
{
	struct supervised *sv = supervised_from(box);
	struct epoll_event ev = {.events = EPOLLIN, .data.ptr = &sv->watch};
	uint64_t flags = SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP;
	/* Wake-ups on the caller's processor; kernels before 6.7 know nothing of it. */
	ioctl(box->listener, SECCOMP_IOCTL_NOTIF_SET_FLAGS, flags);
	pthread_mutex_lock(&sup->lock);
	sv->sup = sup;
	sv->watch.fn = on_listener;
	int r = epoll_ctl(sup->epoll_fd, EPOLL_CTL_ADD, box->listener, &ev) < 0 ? -errno : 0;
	if (r == 0)
		sv->memory_refs++; /* nobody else knows it yet: the lock holds the loop off */
	pthread_mutex_unlock(&sup->lock);
	if (r < 0)
		box_free(box);
	return r;
}

bool supervisor_drain(struct supervisor *sup, struct box *box, int ms)
{
	__atomic_store_n(&box->closing, true, __ATOMIC_RELAXED);
	return pool_drain(sup, supervised_from(box), ms);
}

void supervisor_remove(struct supervisor *sup, struct box *box)
{
	struct supervised *sv = supervised_from(box);
	box_on_event(box, NULL, NULL);
	pthread_mutex_lock(&sup->lock);
	epoll_ctl(sup->epoll_fd, EPOLL_CTL_DEL, box->listener, NULL);
	sv->removed = true;
	detach_own(sup, sv);
	pending_drop(sup, sv);
	sv->next_dead = sup->dead;
	sup->dead = sv;
	pthread_mutex_unlock(&sup->lock);
	supervised_unref(sv);
}

/* --- Guests ----------------------------------------------------------------------------------- */

static void on_guest(struct supervisor *sup, struct watch *watch, uint32_t events)
{
	struct supervisor_guest *guest = (struct supervisor_guest *)(void *)watch;
	(void)sup;
	(void)events;
	if (!guest->dead)
		call_guest(guest, true);
}

/* With the lock held. */
static struct supervisor_guest *attach(struct supervisor *sup, int fd,
				       int (*fn)(void *data, bool ready), void *data)
{
	struct supervisor_guest *guest = xnew(struct supervisor_guest);
	struct epoll_event ev = {.events = EPOLLIN, .data.ptr = &guest->watch};
	guest->watch.fn = on_guest;
	guest->fd = fd;
	guest->fn = fn;
	guest->data = data;
	if (epoll_ctl(sup->epoll_fd, EPOLL_CTL_ADD, fd, &ev) < 0) {
		free(guest);
		return NULL;
	}
	guest->next = sup->guests;
	sup->guests = guest;
	return guest;
}

static void detach(struct supervisor *sup, struct supervisor_guest *guest)
{
	epoll_ctl(sup->epoll_fd, EPOLL_CTL_DEL, guest->fd, NULL);
	for (struct supervisor_guest **p = &sup->guests; *p; p = &(*p)->next) {
		if (*p == guest) {
			*p = guest->next;
			break;
		}
	}
	guest->dead = true;
	guest->next = sup->dead_guests;
	sup->dead_guests = guest;
}

struct supervisor_guest *supervisor_attach(struct supervisor *sup, int fd,
					   int (*fn)(void *data, bool ready), void *data)
{
	pthread_mutex_lock(&sup->lock);
	struct supervisor_guest *guest = attach(sup, fd, fn, data);
	pthread_mutex_unlock(&sup->lock);
	return guest;
}

void supervisor_detach(struct supervisor *sup, struct supervisor_guest *guest)
{
	if (!guest)
		return;
	pthread_mutex_lock(&sup->lock);
	detach(sup, guest);
	pthread_mutex_unlock(&sup->lock);
}

int box_attach(struct box *box, int fd, int (*fn)(void *data, bool ready), void *data)
{
	struct supervised *sv = supervised_from(box);
	struct supervisor_guest *guest = attach(sv->sup, fd, fn, data);
	if (!guest)
		return -errno;
	guest->next_own = sv->own_guests;
	sv->own_guests = guest;
	return 0;
}

static void detach_own(struct supervisor *sup, struct supervised *sv)
{
	while (sv->own_guests) {
		struct supervisor_guest *guest = sv->own_guests;
		sv->own_guests = guest->next_own;
		detach(sup, guest);
	}
}
