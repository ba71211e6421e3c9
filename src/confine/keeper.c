/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The keeper (see job.h): raw system calls only, since it runs in the host's memory. Should the
 * guardian be killed, it takes its place for as long as it needs to end what is left.
 */
#include <errno.h>
#include <linux/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "confine/job.h"
#include "confine/raw_util.h"

static int exec_guardian(void *arg)
{
	struct job *job = arg;
	int keep[] = {job->ctl,	     job->host_pidfd, job->memfd,	 job->null_fd,
		      job->lock_fd,  job->tmp_fd,     job->entry.top_fd, job->stdio[0],
		      job->stdio[1], job->stdio[2],   job->place_fd};
	for (size_t i = 0; i < sizeof(keep) / sizeof(keep[0]); i++) {
		if (keep[i] >= 0)
			raw_syscall3(SYS_fcntl, keep[i], F_SETFD, 0);
	}
	char *const env[] = {NULL};
	long r = raw_syscall3(SYS_execve, job->guardian_path, job->guardian_argv, env);
	job_fail(job, STEP_GUARDIAN_EXEC, (int)-r, 0);
	return 1;
}

static void record_end(struct job *job, const siginfo_t *info, const struct rusage *ru)
{
	struct job_state *st = &job->state;
	st->wait_code = info->si_code;
	st->wait_status = info->si_status;
	st->end_ns = raw_monotonic_ns();
	st->max_rss_kib = ru->ru_maxrss;
	if (st->end == END_NONE)
		st->end = END_MAIN;
}

/*
 * The guardian was killed: its orphans have come to the keeper, which ends them in its place. A
 * signal to all reaches the keeper's own domain only (job_scope_signals).
 */
static void end_orphans(struct job *job)
{
	for (;;) {
		siginfo_t info = {0};
		raw_syscall2(SYS_kill, -1, SIGKILL);
		long r = raw_syscall5(SYS_waitid, P_ALL, 0, &info, WEXITED | __WALL, NULL);
		if (r < 0 && r != -EINTR)
			break;
	}
	job_cleanup(job);
}

static int wait_for(struct job *job, int pid)
{
	siginfo_t info = {0};
	struct rusage ru = {0};
	long r;
	do {
		r = raw_syscall5(SYS_waitid, P_PID, pid, &info, WEXITED | __WALL, &ru);
	} while (r == -EINTR);
	if (!job->supervised && r == 0)
		record_end(job, &info, &ru);
	if (job->supervised && r == 0 && info.si_code != CLD_EXITED)
		end_orphans(job);
	return r < 0;
}

int keeper_main(void *arg)
{
	struct job *job = arg;
	struct raw_sigaction sa;
	raw_zero(&sa, sizeof(sa));
	raw_syscall4(SYS_rt_sigaction, SIGCHLD, &sa, NULL, sizeof(sa.mask));
	if (job->supervised) {
		long r = raw_syscall5(SYS_prctl, PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
		if (r < 0)
			return -job_fail(job, STEP_SUBREAPER, (int)-r, 1);
		if (job_scope_signals(job) < 0)
			return 1;
	}
	unsigned long flags = CLONE_VM | CLONE_VFORK | SIGCHLD;
	int (*fn)(void *) = job->supervised ? exec_guardian : child_main;
	if (!job->supervised) {
		if (job->separate_vm)
			flags &= ~(unsigned long)CLONE_VM;
		if (job->map_ids)
			flags |= CLONE_NEWUSER;
		job->state.start_ns = raw_monotonic_ns();
	}
	void *stack = job->supervised ? job->guardian_stack : job->child_stack;
	long pid = raw_clone(flags, stack, NULL, fn, job);
	if (pid < 0) {
		job_fail(job, job->supervised ? STEP_GUARDIAN_EXEC : STEP_CHILD_CLONE, (int)-pid,
			 1);
		return 1;
	}
	if (!job->supervised && job->state.step == STEP_NONE) {
		struct job_msg msg = {.kind = REPORT_STARTED, .value = (int)pid};
		raw_syscall6(SYS_sendto, job->ctl, (long)&msg, sizeof(msg), MSG_NOSIGNAL, 0, 0);
	}
	int keep[] = {job->lock_fd, job->tmp_fd, job->entry.top_fd, job->place_fd};
	job_close_except(keep, sizeof(keep) / sizeof(keep[0]));
	return wait_for(job, (int)pid);
}
