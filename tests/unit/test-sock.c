/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The socket handlers, with this very process as the task: what the engine gives them (memory,
 * descriptors, waiting, refusals) is played here, so that each step can be looked at.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <arpa/inet.h>
#include <cmocka.h>
#include <netinet/in.h>

#include "base/util.h"
#include "policy/net_rule.h"
#include "policy/policy.h"
#include "supervise/box.h"
#include "supervise/handlers/handlers.h"
#include "supervise/pending.h"
#include "supervise/resolve.h"
#include "supervise/sock.h"

/* --- The engine, played ------------------------------------------------------------------- */

static struct pending_op waiting;
static int n_waits;
static bool no_room;
static struct refusal refused;
static char refused_allow[256];
static char granted[256];

bool call_is_alive(const struct call *call)
{
	return call->id == 1;
}

/* Through the kernel, so that a bad address is an errno. */
static int transfer(uint64_t addr, void *data, size_t n, bool write)
{
	struct iovec local = {data, n};
	struct iovec remote = {(void *)(uintptr_t)addr, n};
	if (n == 0)
		return 0;
	ssize_t r = write ? process_vm_writev(getpid(), &local, 1, &remote, 1, 0)
			  : process_vm_readv(getpid(), &local, 1, &remote, 1, 0);
	return r == (ssize_t)n ? 0 : -EFAULT;
}

int call_read(struct call *call, uint64_t addr, void *ret_data, size_t n)
{
	(void)call;
	return transfer(addr, ret_data, n, false);
}

int call_write(struct call *call, uint64_t addr, const void *data, size_t n)
{
	(void)call;
	return transfer(addr, (void *)(uintptr_t)data, n, true);
}

int call_fd_take(struct call *call, int fd)
{
	(void)call;
	int copy = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	return copy < 0 ? -errno : copy;
}

int call_fd(struct call *call, int fd)
{
	int copy = call_fd_take(call, fd);
	if (copy >= 0)
		call->fds[call->n_fds++] = copy;
	return copy;
}

int call_pidfd(struct call *call)
{
	if (call->pidfd < 0)
		call->pidfd = (int)syscall(SYS_pidfd_open, getpid(), 0);
	return call->pidfd;
}

struct verdict call_wait(struct call *call, const struct pending_op *op)
{
	(void)call;
	waiting = *op;
	n_waits++;
	if (!no_room)
		return (struct verdict){.answer = ANSWER_PENDING};
	if (waiting.free)
		waiting.free(&waiting);
	return verdict_errno(EAGAIN);
}

bool call_may_work(const struct call *call)
{
	(void)call;
	return true;
}

void call_tell(struct call *call, const struct refusal *refusal)
{
	(void)call;
	(void)refusal;
}

void call_program(const struct call *call, char *ret_name, size_t size)
{
	(void)call;
	snprintf(ret_name, size, "test");
}

struct verdict call_refuse(struct call *call, const struct refusal *refusal)
{
	(void)call;
	refused = *refusal;
	snprintf(refused_allow, sizeof(refused_allow), "%s", refusal->allow ? refusal->allow : "");
	return verdict_errno(refusal->error);
}

void resolved_done(struct resolved *r)
{
	r->fd = util_close(r->fd);
}

void resolved_done_cleanup(struct resolved *r)
{
	resolved_done(r);
}

int resolve_path(struct call *call, int dirfd, const char *path, unsigned int flags,
		 struct resolved *ret)
{
	struct stat st;
	(void)call;
	(void)flags;
	ret->fd = openat(dirfd, path, O_PATH | O_CLOEXEC);
	if (ret->fd < 0)
		return -errno;
	assert_int_equal(fstat(ret->fd, &st), 0);
	ret->mode = st.st_mode;
	char link[64];
	snprintf(link, sizeof(link), "/proc/self/fd/%d", ret->fd);
	ssize_t n = readlink(link, ret->path, sizeof(ret->path) - 1);
	assert_true(n > 0);
	ret->path[n] = '\0';
	ret->anonymous = ret->path[0] != '/';
	return 0;
}

static struct grant grant;

const struct grant *grants_find(const struct grants *g, const char *path, unsigned int rights)
{
	(void)g;
	assert_int_equal(rights, GRANT_WRITE);
	return granted[0] && str_starts(path, granted) ? &grant : NULL;
}

const struct grant *grants_find_outer(const struct grants *g, const char *path, unsigned int rights,
				      const struct grant *inner)
{
	return inner ? NULL : grants_find(g, path, rights);
}

/* --- A call ------------------------------------------------------------------------------- */

static struct policy policy;
static struct box box;
static char dir[64];

static struct verdict run(call_handler handler, const char *name, const uint64_t args[6],
			  bool on_worker)
{
	static const struct syscall_row *row;
	struct call call = {.box = &box, .id = 1, .tid = getpid(), .pidfd = -1};
	row = syscall_by_name(name);
	call.row = row;
	call.on_worker = on_worker;
	memcpy(call.data.args, args, sizeof(call.data.args));
	refused = (struct refusal){0};
	refused_allow[0] = '\0';
	struct verdict v = handler(&call);
	if (v.answer == ANSWER_WORKER && !on_worker) {
		for (size_t i = 0; i < call.n_fds; i++)
			close(call.fds[i]);
		return run(handler, name, args, true);
	}
	/* What waits keeps its descriptors, as in the engine; the tests are short. */
	for (size_t i = 0; v.answer != ANSWER_PENDING && i < call.n_fds; i++)
		close(call.fds[i]);
	util_close(call.pidfd);
	return v;
}

#define ARGS(...) ((const uint64_t[6]){__VA_ARGS__})
#define P(p)	  ((uint64_t)(uintptr_t)(p))
#define N(n)	  ((uint64_t)(uint32_t)(n))

static void assert_error(struct verdict v, int code)
{
	assert_int_equal(v.answer, ANSWER_ERRNO);
	assert_int_equal(v.value, code);
}

static void assert_value(struct verdict v, int64_t value)
{
	assert_int_equal(v.answer, ANSWER_VALUE);
	assert_int_equal(v.value, value);
}

static socklen_t name_of(struct sockaddr_un *un, const char *name)
{
	*un = (struct sockaddr_un){.sun_family = AF_UNIX};
	snprintf(un->sun_path, sizeof(un->sun_path), "%s/%s", dir, name);
	return (socklen_t)sizeof(*un);
}

static int bound(int type, const char *name)
{
	struct sockaddr_un un;
	socklen_t n = name_of(&un, name);
	int fd = socket(AF_UNIX, type | SOCK_CLOEXEC, 0);
	unlink(un.sun_path);
	assert_int_equal(bind(fd, (struct sockaddr *)&un, n), 0);
	return fd;
}

static int setup(void **state)
{
	(void)state;
	snprintf(dir, sizeof(dir), "/tmp/test-sock.XXXXXX");
	assert_non_null(mkdtemp(dir));
	box = (struct box){.policy = &policy,
			   .have_getfd = true,
			   .guardian_pid = getppid(),
			   .uid = geteuid(),
			   .gid = getegid(),
			   .host_uid = geteuid(),
			   .host_gid = getegid()};
	box.socks = sock_table_new(&policy);
	return 0;
}

static int teardown(void **state)
{
	char command[PATH_MAX];
	static const char *const names[] = {"s", "d", "late", "f"};
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		snprintf(command, sizeof(command), "%s/%s", dir, names[i]);
		unlink(command);
	}
	sock_table_free(box.socks);
	return rmdir(dir);
}

static int before(void **state)
{
	(void)state;
	granted[0] = '\0';
	no_room = false;
	n_waits = 0;
	box.have_getfd = true;
	return 0;
}

/* --- connect ------------------------------------------------------------------------------ */

static void test_connect_named(void **state)
{
	struct sockaddr_un un;
	socklen_t n = name_of(&un, "s");
	int server = bound(SOCK_STREAM, "s");
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);
	(void)state;
	listen(server, 1);
	assert_error(run(handle_connect, "connect", ARGS(N(fd), P(&un), n), false), EACCES);
	assert_string_equal(refused.op, "connect");
	char want[128];
	snprintf(want, sizeof(want), "--unix-allow %s/s", dir);
	assert_string_equal(refused_allow, want);

	snprintf(granted, sizeof(granted), "%s", dir);
	assert_value(run(handle_connect, "connect", ARGS(N(fd), P(&un), n), false), 0);
	assert_int_equal(fcntl(fd, F_GETFL) & O_NONBLOCK, 0);
	assert_error(run(handle_connect, "connect", ARGS(N(fd), P(&un), n), false), EISCONN);
	int peer = accept(server, NULL, NULL);
	assert_true(peer >= 0);
	close(peer);
	close(fd);
	close(server);
}

static void test_connect_wrong(void **state)
{
	struct sockaddr_un un;
	socklen_t n = name_of(&un, "f");
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);
	int file = open(un.sun_path, O_CREAT | O_RDWR, 0600);
	(void)state;
	snprintf(granted, sizeof(granted), "%s", dir);
	assert_error(run(handle_connect, "connect", ARGS(N(fd), P(&un), n), false), ECONNREFUSED);
	assert_error(run(handle_connect, "connect", ARGS(N(fd), P(&un), 2), false), EINVAL);
	assert_error(run(handle_connect, "connect", ARGS(N(fd), P(&un), N(-1)), false), EINVAL);
	assert_error(run(handle_connect, "connect", ARGS(N(fd), P(&un), 0xffffffff), false),
		     EINVAL);
	assert_error(run(handle_connect, "connect", ARGS(N(fd), P(&un), 129), false), EINVAL);
	assert_error(run(handle_connect, "connect", ARGS(N(fd), UINT64_MAX - 50, n), false),
		     EFAULT);
	assert_error(run(handle_connect, "connect", ARGS(N(fd), P(&un), 111), false), EINVAL);
	assert_error(run(handle_connect, "connect", ARGS(N(file), P(&un), n), false), ENOTSOCK);
	assert_error(run(handle_connect, "connect", ARGS(N(-1), P(&un), n), false), EBADF);
	name_of(&un, "missing");
	assert_error(run(handle_connect, "connect", ARGS(N(fd), P(&un), n), false), ENOENT);
	/* 108 bytes without a NUL. */
	memset(un.sun_path, 'a', sizeof(un.sun_path));
	assert_error(run(handle_connect, "connect", ARGS(N(fd), P(&un), n), false), ENOENT);
	/* A socket by its number is no address. */
	snprintf(un.sun_path, sizeof(un.sun_path), "/proc/self/fd/%d", fd);
	granted[0] = '\0';
	assert_error(run(handle_connect, "connect", ARGS(N(fd), P(&un), n), false), ECONNREFUSED);
	close(file);
	close(fd);
}

static void test_connect_full(void **state)
{
	struct sockaddr_un un;
	socklen_t n = name_of(&un, "s");
	int server = bound(SOCK_STREAM, "s");
	int fds[3];
	(void)state;
	snprintf(granted, sizeof(granted), "%s", dir);
	listen(server, 0);
	for (size_t i = 0; i < ARRAY_SIZE(fds); i++)
		fds[i] = socket(AF_UNIX, SOCK_STREAM, 0);
	assert_value(run(handle_connect, "connect", ARGS(N(fds[0]), P(&un), n), false), 0);
	fcntl(fds[1], F_SETFL, O_NONBLOCK);
	assert_error(run(handle_connect, "connect", ARGS(N(fds[1]), P(&un), n), false), EAGAIN);
	assert_int_equal(n_waits, 0);
	struct verdict v = run(handle_connect, "connect", ARGS(N(fds[2]), P(&un), n), false);
	assert_int_equal(v.answer, ANSWER_PENDING);
	assert_true(waiting.retry_ms > 0 && waiting.interruptible);
	assert_int_equal(waiting.resume(NULL, &waiting, false).answer, ANSWER_WORKER);
	assert_error(waiting.resume(NULL, &waiting, true), EAGAIN);
	for (size_t i = 0; i < ARRAY_SIZE(fds); i++)
		close(fds[i]);
	close(server);
}

/* Foreign names are refused, own ones are found, names of nobody are as the kernel has them. */
static void test_connect_abstract(void **state)
{
	struct sockaddr_un un = {.sun_family = AF_UNIX};
	int server = socket(AF_UNIX, SOCK_STREAM, 0);
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);
	int len = snprintf(un.sun_path + 1, 64, "test-sock\n-%d", getpid());
	socklen_t n = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)len);
	(void)state;
	assert_error(run(handle_connect, "connect", ARGS(N(fd), P(&un), n), false), ECONNREFUSED);
	assert_int_equal(bind(server, (struct sockaddr *)&un, n), 0);
	listen(server, 1);
	assert_value(run(handle_connect, "connect", ARGS(N(fd), P(&un), n), false), 0);
	close(fd);
	fd = socket(AF_UNIX, SOCK_STREAM, 0);
	box.guardian_pid = 0x7fffffff; /* nobody's ancestor */
	assert_error(run(handle_connect, "connect", ARGS(N(fd), P(&un), n), false), EPERM);
	assert_string_equal(refused_allow, "--unix-allow '*'");
	box.guardian_pid = getppid();
	close(fd);
	close(server);
}

static void test_connect_tcp(void **state)
{
	struct sockaddr_in in = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	struct sockaddr_in other = in;
	socklen_t n = sizeof(in);
	int server = socket(AF_INET, SOCK_STREAM, 0);
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	struct net_rule rule;
	char text[32];
	(void)state;
	assert_int_equal(bind(server, (struct sockaddr *)&in, n), 0);
	listen(server, 1);
	assert_int_equal(getsockname(server, (struct sockaddr *)&in, &n), 0);
	other.sin_port = htons(9);
	snprintf(text, sizeof(text), "tcp://:%u", ntohs(in.sin_port));
	assert_int_equal(net_rule_parse(text, &rule, NULL), 0);
	policy.net_allow.v = &rule;
	policy.net_allow.n = 1;
	assert_error(run(handle_connect, "connect", ARGS(N(fd), P(&other), n), false), EACCES);
	assert_string_equal(refused_allow, "--net-allow :9");
	assert_error(run(handle_connect, "connect", ARGS(N(fd), P(&in), 8), false), EINVAL);
	struct verdict v = run(handle_connect, "connect", ARGS(N(fd), P(&in), n), false);
	if (v.answer == ANSWER_PENDING) {
		assert_int_equal(waiting.events, EPOLLOUT);
		v = waiting.resume(NULL, &waiting, false);
	}
	assert_value(v, 0);
	int peer = accept(server, NULL, NULL);
	assert_true(peer >= 0);
	policy.net_allow.v = NULL;
	policy.net_allow.n = 0;
	net_rule_done(&rule);
	close(peer);
	close(fd);
	close(server);
}

/* --- listen ------------------------------------------------------------------------------- */

static void test_listen(void **state)
{
	int tcp = socket(AF_INET, SOCK_STREAM, 0);
	int local = bound(SOCK_STREAM, "s");
	struct port_range range = {80, 80};
	(void)state;
	assert_value(run(handle_listen, "listen", ARGS(N(local), 1), false), 0);
	assert_error(run(handle_listen, "listen", ARGS(N(tcp), 1), false), EACCES);
	policy.bind_allow = (struct port_set){.v = &range, .n = 1};
	assert_error(run(handle_listen, "listen", ARGS(N(tcp), 1), false), EACCES);
	assert_string_equal(refused_allow, "--net-allow-bind 0");
	range.lo = 0;
	assert_value(run(handle_listen, "listen", ARGS(N(tcp), 1), false), 0);
	policy.bind_allow = (struct port_set){0};
	close(tcp);
	close(local);
}

/* --- send --------------------------------------------------------------------------------- */

static void test_send_named(void **state)
{
	struct sockaddr_un un;
	socklen_t n = name_of(&un, "d");
	int server = bound(SOCK_DGRAM, "d");
	int pair[2];
	char got[8];
	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_DGRAM, 0, pair), 0);
	assert_error(run(handle_send, "sendto", ARGS(N(pair[0]), P("abc"), 3, 0, P(&un), n), false),
		     EACCES);
	assert_string_equal(refused.op, "sendto");
	struct iovec v = {(void *)(uintptr_t) "abc", 3};
	struct msghdr h = {.msg_name = &un, .msg_namelen = n, .msg_iov = &v, .msg_iovlen = 1};
	assert_error(run(handle_send, "sendmsg", ARGS(N(pair[0]), P(&h), 0), false), EACCES);
	struct mmsghdr many[2] = {{.msg_hdr = h}, {.msg_hdr = h}};
	many[0].msg_hdr.msg_name = NULL;
	assert_value(run(handle_send, "sendmmsg", ARGS(N(pair[0]), P(many), 2, 0), false), 1);
	assert_int_equal(many[0].msg_len, 3);
	assert_int_equal(recv(pair[1], got, sizeof(got), MSG_DONTWAIT), 3);
	assert_int_equal(recv(server, got, sizeof(got), MSG_DONTWAIT), -1);
	snprintf(granted, sizeof(granted), "%s", dir);
	assert_value(run(handle_send, "sendmmsg", ARGS(N(pair[0]), P(many), 0x80000001, 0), false),
		     2);
	assert_int_equal(recv(server, got, sizeof(got), MSG_DONTWAIT), 3);
	close(pair[0]);
	close(pair[1]);
	close(server);
}

static void test_send_malformed(void **state)
{
	int pair[2];
	struct iovec v[2] = {{(void *)(uintptr_t)(UINT64_MAX - 4095), 8}, {NULL, SIZE_MAX}};
	struct msghdr h = {.msg_iov = v, .msg_iovlen = 1};
	_Alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {0};
	struct cmsghdr *c = (struct cmsghdr *)(void *)control;
	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	assert_error(run(handle_send, "sendmsg", ARGS(N(pair[0]), P(&h), 0), false), EFAULT);
	assert_error(run(handle_send, "sendmsg", ARGS(N(pair[0]), 8, 0), false), EFAULT);
	h.msg_iovlen = 2;
	assert_error(run(handle_send, "sendmsg", ARGS(N(pair[0]), P(&h), 0), false), EINVAL);
	h.msg_iovlen = 1025;
	assert_error(run(handle_send, "sendmsg", ARGS(N(pair[0]), P(&h), 0), false), EMSGSIZE);
	v[0] = (struct iovec){(void *)(uintptr_t) "x", 1};
	h.msg_iovlen = 1;
	h.msg_control = control;
	h.msg_controllen = (size_t)1 << 40;
	assert_error(run(handle_send, "sendmsg", ARGS(N(pair[0]), P(&h), 0), false), ENOBUFS);
	h.msg_controllen = sizeof(control);
	c->cmsg_len = 4;
	assert_error(run(handle_send, "sendmsg", ARGS(N(pair[0]), P(&h), 0), false), EINVAL);
	c->cmsg_len = SIZE_MAX;
	assert_error(run(handle_send, "sendmsg", ARGS(N(pair[0]), P(&h), 0), false), EINVAL);
	c->cmsg_len = CMSG_LEN(sizeof(int));
	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	memset(CMSG_DATA(c), 0xff, sizeof(int));
	assert_error(run(handle_send, "sendmsg", ARGS(N(pair[0]), P(&h), 0), false), EBADF);
	assert_error(run(handle_send, "sendmsg", ARGS(N(pair[0]), P(&h), MSG_FASTOPEN), false),
		     EOPNOTSUPP);
	assert_error(run(handle_send, "sendmsg", ARGS(N(pair[0]), P(&h), MSG_ZEROCOPY), false),
		     ENOBUFS);
	close(pair[0]);
	close(pair[1]);
}

static void test_send_rights(void **state)
{
	int pair[2];
	struct iovec v = {(void *)(uintptr_t) "x", 1};
	_Alignas(struct cmsghdr) char
		control[CMSG_SPACE(sizeof(int)) + CMSG_SPACE(sizeof(struct ucred))] = {0};
	struct msghdr h = {.msg_iov = &v,
			   .msg_iovlen = 1,
			   .msg_control = control,
			   .msg_controllen = sizeof(control)};
	struct cmsghdr *c = (struct cmsghdr *)(void *)control;
	struct stat a, b;
	int null = open("/dev/null", O_RDONLY);
	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
	*c = (struct cmsghdr){CMSG_LEN(sizeof(int)), SOL_SOCKET, SCM_RIGHTS};
	memcpy(CMSG_DATA(c), &null, sizeof(null));
	c = (struct cmsghdr *)(void *)(control + CMSG_SPACE(sizeof(int)));
	struct ucred cred = {getpid(), geteuid() + 1, getegid()};
	*c = (struct cmsghdr){CMSG_LEN(sizeof(cred)), SOL_SOCKET, SCM_CREDENTIALS};
	memcpy(CMSG_DATA(c), &cred, sizeof(cred));
	assert_error(run(handle_send, "sendmsg", ARGS(N(pair[0]), P(&h), 0), false), EPERM);
	cred.uid--;
	memcpy(CMSG_DATA(c), &cred, sizeof(cred));
	assert_value(run(handle_send, "sendmsg", ARGS(N(pair[0]), P(&h), 0), false), 1);

	char byte;
	struct iovec in = {&byte, 1};
	_Alignas(struct cmsghdr) char got[256];
	struct msghdr r = {
		.msg_iov = &in, .msg_iovlen = 1, .msg_control = got, .msg_controllen = sizeof(got)};
	assert_int_equal(recvmsg(pair[1], &r, MSG_DONTWAIT), 1);
	int passed = -1;
	assert_true(r.msg_controllen >= CMSG_LEN(sizeof(int)));
	c = (struct cmsghdr *)(void *)got;
	memcpy(&passed, CMSG_DATA(c), sizeof(passed));
	assert_int_equal(fstat(passed, &a), 0);
	assert_int_equal(fstat(null, &b), 0);
	assert_int_equal(a.st_rdev, b.st_rdev);
	close(passed);
	close(null);
	close(pair[0]);
	close(pair[1]);
}

/* A big stream is sent whole, in parts, as the reader takes it. */
static void test_send_waits(void **state)
{
	enum { BIG = 3 << 20 };
	int pair[2];
	auto_free char *data = xzalloc(BIG);
	auto_free char *got = xzalloc(BIG);
	struct iovec v[2] = {{data, 1000}, {data + 1000, BIG - 1000}};
	struct msghdr h = {.msg_iov = v, .msg_iovlen = 2};
	struct call call = {.box = &box, .id = 1, .tid = getpid(), .pidfd = -1};
	size_t n = 0;
	(void)state;
	for (size_t i = 0; i < BIG; i++)
		data[i] = (char)(i * 7 >> 3);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	struct verdict r = run(handle_send, "sendmsg", ARGS(N(pair[0]), P(&h), 0), false);
	assert_int_equal(r.answer, ANSWER_PENDING);
	struct verdict partial = waiting.interrupted(&waiting, EINTR);
	assert_int_equal(partial.answer, ANSWER_VALUE);
	assert_true(partial.value > 0 && partial.value < BIG);
	while (n < BIG) {
		ssize_t part = recv(pair[1], got + n, BIG - n, MSG_DONTWAIT);
		if (part > 0)
			n += (size_t)part;
		else if (r.answer == ANSWER_PENDING)
			r = waiting.resume(&call, &waiting, false);
		else
			break;
	}
	assert_value(r, BIG);
	assert_int_equal(n, BIG);
	assert_memory_equal(data, got, BIG);
	waiting.free(&waiting);

	/* Without room to wait, what was sent counts; with a non-blocking socket too. */
	no_room = true;
	r = run(handle_send, "sendmsg", ARGS(N(pair[0]), P(&h), 0), false);
	assert_int_equal(r.answer, ANSWER_VALUE);
	assert_true(r.value > 0 && r.value < BIG);
	no_room = false;
	assert_error(run(handle_send, "sendmsg", ARGS(N(pair[0]), P(&h), MSG_DONTWAIT), false),
		     EAGAIN);
	close(pair[0]);
	close(pair[1]);
}

static volatile sig_atomic_t broken;

static void on_broken(int sig)
{
	(void)sig;
	broken++;
}

static void test_send_broken(void **state)
{
	int pair[2];
	struct iovec v = {(void *)(uintptr_t) "x", 1};
	struct msghdr h = {.msg_iov = &v, .msg_iovlen = 1};
	(void)state;
	signal(SIGPIPE, on_broken);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	close(pair[1]);
	assert_error(run(handle_send, "sendmsg", ARGS(N(pair[0]), P(&h), MSG_NOSIGNAL), false),
		     EPIPE);
	assert_int_equal(broken, 0);
	assert_error(run(handle_send, "sendmsg", ARGS(N(pair[0]), P(&h), 0), false), EPIPE);
	assert_int_equal(broken, 1);
	signal(SIGPIPE, SIG_DFL);
	close(pair[0]);
}

/* --- Without pidfd_getfd ------------------------------------------------------------------ */

static void test_no_getfd(void **state)
{
	struct sockaddr_un un;
	socklen_t n = name_of(&un, "s");
	int server = bound(SOCK_STREAM, "s");
	char byte;
	(void)state;
	box.have_getfd = false;
	snprintf(granted, sizeof(granted), "%s", dir);
	listen(server, 1);
	struct verdict v =
		run(handle_socket, "socket", ARGS(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), false);
	assert_int_equal(v.answer, ANSWER_FD);
	assert_true(v.cloexec);
	assert_value(run(handle_connect, "connect", ARGS(N(v.fd), P(&un), n), false), 0);
	int peer = accept(server, NULL, NULL);
	close(v.fd);
	assert_int_equal(recv(peer, &byte, 1, MSG_DONTWAIT), 0);
	close(peer);

	int unknown = socket(AF_UNIX, SOCK_STREAM, 0);
	assert_error(run(handle_connect, "connect", ARGS(N(unknown), P(&un), n), false), EACCES);
	assert_error(run(handle_socket, "socket", ARGS(AF_UNIX, SOCK_DGRAM, 0), false), EACCES);
	assert_error(run(handle_socket, "socket", ARGS(AF_PACKET, SOCK_RAW, 0), false), EACCES);
	for (int i = 0; i < 600; i++) {
		v = run(handle_socket, "socket", ARGS(AF_INET, SOCK_STREAM, 0), false);
		assert_int_equal(v.answer, ANSWER_FD);
		assert_false(v.cloexec);
		close(v.fd);
	}
	close(unknown);
	close(server);
}

static void test_unix_allow(void **state)
{
	struct policy p = {0};
	char link[128];
	char path[256];
	(void)state;
	snprintf(link, sizeof(link), "%s/f", dir);
	unlink(link);
	assert_int_equal(symlink("/proc", link), 0);
	snprintf(path, sizeof(path), "%s/self-not-there/x", link);
	strv_add(&p.unix_allow, path);
	strv_add(&p.unix_allow, dir);
	struct sock_table *t = sock_table_new(&p);
	assert_true(sock_table_allows(t, "/proc/self-not-there/x"));
	assert_false(sock_table_allows(t, "/proc/self-not-there"));
	assert_false(sock_table_allows(t, "/proc/self-not-there/xy"));
	snprintf(path, sizeof(path), "%s/any/s", dir);
	assert_true(sock_table_allows(t, path));
	sock_table_free(t);
	strv_done(&p.unix_allow);
}

/* --- Internet sockets ----------------------------------------------------------------------- */

static int udp_at(const char *host, uint16_t port)
{
	struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons(port)};
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	assert_int_equal(inet_pton(AF_INET, host, &in.sin_addr), 1);
	if (bind(fd, (struct sockaddr *)&in, sizeof(in)) == 0)
		return fd;
	close(fd);
	return -1;
}

/* Ports below those that the kernel chooses from, which begin here or above. */
static uint16_t free_udp_port(uint16_t below)
{
	for (uint16_t port = below; port > 1024; port--) {
		int fd = udp_at("127.0.0.1", port);
		if (fd >= 0) {
			close(fd);
			return port;
		}
	}
	fail();
	return 0;
}

static bool receives(int fd, uint16_t port)
{
	char data[8];
	struct sockaddr_in in = {.sin_family = AF_INET,
				 .sin_port = htons(port),
				 .sin_addr = {htonl(INADDR_LOOPBACK)}};
	auto_close int from = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	assert_int_equal(sendto(from, "x", 1, 0, (struct sockaddr *)&in, sizeof(in)), 1);
	return recv(fd, data, sizeof(data), MSG_DONTWAIT) == 1; /* loopback is at once */
}

static void test_guard(void **state)
{
	uint16_t open_port = free_udp_port(9000);
	uint16_t closed_port = free_udp_port((uint16_t)(open_port - 2));
	struct policy p = {0};
	struct port_range ranges[] = {{0, 0}, {open_port, (uint16_t)(open_port + 1)}};
	const struct {
		uint16_t port;
		bool open;
	} rows[] = {{open_port, true}, {closed_port, false}, {0, true}};
	(void)state;
	p.bind_allow = (struct port_set){.v = ranges, .n = 2};
	struct sock_guard *g = sock_guard_new(&p);
	assert_non_null(g);
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct sockaddr_in at = {0};
		socklen_t len = sizeof(at);
		int off = 0;
		auto_close int fd = udp_at("127.0.0.1", rows[i].port);
		assert_true(fd >= 0);
		assert_int_equal(getsockname(fd, (struct sockaddr *)&at, &len), 0);
		assert_true(receives(fd, ntohs(at.sin_port)));
		assert_int_equal(sock_guard_set(g, fd), 0);
		assert_int_equal(receives(fd, ntohs(at.sin_port)), rows[i].open);
		assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_DETACH_FILTER, &off, sizeof(off)),
				 -1);
		assert_int_equal(errno, EPERM);
	}
	sock_guard_free(g);
	assert_int_equal(sock_guard_set(NULL, 0), -ENOBUFS);
}

/* Every second port: more pieces than a filter has room for. */
static void test_guard_too_fine(void **state)
{
	static struct port_range ranges[8000];
	struct policy p = {0};
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(ranges); i++)
		ranges[i].lo = ranges[i].hi = (uint16_t)(2 * i + 1);
	p.bind_allow = (struct port_set){.v = ranges, .n = ARRAY_SIZE(ranges)};
	assert_null(sock_guard_new(&p));
	p.bind_allow.n = 1000;
	struct sock_guard *g = sock_guard_new(&p);
	assert_non_null(g);
	sock_guard_free(g);
}

static struct sock_addr address(int family, const char *host, uint16_t port, socklen_t len)
{
	struct sock_addr a = {.len = len};
	struct sockaddr_in6 in6 = {.sin6_family = (sa_family_t)family,
				   .sin6_port = htons(port),
				   .sin6_flowinfo = htonl(0x12345),
				   .sin6_scope_id = 7};
	struct sockaddr_in in = {.sin_family = (sa_family_t)family, .sin_port = htons(port)};
	if (strchr(host, ':')) {
		assert_int_equal(inet_pton(AF_INET6, host, &in6.sin6_addr), 1);
		memcpy(&a.storage, &in6, sizeof(in6));
	} else {
		assert_int_equal(inet_pton(AF_INET, host, &in.sin_addr), 1);
		memcpy(&a.storage, &in, sizeof(in));
	}
	return a;
}

/* What comes out of an address, for a socket and a use: the point, or the errno. */
static void test_inet_read(void **state)
{
	enum { TCP = IPPROTO_TCP, UDP = IPPROTO_UDP };
	static const struct {
		int domain, protocol;
		int family;
		const char *host;
		socklen_t len;
		bool sends;
		int error;
		const char *text;
		uint32_t scope;
	} rows[] = {
		{AF_INET, TCP, AF_INET, "10.0.0.1", 16, false, 0, "10.0.0.1:80", 0},
		{AF_INET, TCP, AF_INET, "10.0.0.1", 128, false, 0, "10.0.0.1:80", 0},
		{AF_INET, TCP, AF_INET, "10.0.0.1", 15, false, EINVAL, NULL, 0},
		{AF_INET, TCP, AF_INET, "10.0.0.1", 1, false, EINVAL, NULL, 0},
		{AF_INET, TCP, AF_INET6, "::1", 28, false, EAFNOSUPPORT, NULL, 0},
		{AF_INET, TCP, AF_UNSPEC, "10.0.0.1", 16, false, EAFNOSUPPORT, NULL, 0},
		{AF_INET, UDP, AF_UNSPEC, "10.0.0.1", 16, true, 0, "10.0.0.1:80", 0},
		{AF_INET, UDP, AF_UNSPEC, "10.0.0.1", 16, false, EAFNOSUPPORT, NULL, 0},
		{AF_INET6, TCP, AF_INET, "10.0.0.1", 16, false, EAFNOSUPPORT, NULL, 0},
		{AF_INET6, UDP, AF_INET, "10.0.0.1", 16, true, 0, "10.0.0.1:80", 0},
		{AF_INET6, UDP, AF_UNIX, "10.0.0.1", 16, true, EAFNOSUPPORT, NULL, 0},
		{AF_INET6, TCP, AF_INET6, "fe80::1", 28, false, 0, "[fe80::1]:80", 7},
		{AF_INET6, TCP, AF_INET6, "fe80::1", 24, false, 0, "[fe80::1]:80", 0},
		{AF_INET6, TCP, AF_INET6, "fe80::1", 23, false, EINVAL, NULL, 0},
		{AF_INET6, TCP, AF_INET6, "::ffff:10.0.0.1", 28, false, 0, "10.0.0.1:80", 0},
		{AF_INET6, TCP, AF_INET6, "::", 28, false, 0, "[::1]:80", 7},
		{AF_INET, UDP, AF_INET, "0.0.0.0", 16, true, 0, "127.0.0.1:80", 0},
	};
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct sock_info info = {.domain = rows[i].domain,
					 .type = rows[i].protocol == TCP ? SOCK_STREAM : SOCK_DGRAM,
					 .protocol = rows[i].protocol};
		struct sock_addr asked = address(rows[i].family, rows[i].host, 80, rows[i].len);
		struct sock_addr form = {0};
		struct net_point point;
		char text[NET_POINT_TEXT_MAX];
		int r = sock_inet_read(&info, &asked, rows[i].sends, &point, &form);
		assert_int_equal(r, -rows[i].error);
		if (r < 0)
			continue;
		net_point_format(&point, text);
		assert_string_equal(text, rows[i].text);
		const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)&form.storage;
		bool is_v6 = form.sa.sa_family == AF_INET6;
		assert_int_equal(form.len, is_v6 ? 28 : 16);
		assert_int_equal(is_v6, rows[i].family == AF_INET6);
		assert_int_equal(is_v6 ? in6->sin6_flowinfo : 0, 0);
		assert_int_equal(is_v6 ? in6->sin6_scope_id : 0, rows[i].scope);
		assert_int_equal(in6->sin6_port, htons(80));
	}
}

/* A Unix socket's bind is the kernel's; others are judged and made here. */
static void test_bind(void **state)
{
	uint16_t port = free_udp_port(9000);
	struct port_range range = {port, port};
	struct sockaddr_in in = {.sin_family = AF_INET,
				 .sin_port = htons(port),
				 .sin_addr = {htonl(INADDR_LOOPBACK)}};
	struct sockaddr_un un;
	(void)state;
	policy.bind_allow = (struct port_set){0};
	auto_close int udp = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	auto_close int tcp = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	auto_close int local = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(
		run(handle_bind, "bind", ARGS(N(local), P(&un), name_of(&un, "b")), false).answer,
		ANSWER_CONTINUE);
	assert_error(run(handle_bind, "bind", ARGS(N(udp), P(&in), sizeof(in)), false), EACCES);
	assert_string_equal(refused.op, "bind");
	assert_error(run(handle_bind, "bind", ARGS(N(tcp), P(&in), sizeof(in)), false), EACCES);
	assert_error(run(handle_bind, "bind", ARGS(N(tcp), P(&in), 15), false), EINVAL);
	assert_error(run(handle_bind, "bind", ARGS(N(tcp), 8, sizeof(in)), false), EFAULT);
	assert_error(run(handle_bind, "bind", ARGS(N(-1), P(&in), sizeof(in)), false), EBADF);
	policy.bind_allow = (struct port_set){.v = &range, .n = 1};
	assert_value(run(handle_bind, "bind", ARGS(N(udp), P(&in), sizeof(in)), false), 0);
	in.sin_family = AF_UNSPEC;
	assert_error(run(handle_bind, "bind", ARGS(N(tcp), P(&in), sizeof(in)), false),
		     EAFNOSUPPORT);
	in.sin_addr.s_addr = 0;
	assert_value(run(handle_bind, "bind", ARGS(N(tcp), P(&in), sizeof(in)), false), 0);
	policy.bind_allow = (struct port_set){0};
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_connect_named, before),
		cmocka_unit_test_setup(test_connect_wrong, before),
		cmocka_unit_test_setup(test_connect_full, before),
		cmocka_unit_test_setup(test_connect_abstract, before),
		cmocka_unit_test_setup(test_connect_tcp, before),
		cmocka_unit_test_setup(test_listen, before),
		cmocka_unit_test_setup(test_send_named, before),
		cmocka_unit_test_setup(test_send_malformed, before),
		cmocka_unit_test_setup(test_send_rights, before),
		cmocka_unit_test_setup(test_send_waits, before),
		cmocka_unit_test_setup(test_send_broken, before),
		cmocka_unit_test_setup(test_no_getfd, before),
		cmocka_unit_test_setup(test_unix_allow, before),
		cmocka_unit_test(test_guard),
		cmocka_unit_test(test_guard_too_fine),
		cmocka_unit_test(test_inet_read),
		cmocka_unit_test_setup(test_bind, before),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
