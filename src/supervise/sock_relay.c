/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A socket of ours connects to the destination; when it is there, or has failed, the task's own is
 * connected to a listener that exists for it alone, and the call is answered. So errors are those
 * of the destination. A non-blocking connect is answered then as well, at once or not: a program
 * takes "connected" for an answer, while a socket that is connected already when its destination
 * may yet refuse would not do.
 *
 * Whoever else connects to that listener has another address than the task's socket, and is let go.
 */
#include "supervise/sock_relay.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "base/util.h"
#include "net/names.h"
#include "net/relay.h"
#include "supervise/box.h"
#include "supervise/narrow.h"
#include "supervise/pending.h"

enum {
	NAMES_MAX = 64,
	BACKLOG = 16,
	JOIN_MS = 1000,		/* on loopback: only who hinders it takes long */
	NONBLOCKING_MS = 10000, /* how long a non-blocking connect may take */
	ROOM_MS = 3,
};

/* Of a call that waits for its destination. */
struct joining {
	struct sock_info info;
	uint32_t rates;
	bool v4; /* the destination's family, whatever the socket's */
	int outer;
};

static void free_joining(void *data)
{
	struct joining *j = data;
	util_close(j->outer);
	free(j);
}

bool sock_relay_wants(const struct box *box, const struct sock_info *info,
		      const struct sock_target *target, uint32_t *ret_rates)
{
	struct net_point point;
	struct sock_addr form;
	const char *names[NAMES_MAX];
	if (!box->relay || target->direct || !sock_is_tcp(info) ||
	    sock_inet_read(info, &target->addr, false, &point, &form) < 0)
		return false;
	struct net_names_view view = {names, 0};
	if (box->names)
		view.n = names_of_address(box->names, point.v6, point.addr, names, NAMES_MAX);
	/* Where there may be more, and where the last one has just expired, all are meant. */
	bool known = view.n > 0 && view.n < NAMES_MAX;
	return net_relay_wants(box->relay, &point, known ? &view : NULL, ret_rates);
}

/* --- The task's side ------------------------------------------------------------------------- */

static int make_listener(bool v4, struct sock_addr *ret)
{
	int family = v4 ? AF_INET : AF_INET6;
	auto_close int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	*ret = (struct sock_addr){.len = v4 ? sizeof(struct sockaddr_in)
					    : sizeof(struct sockaddr_in6)};
	if (fd < 0)
		return -errno;
	struct sockaddr_in in = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	struct sockaddr_in6 in6 = {.sin6_family = AF_INET6, .sin6_addr = in6addr_loopback};
	if (v4)
		memcpy(&ret->storage, &in, sizeof(in));
	else
		memcpy(&ret->storage, &in6, sizeof(in6));
	net_relay_prepare(fd);
	if (bind(fd, &ret->sa, ret->len) < 0 || listen(fd, BACKLOG) < 0 ||
	    getsockname(fd, &ret->sa, &ret->len) < 0)
		return -errno;
	return take_fd(&fd);
}

/* What the task's socket has to connect to, which may be an IPv6 one that reaches IPv4. */
static void address_for(const struct sock_info *info, bool v4, struct sock_addr *addr)
{
	struct sockaddr_in in;
	if (info->domain == AF_INET || !v4)
		return;
	memcpy(&in, &addr->storage, sizeof(in));
	struct sockaddr_in6 in6 = {.sin6_family = AF_INET6, .sin6_port = in.sin_port};
	in6.sin6_addr.s6_addr[10] = in6.sin6_addr.s6_addr[11] = 0xff;
	memcpy(&in6.sin6_addr.s6_addr[12], &in.sin_addr, sizeof(in.sin_addr));
	*addr = (struct sock_addr){.len = sizeof(in6)};
	memcpy(&addr->storage, &in6, sizeof(in6));
}

/* The errno. FD's description is the task's: it may be set back meanwhile, on a worker. */
static int connect_task(const struct call *call, int fd, const struct sock_info *info,
			const struct sock_addr *addr)
{
	struct sock_ids ids;
	if (!sock_ids_begin(call->box, &ids))
		return EACCES;
	int flags = fcntl(fd, F_GETFL);
	int r = flags < 0 || info->nonblock ? 0 : fcntl(fd, F_SETFL, flags | O_NONBLOCK);
	if (r == 0)
		r = connect(fd, &addr->sa, addr->len);
	int code = r < 0 ? errno : 0;
	if (flags >= 0 && !info->nonblock)
		fcntl(fd, F_SETFL, flags);
	sock_ids_end(&ids);
	return code;
}

static bool same_point(const struct sock_info *info, const struct sock_addr *a, bool v4,
		       const struct sock_addr *b)
{
	struct sock_info other = {
		.domain = v4 ? AF_INET : AF_INET6, .type = SOCK_STREAM, .protocol = IPPROTO_TCP};
	struct net_point p;
	struct net_point q;
	struct sock_addr form;
	return sock_inet_read(info, a, false, &p, &form) == 0 &&
	       sock_inet_read(&other, b, false, &q, &form) == 0 && p.port == q.port &&
	       p.v6 == q.v6 && memcmp(p.addr, q.addr, p.v6 ? 16 : 4) == 0;
}

/* The connection of the task's socket FD, and of no other. */
static int accept_task(int listener, int fd, const struct joining *j, struct sock_addr *ret_peer)
{
	struct sock_addr own = {.len = sizeof(own.storage)};
	struct pollfd p = {.fd = listener, .events = POLLIN};
	int64_t end = sock_now_ms() + JOIN_MS;
	if (getsockname(fd, &own.sa, &own.len) < 0)
		return -errno;
	for (;;) {
		int64_t left = end - sock_now_ms();
		if (left <= 0)
			return -ECONNABORTED;
		if (poll(&p, 1, (int)left) < 0 && errno != EINTR)
			return -errno;
		*ret_peer = (struct sock_addr){.len = sizeof(ret_peer->storage)};
		auto_close int got = accept4(listener, &ret_peer->sa, &ret_peer->len,
					     SOCK_CLOEXEC | SOCK_NONBLOCK);
		if (got >= 0 && same_point(&j->info, &own, j->v4, ret_peer))
			return take_fd(&got);
	}
}

static int join(struct call *call, int fd, struct joining *j)
{
	struct sock_addr addr;
	struct sock_addr peer;
	auto_close int listener = make_listener(j->v4, &addr);
	if (listener < 0)
		return listener;
	address_for(&j->info, j->v4, &addr);
	int code = connect_task(call, fd, &j->info, &addr);
	if (code && code != EINPROGRESS)
		return -code;
	int inner = accept_task(listener, fd, j, &peer);
	if (inner < 0)
		return inner;
	net_relay_prepare(inner);
	struct net_relay_pair pair = {
		.inner = inner, .outer = take_fd(&j->outer), .rates = j->rates};
	memcpy(&pair.task, &peer.storage, sizeof(pair.task));
	return net_relay_add_take(call->box->relay, &pair);
}

static struct verdict join_now(struct call *call)
{
	struct joining *j = call->kept;
	if (!call->n_fds || !call_is_alive(call))
		return (struct verdict){.answer = ANSWER_GONE};
	int r = join(call, call->fds[0], j);
	if (r == 0)
		sock_forget(call->box, call->fds[0]);
	return r < 0 ? verdict_errno(-r) : verdict_value(0);
}

/* --- The way there --------------------------------------------------------------------------- */

static struct verdict arrived(struct call *call, struct pending_op *op, bool timed_out)
{
	struct joining *j = call->kept;
	int error = 0;
	socklen_t n = sizeof(error);
	if (timed_out)
		return verdict_errno(j->info.nonblock ? ETIMEDOUT : EINPROGRESS);
	if (getsockopt(j->outer, SOL_SOCKET, SO_ERROR, &error, &n) < 0)
		return verdict_errno(errno);
	if (error)
		return verdict_errno(error);
	op->fd = -1;
	op->retry_ms = ROOM_MS;
	return (struct verdict){.answer = call_may_work(call) ? ANSWER_WORKER : ANSWER_PENDING};
}

static struct verdict wait_for(struct call *call, int fd, const struct joining *j)
{
	int64_t now = sock_now_ms();
	struct pending_op op = {.resume = arrived,
				.fd = j->outer,
				.events = EPOLLOUT,
				.interruptible = true,
				.deadline_ms = j->info.nonblock ? now + NONBLOCKING_MS
								: sock_send_deadline(fd, now)};
	return call_wait(call, &op);
}

struct outer_args {
	const struct box *box;
	const struct sock_info *info;
	const struct sock_addr *addr;
	int fd; /* result */
};

/* The errno, as connect's. */
static int connect_outer(void *arg)
{
	struct outer_args *a = arg;
	struct sock_ids ids;
	int code = 0;
	if (!sock_ids_begin(a->box, &ids))
		return EACCES;
	a->fd = socket(a->info->domain, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, IPPROTO_TCP);
	if (a->fd >= 0)
		net_relay_prepare(a->fd);
	if (a->fd < 0 || connect(a->fd, &a->addr->sa, a->addr->len) < 0)
		code = errno;
	sock_ids_end(&ids);
	return code;
}

static bool is_fresh(int fd)
{
	struct tcp_info info;
	socklen_t n = sizeof(info);
	return getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &n) == 0 &&
	       info.tcpi_state == TCP_CLOSE;
}

struct verdict sock_relay_start(struct call *call, int fd, const struct sock_info *info,
				const struct sock_target *target, uint32_t rates)
{
	struct net_point point;
	struct sock_addr form;
	if (!call->on_worker)
		return sock_to_worker(call);
	if (!call_is_alive(call))
		return (struct verdict){.answer = ANSWER_GONE};
	int r = net_relay_check(call->box->relay);
	if (r == 0 && !is_fresh(fd))
		r = -EISCONN;
	if (r == 0)
		r = sock_inet_read(info, &target->addr, false, &point, &form);
	if (r < 0)
		return verdict_errno(-r);
	struct outer_args args = {call->box, info, &target->addr, -1};
	int code = narrow_run(call, connect_outer, &args);
	auto_close int outer = args.fd;
	if (code && code != EINPROGRESS)
		return verdict_errno(code);
	struct joining *j = xnew(struct joining);
	*j = (struct joining){
		.info = *info, .rates = rates, .v4 = !point.v6, .outer = take_fd(&outer)};
	call->kept = j;
	call->free_kept = free_joining;
	return code ? wait_for(call, fd, j) : join_now(call);
}

bool sock_relay_goes_on(struct call *call, struct verdict *ret)
{
	if (!call->kept)
		return false;
	*ret = call->on_worker ? join_now(call) : sock_to_worker(call);
	return true;
}

/* --- Names ----------------------------------------------------------------------------------- */

bool sock_relay_name(const struct box *box, const struct sock_info *info, bool peer,
		     const struct sock_addr *own, const struct sock_addr *other,
		     struct sock_addr *ret)
{
	union inet_addr task;
	union inet_addr inner;
	union inet_addr name = {0};
	socklen_t len = info->domain == AF_INET6 ? sizeof(name.v6) : sizeof(name.v4);
	if (!box->relay || !sock_is_tcp(info))
		return false;
	memcpy(&task, &own->storage, sizeof(task));
	memcpy(&inner, &other->storage, sizeof(inner));
	/* The outer socket was made with the same domain. */
	if (!net_relay_name(box->relay, &task, &inner, peer, &name) ||
	    name.sa.sa_family != info->domain)
		return false;
	*ret = (struct sock_addr){.len = len};
	memcpy(&ret->storage, &name, len);
	return true;
}
