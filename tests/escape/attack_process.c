/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Attacks on processes outside the sandbox: tracing, memory, signals, descriptors, scheduling and
 * what /proc shows of them.
 *
 * Invariant: the victim survives: signals sent to it are ones that it handles, and what is changed
 * of it is set to the value that it has.
 */
#include "attack.h"

#include <fcntl.h>
#include <linux/kcmp.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

static pid_t pid_of(const char *text)
{
	return (pid_t)number(text);
}

static int ptrace_attach(char *const *arg)
{
	pid_t pid = pid_of(arg[0]);

	if (ptrace(PTRACE_ATTACH, pid, NULL, NULL) < 0)
		return errno;
	waitpid(pid, NULL, __WALL);
	ptrace(PTRACE_DETACH, pid, NULL, NULL);
	return ATTACK_WORKED;
}

static int ptrace_seize(char *const *arg)
{
	pid_t pid = pid_of(arg[0]);

	if (ptrace(PTRACE_SEIZE, pid, NULL, NULL) < 0)
		return errno;
	ptrace(PTRACE_INTERRUPT, pid, NULL, NULL);
	waitpid(pid, NULL, __WALL);
	ptrace(PTRACE_DETACH, pid, NULL, NULL);
	return ATTACK_WORKED;
}

static int ptrace_traceme(char *const *arg)
{
	pid_t pid = fork();

	if (pid < 0)
		return errno;
	if (pid == 0)
		_exit(ptrace(PTRACE_TRACEME, 0, NULL, NULL) < 0 ? errno : 0);
	return reap(pid);
}

/* PID, ADDRESS */
static int vm_readv(char *const *arg)
{
	char buf[8];
	struct iovec local = {buf, sizeof(buf)};
	struct iovec remote = {(void *)(uintptr_t)number(arg[1]), sizeof(buf)};

	return outcome(process_vm_readv(pid_of(arg[0]), &local, 1, &remote, 1, 0));
}

static int vm_writev(char *const *arg)
{
	char buf[8] = "VICTIM!";
	struct iovec local = {buf, sizeof(buf)};
	struct iovec remote = {(void *)(uintptr_t)number(arg[1]), sizeof(buf)};

	return outcome(process_vm_writev(pid_of(arg[0]), &local, 1, &remote, 1, 0));
}

static int kill_pid(char *const *arg)
{
	return outcome(kill(pid_of(arg[0]), SIGUSR1));
}

static int kill_zero(char *const *arg)
{
	return outcome(kill(pid_of(arg[0]), 0));
}

/* The victim leads its own process group. */
static int kill_group(char *const *arg)
{
	return outcome(kill(-pid_of(arg[0]), SIGUSR1));
}

static int tkill_pid(char *const *arg)
{
	return outcome(syscall(SYS_tkill, pid_of(arg[0]), SIGUSR1));
}

static int tgkill_pid(char *const *arg)
{
	return outcome(syscall(SYS_tgkill, pid_of(arg[0]), pid_of(arg[0]), SIGUSR1));
}

static int sigqueue_pid(char *const *arg)
{
	return outcome(sigqueue(pid_of(arg[0]), SIGUSR1, (union sigval){.sival_int = 1}));
}

static int tgsigqueue_pid(char *const *arg)
{
	siginfo_t info = {.si_signo = SIGUSR1, .si_code = SI_QUEUE};

	return outcome(
		syscall(SYS_rt_tgsigqueueinfo, pid_of(arg[0]), pid_of(arg[0]), SIGUSR1, &info));
}

static int pidfd_signal(char *const *arg)
{
	int fd = (int)syscall(SYS_pidfd_open, pid_of(arg[0]), 0);

	if (fd < 0)
		return errno;
	return outcome(syscall(SYS_pidfd_send_signal, fd, SIGUSR1, NULL, 0));
}

/*
 * SIGIO by file owner: the kernel sends the signal on the caller's behalf, and does not tell the
 * caller if it does not. The harness asks the victim.
 */
static int fown_signal(char *const *arg)
{
	int p[2];

	if (pipe(p) < 0)
		return errno;
	if (fcntl(p[0], F_SETOWN, pid_of(arg[0])) < 0)
		return errno;
	if (fcntl(p[0], F_SETSIG, SIGUSR1) < 0 || fcntl(p[0], F_SETFL, O_ASYNC) < 0)
		return errno;
	return outcome(write(p[1], "x", 1));
}

/* PID, FD */
static int pidfd_getfd_of(char *const *arg)
{
	int fd = (int)syscall(SYS_pidfd_open, pid_of(arg[0]), 0);
	long copy;

	if (fd < 0)
		return errno;
	copy = syscall(SYS_pidfd_getfd, fd, (int)number(arg[1]), 0);
	return outcome(copy);
}

/* On itself: the call is refused as such, whoever the target is. */
static int pidfd_getfd_self(char *const *arg)
{
	int fd = (int)syscall(SYS_pidfd_open, getpid(), 0);

	return fd < 0 ? errno : outcome(syscall(SYS_pidfd_getfd, fd, 1, 0));
}

static int kcmp_pid(char *const *arg)
{
	return outcome(syscall(SYS_kcmp, getpid(), pid_of(arg[0]), KCMP_FILES, 0, 0));
}

/* On itself: the call is refused as such. */
static int madvise_self(char *const *arg)
{
	void *page = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct iovec v = {page, 4096};
	int fd = (int)syscall(SYS_pidfd_open, getpid(), 0);

	if (fd < 0 || page == MAP_FAILED)
		return errno;
	return outcome(syscall(SYS_process_madvise, fd, &v, 1, MADV_COLD, 0));
}

static int prlimit_set(char *const *arg)
{
	struct rlimit limit;

	if (prlimit(pid_of(arg[0]), RLIMIT_CORE, NULL, &limit) < 0)
		return errno;
	return outcome(prlimit(pid_of(arg[0]), RLIMIT_CORE, &limit, NULL));
}

static int prlimit_get(char *const *arg)
{
	struct rlimit limit;

	return outcome(prlimit(pid_of(arg[0]), RLIMIT_CORE, NULL, &limit));
}

static int affinity_set(char *const *arg)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(0, &set);
	CPU_SET(1, &set);
	return outcome(sched_setaffinity(pid_of(arg[0]), sizeof(set), &set));
}

static int scheduler_set(char *const *arg)
{
	struct sched_param param = {0};

	return outcome(sched_setscheduler(pid_of(arg[0]), SCHED_OTHER, &param));
}

static int schedattr_set(char *const *arg)
{
	uint32_t attr[12] = {48};

	return outcome(syscall(SYS_sched_setattr, pid_of(arg[0]), attr, 0));
}

static int priority_set(char *const *arg)
{
	return outcome(setpriority(PRIO_PROCESS, (id_t)pid_of(arg[0]), 0));
}

/* Every process of the user, the victim among them: the harness looks at its priority after. */
static int priority_user(char *const *arg)
{
	return outcome(setpriority(PRIO_USER, getuid(), 1));
}

static int ioprio_set_pid(char *const *arg)
{
	return outcome(syscall(SYS_ioprio_set, 1, pid_of(arg[0]), (2 << 13) | 4));
}

static int migrate_pages_pid(char *const *arg)
{
	unsigned long node = 1;

	return outcome(syscall(SYS_migrate_pages, pid_of(arg[0]), 8, &node, &node));
}

/* FILE below /proc/PID. PID, FILE */
static int proc_file(char *const *arg)
{
	int fd = open(join(join("/proc", arg[0]), arg[1]), O_RDONLY);

	return fd < 0 ? errno : read_some(fd);
}

/* PID, ADDRESS */
static int proc_mem_write(char *const *arg)
{
	int fd = open(join(join("/proc", arg[0]), "mem"), O_RDWR);

	if (fd < 0)
		return errno;
	return outcome(pwrite(fd, "VICTIM!", 7, number(arg[1])));
}

static int proc_oom_adj(char *const *arg)
{
	int fd = open(join(join("/proc", arg[0]), "oom_score_adj"), O_WRONLY);

	return fd < 0 ? errno : outcome(write(fd, "1000", 4));
}

/* Whether the victim's directory can be seen at all. */
static int proc_visible(char *const *arg)
{
	int fd = open(join("/proc", arg[0]), O_RDONLY | O_DIRECTORY);

	return outcome(fd);
}

static int getpgid_pid(char *const *arg)
{
	return outcome(getpgid(pid_of(arg[0])));
}

const struct attack attacks_process[] = {
	{"ptrace_attach", 1, ptrace_attach},
	{"ptrace_seize", 1, ptrace_seize},
	{"ptrace_traceme", 0, ptrace_traceme},
	{"vm_readv", 2, vm_readv},
	{"vm_writev", 2, vm_writev},
	{"kill", 1, kill_pid},
	{"kill_zero", 1, kill_zero},
	{"kill_group", 1, kill_group},
	{"tkill", 1, tkill_pid},
	{"tgkill", 1, tgkill_pid},
	{"sigqueue", 1, sigqueue_pid},
	{"tgsigqueue", 1, tgsigqueue_pid},
	{"pidfd_signal", 1, pidfd_signal},
	{"fown_signal", 1, fown_signal},
	{"pidfd_getfd", 2, pidfd_getfd_of},
	{"pidfd_getfd_self", 0, pidfd_getfd_self},
	{"kcmp", 1, kcmp_pid},
	{"process_madvise", 0, madvise_self},
	{"prlimit_set", 1, prlimit_set},
	{"prlimit_get", 1, prlimit_get},
	{"sched_setaffinity", 1, affinity_set},
	{"sched_setscheduler", 1, scheduler_set},
	{"sched_setattr", 1, schedattr_set},
	{"setpriority", 1, priority_set},
	{"setpriority_user", 0, priority_user},
	{"ioprio_set", 1, ioprio_set_pid},
	{"migrate_pages", 1, migrate_pages_pid},
	{"proc_file", 2, proc_file},
	{"proc_mem_write", 2, proc_mem_write},
	{"proc_oom_adj", 1, proc_oom_adj},
	{"proc_visible", 1, proc_visible},
	{"getpgid", 1, getpgid_pid},
	{0},
};
