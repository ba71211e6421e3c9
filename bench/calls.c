/* SPDX-License-Identifier: Apache-2.0 */
/*
 * N1's program: times a call that the supervisor makes for its caller and that the kernel makes in
 * no time. "calls loop N" makes it N times and prints nanoseconds per call, wherever it runs;
 * "calls raw N" does the same below a supervisor of its own that answers "continue" and does
 * nothing else: the floor of any such supervisor.
 */
#include <errno.h>
#include <poll.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "sys/uapi.h"

static int64_t now_ns(void)
{
	struct timespec ts;
	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

static int loop(long n)
{
	struct sockaddr_un any = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);
	if (fd < 0 || bind(fd, (struct sockaddr *)&any, sizeof(any.sun_family)) < 0) {
		perror("calls: bind");
		return 1;
	}
	for (long i = 0; i < n / 10; i++)
		listen(fd, 1);
	int64_t start = now_ns();
	for (long i = 0; i < n; i++) {
		if (listen(fd, 1) < 0) {
			perror("calls: listen");
			return 1;
		}
	}
	printf("%.1f\n", (double)(now_ns() - start) / (double)n);
	return 0;
}

static int install(void)
{
	struct sock_filter insns[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_listen, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog prog = {4, insns};
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	return (int)syscall(
		SYS_seccomp, SECCOMP_SET_MODE_FILTER,
		SECCOMP_FILTER_FLAG_NEW_LISTENER | SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV, &prog);
}

static void serve(int listener)
{
	uint64_t flags = SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP;
	ioctl(listener, SECCOMP_IOCTL_NOTIF_SET_FLAGS, flags);
	for (;;) {
		struct pollfd pfd = {.fd = listener, .events = POLLIN};
		struct seccomp_notif req;
		struct seccomp_notif_resp resp = {0};
		if (poll(&pfd, 1, -1) < 0 || !(pfd.revents & POLLIN))
			return;
		memset(&req, 0, sizeof(req));
		if (ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &req) < 0)
			continue;
		resp.id = req.id;
		resp.flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
		ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &resp);
	}
}

/* The child's listener comes by pidfd_getfd; it waits for that in a read. */
static int raw(long n)
{
	int number[2];
	int go[2];
	int fd = -1;
	char byte = 0;
	if (pipe(number) < 0 || pipe(go) < 0)
		return 1;
	pid_t pid = fork();
	if (pid == 0) {
		fd = install();
		if (write(number[1], &fd, sizeof(fd)) != sizeof(fd) || read(go[0], &byte, 1) != 1)
			_exit(1);
		close(fd);
		int r = loop(n);
		fflush(stdout);
		_exit(r);
	}
	if (pid < 0 || read(number[0], &fd, sizeof(fd)) != sizeof(fd))
		return 1;
	int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	int listener = (int)syscall(SYS_pidfd_getfd, pidfd, fd, 0);
	if (listener < 0 || write(go[1], "x", 1) != 1)
		return 1;
	serve(listener);
	int status = 1;
	waitpid(pid, &status, 0);
	return status != 0;
}

int main(int argc, char **argv)
{
	long n = argc == 3 ? strtol(argv[2], NULL, 10) : 0;
	if (n > 0 && strcmp(argv[1], "loop") == 0)
		return loop(n);
	if (n > 0 && strcmp(argv[1], "raw") == 0)
		return raw(n);
	fputs("usage: calls loop|raw N\n", stderr);
	return 2;
}
