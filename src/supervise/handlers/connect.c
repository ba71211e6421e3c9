/* SPDX-License-Identifier: Apache-2.0 */
/*
 * connect. It is made here, on a copy of the task's socket and with an address that cannot change
 * any more. Nothing waits in the kernel for it: the shared description is made non-blocking for the
 * moment of the call, and what then takes time is waited for by the loop.
 *
 * That moment can be lost to a task that sets the description back at the same time, so the call is
 * made on a worker, which may be stuck for a while, and never on the loop.
 *
 * A peer sees this process's number in SO_PEERCRED, and the sandbox's ids.
 */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "base/util.h"
#include "supervise/box.h"
#include "supervise/handlers/handlers.h"
#include "supervise/narrow.h"
#include "supervise/pending.h"
#include "supervise/sock.h"
#include "supervise/sock_relay.h"

#define RETRY_FIRST_MS 2
#define RETRY_LAST_MS  50

static const char op_name[] = "connect";

/* TCP: the connection is made or has failed. */
static struct verdict finish_tcp(struct call *call, struct pending_op *op, bool timed_out)
{
	int error = 0;
	socklen_t n = sizeof(error);
	struct sockaddr_storage peer;
	socklen_t peer_len = sizeof(peer);
	(void)call;
	if (timed_out)
		return verdict_errno(EINPROGRESS);
	if (getsockopt(op->fd, SOL_SOCKET, SO_ERROR, &error, &n) < 0)
		return verdict_errno(errno);
	if (error)
		return verdict_errno(error);
	if (getpeername(op->fd, (struct sockaddr *)&peer, &peer_len) < 0)
		return verdict_errno(ECONNABORTED);
	return verdict_value(0);
}

/* A listener whose queue is full: tried again from the start, where it may block. */
static struct verdict try_again(struct call *call, struct pending_op *op, bool timed_out)
{
	(void)op;
	if (timed_out)
		return verdict_errno(EAGAIN);
	return (struct verdict){.answer = call_may_work(call) ? ANSWER_WORKER : ANSWER_PENDING};
}

static struct verdict wait_for(struct call *call, int fd, const struct sock_info *info)
{
	int64_t now = sock_now_ms();
	struct pending_op op = {.fd = -1, .interruptible = true};
	if (!call->wait_deadline_ms)
		call->wait_deadline_ms = sock_send_deadline(fd, now);
	op.deadline_ms = call->wait_deadline_ms;
	if (sock_is_tcp(info)) {
		op.resume = finish_tcp;
		op.fd = fd;
		op.events = EPOLLOUT;
		return call_wait(call, &op);
	}
	op.resume = try_again;
	call->wait_ms = call->wait_ms ? call->wait_ms * 2 : RETRY_FIRST_MS;
	if (call->wait_ms > RETRY_LAST_MS)
		call->wait_ms = RETRY_LAST_MS;
	op.retry_ms = call->wait_ms;
	return call_wait(call, &op);
}

struct connect_args {
	const struct box *box;
	int fd;
	const struct sock_info *info;
	const struct sock_addr *addr;
};

/* The errno, 0 if it is connected. */
static int connect_now(void *arg)
{
	const struct connect_args *a = arg;
	const struct sock_info *info = a->info;
	int fd = a->fd;
	struct sock_ids ids;
	if (!sock_ids_begin(a->box, &ids))
		return EACCES;
	int flags = fcntl(fd, F_GETFL);
	int r = flags < 0 || info->nonblock ? 0 : fcntl(fd, F_SETFL, flags | O_NONBLOCK);
	if (r == 0)
		r = connect(fd, &a->addr->sa, a->addr->len);
	int code = r < 0 ? errno : 0;
	if (flags >= 0 && !info->nonblock)
		fcntl(fd, F_SETFL, flags);
	sock_ids_end(&ids);
	return code;
}

void sock_forget(const struct box *box, int fd)
{
	struct stat st;
	if (!box->have_getfd && fstat(fd, &st) == 0)
		sock_table_drop(box->socks, st.st_ino);
}

static struct verdict act(struct call *call, int fd, const struct sock_info *info,
			  const struct sock_target *target)
{
	bool disconnects = target->addr.sa.sa_family == AF_UNSPEC;
	if (!call->on_worker && info->type != SOCK_DGRAM && !disconnects)
		return sock_to_worker(call);
	if (!call_is_alive(call))
		return (struct verdict){.answer = ANSWER_GONE};
	struct connect_args args = {call->box, fd, info, &target->addr};
	/* A domain of the task's own says which TCP ports it may connect to, and nothing of others.
	 */
	int code = sock_is_tcp(info) ? narrow_run(call, connect_now, &args) : connect_now(&args);
	if (code == 0 && disconnects)
		return verdict_value(0);
	if (code == 0 || code == EINPROGRESS)
		sock_forget(call->box, fd);
	if (code == 0)
		return verdict_value(0);
	bool waits = sock_is_tcp(info) ? code == EINPROGRESS || code == EALREADY : code == EAGAIN;
	if (waits && !info->nonblock)
		return wait_for(call, fd, info);
	return verdict_errno(code);
}

/*
 * A UDP socket that is connected only to learn its source address is bound to that address instead
 * of being connected: it tells the same, and reaches nothing.
 */
static struct verdict find_source(struct call *call, int fd, const struct sock_info *info,
				  const struct sock_target *target)
{
	struct sock_ids ids;
	struct sock_addr none = {.len = sizeof(none.sa.sa_family)};
	struct sockaddr_in6 own = {0};
	struct sockaddr_in6 source = {0};
	socklen_t own_len = sizeof(own);
	socklen_t len = sizeof(source);
	auto_close int probe = socket(info->domain, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (!call_is_alive(call))
		return (struct verdict){.answer = ANSWER_GONE};
	if (probe < 0 || connect(probe, &target->addr.sa, target->addr.len) < 0 ||
	    getsockname(probe, (struct sockaddr *)&source, &len) < 0)
		return verdict_errno(errno);
	if (!sock_ids_begin(call->box, &ids))
		return verdict_errno(EACCES);
	(void)connect(fd, &none.sa, none.len);
	source.sin6_port = 0; /* at the same place in both families */
	int r = getsockname(fd, (struct sockaddr *)&own, &own_len);
	if (r == 0 && !own.sin6_port)
		r = bind(fd, (struct sockaddr *)&source, len);
	int code = errno;
	sock_ids_end(&ids);
	return verdict_result(r, code);
}

struct verdict handle_connect(struct call *call)
{
	struct sock_addr asked;
	struct sock_info info = {0};
	struct verdict verdict = {0};
	uint32_t rates = 0;
	AUTO(sock_target_done) struct sock_target target = SOCK_TARGET_INIT;
	if (sock_relay_goes_on(call, &verdict))
		return verdict;
	int fd = sock_copy(call, call_int(call, 0));
	if (fd < 0)
		return sock_no_copy(call, op_name, fd);
	int r = sock_addr_read(call, call_arg(call, 1), call_int(call, 2), &asked);
	if (r == 0)
		r = sock_info_get(fd, &info);
	if (r < 0)
		return verdict_errno(-r);
	if (!sock_judge(call, op_name, &info, &asked, &target, &verdict))
		return verdict.answer == ANSWER_WORKER ? sock_to_worker(call) : verdict;
	if (sock_relay_wants(call->box, &info, &target, &rates))
		return sock_relay_start(call, fd, &info, &target, rates);
	return target.probe ? find_source(call, fd, &info, &target) : act(call, fd, &info, &target);
}
