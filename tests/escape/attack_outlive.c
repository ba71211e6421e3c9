/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Attacks that try to outlive the sandbox: each leaves processes behind and returns. The harness
 * finds survivors by a tag in their environment.
 *
 * Invariant: every process left behind ends by itself within ten minutes, and none makes more than
 * the number of processes that it was told.
 */
#include "attack.h"

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define LIFETIME_S 600

/* Lives on, deaf to what can be ignored. */
_Noreturn static void linger(void)
{
	for (int sig = 1; sig < 65; sig++)
		signal(sig, SIG_IGN);
	for (unsigned int left = LIFETIME_S; left > 0;)
		left = sleep(left);
	_exit(0);
}

static int leave_child(char *const *arg)
{
	pid_t pid = fork();

	if (pid == 0)
		linger();
	return outcome(pid);
}

static int leave_setsid(char *const *arg)
{
	pid_t pid = fork();

	if (pid == 0) {
		setsid();
		linger();
	}
	return outcome(pid);
}

static int leave_daemon(char *const *arg)
{
	pid_t pid = fork();
	int fd;

	if (pid < 0)
		return errno;
	if (pid > 0)
		return reap(pid);
	setsid();
	pid = fork();
	if (pid != 0)
		_exit(pid < 0 ? errno : 0);
	for (fd = 0; fd < 64; fd++)
		close(fd);
	linger();
}

/* Keeps the standard output of the sandbox open, so that a reader of the pipe waits for it. */
static int leave_pipe_holder(char *const *arg)
{
	pid_t pid = fork();

	if (pid == 0) {
		setsid();
		if (fork() == 0)
			linger();
		_exit(0);
	}
	return pid < 0 ? errno : reap(pid);
}

static int leave_stopped(char *const *arg)
{
	pid_t pid = fork();

	if (pid == 0) {
		setsid();
		raise(SIGSTOP);
		linger();
	}
	return outcome(pid);
}

static int leave_vfork(char *const *arg)
{
	pid_t pid = fork();

	if (pid == 0) {
		setsid();
		/* The parent of a vfork sits in an uninterruptible wait for its child. */
		if (syscall(SYS_vfork) == 0) {
			for (;;)
				pause();
		}
		_exit(0);
	}
	return outcome(pid);
}

static void *thread_main(void *arg)
{
	linger();
}

/* The leader of the thread group is gone, a thread goes on. */
static int leave_thread(char *const *arg)
{
	pid_t pid = fork();
	pthread_t thread;

	if (pid == 0) {
		setsid();
		if (pthread_create(&thread, NULL, thread_main, NULL) != 0)
			_exit(1);
		syscall(SYS_exit, 0);
	}
	return outcome(pid);
}

/* A subreaper of its own collects what it leaves behind. */
static int leave_subreaper(char *const *arg)
{
	pid_t pid = fork();

	if (pid == 0) {
		setsid();
		prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
		if (fork() == 0) {
			setsid();
			if (fork() == 0)
				linger();
			_exit(0);
		}
		linger();
	}
	return outcome(pid);
}

/* COUNT processes, each in a session of its own and a child of the one before. */
static int leave_chain(char *const *arg)
{
	long count = number(arg[0]);
	pid_t pid = fork();

	if (pid != 0)
		return outcome(pid);
	for (; count > 1; count--) {
		setsid();
		pid = fork();
		if (pid != 0)
			linger();
	}
	linger();
}

/*
 * COUNT lines of processes, each of which forks the next one, lives on for a moment and ends: who
 * kills what he sees never sees the last one. It ends by itself after some seconds, and at once
 * where the machine runs out of processes: unsandboxed, its dead wait for a slow init to collect
 * them.
 */
static int leave_storm(char *const *arg)
{
	long count = number(arg[0]);

	for (long i = 0; i < count; i++) {
		pid_t pid = fork();

		if (pid < 0)
			break;
		if (pid > 0)
			continue;
		for (long hop = 0; hop < 1500; hop++) {
			usleep(4000);
			if (fork() != 0) {
				usleep(20000);
				_exit(0);
			}
			setsid();
		}
		_exit(0);
	}
	return ATTACK_WORKED;
}

/* Handles what it can of the signals and forks again when it is told to go. */
static void fork_again(int sig)
{
	if (fork() == 0)
		linger();
}

static int leave_refork(char *const *arg)
{
	pid_t pid = fork();

	if (pid == 0) {
		setsid();
		for (int sig = 1; sig < 32; sig++)
			signal(sig, fork_again);
		for (int i = 0; i < LIFETIME_S; i++)
			sleep(1);
		_exit(0);
	}
	return outcome(pid);
}

const struct attack attacks_outlive[] = {
	{"leave_child", 0, leave_child},     {"leave_setsid", 0, leave_setsid},
	{"leave_daemon", 0, leave_daemon},   {"leave_pipe_holder", 0, leave_pipe_holder},
	{"leave_stopped", 0, leave_stopped}, {"leave_vfork", 0, leave_vfork},
	{"leave_thread", 0, leave_thread},   {"leave_subreaper", 0, leave_subreaper},
	{"leave_chain", 1, leave_chain},     {"leave_storm", 1, leave_storm},
	{"leave_refork", 0, leave_refork},   {0},
};
