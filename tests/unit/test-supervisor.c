/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The engine with real notifications and handlers of the test's own: dispatch_call is defined here,
 * so that the library's dispatcher is not linked. A child traps getppid; its argument registers say
 * what the handler does.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/util.h"
#include "supervise/supervisor_internal.h"

/* What a trapped getppid(WHAT, VALUE) is answered with. */
enum what {
	DO_VALUE,
	DO_ERRNO,
	DO_WORK,      /* blocks a worker until the gate opens, then VALUE */
	DO_WAIT,      /* waits for the gate on the loop, then VALUE */
	DO_WAIT_TIME, /* waits VALUE ms, then EAGAIN */
	DO_FD,
	DO_GARBAGE, /* a verdict that does not exist */
	DO_GONE,    /* what a handler says of a task that is gone */
};

static int gate[2]; /* a pipe: readable once it is open */
static int worked;

static struct verdict on_gate(struct call *call, struct pending_op *op, bool timed_out)
{
	struct pollfd pfd = {.fd = gate[0], .events = POLLIN};
	(void)op;
	if (timed_out)
		return verdict_errno(EAGAIN);
	if (poll(&pfd, 1, 0) != 1)
		return (struct verdict){.answer = ANSWER_PENDING};
	return verdict_value((int64_t)call_arg(call, 1));
}

struct verdict dispatch_call(struct call *call)
{
	struct pending_op op = {.resume = on_gate, .fd = -1, .interruptible = true};
	struct pollfd pfd = {.fd = gate[0], .events = POLLIN};
	switch ((enum what)call_int(call, 0)) {
	case DO_VALUE:
		return verdict_value((int64_t)call_arg(call, 1));
	case DO_ERRNO:
		return verdict_errno(call_int(call, 1));
	case DO_WORK:
		if (!call->on_worker)
			return (struct verdict){.answer = ANSWER_WORKER};
		__atomic_add_fetch(&worked, 1, __ATOMIC_SEQ_CST);
		poll(&pfd, 1, -1);
		return verdict_value((int64_t)call_arg(call, 1));
	case DO_WAIT:
		op.fd = gate[0];
		op.events = EPOLLIN;
		return call_wait(call, &op);
	case DO_WAIT_TIME:
		op.deadline_ms = supervise_now_ms() + call_int(call, 1);
		return call_wait(call, &op);
	case DO_FD:
		return verdict_fd(dup(gate[0]), call_int(call, 1));
	case DO_GARBAGE:
		return (struct verdict){.answer = (enum answer)77};
	case DO_GONE:
		return (struct verdict){.answer = ANSWER_GONE};
	}
	return verdict_errno(ENOTSUP);
}

/* --- The sandbox ------------------------------------------------------------------------------ */

static int install_listener(void)
{
	struct sock_filter insns[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getppid, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog prog = {4, insns};
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	return (int)syscall(
		SYS_seccomp, SECCOMP_SET_MODE_FILTER,
		SECCOMP_FILTER_FLAG_NEW_LISTENER | SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV, &prog);
}

static long trapped(enum what what, long value)
{
	long r = syscall(SYS_getppid, what, value);
	return r < 0 ? -errno : r;
}

struct scene {
	struct supervisor *sup;
	struct box *box;
	pid_t pid;
	long *seen; /* shared with the child */
};

/* A child that runs BODY below a listener that SUP serves. */
static void scene_add(struct scene *s, struct supervisor *sup, void (*body)(long *seen))
{
	int pair[2];
	s->seen = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(s->seen, MAP_FAILED);
	assert_int_equal(pipe(pair), 0);
	s->pid = fork();
	if (s->pid == 0) {
		int fd = install_listener();
		(void)!write(pair[1], &fd, sizeof(fd));
		/* The number is taken by the parent before anything is trapped. */
		while (!__atomic_load_n(&s->seen[511], __ATOMIC_SEQ_CST))
			usleep(100);
		close(fd);
		body(s->seen);
		_exit(0);
	}
	int number = -1;
	assert_int_equal(read(pair[0], &number, sizeof(number)), sizeof(number));
	assert_true(number >= 0);
	int pidfd = (int)syscall(SYS_pidfd_open, s->pid, 0);
	int listener = (int)syscall(SYS_pidfd_getfd, pidfd, number, 0);
	assert_true(listener >= 0);
	close(pidfd);
	close(pair[0]);
	close(pair[1]);
	s->sup = sup;
	s->box = box_new();
	s->box->listener = listener;
	s->box->have_getfd = s->box->have_vm_read = true;
	assert_int_equal(supervisor_add_take(s->sup, s->box), 0);
	__atomic_store_n(&s->seen[511], 1, __ATOMIC_SEQ_CST);
}

static void scene_start(struct scene *s, void (*body)(long *seen))
{
	assert_int_equal(pipe(gate), 0);
	worked = 0;
	struct supervisor *sup = supervisor_new();
	assert_non_null(sup);
	scene_add(s, sup, body);
}

static struct supervised *engine_of(const struct scene *s)
{
	return (struct supervised *)(void *)s->box;
}

static bool runs(const struct scene *s)
{
	siginfo_t info = {0};
	return waitid(P_PID, (id_t)s->pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
	       info.si_pid == 0;
}

static void open_gate(void)
{
	assert_int_equal(write(gate[1], "x", 1), 1);
}

/* Serves until the child has ended; its exit status must be 0. */
static void scene_remove(struct scene *s)
{
	int status = -1;
	while (waitpid(s->pid, &status, WNOHANG) == 0)
		supervisor_step(s->sup, 10);
	assert_int_equal(status, 0);
	supervisor_remove(s->sup, s->box);
	munmap(s->seen, 4096);
}

static void scene_finish(struct scene *s)
{
	scene_remove(s);
	supervisor_free(s->sup);
	close(gate[0]);
	close(gate[1]);
}

/* --- Answers ---------------------------------------------------------------------------------- */

static void ask_simple(long *seen)
{
	seen[0] = trapped(DO_VALUE, 0x123456789);
	seen[1] = trapped(DO_ERRNO, ENOTTY);
	seen[2] = trapped(DO_ERRNO, 0);
	seen[3] = trapped(DO_ERRNO, -5);
	seen[4] = trapped(DO_ERRNO, 5000);
	seen[5] = trapped(DO_GARBAGE, 0);
	seen[6] = trapped(DO_FD, 1);
	seen[7] = fcntl((int)seen[6], F_GETFD);
	seen[8] = trapped(DO_FD, 0);
	seen[9] = fcntl((int)seen[8], F_GETFD);
	/* A full table: the true errno, and nothing is executed. */
	struct rlimit lim = {(rlim_t)seen[8] + 1, (rlim_t)seen[8] + 1};
	setrlimit(RLIMIT_NOFILE, &lim);
	seen[10] = trapped(DO_FD, 0);
	/* Whoever was taken for gone must not wait for ever. */
	seen[12] = trapped(DO_GONE, 0);
	seen[11] = trapped(DO_VALUE, 7);
}

static void test_answers(void **state)
{
	struct scene s;
	(void)state;
	scene_start(&s, ask_simple);
	while (runs(&s) && !s.seen[11])
		supervisor_step(s.sup, 10);
	assert_true(s.seen[0] == 0x123456789);
	assert_int_equal(s.seen[1], -ENOTTY);
	/* An errno that is none refuses all the same. */
	assert_int_equal(s.seen[2], -EACCES);
	assert_int_equal(s.seen[3], -EACCES);
	assert_int_equal(s.seen[4], -EACCES);
	assert_int_equal(s.seen[5], -EACCES);
	assert_true(s.seen[6] >= 0);
	assert_int_equal(s.seen[7], FD_CLOEXEC);
	assert_int_equal(s.seen[9], 0);
	assert_int_equal(s.seen[10], -EMFILE);
	assert_int_equal(s.seen[11], 7);
	assert_int_equal(s.seen[12], -ESRCH);
	scene_finish(&s);
}

/* --- Waiting ---------------------------------------------------------------------------------- */

static volatile sig_atomic_t alarms;

static void on_alarm(int sig)
{
	(void)sig;
	alarms++;
}

static void alarm_in(int ms, int flags)
{
	struct sigaction sa = {.sa_handler = on_alarm, .sa_flags = flags};
	struct itimerval it = {{0, 0}, {0, ms * 1000}};
	sigaction(SIGALRM, &sa, NULL);
	setitimer(ITIMER_REAL, &it, NULL);
}

static void ask_waiting(long *seen)
{
	seen[0] = trapped(DO_WAIT_TIME, 30);
	alarm_in(40, 0);
	seen[1] = trapped(DO_WAIT, 5);
	seen[2] = alarms;
	alarm_in(40, SA_RESTART);
	seen[3] = 1; /* the test opens the gate once the signal has been taken */
	seen[4] = trapped(DO_WAIT, 6);
	seen[5] = alarms;
}

static void test_waiting(void **state)
{
	struct scene s;
	bool opened = false;
	int status = -1;
	(void)state;
	scene_start(&s, ask_waiting);
	int64_t open_at = 0;
	while (waitpid(s.pid, &status, WNOHANG) == 0) {
		supervisor_step(s.sup, 10);
		if (s.seen[3] && !open_at)
			open_at = supervise_now_ms() + 200;
		if (open_at && supervise_now_ms() > open_at && !opened) {
			open_gate();
			opened = true;
		}
	}
	assert_int_equal(status, 0);
	assert_int_equal(s.seen[0], -EAGAIN);
	assert_int_equal(s.seen[1], -EINTR);
	assert_int_equal(s.seen[2], 1);
	/* Restarted as the handler says: the program sees its result alone. */
	assert_int_equal(s.seen[4], 6);
	assert_int_equal(s.seen[5], 2);
	assert_null(s.sup->waiting);
	supervisor_remove(s.sup, s.box);
	supervisor_free(s.sup);
	munmap(s.seen, 4096);
	close(gate[0]);
	close(gate[1]);
}

struct asker {
	enum what what;
	long value;
	long result;
};

static void *ask_in_thread(void *arg)
{
	struct asker *a = arg;
	a->result = trapped(a->what, a->value);
	return NULL;
}

/* N threads that ask at once; counts their results. */
static void ask_many(long *seen, enum what what, int n)
{
	static struct asker askers[700];
	static pthread_t threads[700];
	pthread_attr_t attr;
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 65536);
	for (int i = 0; i < n; i++) {
		askers[i] = (struct asker){.what = what, .value = i + 1};
		if (pthread_create(&threads[i], &attr, ask_in_thread, &askers[i]))
			_exit(3);
	}
	seen[4] = 1;
	for (int i = 0; i < n; i++) {
		pthread_join(threads[i], NULL);
		if (askers[i].result == i + 1)
			seen[0]++;
		else if (askers[i].result == -EAGAIN)
			seen[1]++;
		else if (askers[i].result == -EIO)
			seen[2]++;
		else
			seen[3]++;
	}
}

static void ask_too_many_waits(long *seen)
{
	ask_many(seen, DO_WAIT, WAITING_MAX + 20);
}

static void test_waiting_is_bounded(void **state)
{
	struct scene s;
	(void)state;
	scene_start(&s, ask_too_many_waits);
	while (!s.seen[4] || engine_of(&s)->n_waiting < WAITING_MAX)
		supervisor_step(s.sup, 10);
	/* Those above the limit are answered while the others still wait. */
	for (int i = 0; i < 50; i++)
		supervisor_step(s.sup, 2);
	open_gate();
	while (runs(&s) && s.seen[0] + s.seen[1] < WAITING_MAX + 20)
		supervisor_step(s.sup, 10);
	assert_int_equal(s.seen[0], WAITING_MAX);
	assert_int_equal(s.seen[1], 20);
	assert_int_equal(s.seen[3], 0);
	scene_finish(&s);
}

static void ask_short_waits(long *seen)
{
	static struct asker askers[100];
	static pthread_t threads[100];
	for (int i = 0; i < 100; i++) {
		askers[i] = (struct asker){.what = DO_WAIT_TIME, .value = 200};
		if (pthread_create(&threads[i], NULL, ask_in_thread, &askers[i]))
			_exit(3);
	}
	for (int i = 0; i < 100; i++) {
		pthread_join(threads[i], NULL);
		seen[0] += askers[i].result == -EAGAIN;
	}
	seen[1] = 1;
}

/* As many as may wait in one sandbox, and what waits longer in another is still looked after. */
static void test_waiting_of_two(void **state)
{
	struct scene a;
	struct scene b;
	(void)state;
	scene_start(&b, ask_short_waits);
	while (engine_of(&b)->n_waiting < 100)
		supervisor_step(b.sup, 10);
	scene_add(&a, b.sup, ask_too_many_waits);
	while (engine_of(&a)->n_waiting < WAITING_MAX)
		supervisor_step(a.sup, 10);
	while (runs(&b) && !b.seen[1])
		supervisor_step(b.sup, 10);
	assert_int_equal(b.seen[0], 100);
	assert_int_equal(engine_of(&a)->n_waiting, WAITING_MAX);
	scene_remove(&b);
	open_gate();
	scene_finish(&a);
}

/* --- Signals to the supervisor ---------------------------------------------------------------- */

static void *ask_for_descriptors(void *arg)
{
	long *good = arg;
	struct stat st;
	for (int i = 0; i < 400; i++) {
		long fd = trapped(DO_FD, 1);
		bool right = fd > 2 && fstat((int)fd, &st) == 0 && S_ISFIFO(st.st_mode) &&
			     close((int)fd) == 0;
		right = right && trapped(DO_VALUE, i) == i;
		__atomic_add_fetch(good, right, __ATOMIC_SEQ_CST);
	}
	return NULL;
}

static void ask_under_signals(long *seen)
{
	pthread_t threads[8];
	for (int i = 0; i < 8; i++)
		pthread_create(&threads[i], NULL, ask_for_descriptors, &seen[0]);
	for (int i = 0; i < 8; i++)
		pthread_join(threads[i], NULL);
	seen[1] = 1;
}

/* The listener's calls give EINTR then: no answer may be lost by that, or be another one. */
static void test_signalled_supervisor(void **state)
{
	struct scene s;
	struct sigaction sa = {.sa_handler = on_alarm};
	struct itimerval it = {{0, 40}, {0, 40}};
	(void)state;
	scene_start(&s, ask_under_signals);
	alarms = 0;
	sigaction(SIGALRM, &sa, NULL);
	setitimer(ITIMER_REAL, &it, NULL);
	while (runs(&s) && !s.seen[1])
		supervisor_step(s.sup, 10);
	it = (struct itimerval){{0, 0}, {0, 0}};
	setitimer(ITIMER_REAL, &it, NULL);
	signal(SIGALRM, SIG_IGN);
	assert_true(alarms > 0);
	assert_int_equal(s.seen[0], 8 * 400);
	scene_finish(&s);
}

/* --- Workers ---------------------------------------------------------------------------------- */

static void ask_one_work(long *seen)
{
	seen[0] = trapped(DO_WORK, 3);
	seen[1] = 1;
}

static void ask_too_much_work(long *seen)
{
	ask_many(seen, DO_WORK, WORKING_MAX + 10);
}

static void test_workers_are_bounded(void **state)
{
	struct scene s;
	(void)state;
	scene_start(&s, ask_too_much_work);
	while (!s.seen[4] || __atomic_load_n(&worked, __ATOMIC_SEQ_CST) < POOL_SHARE)
		supervisor_step(s.sup, 10);
	for (int i = 0; i < 50; i++)
		supervisor_step(s.sup, 2);
	assert_int_equal(__atomic_load_n(&worked, __ATOMIC_SEQ_CST), POOL_SHARE);
	assert_int_equal(engine_of(&s)->n_working, WORKING_MAX);
	open_gate();
	while (runs(&s) && s.seen[0] + s.seen[1] < WORKING_MAX + 10)
		supervisor_step(s.sup, 10);
	/* Those above the limit waited for their turn. */
	assert_int_equal(s.seen[0], WORKING_MAX + 10);
	assert_int_equal(s.seen[1], 0);
	assert_int_equal(s.seen[3], 0);
	scene_finish(&s);
}

/* One sandbox whose work hangs takes neither the queue nor all workers from another. */
static void test_hung_work_leaves_room(void **state)
{
	struct scene a;
	struct scene b;
	(void)state;
	scene_start(&a, ask_too_much_work);
	while (engine_of(&a)->n_working < WORKING_MAX)
		supervisor_step(a.sup, 10);
	while (__atomic_load_n(&worked, __ATOMIC_SEQ_CST) < POOL_SHARE)
		supervisor_step(a.sup, 10);
	scene_add(&b, a.sup, ask_one_work);
	while (__atomic_load_n(&worked, __ATOMIC_SEQ_CST) < POOL_SHARE + 1)
		supervisor_step(a.sup, 10);
	assert_int_equal(engine_of(&b)->n_working, 1);
	open_gate();
	while (runs(&b) && !b.seen[1])
		supervisor_step(a.sup, 10);
	assert_int_equal(b.seen[0], 3);
	scene_remove(&b);
	scene_finish(&a);
}

/* Nor do several that make the kernel hold as many workers as there are. */
static void test_held_workers_are_replaced(void **state)
{
	struct scene s[3];
	(void)state;
	_Static_assert(2 * POOL_SHARE > POOL_THREADS, "two hold them all");
	scene_start(&s[0], ask_too_much_work);
	scene_add(&s[1], s[0].sup, ask_too_much_work);
	while (__atomic_load_n(&worked, __ATOMIC_SEQ_CST) < 2 * POOL_SHARE)
		supervisor_step(s[0].sup, 10);
	scene_add(&s[2], s[0].sup, ask_one_work);
	while (__atomic_load_n(&worked, __ATOMIC_SEQ_CST) < 2 * POOL_SHARE + 1)
		supervisor_step(s[0].sup, 10);
	assert_int_equal(engine_of(&s[2])->n_working, 1);
	open_gate();
	while (runs(&s[2]) && !s[2].seen[1])
		supervisor_step(s[0].sup, 10);
	assert_int_equal(s[2].seen[0], 3);
	scene_remove(&s[2]);
	scene_remove(&s[1]);
	scene_finish(&s[0]);
}

static void ask_slow_work(long *seen)
{
	seen[0] = trapped(DO_WORK, 3);
	seen[1] = trapped(DO_VALUE, 4);
}

static void test_work_has_a_time_limit(void **state)
{
	struct scene s;
	(void)state;
	scene_start(&s, ask_slow_work);
	s.sup->pool_timeout_ms = 50;
	while (runs(&s) && !s.seen[1])
		supervisor_step(s.sup, 10);
	assert_int_equal(s.seen[0], -EIO);
	assert_int_equal(s.seen[1], 4);
	open_gate(); /* the worker's late verdict finds nobody */
	for (int i = 0; i < 20; i++)
		supervisor_step(s.sup, 2);
	scene_finish(&s);
}

/* A loop that goes while a worker is stuck, and a worker that comes back to nothing. */
static void test_end_during_work(void **state)
{
	struct scene s;
	(void)state;
	scene_start(&s, ask_slow_work);
	while (__atomic_load_n(&worked, __ATOMIC_SEQ_CST) < 1)
		supervisor_step(s.sup, 10);
	kill(s.pid, SIGKILL);
	waitpid(s.pid, NULL, 0);
	supervisor_remove(s.sup, s.box);
	supervisor_free(s.sup);
	open_gate();
	usleep(50000);
	munmap(s.seen, 4096);
	close(gate[0]);
	close(gate[1]);
}

static void test_death_while_waiting(void **state)
{
	struct scene s;
	(void)state;
	scene_start(&s, ask_too_many_waits);
	while (engine_of(&s)->n_waiting < 100)
		supervisor_step(s.sup, 10);
	kill(s.pid, SIGKILL);
	waitpid(s.pid, NULL, 0);
	while (s.sup->waiting)
		supervisor_step(s.sup, 10);
	assert_int_equal(engine_of(&s)->n_waiting, 0);
	supervisor_remove(s.sup, s.box);
	supervisor_free(s.sup);
	munmap(s.seen, 4096);
	close(gate[0]);
	close(gate[1]);
}

int main(void)
{
	/* How many calls may wait is a part of how many descriptors there can be. */
	struct rlimit limit = {4 * WAITING_MAX, 4 * WAITING_MAX};
	struct rlimit old;
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_answers),
		cmocka_unit_test(test_waiting),
		cmocka_unit_test(test_waiting_is_bounded),
		cmocka_unit_test(test_waiting_of_two),
		cmocka_unit_test(test_signalled_supervisor),
		cmocka_unit_test(test_workers_are_bounded),
		cmocka_unit_test(test_held_workers_are_replaced),
		cmocka_unit_test(test_hung_work_leaves_room),
		cmocka_unit_test(test_work_has_a_time_limit),
		cmocka_unit_test(test_end_during_work),
		cmocka_unit_test(test_death_while_waiting),
	};
	getrlimit(RLIMIT_NOFILE, &old);
	limit.rlim_max = old.rlim_max;
	if (setrlimit(RLIMIT_NOFILE, &limit) < 0)
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
