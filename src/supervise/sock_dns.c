/* SPDX-License-Identifier: Apache-2.0 */
/* Which destinations are name servers, and the way from them to the resolver. */
#include "supervise/sock_dns.h"

#include <errno.h>
#include <string.h>

#include "net/relay.h"
#include "net/resolver.h"
#include "policy/policy.h"
#include "supervise/box.h"

#define DNS_PORT 53

/*
 * A rule for one address, or for a network with its ports: a user who says so is taken at their
 * word. One for all ports of a network is not about name servers: the host's own may lie in it.
 */
static bool names_server(const struct net_rule *rule)
{
	if (rule->target == NET_TARGET_CIDR4)
		return rule->prefix_len == 32 || !rule->ports.any;
	return rule->target == NET_TARGET_CIDR6 && (rule->prefix_len == 128 || !rule->ports.any);
}

static bool is_granted(const struct policy *p, const struct net_point *point)
{
	for (size_t i = 0; i < p->net_allow.n; i++) {
		struct net_rules one = {.v = &p->net_allow.v[i], .n = 1};
		struct net_table table = {.allow = &one, .deny = &p->net_deny};
		/* What --net-allow-loopback stands for names no server. */
		if (names_server(one.v) &&
		    !(p->loopback == LOOPBACK_ALL && one.v->ports.any &&
		      net_point_is_loopback(point)) &&
		    net_table_judge(&table, point, NULL).allowed)
			return true;
	}
	return false;
}

bool sock_dns_is_server(const struct box *box, const struct net_point *point)
{
	return box->resolver && point->port == DNS_PORT && point->proto != NET_ICMP &&
	       !is_granted(box->policy, point);
}

bool sock_dns_lead(struct call *call, const struct sock_info *info, struct sock_target *t,
		   struct verdict *ret_verdict)
{
	union inet_addr asked = {0};
	union inet_addr here;
	socklen_t len = 0;
	if (!call->n_fds) {
		*ret_verdict = verdict_errno(ECONNREFUSED);
		return false;
	}
	memcpy(&asked, &t->addr.storage, sizeof(asked));
	int r = call->box->relay ? net_relay_check(call->box->relay) : 0;
	if (r == -EDQUOT) {
		*ret_verdict = verdict_errno(EDQUOT);
		return false;
	}
	r = resolver_redirect(call->box->resolver, call->fds[0], info->domain, &asked, &here, &len);
	if (r < 0) {
		*ret_verdict = verdict_errno(-r);
		return false;
	}
	t->direct = true;
	t->addr = (struct sock_addr){.len = len};
	memcpy(&t->addr.storage, &here, len);
	return true;
}
