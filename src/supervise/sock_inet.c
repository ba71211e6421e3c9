/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The judge of Internet addresses. An address is brought to its one form first, as the kernel would
 * read it for this socket, and that form is judged and is what is used: mapped and unspecified
 * addresses are what they reach, and flow labels, which can hold a route, are left out.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/util.h"
#include "net/names.h"
#include "policy/policy.h"
#include "supervise/ask.h"
#include "supervise/box.h"
#include "supervise/sock.h"
#include "supervise/sock_dns.h"
#include "supervise/sock_remap.h"

enum { V6_MIN = 24, NAMES_MAX = 16 }; /* up to and with the address: SIN6_LEN_RFC2133 */

static bool is_inet(int family)
{
	return family == AF_INET || family == AF_INET6;
}

unsigned int sock_proto(const struct sock_info *info)
{
	if (!is_inet(info->domain))
		return 0;
	if (info->type == SOCK_STREAM && info->protocol == IPPROTO_TCP)
		return NET_TCP;
	if (info->type == SOCK_DGRAM && info->protocol == IPPROTO_UDP)
		return NET_UDP;
	if (info->type == SOCK_DGRAM &&
	    info->protocol == (info->domain == AF_INET ? IPPROTO_ICMP : IPPROTO_ICMPV6))
		return NET_ICMP;
	return 0;
}

/* --- The one form ------------------------------------------------------------------------- */

static void set_v4(const struct net_point *p, struct sock_addr *ret)
{
	struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons(p->port)};
	memcpy(&in.sin_addr, p->addr, sizeof(in.sin_addr));
	*ret = (struct sock_addr){.len = sizeof(in)};
	memcpy(&ret->storage, &in, sizeof(in));
}

static void set_v6(const struct net_point *p, uint32_t scope, struct sock_addr *ret)
{
	struct sockaddr_in6 in = {.sin6_family = AF_INET6, .sin6_port = htons(p->port)};
	if (p->v6) {
		memcpy(&in.sin6_addr, p->addr, sizeof(in.sin6_addr));
		in.sin6_scope_id = scope;
	} else {
		in.sin6_addr.s6_addr[10] = in.sin6_addr.s6_addr[11] = 0xff;
		memcpy(&in.sin6_addr.s6_addr[12], p->addr, 4);
	}
	*ret = (struct sock_addr){.len = sizeof(in)};
	memcpy(&ret->storage, &in, sizeof(in));
}

static int read_v4(const struct sock_addr *asked, unsigned int proto, struct net_point *ret_point,
		   struct sock_addr *ret_addr)
{
	struct sockaddr_in in;
	if (asked->len < sizeof(in))
		return -EINVAL;
	memcpy(&in, &asked->storage, sizeof(in));
	net_point_set(ret_point, proto, false, &in.sin_addr, ntohs(in.sin_port));
	set_v4(ret_point, ret_addr);
	return 0;
}

static int read_v6(const struct sock_addr *asked, unsigned int proto, struct net_point *ret_point,
		   struct sock_addr *ret_addr)
{
	struct sockaddr_in6 in; /* what was not given is zero in our copy */
	if (asked->len < V6_MIN)
		return -EINVAL;
	memcpy(&in, &asked->storage, sizeof(in));
	net_point_set(ret_point, proto, true, &in.sin6_addr, ntohs(in.sin6_port));
	set_v6(ret_point, asked->len < sizeof(in) ? 0 : in.sin6_scope_id, ret_addr);
	return 0;
}

int sock_inet_read(const struct sock_info *info, const struct sock_addr *asked, bool sends,
		   struct net_point *ret_point, struct sock_addr *ret_addr)
{
	unsigned int proto = sock_proto(info);
	int family = asked->sa.sa_family;
	if (asked->len < sizeof(asked->sa.sa_family))
		return -EINVAL;
	/* An old habit that UDP's sendto still honours. */
	if (family == AF_UNSPEC && sends && proto == NET_UDP && info->domain == AF_INET)
		family = AF_INET;
	if (family == AF_INET && (info->domain == AF_INET || proto == NET_UDP))
		return read_v4(asked, proto, ret_point, ret_addr);
	if (family == AF_INET6 && info->domain == AF_INET6)
		return read_v6(asked, proto, ret_point, ret_addr);
	return -EAFNOSUPPORT;
}

/* --- The verdict -------------------------------------------------------------------------- */

static size_t find_names(const struct box *box, const struct net_point *p, const char **ret)
{
	return box->names ? names_of_address(box->names, p->v6, p->addr, ret, NAMES_MAX) : 0;
}

/* What decides about TCP ports alone is Landlock's errno, whoever finds it out. */
static int refusal_error(const struct policy *p, unsigned int proto)
{
	return proto == NET_TCP && net_policy_tcp_by_port(p) ? EACCES : ECONNREFUSED;
}

static void add_allow(const struct policy *p, const struct net_point *point, struct buf *out)
{
	static const char *const schemes[] = {
		[NET_TCP] = "tcp", [NET_UDP] = "udp", [NET_ICMP] = "icmp"};
	char text[NET_POINT_TEXT_MAX];
	char rule[NET_POINT_TEXT_MAX + 16];
	net_point_format(point, text);
	snprintf(rule, sizeof(rule), "%s://%s", schemes[point->proto], text);
	buf_add_str(out, "--net-allow ");
	if (point->proto == NET_TCP && net_policy_tcp_by_port(p))
		buf_printf(out, ":%u", point->port);
	else
		buf_add_shell(out, rule);
}

static void refuse(struct call *call, const char *op, const struct net_point *point,
		   const struct net_rule *denied_by, struct verdict *ret)
{
	const struct policy *p = call->box->policy;
	AUTO(buf_done) struct buf allow = BUF_INIT(1024);
	AUTO(buf_done) struct buf rule = BUF_INIT(8192);
	char object[NET_POINT_TEXT_MAX];
	net_point_format(point, object);
	add_allow(p, point, &allow);
	if (denied_by)
		buf_printf(&rule, "--net-deny %s covers it", denied_by->text);
	else if (net_policy_tcp_by_port(p) && point->proto == NET_TCP)
		buf_add_str(&rule, "no rule allows connecting to this port");
	else
		buf_add_str(&rule, "no rule allows this destination");
	bool nowhere = point->proto != NET_ICMP && !point->port;
	struct refusal refusal = {
		.op = op,
		.object = object,
		.rule = buf_text(&rule),
		.allow = denied_by || nowhere ? NULL : buf_text(&allow),
		.error = refusal_error(p, point->proto),
	};
	*ret = call_refuse(call, &refusal);
}

/*
 * Resolvers and ping connect a UDP socket just to learn the source address that the kernel would
 * use. For an address that the sandbox may reach in another way that is answered, without a
 * connection (sock_target.probe).
 */
static bool is_probe(const struct net_table *t, const struct net_point *point, const char *op,
		     const struct net_names_view *names)
{
	if (point->proto != NET_UDP || !str_eq(op, "connect"))
		return false;
	unsigned int protos = net_table_protos(t, point, names);
	return protos && (!point->port || !(protos & NET_UDP));
}

/* What no rule speaks of, on the loopback addresses. True: RET is ready, or RET_VERDICT is WORKER.
 */
static bool judge_own(struct call *call, const struct net_point *point, struct sock_target *ret,
		      struct verdict *ret_verdict, bool *ret_allowed)
{
	*ret_allowed = false;
	if (call->box->policy->loopback != LOOPBACK_OWN || !point->port ||
	    !net_point_is_loopback(point))
		return false;
	if (!call->on_worker) {
		*ret_verdict = (struct verdict){.answer = ANSWER_WORKER};
		return true;
	}
	int r = sock_loopback_find(call, point, &ret->hold_fd);
	*ret_allowed = r == 0;
	if (r == -ECONNREFUSED) /* nobody is there */
		*ret_verdict = verdict_errno(ECONNREFUSED);
	return r == 0 || r == -ECONNREFUSED;
}

/* What an answer lets through is told; what it says of later calls is not told again. */
static void tell_allowed(struct call *call, const char *op, const struct net_point *point)
{
	char object[NET_POINT_TEXT_MAX];
	if (call->ask_answer == ASK_OPEN)
		return;
	net_point_format(point, object);
	struct refusal news = {
		.op = op,
		.object = object,
		.layer = "ask",
		.rule = call->ask_answer == ASK_RUN ? "allowed for the run by an answer"
						    : "allowed once by an answer",
	};
	call_tell(call, &news);
}

/* A destination that no rule knows. Unless it is allowed RET is the answer. */
static bool judge_unknown(struct call *call, const char *op, const struct net_point *point,
			  struct verdict *ret)
{
	switch (ask_judge(call, point)) {
	case ASK_ALLOWS:
		tell_allowed(call, op, point);
		return true;
	case ASK_WAITS:
		*ret = (struct verdict){.answer = ANSWER_WORKER};
		return false;
	case ASK_REFUSES:
		break;
	}
	refuse(call, op, point, NULL, ret);
	return false;
}

/* LED: RET leads to a listener of the sandbox's own that it knows as POINT. */
static bool judge_point(struct call *call, const char *op, const struct net_point *point, bool led,
			struct sock_target *ret, struct verdict *ret_verdict)
{
	const struct policy *p = call->box->policy;
	struct net_table table = net_table_of(p);
	const char *names[NAMES_MAX];
	struct net_names_view view = {names, find_names(call->box, point, names)};
	bool allowed = false;
	if (point->proto == NET_TCP && p->prot[PROT_NET_TCP] == PROT_DISABLED && !p->net_ask &&
	    net_policy_tcp_by_port(p))
		return true;
	struct net_judgement j = net_table_judge(&table, point, &view);
	if (j.allowed)
		return true;
	if (!j.rule && led && p->loopback == LOOPBACK_OWN)
		return true;
	if (!j.rule && judge_own(call, point, ret, ret_verdict, &allowed))
		return allowed;
	if (is_probe(&table, point, op, &view)) {
		ret->probe = true;
		return true;
	}
	if (!j.rule)
		return judge_unknown(call, op, point, ret_verdict);
	refuse(call, op, point, j.rule, ret_verdict);
	return false;
}

bool sock_judge_inet(struct call *call, const char *op, const struct sock_info *info,
		     const struct sock_addr *asked, struct sock_target *ret,
		     struct verdict *ret_verdict)
{
	struct net_point point;
	bool connects = str_eq(op, "connect");
	if (!sock_proto(info)) {
		*ret_verdict = verdict_errno(EPERM);
		return false;
	}
	if (asked->len >= sizeof(asked->sa.sa_family) && asked->sa.sa_family == AF_UNSPEC &&
	    (connects || (info->domain == AF_INET6 && sock_proto(info) == NET_UDP))) {
		/* Takes the connection back; in a message it is no name at all. */
		ret->addr = *asked;
		if (!connects)
			ret->addr.len = 0;
		return true;
	}
	int r = sock_inet_read(info, asked, !connects, &point, &ret->addr);
	if (r < 0) {
		*ret_verdict = verdict_errno(-r);
		return false;
	}
	if (sock_dns_is_server(call->box, &point))
		return sock_dns_lead(call, info, ret, ret_verdict);
	int led = sock_remap_lead(call, &point, ret);
	if (led == -EAGAIN) {
		*ret_verdict = (struct verdict){.answer = ANSWER_WORKER};
		return false;
	}
	return judge_point(call, op, &point, led > 0, ret, ret_verdict);
}
