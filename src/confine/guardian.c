/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The guardian: one process per supervised sandbox, outside the child's confinement, that starts
 * the command, watches the host and the clock, and ends the whole tree. In the base it is pid 1 of
 * the sandbox's PID namespace and shares the host's memory; elsewhere it is a subreaper in a
 * Landlock layer that scopes its signals to the sandbox, in an address space of its own, so that
 * the host's end, an OOM kill included, never takes it along.
 *
 * It makes raw system calls only and never returns before every process of the sandbox is gone.
 */
#include <errno.h>
#include <linux/prctl.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "confine/job.h"
#include "confine/raw_util.h"

/* Orphans collected per round: each look may walk a long list of living children. */
#define REAP_ROUND 16

struct guardian {
	struct job *job;
	int main_pid;
	int sigfd;
	int entry_fd;	   /* the lock of an entry that was made here */
	int exec_fd;	   /* -1 once the exec has succeeded or failed */
	int listener;	   /* on its way to the host; -1: none */
	bool shares_table; /* with the child, which has not left it yet */
	bool main_ended;
	bool ending;
	bool more; /* dead orphans are left over from the last round */
};

static void report(struct guardian *g, int kind, int value)
{
	struct job_msg msg = {.kind = kind, .value = value};
	raw_syscall6(SYS_sendto, g->job->ctl, (long)&msg, sizeof(msg), MSG_NOSIGNAL | MSG_DONTWAIT,
		     0, 0);
}

/* A report that carries a descriptor. Negative errno on failure. */
static long report_fd(const struct guardian *g, int kind, int fd)
{
	struct job_msg msg = {.kind = kind};
	struct iovec iov = {&msg, sizeof(msg)};
	union {
		struct cmsghdr head;
		char space[CMSG_SPACE(sizeof(int))];
	} control;
	raw_zero(&control, sizeof(control));
	control.head.cmsg_len = CMSG_LEN(sizeof(int));
	control.head.cmsg_level = SOL_SOCKET;
	control.head.cmsg_type = SCM_RIGHTS;
	*(int *)(void *)CMSG_DATA(&control.head) = fd;
	struct msghdr mh;
	raw_zero(&mh, sizeof(mh));
	mh.msg_iov = &iov;
	mh.msg_iovlen = 1;
	mh.msg_control = &control;
	mh.msg_controllen = sizeof(control);
	return raw_syscall3(SYS_sendmsg, g->job->ctl, &mh, MSG_NOSIGNAL);
}

/* Lets the child go on, or end. */
static void open_gate(struct job *job, enum job_gate how)
{
	__atomic_store_n(&job->state.gate, (int)how, __ATOMIC_RELEASE);
	raw_syscall3(SYS_futex, &job->state.gate, 1 /* FUTEX_WAKE */, 1);
}

static void make_tmpdir(struct job *job)
{
	if (!job->tmp_name)
		return;
	long r = raw_syscall3(SYS_mkdirat, job->tmp_fd, job->tmp_name, 0700);
	if (r == 0) {
		if (job->set_ids)
			raw_syscall5(SYS_fchownat, job->tmp_fd, job->tmp_name, job->uid, job->gid,
				     0);
		return;
	}
	/* Without it the run goes on; nothing may be removed later that is not ours. */
	job->state.tmp_errno = (int)-r;
	job->tmp_name = NULL;
	*job->tmp_env = NULL;
}

/*
 * What stands for /dev/shm is the sandbox's; the directory around it, in which the supervisor makes
 * listings, is not. Without it the run goes on, and those places stay shut.
 */
static void make_place(struct job *job)
{
	if (!job->place_name)
		return;
	long r = raw_syscall3(SYS_mkdirat, job->place_fd, job->place_name, 0711);
	if (r < 0) {
		job->place_name = NULL; /* nothing may be removed later that is not ours */
		return;
	}
	raw_syscall3(SYS_mkdirat, job->place_fd, job->place_shm, 0700);
	if (job->set_ids)
		raw_syscall5(SYS_fchownat, job->place_fd, job->place_shm, job->uid, job->gid,
			     AT_SYMLINK_NOFOLLOW);
}

/* A terminal for the command, from the base's own devpts where there is one. */
static int make_pty(struct guardian *g)
{
	struct job *job = g->job;
	int master = raw_openat(AT_FDCWD, "/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC, 0);
	if (master < 0)
		return job_fail(job, STEP_PTY, -master, 2);
	int zero = 0;
	long r = raw_syscall3(SYS_ioctl, master, TIOCSPTLCK, &zero);
	if (r < 0)
		return job_fail(job, STEP_PTY, (int)-r, 3);
	int slave =
		(int)raw_syscall3(SYS_ioctl, master, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (slave < 0)
		return job_fail(job, STEP_PTY, -slave, 4);
	if (job->pty_rows || job->pty_cols) {
		struct winsize ws = {.ws_row = job->pty_rows, .ws_col = job->pty_cols};
		raw_syscall3(SYS_ioctl, master, TIOCSWINSZ, &ws);
	}
	for (int i = 0; i < 3; i++)
		job->stdio[i] = slave;
	r = report_fd(g, REPORT_PTY, master);
	raw_close(master);
	return r < 0 ? job_fail(job, STEP_PTY, (int)-r, 5) : 0;
}

/* Closes what the guardian does not need: it must hold no pipe of the command's. */
static void close_rest(struct guardian *g)
{
	struct job *job = g->job;
	int keep[] = {job->ctl,	   job->host_pidfd, g->sigfd,	  job->lock_fd,
		      g->entry_fd, job->layer_lock, job->tmp_fd,  job->entry.top_fd,
		      g->exec_fd,  g->listener,	    job->place_fd};
	job_close_except(keep, sizeof(keep) / sizeof(keep[0]));
}

/*
 * The pipe's end of file says that the exec has succeeded or the child is gone. Nobody else can
 * hold its other side: it is made here, in a descriptor table that is the guardian's alone.
 */
static int start_child(struct guardian *g)
{
	struct job *job = g->job;
	int ends[2] = {-1, -1};
	long r = raw_syscall2(SYS_pipe2, ends, O_CLOEXEC);
	if (r < 0)
		return job_fail(job, STEP_EXEC_PIPE, (int)-r, 0);
	g->exec_fd = ends[0];
	job->exec_pipe = ends[1];
	unsigned long flags = SIGCHLD;
	if (!job->separate_vm)
		flags |= CLONE_VM;
	if (job->map_ids && !job->base)
		flags |= CLONE_NEWUSER;
	if (job->notify)
		flags |= CLONE_FILES;
	g->shares_table = job->notify;
	job->state.start_ns = raw_monotonic_ns();
	long pid = raw_clone(flags, job->child_stack, NULL, child_main, job);
	if (pid < 0 || !job->notify)
		raw_close(ends[1]);
	if (pid < 0)
		return job_fail(job, STEP_CHILD_CLONE, (int)-pid, 0);
	g->main_pid = (int)pid;
	return 0;
}

/* The base is made while the child prepares itself; it passes the gate when all is there. */
static int setup_base(struct guardian *g)
{
	struct job *job = g->job;
	int r = job->map_ids ? job_map_ids(job) : 0;
	if (r == 0 && !job->pty)
		r = start_child(g);
	if (r == 0)
		r = base_mount(job);
	if (r == 0 && job->hostname) {
		r = (int)raw_syscall2(SYS_sethostname, job->hostname, raw_strlen(job->hostname));
		if (r < 0)
			job_fail(job, STEP_HOSTNAME, -r, 0);
	}
	if (r == 0)
		job->state.base_active = 1;
	open_gate(job, r == 0 ? GATE_OPEN : GATE_ABORT);
	/* The child must be born with its terminal, which only the new /dev/pts can give. */
	if (r == 0 && job->pty)
		r = make_pty(g);
	if (r == 0 && job->pty)
		r = start_child(g);
	return r;
}

static int setup_plain(struct guardian *g)
{
	struct job *job = g->job;
	make_tmpdir(job);
	make_place(job);
	raw_syscall2(SYS_setpgid, 0, 0);
	long r = raw_syscall5(SYS_prctl, PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
	if (r < 0)
		return job_fail(job, STEP_SUBREAPER, (int)-r, 0);
	int e = job_scope_signals(job);
	if (e == 0 && job->pty)
		e = make_pty(g);
	return e < 0 ? e : start_child(g);
}

/* The table is the guardian's alone again, with the listener and the child's leftovers in it. */
static void take_table(struct guardian *g)
{
	g->shares_table = false;
	g->listener = g->job->state.listener;
	/* By itself: the pipe's end is waited for, also where a filter refuses close_range. */
	raw_close(g->job->exec_pipe);
	close_rest(g);
	if (g->listener < 0)
		return;
	if (report_fd(g, REPORT_LISTENER, g->listener) < 0)
		g->ending = true; /* nobody could answer its calls */
	raw_close(g->listener);
	g->listener = -1;
}

/*
 * The exec pipe has ended: the command executes, or what kept it from that is recorded. Where it
 * could not be read, or did not tell of the listener, the command is not let run: its calls might
 * wait for ever.
 */
static void exec_is_decided(struct guardian *g, bool is_unknown)
{
	raw_close(g->exec_fd);
	g->exec_fd = -1;
	if (is_unknown || __atomic_load_n(&g->job->state.step, __ATOMIC_ACQUIRE) != STEP_NONE)
		g->ending = true;
	else
		report(g, REPORT_STARTED, 0);
}

/* The child has left the shared table (a byte), or executes or is gone (the end of the pipe). */
static void on_exec_pipe(struct guardian *g)
{
	char byte = 0;
	long r = raw_syscall3(SYS_read, g->exec_fd, &byte, 1);
	if (r == 1 && g->shares_table)
		take_table(g);
	else if (r != 1 && r != -EINTR)
		exec_is_decided(g, r < 0 || g->shares_table);
}

static void main_has_ended(struct guardian *g, const siginfo_t *info, const struct rusage *ru)
{
	struct job_state *st = &g->job->state;
	/*
	 * It is dead, so its pipe has ended: the host learns of the start before the end. What it
	 * wrote there comes first.
	 */
	if (g->shares_table)
		take_table(g);
	while (g->exec_fd >= 0)
		on_exec_pipe(g);
	g->main_ended = true;
	st->wait_code = info->si_code;
	st->wait_status = info->si_status;
	st->end_ns = raw_monotonic_ns();
	st->max_rss_kib = ru->ru_maxrss;
	if (st->end == END_NONE)
		st->end = END_MAIN;
	g->ending = true;
}

/* What has become of the command itself: found at once, however many others there are. */
static void reap_main(struct guardian *g)
{
	siginfo_t info = {0};
	struct rusage ru = {0};
	int options = WEXITED | WSTOPPED | WCONTINUED | WNOHANG | __WALL;
	if (g->main_ended ||
	    raw_syscall5(SYS_waitid, P_PID, g->main_pid, &info, options, &ru) < 0 ||
	    info.si_pid == 0)
		return;
	if (info.si_code == CLD_STOPPED || info.si_code == CLD_TRAPPED) {
		if (g->job->report_stops && !g->ending)
			report(g, REPORT_STOPPED, info.si_status);
	} else if (info.si_code == CLD_CONTINUED) {
		if (g->job->report_stops && !g->ending)
			report(g, REPORT_CONTINUED, 0);
	} else {
		main_has_ended(g, &info, &ru);
	}
}

/*
 * Collects dead orphans, REAP_ROUND at most, so that a storm of them never keeps the guardian from
 * the clock and the host. Returns -ECHILD when there is no child left at all.
 */
static int reap_orphans(struct guardian *g)
{
	g->more = false;
	for (int i = 0; i < REAP_ROUND; i++) {
		siginfo_t info = {0};
		long r = raw_syscall5(SYS_waitid, P_ALL, 0, &info,
				      WEXITED | WNOWAIT | WNOHANG | __WALL, NULL);
		if (r < 0)
			return (int)r;
		if (info.si_pid == 0)
			return 0;
		if (info.si_pid == g->main_pid && !g->main_ended)
			reap_main(g);
		else
			raw_syscall5(SYS_waitid, P_PID, info.si_pid, &info,
				     WEXITED | WNOHANG | __WALL, NULL);
	}
	g->more = true;
	return 0;
}

static void end_with(struct guardian *g, enum job_end why)
{
	if (g->job->state.end == END_NONE)
		g->job->state.end = (int)why;
	g->ending = true;
}

static void on_control(struct guardian *g)
{
	for (;;) {
		struct job_msg msg = {0};
		long r = raw_syscall6(SYS_recvfrom, g->job->ctl, (long)&msg, sizeof(msg),
				      MSG_DONTWAIT, 0, 0);
		if (r != (long)sizeof(msg))
			return;
		if (msg.kind == JOB_KILL)
			end_with(g, END_KILLED);
		else if (msg.kind == JOB_SIGNAL && g->main_pid > 0)
			raw_syscall2(SYS_kill, -g->main_pid, msg.value);
	}
}

/* One wait for whatever comes first: a child, the host's end, a command, the time limit. */
static void watch_once(struct guardian *g, int64_t deadline)
{
	struct job *job = g->job;
	struct pollfd pfd[4] = {
		{.fd = g->sigfd, .events = POLLIN},
		{.fd = job->host_pidfd, .events = POLLIN},
		{.fd = job->ctl, .events = POLLIN},
		{.fd = g->exec_fd, .events = POLLIN},
	};
	int64_t ts[2] = {0, 0};
	int64_t left = -1;
	if (deadline && !g->ending) {
		left = deadline - raw_monotonic_ns();
		left = left < 0 ? 0 : left;
	} else if (g->ending) {
		left = 20000000; /* look again: a signal may have met a process being born */
	}
	if (g->more)
		left = 0;
	if (left >= 0) {
		ts[0] = left / 1000000000;
		ts[1] = left % 1000000000;
	}
	long r = raw_syscall5(SYS_ppoll, pfd, g->ending ? 1 : 4, left >= 0 ? ts : NULL, NULL, 0);
	if (deadline && !g->ending && raw_monotonic_ns() >= deadline)
		end_with(g, END_TIMEOUT);
	/* Who cannot wait for anything would neither report the start nor see the host's end. */
	if (r < 0 && r != -EINTR && !g->ending) {
		job_fail(job, STEP_POLL, (int)-r, 0);
		end_with(g, END_KILLED);
	}
	if (r <= 0)
		return;
	if (pfd[0].revents) {
		char buf[sizeof(struct signalfd_siginfo) * 4];
		raw_syscall3(SYS_read, g->sigfd, buf, sizeof(buf));
	}
	if (!g->ending && g->exec_fd >= 0 && pfd[3].revents)
		on_exec_pipe(g);
	if (!g->ending && pfd[1].revents)
		end_with(g, END_HOST);
	if (!g->ending && (pfd[2].revents & POLLIN))
		on_control(g);
	/* Nobody holds the handle any more: the host has executed something else. */
	if (!g->ending && (pfd[2].revents & (POLLHUP | POLLERR)))
		end_with(g, END_HOST);
}

/*
 * Kills until nothing is left. In the base this reaches the PID namespace, elsewhere the Landlock
 * domain, which was proved not to hold the host. Reaping the command first keeps its own status.
 */
static void kill_tree(struct guardian *g)
{
	int blind = 0;
	reap_main(g);
	for (;;) {
		raw_syscall2(SYS_kill, -1, SIGKILL);
		reap_main(g);
		int r = reap_orphans(g);
		/* A filter that refuses waitid leaves no way to see the end: a second must do. */
		if (r == -ECHILD || (r < 0 && ++blind > 50))
			return;
		watch_once(g, 0);
	}
}

/* Child and guardian need a descriptor or two per rule; the child goes back to the old limit. */
static void raise_open_files(const struct job *job)
{
	uint64_t lim[2] = {0, 0};
	if (job->soft_open_files && raw_syscall4(SYS_prlimit64, 0, RLIMIT_NOFILE, NULL, lim) == 0) {
		lim[0] = lim[1];
		raw_syscall4(SYS_prlimit64, 0, RLIMIT_NOFILE, lim, NULL);
	}
}

static int setup(struct guardian *g)
{
	struct job *job = g->job;
	raise_open_files(job);
	struct raw_sigaction sa;
	raw_zero(&sa, sizeof(sa));
	raw_syscall4(SYS_rt_sigaction, SIGCHLD, &sa, NULL, sizeof(sa.mask));
	raw_sigset chld = 1ULL << (SIGCHLD - 1);
	g->sigfd = (int)raw_syscall4(SYS_signalfd4, -1, &chld, sizeof(chld),
				     SFD_CLOEXEC | SFD_NONBLOCK);
	if (g->sigfd < 0)
		return job_fail(job, STEP_SIGNALFD, -g->sigfd, 0);
	/* The end of the tree is seen by waitid alone: a filter that refuses it must be met now. */
	siginfo_t info = {0};
	long r = raw_syscall5(SYS_waitid, P_ALL, 0, &info, WEXITED | WNOHANG | __WALL, NULL);
	if (r != -ECHILD)
		return job_fail(job, STEP_WAIT, r < 0 ? (int)-r : EBUSY, 0);
	r = job->base ? setup_base(g) : setup_plain(g);
	/* Last, while the child is on its way to the exec. */
	if (r == 0 && job->entry.digits)
		g->entry_fd = entry_make(&job->entry);
	return (int)r;
}

int guardian_main(void *arg)
{
	struct job *job = arg;
	struct guardian g = {
		.job = job, .sigfd = -1, .entry_fd = -1, .exec_fd = -1, .listener = -1};
	int r = setup(&g);
	/* While the child shares the table, what is to be closed may be the child's. */
	if (!g.shares_table)
		close_rest(&g);
	if (g.main_pid > 0) {
		int64_t deadline = job->timeout_ns ? job->state.start_ns + job->timeout_ns : 0;
		if (r < 0)
			g.ending = true;
		while (!g.ending) {
			watch_once(&g, deadline);
			reap_main(&g);
			int e = reap_orphans(&g);
			if (e < 0 && e != -ECHILD && e != -EINTR)
				end_with(&g, END_KILLED);
		}
		kill_tree(&g);
	}
	job_cleanup(job);
	return r < 0 ? 1 : 0;
}
