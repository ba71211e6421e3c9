/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Attacks that seek privilege: set-user-ID programs, file capabilities, capability and identity
 * calls, limits raised beyond what the sandbox was given.
 *
 * Invariant: the gain that counts is a capability in the effective set or a limit beyond the given
 * one, never the mere return value of a call that gives nothing.
 */
#include "attack.h"

#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#define CAP_WORDS 2

static int effective(uint32_t caps[CAP_WORDS])
{
	struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[CAP_WORDS];

	if (syscall(SYS_capget, &head, data) < 0)
		return -1;
	for (int i = 0; i < CAP_WORDS; i++)
		caps[i] = data[i].effective;
	return 0;
}

/* Whether this process holds any capability. */
static int have_capability(char *const *arg)
{
	uint32_t caps[CAP_WORDS];

	if (effective(caps) < 0)
		return errno;
	detail("effective %08x%08x", caps[1], caps[0]);
	return caps[0] || caps[1] ? ATTACK_WORKED : EPERM;
}

/* The bounding set is what a program with file capabilities could still get. */
static int have_bounding(char *const *arg)
{
	int n = 0;

	for (int cap = 0; cap <= 63; cap++)
		n += prctl(PR_CAPBSET_READ, cap, 0, 0, 0) == 1;
	detail("%d in the bounding set", n);
	return n > 0 ? ATTACK_WORKED : EPERM;
}

/* TOOL is a copy of this program that is set-user-ID root, or has file capabilities. */
static int exec_privileged(char *const *arg)
{
	char name[] = "have_capability";
	char *const argv[] = {arg[0], name, NULL};
	pid_t pid = fork();
	int status;

	if (pid < 0)
		return errno;
	if (pid == 0) {
		close(1);
		execve(arg[0], argv, argv + 2);
		_exit(100 + errno);
	}
	status = reap(pid);
	detail("the program ended with %d", status);
	if (status > 100)
		return status - 100;
	return status == 0 ? ATTACK_WORKED : status == 1 ? EPERM : ATTACK_NA;
}

static int raise_all(void)
{
	struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[CAP_WORDS] = {
		{1U << CAP_SYS_ADMIN, 1U << CAP_SYS_ADMIN, 1U << CAP_SYS_ADMIN},
	};

	return outcome(syscall(SYS_capset, &head, data));
}

static int capset_raise(char *const *arg)
{
	return raise_all();
}

static int ambient_raise(char *const *arg)
{
	struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[CAP_WORDS];

	/* An ambient capability must be permitted and inheritable. */
	if (syscall(SYS_capget, &head, data) < 0)
		return errno;
	data[0].inheritable |= 1U << CAP_CHOWN;
	if (syscall(SYS_capset, &head, data) < 0)
		return errno;
	return outcome(prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, CAP_CHOWN, 0, 0));
}

/* Identity calls may succeed; what counts is what comes of them. */
static int after_identity(long r)
{
	uint32_t caps[CAP_WORDS];

	if (r < 0)
		return errno;
	if (effective(caps) < 0)
		return errno;
	detail("call succeeded, effective %08x%08x", caps[1], caps[0]);
	return caps[0] || caps[1] ? ATTACK_WORKED : EPERM;
}

static int setuid_root(char *const *arg)
{
	return after_identity(syscall(SYS_setuid, 0));
}

static int setresuid_root(char *const *arg)
{
	return after_identity(syscall(SYS_setresuid, 0, 0, 0));
}

static int setgid_root(char *const *arg)
{
	return after_identity(syscall(SYS_setgid, 0));
}

static int setgroups_root(char *const *arg)
{
	gid_t gid = 0;

	return outcome(setgroups(1, &gid));
}

/* RESOURCE: its hard limit plus one. */
static int rlimit_beyond(char *const *arg)
{
	struct rlimit limit;
	int resource = (int)number(arg[0]);

	if (getrlimit((__rlimit_resource_t)resource, &limit) < 0)
		return errno;
	limit.rlim_max += 1;
	limit.rlim_cur = limit.rlim_max;
	return outcome(setrlimit((__rlimit_resource_t)resource, &limit));
}

/* More open files than the sandbox was given. COUNT */
static int files_beyond(char *const *arg)
{
	long count = number(arg[0]);

	for (long i = 0; i < count; i++) {
		if (open("/dev/null", O_RDONLY) < 0)
			return errno;
	}
	return ATTACK_WORKED;
}

static int nice_negative(char *const *arg)
{
	return outcome(setpriority(PRIO_PROCESS, 0, -5));
}

static int realtime(char *const *arg)
{
	struct sched_param param = {.sched_priority = 1};

	return outcome(sched_setscheduler(0, SCHED_FIFO, &param));
}

/* Once set, no_new_privs cannot be taken back. */
static int clear_no_new_privs(char *const *arg)
{
	if (prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 0)
		return ATTACK_WORKED;
	return outcome(prctl(PR_SET_NO_NEW_PRIVS, 0, 0, 0, 0));
}

const struct attack attacks_privilege[] = {
	{"have_capability", 0, have_capability},
	{"have_bounding", 0, have_bounding},
	{"exec_privileged", 1, exec_privileged},
	{"capset", 0, capset_raise},
	{"ambient_raise", 0, ambient_raise},
	{"setuid_root", 0, setuid_root},
	{"setresuid_root", 0, setresuid_root},
	{"setgid_root", 0, setgid_root},
	{"setgroups", 0, setgroups_root},
	{"rlimit_beyond", 1, rlimit_beyond},
	{"files_beyond", 1, files_beyond},
	{"nice_negative", 0, nice_negative},
	{"realtime", 0, realtime},
	{"clear_no_new_privs", 0, clear_no_new_privs},
	{0},
};
