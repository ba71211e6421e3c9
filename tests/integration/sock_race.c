/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Races against whoever judges socket calls: one thread asks, another swaps what was looked at.
 *
 *   sock-race [--control] addr|link|fd|name DIR FOREIGN SECONDS
 *
 * DIR/s (stream, answers "a") and DIR/d (datagram) may be reached, FOREIGN.s (answers "f") and
 * FOREIGN.d may not. Prints asked=N reached=N foreign=N. With --control the judge is a supervisor
 * of ours that looks and then lets the kernel do it, which loses these races: so the attack is one.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

struct race {
	const char *mode;
	char own[100];	   /* what may be reached */
	char foreign[100]; /* what may not */
	char link[2][100];
	struct sockaddr_un addr; /* swapped underneath */
	int number;		 /* a descriptor, swapped underneath */
	int stream;
	int dgram;
	volatile int over;
	double seconds;
};

static void set_path(struct sockaddr_un *un, const char *path)
{
	snprintf(un->sun_path, sizeof(un->sun_path), "%s", path);
}

static double now(void)
{
	struct timespec ts;
	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

/* --- The swapping thread ------------------------------------------------------------------ */

static void *swap(void *arg)
{
	struct race *r = arg;
	struct sockaddr_un own = {.sun_family = AF_UNIX};
	struct sockaddr_un foreign = own;
	set_path(&own, r->own);
	set_path(&foreign, r->foreign);
	for (unsigned int i = 0; !r->over; i++) {
		bool odd = i & 1;
		if (strcmp(r->mode, "link") == 0)
			syscall(SYS_renameat2, AT_FDCWD, r->link[0], AT_FDCWD, r->link[1],
				2 /* exchange */);
		else if (strcmp(r->mode, "fd") == 0)
			dup2(odd ? r->dgram : r->stream, r->number);
		else
			memcpy(&r->addr, odd ? &foreign : &own, sizeof(own));
		for (volatile int spin = 0; spin < 200; spin++)
			;
	}
	return NULL;
}

/* --- The asking thread -------------------------------------------------------------------- */

static char ask_stream(struct race *r)
{
	char answer = 0;
	struct timeval limit = {.tv_sec = 2};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	if (connect(fd, (struct sockaddr *)&r->addr, sizeof(r->addr)) == 0 &&
	    recv(fd, &answer, 1, 0) != 1)
		answer = 0;
	close(fd);
	return answer;
}

/* Who got it is told by the receivers. */
static char ask_datagram(struct race *r)
{
	struct iovec v = {(void *)(uintptr_t) "x", 1};
	struct msghdr h = {.msg_name = &r->addr,
			   .msg_namelen = sizeof(r->addr),
			   .msg_iov = &v,
			   .msg_iovlen = 1};
	return sendmsg(r->number, &h, MSG_DONTWAIT | MSG_NOSIGNAL) == 1 ? 'a' : 0;
}

static void ask(struct race *r)
{
	unsigned long asked = 0, reached = 0, foreign = 0;
	pthread_t thread;
	bool streams = strcmp(r->mode, "addr") == 0 || strcmp(r->mode, "link") == 0;
	double end = now() + r->seconds;
	if (pthread_create(&thread, NULL, swap, r))
		exit(2);
	while (now() < end) {
		char answer = streams ? ask_stream(r) : ask_datagram(r);
		asked++;
		reached += answer == 'a';
		foreign += answer == 'f';
	}
	r->over = 1;
	pthread_join(thread, NULL);
	printf("asked=%lu\nreached=%lu\nforeign=%lu\n", asked, reached, foreign);
	fflush(stdout);
}

static void prepare(struct race *r, const char *dir, const char *foreign)
{
	bool streams = strcmp(r->mode, "addr") == 0 || strcmp(r->mode, "link") == 0;
	int pair[2];
	snprintf(r->own, sizeof(r->own), "%s/%s", dir, streams ? "s" : "d");
	snprintf(r->foreign, sizeof(r->foreign), "%s.%s", foreign, streams ? "s" : "d");
	for (int i = 0; i < 2; i++) {
		snprintf(r->link[i], sizeof(r->link[i]), "%s/link%d", dir, i);
		unlink(r->link[i]);
		if (symlink(i ? r->foreign : r->own, r->link[i]) < 0)
			exit(2);
	}
	r->addr.sun_family = AF_UNIX;
	set_path(&r->addr, strcmp(r->mode, "link") == 0 ? r->link[0] : r->own);
	if (strcmp(r->mode, "fd") == 0)
		set_path(&r->addr, r->foreign);
	r->dgram = socket(AF_UNIX, SOCK_DGRAM, 0);
	if (r->dgram < 0 || socketpair(AF_UNIX, SOCK_STREAM, 0, pair) < 0)
		exit(2);
	r->stream = pair[0];
	r->number = dup(r->dgram);
}

/* --- The control: looks, and lets the kernel do it ---------------------------------------- */

static int install(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_connect, 2, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_sendmsg, 1, 0),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF),
	};
	struct sock_fprog prog = {sizeof(code) / sizeof(code[0]), code};
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	return (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER,
			    &prog);
}

static bool peek(pid_t pid, uint64_t addr, void *data, size_t n)
{
	struct iovec local = {data, n};
	struct iovec remote = {(void *)(uintptr_t)addr, n};
	return process_vm_readv(pid, &local, 1, &remote, 1, 0) == (ssize_t)n;
}

static bool is_stream(int pidfd, int number)
{
	int type = 0;
	socklen_t n = sizeof(type);
	int fd = (int)syscall(SYS_pidfd_getfd, pidfd, number, 0);
	bool is = getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &n) == 0 && type == SOCK_STREAM;
	close(fd);
	return is;
}

static bool look(const struct race *r, const struct seccomp_notif *n, int pidfd)
{
	struct sockaddr_un un;
	struct msghdr h = {0};
	char real[PATH_MAX];
	uint64_t at = n->data.args[1];
	if (n->data.nr == SYS_sendmsg) {
		if (is_stream(pidfd, (int)n->data.args[0]))
			return true; /* its name is no destination */
		if (!peek((pid_t)n->pid, at, &h, sizeof(h)))
			return false;
		at = (uint64_t)(uintptr_t)h.msg_name;
	}
	if (!peek((pid_t)n->pid, at, &un, sizeof(un)))
		return false;
	un.sun_path[sizeof(un.sun_path) - 1] = '\0';
	return realpath(un.sun_path, real) && strcmp(real, r->own) == 0;
}

static void judge(const struct race *r, pid_t child, int listener)
{
	int pidfd = (int)syscall(SYS_pidfd_open, child, 0);
	int fd = (int)syscall(SYS_pidfd_getfd, pidfd, listener, 0);
	for (;;) {
		struct pollfd p = {.fd = fd, .events = POLLIN};
		struct seccomp_notif n = {0};
		if (poll(&p, 1, -1) < 0 || !(p.revents & POLLIN))
			return;
		if (ioctl(fd, SECCOMP_IOCTL_NOTIF_RECV, &n) < 0)
			continue;
		bool fine = look(r, &n, pidfd);
		struct seccomp_notif_resp resp = {.id = n.id,
						  .error = fine ? 0 : -EACCES,
						  .flags = fine ? SECCOMP_USER_NOTIF_FLAG_CONTINUE
								: 0};
		ioctl(fd, SECCOMP_IOCTL_NOTIF_SEND, &resp);
	}
}

static int run_control(struct race *r)
{
	int pipefd[2];
	int listener = -1;
	int status = 0;
	if (pipe(pipefd) < 0)
		return 2;
	pid_t child = fork();
	if (child == 0) {
		listener = install();
		if (write(pipefd[1], &listener, sizeof(listener)) != sizeof(listener))
			_exit(2);
		ask(r);
		_exit(0);
	}
	if (read(pipefd[0], &listener, sizeof(listener)) == sizeof(listener) && listener >= 0)
		judge(r, child, listener);
	waitpid(child, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 2;
}

int main(int argc, char **argv)
{
	static struct race r;
	bool control = argc > 1 && strcmp(argv[1], "--control") == 0;
	argv += control;
	if (argc - control != 5)
		return 2;
	r.mode = argv[1];
	r.seconds = strtod(argv[4], NULL);
	prepare(&r, argv[2], argv[3]);
	if (control)
		return run_control(&r);
	ask(&r);
	return 0;
}
