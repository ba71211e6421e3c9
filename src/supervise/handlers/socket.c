/* SPDX-License-Identifier: Apache-2.0 */
/*
 * socket: of UDP, which gets the guard of its ports; and any where pidfd_getfd is barred, so that
 * there is a copy for connect.
 *
 * There, send calls cannot be made on a copy: sockets of a pair, accepted ones and connected ones
 * have none. So there are no datagram Unix sockets there, which alone name their destination in
 * each call; whatever else a send call is given, it goes where the socket is connected to, and the
 * kernel may execute it.
 */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "base/util.h"
#include "policy/policy.h"
#include "supervise/box.h"
#include "supervise/handlers/handlers.h"
#include "supervise/sock.h"

#define TYPE_MASK 0xf

static bool is_allowed(const struct policy *p, int domain, int type, int protocol)
{
	if (domain == AF_UNIX)
		return type == SOCK_STREAM || type == SOCK_SEQPACKET || p->unix_allow_all;
	return (domain == AF_INET || domain == AF_INET6) && type == SOCK_STREAM &&
	       (protocol == 0 || protocol == IPPROTO_TCP);
}

static struct verdict refuse(struct call *call, int domain, int type)
{
	if (domain != AF_UNIX)
		return verdict_errno(EACCES);
	if (type == SOCK_RAW) /* what the kernel makes of it */
		type = SOCK_DGRAM;
	struct refusal refusal = {
		.op = "socket",
		.object = "Unix socket",
		.rule = "datagram Unix sockets cannot be judged where pidfd_getfd is barred",
		.allow = type == SOCK_DGRAM ? "--unix-allow '*'" : NULL,
		.error = type == SOCK_DGRAM ? EACCES : ESOCKTNOSUPPORT,
	};
	return call_refuse(call, &refusal);
}

static bool is_udp(int domain, int type, int protocol)
{
	return (domain == AF_INET || domain == AF_INET6) && type == SOCK_DGRAM &&
	       (protocol == 0 || protocol == IPPROTO_UDP);
}

static struct verdict make_udp(const struct call *call, int domain, int flags)
{
	struct sock_ids ids;
	if (!sock_ids_begin(call->box, &ids))
		return verdict_errno(EACCES);
	auto_close int fd = socket(domain, SOCK_DGRAM | flags | SOCK_CLOEXEC, IPPROTO_UDP);
	int code = errno;
	sock_ids_end(&ids);
	if (fd < 0)
		return verdict_errno(code);
	int r = sock_guard_set(call->box->guard, fd);
	return r < 0 ? verdict_errno(-r) : verdict_fd(take_fd(&fd), flags & SOCK_CLOEXEC);
}

struct verdict handle_socket(struct call *call)
{
	int domain = call_int(call, 0);
	int flags = call_int(call, 1) & ~TYPE_MASK;
	int type = call_int(call, 1) & TYPE_MASK;
	int protocol = call_int(call, 2);
	struct sock_ids ids;
	if (!str_eq(call->row->name, "socket"))
		return verdict_errno(EACCES);
	if (flags & ~(SOCK_CLOEXEC | SOCK_NONBLOCK))
		return verdict_errno(EINVAL);
	if (is_udp(domain, type, protocol) && call->box->guard)
		return make_udp(call, domain, flags);
	if (!is_allowed(call->box->policy, domain, type, protocol))
		return refuse(call, domain, type);
	if (!sock_ids_begin(call->box, &ids))
		return verdict_errno(EACCES);
	auto_close int fd = socket(domain, type | flags | SOCK_CLOEXEC, protocol);
	int code = errno;
	sock_ids_end(&ids);
	if (fd < 0)
		return verdict_errno(code);
	int r = sock_table_keep(call->box->socks, fd);
	if (r < 0)
		return verdict_errno(-r);
	return verdict_fd(take_fd(&fd), flags & SOCK_CLOEXEC);
}
