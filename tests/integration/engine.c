/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine WHAT [N]: makes calls that a supervisor answers, in ways that are hard on it, in the
 * working directory, which is to be empty and writable. Every result is checked against what was
 * really done: the exit status is 1, with a line on standard error, at the first one that is wrong.
 * Run by test_20_engine.py inside and outside of sandboxes.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

enum { STACK = 65536, CROWD_MAX = 400 };

static _Noreturn void wrong(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

static _Noreturn void wrong(const char *fmt, ...)
{
	int code = errno;
	va_list args;
	va_start(args, fmt);
	fprintf(stderr, "engine: ");
	vfprintf(stderr, fmt, args);
	fprintf(stderr, " (%s)\n", strerrorname_np(code));
	va_end(args);
	_exit(1);
}

static void check(bool good, const char *what)
{
	if (!good)
		wrong("%s", what);
}

/* --- Calls that are answered by a supervisor -------------------------------------------------- */

/* Objects of one thread or process, so that nobody else changes them. */
struct work {
	char file[32], name[32], path[32];
	int listener, pair[2], lock, watch;
	int counter;
	long interrupted;
	bool may_interrupt; /* EINTR is a right answer, if nothing was done */
};

static struct sockaddr_un address_of(const char *path)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	snprintf(a.sun_path, sizeof(a.sun_path), "%s", path);
	return a;
}

static int listen_at(const char *path)
{
	struct sockaddr_un a = address_of(path);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	check(fd >= 0 && bind(fd, (struct sockaddr *)&a, sizeof(a)) == 0, "bind");
	while (listen(fd, 64) < 0)
		check(errno == EINTR, "listen");
	return fd;
}

static void work_begin(struct work *w, int id)
{
	memset(w, 0, sizeof(*w));
	snprintf(w->file, sizeof(w->file), "file%d", id);
	snprintf(w->name, sizeof(w->name), "name%d", id);
	snprintf(w->path, sizeof(w->path), "sock%d", id);
	w->lock = open(w->file, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	check(w->lock >= 0, "open");
	w->listener = listen_at(w->path);
	check(socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, w->pair) == 0, "socketpair");
	w->watch = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	check(w->watch >= 0, "inotify_init");
}

static void work_end(struct work *w)
{
	close(w->lock);
	close(w->listener);
	close(w->pair[0]);
	close(w->pair[1]);
	close(w->watch);
	check(unlink(w->file) == 0 && unlink(w->path) == 0, "unlink at the end");
}

static bool was_interrupted(struct work *w, bool failed)
{
	if (!failed || errno != EINTR || !w->may_interrupt)
		return false;
	w->interrupted++;
	return true;
}

static void try_link(struct work *w)
{
	struct stat st;
	bool failed = link(w->file, w->name) < 0;
	if (was_interrupted(w, failed)) {
		check(stat(w->name, &st) < 0 && errno == ENOENT, "a link that was not made");
		return;
	}
	check(!failed, "link");
	check(stat(w->name, &st) == 0 && st.st_nlink == 2, "the link");
	while (unlink(w->name) < 0)
		check(errno == EINTR && w->may_interrupt && stat(w->name, &st) == 0, "unlink");
	check(stat(w->file, &st) == 0 && st.st_nlink == 1, "the link is gone");
}

static void try_send(struct work *w)
{
	int value = ++w->counter;
	int got = 0;
	struct iovec iov = {&value, sizeof(value)};
	struct msghdr mh = {.msg_iov = &iov, .msg_iovlen = 1};
	ssize_t n = sendmsg(w->pair[0], &mh, 0);
	if (was_interrupted(w, n < 0)) {
		check(recv(w->pair[1], &got, sizeof(got), MSG_DONTWAIT) < 0 && errno == EAGAIN,
		      "a message that was not sent");
		return;
	}
	check(n == sizeof(value), "sendmsg");
	check(recv(w->pair[1], &got, sizeof(got), MSG_DONTWAIT) == sizeof(got) && got == value,
	      "the message");
	check(recv(w->pair[1], &got, sizeof(got), MSG_DONTWAIT) < 0 && errno == EAGAIN,
	      "sent twice");
}

static void try_connect(struct work *w)
{
	struct sockaddr_un a = address_of(w->path);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	check(fd >= 0, "socket");
	bool failed = connect(fd, (struct sockaddr *)&a, sizeof(a)) < 0;
	bool none = was_interrupted(w, failed);
	check(!failed || none, "connect");
	int peer = accept4(w->listener, NULL, NULL, SOCK_CLOEXEC);
	check(none ? peer < 0 && errno == EAGAIN : peer >= 0, "the peer");
	if (peer >= 0)
		close(peer);
	check(accept(w->listener, NULL, NULL) < 0 && errno == EAGAIN, "connected twice");
	close(fd);
}

static void try_lock(struct work *w)
{
	bool failed = flock(w->lock, LOCK_EX) < 0;
	check(!failed || was_interrupted(w, failed), "flock");
	check(flock(w->lock, LOCK_UN) == 0, "unlock");
}

static void try_watch(struct work *w)
{
	int id = inotify_add_watch(w->watch, ".", IN_DELETE_SELF);
	check(id >= 0 || was_interrupted(w, true), "inotify_add_watch");
	if (id >= 0)
		check(inotify_rm_watch(w->watch, id) == 0, "inotify_rm_watch");
}

/* Opened by the supervisor where there are no namespaces. */
static void try_open(struct work *w)
{
	char text[64] = {0};
	int fd = open("/proc/self/comm", O_RDONLY);
	if (was_interrupted(w, fd < 0))
		return;
	check(fd > 2, "open of /proc/self/comm");
	check(!(fcntl(fd, F_GETFD) & FD_CLOEXEC), "close-on-exec unasked for");
	check(read(fd, text, sizeof(text) - 1) == 7 && strcmp(text, "engine\n") == 0, "comm");
	close(fd);
}

static void work_once(struct work *w)
{
	try_link(w);
	try_send(w);
	try_connect(w);
	try_lock(w);
	try_watch(w);
	try_open(w);
}

static void do_work(int n)
{
	struct work w;
	work_begin(&w, 0);
	for (int i = 0; i < n; i++)
		work_once(&w);
	work_end(&w);
}

/* --- Signals ---------------------------------------------------------------------------------- */

static volatile sig_atomic_t ticks;

static void on_alarm(int sig)
{
	(void)sig;
	ticks++;
}

static void do_alarm(int n, int flags, int us)
{
	struct work w;
	struct sigaction sa = {.sa_handler = on_alarm, .sa_flags = flags};
	struct itimerval it = {{0, us}, {0, us}};
	work_begin(&w, 0);
	w.may_interrupt = !(flags & SA_RESTART);
	sigaction(SIGALRM, &sa, NULL);
	setitimer(ITIMER_REAL, &it, NULL);
	while (ticks < n)
		work_once(&w);
	it = (struct itimerval){{0, 0}, {0, 0}};
	setitimer(ITIMER_REAL, &it, NULL);
	work_end(&w);
}

static void on_child(int sig)
{
	int code = errno;
	(void)sig;
	ticks++;
	errno = code;
}

/*
 * Without SA_RESTART: what a shell's trap does. What is not sent to a supervisor never gives EINTR;
 * JUDGED says that opening is.
 */
static void do_children(int n, bool judged)
{
	struct sigaction sa = {.sa_handler = on_child};
	sigaction(SIGCHLD, &sa, NULL);
	for (int i = 0; i < n; i++) {
		int ends[2];
		check(pipe(ends) == 0, "pipe");
		pid_t pid = fork();
		check(pid >= 0, "fork");
		if (pid == 0)
			_exit(7);
		int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
		while (judged && fd < 0 && errno == EINTR)
			fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
		check(fd >= 0, "open");
		check(close(fd) == 0 && close(ends[0]) == 0 && close(ends[1]) == 0, "close");
		int status = 0;
		while (waitpid(pid, &status, 0) < 0)
			check(errno == EINTR, "waitpid");
		check(WIFEXITED(status) && WEXITSTATUS(status) == 7, "status");
	}
	check(ticks > 0, "no SIGCHLD came");
}

/* --- Crowds ----------------------------------------------------------------------------------- */

static void reap(pid_t pid, int signal_expected)
{
	int status = 0;
	check(waitpid(pid, &status, 0) == pid, "waitpid");
	if (signal_expected)
		check(WIFSIGNALED(status) && WTERMSIG(status) == signal_expected, "death");
	else
		check(WIFEXITED(status) && WEXITSTATUS(status) == 0, "a child's result");
}

/* N processes, born at once, each with its own calls; each makes one more by exec. */
static void do_storm(int n)
{
	static pid_t pids[CROWD_MAX];
	for (int i = 0; i < n; i++) {
		pids[i] = fork();
		check(pids[i] >= 0, "fork");
		if (pids[i])
			continue;
		struct work w;
		work_begin(&w, i + 1);
		for (int k = 0; k < 10; k++)
			work_once(&w);
		work_end(&w);
		execl("/usr/bin/true", "true", NULL);
		wrong("exec");
	}
	for (int i = 0; i < n; i++)
		reap(pids[i], 0);
}

static void do_exec(int n)
{
	for (volatile int i = 0; i < n; i++) {
		pid_t pid = vfork();
		if (pid == 0) {
			execl("/usr/bin/true", "true", NULL);
			_exit(9);
		}
		check(pid > 0, "vfork");
		reap(pid, 0);
	}
}

struct waiter {
	pthread_t thread;
	int fd, result;
};

static void *wait_for_lock(void *arg)
{
	struct waiter *waiter = arg;
	waiter->result = flock(waiter->fd, LOCK_EX) == 0 ? 0 : errno;
	if (waiter->result == 0)
		flock(waiter->fd, LOCK_UN);
	return NULL;
}

/*
 * N threads that wait for one lock, each with an open file of its own, until somebody writes a byte
 * to standard input. Prints how many got it, and the errors of the others.
 */
static void do_waiters(int n)
{
	static struct waiter waiters[CROWD_MAX];
	int counts[134] = {0};
	pthread_attr_t attr;
	char byte;
	int held = open("lock", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	check(held >= 0 && flock(held, LOCK_EX) == 0, "the first lock");
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, STACK);
	for (int i = 0; i < n; i++) {
		waiters[i].fd = open("lock", O_RDWR | O_CLOEXEC);
		check(waiters[i].fd >= 0, "open");
		errno = pthread_create(&waiters[i].thread, &attr, wait_for_lock, &waiters[i]);
		check(errno == 0, "pthread_create");
	}
	printf("waiting\n");
	fflush(stdout);
	check(read(0, &byte, 1) == 1, "read of the word to go on");
	check(flock(held, LOCK_UN) == 0, "the first unlock");
	for (int i = 0; i < n; i++) {
		pthread_join(waiters[i].thread, NULL);
		counts[waiters[i].result < 134 ? waiters[i].result : 133]++;
	}
	printf("got %d\n", counts[0]);
	for (int i = 1; i < 134; i++) {
		if (counts[i])
			printf("%s %d\n", strerrorname_np(i), counts[i]);
	}
}

static void *flood(void *arg)
{
	long *count = arg;
	struct sockaddr_un a = address_of("nothing-here");
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);
	for (;;) {
		if (connect(fd, (struct sockaddr *)&a, sizeof(a)) == 0 || errno != ENOENT)
			wrong("connect to nothing");
		__atomic_add_fetch(count, 1, __ATOMIC_RELAXED);
	}
	return NULL;
}

/* N threads that call without end; how often is counted in the file "count". */
static void do_flood(int n)
{
	pthread_t thread;
	int fd = open("count", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	check(fd >= 0 && ftruncate(fd, 4096) == 0, "the file of the count");
	long *count = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	check(count != MAP_FAILED, "mmap");
	for (int i = 0; i < n; i++)
		check(pthread_create(&thread, NULL, flood, count) == 0, "pthread_create");
	pause();
}

/* --- Ends and stops --------------------------------------------------------------------------- */

static unsigned int seed = 12345;

static void pause_a_little(unsigned int most_us)
{
	usleep((useconds_t)(rand_r(&seed) % most_us));
}

static pid_t start_worker(int id)
{
	pid_t pid = fork();
	check(pid >= 0, "fork");
	if (pid)
		return pid;
	struct work w;
	work_begin(&w, id);
	for (;;)
		work_once(&w);
}

static void clear_worker(int id)
{
	static const char *const kinds[] = {"file", "name", "sock"};
	for (int i = 0; i < 3; i++) {
		char name[32];
		snprintf(name, sizeof(name), "%s%d", kinds[i], id);
		check(unlink(name) == 0 || errno == ENOENT, "unlink after a death");
	}
}

/* N processes that are killed at any moment of their calls. */
static void do_die(int n)
{
	for (int i = 0; i < n; i++) {
		pid_t pid = start_worker(1);
		pause_a_little(1500);
		kill(pid, SIGKILL);
		reap(pid, SIGKILL);
		clear_worker(1);
	}
	do_work(5);
}

/* Stopped and continued N times at any moment; every result is right. */
static void do_freeze(int n)
{
	pid_t pid = start_worker(1);
	int status = 0;
	for (int i = 0; i < n; i++) {
		pause_a_little(1000);
		kill(pid, SIGSTOP);
		check(waitpid(pid, &status, WUNTRACED) == pid && WIFSTOPPED(status), "the stop");
		pause_a_little(300);
		kill(pid, SIGCONT);
	}
	kill(pid, SIGKILL);
	reap(pid, SIGKILL);
}

/* A thread makes the others end by an exec, or the process ends, while its threads wait. */
static void *call_for_ever(void *arg)
{
	struct work w;
	work_begin(&w, *(int *)arg);
	for (;;)
		work_once(&w);
	return NULL;
}

static void do_exec_over_threads(int n)
{
	for (int i = 0; i < n; i++) {
		pid_t pid = fork();
		check(pid >= 0, "fork");
		if (pid == 0) {
			static int ids[4] = {1, 2, 3, 4};
			pthread_t thread;
			for (int k = 0; k < 4; k++)
				pthread_create(&thread, NULL, call_for_ever, &ids[k]);
			pause_a_little(2000);
			if (i % 2)
				execl("/usr/bin/true", "true", NULL);
			_exit(0);
		}
		reap(pid, 0);
		for (int k = 1; k <= 4; k++)
			clear_worker(k);
	}
}

/* --- Odd callers ------------------------------------------------------------------------------ */

static void tell(const char *what, long r)
{
	printf("%s %s\n", what, r >= 0 ? "ok" : strerrorname_np(errno));
}

/* What each call gives a process that nobody may look into. */
static void do_nodump(void)
{
	struct work w;
	struct sockaddr_un a = address_of("sock0");
	int value = 1;
	struct iovec iov = {&value, sizeof(value)};
	struct msghdr mh = {.msg_iov = &iov, .msg_iovlen = 1};
	work_begin(&w, 0);
	check(prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) == 0, "prctl");
	tell("link", link(w.file, w.name));
	tell("sendmsg", sendmsg(w.pair[0], &mh, 0));
	tell("connect", connect(socket(AF_UNIX, SOCK_STREAM, 0), (struct sockaddr *)&a, sizeof(a)));
	tell("flock", flock(w.lock, LOCK_EX));
	tell("watch", inotify_add_watch(w.watch, ".", IN_DELETE_SELF));
	tell("open", open("/usr/bin/true", O_RDONLY));
	tell("write", open("other", O_RDWR | O_CREAT, 0600));
	tell("foreign", open("/proc/1/environ", O_RDONLY));
}

static void do_vfork(int n)
{
	struct work w;
	work_begin(&w, 0);
	for (volatile int i = 0; i < n; i++) {
		volatile int good = 0;
		pid_t pid = vfork();
		if (pid == 0) {
			struct sockaddr_un a = address_of(w.path);
			int fd = socket(AF_UNIX, SOCK_STREAM, 0);
			good = connect(fd, (struct sockaddr *)&a, sizeof(a)) == 0 &&
			       link(w.file, w.name) == 0;
			_exit(0);
		}
		check(pid > 0, "vfork");
		reap(pid, 0);
		check(good, "the calls of a vforked child");
		int peer = accept(w.listener, NULL, NULL);
		check(peer >= 0 && close(peer) == 0, "the vforked child's connection");
		check(unlink(w.name) == 0, "the vforked child's link");
	}
	work_end(&w);
}

enum { SAME_NUMBER = 100 };

static _Noreturn int in_own_table(void *arg)
{
	struct work *w = arg;
	struct sockaddr_un a = address_of(w->path);
	int other = open("other", O_RDWR | O_CREAT, 0600);
	dup2(other, SAME_NUMBER);
	w->counter = flock(SAME_NUMBER, LOCK_EX) == 0 ? 1 : -errno;
	dup2(socket(AF_UNIX, SOCK_STREAM, 0), SAME_NUMBER);
	if (w->counter == 1)
		w->counter =
			connect(SAME_NUMBER, (struct sockaddr *)&a, sizeof(a)) == 0 ? 2 : -errno;
	/* Its lock is to outlive the look of the first thread. */
	__atomic_store_n(&w->may_interrupt, true, __ATOMIC_SEQ_CST);
	for (;;)
		pause();
}

/* A thread with descriptors of its own: a number means what it means there. */
static void do_table(void)
{
	struct work w;
	struct stat st;
	work_begin(&w, 0);
	int file = open("mine", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	check(file >= 0 && dup2(file, SAME_NUMBER) == SAME_NUMBER, "dup2");
	char *stack = mmap(NULL, STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int flags = CLONE_VM | CLONE_SIGHAND | CLONE_THREAD | CLONE_FS | CLONE_SYSVSEM;
	check(clone(in_own_table, stack + STACK, flags, &w) > 0, "clone");
	while (!__atomic_load_n(&w.may_interrupt, __ATOMIC_SEQ_CST))
		sched_yield();
	errno = -w.counter;
	check(w.counter == 2, "the calls of the thread");
	check(fstat(SAME_NUMBER, &st) == 0 && S_ISREG(st.st_mode), "the first thread's number");
	check(flock(open("mine", O_RDWR), LOCK_EX | LOCK_NB) == 0, "the file that was not meant");
	check(flock(open("other", O_RDWR), LOCK_EX | LOCK_NB) < 0 && errno == EWOULDBLOCK,
	      "the file that was meant");
	int peer = accept(w.listener, NULL, NULL);
	check(peer >= 0, "the thread's connection");
}

/* No descriptor is left to the caller: what makes one says so, what makes none works. */
static void do_full(void)
{
	struct work w;
	struct sockaddr_un a = address_of("sock0");
	work_begin(&w, 0);
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);
	while (dup(0) >= 0)
		;
	check(errno == EMFILE, "dup");
	tell("open", open("/proc/self/comm", O_RDONLY));
	tell("socket", socket(AF_UNIX, SOCK_STREAM, 0));
	tell("connect", connect(fd, (struct sockaddr *)&a, sizeof(a)));
	tell("link", link(w.file, w.name));
	tell("flock", flock(w.lock, LOCK_EX));
	tell("sendmsg", sendmsg(w.pair[0], &(struct msghdr){0}, 0));
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	int n = argc > 2 ? (int)strtol(argv[2], NULL, 10) : 1;
	int us = argc > 3 ? (int)strtol(argv[3], NULL, 10) : 5000;
	if (strcmp(what, "work") == 0)
		do_work(n);
	else if (strcmp(what, "alarm-restart") == 0)
		do_alarm(n, SA_RESTART, us);
	else if (strcmp(what, "alarm") == 0)
		do_alarm(n, 0, us);
	else if (strcmp(what, "children") == 0)
		do_children(n, us == 1);
	else if (strcmp(what, "storm") == 0)
		do_storm(n < CROWD_MAX ? n : CROWD_MAX);
	else if (strcmp(what, "exec") == 0)
		do_exec(n);
	else if (strcmp(what, "waiters") == 0)
		do_waiters(n < CROWD_MAX ? n : CROWD_MAX);
	else if (strcmp(what, "flood") == 0)
		do_flood(n);
	else if (strcmp(what, "die") == 0)
		do_die(n);
	else if (strcmp(what, "freeze") == 0)
		do_freeze(n);
	else if (strcmp(what, "exec-over-threads") == 0)
		do_exec_over_threads(n);
	else if (strcmp(what, "nodump") == 0)
		do_nodump();
	else if (strcmp(what, "vfork") == 0)
		do_vfork(n);
	else if (strcmp(what, "table") == 0)
		do_table();
	else if (strcmp(what, "full") == 0)
		do_full();
	else
		wrong("no such test: %s", what);
	printf("done\n");
	return 0;
}
