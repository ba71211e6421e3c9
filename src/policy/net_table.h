/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The judge of network rules: whether the policy allows a destination or a port. Pure; deny rules
 * win over allow rules, protocols never mix, and what no rule covers is refused. Which names lead
 * to an address is the caller's to know.
 */
#pragma once

#include "policy/policy.h"

struct sockaddr;

/* A destination in its one form: net_point_set. */
struct net_point {
	unsigned int proto; /* NET_TCP, NET_UDP or NET_ICMP */
	bool v6;
	uint8_t addr[16]; /* network order; 4 bytes used where V6 is false */
	uint16_t port;	  /* 0 for NET_ICMP */
};

/*
 * ADDR is 4 or 16 bytes. IPv4-mapped IPv6 addresses become the IPv4 ones that they reach, and the
 * unspecified addresses become loopback, which is where the kernel sends them.
 */
void net_point_set(struct net_point *ret, unsigned int proto, bool v6, const void *addr,
		   uint16_t port);
bool net_point_is_loopback(const struct net_point *p);
#define NET_POINT_TEXT_MAX 64
/* "10.0.0.1:80", "[::1]:80", "::1" for NET_ICMP. TEXT holds NET_POINT_TEXT_MAX bytes. */
void net_point_format(const struct net_point *p, char *ret_text);

/* Names that lead to the point's address now: lower case, without a dot at the end. */
struct net_names_view {
	const char *const *v;
	size_t n;
};

struct net_table {
	const struct net_rules *allow; /* borrowed from the policy */
	const struct net_rules *deny;
};

struct net_table net_table_of(const struct policy *p);

struct net_judgement {
	bool allowed;
	const struct net_rule *rule; /* that decided, borrowed; NULL: none covers it */
};

/* NAMES may be NULL: no name leads there. */
struct net_judgement net_table_judge(const struct net_table *t, const struct net_point *p,
				     const struct net_names_view *names);
/*
 * The protocols by which an allow rule reaches the address of P on any port. An address that none
 * reaches is no destination of the sandbox at all.
 */
unsigned int net_table_protos(const struct net_table *t, const struct net_point *p,
			      const struct net_names_view *names);
/* Whether NAME (lower case, no dot at the end) is one that RULE names. */
bool net_rule_has_name(const struct net_rule *rule, const char *name);
bool port_set_has(const struct port_set *set, uint16_t port);

/* --- What a policy needs ------------------------------------------------------------------- */

/* Whether an allow rule grants PROTO anywhere. */
bool net_policy_has(const struct policy *p, unsigned int proto);
/* Whether a rule, allow or deny, holds a name. */
bool net_policy_has_names(const struct policy *p);
/* Whether ports alone decide about TCP connections, so that Landlock can. */
bool net_policy_tcp_by_port(const struct policy *p);
/* Whether PORT may be bound; listening without a bind is port 0. */
bool net_policy_may_bind(const struct policy *p, uint16_t port);
/* Whether every port may be bound, so that nobody needs to look. */
bool net_policy_bind_open(const struct policy *p);
/* Whether --net-rate or --net-max-bytes was given. */
bool net_policy_limits(const struct policy *p);
/* Whether any port at all may be bound. */
bool net_policy_has_bind(const struct policy *p);
