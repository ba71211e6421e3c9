/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `sandlock run`: words to a policy, a spawn, and the loop that passes signals on, hands the
 * terminal over and takes it back, and turns the result into an exit code. Whatever happens, the
 * status line is written and nothing of the sandbox is left when this returns.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/util.h"
#include "cli/cli.h"
#include "cli/cli_ask.h"
#include "cli/cli_status.h"
#include "cli/cli_tty.h"

/* How long the command may take to end by itself after a signal to sandlock. */
#define GRACE_MS 2000

/* Written to the file of --events in one run. */
#define EVENTS_BYTES_MAX ((uint64_t)64 << 20)

struct run {
	struct sandlock_policy *policy;
	struct sandlock_cli cli;
	struct sandlock_process *process;
	struct sandlock_result result;
	struct sandlock_error err;
	char *const *command;
	char *shell_command[4];
	size_t warnings_shown;
	bool status_written;
	int events_fd;
	uint64_t events_bytes;
	bool events_lost;
	int signal_fd;
	int wait_fd;
	bool terminal;	  /* standard input is the terminal of our session */
	bool handed_over; /* the command's process group was given the foreground */
	pid_t command_pgrp;
	struct relay relay;
	struct ask_terminal ask;
	struct tty_state tty;
	int ended_by; /* signal to sandlock that is ending the run, 0: none */
	int64_t kill_at_ms;
};

static int64_t now_ms(void)
{
	struct timespec ts;
	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

static void show_warnings(struct run *run)
{
	const char *text;
	while ((text = sandlock_policy_warning(run->policy, run->warnings_shown))) {
		if (!run->cli.quiet)
			cli_warning(text);
		run->warnings_shown++;
	}
}

static int fail(struct run *run, int code)
{
	return cli_error(code, "%s", run->err.msg);
}

static int fail_with(struct run *run, int code, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

static int fail_with(struct run *run, int code, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(run->err.msg, sizeof(run->err.msg), fmt, ap);
	va_end(ap);
	return fail(run, code);
}

/* --- Before the start ------------------------------------------------------------------------- */

static int choose_command(struct run *run, int argc, char **argv)
{
	if (run->cli.exec_shell) {
		run->shell_command[0] = (char *)(uintptr_t) "/bin/sh";
		run->shell_command[1] = (char *)(uintptr_t) "-c";
		run->shell_command[2] = (char *)(uintptr_t)run->cli.exec_shell;
		run->command = run->shell_command;
	} else if (argc > 0) {
		run->command = argv;
	} else {
		run->command = sandlock_policy_command(run->policy);
	}
	if (!run->command)
		return fail_with(run, CLI_ERROR,
				 "no command specified: put it after --, or give the profile "
				 "a program.exec");
	return 0;
}

static int open_status(struct run *run)
{
	if (run->cli.status_fd < 0)
		return 0;
	if (fcntl(run->cli.status_fd, F_GETFD) < 0)
		return fail_with(run, CLI_ERROR, "--status-fd %d is not an open descriptor",
				 run->cli.status_fd);
	return 0;
}

/*
 * Never blocks: a reader that stalls loses events, which is said once, and holds up nothing. Nor
 * does it fill the disk: a sandbox can be refused things as fast as it can ask.
 */
static void write_event(void *data, const char *json)
{
	struct run *run = data;
	bool full = run->events_bytes > EVENTS_BYTES_MAX;
	int n = full ? -1 : dprintf(run->events_fd, "%s\n", json);
	run->events_bytes += n > 0 ? (uint64_t)n : 0;
	if (n > 0 || run->events_lost)
		return;
	run->events_lost = true;
	if (full)
		cli_error(0, "no more events are written to %s: they took 64 MiB", run->cli.events);
	else
		cli_error(0, "an event could not be written to %s: %s", run->cli.events,
			  strerror(errno));
}

static int open_events(struct run *run)
{
	if (!run->cli.events)
		return 0;
	run->events_fd =
		open(run->cli.events,
		     O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, 0600);
	if (run->events_fd < 0)
		return fail_with(run, CLI_ERROR, "--events %s cannot be opened: %s",
				 run->cli.events, strerror(errno));
	sandlock_policy_on_event(run->policy, write_event, run);
	return 0;
}

static int print_text(const char *name)
{
	auto_free char *text = NULL;
	if (sandlock_text(name, &text) < 0)
		return cli_error(CLI_ERROR, "the text %s is missing from this build", name);
	fputs(text, stdout);
	return CLI_OK;
}

/* What would hold the sandbox together: a comment in TOML; JSON has none, so on standard error. */
static void show_rungs(struct run *run)
{
	auto_free char *json = NULL;
	bool ok = sandlock_policy_rungs(run->policy, &json, &run->err) == 0;
	if (run->cli.print_policy == 2)
		cli_error(0, "rungs: %s", ok ? json : run->err.msg);
	else
		printf("# rungs: %s\n", ok ? json : run->err.msg);
}

static int print_policy(struct run *run)
{
	auto_free char *text = NULL;
	if (sandlock_policy_print(run->policy, run->cli.print_policy == 2 ? "json" : "toml", &text,
				  &run->err) < 0)
		return fail(run, CLI_ERROR);
	show_warnings(run);
	fputs(text, stdout);
	show_rungs(run);
	return fflush(stdout) == 0 ? CLI_OK : CLI_ERROR;
}

/* --- The start -------------------------------------------------------------------------------- */

static int exit_code_of_start(int r)
{
	if (r == -SANDLOCK_E_NOT_FOUND)
		return CLI_NOT_FOUND;
	return CLI_ERROR;
}

static void fill_spawn(struct run *run, struct sandlock_spawn *sp)
{
	sp->struct_size = sizeof(*sp);
	sp->argv = run->command;
	sp->ret_pty = -1;
	sp->flags = SANDLOCK_SPAWN_CALLER_LOOP;
	for (int i = 0; i < 3; i++)
		sp->fds[i] = fcntl(i, F_GETFD) >= 0 || errno != EBADF ? i : -1;
	if (run->cli.pty) {
		struct winsize ws;
		sp->flags |= SANDLOCK_SPAWN_PTY;
		if (ioctl(STDIN_FILENO, TIOCGWINSZ, &ws) == 0) {
			sp->pty_rows = ws.ws_row;
			sp->pty_cols = ws.ws_col;
		}
		return;
	}
	/*
	 * The command has a process group of its own, so that it cannot signal or renice ours. With
	 * a terminal on both ends the group gets the foreground at once, as under a shell. In a
	 * pipeline the pager or the tee beside us needs the terminal as well: there the command
	 * gets it when it first asks (on_stopped).
	 */
	run->terminal = tcgetpgrp(STDIN_FILENO) > 0;
	run->handed_over = tty_is_interactive() && isatty(STDOUT_FILENO);
	sp->flags |= SANDLOCK_SPAWN_REPORT_STOPS;
	if (run->handed_over)
		sp->flags |= SANDLOCK_SPAWN_FOREGROUND;
}

static void catch_signals(struct run *run, sigset_t *ret_old)
{
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	sigaddset(&set, SIGQUIT);
	sigaddset(&set, SIGUSR1);
	sigaddset(&set, SIGUSR2);
	sigaddset(&set, SIGWINCH);
	sigaddset(&set, SIGTSTP);
	sigprocmask(SIG_BLOCK, &set, ret_old);
	run->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

/* --- The loop --------------------------------------------------------------------------------- */

static void begin_end(struct run *run, int sig)
{
	if (run->ended_by) {
		sandlock_kill(run->process);
		return;
	}
	run->ended_by = sig;
	run->kill_at_ms = now_ms() + GRACE_MS;
	sandlock_signal(run->process, sig);
	if (sig != SIGKILL)
		sandlock_signal(run->process, SIGCONT);
}

/*
 * While sandlock is stopped, this process waits for news of the sandbox and continues it then: a
 * run whose time is up, or whose command was continued by somebody else, must not stay stopped.
 */
static pid_t start_watcher(const struct run *run)
{
	pid_t parent = getpid();
	pid_t pid = fork();
	if (pid != 0)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	sigset_t all;
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
	struct pollfd pfd = {.fd = run->wait_fd, .events = POLLIN};
	while (getppid() == parent && poll(&pfd, 1, -1) < 0 && errno == EINTR)
		;
	if (getppid() == parent)
		kill(parent, SIGCONT);
	_exit(0);
}

/* We are stopped as the job that the shell knows; the command is stopped or must be. */
static void stop_with_command(struct run *run, bool wants_terminal)
{
	tty_take_back(run->command_pgrp);
	pid_t watcher = start_watcher(run);
	bool alone = false;
	if (wants_terminal) {
		alone = !tty_wait_for();
	} else {
		sigset_t set;
		sigemptyset(&set);
		sigaddset(&set, SIGTSTP);
		raise(SIGTSTP);
		/* Unblocked, the pending signal stops this process, unless its group is orphaned.
		 */
		sigprocmask(SIG_UNBLOCK, &set, NULL);
		sigprocmask(SIG_BLOCK, &set, NULL);
	}
	if (watcher > 0) {
		kill(watcher, SIGKILL);
		while (waitpid(watcher, NULL, 0) < 0 && errno == EINTR)
			;
	}
	if ((run->handed_over || wants_terminal) && tty_is_ours()) {
		run->handed_over = true;
		tty_give(run->command_pgrp);
	}
	/* Nobody will ever bring it to the foreground: told as the kernel tells orphaned groups. */
	if (alone)
		sandlock_signal(run->process, SIGHUP);
	sandlock_signal(run->process, SIGCONT);
}

static void on_signal(struct run *run)
{
	struct signalfd_siginfo si;
	while (read(run->signal_fd, &si, sizeof(si)) == (ssize_t)sizeof(si)) {
		int sig = (int)si.ssi_signo;
		bool from_terminal = si.ssi_code == SI_KERNEL && sig != SIGHUP;
		if (sig == SIGWINCH) {
			if (run->cli.pty)
				relay_resize(&run->relay);
		} else if (sig == SIGTSTP) {
			sandlock_signal(run->process, SIGTSTP);
			stop_with_command(run, false);
		} else if (sig == SIGUSR1 || sig == SIGUSR2 || from_terminal) {
			sandlock_signal(run->process, sig); /* the command decides what it means */
		} else {
			begin_end(run, sig);
		}
	}
}

/*
 * The command was stopped: because it wants the terminal, which it then gets if that is ours to
 * give, or as a job of the terminal, and then so are we. Elsewhere nobody would continue us: there
 * the command alone stays stopped, and the time limit goes on.
 */
static void on_stopped(struct run *run, int sig)
{
	bool wants_terminal = sig == SIGTTIN || sig == SIGTTOU;
	if (wants_terminal && tty_is_ours()) {
		run->handed_over = true;
		tty_give(run->command_pgrp);
		sandlock_signal(run->process, SIGCONT);
	} else if (run->terminal && (sig != SIGSTOP || run->handed_over)) {
		stop_with_command(run, wants_terminal);
	}
}

/* Until when to wait at most, in ms: for the sandbox's own timers and for the end of the grace. */
static int poll_time(const struct run *run)
{
	int64_t left = sandlock_process_timeout(run->process);
	if (run->ended_by) {
		int64_t grace = run->kill_at_ms - now_ms();
		grace = grace < 0 ? 0 : grace;
		left = left < 0 || grace < left ? grace : left;
	}
	return (int)left;
}

/* Serves the sandbox. Returns true once the whole tree has ended. */
static bool wait_once(struct run *run)
{
	int r = sandlock_wait(run->process, 0, &run->result, &run->err);
	if (r == SANDLOCK_STOPPED && !run->cli.pty)
		on_stopped(run, run->result.signal);
	ask_terminal_update(&run->ask, run->process);
	return r == SANDLOCK_ENDED || (r < 0 && r != -SANDLOCK_E_TIMEOUT);
}

/* One wait. Returns true once the whole tree has ended. */
static bool step(struct run *run)
{
	struct pollfd pfd[7];
	int n = 0;
	pfd[n++] = (struct pollfd){.fd = run->wait_fd, .events = POLLIN};
	pfd[n++] = (struct pollfd){.fd = run->signal_fd, .events = POLLIN};
	/* A terminal that is gone is noticed even by a run that is not in its foreground. */
	pfd[n++] = (struct pollfd){.fd = run->terminal && !run->ended_by ? STDIN_FILENO : -1};
	ask_terminal_poll(&run->ask, &pfd[n++]);
	if (run->cli.pty)
		relay_poll(&run->relay, pfd + n);
	int ready = poll(pfd, (nfds_t)(run->cli.pty ? 7 : 4), poll_time(run));
	if (run->ended_by && now_ms() >= run->kill_at_ms) {
		sandlock_kill(run->process);
		run->kill_at_ms = now_ms() + 1000;
	}
	if (ready == 0)
		return wait_once(run);
	if (ready < 0)
		return false;
	ask_terminal_step(&run->ask, &pfd[3], run->process);
	if (pfd[1].revents)
		on_signal(run);
	if (pfd[2].revents)
		begin_end(run, SIGHUP);
	if (run->cli.pty) {
		relay_step(&run->relay, pfd + 4);
		if (run->relay.broken && !run->ended_by)
			begin_end(run, SIGHUP);
	}
	return pfd[0].revents && wait_once(run);
}

static int exit_code(struct run *run)
{
	const struct sandlock_result *res = &run->result;
	if (res->reason == SANDLOCK_TIMED_OUT)
		return CLI_TIMEOUT;
	if (res->reason == SANDLOCK_EXITED)
		return res->exit_code;
	if (res->reason == SANDLOCK_KILLED && run->ended_by)
		return 128 + run->ended_by;
	return 128 + (res->signal ? res->signal : SIGKILL);
}

/* A command that counts on changing its user fails in words of its own: say why (handed case B57).
 */
static void note_setuid(const char *name)
{
	const char *path = getenv("PATH");
	char file[PATH_MAX];
	struct stat st;
	for (const char *p = strchr(name, '/') ? "" : path; p; p = *p ? p + 1 : NULL) {
		size_t n = strcspn(p, ":");
		if (strchr(name, '/'))
			snprintf(file, sizeof(file), "%s", name);
		else
			snprintf(file, sizeof(file), "%.*s/%s", (int)n, p, name);
		p += n;
		if (stat(file, &st) < 0 || !S_ISREG(st.st_mode))
			continue;
		if (st.st_mode & (S_ISUID | S_ISGID))
			cli_error(0,
				  "note: %s is a set-user-ID or set-group-ID program, and setuid "
				  "has no "
				  "effect in a sandbox",
				  file);
		return;
	}
}

/* Most refusals are the kernel's, which tells nobody. */
static void note_explain(const struct run *run)
{
	if (sandlock_policy_explains(run->policy) == 0)
		cli_error(0, "note: refusals that the kernel makes by itself are not listed; add "
			     "--explain to see them");
}

/* --- The workspace ---------------------------------------------------------------------------- */

static int write_changes(void *data, const char *text, size_t len)
{
	return fwrite(text, 1, len, (FILE *)data) == len ? 0 : -EIO;
}

static int print_changes(struct run *run)
{
	const char *path = run->cli.diff_output;
	FILE *out = path ? fopen(path, "we") : stderr;
	if (!out) {
		snprintf(run->err.msg, sizeof(run->err.msg), "--diff-output %.200s: %s", path,
			 strerror(errno));
		return -1;
	}
	int r = sandlock_process_changes(run->process, run->cli.format, write_changes, out,
					 &run->err);
	int end = fflush(out);
	if (path && fclose(out) != 0)
		end = -1;
	if (end != 0 && r == 0) {
		snprintf(run->err.msg, sizeof(run->err.msg), "the changes cannot be written: %s",
			 strerror(errno));
		r = -1;
	}
	return r;
}

/* A dry run prints, and its layer goes; else the library has done what the policy says. */
static bool settle_layer(struct run *run)
{
	const char *note;
	int r = sandlock_process_landing(run->process, &run->err);
	if (r == 0 && run->cli.dry_run)
		r = print_changes(run);
	else if (r == 0) /* what was deferred has nobody to decide about it later */
		(void)sandlock_process_land(run->process, "keep", NULL);
	for (size_t i = 0; (note = sandlock_process_note(run->process, i)); i++)
		if (!run->cli.quiet)
			cli_error(0, "%s", note);
	if (r < 0 && run->cli.dry_run)
		run->result.reason = SANDLOCK_COMMIT_FAILED;
	return r == 0;
}

static int supervise(struct run *run)
{
	run->result.struct_size = sizeof(run->result);
	if (run->cli.pty)
		relay_resize(&run->relay);
	if (run->wait_fd < 0 || run->signal_fd < 0) {
		/* Nothing can be waited for: what was started must not go on alone. */
		sandlock_process_free(run->process);
		return fail_with(run, CLI_ERROR,
				 "no descriptor is left to watch the sandbox with: raise the "
				 "open-file limit (ulimit -n)");
	}
	bool shared = !run->cli.pty && (isatty(0) || isatty(1) || isatty(2));
	ask_terminal_init(&run->ask, shared, run->cli.pty ? &run->relay : NULL, run->cli.quiet);
	while (!step(run))
		;
	ask_terminal_done(&run->ask);
	if (run->cli.pty) {
		relay_drain(&run->relay, run->result.reason == SANDLOCK_EXITED);
		relay_done(&run->relay);
	}
	tty_take_back(run->command_pgrp);
	if (!run->cli.pty)
		tty_restore(&run->tty, run->result.reason != SANDLOCK_EXITED);
	/* What was refused, where that may be why the command failed. */
	auto_free char *refusals = NULL;
	if (exit_code(run) && !run->cli.quiet)
		sandlock_process_refusals(run->process, &refusals);
	bool landed = settle_layer(run);
	sandlock_process_free(run->process);
	/* First what others wait for, then what may meet a full pipe. */
	status_write(run->cli.status_fd, &run->result, landed ? NULL : run->err.msg);
	run->status_written = true;
	if (run->result.reason == SANDLOCK_TIMED_OUT && !run->cli.quiet)
		cli_error(0, "timeout after %.3gs", (double)run->result.run_ms / 1000);
	if (refusals)
		fputs(refusals, stderr);
	int code = exit_code(run);
	if (!landed)
		return fail(run, CLI_ERROR);
	if (code && run->result.reason == SANDLOCK_EXITED && !run->cli.quiet) {
		note_setuid(run->command[0]);
		note_explain(run);
	}
	return code;
}

static int start_failed(struct run *run, int r)
{
	int code = exit_code_of_start(r);
	if (r == -SANDLOCK_E_PERMISSION && str_starts(run->err.msg, "Cannot execute"))
		code = CLI_NOT_EXECUTABLE;
	return fail(run, code);
}

static int start_and_wait(struct run *run)
{
	struct sandlock_spawn sp = {0};
	fill_spawn(run, &sp);
	sigset_t old;
	catch_signals(run, &old);
	tty_save(&run->tty);
	int r = sandlock_spawn(run->policy, &sp, &run->process, &run->err);
	show_warnings(run);
	int code;
	if (r < 0) {
		if (run->handed_over)
			tty_take_back(0);
		code = start_failed(run, r);
	} else {
		run->command_pgrp = sandlock_process_pid(run->process);
		run->wait_fd = sandlock_process_fd(run->process);
		if (run->cli.pty)
			relay_init(&run->relay, sp.ret_pty);
		code = supervise(run);
	}
	return code;
}

static void on_warning(void *data, const char *text)
{
	const struct run *run = data;
	if (!run->cli.quiet)
		cli_warning(text);
}

/* Without a supervisor nobody stays: this process becomes the command. */
static int become(struct run *run)
{
	struct sandlock_spawn sp = {0};
	fill_spawn(run, &sp);
	sp.flags = 0;
	int r = sandlock_policy_check(run->policy, &run->err);
	if (r == 0) {
		sp.on_warning = on_warning;
		sp.on_warning_data = run;
		r = sandlock_exec(run->policy, &sp, &run->err);
	}
	return start_failed(run, r);
}

static int run_with(struct run *run, int argc, char **argv)
{
	int used = 0;
	run->cli.struct_size = sizeof(run->cli);
	run->cli.status_fd = -1;
	if (sandlock_policy_parse_args(run->policy, argc, argv, &run->cli, &used, &run->err) < 0)
		return fail(run, CLI_ERROR);
	if (run->cli.help)
		return print_text("help");
	if (run->cli.version) {
		printf("sandlock %s\n", sandlock_version());
		return CLI_OK;
	}
	if (run->cli.print_policy)
		return print_policy(run);
	int code = choose_command(run, argc - used, argv + used);
	if (code == 0)
		code = open_status(run);
	if (code == 0)
		code = open_events(run);
	if (code)
		return code;
	if (sandlock_policy_check(run->policy, &run->err) < 0)
		return fail(run, CLI_ERROR);
	return sandlock_policy_no_supervisor(run->policy) ? become(run) : start_and_wait(run);
}

int cli_run(int argc, char **argv)
{
	struct run run = {.events_fd = -1, .signal_fd = -1, .wait_fd = -1};
	/* A reader of our output that goes away is no reason to leave the run unfinished. */
	signal(SIGPIPE, SIG_IGN);
	run.policy = sandlock_policy_new();
	int code = run_with(&run, argc, argv);
	if (code && !run.status_written) {
		run.result.reason = SANDLOCK_START_FAILED;
		run.result.exit_code = code;
		status_write(run.cli.status_fd, &run.result, run.err.msg);
	}
	sandlock_policy_free(run.policy);
	util_close(run.events_fd);
	util_close(run.signal_fd);
	return code;
}
