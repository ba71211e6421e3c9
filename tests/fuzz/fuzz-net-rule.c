/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any text as a network rule and as a list of ports: a failure has one printable line with a
 * position inside the text, and what is accepted has a normal form that is its own normal form.
 */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/util.h"
#include "fuzz.h"
#include "policy/net_rule.h"

static void check_error(const struct err *err, int r, const char *text)
{
	assert(err->code == -r);
	if (r == -E2BIG)
		return;
	assert(str_starts(err->msg, "character "));
	assert(strtoul(err->msg + strlen("character "), NULL, 10) <= strlen(text) + 1);
	for (const char *p = err->msg; *p; p++)
		assert((unsigned char)*p >= 0x20 && *p != 0x7f);
}

static void check_set(const struct port_set *set)
{
	for (size_t i = 0; i < set->n; i++) {
		assert(set->v[i].lo <= set->v[i].hi);
		assert(i == 0 || set->v[i - 1].hi + 1 < set->v[i].lo);
	}
}

static void assert_same(const struct net_rule *a, const struct net_rule *b)
{
	assert(a->target == b->target && a->protos == b->protos);
	assert(a->prefix_len == b->prefix_len);
	assert(memcmp(a->addr, b->addr, sizeof(a->addr)) == 0);
}

static void try_ports(const char *text)
{
	struct port_set set, again;
	struct err err = {0};
	int r = port_set_parse(text, 0, &set, &err);

	if (r < 0) {
		check_error(&err, r, text);
		return;
	}
	check_set(&set);
	auto_free char *normal = port_set_format(&set);
	assert(port_set_parse(normal, 0, &again, NULL) == 0);
	auto_free char *twice = port_set_format(&again);
	assert(str_eq(normal, twice));
	port_set_done(&set);
	port_set_done(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	auto_free char *text = xstrndup((const char *)data, size);
	struct net_rule rule, again;
	struct err err = {0};

	try_ports(text);
	int r = net_rule_parse(text, &rule, &err);
	if (r < 0) {
		check_error(&err, r, text);
		return 0;
	}
	check_set(&rule.ports);
	assert(rule.protos != NET_ICMP || (!rule.ports.any && rule.ports.n == 0));
	auto_free char *normal = net_rule_format(&rule);
	assert(net_rule_parse(normal, &again, NULL) == 0);
	auto_free char *twice = net_rule_format(&again);
	assert(str_eq(normal, twice));
	assert_same(&again, &rule);
	net_rule_done(&rule);
	net_rule_done(&again);
	return 0;
}
