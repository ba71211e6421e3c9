/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Receiving with an address, where names or ports of the sandbox's own are in play: a datagram that
 * the sandbox's resolver sent must seem to come from the server that was asked, and one of an own
 * socket from the port that the sandbox knows, since programs compare. Only UDP sockets that this
 * can be about are received from here, on a copy and without waiting; of all others the kernel goes
 * on with the call, which judges nothing.
 */
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/time.h>
#include <time.h>

#include "base/util.h"
#include "net/ports.h"
#include "net/resolver.h"
#include "supervise/box.h"
#include "supervise/handlers/handlers.h"
#include "supervise/pending.h"
#include "supervise/sock.h"
#include "supervise/sock_remap.h"

enum {
	PAYLOAD_MAX = 65536, /* more than a datagram holds */
	CONTROL_MAX = 4096,
	MESSAGES_MAX = 64, /* of one recvmmsg: fewer than were asked for is an answer */
};

#define PASSED_FLAGS (MSG_PEEK | MSG_TRUNC | MSG_DONTWAIT | MSG_WAITALL | MSG_CMSG_CLOEXEC)
#define KNOWN_FLAGS  (PASSED_FLAGS | MSG_WAITFORONE | MSG_NOSIGNAL)

static bool has_ports(const struct box *box)
{
	return box->ports && ports_differ(box->ports);
}

/* Where a message goes in the task's memory. */
struct sink {
	uint64_t name;
	int64_t name_len;     /* room there */
	uint64_t name_len_at; /* where its length is told, 4 bytes; 0: nowhere */
	struct iovec *iov;    /* owned */
	size_t n_iov;
	uint64_t control;
	uint64_t control_len;
	uint64_t header; /* of recvmsg, recvmmsg: told what came; 0: none */
};

/* struct msghdr of a 64-bit task. */
struct wire {
	uint64_t name;
	int32_t name_len;
	uint32_t pad0;
	uint64_t iov;
	uint64_t n_iov;
	uint64_t control;
	uint64_t control_len;
	int32_t flags;
	uint32_t pad1;
};

_Static_assert(sizeof(struct wire) == MSG_HEADER_SIZE, "as the kernel has it");

static void sink_done_cleanup(struct sink *s)
{
	free(s->iov);
}

static int read_header(struct call *call, uint64_t at, struct sink *ret)
{
	struct wire w;
	int r = call_read(call, at, &w, sizeof(w));
	if (r < 0)
		return r;
	if (w.n_iov > MSG_IOV_MAX)
		return -EMSGSIZE;
	if (w.name && w.name_len < 0)
		return -EINVAL;
	*ret = (struct sink){.name = w.name,
			     .name_len = w.name_len,
			     .name_len_at = at + offsetof(struct wire, name_len),
			     .control = w.control,
			     .control_len = w.control ? w.control_len : 0,
			     .header = at};
	ret->iov = xcalloc(w.n_iov + 1, sizeof(*ret->iov));
	ret->n_iov = w.n_iov;
	return w.n_iov ? call_read(call, w.iov, ret->iov, w.n_iov * sizeof(*ret->iov)) : 0;
}

static int read_recvfrom(struct call *call, struct sink *ret)
{
	int32_t len = 0;
	int r = call_read(call, call_arg(call, 5), &len, sizeof(len));
	if (r < 0)
		return r;
	if (len < 0)
		return -EINVAL;
	*ret = (struct sink){.name = call_arg(call, 4),
			     .name_len = len,
			     .name_len_at = call_arg(call, 5),
			     .n_iov = 1};
	ret->iov = xcalloc(1, sizeof(*ret->iov));
	ret->iov->iov_base = (void *)(uintptr_t)call_arg(call, 1); /* NOLINT */
	ret->iov->iov_len = call_arg(call, 2);
	return 0;
}

/* --- One message ------------------------------------------------------------------------------ */

static size_t room_of(const struct sink *s)
{
	size_t room = 0;
	for (size_t i = 0; i < s->n_iov && room < PAYLOAD_MAX; i++) {
		size_t n = s->iov[i].iov_len;
		room += n < PAYLOAD_MAX ? n : PAYLOAD_MAX;
	}
	return room < PAYLOAD_MAX ? room : PAYLOAD_MAX;
}

static int write_payload(struct call *call, const struct sink *s, const char *data, size_t n)
{
	int r = 0;
	for (size_t i = 0; i < s->n_iov && n && r == 0; i++) {
		size_t part = s->iov[i].iov_len < n ? s->iov[i].iov_len : n;
		r = call_write(call, (uint64_t)(uintptr_t)s->iov[i].iov_base, data, part);
		data += part;
		n -= part;
	}
	return r;
}

static int write_name(struct call *call, const struct sink *s, const union inet_addr *from,
		      socklen_t len)
{
	uint32_t told = len;
	size_t part = s->name_len < (int64_t)len ? (size_t)s->name_len : len;
	if (!s->name)
		return 0;
	int r = part ? call_write(call, s->name, from, part) : 0;
	return r < 0 ? r : call_write(call, s->name_len_at, &told, sizeof(told));
}

static int write_header(struct call *call, const struct sink *s, const struct msghdr *h)
{
	uint64_t control_len = h->msg_controllen;
	int32_t flags = h->msg_flags & ~MSG_CMSG_CLOEXEC;
	if (!s->header)
		return 0;
	int r = control_len ? call_write(call, s->control, h->msg_control, control_len) : 0;
	if (r == 0)
		r = call_write(call, s->header + offsetof(struct wire, control_len), &control_len,
			       sizeof(control_len));
	return r < 0 ? r
		     : call_write(call, s->header + offsetof(struct wire, flags), &flags,
				  sizeof(flags));
}

/* A socket of the sandbox's own has the number that the sandbox knows. */
static void show_source(const struct box *box, int fd, union inet_addr *from, socklen_t len)
{
	struct sock_info info;
	struct sock_addr addr = {.len = len};
	struct sock_addr own = {.len = sizeof(own.storage)};
	memcpy(&addr.storage, from, sizeof(*from));
	if (has_ports(box) && sock_info_get(fd, &info) == 0 &&
	    getsockname(fd, &own.sa, &own.len) == 0 &&
	    sock_remap_show(box, &info, true, &own, &addr))
		memcpy(from, &addr.storage, sizeof(*from));
}

/* Receives one message into S. Its length, or a negative errno. */
static ssize_t receive(struct call *call, int fd, int domain, int flags, const struct sink *s)
{
	union inet_addr from = {0};
	union inet_addr asked;
	socklen_t len = 0;
	size_t room = room_of(s);
	auto_free char *data = xzalloc(room + 1);
	auto_free char *control = xzalloc(CONTROL_MAX);
	struct iovec iov = {data, room};
	struct msghdr h = {.msg_name = &from,
			   .msg_namelen = sizeof(from),
			   .msg_iov = &iov,
			   .msg_iovlen = 1,
			   .msg_control = control,
			   .msg_controllen =
				   s->control_len < CONTROL_MAX ? s->control_len : CONTROL_MAX};
	if (!call_is_alive(call))
		return -ESRCH;
	ssize_t n = recvmsg(fd, &h, (flags & PASSED_FLAGS) | MSG_DONTWAIT);
	if (n < 0)
		return -errno;
	if (!call->box->resolver ||
	    !resolver_original(call->box->resolver, domain, &from, &asked, &len)) {
		asked = from;
		len = h.msg_namelen;
		show_source(call->box, fd, &asked, len);
	}
	size_t got = (size_t)n < room ? (size_t)n : room;
	int r = write_payload(call, s, data, got);
	if (r == 0)
		r = write_name(call, s, &asked, len);
	if (r == 0)
		r = write_header(call, s, &h);
	return r < 0 ? r : n;
}

/* --- The calls -------------------------------------------------------------------------------- */

static int64_t receive_many(struct call *call, int fd, int domain, int flags)
{
	unsigned int n = (unsigned int)call_int(call, 2);
	unsigned int done = 0;
	ssize_t r = 0;
	for (; done < n && done < MESSAGES_MAX; done++) {
		uint64_t at = call_arg(call, 1) + (uint64_t)done * MSG_MHEADER_SIZE;
		AUTO(sink_done) struct sink s = {0};
		r = read_header(call, at, &s);
		if (r == 0)
			r = receive(call, fd, domain, flags, &s);
		if (r < 0)
			break;
		uint32_t length = (uint32_t)r;
		r = call_write(call, at + MSG_HEADER_SIZE, &length, sizeof(length));
		if (r < 0)
			break;
	}
	return done || r >= 0 ? (int64_t)done : r;
}

static int64_t receive_call(struct call *call, int fd, int domain)
{
	AUTO(sink_done) struct sink s = {0};
	bool from = str_eq(call->row->name, "recvfrom");
	if (str_eq(call->row->name, "recvmmsg"))
		return receive_many(call, fd, domain, call_int(call, 3));
	int r = from ? read_recvfrom(call, &s) : read_header(call, call_arg(call, 1), &s);
	return r < 0 ? r : receive(call, fd, domain, call_int(call, from ? 3 : 2), &s);
}

static int flags_of(const struct call *call)
{
	return call_int(call, str_eq(call->row->name, "recvmsg") ? 2 : 3);
}

/* When the wait ends: by SO_RCVTIMEO or, for recvmmsg, by its argument. 0: never. */
static int64_t deadline(struct call *call, int fd)
{
	struct timeval tv = {0};
	struct timespec ts = {0};
	socklen_t n = sizeof(tv);
	int64_t ms = 0;
	if (getsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &tv, &n) == 0 && tv.tv_sec < INT32_MAX)
		ms = (int64_t)tv.tv_sec * 1000 + (tv.tv_usec + 999) / 1000;
	if (str_eq(call->row->name, "recvmmsg") && call_arg(call, 4) &&
	    call_read(call, call_arg(call, 4), &ts, sizeof(ts)) == 0 && ts.tv_sec >= 0 &&
	    ts.tv_sec < INT32_MAX && ts.tv_nsec >= 0 && ts.tv_nsec < 1000000000) {
		int64_t other = (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000 + 1;
		ms = !ms || other < ms ? other : ms;
	}
	return ms ? sock_now_ms() + ms : 0;
}

static struct verdict answer(int64_t r)
{
	if (r == -ESRCH)
		return (struct verdict){.answer = ANSWER_GONE};
	return r < 0 ? verdict_errno((int)-r) : verdict_value(r);
}

static struct verdict resume(struct call *call, struct pending_op *op, bool timed_out)
{
	struct sock_info info;
	if (timed_out)
		return verdict_errno(EAGAIN);
	int r = sock_info_get(op->fd, &info);
	int64_t n = r < 0 ? r : receive_call(call, op->fd, info.domain);
	if (n == -EAGAIN)
		return (struct verdict){.answer = ANSWER_PENDING};
	return answer(n);
}

struct verdict handle_recv(struct call *call)
{
	struct sock_info info;
	struct box *box = call->box;
	if ((!box->resolver && !has_ports(box)) || !box->have_getfd ||
	    (flags_of(call) & ~KNOWN_FLAGS))
		return verdict_continue();
	int fd = sock_copy(call, call_int(call, 0));
	if (fd < 0 || sock_info_get(fd, &info) < 0 || info.type != SOCK_DGRAM ||
	    (info.domain != AF_INET && info.domain != AF_INET6) ||
	    (!has_ports(box) && !resolver_knows(box->resolver, fd)))
		return verdict_continue();
	int64_t n = receive_call(call, fd, info.domain);
	if (n != -EAGAIN || info.nonblock || (flags_of(call) & MSG_DONTWAIT))
		return answer(n);
	struct pending_op op = {.resume = resume,
				.fd = fd,
				.events = EPOLLIN,
				.deadline_ms = deadline(call, fd),
				.interruptible = true};
	return call_wait(call, &op);
}
