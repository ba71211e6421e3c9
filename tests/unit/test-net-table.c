/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The judge of network rules: which points a policy's rules reach, and which of them decides.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <arpa/inet.h>
#include <cmocka.h>

#include "base/util.h"
#include "policy/net_rule.h"
#include "policy/net_table.h"

#define RULES(...) ((const char *const[]){__VA_ARGS__, NULL})
#define NONE	   ((const char *const[]){NULL})

static void add_rules(struct net_rules *to, const char *const *texts)
{
	for (; *texts; texts++) {
		to->v = xrealloc(to->v, to->n + 1, sizeof(*to->v));
		assert_int_equal(net_rule_parse(*texts, &to->v[to->n], NULL), 0);
		to->n++;
	}
}

static void free_rules(struct net_rules *rules)
{
	for (size_t i = 0; i < rules->n; i++)
		net_rule_done(&rules->v[i]);
	free(rules->v);
}

static struct net_point point(unsigned int proto, const char *host, uint16_t port)
{
	struct net_point p;
	uint8_t addr[16];
	bool v6 = strchr(host, ':') != NULL;

	assert_int_equal(inet_pton(v6 ? AF_INET6 : AF_INET, host, addr), 1);
	net_point_set(&p, proto, v6, addr, port);
	return p;
}

/* What decides about a point: "+RULE" where it is allowed, "-RULE" or "-" where not. */
static void assert_judged(const char *const *allow, const char *const *deny, struct net_point p,
			  const char *name, const char *expected)
{
	struct policy policy = {0};
	char got[128];
	const char *const names[] = {"other.example", name};
	const struct net_names_view view = {names, name ? 2 : 0};

	add_rules(&policy.net_allow, allow);
	add_rules(&policy.net_deny, deny);

	struct net_table t = net_table_of(&policy);
	struct net_judgement j = net_table_judge(&t, &p, name ? &view : NULL);

	snprintf(got, sizeof(got), "%c%s", j.allowed ? '+' : '-', j.rule ? j.rule->text : "");
	assert_string_equal(got, expected);
	free_rules(&policy.net_allow);
	free_rules(&policy.net_deny);
}

static void test_points(void **state)
{
	static const struct {
		const char *host;
		const char *text;
		bool v6;
		bool loopback;
	} rows[] = {
		{"10.0.0.1", "10.0.0.1:80", false, false},
		{"127.0.0.1", "127.0.0.1:80", false, true},
		{"127.255.3.4", "127.255.3.4:80", false, true},
		{"0.0.0.0", "127.0.0.1:80", false, true},
		{"::", "[::1]:80", true, true},
		{"::1", "[::1]:80", true, true},
		{"::2", "[::2]:80", true, false},
		{"::ffff:10.0.0.1", "10.0.0.1:80", false, false},
		{"::ffff:127.0.0.1", "127.0.0.1:80", false, true},
		{"::ffff:0.0.0.0", "127.0.0.1:80", false, true},
		/* IPv4-compatible and NAT64 addresses are addresses of their own. */
		{"::10.0.0.1", "[::10.0.0.1]:80", true, false},
		{"64:ff9b::10.0.0.1", "[64:ff9b::a00:1]:80", true, false},
		{"1::", "[1::]:80", true, false},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		char text[NET_POINT_TEXT_MAX];
		struct net_point p = point(NET_TCP, rows[i].host, 80);

		net_point_format(&p, text);
		assert_string_equal(text, rows[i].text);
		assert_int_equal(p.v6, rows[i].v6);
		assert_int_equal(net_point_is_loopback(&p), rows[i].loopback);
	}

	char text[NET_POINT_TEXT_MAX];
	struct net_point p = point(NET_ICMP, "::2", 80);

	assert_int_equal(p.port, 0);
	net_point_format(&p, text);
	assert_string_equal(text, "::2");
}

static void test_addresses(void **state)
{
	struct net_point ten = point(NET_TCP, "10.1.2.3", 443);

	(void)state;
	assert_judged(NONE, NONE, ten, NULL, "-");
	assert_judged(RULES("10.1.2.3:443"), NONE, ten, NULL, "+10.1.2.3:443");
	assert_judged(RULES("10.1.2.3:80,442-444"), NONE, ten, NULL, "+10.1.2.3:80,442-444");
	assert_judged(RULES("10.1.2.3:442"), NONE, ten, NULL, "-");
	assert_judged(RULES("10.1.2.2:443", "10.0.0.0/8"), NONE, ten, NULL, "+10.0.0.0/8");
	assert_judged(RULES("10.1.2.2/31"), NONE, ten, NULL, "+10.1.2.2/31");
	assert_judged(RULES("10.1.2.4/30"), NONE, ten, NULL, "-");
	assert_judged(RULES("0.0.0.0/0"), NONE, ten, NULL, "+0.0.0.0/0");
	assert_judged(RULES("::/0"), NONE, ten, NULL, "-");
	assert_judged(RULES("::ffff:10.1.2.3"), NONE, ten, NULL, "+::ffff:10.1.2.3");
	assert_judged(RULES("10.1.2.3"), NONE, point(NET_TCP, "::ffff:10.1.2.3", 9), NULL,
		      "+10.1.2.3");
	assert_judged(RULES("0.0.0.0/0"), NONE, point(NET_TCP, "2001:db8::1", 443), NULL, "-");
	assert_judged(RULES("[2001:db8::/33]:443"), NONE, point(NET_TCP, "2001:db8:7fff::1", 443),
		      NULL, "+[2001:db8::/33]:443");
	assert_judged(RULES("[2001:db8::/33]:443"), NONE, point(NET_TCP, "2001:db8:8000::1", 443),
		      NULL, "-");
	assert_judged(RULES("127.0.0.1"), NONE, point(NET_TCP, "0.0.0.0", 1), NULL, "+127.0.0.1");
	assert_judged(RULES("10.0.0.0/8"), NONE, point(NET_TCP, "0.0.0.0", 1), NULL, "-");
	assert_judged(RULES(":443"), NONE, point(NET_TCP, "::1", 443), NULL, "+:443");
}

static void test_protocols(void **state)
{
	(void)state;
	assert_judged(RULES("udp://10.0.0.1"), NONE, point(NET_TCP, "10.0.0.1", 1), NULL, "-");
	assert_judged(RULES("tcp://10.0.0.1"), NONE, point(NET_UDP, "10.0.0.1", 1), NULL, "-");
	assert_judged(RULES("10.0.0.1"), NONE, point(NET_UDP, "10.0.0.1", 1), NULL, "+10.0.0.1");
	assert_judged(RULES("10.0.0.1"), NONE, point(NET_ICMP, "10.0.0.1", 0), NULL, "-");
	assert_judged(RULES("*"), NONE, point(NET_ICMP, "10.0.0.1", 0), NULL, "-");
	assert_judged(RULES("icmp://*"), NONE, point(NET_ICMP, "10.0.0.1", 7), NULL, "+icmp://*");
	assert_judged(RULES("icmp://10.0.0.1"), NONE, point(NET_UDP, "10.0.0.1", 0), NULL, "-");
	/* Port 0 is nobody's. */
	assert_judged(RULES("10.0.0.1:1-65535"), NONE, point(NET_UDP, "10.0.0.1", 0), NULL, "-");
}

static void test_deny(void **state)
{
	struct net_point ten = point(NET_TCP, "10.1.2.3", 443);

	(void)state;
	assert_judged(RULES("*"), RULES("10.0.0.0/8"), ten, NULL, "-10.0.0.0/8");
	assert_judged(RULES("10.1.2.3"), RULES("10.0.0.0/8"), ten, NULL, "-10.0.0.0/8");
	assert_judged(RULES("*"), RULES("udp://10.0.0.0/8"), ten, NULL, "+*");
	assert_judged(RULES("*"), RULES("10.0.0.0/8:80"), ten, NULL, "+*");
	assert_judged(RULES("*"), RULES("10.0.0.0/8"), point(NET_TCP, "::ffff:10.1.2.3", 443), NULL,
		      "-10.0.0.0/8");
	assert_judged(RULES("*"), RULES("127.0.0.0/8"), point(NET_TCP, "::ffff:0.0.0.0", 1), NULL,
		      "-127.0.0.0/8");
	assert_judged(RULES("*"), RULES(":25"), point(NET_TCP, "::1", 25), NULL, "-:25");
	assert_judged(RULES("icmp://*"), RULES("*"), point(NET_ICMP, "10.0.0.1", 0), NULL,
		      "+icmp://*");
	assert_judged(RULES("icmp://*"), RULES("icmp://10.0.0.1"), point(NET_ICMP, "10.0.0.1", 0),
		      NULL, "-icmp://10.0.0.1");
}

static void test_names(void **state)
{
	struct net_point p = point(NET_TCP, "192.0.2.1", 443);

	(void)state;
	assert_judged(RULES("a.example:443"), NONE, p, NULL, "-");
	assert_judged(RULES("a.example:443"), NONE, p, "b.example", "-");
	assert_judged(RULES("A.Example:443"), NONE, p, "a.example", "+A.Example:443");
	assert_judged(RULES("a.example:80"), NONE, p, "a.example", "-");
	assert_judged(RULES("udp://a.example"), NONE, p, "a.example", "-");
	assert_judged(RULES("*.example.org"), NONE, p, "a.example.org", "+*.example.org");
	assert_judged(RULES("*.example.org"), NONE, p, "a.b.example.org", "+*.example.org");
	assert_judged(RULES("*.example.org"), NONE, p, "example.org", "-");
	assert_judged(RULES("*.example.org"), NONE, p, ".example.org", "-");
	assert_judged(RULES("*.example.org"), NONE, p, "badexample.org", "-");
	assert_judged(RULES("*.example.org"), NONE, p, "example.org.evil.example", "-");
	assert_judged(RULES("*"), RULES("a.example"), p, "a.example", "-a.example");
	assert_judged(RULES("*.example"), RULES("*.b.example"), p, "a.b.example", "-*.b.example");
}

static void test_protos_of_address(void **state)
{
	struct policy policy = {0};

	(void)state;
	add_rules(&policy.net_allow, RULES("tcp://10.0.0.1:443", "icmp://10.0.0.0/8", "udp://::1"));
	add_rules(&policy.net_deny, RULES("icmp://10.0.0.2", "tcp://10.0.0.1:80"));

	struct net_table t = net_table_of(&policy);
	struct net_point one = point(NET_UDP, "10.0.0.1", 0);
	struct net_point two = point(NET_UDP, "10.0.0.2", 0);
	struct net_point far = point(NET_UDP, "11.0.0.2", 0);

	assert_int_equal(net_table_protos(&t, &one, NULL), NET_TCP | NET_ICMP);
	assert_int_equal(net_table_protos(&t, &two, NULL), 0);
	assert_int_equal(net_table_protos(&t, &far, NULL), 0);
	assert_false(net_policy_tcp_by_port(&policy));
	assert_true(net_policy_has(&policy, NET_UDP));
	assert_false(net_policy_has_names(&policy));
	free_rules(&policy.net_allow);
	free_rules(&policy.net_deny);
}

static void test_ports(void **state)
{
	struct policy p = {0};

	(void)state;
	assert_false(net_policy_has_bind(&p));
	assert_false(net_policy_may_bind(&p, 0));
	assert_true(net_policy_tcp_by_port(&p));
	assert_int_equal(port_set_parse("0,80-90", 0, &p.bind_allow, NULL), 0);
	assert_int_equal(port_set_parse("80-89", 0, &p.bind_deny, NULL), 0);
	assert_true(net_policy_has_bind(&p));
	assert_true(net_policy_may_bind(&p, 0));
	assert_false(net_policy_may_bind(&p, 89));
	assert_true(net_policy_may_bind(&p, 90));
	assert_false(net_policy_may_bind(&p, 91));
	port_set_done(&p.bind_allow);
	assert_int_equal(port_set_parse("80-89", 0, &p.bind_allow, NULL), 0);
	assert_false(net_policy_has_bind(&p));
	port_set_done(&p.bind_allow);
	p.bind_allow.any = true;
	assert_true(net_policy_may_bind(&p, 79));
	assert_false(net_policy_may_bind(&p, 80));
	port_set_done(&p.bind_deny);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_points),	  cmocka_unit_test(test_addresses),
		cmocka_unit_test(test_protocols), cmocka_unit_test(test_deny),
		cmocka_unit_test(test_names),	  cmocka_unit_test(test_protos_of_address),
		cmocka_unit_test(test_ports),
	};

	return cmocka_run_group_tests_name("net-table", tests, NULL, NULL);
}
