/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The limits of the network: their text, and what they cannot be given together with. A name limits
 * the addresses that it leads to; so where the policy lets the command reach addresses that it need
 * not look up, a limit by name would not hold, and is refused.
 */
#include "policy/net_limits.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/number.h"
#include "base/util.h"
#include "policy/builder.h"
#include "policy/net_rule.h"
#include "policy/net_table.h"
#include "policy/policy.h"

static bool is_name(const struct net_rule *rule)
{
	return rule->target == NET_TARGET_NAME || rule->target == NET_TARGET_WILDCARD;
}

/* RULE=SIZE/s. */
static int parse_rate(const char *text, struct net_rate *ret, struct err *err)
{
	const char *equals = strrchr(text, '=');
	if (!equals || !str_ends(equals, "/s"))
		return err_set(err, EINVAL, "write it as RULE=SIZE/s, as in example.org:443=1M/s");
	auto_free char *rule = xstrndup(text, (size_t)(equals - text));
	auto_free char *size = xstrndup(equals + 1, strlen(equals + 1) - strlen("/s"));
	int r = number_parse_size(size, false, &ret->per_second, err);
	return r < 0 ? r : net_rule_parse(rule, &ret->rule, err);
}

static int check_name(const struct policy *p, const struct net_rule *rule, const char *where,
		      struct err *err)
{
	for (size_t i = 0; i < p->net_allow.n; i++) {
		if (!is_name(&p->net_allow.v[i]))
			return err_set(err, EINVAL,
				       "%s %s: a limit by name does not hold where --net-allow %s "
				       "lets the command go to addresses without a look-up; write "
				       "an address, or allow names only",
				       where, rule->text, p->net_allow.v[i].text);
	}
	return 0;
}

/* What of UDP and ICMP the user has asked for in so many words. */
static const struct net_rule *find_datagrams(const struct policy *p, unsigned int protos)
{
	for (size_t i = 0; i < p->net_allow.n; i++) {
		const struct net_rule *rule = &p->net_allow.v[i];
		if (rule->scheme_given && (rule->protos & protos))
			return rule;
	}
	return NULL;
}

static int check_rate(const struct policy *p, const struct net_rate *rate, const char *where,
		      struct err *err)
{
	const struct net_rule *udp = find_datagrams(p, NET_UDP);
	if (!(rate->rule.protos & NET_TCP))
		return err_set(err, EINVAL,
			       "%s %s: only TCP connections can be limited; refuse the rest with "
			       "--net-deny, or leave it out of --net-allow",
			       where, rate->rule.text);
	if (!rate->rule.scheme_given && udp)
		return err_set(err, EINVAL,
			       "%s %s: UDP, which --net-allow %s grants, cannot be limited; write "
			       "tcp:// in front of the limit to leave it out",
			       where, rate->rule.text, udp->text);
	return is_name(&rate->rule) ? check_name(p, &rate->rule, where, err) : 0;
}

static int add_rate(struct policy *p, const struct setting_value *v, struct err *err)
{
	struct net_rate rate = {0};
	int r = parse_rate(v->text, &rate, err);
	if (r < 0) {
		char q[QUOTE_SIZE];
		err_prefix(err, "%s %s: ", v->where, quote_str(v->text, q, sizeof(q)));
		return r;
	}
	r = p->n_net_rates == NET_RATES_MAX
		    ? err_set(err, EINVAL, "%s: there can be %d limits at most", v->where,
			      NET_RATES_MAX)
		    : check_rate(p, &rate, v->where, err);
	if (r < 0) {
		net_rule_done(&rate.rule);
		return r;
	}
	rate.rule.protos = NET_TCP;
	p->net_rates = xrealloc(p->net_rates, p->n_net_rates + 1, sizeof(*p->net_rates));
	p->net_rates[p->n_net_rates++] = rate;
	return 0;
}

/* Rules that do not speak of UDP do not mean it here; what stands for others is not told. */
static void keep_tcp(struct policy *p, size_t n_given, const char *option)
{
	AUTO(buf_done) struct buf bare = BUF_INIT(1 << 16);
	for (size_t i = 0; i < p->net_allow.n; i++) {
		struct net_rule *rule = &p->net_allow.v[i];
		if (rule->scheme_given)
			continue;
		rule->protos = NET_TCP;
		if (i < n_given)
			buf_printf(&bare, "%s%s", bare.len ? ", " : "", rule->text);
	}
	if (bare.len)
		strv_add_take(&p->warnings,
			      xasprintf("rules without a protocol (%s) grant TCP only with %s; "
					"write tcp:// in front to say so",
					buf_text(&bare), option));
}

static int fill_max_bytes(const struct builder *b, struct policy *p, struct err *err)
{
	const char *text = builder_text(b, OPT_NET_MAX_BYTES);
	const struct net_rule *rule = find_datagrams(p, NET_UDP | NET_ICMP);
	if (!text)
		return 0;
	if (rule)
		return err_set(err, EINVAL,
			       "%s: UDP and ICMP, which --net-allow %s grants, cannot be limited; "
			       "remove one of them",
			       builder_where(b, OPT_NET_MAX_BYTES), rule->text);
	return number_parse_size(text, false, &p->net_max_bytes, err);
}

int net_limits_fill(const struct builder *b, struct policy *p, struct err *err)
{
	const struct setting *rates = &b->settings[OPT_NET_RATE];
	bool bare = false;
	int r = fill_max_bytes(b, p, err);
	for (size_t i = 0; r == 0 && i < rates->n; i++)
		r = add_rate(p, &rates->v[i], err);
	if (r < 0)
		return r;
	for (size_t i = 0; i < p->n_net_rates; i++)
		bare |= !p->net_rates[i].rule.scheme_given;
	if (bare || p->net_max_bytes)
		keep_tcp(p, b->settings[OPT_NET_ALLOW].n,
			 p->net_max_bytes ? "--net-max-bytes" : "--net-rate");
	return 0;
}

bool net_policy_limits(const struct policy *p)
{
	return p->net_max_bytes || p->n_net_rates;
}
