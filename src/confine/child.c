/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The confined child: from clone to exec. It shares the guardian's (and often the host's) memory,
 * so it makes raw system calls only, allocates nothing, and writes nothing but its job's state. The
 * order is fixed: what needs rights comes before the layers, the filter is last but the open-file
 * limit and the exec. Every failure is recorded as itself and ends the child; nothing is skipped.
 */
#include <errno.h>
#include <linux/capability.h>
#include <linux/prctl.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <linux/securebits.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "confine/job.h"
#include "confine/raw_util.h"

#ifndef CLOSE_RANGE_UNSHARE
#define CLOSE_RANGE_UNSHARE 2U
#endif
#define PERSONALITY_ADDR_NO_RANDOMIZE 0x0040000UL
#define PERSONALITY_QUERY	      0xffffffffUL

static int write_file(const char *path, const char *text)
{
	int fd = raw_openat(AT_FDCWD, path, O_WRONLY | O_CLOEXEC, 0);
	if (fd < 0)
		return fd;
	long r = raw_write(fd, text, raw_strlen(text));
	raw_close(fd);
	return r < 0 ? (int)r : 0;
}

int job_map_ids(struct job *job)
{
	int r = write_file("/proc/self/setgroups", "deny");
	if (r == -ENOENT)
		r = 0;
	if (r == 0)
		r = write_file("/proc/self/uid_map", job->uid_map);
	if (r == 0)
		r = write_file("/proc/self/gid_map", job->gid_map);
	return r < 0 ? job_fail(job, STEP_ID_MAP, -r, 0) : 0;
}

static void reset_signals(void)
{
	struct raw_sigaction sa;
	raw_zero(&sa, sizeof(sa));
	for (int sig = 1; sig <= 64; sig++) {
		if (sig != SIGKILL && sig != SIGSTOP)
			raw_syscall4(SYS_rt_sigaction, sig, &sa, NULL, sizeof(sa.mask));
	}
}

static int setup_group(struct job *job)
{
	long r = 0;
	if (job->pty || job->new_session)
		r = raw_syscall0(SYS_setsid);
	else if (!job->in_place)
		r = raw_syscall2(SYS_setpgid, 0, 0);
	if (r < 0)
		return job_fail(job, STEP_PROCESS_GROUP, (int)-r, 0);
	if (job->foreground) {
		int pgrp = (int)raw_syscall1(SYS_getpgid, 0);
		r = raw_syscall3(SYS_ioctl, job->stdio[0], TIOCSPGRP, &pgrp);
		if (r < 0)
			return job_fail(job, STEP_FOREGROUND, (int)-r, 0);
	}
	if (job->pty) {
		r = raw_syscall3(SYS_ioctl, job->stdio[0], TIOCSCTTY, 0);
		if (r < 0)
			return job_fail(job, STEP_PTY, (int)-r, 1);
	}
	return 0;
}

/*
 * Descriptors 0 to 2 come from numbers that may themselves lie in 0 to 2: everything is first moved
 * above them. The exec pipe becomes 3, close-on-exec, and all else is closed.
 */
static int setup_stdio(struct job *job)
{
	int high[4] = {job->stdio[0], job->stdio[1], job->stdio[2], job->exec_pipe};
	for (int i = 0; i < 4; i++) {
		int src = high[i] >= 0 || i == 3 ? high[i] : job->null_fd;
		if (i == 3 && src < 0)
			break;
		high[i] = (int)raw_syscall3(SYS_fcntl, src, F_DUPFD_CLOEXEC, 4);
		if (high[i] < 0)
			return job_fail(job, STEP_STDIO, -high[i], i);
	}
	for (int i = 0; i < 4 && high[i] >= 0; i++) {
		long r = raw_syscall3(SYS_dup3, high[i], i, i == 3 ? O_CLOEXEC : 0);
		if (r < 0)
			return job_fail(job, STEP_STDIO, (int)-r, i);
	}
	long r = raw_syscall3(SYS_close_range, high[3] >= 0 ? 4 : 3, ~0U, 0);
	if (r < 0)
		return job_fail(job, STEP_CLOSE_FDS, (int)-r, 0);
	return 0;
}

static int set_limit(int resource, uint64_t soft, uint64_t hard)
{
	uint64_t lim[2] = {soft, hard};
	return (int)raw_syscall4(SYS_prlimit64, 0, resource, lim, NULL);
}

/*
 * One byte: too little for a core file, and the one limit that stops a dump which core_pattern
 * pipes to a program (core(5)); such a dump ignores 0.
 */
static int switch_cores_off(struct job *job)
{
	uint64_t old[2] = {0, 0};
	int r = (int)raw_syscall4(SYS_prlimit64, 0, RLIMIT_CORE, NULL, old);
	if (r >= 0)
		r = set_limit(RLIMIT_CORE, old[1] ? 1 : 0, old[1] ? 1 : 0);
	return r < 0 ? job_fail(job, STEP_CORE_LIMIT, -r, 0) : 0;
}

static int change_directory(struct job *job)
{
	long r = raw_syscall1(SYS_chdir, job->cwd);
	/* An inherited directory without a name here may lie under one of our mounts. */
	if (r < 0 && job->cwd_optional)
		r = raw_syscall1(SYS_chdir, "/");
	return r < 0 ? job_fail(job, STEP_CWD, (int)-r, 0) : 0;
}

static int setup_process(struct job *job)
{
	long r;
	if (job->no_core) {
		int e = switch_cores_off(job);
		if (e < 0)
			return e;
	}
	if (job->no_thp) {
		r = raw_syscall5(SYS_prctl, PR_SET_THP_DISABLE, 1, 0, 0, 0);
		if (r < 0)
			return job_fail(job, STEP_THP, (int)-r, 0);
	}
	if (job->no_aslr) {
		r = raw_syscall1(SYS_personality, PERSONALITY_QUERY);
		if (r >= 0)
			r = raw_syscall1(SYS_personality, r | PERSONALITY_ADDR_NO_RANDOMIZE);
		if (r < 0)
			return job_fail(job, STEP_PERSONALITY, (int)-r, 0);
	}
	if (job->cpu_mask) {
		r = raw_syscall3(SYS_sched_setaffinity, 0, job->cpu_mask_bytes, job->cpu_mask);
		if (r < 0)
			return job_fail(job, STEP_AFFINITY, (int)-r, 0);
	}
	return job->cwd ? change_directory(job) : 0;
}

static int open_rule(struct job *job, size_t i)
{
	struct job_rule *rule = &job->rules[i];
	rule->fd = raw_openat(AT_FDCWD, rule->path, O_PATH | O_CLOEXEC, 0);
	if (rule->fd < 0) {
		int code = -rule->fd;
		rule->fd = -1;
		if (rule->optional && !rule->pattern &&
		    (code == ENOENT || code == ENOTDIR || code == EACCES)) {
			rule->missing = 1;
			return 0;
		}
		return job_fail(job, STEP_RULE_OPEN, code, (int)i);
	}
	struct stat st = {0};
	long r = raw_syscall4(SYS_newfstatat, rule->fd, "", &st, AT_EMPTY_PATH);
	if (r < 0)
		return job_fail(job, STEP_RULE_OPEN, (int)-r, (int)i);
	rule->rule_dev = st.st_dev;
	rule->rule_ino = st.st_ino;
	if (rule->own_only && !S_ISCHR(st.st_mode)) {
		raw_close(rule->fd);
		rule->fd = -1;
		rule->missing = 1;
		return 0;
	}
	if (!S_ISDIR(st.st_mode))
		rule->access &= job->file_rights;
	return 0;
}

/* What the guardian mounted is what the Landlock rule will be about; a path exchanged meanwhile
 * isn't. */
static int check_mounted(struct job *job)
{
	for (size_t i = 0; i < job->n_rules; i++) {
		struct job_rule *rule = &job->rules[i];
		struct stat st = {0};
		if (!rule->mounted || rule->fd < 0)
			continue;
		long r = raw_syscall4(SYS_newfstatat, rule->fd, "", &st, AT_EMPTY_PATH);
		if (r < 0 || st.st_dev != rule->dev || st.st_ino != rule->ino)
			return job_fail(job, STEP_RULE_OPEN, ESTALE, (int)i);
	}
	return 0;
}

/* Waits for the guardian's mounts; spinning a little first, since they take a moment only. */
static int pass_gate(struct job *job)
{
	int *gate = &job->state.gate;
	for (int i = 0; i < 100 && __atomic_load_n(gate, __ATOMIC_ACQUIRE) == GATE_SHUT; i++)
		raw_syscall0(SYS_sched_yield);
	while (__atomic_load_n(gate, __ATOMIC_ACQUIRE) == GATE_SHUT)
		raw_syscall4(SYS_futex, gate, 0 /* FUTEX_WAIT */, GATE_SHUT, NULL);
	return __atomic_load_n(gate, __ATOMIC_ACQUIRE) == GATE_OPEN ? 0 : -ECANCELED;
}

int job_open_rules(struct job *job, bool late)
{
	for (size_t i = 0; i < job->n_rules; i++) {
		/* What is carried into the private /dev/shm is found there only once it is mounted.
		 */
		bool is_late = job->rules[i].late || job->rules[i].into_shm;
		if (is_late != late || job->rules[i].fd >= 0)
			continue;
		int r = open_rule(job, i);
		if (r < 0)
			return r;
	}
	return 0;
}

static int apply_landlock(struct job *job)
{
	struct uapi_landlock_ruleset_attr *attr = &job->ruleset;
	if (!attr->handled_access_fs && !attr->handled_access_net && !attr->scoped)
		return 0;
	/* An older kernel refuses a larger structure even if its tail is zero-sized in meaning. */
	size_t size = attr->scoped ? 24 : attr->handled_access_net ? 16 : 8;
	int fd = (int)raw_syscall3(SYS_landlock_create_ruleset, attr, size, 0);
	if (fd < 0)
		return job_fail(job, STEP_LANDLOCK_RULESET, -fd, 0);
	for (size_t i = 0; i < job->n_rules; i++) {
		struct job_rule *rule = &job->rules[i];
		struct landlock_path_beneath_attr path = {
			.allowed_access = rule->access & attr->handled_access_fs,
			.parent_fd = rule->fd,
		};
		if (rule->fd < 0 || !path.allowed_access)
			continue;
		long r = raw_syscall4(SYS_landlock_add_rule, fd, LANDLOCK_RULE_PATH_BENEATH, &path,
				      0);
		if (r < 0)
			return job_fail(job, STEP_LANDLOCK_RULE, (int)-r, (int)i);
	}
	for (size_t i = 0; i < job->n_ports; i++) {
		struct uapi_landlock_net_port_attr port = job->ports[i];
		port.allowed_access &= attr->handled_access_net;
		if (!port.allowed_access)
			continue;
		long r = raw_syscall4(SYS_landlock_add_rule, fd, UAPI_LANDLOCK_RULE_NET_PORT, &port,
				      0);
		if (r < 0)
			return job_fail(job, STEP_LANDLOCK_PORT, (int)-r, (int)port.port);
	}
	long r = raw_syscall2(SYS_landlock_restrict_self, fd, 0);
	if (r < 0)
		return job_fail(job, STEP_LANDLOCK_RESTRICT, (int)-r, 0);
	raw_close(fd);
	return 0;
}

static int set_ids(struct job *job)
{
	long r = raw_syscall2(SYS_setgroups, 0, NULL);
	if (r >= 0)
		r = raw_syscall3(SYS_setresgid, job->gid, job->gid, job->gid);
	if (r >= 0)
		r = raw_syscall3(SYS_setresuid, job->uid, job->uid, job->uid);
	if (r < 0)
		return job_fail(job, STEP_IDS, (int)-r, 0);
	return 0;
}

static long get_capabilities(struct __user_cap_data_struct *data)
{
	struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
	return raw_syscall2(SYS_capget, &head, data);
}

/*
 * Empties the bounding set and locks the securebits, so that neither an exec nor a set-user-id
 * program brings a capability back. Needs CAP_SETPCAP, so it comes before any change of ids;
 * without that capability no_new_privs alone stands in the way.
 */
static int drop_bounding_set(struct job *job)
{
	struct __user_cap_data_struct data[2] = {{0}};
	long r = get_capabilities(data);
	if (r < 0)
		return job_fail(job, STEP_CAPABILITIES, (int)-r, 0);
	if (!(data[0].effective & (1U << CAP_SETPCAP)))
		return 0;
	for (int cap = 0; cap < 64; cap++) {
		r = raw_syscall5(SYS_prctl, PR_CAPBSET_DROP, cap, 0, 0, 0);
		if (r == -EINVAL)
			break;
		if (r < 0)
			return job_fail(job, STEP_CAPABILITIES, (int)-r, cap);
	}
	r = raw_syscall5(SYS_prctl, PR_SET_SECUREBITS,
			 SECBIT_NOROOT | SECBIT_NOROOT_LOCKED | SECBIT_NO_SETUID_FIXUP |
				 SECBIT_NO_SETUID_FIXUP_LOCKED | SECBIT_KEEP_CAPS_LOCKED |
				 SECBIT_NO_CAP_AMBIENT_RAISE | SECBIT_NO_CAP_AMBIENT_RAISE_LOCKED,
			 0, 0, 0);
	return r < 0 ? job_fail(job, STEP_CAPABILITIES, (int)-r, 100) : 0;
}

/* Leaves no capability in any other set. */
static int drop_capabilities(struct job *job)
{
	struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[2] = {{0}};
	long r = get_capabilities(data);
	if (r < 0)
		return job_fail(job, STEP_CAPABILITIES, (int)-r, 1);
	if (!(data[0].permitted | data[1].permitted | data[0].inheritable | data[1].inheritable |
	      data[0].effective | data[1].effective))
		return 0;
	r = raw_syscall5(SYS_prctl, PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
	if (r < 0)
		return job_fail(job, STEP_CAPABILITIES, (int)-r, 101);
	raw_zero(data, sizeof(data));
	r = raw_syscall2(SYS_capset, &head, data);
	return r < 0 ? job_fail(job, STEP_CAPABILITIES, (int)-r, 102) : 0;
}

static int confine(struct job *job)
{
	long r = raw_syscall5(SYS_prctl, PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	if (r < 0)
		return job_fail(job, STEP_NO_NEW_PRIVS, (int)-r, 0);
	int e = apply_landlock(job);
	if (e == 0 && job->set_ids)
		e = set_ids(job);
	return e < 0 ? e : drop_capabilities(job);
}

static int install_filter(struct job *job)
{
	struct {
		unsigned short len;
		struct sock_filter *filter;
	} prog = {job->n_filter, job->filter};
	unsigned long flags = job->notify ? SECCOMP_FILTER_FLAG_NEW_LISTENER |
						    SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV
					  : 0;
	long r = raw_syscall3(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &prog);
	/* Kernels before 5.19 do not know the second flag. */
	if (r == -EINVAL && job->notify)
		r = raw_syscall3(SYS_seccomp, SECCOMP_SET_MODE_FILTER,
				 SECCOMP_FILTER_FLAG_NEW_LISTENER, &prog);
	if (r < 0)
		return job_fail(job, STEP_SECCOMP, (int)-r, 0);
	if (!job->notify)
		return 0;
	job->state.listener = (int)r;
	return 0;
}

/*
 * From here on the child's descriptors are its own. The guardian learns that it has to close its
 * own end of the pipe, and that the listener is there, by the byte.
 */
static int leave_table(struct job *job)
{
	if (!job->notify)
		return 0;
	long r = raw_syscall3(SYS_close_range, ~0U, ~0U, CLOSE_RANGE_UNSHARE);
	if (r == 0)
		r = raw_write(job->exec_pipe, "u", 1) == 1 ? 0 : -EPIPE;
	return r < 0 ? job_fail(job, STEP_CLOSE_FDS, (int)-r, 1) : 0;
}

static int limit_open_files(struct job *job)
{
	if (!job->max_open_files && !job->soft_open_files)
		return 0;
	uint64_t old[2] = {0, 0};
	long r = raw_syscall4(SYS_prlimit64, 0, RLIMIT_NOFILE, NULL, old);
	if (job->soft_open_files)
		old[0] = job->soft_open_files;
	if (r >= 0 && job->max_open_files) {
		uint64_t n = job->max_open_files;
		n = n < old[0] ? n : old[0];
		n = n < old[1] ? n : old[1];
		r = set_limit(RLIMIT_NOFILE, n, n);
	} else if (r >= 0) {
		r = set_limit(RLIMIT_NOFILE, old[0], old[1]);
	}
	if (r < 0)
		return job_fail(job, STEP_OPEN_FILES, (int)-r, 0);
	return 0;
}

/* Whether /bin/sh may be asked to run PATH: no NUL byte in its first line, and no ELF file. */
static bool is_shell_text(const char *path)
{
	char head[256] = {0};
	int fd = raw_openat(AT_FDCWD, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK, 0);
	if (fd < 0)
		return false;
	long n = raw_syscall3(SYS_read, fd, head, sizeof(head));
	raw_close(fd);
	if (n < 0 || (n >= 4 && head[0] == 0x7f && head[1] == 'E' && head[2] == 'L'))
		return false;
	for (long i = 0; i < n && head[i] != '\n'; i++) {
		if (!head[i])
			return false;
	}
	return true;
}

/* Tries each candidate as execvp does; what decides is the last errno that says something. */
static int execute(struct job *job)
{
	int code = ENOENT;
	int index = 0;
	for (int i = 0; job->candidates[i]; i++) {
		long r = raw_syscall3(SYS_execve, job->candidates[i], job->argv, job->envp);
		if (r == -ENOEXEC && job->shell && is_shell_text(job->candidates[i])) {
			job->shell_argv[0] = (char *)(uintptr_t) "sh";
			job->shell_argv[1] = (char *)(uintptr_t)job->candidates[i];
			r = raw_syscall3(SYS_execve, job->shell, job->shell_argv, job->envp);
			if (r < 0)
				return job_fail(job, STEP_EXEC, ENOEXEC, i);
		}
		if (r != -ENOENT && r != -ENOTDIR && r != -EACCES)
			return job_fail(job, STEP_EXEC, (int)-r, i);
		if (r == -EACCES || code == ENOENT) {
			bool first = code != EACCES;
			code = r == -EACCES ? EACCES : ENOENT;
			if (first)
				index = i;
		}
	}
	return job_fail(job, STEP_EXEC, code, index);
}

/* The child was made in a user namespace, or, executed in place, makes one now. */
static int map_own_ids(struct job *job)
{
	if (job->in_place) {
		long r = raw_syscall1(SYS_unshare, CLONE_NEWUSER);
		if (r < 0)
			return job_fail(job, STEP_NAMESPACE, (int)-r, 0);
	}
	return job_map_ids(job);
}

/* What needs none of the base's mounts: done while the guardian makes them. */
static int prepare(struct job *job)
{
	reset_signals();
	if (job->ctl >= 0) {
		struct job_msg msg = {.kind = REPORT_CHILD};
		raw_syscall6(SYS_sendto, job->ctl, (long)&msg, sizeof(msg), MSG_NOSIGNAL, 0, 0);
	}
	int r = 0;
	if (job->map_ids && !job->base)
		r = map_own_ids(job);
	if (r == 0)
		r = job_open_rules(job, false);
	if (r == 0)
		r = drop_bounding_set(job);
	if (r == 0 && job->base)
		r = pass_gate(job);
	return r;
}

int child_run(struct job *job)
{
	int r = prepare(job);
	if (r == 0)
		r = setup_group(job);
	if (r == 0)
		r = job_open_rules(job, true);
	if (r == 0)
		r = check_mounted(job);
	if (r == 0)
		r = setup_process(job);
	if (r == 0)
		r = confine(job);
	if (r == 0 && job->notify)
		r = install_filter(job);
	if (r == 0)
		r = leave_table(job);
	if (r == 0)
		r = setup_stdio(job);
	if (r == 0 && !job->notify)
		r = install_filter(job);
	if (r == 0)
		r = limit_open_files(job);
	if (r == 0) {
		long e = raw_sigmask(SIG_SETMASK, 0, NULL);
		r = e < 0 ? job_fail(job, STEP_SIGNAL_MASK, (int)-e, 0) : execute(job);
	}
	return r;
}

int child_main(void *arg)
{
	struct job *job = arg;
	child_run(job);
	raw_exit(job->state.step_errno == ENOENT ? 127 : 126);
}
