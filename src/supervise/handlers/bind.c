/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bind, where Landlock cannot judge it: UDP, and TCP ports but for some. It is made here, on a copy
 * of the task's socket. The bind of a Unix socket is the kernel's, which looks at the file grants;
 * what a second thread makes of that meanwhile is held back by Landlock for TCP, and by the guard
 * of the ports (sock_guard.c) for UDP.
 */
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <sys/socket.h>

#include "base/util.h"
#include "policy/policy.h"
#include "supervise/box.h"
#include "supervise/handlers/handlers.h"
#include "supervise/narrow.h"
#include "supervise/sock.h"
#include "supervise/sock_remap.h"

static const char op_name[] = "bind";

/*
 * A UDP socket gets a port of the kernel's choice with its first message anyway, and a ping
 * socket's port is the number in its own questions.
 */
static bool may_bind(const struct policy *p, const struct net_point *point)
{
	if (point->proto == NET_ICMP || (point->proto == NET_UDP && !point->port))
		return true;
	if (point->proto == NET_TCP && p->prot[PROT_NET_TCP] == PROT_DISABLED)
		return true;
	return net_policy_may_bind(p, point->port);
}

static struct verdict refuse(struct call *call, const struct sock_addr *asked,
			     const struct net_point *point)
{
	const struct policy *p = call->box->policy;
	const struct sockaddr_in *in = (const struct sockaddr_in *)&asked->storage;
	bool any = asked->sa.sa_family == AF_INET && !in->sin_addr.s_addr;
	bool denied = port_set_has(&p->bind_deny, point->port);
	char text[NET_POINT_TEXT_MAX];
	char object[NET_POINT_TEXT_MAX + 8];
	char allow[40];
	net_point_format(point, text);
	if (any)
		snprintf(text, sizeof(text), "0.0.0.0:%u", point->port);
	snprintf(object, sizeof(object), "%s%s", text, point->proto == NET_UDP ? " (UDP)" : "");
	snprintf(allow, sizeof(allow), "--net-allow-bind %u", point->port);
	struct refusal refusal = {
		.op = op_name,
		.object = object,
		.rule = denied ? "--net-deny-bind covers this port"
			       : "no rule allows binding to this port",
		.allow = denied ? NULL : allow,
		.error = EACCES,
	};
	return call_refuse(call, &refusal);
}

/* bind takes the unspecified addresses at their word: those are kept. */
static int read_address(const struct sock_info *info, struct sock_addr *asked,
			struct net_point *ret_point)
{
	struct sock_addr form;
	const struct sockaddr_in *in = (const struct sockaddr_in *)&asked->storage;
	bool old_habit = info->domain == AF_INET && asked->len >= sizeof(*in) &&
			 asked->sa.sa_family == AF_UNSPEC && !in->sin_addr.s_addr;
	if (asked->len < sizeof(asked->sa.sa_family))
		return -EINVAL;
	if (old_habit)
		asked->sa.sa_family = AF_INET;
	if (asked->sa.sa_family != info->domain)
		return -EAFNOSUPPORT;
	return sock_inet_read(info, asked, false, ret_point, &form);
}

struct bind_args {
	const struct box *box;
	int fd;
	const struct sock_addr *addr;
};

static int bind_now(void *arg)
{
	const struct bind_args *a = arg;
	struct sock_ids ids;
	if (!sock_ids_begin(a->box, &ids))
		return EACCES;
	int r = bind(a->fd, &a->addr->sa, a->addr->len);
	int code = r < 0 ? errno : 0;
	sock_ids_end(&ids);
	return code;
}

static struct verdict act(struct call *call, int fd, const struct sock_addr *addr)
{
	struct bind_args args = {call->box, fd, addr};
	if (!call_is_alive(call))
		return (struct verdict){.answer = ANSWER_GONE};
	int code = narrow_run(call, bind_now, &args);
	return code ? verdict_errno(code) : verdict_value(0);
}

struct verdict handle_bind(struct call *call)
{
	struct sock_info info;
	struct sock_addr asked;
	struct net_point point;
	struct verdict verdict;
	if (!str_eq(call->row->name, op_name))
		return handle_listen(call);
	int fd = sock_copy(call, call_int(call, 0));
	if (fd < 0)
		return sock_no_copy(call, op_name, fd);
	int r = sock_info_get(fd, &info);
	if (r < 0)
		return verdict_errno(-r);
	if (info.domain == AF_UNIX)
		return verdict_continue();
	if (!sock_proto(&info))
		return verdict_errno(EPERM);
	r = sock_addr_read(call, call_arg(call, 1), call_int(call, 2), &asked);
	if (r == -ESRCH)
		return (struct verdict){.answer = ANSWER_GONE};
	if (r == 0)
		r = read_address(&info, &asked, &point);
	if (r)
		return verdict_errno(-r);
	if (!may_bind(call->box->policy, &point))
		return refuse(call, &asked, &point);
	if (sock_remap_bind(call, fd, &asked, &point, &verdict))
		return verdict;
	return act(call, fd, &asked);
}
