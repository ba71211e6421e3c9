/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The public calls on a running sandbox. A handle owns the guardian by pidfd; once the end has been
 * seen it is inert: it signals nobody and gives the same result for ever.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/util.h"
#include "confine/job.h"
#include "lib/ask_save.h"
#include "lib/launch.h"
#include "lib/lib_internal.h"
#include "lib/live.h"
#include "lib/name_service.h"
#include "lib/registry.h"
#include "lib/report.h"
#include "lib/supervision.h"
#include "lib/workspace.h"
#include "net/resolver.h"
#include "supervise/supervisor.h"

#ifndef P_PIDFD
#define P_PIDFD 3
#endif

#define LINGER_MAX_MS 5

static int64_t now_ms(void)
{
	struct timespec ts;
	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

/* --- Starting --------------------------------------------------------------------------------- */

static bool has_tmpdir(const struct job_request *req)
{
	char *const *env = req->spawn->envp ? req->spawn->envp : environ;
	for (size_t i = 0; env && env[i] && !req->policy->clean_env; i++) {
		if (str_starts(env[i], "TMPDIR="))
			return true;
	}
	for (size_t i = 0; i < req->policy->env.n; i++) {
		if (str_starts(req->policy->env.v[i], "TMPDIR="))
			return true;
	}
	for (size_t i = 0; i < req->policy->fs_write.n; i++) {
		if (str_eq(req->policy->fs_write.v[i], "/tmp") ||
		    str_eq(req->policy->fs_write.v[i], "/"))
			return true;
	}
	return false;
}

/*
 * Without the base, access(2) claims that /tmp is writable, and programs that believe it fail: they
 * get a private directory instead. The guardian makes and removes it, so that no moment exists in
 * which a killed host leaves it behind; here only its name is chosen.
 */
static void choose_tmpdir(struct job_request *req)
{
	uint64_t random = 0;
	if (req->rung != RUNG_PLAIN || has_tmpdir(req) ||
	    getrandom(&random, sizeof(random), 0) != (ssize_t)sizeof(random))
		return;
	req->tmp_fd = open("/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (req->tmp_fd >= 0)
		req->tmp_name = xasprintf("sandlock-%016llx", (unsigned long long)random);
}

/* Likewise what stands for /proc, /dev/pts and /dev/shm; on a tmpfs where there is one. */
static void choose_place(struct job_request *req)
{
	uint64_t random = 0;
	if (req->rung != RUNG_PLAIN ||
	    getrandom(&random, sizeof(random), 0) != (ssize_t)sizeof(random))
		return;
	req->place_top = "/dev/shm";
	req->place_fd = open(req->place_top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (req->place_fd < 0) {
		req->place_top = "/tmp";
		req->place_fd = open(req->place_top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	}
	if (req->place_fd >= 0)
		req->place_name = xasprintf("sandlock-%016llx-box", (unsigned long long)random);
}

static void request_done(struct job_request *req, bool started)
{
	util_close(req->place_fd);
	free(req->place_name);
	util_close(req->tmp_fd);
	free(req->tmp_name);
	if (!started && req->registry.lock_fd >= 0) {
		raw_remove_tree(req->registry.dir_fd, req->registry.name);
		unlinkat(req->registry.top_fd, req->registry.top_name, AT_REMOVEDIR);
	}
	registry_done(&req->registry);
}

/* The control socket's turn in the loop. */
static int on_live(void *data, bool ready)
{
	struct sandlock_process *p = data;
	(void)ready;
	live_step(p->live);
	return live_timeout_ms(p->live);
}

static void started(struct sandlock_policy *policy, struct job_request *req,
		    struct sandlock_process *p)
{
	const struct job_entry *entry = &p->job->entry;
	const char *name = entry->name && entry->name[0] ? entry->name : req->policy->name;
	p->timeout_ms = req->policy->timeout_ms;
	p->caps = policy->caps;
	memcpy(p->prot, req->policy->prot, sizeof(p->prot));
	p->name = name ? xstrdup(name) : NULL;
	struct live_spec spec = {.policy = policy,
				 .process = p,
				 .entry = &req->registry,
				 .name = entry->name && entry->name[0] ? entry->name : NULL,
				 .argv = req->spawn->argv,
				 .guardian_pid = p->guardian_pid};
	if (entry->error)
		registry_warn(req->warnings, entry->error, req->policy->name);
	p->live = live_new(&spec, req->warnings);
	if (p->live && p->sup)
		p->guests[2] = supervisor_attach(p->sup, live_fd(p->live), on_live, p);
	supervision_open(p, &policy->listener);
}

static int spawn_on(struct sandlock_policy *policy, struct job_request *req,
		    struct sandlock_process **ret_process, struct sandlock_error *err)
{
	int r = 0;
	req->tmp_fd = req->registry.dir_fd = req->registry.lock_fd = req->registry.top_fd = -1;
	req->tmp_name = NULL;
	req->place_fd = -1;
	req->place_name = NULL;
	choose_tmpdir(req);
	choose_place(req);
	if (req->rung != RUNG_NONE)
		r = registry_claim(req->policy->name, &req->registry, req->warnings, err);
	if (r == 0)
		r = launch(req, ret_process, err);
	if (r == 0)
		started(policy, req, *ret_process);
	request_done(req, r == 0);
	return r;
}

/* Whether a failed start says that the base, not the policy, cannot be had here. */
static bool base_failed(const struct job_request *req)
{
	/* A moment's shortage says nothing about this place, and must not cost the base. */
	switch (req->failed_errno) {
	case EAGAIN:
	case EINTR:
	case EMFILE:
	case ENFILE:
	case ENOMEM:
		return false;
	default:
		break;
	}
	switch (req->failed_step) {
	case STEP_NAMESPACE:
	case STEP_ID_MAP:
	case STEP_MOUNT_PRIVATE:
	case STEP_MOUNT_CLONE:
	case STEP_MOUNT_READONLY:
	case STEP_MOUNT_WRITE:
	case STEP_MOUNT_PROC:
	case STEP_MOUNT_DEVPTS:
	case STEP_MOUNT_SHM:
	case STEP_MOUNT_MQUEUE:
	case STEP_HOSTNAME:
		return true;
	default:
		return false;
	}
}

/* Inside a supervised sandbox: its filter answers a second listener like the kernel would. */
static bool is_supervised_inside(void)
{
	return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER,
		       NULL) < 0 &&
	       errno == EBUSY;
}

static int check_spawn(const struct sandlock_spawn *spawn, struct sandlock_error *err)
{
	if (!spawn || spawn->struct_size < offsetof(struct sandlock_spawn, flags) || !spawn->argv ||
	    !spawn->argv[0])
		return api_fail(err, SANDLOCK_E_INVALID, EINVAL, "There is no command to run");
	return 0;
}

static int prepare(struct sandlock_policy *policy, struct sandlock_spawn *in,
		   struct sandlock_spawn *ret_spawn, const struct policy **ret_policy,
		   struct sandlock_error *err)
{
	int r = check_spawn(in, err);
	if (r < 0)
		return r;
	memset(ret_spawn, 0, sizeof(*ret_spawn));
	memcpy(ret_spawn, in,
	       in->struct_size < sizeof(*ret_spawn) ? in->struct_size : sizeof(*ret_spawn));
	r = lib_policy_finish(policy, ret_policy, err);
	if (r < 0)
		return r;
	if (policy->caps_known)
		return 0;
	r = landlock_probe(&policy->caps);
	if (r < 0)
		return api_fail(err, SANDLOCK_E_LIMIT, -r,
				"Landlock cannot be probed (landlock_create_ruleset): %s",
				strerror(-r));
	policy->caps_known = true;
	return 0;
}

static void tell_failure(const struct sandlock_policy *policy, const struct job_request *req,
			 const struct sandlock_error *err)
{
	struct event e = {.sandbox = req->policy->name,
			  .op = "start",
			  .object = req->spawn->argv[0],
			  .layer = "start",
			  .rule = err ? err->msg : NULL,
			  .error = err ? err->sys_errno : 0};
	notify_event(&policy->listener, &e);
}

int sandlock_policy_no_supervisor(struct sandlock_policy *policy)
{
	const struct policy *p = NULL;
	int r = lib_policy_finish(policy, &p, NULL);
	return r < 0 ? r : p->no_supervisor;
}

int sandlock_policy_explains(struct sandlock_policy *policy)
{
	const struct policy *p = NULL;
	int r = lib_policy_finish(policy, &p, NULL);
	return r < 0 ? r : p->explain;
}

/* On the best rung that the policy allows and this place can give. REQ->rung says which. */
static int spawn_best(struct sandlock_policy *policy, struct job_request *req,
		      struct sandlock_process **ret_process, struct sandlock_error *err)
{
	const struct policy *p = req->policy;
	req->rung = RUNG_BASE;
	if (p->no_supervisor && (req->spawn->flags & SANDLOCK_SPAWN_PTY))
		return api_fail(
			err, SANDLOCK_E_INVALID, EINVAL,
			"A terminal of the command's own needs a supervisor: leave --pty or "
			"--no-supervisor out");
	if (p->no_supervisor)
		req->rung = RUNG_NONE;
	else if (p->view == VIEW_NOTIFY || (p->view == VIEW_AUTO && policy->base_impossible))
		req->rung = RUNG_PLAIN;
	if (!p->no_supervisor && is_supervised_inside())
		return api_fail(
			err, SANDLOCK_E_UNSUPPORTED, EBUSY,
			"This is already inside a supervised sandbox, and the kernel gives a "
			"process one supervisor: use --no-supervisor here, or for the outer one");
	if (p->workdirs.n && req->rung != RUNG_BASE)
		return api_fail(
			err, SANDLOCK_E_UNSUPPORTED, EOPNOTSUPP,
			"--workdir needs private namespaces in this version, and none can be "
			"had here: allow them (--view namespace says what fails), or leave "
			"--workdir out");
	int r = spawn_on(policy, req, ret_process, err);
	if (r < 0 && req->rung == RUNG_BASE && p->view == VIEW_AUTO && !p->workdirs.n &&
	    base_failed(req)) {
		warn_add(req->warnings,
			 "no private namespaces can be had here (%s: %s): running without them",
			 job_step_words(req->failed_step), strerror(req->failed_errno));
		policy->base_impossible = true;
		req->rung = RUNG_PLAIN;
		if (err)
			memset(err, 0, sizeof(*err)); /* filled on failure only */
		r = spawn_on(policy, req, ret_process, err);
	}
	return r;
}

int sandlock_spawn(struct sandlock_policy *policy, struct sandlock_spawn *spawn,
		   struct sandlock_process **ret_process, struct sandlock_error *err)
{
	struct sandlock_spawn sp;
	const struct policy *p = NULL;
	int r = prepare(policy, spawn, &sp, &p, err);
	if (r < 0)
		return r;
	struct job_request req = {
		.policy = p, .spawn = &sp, .caps = &policy->caps, .warnings = &policy->warnings};
	struct ask_save *save = NULL;
	r = workspace_open(p, sp.argv, &policy->warnings, &req.workspace, err);
	if (r == 0)
		r = workspace_check_stdio(req.workspace, p, sp.fds, err);
	if (r == 0)
		r = name_service_prepare(&req, err);
	if (r == 0)
		r = ask_save_open(p, &save, err);
	if (r == 0)
		r = spawn_best(policy, &req, ret_process, err);
	resolver_free(req.resolver); /* unless it was handed over */
	if (r < 0)
		workspace_free(req.workspace, false);
	else
		(*ret_process)->workspace = req.workspace;
	if (r < 0)
		tell_failure(policy, &req, err);
	else
		(*ret_process)->ask_save = take_ptr(save);
	ask_save_free(save);
	if (r == 0 && spawn->struct_size >= sizeof(*spawn)) {
		spawn->ret_pty = (*ret_process)->pty_fd;
		(*ret_process)->pty_fd = -1;
	}
	return r;
}

int sandlock_policy_rungs(struct sandlock_policy *policy, char **ret_json,
			  struct sandlock_error *err)
{
	/* No file has an empty name: the start goes all the way and ends at the exec. */
	char nothing[] = "/dev/null/";
	char *argv[] = {nothing, NULL};
	struct sandlock_spawn in = {.struct_size = sizeof(in), .argv = argv, .fds = {-1, -1, -1}};
	struct sandlock_spawn sp;
	const struct policy *p = NULL;
	int r = prepare(policy, &in, &sp, &p, err);
	if (r < 0)
		return r;
	struct sandlock_process *process = NULL;
	struct job_request req = {
		.policy = p, .spawn = &sp, .caps = &policy->caps, .warnings = &policy->warnings};
	r = spawn_best(policy, &req, &process, err);
	sandlock_process_free(process);
	if (r < 0 && req.failed_step != STEP_EXEC)
		return r;
	*ret_json = rungs_json(req.rung, &policy->caps, p->prot);
	return 0;
}

int sandlock_exec(struct sandlock_policy *policy, struct sandlock_spawn *spawn,
		  struct sandlock_error *err)
{
	struct sandlock_spawn sp;
	const struct policy *p = NULL;
	int r = prepare(policy, spawn, &sp, &p, err);
	if (r < 0)
		return r;
	if (!p->no_supervisor)
		return api_fail(err, SANDLOCK_E_STATE, EINVAL,
				"Executing in place needs no-supervisor in the policy");
	struct job_request req = {.policy = p,
				  .spawn = &sp,
				  .caps = &policy->caps,
				  .rung = RUNG_NONE,
				  .in_place = true,
				  .tmp_fd = -1,
				  .place_fd = -1,
				  .registry = {.dir_fd = -1, .lock_fd = -1, .top_fd = -1},
				  .warnings = &policy->warnings};
	struct job *job = NULL;
	r = job_build(&req, &job, err);
	if (r < 0)
		return r;
	r = job_open_rules(job, false);
	if (r == 0) {
		warn_missing(&req, job);
		for (size_t i = 0; sp.on_warning && i < policy->warnings.n; i++)
			sp.on_warning(sp.on_warning_data, policy->warnings.v[i]);
		child_run(job);
	}
	return job_explain(&req, job, err);
}

/* --- Waiting ---------------------------------------------------------------------------------- */

static void fill_result(struct sandlock_process *p)
{
	const struct job_state *st = &p->job->state;
	struct sandlock_result *res = &p->result;
	res->reason = SANDLOCK_KILLED;
	res->exit_code = -1;
	if (st->wait_code == CLD_EXITED)
		res->exit_code = st->wait_status;
	else
		res->signal = st->wait_code ? st->wait_status : SIGKILL;
	if (st->end == END_MAIN && !(p->rung == RUNG_NONE && p->kill_sent))
		res->reason = st->wait_code == CLD_EXITED ? SANDLOCK_EXITED : SANDLOCK_SIGNALED;
	else if (st->end == END_TIMEOUT)
		res->reason = SANDLOCK_TIMED_OUT;
	if (res->reason == SANDLOCK_TIMED_OUT || res->reason == SANDLOCK_KILLED)
		res->exit_code = -1;
	if (st->end_ns > st->start_ns)
		res->run_ms = (uint64_t)(st->end_ns - st->start_ns) / 1000000;
	res->peak_rss_bytes = (uint64_t)st->max_rss_kib * 1024;
}

static void tell_end(struct sandlock_process *p)
{
	if (p->result.reason != SANDLOCK_TIMED_OUT)
		return;
	char object[32];
	snprintf(object, sizeof(object), "%g s", (double)p->timeout_ms / 1000);
	struct event e = {.sandbox = p->name,
			  .pid = p->child_pid,
			  .op = "time-out",
			  .object = object,
			  .layer = "limit",
			  .rule = "the run's time limit is over",
			  .allow = "--timeout with more seconds",
			  .error = ETIMEDOUT};
	supervision_event(p, &e, false);
}

/* Nobody writes to the layer any more. */
static void land(struct sandlock_process *p)
{
	struct sandlock_result *res = &p->result;
	bool well = res->reason == SANDLOCK_EXITED && res->exit_code == 0;
	if (workspace_end(p->workspace, well, &p->landing) < 0)
		res->reason = SANDLOCK_COMMIT_FAILED;
}

static void finish(struct sandlock_process *p)
{
	siginfo_t info;
	while (waitid((idtype_t)P_PIDFD, (id_t)p->keeper_pidfd, &info, WEXITED | __WALL) < 0 &&
	       errno == EINTR)
		;
	p->ended = true;
	supervision_stop(p);
	live_free(p->live);
	p->live = NULL;
	if (p->name)
		registry_forget(p->name);
	fill_result(p);
	tell_end(p);
	supervision_tell(p);
	p->child_pid = 0;
	land(p);
}

static int give_result(const struct sandlock_process *p, struct sandlock_result *ret_result,
		       struct sandlock_error *err)
{
	size_t size = ret_result->struct_size;
	if (size < sizeof(size) || size > 4096)
		return api_fail(err, SANDLOCK_E_INVALID, EINVAL,
				"struct sandlock_result has a struct_size of %zu", size);
	struct sandlock_result copy = p->result;
	copy.struct_size = size;
	memcpy(ret_result, &copy, size < sizeof(copy) ? size : sizeof(copy));
	return 0;
}

/* Takes reports until one is an outcome: SANDLOCK_STOPPED, SANDLOCK_CONTINUED, or 0 for none. */
static int take_reports(struct sandlock_process *p, int *ret_signal)
{
	struct report_msg msg;
	while (report_receive(p->ctl, &msg) == 1) {
		if (msg.fd >= 0)
			close(msg.fd);
		if (msg.kind == REPORT_STOPPED) {
			*ret_signal = msg.value;
			return SANDLOCK_STOPPED;
		}
		if (msg.kind == REPORT_CONTINUED)
			return SANDLOCK_CONTINUED;
	}
	return 0;
}

/* The other side is gone: from now on only the keeper's end counts, and nobody may spin on this. */
static void stop_listening(struct sandlock_process *p)
{
	p->ctl_gone = true;
	if (p->epoll_fd >= 0)
		epoll_ctl(p->epoll_fd, EPOLL_CTL_DEL, p->ctl, NULL);
	if (p->own_loop)
		supervisor_detach(p->sup, p->guests[1]);
	p->guests[1] = NULL;
}

/*
 * The caller steps the loop. After a call that was handled the next one is likely: the loop stays
 * for a moment, which spares each of them the way through the caller's own waiting.
 */
static int64_t serve(struct sandlock_process *p, int64_t left_ms)
{
	int wait_ms = left_ms < 0 ? -1 : left_ms > INT_MAX ? INT_MAX : (int)left_ms;
	int64_t until = 0;
	p->other_ready = false;
	while (supervisor_step(p->sup, wait_ms) > 0 && !p->other_ready) {
		int64_t now = now_ms();
		until = until ? until : now + LINGER_MAX_MS;
		if (now >= until)
			break;
		wait_ms = 1;
	}
	supervision_tell(p);
	return p->other_ready ? 0 : -1;
}

/* Waits once, LEFT_MS at most (-1: without end). 1 if something is there, 0 if not, or -errno. */
static int poll_once(struct sandlock_process *p, int64_t left_ms, bool *ret_report)
{
	if (p->own_loop && serve(p, left_ms) < 0) {
		*ret_report = false;
		return left_ms != 0;
	}
	struct pollfd pfd[3] = {{.fd = p->keeper_pidfd, .events = POLLIN},
				{.fd = p->ctl_gone ? -1 : p->ctl, .events = POLLIN},
				{.fd = p->report.wake_fd, .events = POLLIN}};
	int timeout = left_ms < 0 ? -1 : left_ms > INT_MAX ? INT_MAX : (int)left_ms;
	int n = poll(pfd, 3, p->own_loop ? 0 : timeout);
	if (n > 0 && pfd[2].revents)
		supervision_tell(p);
	*ret_report = n > 0 && (pfd[1].revents & POLLIN);
	if (n < 0)
		return errno == EINTR ? 1 : -errno;
	if (n > 0 && (pfd[1].revents & (POLLHUP | POLLERR)))
		stop_listening(p);
	if (n > 0 && pfd[0].revents && !*ret_report)
		finish(p);
	return n > 0;
}

int sandlock_wait(struct sandlock_process *p, int timeout_ms, struct sandlock_result *ret_result,
		  struct sandlock_error *err)
{
	int64_t until = timeout_ms >= 0 ? now_ms() + timeout_ms : -1;
	if (!p->ended && p->owner != getpid())
		return api_fail(err, SANDLOCK_E_STATE, ECHILD,
				"A sandbox is waited for by the process that started it, not by a "
				"fork of that");
	while (!p->ended) {
		bool have_report = false;
		int64_t left = until < 0 ? -1 : until - now_ms();
		if (until >= 0 && left < 0)
			left = 0;
		int n = poll_once(p, left, &have_report);
		if (n < 0)
			return api_fail(err, SANDLOCK_E_INTERNAL, -n, "Waiting failed: %s",
					strerror(-n));
		if (n == 0 && now_ms() >= until)
			return api_fail(err, SANDLOCK_E_TIMEOUT, ETIMEDOUT,
					"The sandbox has not ended yet");
		int sig = 0;
		int outcome = have_report ? take_reports(p, &sig) : 0;
		if (outcome) {
			struct sandlock_result now = {.exit_code = -1, .signal = sig};
			p->result = now;
			int r = give_result(p, ret_result, err);
			return r < 0 ? r : outcome;
		}
	}
	return give_result(p, ret_result, err);
}

int sandlock_process_fd(struct sandlock_process *p)
{
	if (p->own_loop)
		return supervisor_fd(p->sup);
	if (p->epoll_fd >= 0)
		return p->epoll_fd;
	auto_close int fd = epoll_create1(EPOLL_CLOEXEC);
	struct epoll_event ev = {.events = EPOLLIN};
	if (fd < 0 || epoll_ctl(fd, EPOLL_CTL_ADD, p->keeper_pidfd, &ev) < 0 ||
	    (!p->ctl_gone && epoll_ctl(fd, EPOLL_CTL_ADD, p->ctl, &ev) < 0) ||
	    (p->report.wake_fd >= 0 && epoll_ctl(fd, EPOLL_CTL_ADD, p->report.wake_fd, &ev) < 0))
		return -SANDLOCK_E_LIMIT;
	p->epoll_fd = take_fd(&fd);
	return p->epoll_fd;
}

int sandlock_process_timeout(const struct sandlock_process *p)
{
	return p->own_loop && !p->ended ? supervisor_timeout_ms(p->sup) : -1;
}

pid_t sandlock_process_pid(const struct sandlock_process *p)
{
	return p->ended ? 0 : p->child_pid;
}

/* --- Signals ---------------------------------------------------------------------------------- */

static int send_command(struct sandlock_process *p, int kind, int value)
{
	struct job_msg msg = {.kind = kind, .value = value};
	if (send(p->ctl, &msg, sizeof(msg), MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)sizeof(msg))
		return 0;
	return errno == EPIPE || errno == ECONNREFUSED || errno == ECONNRESET
		       ? 0
		       : -SANDLOCK_E_INTERNAL;
}

static int signal_child(struct sandlock_process *p, int sig)
{
	if (p->child_pidfd < 0 ||
	    syscall(SYS_pidfd_send_signal, p->child_pidfd, sig, NULL, 0) == 0 || errno == ESRCH)
		return 0;
	return -SANDLOCK_E_PERMISSION;
}

int sandlock_kill(struct sandlock_process *p)
{
	p->kill_sent = true;
	if (p->ended)
		return 0;
	if (p->rung == RUNG_NONE)
		return signal_child(p, SIGKILL);
	int r = send_command(p, JOB_KILL, 0);
	/* A full control socket must not save anybody: the base dies with its guardian. */
	if (r < 0 && p->rung == RUNG_BASE)
		r = syscall(SYS_pidfd_send_signal, p->keeper_pidfd, SIGKILL, NULL, 0) < 0 ? r : 0;
	return r;
}

int sandlock_signal(struct sandlock_process *p, int sig)
{
	if (sig < 1 || sig > 64)
		return -SANDLOCK_E_INVALID;
	if (p->ended)
		return 0;
	return p->rung == RUNG_NONE ? signal_child(p, sig) : send_command(p, JOB_SIGNAL, sig);
}

void sandlock_process_free(struct sandlock_process *p)
{
	if (!p || p->owner != getpid())
		return;
	while (!p->ended) {
		sandlock_kill(p);
		struct pollfd pfd = {.fd = p->keeper_pidfd, .events = POLLIN};
		if (poll(&pfd, 1, 100) > 0)
			finish(p);
	}
	supervision_done(p);
	live_free(p->live);
	workspace_free(p->workspace, true);
	ask_save_free(p->ask_save);
	util_close(p->keeper_pidfd);
	util_close(p->ctl);
	util_close(p->epoll_fd);
	util_close(p->child_pidfd);
	util_close(p->pty_fd);
	job_free(p->job);
	free(p->name);
	free(p);
}
