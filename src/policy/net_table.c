/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The judge of network rules. Rules are looked at one after another: policies hold few, and a
 * connection costs more than a thousand of them.
 */
#include "policy/net_table.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

#include "base/util.h"

/* --- Points ------------------------------------------------------------------------------- */

static bool all_zero(const uint8_t *v, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (v[i])
			return false;
	return true;
}

void net_point_set(struct net_point *ret, unsigned int proto, bool v6, const void *addr,
		   uint16_t port)
{
	static const uint8_t mapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
	static const uint8_t loopback4[4] = {127, 0, 0, 1};
	const uint8_t *bytes = addr;
	struct net_point p = {.proto = proto, .port = proto == NET_ICMP ? 0 : port};

	if (v6 && memcmp(bytes, mapped, sizeof(mapped)) == 0) {
		v6 = false;
		bytes += sizeof(mapped);
	}
	p.v6 = v6;
	memcpy(p.addr, bytes, v6 ? 16 : 4);
	if (all_zero(p.addr, v6 ? 16 : 4)) {
		if (v6)
			p.addr[15] = 1;
		else
			memcpy(p.addr, loopback4, sizeof(loopback4));
	}
	*ret = p;
}

bool net_point_is_loopback(const struct net_point *p)
{
	if (!p->v6)
		return p->addr[0] == 127;
	return all_zero(p->addr, 15) && p->addr[15] == 1;
}

void net_point_format(const struct net_point *p, char *ret_text)
{
	char host[INET6_ADDRSTRLEN] = "";

	inet_ntop(p->v6 ? AF_INET6 : AF_INET, p->addr, host, sizeof(host));
	if (p->proto == NET_ICMP)
		snprintf(ret_text, NET_POINT_TEXT_MAX, "%s", host);
	else
		snprintf(ret_text, NET_POINT_TEXT_MAX, p->v6 ? "[%s]:%u" : "%s:%u", host, p->port);
}

/* --- Rules -------------------------------------------------------------------------------- */

bool port_set_has(const struct port_set *set, uint16_t port)
{
	for (size_t i = 0; i < set->n; i++)
		if (port >= set->v[i].lo && port <= set->v[i].hi)
			return true;
	return set->any;
}

static bool has_prefix(const uint8_t *addr, const uint8_t *net, unsigned int bits)
{
	size_t whole = bits / 8;
	uint8_t mask = (uint8_t)(0xff00 >> (bits % 8));

	if (memcmp(addr, net, whole) != 0)
		return false;
	return bits % 8 == 0 || (addr[whole] & mask) == (net[whole] & mask);
}

bool net_rule_has_name(const struct net_rule *rule, const char *name)
{
	if (rule->target == NET_TARGET_NAME)
		return str_eq(rule->name, name);
	if (rule->target != NET_TARGET_WILDCARD)
		return false;
	size_t n = strlen(name);
	size_t tail = strlen(rule->name);

	return n > tail + 1 && name[n - tail - 1] == '.' && str_eq(name + n - tail, rule->name);
}

static bool has_any_name(const struct net_rule *rule, const struct net_names_view *names)
{
	for (size_t i = 0; names && i < names->n; i++)
		if (net_rule_has_name(rule, names->v[i]))
			return true;
	return false;
}

static bool reaches(const struct net_rule *rule, const struct net_point *p,
		    const struct net_names_view *names)
{
	switch (rule->target) {
	case NET_TARGET_ANY:
		return true;
	case NET_TARGET_CIDR4:
		return !p->v6 && has_prefix(p->addr, rule->addr, rule->prefix_len);
	case NET_TARGET_CIDR6:
		return p->v6 && has_prefix(p->addr, rule->addr, rule->prefix_len);
	case NET_TARGET_NAME:
	case NET_TARGET_WILDCARD:
		return has_any_name(rule, names);
	}
	return false;
}

static const struct net_rule *find(const struct net_rules *rules, const struct net_point *p,
				   const struct net_names_view *names)
{
	for (size_t i = 0; i < rules->n; i++) {
		const struct net_rule *r = &rules->v[i];

		if ((r->protos & p->proto) &&
		    (p->proto == NET_ICMP || port_set_has(&r->ports, p->port)) &&
		    reaches(r, p, names))
			return r;
	}
	return NULL;
}

struct net_table net_table_of(const struct policy *p)
{
	return (struct net_table){.allow = &p->net_allow, .deny = &p->net_deny};
}

struct net_judgement net_table_judge(const struct net_table *t, const struct net_point *p,
				     const struct net_names_view *names)
{
	const struct net_rule *rule = find(t->deny, p, names);

	if (rule)
		return (struct net_judgement){.allowed = false, .rule = rule};
	rule = find(t->allow, p, names);
	return (struct net_judgement){.allowed = rule != NULL, .rule = rule};
}

unsigned int net_table_protos(const struct net_table *t, const struct net_point *p,
			      const struct net_names_view *names)
{
	unsigned int protos = 0;

	for (size_t i = 0; i < t->allow->n; i++)
		if (reaches(&t->allow->v[i], p, names))
			protos |= t->allow->v[i].protos;
	for (size_t i = 0; i < t->deny->n; i++)
		if ((t->deny->v[i].ports.any || t->deny->v[i].protos == NET_ICMP) &&
		    reaches(&t->deny->v[i], p, names))
			protos &= ~t->deny->v[i].protos;
	return protos;
}

/* --- What a policy needs ------------------------------------------------------------------ */

bool net_policy_has(const struct policy *p, unsigned int proto)
{
	for (size_t i = 0; i < p->net_allow.n; i++)
		if (p->net_allow.v[i].protos & proto)
			return true;
	return false;
}

static bool has_names(const struct net_rules *rules)
{
	for (size_t i = 0; i < rules->n; i++)
		if (rules->v[i].name)
			return true;
	return false;
}

bool net_policy_has_names(const struct policy *p)
{
	return has_names(&p->net_allow) || has_names(&p->net_deny);
}

bool net_policy_tcp_by_port(const struct policy *p)
{
	for (size_t i = 0; i < p->net_allow.n; i++)
		if ((p->net_allow.v[i].protos & NET_TCP) &&
		    p->net_allow.v[i].target != NET_TARGET_ANY)
			return false;
	for (size_t i = 0; i < p->net_deny.n; i++)
		if (p->net_deny.v[i].protos & NET_TCP)
			return false;
	return true;
}

bool net_policy_may_bind(const struct policy *p, uint16_t port)
{
	return port_set_has(&p->bind_allow, port) && !port_set_has(&p->bind_deny, port);
}

bool net_policy_bind_open(const struct policy *p)
{
	return p->bind_allow.any && !p->bind_deny.any && !p->bind_deny.n;
}

bool net_policy_has_bind(const struct policy *p)
{
	if (p->bind_allow.any)
		return !p->bind_deny.any;
	for (size_t i = 0; i < p->bind_allow.n; i++)
		for (uint32_t port = p->bind_allow.v[i].lo; port <= p->bind_allow.v[i].hi; port++)
			if (!port_set_has(&p->bind_deny, (uint16_t)port))
				return true;
	return false;
}
