/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inside: prints the state that a program inherits, one `key=value` a line: signals, descriptors,
 * identity, groups, limits, memory layout. Reads nothing from /proc, which a sandbox may not grant.
 *
 * Invariant: it changes nothing before it has looked, and makes no descriptor of its own.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

static void print_signals(void)
{
	sigset_t blocked;

	printf("ignored=");
	for (int sig = 1; sig < 65; sig++) {
		struct sigaction sa;

		if (sigaction(sig, NULL, &sa) == 0 && sa.sa_handler == SIG_IGN)
			printf("%d ", sig);
	}
	sigprocmask(SIG_BLOCK, NULL, &blocked);
	printf("\nblocked=");
	for (int sig = 1; sig < 65; sig++) {
		if (sigismember(&blocked, sig) == 1)
			printf("%d ", sig);
	}
	printf("\n");
}

static const char *kind(mode_t mode)
{
	return S_ISREG(mode)	? "file"
	       : S_ISDIR(mode)	? "dir"
	       : S_ISCHR(mode)	? "char"
	       : S_ISFIFO(mode) ? "pipe"
	       : S_ISSOCK(mode) ? "socket"
				: "other";
}

static void print_fds(void)
{
	printf("fds=");
	for (int fd = 0; fd < 4096; fd++) {
		struct stat st;

		if (fcntl(fd, F_GETFD) >= 0)
			printf("%d:%s ", fd, fstat(fd, &st) < 0 ? "?" : kind(st.st_mode));
	}
	printf("\nmodes=");
	for (int fd = 0; fd < 3; fd++)
		printf("%d ", fcntl(fd, F_GETFL) & O_ACCMODE);
	printf("\n");
}

static void print_ids(void)
{
	printf("uid=%u %u\ngid=%u %u\n", getuid(), geteuid(), getgid(), getegid());
	printf("groups=%d\n", getgroups(0, NULL));
	printf("pid=%d\nppid=%d\n", getpid(), getppid());
	printf("leader=%d\n", getpgrp() == getpid());
	printf("session_leader=%d\n", getsid(0) == getpid());
	printf("foreground=%d\n", isatty(0) ? tcgetpgrp(0) == getpgrp() : -1);
	printf("no_new_privs=%d\n", prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0));
	printf("dumpable=%d\n", prctl(PR_GET_DUMPABLE, 0, 0, 0, 0));
	printf("securebits=%d\n", prctl(PR_GET_SECUREBITS, 0, 0, 0, 0));
	printf("pdeathsig_free=%d\n", prctl(PR_GET_KEEPCAPS, 0, 0, 0, 0) == 0);
}

static void print_limits(void)
{
	struct rlimit limit;
	cpu_set_t cpus;

	getrlimit(RLIMIT_NOFILE, &limit);
	printf("nofile=%ju %ju\n", (uintmax_t)limit.rlim_cur, (uintmax_t)limit.rlim_max);
	getrlimit(RLIMIT_CORE, &limit);
	printf("core=%ju %ju\n", (uintmax_t)limit.rlim_cur, (uintmax_t)limit.rlim_max);
	CPU_ZERO(&cpus);
	sched_getaffinity(0, sizeof(cpus), &cpus);
	printf("cpus=");
	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
		if (CPU_ISSET(cpu, &cpus))
			printf("%d ", cpu);
	}
	printf("\nthp_disable=%d\n", prctl(PR_GET_THP_DISABLE, 0, 0, 0, 0));
	printf("no_randomize=%d\n", (personality(0xffffffff) & ADDR_NO_RANDOMIZE) != 0);
}

static void print_place(void)
{
	char cwd[4096];
	struct utsname uts;
	mode_t mask = umask(0);

	umask(mask);
	printf("umask=%03o\n", mask);
	printf("cwd=%s\n", getcwd(cwd, sizeof(cwd)) ? cwd : strerrorname_np(errno));
	uname(&uts);
	printf("host=%s\n", uts.nodename);
}

static void print_terminal(void)
{
	struct winsize ws = {0};

	if (!isatty(0))
		return;
	ioctl(0, TIOCGWINSZ, &ws);
	printf("window=%u %u\n", ws.ws_row, ws.ws_col);
	printf("tty=%s\n", ttyname(0) ? "named" : strerrorname_np(errno));
	printf("dev_tty=%d\n", open("/dev/tty", O_RDWR) >= 0);
}

int main(int argc, char **argv)
{
	print_signals();
	print_fds();
	print_ids();
	print_limits();
	print_place();
	print_terminal();
	printf("argv0=%s\n", argv[0]);
	return 0;
}
