/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests of route netlink and their answers. The request is hostile: each message is taken whole
 * within the bounds that its header and the datagram give, and what is not understood is answered
 * with an error, as by a kernel that lacks it. Replies have a fixed size; what they hold is fixed
 * too, but for the echo of a request, which is cut.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/fib_rules.h>
#include <linux/if.h>
#include <linux/if_addr.h>
#include <linux/if_arp.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>
#include <string.h>
#include <sys/socket.h>

#include "base/util.h"
#include "net/netlink.h"

enum {
	LO_INDEX = 1,
	LO_MTU = 65536,
	LO_QUEUE = 1000,
	LO_FLAGS = IFF_UP | IFF_LOOPBACK | IFF_RUNNING | IFF_LOWER_UP,
	KIND_MASK = 3, /* of a type: new, delete, get, set */
	KIND_GET = 2,
	METRIC_V6 = 256,
};

static const uint8_t lo_v4[4] = {127, 0, 0, 1};
static const uint8_t lo_v4_net[4] = {127, 0, 0, 0};
static const uint8_t lo_v4_last[4] = {127, 255, 255, 255};
static const uint8_t lo_v6[16] = {[15] = 1};

/* A request, within its bounds. */
struct request {
	struct nlmsghdr head;
	const char *body;
	size_t n; /* bytes of the body */
	uint32_t port;
	bool v6; /* the loopback has version 6 */
	bool dump;
	uint8_t family;
};

/* --- Making messages ------------------------------------------------------------------------- */

/* Everything has room: a test makes the largest reply. */
static void *put(struct netlink_reply *r, const void *data, size_t n)
{
	char *at = r->data + r->len;
	size_t step = NLMSG_ALIGN(n);
	if (step > sizeof(r->data) - r->len)
		util_abort("a netlink reply does not fit");
	memset(at, 0, step);
	if (data)
		memcpy(at, data, n);
	r->len += step;
	return at;
}

/* Begins a message; its length is set by finish. Returns where it lies. */
static size_t begin(struct netlink_reply *r, const struct request *q, uint16_t type, uint16_t flags)
{
	size_t at = r->len;
	struct nlmsghdr h = {.nlmsg_type = type,
			     .nlmsg_flags = flags,
			     .nlmsg_seq = q->head.nlmsg_seq,
			     .nlmsg_pid = q->port};
	put(r, &h, sizeof(h));
	return at;
}

static void finish(struct netlink_reply *r, size_t at)
{
	uint32_t len = (uint32_t)(r->len - at);
	memcpy(r->data + at, &len, sizeof(len));
}

static void add_attr(struct netlink_reply *r, uint16_t type, const void *data, size_t n)
{
	struct rtattr a = {.rta_len = (uint16_t)RTA_LENGTH(n), .rta_type = type};
	put(r, &a, sizeof(a));
	if (n)
		put(r, data, n);
}

static void add_u32(struct netlink_reply *r, uint16_t type, uint32_t value)
{
	add_attr(r, type, &value, sizeof(value));
}

static void add_u8(struct netlink_reply *r, uint16_t type, uint8_t value)
{
	add_attr(r, type, &value, sizeof(value));
}

static uint16_t part_flags(const struct request *q)
{
	return q->dump ? NLM_F_MULTI : 0;
}

static void add_done(struct netlink_reply *r, const struct request *q)
{
	int32_t code = 0;
	size_t at = begin(r, q, NLMSG_DONE, NLM_F_MULTI);
	put(r, &code, sizeof(code));
	finish(r, at);
}

/* CODE 0: an acknowledgement, which returns the header alone. */
static void add_error(struct netlink_reply *r, const struct request *q, int code)
{
	bool whole = code && q->n <= NETLINK_ECHO_MAX;
	struct nlmsgerr e = {.error = -code, .msg = q->head};
	size_t at = begin(r, q, NLMSG_ERROR, whole ? 0 : NLM_F_CAPPED);
	put(r, &e, sizeof(e));
	if (whole && q->n)
		put(r, q->body, q->n);
	finish(r, at);
}

/* --- Links ----------------------------------------------------------------------------------- */

static void add_link(struct netlink_reply *r, const struct request *q)
{
	static const uint8_t no_address[6];
	static const struct rtnl_link_stats64 stats64;
	static const struct rtnl_link_stats stats;
	struct ifinfomsg m = {
		.ifi_type = ARPHRD_LOOPBACK, .ifi_index = LO_INDEX, .ifi_flags = LO_FLAGS};
	size_t at = begin(r, q, RTM_NEWLINK, part_flags(q));
	put(r, &m, sizeof(m));
	add_attr(r, IFLA_IFNAME, "lo", sizeof("lo"));
	add_u32(r, IFLA_TXQLEN, LO_QUEUE);
	add_u8(r, IFLA_OPERSTATE, IF_OPER_UNKNOWN);
	add_u8(r, IFLA_LINKMODE, 0);
	add_u32(r, IFLA_MTU, LO_MTU);
	add_u32(r, IFLA_GROUP, 0);
	add_u32(r, IFLA_PROMISCUITY, 0);
	add_u32(r, IFLA_NUM_TX_QUEUES, 1);
	add_u32(r, IFLA_NUM_RX_QUEUES, 1);
	add_u8(r, IFLA_CARRIER, 1);
	add_attr(r, IFLA_QDISC, "noqueue", sizeof("noqueue"));
	add_attr(r, IFLA_ADDRESS, no_address, sizeof(no_address));
	add_attr(r, IFLA_BROADCAST, no_address, sizeof(no_address));
	add_attr(r, IFLA_STATS64, &stats64, sizeof(stats64));
	add_attr(r, IFLA_STATS, &stats, sizeof(stats));
	finish(r, at);
}

/* Whether an attribute in the request behind its first SKIP bytes names the loopback. */
static bool names_lo(const struct request *q, size_t skip)
{
	size_t at = NLMSG_ALIGN(skip);
	while (at < q->n && q->n - at >= sizeof(struct rtattr)) {
		struct rtattr a;
		memcpy(&a, q->body + at, sizeof(a));
		if (a.rta_len < sizeof(a) || a.rta_len > q->n - at)
			return false;
		size_t n = a.rta_len - sizeof(a);
		const char *text = q->body + at + sizeof(a);
		if ((a.rta_type == IFLA_IFNAME || a.rta_type == IFLA_ALT_IFNAME) && n >= 2 &&
		    memcmp(text, "lo", 2) == 0 && (n == 2 || !text[2]))
			return true;
		at += RTA_ALIGN(a.rta_len);
	}
	return false;
}

static int get_link(const struct request *q, struct netlink_reply *r)
{
	struct ifinfomsg m = {0};
	if (q->dump) {
		if (q->family == AF_UNSPEC || q->family == AF_PACKET || q->family == AF_INET ||
		    (q->family == AF_INET6 && q->v6))
			add_link(r, q);
		return 0;
	}
	if (q->n < sizeof(m))
		return EINVAL;
	memcpy(&m, q->body, sizeof(m));
	if (m.ifi_index != LO_INDEX && (m.ifi_index || !names_lo(q, sizeof(m))))
		return ENODEV;
	add_link(r, q);
	return 0;
}

/* --- Addresses ------------------------------------------------------------------------------- */

static void add_address(struct netlink_reply *r, const struct request *q, uint8_t family)
{
	static const struct ifa_cacheinfo forever = {.ifa_prefered = UINT32_MAX,
						     .ifa_valid = UINT32_MAX};
	bool v4 = family == AF_INET;
	struct ifaddrmsg m = {.ifa_family = family,
			      .ifa_prefixlen = v4 ? 8 : 128,
			      .ifa_flags = IFA_F_PERMANENT,
			      .ifa_scope = RT_SCOPE_HOST,
			      .ifa_index = LO_INDEX};
	size_t at = begin(r, q, RTM_NEWADDR, part_flags(q));
	put(r, &m, sizeof(m));
	if (v4) {
		add_attr(r, IFA_ADDRESS, lo_v4, sizeof(lo_v4));
		add_attr(r, IFA_LOCAL, lo_v4, sizeof(lo_v4));
		add_attr(r, IFA_LABEL, "lo", sizeof("lo"));
	} else {
		add_attr(r, IFA_ADDRESS, lo_v6, sizeof(lo_v6));
	}
	add_u32(r, IFA_FLAGS, IFA_F_PERMANENT);
	add_attr(r, IFA_CACHEINFO, &forever, sizeof(forever));
	finish(r, at);
}

static bool wants(const struct request *q, uint8_t family)
{
	if (family == AF_INET6 && !q->v6)
		return false;
	return q->family == AF_UNSPEC || q->family == family;
}

static int get_address(const struct request *q, struct netlink_reply *r)
{
	if (!q->dump)
		return EOPNOTSUPP;
	if (wants(q, AF_INET))
		add_address(r, q, AF_INET);
	if (wants(q, AF_INET6))
		add_address(r, q, AF_INET6);
	return 0;
}

/* --- Routes and rules ------------------------------------------------------------------------ */

struct route {
	uint8_t family;
	uint8_t bits;
	uint8_t table;
	uint8_t type;
	uint8_t scope;
	const uint8_t *dst;
};

/* clang-format off */
static const struct route routes[] = {
	{ AF_INET,  8,   RT_TABLE_LOCAL, RTN_LOCAL,     RT_SCOPE_HOST,     lo_v4_net },
	{ AF_INET,  32,  RT_TABLE_LOCAL, RTN_LOCAL,     RT_SCOPE_HOST,     lo_v4 },
	{ AF_INET,  32,  RT_TABLE_LOCAL, RTN_BROADCAST, RT_SCOPE_LINK,     lo_v4_last },
	{ AF_INET6, 128, RT_TABLE_MAIN,  RTN_UNICAST,   RT_SCOPE_UNIVERSE, lo_v6 },
	{ AF_INET6, 128, RT_TABLE_LOCAL, RTN_LOCAL,     RT_SCOPE_UNIVERSE, lo_v6 },
};
/* clang-format on */

static void add_route(struct netlink_reply *r, const struct request *q, const struct route *route,
		      const uint8_t *dst, bool cloned)
{
	bool v4 = route->family == AF_INET;
	struct rtmsg m = {.rtm_family = route->family,
			  .rtm_dst_len = route->bits,
			  .rtm_table = route->table,
			  .rtm_protocol = cloned ? RTPROT_UNSPEC : RTPROT_KERNEL,
			  .rtm_scope = route->scope,
			  .rtm_type = route->type,
			  .rtm_flags = cloned ? RTM_F_CLONED : 0};
	size_t at = begin(r, q, RTM_NEWROUTE, part_flags(q));
	put(r, &m, sizeof(m));
	add_u32(r, RTA_TABLE, route->table);
	add_attr(r, RTA_DST, dst, v4 ? 4 : 16);
	add_u32(r, RTA_OIF, LO_INDEX);
	if (v4 || cloned)
		add_attr(r, RTA_PREFSRC, v4 ? lo_v4 : lo_v6, v4 ? 4 : 16);
	if (!v4)
		add_u32(r, RTA_PRIORITY, route->table == RT_TABLE_MAIN ? METRIC_V6 : 0);
	finish(r, at);
}

/* The destination that a request without NLM_F_DUMP asks the way to. */
static const uint8_t *asked_dst(const struct request *q, size_t size)
{
	size_t at = NLMSG_ALIGN(sizeof(struct rtmsg));
	while (at < q->n && q->n - at >= sizeof(struct rtattr)) {
		struct rtattr a;
		memcpy(&a, q->body + at, sizeof(a));
		if (a.rta_len < sizeof(a) || a.rta_len > q->n - at)
			return NULL;
		if (a.rta_type == RTA_DST && a.rta_len == sizeof(a) + size)
			return (const uint8_t *)q->body + at + sizeof(a);
		at += RTA_ALIGN(a.rta_len);
	}
	return NULL;
}

static int get_one_route(const struct request *q, struct netlink_reply *r)
{
	static const struct route way_v4 = {AF_INET,	       32,  RT_TABLE_LOCAL, RTN_LOCAL,
					    RT_SCOPE_UNIVERSE, NULL};
	static const struct route way_v6 = {AF_INET6,	       128, RT_TABLE_LOCAL, RTN_LOCAL,
					    RT_SCOPE_UNIVERSE, NULL};
	bool v4 = q->family == AF_INET;
	if (q->n < sizeof(struct rtmsg) || (!v4 && q->family != AF_INET6))
		return q->n < sizeof(struct rtmsg) ? EINVAL : EOPNOTSUPP;
	const uint8_t *dst = asked_dst(q, v4 ? 4 : 16);
	if (!dst)
		return EINVAL;
	if (v4 ? dst[0] != lo_v4[0] : !q->v6 || memcmp(dst, lo_v6, sizeof(lo_v6)) != 0)
		return ENETUNREACH;
	add_route(r, q, v4 ? &way_v4 : &way_v6, dst, true);
	return 0;
}

static int get_route(const struct request *q, struct netlink_reply *r)
{
	if (!q->dump)
		return get_one_route(q, r);
	for (size_t i = 0; i < ARRAY_SIZE(routes); i++)
		if (wants(q, routes[i].family))
			add_route(r, q, &routes[i], routes[i].dst, false);
	return 0;
}

static void add_rule(struct netlink_reply *r, const struct request *q, uint8_t family,
		     uint32_t priority, uint8_t table)
{
	struct fib_rule_hdr m = {.family = family, .table = table, .action = FR_ACT_TO_TBL};
	size_t at = begin(r, q, RTM_NEWRULE, part_flags(q));
	put(r, &m, sizeof(m));
	add_u32(r, FRA_TABLE, table);
	add_u32(r, FRA_SUPPRESS_PREFIXLEN, UINT32_MAX);
	add_u8(r, FRA_PROTOCOL, RTPROT_KERNEL);
	if (priority)
		add_u32(r, FRA_PRIORITY, priority);
	finish(r, at);
}

static int get_rule(const struct request *q, struct netlink_reply *r)
{
	if (!q->dump)
		return EOPNOTSUPP;
	if (wants(q, AF_INET)) {
		add_rule(r, q, AF_INET, 0, RT_TABLE_LOCAL);
		add_rule(r, q, AF_INET, 32766, RT_TABLE_MAIN);
		add_rule(r, q, AF_INET, 32767, RT_TABLE_DEFAULT);
	}
	if (wants(q, AF_INET6)) {
		add_rule(r, q, AF_INET6, 0, RT_TABLE_LOCAL);
		add_rule(r, q, AF_INET6, 32766, RT_TABLE_MAIN);
	}
	return 0;
}

/* --- Requests -------------------------------------------------------------------------------- */

/* What there is nothing of here: its list is empty. */
static int get_nothing(const struct request *q, struct netlink_reply *r)
{
	(void)r;
	return q->dump ? 0 : EOPNOTSUPP;
}

static int answer(const struct request *q, struct netlink_reply *r)
{
	if ((q->head.nlmsg_type & KIND_MASK) != KIND_GET)
		return q->head.nlmsg_type <= RTM_MAX ? EPERM : EOPNOTSUPP;
	if (q->n < sizeof(struct rtgenmsg))
		return EINVAL;
	switch (q->head.nlmsg_type) {
	case RTM_GETLINK:
		return get_link(q, r);
	case RTM_GETADDR:
		return get_address(q, r);
	case RTM_GETROUTE:
		return get_route(q, r);
	case RTM_GETRULE:
		return get_rule(q, r);
	case RTM_GETNEIGH:
	case RTM_GETQDISC:
	case RTM_GETTCLASS:
	case RTM_GETNEIGHTBL:
	case RTM_GETADDRLABEL:
		return get_nothing(q, r);
	default:
		return EOPNOTSUPP;
	}
}

size_t netlink_answer(bool v6, uint32_t port, const char *data, size_t n, struct netlink_reply *ret)
{
	struct request q = {.v6 = v6, .port = port};
	ret->len = 0;
	if (n < sizeof(q.head))
		return 0;
	memcpy(&q.head, data, sizeof(q.head));
	if (q.head.nlmsg_len < sizeof(q.head) || q.head.nlmsg_len > n)
		return 0;
	q.body = data + sizeof(q.head);
	q.n = q.head.nlmsg_len - sizeof(q.head);
	q.family = q.n ? (uint8_t)q.body[0] : AF_UNSPEC;
	q.dump = (q.head.nlmsg_type & KIND_MASK) == KIND_GET && (q.head.nlmsg_flags & NLM_F_DUMP);
	bool asks = (q.head.nlmsg_flags & NLM_F_REQUEST) && q.head.nlmsg_type >= NLMSG_MIN_TYPE;
	int code = asks ? answer(&q, ret) : 0;
	if (code)
		ret->len = 0;
	if (code || (!q.dump && (q.head.nlmsg_flags & NLM_F_ACK)))
		add_error(ret, &q, code);
	else if (asks && q.dump)
		add_done(ret, &q);
	size_t step = NLMSG_ALIGN(q.head.nlmsg_len);
	return step < n ? step : n;
}
