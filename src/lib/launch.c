/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Starts one sandbox: control socket, watch on the host, clone, and the wait for the command to be
 * executing. The host's part of the two-process start; the rest is src/confine.
 */
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <dlfcn.h>

#include "base/util.h"
#include "confine/job.h"
#include "lib/call_reason.h"
#include "lib/launch.h"
#include "lib/report.h"
#include "lib/supervision.h"
#include "supervise/supervisor.h"
#include "sys/raw.h"

#ifndef P_PIDFD
#define P_PIDFD 3
#endif

/*
 * The absolute path of the file that this code was loaded from, or "". Where it was loaded by a
 * relative name, only the kernel still knows: the working directory may have changed.
 */
static void own_file(char *ret_path, size_t size)
{
	Dl_info info;
	ret_path[0] = '\0';
	if (dladdr((void *)(uintptr_t)sandlock_version, &info) && info.dli_fname &&
	    info.dli_fname[0] == '/') {
		snprintf(ret_path, size, "%s", info.dli_fname);
		return;
	}
	FILE *maps = fopen("/proc/self/maps", "re");
	char line[PATH_MAX + 128];
	uintptr_t here = (uintptr_t)sandlock_version;
	while (maps && fgets(line, sizeof(line), maps)) {
		unsigned long lo = 0;
		unsigned long hi = 0;
		char *path = strchr(line, '/');
		/* NOLINTNEXTLINE(cert-err34-c): the kernel writes these numbers */
		if (path && sscanf(line, "%lx-%lx", &lo, &hi) == 2 && here >= lo && here < hi) {
			path[strcspn(path, "\n")] = '\0';
			snprintf(ret_path, size, "%s", path);
			break;
		}
	}
	if (maps)
		fclose(maps);
	/* The command itself, linked statically: its file needs no grant of /proc to be named. */
	ssize_t n = ret_path[0] ? 0 : readlink("/proc/self/exe", ret_path, size - 1);
	if (n > 0)
		ret_path[n] = '\0';
}

/* A program that nobody else can have put there: ours or root's, and not open to others. */
static bool is_trusted_program(const char *path)
{
	struct stat st;
	return stat(path, &st) == 0 && S_ISREG(st.st_mode) && (st.st_mode & 0111) &&
	       !(st.st_mode & 0002) && (st.st_uid == 0 || st.st_uid == geteuid());
}

/* The guardian program: beside this library or command, or in libexec. Owned by the caller. */
static char *find_guardian(void)
{
	static const char *const rel[] = {"sandlock-guardian",
					  "../libexec/sandlock/sandlock-guardian",
					  "../../libexec/sandlock/sandlock-guardian"};
	char self[PATH_MAX];
	own_file(self, sizeof(self));
	const char *dir = dirname(self);
	for (size_t i = 0; dir[0] == '/' && i < ARRAY_SIZE(rel); i++) {
		char *path = xasprintf("%s/%s", dir, rel[i]);
		if (is_trusted_program(path))
			return path;
		free(path);
	}
	return xstrdup(SANDLOCK_LIBEXECDIR "/sandlock-guardian");
}

static int plan_guardian(struct job *job)
{
	char addr[32];
	char size[32];
	char fd[32];
	auto_free char *path = find_guardian();
	snprintf(addr, sizeof(addr), "%lx", (unsigned long)(uintptr_t)job);
	snprintf(size, sizeof(size), "%lx", (unsigned long)job->size);
	snprintf(fd, sizeof(fd), "%x", (unsigned int)job->memfd);
	const char *words[] = {"sandlock-guardian", addr, size, fd};
	char **argv = job_alloc(job, 5 * sizeof(char *));
	job->guardian_path = job_strdup(job, path);
	for (size_t i = 0; argv && i < 4; i++) {
		argv[i] = (char *)(uintptr_t)job_strdup(job, words[i]);
		if (!argv[i])
			return -E2BIG;
	}
	job->guardian_argv = argv;
	return argv && job->guardian_path ? 0 : -E2BIG;
}

static pid_t clone_keeper(const struct job_request *req, struct job *job, int *ret_pidfd)
{
	unsigned long flags = CLONE_VM | CLONE_PIDFD; /* no exit signal: wait(-1) never sees it */
	int (*fn)(void *) = keeper_main;
	void *stack = job->keeper_stack;
	if (req->rung == RUNG_BASE) {
		flags |= CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWUTS;
		if (!job->as_root)
			flags |= CLONE_NEWUSER;
		fn = guardian_main;
		stack = job->guardian_stack;
	}
	/*
	 * Nothing of the host's handlers may run in a process that shares its memory. The system
	 * call itself is made, since libc leaves its own two signals out of any mask.
	 */
	uint64_t all = ~0ULL;
	uint64_t old = 0;
	long r = raw_syscall4(SYS_rt_sigprocmask, SIG_SETMASK, &all, &old, sizeof(all));
	if (r < 0) {
		job_fail(job, STEP_SIGNAL_MASK, (int)-r, 1);
		return (pid_t)r;
	}
	long pid = raw_clone(flags, stack, ret_pidfd, fn, job);
	raw_syscall4(SYS_rt_sigprocmask, SIG_SETMASK, &old, NULL, sizeof(old));
	return (pid_t)pid;
}

static void reap_keeper(struct sandlock_process *p)
{
	siginfo_t info;
	while (waitid((idtype_t)P_PIDFD, (id_t)p->keeper_pidfd, &info, WEXITED | __WALL) < 0 &&
	       errno == EINTR)
		;
}

/* Handles the reports that are there. 1 once the command is executing, else 0, or a code < 0. */
static int start_reports(struct job_request *req, struct sandlock_process *p,
			 struct sandlock_error *err)
{
	struct report_msg msg;
	while (report_receive(p->ctl, &msg) == 1) {
		if (msg.kind == REPORT_CHILD)
			p->child_pid = msg.pid;
		if (msg.kind == REPORT_PTY)
			p->pty_fd = msg.fd;
		/* Stopped from the terminal in front of its exec: there is no job to stop yet. */
		struct job_msg go_on = {.kind = JOB_SIGNAL, .value = SIGCONT};
		if (msg.kind == REPORT_STOPPED)
			(void)!send(p->ctl, &go_on, sizeof(go_on), MSG_NOSIGNAL | MSG_DONTWAIT);
		if (msg.kind == REPORT_LISTENER || msg.kind == REPORT_STARTED)
			p->guardian_pid = msg.pid;
		if (msg.kind == REPORT_LISTENER) {
			int r = supervision_start(req, p, msg.fd, err);
			if (r < 0)
				return r;
		}
		if (msg.kind == REPORT_STARTED)
			return 1;
	}
	return 0;
}

/*
 * Waits until the command executes (1) or its keeper is gone (0), or a code < 0. From the listener
 * on, calls of the start itself may come to the supervisor, which is stepped here if it is ours.
 */
static int await_start(struct job_request *req, struct sandlock_process *p,
		       struct sandlock_error *err)
{
	struct pollfd pfd[3] = {{.fd = p->ctl, .events = POLLIN},
				{.fd = p->keeper_pidfd, .events = POLLIN},
				{.fd = -1, .events = POLLIN}};
	for (;;) {
		int timeout = -1;
		if (p->own_loop) {
			pfd[2].fd = supervisor_fd(p->sup);
			timeout = supervisor_timeout_ms(p->sup);
		}
		int n = poll(pfd, 3, timeout);
		if (n < 0)
			continue;
		int r = pfd[0].revents & POLLIN ? start_reports(req, p, err) : 0;
		if (r)
			return r;
		if ((pfd[0].revents & (POLLHUP | POLLERR)) && !(pfd[0].revents & POLLIN))
			pfd[0].fd = -1;
		if (pfd[1].revents)
			return 0;
		if (p->own_loop && (n == 0 || pfd[2].revents))
			supervisor_step(p->sup, 0);
	}
}

void warn_missing(const struct job_request *req, const struct job *job)
{
	for (size_t i = 0; i < job->n_rules; i++) {
		if (job->rules[i].missing && !job->rules[i].quiet)
			warn_add(req->warnings, "read grant %s names nothing here and was left out",
				 job->rules[i].path);
	}
	if (job->state.tmp_errno)
		warn_add(req->warnings, "no private TMPDIR could be made in /tmp (%s)",
			 strerror(job->state.tmp_errno));
}

static int open_channels(struct job *job, struct sandlock_process *p, struct sandlock_error *err)
{
	int pair[2];
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return call_fail(err, "Cannot make the control socket", "socketpair", 0, errno);
	p->ctl = pair[0];
	job->ctl = pair[1];
	int on = 1;
	setsockopt(p->ctl, SOL_SOCKET, SO_PASSCRED, &on, sizeof(on));
	if (!job->supervised)
		return 0;
	job->host_pidfd = (int)syscall(SYS_pidfd_open, getpid(), 0);
	if (job->host_pidfd < 0)
		return call_fail(err, "Cannot watch the calling process", "pidfd_open",
				 KERNEL(5, 3), errno);
	return 0;
}

static int start(struct job_request *req, struct sandlock_process *p, struct sandlock_error *err)
{
	struct job *job = p->job;
	int r = open_channels(job, p, err);
	if (r < 0)
		return r;
	if (req->rung == RUNG_PLAIN && plan_guardian(job) < 0)
		return api_fail(err, SANDLOCK_E_LIMIT, E2BIG, "The policy is too large");
	pid_t pid = clone_keeper(req, job, &p->keeper_pidfd);
	if (pid < 0) {
		p->keeper_pidfd = -1;
		job_fail(job, req->rung == RUNG_BASE ? STEP_NAMESPACE : STEP_CHILD_CLONE, -pid, 0);
		return job_explain(req, job, err);
	}
	p->keeper_pid = pid;
	supervision_prepare(req, p);
	r = await_start(req, p, err);
	if (r < 0)
		return r;
	if (r == 1) {
		warn_missing(req, job);
		if (!job->supervised)
			p->child_pidfd = (int)syscall(SYS_pidfd_open, p->child_pid, 0);
		return 0;
	}
	reap_keeper(p);
	p->ended = true;
	if (job->state.step == STEP_NONE)
		return api_fail(
			err, SANDLOCK_E_INTERNAL, ECHILD,
			"The guardian ended before the command was started: it was killed, or "
			"memory is short");
	return job_explain(req, job, err);
}

int launch(struct job_request *req, struct sandlock_process **ret_process,
	   struct sandlock_error *err)
{
	struct job *job = NULL;
	int r = supervision_plan(req, err);
	if (r < 0)
		return r;
	r = job_build(req, &job, err);
	if (r < 0)
		return r;
	struct sandlock_process *p = xnew(struct sandlock_process);
	p->job = job;
	p->owner = getpid();
	p->rung = req->rung;
	p->ctl = p->epoll_fd = p->child_pidfd = p->pty_fd = p->keeper_pidfd = -1;
	p->report.wake_fd = -1;
	r = start(req, p, err);
	/* The job itself stays as it is: guardian and child may be reading it. */
	util_close(job->ctl);
	util_close(job->host_pidfd);
	util_close(job->null_fd);
	util_close(job->memfd);
	req->failed_step = job->state.step;
	req->failed_errno = job->state.step_errno;
	if (r < 0) {
		p->ended |= p->keeper_pidfd < 0; /* nothing was started */
		/* A guardian that was killed has left its entry. */
		auto_free char *left = job->entry.digits ? xstrdup(job->entry.name) : NULL;
		sandlock_process_free(p);
		if (left && left[0])
			registry_forget(left);
		return r;
	}
	*ret_process = p;
	return 0;
}
