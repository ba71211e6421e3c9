/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Installs filters on the running kernel, in a child for each policy, makes calls under them and
 * compares errno. What the simulator is for the filter's logic, this is for the belief that the
 * kernel reads the program as the simulator does. A call that passes the filter gets an argument
 * that the kernel refuses by itself, so that no row changes anything. Prints TAP, a result per row.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/err.h"
#include "base/util.h"
#include "policy/filter.h"
#include "sys/uapi.h"

#define HIGH	     0xdeadbeef00000000UL
#define NO_SUCH_FILE ((unsigned long)"/nonexistent-9f3b/x")

enum { PASS = 0, ROWS_MAX = 64 };

struct probe {
	const char *what;
	long nr;
	unsigned long args[5];
	int errnum; /* PASS: the call succeeds */
};

struct policy_case {
	const char *name;
	struct filter_spec spec;
	const char *allow; /* one waiver, or NULL */
	const struct probe *probes;
	size_t n;
};

/* clang-format off */
static const struct probe strict_probes[] = {
	{ "getpid", SYS_getpid, { 0 }, PASS },
	{ "socket(AF_INET, SOCK_STREAM, 0)", SYS_socket, { AF_INET, SOCK_STREAM, 0 }, PASS },
	{ "socket with garbage above", SYS_socket, { AF_INET | HIGH, SOCK_STREAM | SOCK_CLOEXEC | HIGH, HIGH }, PASS },
	{ "socket(AF_INET, SOCK_DGRAM, 0)", SYS_socket, { AF_INET, SOCK_DGRAM, 0 }, EPERM },
	{ "UDP with garbage above", SYS_socket, { AF_INET | HIGH, SOCK_DGRAM | HIGH, 0 }, EPERM },
	{ "MPTCP", SYS_socket, { AF_INET, SOCK_STREAM, 262 }, EPROTONOSUPPORT },
	{ "AF_NETLINK", SYS_socket, { AF_NETLINK, SOCK_RAW, 0 }, EAFNOSUPPORT },
	{ "AF_UNIX", SYS_socket, { AF_UNIX, SOCK_STREAM, 0 }, EACCES },
	{ "datagram socketpair", SYS_socketpair, { AF_UNIX, SOCK_DGRAM, 0, 0 }, EACCES },
	{ "stream socketpair without array", SYS_socketpair, { AF_UNIX, SOCK_STREAM, 0, 0 }, EFAULT },
	{ "internet socketpair", SYS_socketpair, { AF_INET, SOCK_STREAM, 0, 0 }, EOPNOTSUPP },
	{ "sendto fast open", SYS_sendto, { -1UL, 0, 0, 0x20000000, 0 }, EOPNOTSUPP },
	{ "sendto", SYS_sendto, { -1UL, 0, 0, 0, 0 }, EBADF },
	{ "sendmsg fast open", SYS_sendmsg, { -1UL, 0, 0x20000000 }, EOPNOTSUPP },
	{ "sendmsg", SYS_sendmsg, { -1UL, 0, 0 }, EBADF },
	{ "setsockopt fast open", SYS_setsockopt, { -1UL, 6, 30, 0, 0 }, EOPNOTSUPP },
	{ "setsockopt", SYS_setsockopt, { -1UL, 6, 1, 0, 0 }, EBADF },
	{ "listen", SYS_listen, { -1UL, 1 }, EACCES },
	{ "ioctl TIOCSTI", SYS_ioctl, { -1UL, 0x5412, 0 }, EPERM },
	{ "ioctl TIOCSTI with garbage above", SYS_ioctl, { -1UL, 0x5412 | HIGH, 0 }, EPERM },
	{ "ioctl TIOCLINUX with garbage above", SYS_ioctl, { -1UL, 0x541c | HIGH, 0 }, EPERM },
	{ "ioctl SIOCGIFCONF", SYS_ioctl, { -1UL, 0x8912, 0 }, EPERM },
	{ "ioctl FS_IOC_SETFLAGS", SYS_ioctl, { -1UL, 0x40086602, 0 }, EPERM },
	{ "ioctl TCGETS", SYS_ioctl, { -1UL, 0x5401, 0 }, EBADF },
	{ "ioctl FICLONE", SYS_ioctl, { -1UL, 0x40049409, 0 }, EBADF },
	{ "clone CLONE_NEWUSER", SYS_clone, { CLONE_NEWUSER | SIGCHLD }, EPERM },
	{ "clone CLONE_NEWUSER with garbage above", SYS_clone, { CLONE_NEWUSER | SIGCHLD | HIGH }, EPERM },
	{ "clone CLONE_PARENT", SYS_clone, { CLONE_PARENT | SIGCHLD }, EPERM },
	{ "clone CLONE_SIGHAND alone", SYS_clone, { CLONE_SIGHAND }, EINVAL },
	{ "clone3", SYS_clone3, { 0, 0 }, ENOSYS },
	{ "unshare(0)", SYS_unshare, { 0 }, EPERM },
	{ "setns", SYS_setns, { -1UL, 0 }, EPERM },
	{ "mount", SYS_mount, { 0 }, EPERM },
	{ "fsopen", SYS_fsopen, { 0 }, EPERM },
	{ "io_uring_setup", SYS_io_uring_setup, { 0 }, ENOSYS },
	{ "bpf", SYS_bpf, { -1UL }, EPERM },
	{ "keyctl", SYS_keyctl, { -1UL }, EPERM },
	{ "shmget", SYS_shmget, { 0x5a5a5a, 0, 0 }, EPERM },
	{ "mq_open", SYS_mq_open, { 0 }, EPERM },
	{ "fchmodat", SYS_fchmodat, { -100UL, NO_SUCH_FILE, 0 }, EPERM },
	{ "setxattr", SYS_setxattr, { NO_SUCH_FILE, 0, 0, 0, 0 }, EPERM },
	{ "fchmodat2", 452, { -100UL, NO_SUCH_FILE, 0, 0 }, EPERM },
	{ "file_setattr", 469, { 0 }, EPERM },
	{ "openat", SYS_openat, { -100UL, NO_SUCH_FILE, 0 }, ENOENT },
	{ "prlimit64 of process 1", SYS_prlimit64, { 1, 0, 0, 0 }, EPERM },
	{ "prlimit64 of the caller", SYS_prlimit64, { 0, 999, 0, 0 }, EINVAL },
	{ "prctl PR_SET_MM", SYS_prctl, { PR_SET_MM, 0, 0, 0, 0 }, EPERM },
	{ "prctl PR_SET_PTRACER", SYS_prctl, { PR_SET_PTRACER, -1UL, 0, 0, 0 }, EPERM },
	{ "prctl PR_SET_NAME", SYS_prctl, { PR_SET_NAME, (unsigned long)"probe", 0, 0, 0 }, PASS },
	{ "prctl of the future", SYS_prctl, { 9999, 0, 0, 0, 0 }, EINVAL },
	{ "personality, asking", SYS_personality, { 0xffffffff }, PASS },
	{ "personality ADDR_NO_RANDOMIZE", SYS_personality, { 0x40000 }, EPERM },
	{ "seccomp with listener", SYS_seccomp, { 1, 8, 0 }, EBUSY },
	{ "seccomp without program", SYS_seccomp, { 1, 0, 0 }, EFAULT },
	{ "number 400", 400, { 0 }, ENOSYS },
	{ "number 9999", 9999, { 0 }, ENOSYS },
	{ "number -1", -1, { 0 }, ENOSYS },
#ifdef __x86_64__
	{ "getpid of x32", 0x40000000 | SYS_getpid, { 0 }, ENOSYS },
	{ "chmod", SYS_chmod, { NO_SUCH_FILE, 0 }, EPERM },
	{ "iopl", SYS_iopl, { 0 }, EPERM },
#endif
};

static const struct probe base_probes[] = {
	{ "fchmodat", SYS_fchmodat, { -100UL, NO_SUCH_FILE, 0 }, ENOENT },
	{ "setxattr", SYS_setxattr, { NO_SUCH_FILE, (unsigned long)"user.x", 0, 0, 0 }, ENOENT },
	{ "ioctl FS_IOC_SETFLAGS", SYS_ioctl, { -1UL, 0x40086602, 0 }, EBADF },
	{ "ioctl TIOCSTI", SYS_ioctl, { -1UL, 0x5412, 0 }, EPERM },
	{ "prlimit64 of no process", SYS_prlimit64, { 0x7fffffff, 0, 0, 0 }, ESRCH },
	{ "mq_open without name", SYS_mq_open, { 0 }, EFAULT },
	{ "shmget", SYS_shmget, { 0x5a5a5a, 0, 0 }, EPERM },
	{ "unshare(0)", SYS_unshare, { 0 }, EPERM },
	{ "clone3", SYS_clone3, { 0, 0 }, ENOSYS },
	{ "listen", SYS_listen, { -1UL, 1 }, EACCES },
};

static const struct probe waived_probes[] = {
	{ "ptrace of no process", SYS_ptrace, { 16, 0x7fffffff, 0, 0 }, ESRCH },
	{ "process_vm_readv of no process", SYS_process_vm_readv, { 0x7fffffff, 0, 0, 0, 0 }, PASS },
	{ "listen on no socket", SYS_listen, { -1UL, 1 }, EBADF },
	{ "socket(AF_UNIX)", SYS_socket, { AF_UNIX, SOCK_STREAM, 0 }, PASS },
	{ "seccomp with listener, no program", SYS_seccomp, { 1, 8, 0 }, EFAULT },
	{ "kcmp", SYS_kcmp, { 1, 1, 0, 0, 0 }, EPERM },
};

static const struct policy_case cases[] = {
	{ "strict", { 0 }, NULL, strict_probes, ARRAY_SIZE(strict_probes) },
	{ "base", { .allow_metadata = true, .own_pid_namespace = true, .own_ipc_namespace = true },
	  NULL, base_probes, ARRAY_SIZE(base_probes) },
	{ "waived", { .allow_unix_sockets = true, .allow_listen = true, .allow_listener = true },
	  "ptrace", waived_probes, ARRAY_SIZE(waived_probes) },
};
/* clang-format on */

static int install(const struct filter_program *prog)
{
	struct sock_fprog fprog = {.len = (unsigned short)prog->n, .filter = prog->insns};

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return -errno;
	if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &fprog) < 0)
		return -errno;
	return 0;
}

#ifdef __x86_64__
/* getpid of i386, by the old gate: a foreign architecture in the midst of a native program. */
static long call_i386(void)
{
	long result = 20;

	__asm__ volatile("int $0x80" : "+a"(result) : : "memory", "r8", "r9", "r10", "r11");
	return result;
}
#endif

static _Noreturn void run_child(const struct policy_case *c, const struct filter_program *prog,
				int out)
{
	int answers[ROWS_MAX] = {0};

	if (install(prog) < 0)
		_exit(1);
	for (size_t i = 0; i < c->n; i++) {
		const struct probe *p = &c->probes[i];
		errno = 0;
		long r = syscall(p->nr, p->args[0], p->args[1], p->args[2], p->args[3], p->args[4],
				 0);
		/* A child that a probe has made by mistake must not go on. */
		if (p->nr == SYS_clone && r == 0)
			_exit(1);
		answers[i] = r < 0 ? errno : PASS;
	}
	ssize_t size = (ssize_t)(c->n * sizeof(answers[0]));
	_exit(write(out, answers, (size_t)size) == size ? 0 : 1);
}

static int build(const struct policy_case *c, struct filter_program *ret_prog)
{
	struct strv allow = {0};
	struct err err = {0};
	struct filter_spec spec = c->spec;

	spec.arch = filter_native_arch();
	if (c->allow)
		strv_add(&allow, c->allow);
	spec.extra_allow = &allow;
	int r = filter_build(&spec, ret_prog, &err);
	strv_done(&allow);
	if (r < 0)
		printf("# %s\n", err.msg);
	return r;
}

static unsigned int report(const struct policy_case *c, const int *answers, unsigned int first)
{
	unsigned int failed = 0;

	for (size_t i = 0; i < c->n; i++) {
		const struct probe *p = &c->probes[i];
		bool wrong = answers[i] != p->errnum;
		printf("%sok %u - %s: %s\n", wrong ? "not " : "", first + (unsigned int)i, c->name,
		       p->what);
		if (wrong)
			printf("# errno %d, not %d\n", answers[i], p->errnum);
		failed += wrong;
	}
	return failed;
}

static int run_case(const struct policy_case *c, int *answers)
{
	struct filter_program prog = {0};
	int ends[2];
	int status = 0;

	if (c->n > ROWS_MAX || build(c, &prog) < 0 || pipe2(ends, O_CLOEXEC) < 0)
		return -1;
	fflush(stdout);
	pid_t child = fork();
	if (child == 0)
		run_child(c, &prog, ends[1]);
	close(ends[1]);
	ssize_t size = (ssize_t)(c->n * sizeof(*answers));
	bool whole = read(ends[0], answers, (size_t)size) == size;
	close(ends[0]);
	filter_program_done(&prog);
	return child > 0 && waitpid(child, &status, 0) == child && status == 0 && whole ? 0 : -1;
}

#ifdef __x86_64__
static unsigned int run_i386(unsigned int number)
{
	static const struct policy_case c = {.name = "i386"};
	struct filter_program prog = {0};
	int status = 0;

	if (build(&c, &prog) < 0)
		return 1;
	fflush(stdout);
	pid_t child = fork();
	if (child == 0)
		_exit(install(&prog) == 0 && call_i386() == -ENOSYS ? 0 : 1);
	filter_program_done(&prog);
	bool ended = child > 0 && waitpid(child, &status, 0) == child;
	/* A kernel without 32-bit support answers the gate itself with SIGSEGV. */
	bool skipped = ended && WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV;
	bool good = ended && (status == 0 || skipped);
	printf("%sok %u - strict: getpid of i386%s\n", good ? "" : "not ", number,
	       skipped ? " # SKIP the kernel runs no 32-bit programs" : "");
	return !good;
}
#endif

int main(void)
{
	unsigned int next = 1;
	unsigned int failed = 0;

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		int answers[ROWS_MAX];
		for (size_t j = 0; j < ROWS_MAX; j++)
			answers[j] = -1;
		if (run_case(&cases[i], answers) < 0)
			printf("# the child for %s did not run to its end\n", cases[i].name);
		failed += report(&cases[i], answers, next);
		next += (unsigned int)cases[i].n;
	}
#ifdef __x86_64__
	failed += run_i386(next++);
#endif
	printf("1..%u\n", next - 1);
	return failed > 0;
}
