/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs one probe: the caller clones a cell, which has no exit signal and so is invisible to the
 * caller's wait(-1) and SIGCHLD; the cell clones the probe, watches its time, and collects whatever
 * the probe leaves behind. From the clone on nothing but raw system calls is made, since another
 * thread of the caller may have held any lock at that moment.
 */
#include <errno.h>
#include <linux/prctl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/util.h"
#include "confine/raw_util.h"
#include "lib/check.h"

#define PROBE_SECONDS 2
#define CELL_MS	      6000

/* --- In the probe ----------------------------------------------------------------------------- */

int probe_error(struct probe_result *res, const char *call, long e)
{
	if (res->status != CHECK_PENDING)
		return -1;
	res->call = call;
	res->error = (int)-e;
	res->status = CHECK_FAILED; /* the caller judges by the errno */
	return -1;
}

int probe_say(struct probe_result *res, enum check_status status, const char *note)
{
	if (res->status != CHECK_PENDING)
		return -1;
	res->note = note;
	res->status = (int)status;
	return -1;
}

int probe_expect(struct probe_result *res, const char *call, long r, long want)
{
	if (r == want)
		return 0;
	if (r < 0)
		return probe_error(res, call, r);
	if (res->status == CHECK_PENDING) {
		res->call = call;
		res->note = "it should have been refused, and was not";
		res->status = CHECK_FAILED;
	}
	return -1;
}

long probe_fork(struct probe_result *res, unsigned long flags)
{
	long parent = raw_syscall0(SYS_getpid);
	long pid = raw_syscall5(SYS_clone, flags | SIGCHLD, 0, 0, 0, 0);
	if (pid == 0) {
		raw_syscall5(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
		/* A parent that is gone already sends no signal. */
		if (!(flags & CLONE_NEWPID) && raw_syscall0(SYS_getppid) != parent)
			raw_exit(1);
	}
	if (pid < 0)
		probe_error(res, "clone", pid);
	return pid;
}

static int wait_pid(long pid, int options, siginfo_t *info)
{
	long r;
	do {
		raw_zero(info, sizeof(*info));
		r = raw_syscall5(SYS_waitid, P_PID, pid, info, WEXITED | __WALL | options, NULL);
	} while (r == -EINTR);
	return (int)r;
}

int probe_wait(struct probe_result *res, long pid)
{
	siginfo_t info;
	int r = wait_pid(pid, 0, &info);
	if (r < 0)
		return probe_error(res, "waitid", r);
	if (info.si_code == CLD_EXITED && info.si_status == 0)
		return 0;
	if (info.si_code != CLD_EXITED) {
		res->value = info.si_status;
		return probe_say(res, CHECK_FAILED,
				 "the process that tried it was killed by signal");
	}
	return probe_say(res, CHECK_FAILED, "the process that tried it gave up");
}

/* --- The cell --------------------------------------------------------------------------------- */

static _Noreturn void probe_child(const struct probe *p, const struct check_env *env,
				  struct probe_result *res)
{
	raw_syscall5(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
	raw_syscall2(SYS_setpgid, 0, 0);
	int r = p->fn(env, res, p->arg);
	if (res->status == CHECK_PENDING)
		res->status = r == 0 ? CHECK_OK : CHECK_FAILED;
	raw_exit(0);
}

/* Waits for SIGCHLD, which is blocked; returns what is left of LEFT_NS. */
static int64_t sleep_for_child(int64_t until_ns)
{
	int64_t left = until_ns - raw_monotonic_ns();
	if (left <= 0)
		return 0;
	raw_sigset set = 1ULL << (SIGCHLD - 1);
	int64_t ts[2] = {left / 1000000000, left % 1000000000};
	raw_syscall4(SYS_rt_sigtimedwait, &set, NULL, ts, sizeof(set));
	return until_ns - raw_monotonic_ns();
}

/* What the probe had started dies with it; nothing may stay a zombie or run on. */
static void collect_orphans(void)
{
	int64_t until = raw_monotonic_ns() + 1000000000;
	siginfo_t info;
	for (;;) {
		raw_zero(&info, sizeof(info));
		long r =
			raw_syscall5(SYS_waitid, P_ALL, 0, &info, WEXITED | WNOHANG | __WALL, NULL);
		if (r < 0)
			return;
		if (info.si_pid == 0 && sleep_for_child(until) <= 0)
			return;
	}
}

static void judge_end(const siginfo_t *info, bool timed_out, struct probe_result *res)
{
	if (timed_out) {
		res->status = CHECK_PENDING;
		probe_say(res, CHECK_FAILED, "it did not end within 2 s and was stopped");
	} else if (info->si_code != CLD_EXITED) {
		res->status = CHECK_PENDING;
		res->value = info->si_status;
		probe_say(res, CHECK_FAILED, "the process that tried it was killed by signal");
	}
}

static _Noreturn void cell_main(const struct probe *p, const struct check_env *env, long host,
				struct probe_result *res)
{
	uint64_t no_core[2] = {0, 0};
	struct raw_sigaction sa;
	raw_zero(&sa, sizeof(sa));
	raw_syscall4(SYS_rt_sigaction, SIGCHLD, &sa, NULL, sizeof(sa.mask));
	raw_syscall5(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
	raw_syscall5(SYS_prctl, PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
	raw_syscall4(SYS_prlimit64, 0, RLIMIT_CORE, no_core, NULL);
	if (raw_syscall0(SYS_getppid) != host)
		raw_exit(1);
	long pid = raw_syscall5(SYS_clone, SIGCHLD, 0, 0, 0, 0);
	if (pid == 0)
		probe_child(p, env, res);
	if (pid < 0) {
		probe_error(res, "clone", pid);
		raw_exit(1);
	}
	int64_t until = raw_monotonic_ns() + (int64_t)PROBE_SECONDS * 1000000000;
	siginfo_t info;
	bool timed_out = false;
	for (;;) {
		/* Not reaped yet: its number stays that of its process group, which goes with it.
		 */
		int r = wait_pid(pid, WNOHANG | WNOWAIT, &info);
		timed_out = r == 0 && info.si_pid != pid && sleep_for_child(until) <= 0;
		if (r < 0 || info.si_pid == pid || timed_out)
			break;
	}
	raw_syscall2(SYS_kill, pid, SIGKILL);
	raw_syscall2(SYS_kill, -pid, SIGKILL);
	wait_pid(pid, 0, &info);
	judge_end(&info, timed_out, res);
	collect_orphans();
	raw_exit(0);
}

/* --- In the caller ---------------------------------------------------------------------------- */

/* Waits for the cell, which ends by itself; a cell that does not is killed. */
static void await_cell(pid_t pid, int pidfd)
{
	struct pollfd pfd = {.fd = pidfd, .events = POLLIN};
	if (pidfd >= 0 && poll(&pfd, 1, CELL_MS) == 0)
		kill(pid, SIGKILL);
	siginfo_t info;
	while (waitid(P_PID, (id_t)pid, &info, WEXITED | __WALL) < 0 && errno == EINTR)
		;
	util_close(pidfd);
}

void probe_run(const struct probe *p, const struct check_env *env, struct probe_result *res)
{
	memset(res, 0, sizeof(*res));
	long host = getpid();
	int pidfd = -1;
	sigset_t all;
	sigset_t old;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	long pid = raw_syscall5(SYS_clone, CLONE_PIDFD, 0, &pidfd, 0, 0);
	if (pid == 0)
		cell_main(p, env, host, res);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (pid < 0) {
		probe_error(res, "clone", pid);
		return;
	}
	await_cell((pid_t)pid, pidfd);
	if (res->status == CHECK_PENDING)
		probe_say(res, CHECK_FAILED, "the process that watched over it died");
}
