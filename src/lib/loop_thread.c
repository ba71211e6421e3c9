/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The thread lives as long as the process: starting it anew for each sandbox would cost more than
 * it does idle. A child that the host forks has no such thread, and gets one when it first needs
 * it.
 */
#include "lib/loop_thread.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include "supervise/supervisor.h"

static struct {
	pthread_once_t once;
	pthread_mutex_t lock;
	struct supervisor *sup;
	pid_t pid; /* of the process whose thread it is */
} loop_thread = {.once = PTHREAD_ONCE_INIT, .lock = PTHREAD_MUTEX_INITIALIZER};

static void *loop_main(void *arg)
{
	struct supervisor *sup = arg;
	for (;;)
		supervisor_step(sup, -1);
	return NULL;
}

static int start(struct supervisor *sup)
{
	pthread_attr_t attr;
	pthread_t thread;
	sigset_t all;
	sigset_t old;
	int r = pthread_attr_init(&attr);
	if (r)
		return r;
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	pthread_attr_setstacksize(&attr, (size_t)512 * 1024);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	r = pthread_create(&thread, &attr, loop_main, sup);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	pthread_attr_destroy(&attr);
	return r;
}

/* A fork of the host in another thread must not copy the lock while it is held. */
static void lock_for_fork(void)
{
	pthread_mutex_lock(&loop_thread.lock);
}

static void unlock_after_fork(void)
{
	pthread_mutex_unlock(&loop_thread.lock);
}

static void watch_forks(void)
{
	pthread_atfork(lock_for_fork, unlock_after_fork, unlock_after_fork);
}

struct supervisor *loop_thread_get(void)
{
	pthread_once(&loop_thread.once, watch_forks);
	pthread_mutex_lock(&loop_thread.lock);
	if (!loop_thread.sup || loop_thread.pid != getpid()) {
		struct supervisor *sup = supervisor_new();
		int r = sup ? start(sup) : errno;
		if (r && sup)
			supervisor_free(sup);
		loop_thread.sup = r ? NULL : sup;
		loop_thread.pid = getpid();
		errno = r;
	}
	struct supervisor *sup = loop_thread.sup;
	pthread_mutex_unlock(&loop_thread.lock);
	return sup;
}
