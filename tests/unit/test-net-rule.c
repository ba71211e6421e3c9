/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The grammar of network rules and port lists: normal forms, and the position and reason of faults.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/err.h"
#include "base/util.h"
#include "policy/net_rule.h"

static const struct {
	const char *text;
	const char *normal;
	unsigned int protos;
	enum net_target target;
} good[] = {
	/* clang-format off */
	{ ":443", ":443", NET_TCP | NET_UDP, NET_TARGET_ANY },
	{ "tcp://:443", "tcp://:443", NET_TCP, NET_TARGET_ANY },
	{ "tcp://*:443", "tcp://:443", NET_TCP, NET_TARGET_ANY },
	{ "TCP://:443", "tcp://:443", NET_TCP, NET_TARGET_ANY },
	{ "*", "*", NET_TCP | NET_UDP, NET_TARGET_ANY },
	{ ":*", "*", NET_TCP | NET_UDP, NET_TARGET_ANY },
	{ "*:*", "*", NET_TCP | NET_UDP, NET_TARGET_ANY },
	{ "udp://*:53", "udp://:53", NET_UDP, NET_TARGET_ANY },
	{ "icmp://*", "icmp://*", NET_ICMP, NET_TARGET_ANY },
	{ "icmp://10.0.0.1", "icmp://10.0.0.1", NET_ICMP, NET_TARGET_CIDR4 },
	{ "icmp://::1", "icmp://::1", NET_ICMP, NET_TARGET_CIDR6 },
	{ "10.0.0.1", "10.0.0.1", NET_TCP | NET_UDP, NET_TARGET_CIDR4 },
	{ "10.0.0.1:80", "10.0.0.1:80", NET_TCP | NET_UDP, NET_TARGET_CIDR4 },
	{ "10.0.0.0/8:80,443", "10.0.0.0/8:80,443", NET_TCP | NET_UDP, NET_TARGET_CIDR4 },
	{ "10.1.2.3/8", "10.0.0.0/8", NET_TCP | NET_UDP, NET_TARGET_CIDR4 },
	{ "10.1.2.255/25", "10.1.2.128/25", NET_TCP | NET_UDP, NET_TARGET_CIDR4 },
	{ "0.0.0.0/0:1-65535", "0.0.0.0/0:1-65535", NET_TCP | NET_UDP, NET_TARGET_CIDR4 },
	{ "::1", "::1", NET_TCP | NET_UDP, NET_TARGET_CIDR6 },
	{ "[::1]", "::1", NET_TCP | NET_UDP, NET_TARGET_CIDR6 },
	{ "[::1]:80", "[::1]:80", NET_TCP | NET_UDP, NET_TARGET_CIDR6 },
	{ "[2001:DB8::]:80", "[2001:db8::]:80", NET_TCP | NET_UDP, NET_TARGET_CIDR6 },
	{ "2001:db8::/32", "2001:db8::/32", NET_TCP | NET_UDP, NET_TARGET_CIDR6 },
	{ "tcp://[2001:db8::1/32]:22", "tcp://[2001:db8::/32]:22", NET_TCP, NET_TARGET_CIDR6 },
	{ "::ffff:10.0.0.1", "10.0.0.1", NET_TCP | NET_UDP, NET_TARGET_CIDR4 },
	{ "[::ffff:10.0.0.0/104]:80", "10.0.0.0/8:80", NET_TCP | NET_UDP, NET_TARGET_CIDR4 },
	{ "::/0", "::/0", NET_TCP | NET_UDP, NET_TARGET_CIDR6 },
	{ "Example.COM:443", "example.com:443", NET_TCP | NET_UDP, NET_TARGET_NAME },
	{ "example.com.", "example.com", NET_TCP | NET_UDP, NET_TARGET_NAME },
	{ "localhost", "localhost", NET_TCP | NET_UDP, NET_TARGET_NAME },
	{ "a_b-c.d9", "a_b-c.d9", NET_TCP | NET_UDP, NET_TARGET_NAME },
	{ "*.example.com:443", "*.example.com:443", NET_TCP | NET_UDP, NET_TARGET_WILDCARD },
	{ ":443,80,81,82,80", ":80-82,443", NET_TCP | NET_UDP, NET_TARGET_ANY },
	{ ":1-5,3-9,10", ":1-10", NET_TCP | NET_UDP, NET_TARGET_ANY },
	{ ":65535", ":65535", NET_TCP | NET_UDP, NET_TARGET_ANY },
	/* clang-format on */
};

static void test_good(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
		struct net_rule rule, again;
		struct err err = {0};

		assert_int_equal(net_rule_parse(good[i].text, &rule, &err), 0);
		assert_string_equal(err.msg, "");

		auto_free char *normal = net_rule_format(&rule);

		assert_string_equal(normal, good[i].normal);
		assert_string_equal(rule.text, good[i].text);
		assert_int_equal(rule.protos, good[i].protos);
		assert_int_equal(rule.target, good[i].target);
		assert_int_equal(net_rule_parse(normal, &again, NULL), 0);

		auto_free char *twice = net_rule_format(&again);

		assert_string_equal(twice, normal);
		assert_int_equal(again.target, rule.target);
		assert_memory_equal(again.addr, rule.addr, sizeof(rule.addr));
		assert_int_equal(again.prefix_len, rule.prefix_len);
		net_rule_done(&rule);
		net_rule_done(&again);
	}
}

static const struct {
	const char *text;
	const char *message;
} bad[] = {
	/* clang-format off */
	{ "", "character 1: a target is missing; * means every address" },
	{ "tcp://", "character 7: a target is missing; * means every address" },
	{ "sctp://:1", "character 1: the protocol in front of :// is not tcp, udp or icmp" },
	{ "://:1", "character 1: the protocol in front of :// is not tcp, udp or icmp" },
	{ "icmp://*:1", "character 9: an icmp rule takes no ports" },
	{ "icmp://:1", "character 8: an icmp rule takes no ports" },
	{ ":", "character 2: ports are missing; write a number or *" },
	{ "host:", "character 6: ports are missing; write a number or *" },
	{ ":0", "character 2: the port is not within 1 and 65535" },
	{ ":65536", "character 2: the port is not within 1 and 65535" },
	{ ":99999999999999999999", "character 2: the port is not within 1 and 65535" },
	{ ":80,", "character 5: a port number is missing" },
	{ ":80,,81", "character 5: a port number is missing" },
	{ ":80,*", "character 5: * cannot be mixed with port numbers" },
	{ ":*,80", "character 2: * cannot be mixed with port numbers" },
	{ ":80-", "character 5: a port number is missing" },
	{ ":90-80", "character 2: the range ends below its start" },
	{ ":80 ", "character 4: expected a comma, a range or the end behind a port" },
	{ ": 80", "character 2: a port number is missing" },
	{ ":-80", "character 2: a port number is missing" },
	{ ":+80", "character 2: a port number is missing" },
	{ "10.0.0.0/33", "character 1: this is not a network: write an IPv4 or IPv6 address, / and the length of its prefix" },
	{ "10.0.0.0/08", "character 1: this is not a network: write an IPv4 or IPv6 address, / and the length of its prefix" },
	{ "10.0.0.0/", "character 1: this is not a network: write an IPv4 or IPv6 address, / and the length of its prefix" },
	{ "host/8", "character 1: this is not a network: write an IPv4 or IPv6 address, / and the length of its prefix" },
	{ "tcp://host/8:80", "character 7: this is not a network: write an IPv4 or IPv6 address, / and the length of its prefix" },
	{ "10.0.0", "character 1: this is neither an address nor a host name (its last part is a number)" },
	{ "300.1.1.1", "character 1: this is neither an address nor a host name (its last part is a number)" },
	{ "::1:80:zz", "character 1: this is not an address; IPv6 with ports is written [ADDRESS]:PORTS" },
	{ "fe80::1%eth0", "character 1: this is not an address; IPv6 with ports is written [ADDRESS]:PORTS" },
	{ "[::1", "character 1: the bracket is not closed" },
	{ "[::1]80", "character 6: expected : behind the bracket" },
	{ "[::g]:80", "character 2: this is not an IPv6 address or network" },
	{ "[10.0.0.1]:80", "character 1: only an IPv6 address stands in brackets" },
	{ "[]:80", "character 1: only an IPv6 address stands in brackets" },
	{ "ho st:80", "character 3: this character cannot stand in a host name" },
	{ "a..b", "character 3: a part of the host name is empty" },
	{ ".a", "character 1: a part of the host name is empty" },
	{ "-a.b", "character 1: a part of the host name begins or ends with a hyphen" },
	{ "a.b-", "character 3: a part of the host name begins or ends with a hyphen" },
	{ "*.", "character 1: a wildcard is * alone or *. in front of a domain" },
	{ "*example.com", "character 1: a wildcard is * alone or *. in front of a domain" },
	{ "a.*.b", "character 3: this character cannot stand in a host name" },
	{ "*.*.b", "character 3: this character cannot stand in a host name" },
	{ "h\xc3\xa4user.de", "character 2: this character cannot stand in a host name" },
	/* clang-format on */
};

static void test_bad(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		struct net_rule rule;
		struct err err = {0};

		assert_true(net_rule_parse(bad[i].text, &rule, &err) < 0);
		assert_string_equal(err.msg, bad[i].message);
	}
}

static void test_long(void **state)
{
	char text[5000];
	struct net_rule rule;
	struct err err = {0};

	(void)state;
	memset(text, 'a', sizeof(text));
	text[sizeof(text) - 1] = '\0';
	assert_true(net_rule_parse(text, &rule, &err) < 0);
	text[300] = '\0';
	assert_true(net_rule_parse(text, &rule, &err) < 0);
	assert_string_equal(err.msg, "character 1: the host name is longer than 253 characters");
	text[64] = '\0';
	assert_true(net_rule_parse(text, &rule, &err) < 0);
	assert_string_equal(err.msg,
			    "character 1: a part of the host name is longer than 63 characters");
	text[63] = '\0';
	assert_int_equal(net_rule_parse(text, &rule, &err), 0);
	net_rule_done(&rule);
}

static void test_port_sets(void **state)
{
	struct port_set set = {0}, more = {0};

	(void)state;
	assert_int_equal(port_set_parse("0,8080", 0, &set, NULL), 0);
	assert_int_equal(set.n, 2);
	assert_int_equal(set.v[0].lo, 0);
	assert_int_equal(set.v[1].hi, 8080);
	assert_int_equal(port_set_parse("1-10,8081-65535", 0, &more, NULL), 0);
	port_set_merge(&set, &more);

	auto_free char *text = port_set_format(&set);

	assert_string_equal(text, "0-10,8080-65535");
	port_set_done(&set);
	port_set_done(&more);
	assert_true(port_set_parse("0", 1, &set, NULL) < 0);
	assert_true(port_set_parse("", 0, &set, NULL) < 0);
	assert_int_equal(port_set_parse("*", 0, &set, NULL), 0);
	assert_true(set.any);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_good),
		cmocka_unit_test(test_bad),
		cmocka_unit_test(test_long),
		cmocka_unit_test(test_port_sets),
	};

	return cmocka_run_group_tests_name("net-rule", tests, NULL, NULL);
}
