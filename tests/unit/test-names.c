/* SPDX-License-Identifier: Apache-2.0 */
/*
 * DNS messages, classes of addresses, the host's files, and which names and pins hold: all that the
 * resolver decides without a socket.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <errno.h>

#include "base/util.h"
#include "net/address_class.h"
#include "net/dns_message.h"
#include "net/host_config.h"
#include "net/names.h"
#include "policy/net_rule.h"

/* --- Messages --------------------------------------------------------------------------------- */

#define HEADER(flags, answers) "\x12\x34" flags "\x00\x01\x00" answers "\x00\x00\x00\x00"
#define WWW                                                                                        \
	"\x03www\x07"                                                                              \
	"example\x03"                                                                              \
	"com\x00"
#define QUESTION_A    WWW "\x00\x01\x00\x01"
#define MESSAGE(text) (const uint8_t *)(text), sizeof(text) - 1

static void test_query(void **state)
{
	struct dns_query q;
	char text[DNS_TEXT_SIZE];
	(void)state;
	assert_int_equal(
		dns_query_parse(MESSAGE(HEADER("\x01\x00", "\x00") "\x03WwW\x07"
								   "example\x03"
								   "com\x00\x00\x1c\x00\x01"),
				&q),
		0);
	assert_int_equal(q.id, 0x1234);
	assert_int_equal(q.question.type, DNS_AAAA);
	assert_true(dns_name_text(&q.question.name, text));
	assert_string_equal(text, "www.example.com");
	assert_memory_equal(q.question.asked, "\x03WwW", 4);
	assert_false(q.edns);
	assert_int_equal(q.udp_size, 512);
}

static void test_query_faults(void **state)
{
	static const struct {
		const char *data;
		size_t n;
		int result;
	} rows[] = {
		/* clang-format off */
		{ "\x12\x34", 2, -EBADMSG },
		{ HEADER("\x81\x00", "\x00") QUESTION_A, 12 + 21, -EBADMSG }, /* a reply */
		{ HEADER("\x29\x00", "\x00") QUESTION_A, 12 + 21, DNS_NOTIMP }, /* update */
		{ HEADER("\x01\x00", "\x01") QUESTION_A, 12 + 21, DNS_FORMERR }, /* with answers */
		{ HEADER("\x01\x00", "\x00") QUESTION_A, 12 + 20, DNS_FORMERR }, /* cut */
		{ HEADER("\x01\x00", "\x00") "\xc0\x0c\x00\x01\x00\x01", 12 + 6, DNS_FORMERR },
		{ HEADER("\x01\x00", "\x00") "\x41www\x00\x00\x01\x00\x01", 12 + 9, DNS_FORMERR },
		/* clang-format on */
	};
	struct dns_query q;
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		assert_int_equal(dns_query_parse((const uint8_t *)rows[i].data, rows[i].n, &q),
				 rows[i].result);
}

#define ALIAS_RECORD(target) "\xc0\x0c\x00\x05\x00\x01\x00\x00\x00\x3c" target
#define CDN                                                                                        \
	"\x00\x05\x03"                                                                             \
	"cdn\x00"

static void test_reply_with_alias(void **state)
{
	static const char data[] = HEADER("\x81\x80", "\x03") QUESTION_A ALIAS_RECORD(
		CDN) "\x03"
		     "CDN\x00\x00\x01\x00\x01\x00\x00\x00\x05\x00\x04\xcb\x00\x71\x07"
		     "\x05other\x00\x00\x01\x00\x01\x00\x00\x00\x05\x00\x04\x01\x02\x03\x04";
	struct dns_reply reply;
	struct dns_addresses a;
	struct dns_query query;
	uint8_t out[DNS_MESSAGE_MAX];
	(void)state;
	assert_int_equal(dns_reply_parse(MESSAGE(data), &reply), 0);
	assert_int_equal(dns_reply_addresses(MESSAGE(data), &reply, &a), 0);
	assert_int_equal(a.n_chain, 1);
	assert_int_equal(a.n, 1);
	assert_memory_equal(a.v[0].addr, "\xcb\x00\x71\x07", 4);
	assert_int_equal(a.v[0].ttl, 5);

	/* What we make of it says the same. */
	assert_int_equal(dns_query_parse(MESSAGE(HEADER("\x01\x00", "\x00") QUESTION_A), &query),
			 0);
	size_t n = dns_answer_build(&query, DNS_NOERROR, &a, DNS_PLAIN_UDP, out);
	assert_int_equal(dns_reply_parse(out, n, &reply), 0);
	memset(&a, 0, sizeof(a));
	assert_int_equal(dns_reply_addresses(out, n, &reply, &a), 0);
	assert_int_equal(a.n, 1);
	assert_memory_equal(a.v[0].addr, "\xcb\x00\x71\x07", 4);
}

static void test_alias_loop(void **state)
{
	static const char data[] =
		HEADER("\x81\x80", "\x01") QUESTION_A ALIAS_RECORD("\x00\x02\xc0\x0c");
	struct dns_reply reply;
	struct dns_addresses a;
	(void)state;
	assert_int_equal(dns_reply_parse(MESSAGE(data), &reply), 0);
	assert_int_equal(dns_reply_addresses(MESSAGE(data), &reply, &a), -ELOOP);
}

static void test_reply_faults(void **state)
{
	static const struct {
		const char *data;
		size_t n;
	} rows[] = {
		/* clang-format off */
		/* an address of three bytes, a record that is cut, an alias with a rest behind it */
		{ HEADER("\x81\x80", "\x01") QUESTION_A
		  "\xc0\x0c\x00\x01\x00\x01\x00\x00\x00\x3c\x00\x03\x01\x02\x03", 12 + 21 + 15 },
		{ HEADER("\x81\x80", "\x01") QUESTION_A
		  "\xc0\x0c\x00\x01\x00\x01\x00\x00\x00\x3c\x00\x04\x01\x02\x03", 12 + 21 + 15 },
		{ HEADER("\x81\x80", "\x01") QUESTION_A
		  ALIAS_RECORD("\x00\x03\xc0\x0c\x00"), 12 + 21 + 15 },
		/* pointers forward and to themselves */
		{ HEADER("\x81\x80", "\x01") QUESTION_A
		  "\xc0\x21\x00\x01\x00\x01\x00\x00\x00\x3c\x00\x04\x01\x02\x03\x04", 12 + 21 + 16 },
		{ HEADER("\x81\x80", "\x01") QUESTION_A
		  "\xc0\x25\x00\x01\x00\x01\x00\x00\x00\x3c\x00\x04\x01\x02\x03\x04", 12 + 21 + 16 },
		/* a query is no reply */
		{ HEADER("\x01\x00", "\x00") QUESTION_A, 12 + 21 },
		/* clang-format on */
	};
	struct dns_reply reply;
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		assert_int_equal(dns_reply_parse((const uint8_t *)rows[i].data, rows[i].n, &reply),
				 -EBADMSG);
}

static void test_answer_is_truncated(void **state)
{
	struct dns_query query;
	struct dns_addresses a = {.n = DNS_ADDRESSES_MAX};
	uint8_t out[DNS_MESSAGE_MAX];
	struct dns_reply reply;
	(void)state;
	assert_int_equal(dns_query_parse(MESSAGE(HEADER("\x01\x00", "\x00") QUESTION_A), &query),
			 0);
	size_t n = dns_answer_build(&query, DNS_NOERROR, &a, DNS_PLAIN_UDP, out);
	assert_int_equal(n, 12 + 21);
	assert_int_equal(dns_reply_parse(out, n, &reply), 0);
	assert_true(reply.truncated);
	n = dns_answer_build(&query, DNS_NOERROR, &a, DNS_MESSAGE_MAX, out);
	assert_int_equal(n, 12 + 21 + 64 * 16);
}

/* --- Addresses -------------------------------------------------------------------------------- */

static void test_classes(void **state)
{
	static const struct {
		const char *text;
		enum address_class class;
	} rows[] = {
		/* clang-format off */
		{ "93.184.216.34", ADDRESS_PUBLIC },
		{ "203.0.113.5", ADDRESS_PUBLIC },
		{ "172.15.255.255", ADDRESS_PUBLIC },
		{ "172.32.0.0", ADDRESS_PUBLIC },
		{ "10.1.2.3", ADDRESS_PRIVATE },
		{ "172.16.0.1", ADDRESS_PRIVATE },
		{ "172.31.255.255", ADDRESS_PRIVATE },
		{ "192.168.1.1", ADDRESS_PRIVATE },
		{ "100.64.0.1", ADDRESS_PRIVATE },
		{ "0.0.0.0", ADDRESS_SPECIAL },
		{ "127.0.0.1", ADDRESS_SPECIAL },
		{ "127.255.0.1", ADDRESS_SPECIAL },
		{ "169.254.169.254", ADDRESS_SPECIAL },
		{ "100.100.100.200", ADDRESS_SPECIAL },
		{ "224.0.0.1", ADDRESS_SPECIAL },
		{ "255.255.255.255", ADDRESS_SPECIAL },
		{ "2606:2800:220:1::1", ADDRESS_PUBLIC },
		{ "2001:db8::1", ADDRESS_PUBLIC },
		{ "64:ff9b::203.0.113.5", ADDRESS_PUBLIC },
		{ "64:ff9b::10.0.0.1", ADDRESS_SPECIAL },
		{ "64:ff9b::127.0.0.1", ADDRESS_SPECIAL },
		{ "2002:cb00:7105::1", ADDRESS_PUBLIC },
		{ "2002:7f00:1::1", ADDRESS_SPECIAL },
		{ "2001::1", ADDRESS_SPECIAL },
		{ "::", ADDRESS_SPECIAL },
		{ "::1", ADDRESS_SPECIAL },
		{ "::127.0.0.1", ADDRESS_SPECIAL },
		{ "::ffff:203.0.113.5", ADDRESS_SPECIAL },
		{ "fe80::1", ADDRESS_SPECIAL },
		{ "ff02::1", ADDRESS_SPECIAL },
		{ "fd00:ec2::254", ADDRESS_SPECIAL },
		{ "fd00::1", ADDRESS_PRIVATE },
		{ "fc00::1", ADDRESS_PRIVATE },
		/* clang-format on */
	};
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		uint8_t addr[16];
		bool v6 = strchr(rows[i].text, ':');
		assert_int_equal(inet_pton(v6 ? AF_INET6 : AF_INET, rows[i].text, addr), 1);
		if (address_class(v6, addr) != rows[i].class)
			fail_msg("%s", rows[i].text);
	}
}

static void test_host_files(void **state)
{
	struct host_config c = {0};
	(void)state;
	host_config_add_resolv(&c, "# comment\ndomain first.example\nnameserver\t10.0.0.1 \n"
				   "search A.example. b.example\nnameserver ::1\nnameserver x\n"
				   "nameserver 10.0.0.2\nnameserver 10.0.0.3\noptions ndots:5");
	host_config_add_hosts(&c, "127.0.0.1 localhost\n10.0.0.9\tDB db.local # end\nnonsense\n"
				  "fe80::1%lo link\n::2 six");
	assert_int_equal(c.n_servers, 3);
	assert_int_equal(c.servers[0].v4.sin_port, htons(53));
	assert_int_equal(c.servers[1].sa.sa_family, AF_INET6);
	assert_int_equal(c.search.n, 2);
	assert_string_equal(c.search.v[0], "a.example");
	assert_int_equal(c.n_hosts, 5);
	assert_string_equal(c.hosts[1].name, "db");
	assert_memory_equal(c.hosts[2].addr, "\x0a\x00\x00\x09", 4);
	assert_true(c.hosts[4].v6);
	host_config_done(&c);
	host_config_add_resolv(&c, "");
	assert_int_equal(c.n_servers, 1);
	assert_int_equal(c.servers[0].v4.sin_addr.s_addr, htonl(INADDR_LOOPBACK));
	host_config_done(&c);
}

/* --- Names and pins --------------------------------------------------------------------------- */

struct rules {
	struct net_rule allow_v[4], deny_v[4];
	struct net_rules allow, deny;
	struct names *names;
};

static void make(struct rules *r, const char *const *allow, const char *const *deny)
{
	memset(r, 0, sizeof(*r));
	r->allow.v = r->allow_v;
	r->deny.v = r->deny_v;
	for (; *allow; allow++)
		assert_int_equal(net_rule_parse(*allow, &r->allow.v[r->allow.n++], NULL), 0);
	for (; *deny; deny++)
		assert_int_equal(net_rule_parse(*deny, &r->deny.v[r->deny.n++], NULL), 0);
	r->names = names_new(&r->allow, &r->deny);
}

static void unmake(struct rules *r)
{
	names_free(r->names);
	for (size_t i = 0; i < r->allow.n; i++)
		net_rule_done(&r->allow.v[i]);
	for (size_t i = 0; i < r->deny.n; i++)
		net_rule_done(&r->deny.v[i]);
}

#define LIST(...)                                                                                  \
	(const char *const[])                                                                      \
	{                                                                                          \
		__VA_ARGS__, NULL                                                                  \
	}
#define NONE                                                                                       \
	(const char *const[])                                                                      \
	{                                                                                          \
		NULL                                                                               \
	}

static void test_judge(void **state)
{
	struct rules r;
	(void)state;
	make(&r, LIST("10.0.0.0/8", ":443"), NONE);
	assert_null(r.names);
	unmake(&r);
	make(&r, LIST("api.example.com:443", "*.cdn.example"), LIST("bad.cdn.example"));
	assert_int_equal(names_judge(r.names, "api.example.com"), NAMES_LITERAL);
	assert_int_equal(names_judge(r.names, "x.cdn.example"), NAMES_WILDCARD);
	assert_int_equal(names_judge(r.names, "x.y.cdn.example"), NAMES_WILDCARD);
	assert_int_equal(names_judge(r.names, "cdn.example"), NAMES_REFUSED);
	assert_int_equal(names_judge(r.names, "xcdn.example"), NAMES_REFUSED);
	assert_int_equal(names_judge(r.names, "bad.cdn.example"), NAMES_DENIED);
	assert_int_equal(names_judge(r.names, "x.api.example.com"), NAMES_REFUSED);
	assert_int_equal(names_judge(r.names, ""), NAMES_REFUSED);
	unmake(&r);
	make(&r, LIST("*"), LIST("evil.example", "*.ads.example:80"));
	assert_int_equal(names_judge(r.names, "good.example"), NAMES_FREE);
	assert_int_equal(names_judge(r.names, "evil.example"), NAMES_DENIED);
	assert_int_equal(names_judge(r.names, "x.ads.example"), NAMES_FREE);
	assert_true(names_matter(r.names, "x.ads.example"));
	assert_false(names_matter(r.names, "good.example"));
	unmake(&r);
}

static const uint8_t public_addr[4] = {203, 0, 113, 5};
static const uint8_t private_addr[4] = {10, 0, 0, 5};
static const uint8_t own_addr[4] = {127, 0, 0, 1};

static void test_private_answers(void **state)
{
	static const uint8_t *const addrs[] = {public_addr, private_addr, own_addr};
	static const struct {
		enum names_kind kind;
		bool hosts;
		bool counts[3];
	} rows[] = {
		{NAMES_LITERAL, false, {true, true, false}},
		{NAMES_LITERAL, true, {true, true, true}},
		{NAMES_WILDCARD, false, {true, false, false}},
		{NAMES_WILDCARD, true, {true, false, false}},
		{NAMES_FREE, false, {true, true, true}},
		{NAMES_REFUSED, false, {false, false, false}},
	};
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		for (size_t a = 0; a < ARRAY_SIZE(addrs); a++)
			assert_int_equal(
				names_address_counts(rows[i].kind, rows[i].hosts, false, addrs[a]),
				rows[i].counts[a]);
}

#define MINUTE ((int64_t)60000)

static void test_pins(void **state)
{
	struct rules r;
	const char *found[4];
	(void)state;
	make(&r, LIST("a.example", "*.b.example"), NONE);
	assert_int_equal(names_of_address_at(r.names, false, public_addr, found, 4, 0), 0);
	names_pin(r.names, "a.example", false, public_addr, 60, 0);
	names_pin(r.names, "x.b.example", false, public_addr, 0, 0);
	assert_int_equal(names_of_address_at(r.names, false, public_addr, found, 4, 1), 2);
	assert_int_equal(names_of_address_at(r.names, false, public_addr, found, 1, 1), 1);
	assert_int_equal(names_of_address_at(r.names, false, private_addr, found, 4, 1), 0);
	assert_int_equal(names_of_address_at(r.names, true, (const uint8_t[16]){203, 0, 113, 5},
					     found, 4, 1),
			 0);
	/* Eleven minutes and ten: the second's time to live was none. */
	assert_int_equal(
		names_of_address_at(r.names, false, public_addr, found, 4, 10 * MINUTE + 2), 1);
	assert_string_equal(found[0], "a.example");
	/* Use has kept it; after a day without word from DNS it goes all the same. */
	for (int64_t t = 15 * MINUTE; t < 24 * (60 * MINUTE); t += 9 * MINUTE)
		assert_int_equal(names_of_address_at(r.names, false, public_addr, found, 4, t), 1);
	assert_int_equal(
		names_of_address_at(r.names, false, public_addr, found, 4, 24 * (60 * MINUTE) + 1),
		0);
	unmake(&r);
}

static void test_hosts_text(void **state)
{
	struct rules r;
	(void)state;
	make(&r, LIST("a.example", "*.b.example"), LIST("no.example"));
	names_pin(r.names, "a.example", false, public_addr, 60, 0);
	names_pin(r.names, "x.b.example", false, private_addr, 60, 0);
	names_pin(r.names, "no.example", false, private_addr, 60, 0);
	char *text = names_hosts_text(r.names, 1);
	assert_string_equal(text, "127.0.0.1 localhost\n::1 localhost\n203.0.113.5 a.example\n");
	free(text);
	names_renew(r.names, "a.example", false);
	names_pin(r.names, "a.example", false, private_addr, 60, 2);
	text = names_hosts_text(r.names, 3);
	assert_string_equal(text, "127.0.0.1 localhost\n::1 localhost\n10.0.0.5 a.example\n");
	free(text);
	text = names_hosts_text(r.names, 2 * MINUTE);
	assert_string_equal(text, "127.0.0.1 localhost\n::1 localhost\n");
	free(text);
	unmake(&r);
}

static void test_many_names(void **state)
{
	struct rules r;
	const char *found[4];
	int refused = 0;
	(void)state;
	make(&r, LIST("*.b.example"), NONE);
	for (int i = 0; i < 10000; i++) {
		auto_free char *name = xasprintf("n%d.b.example", i);
		refused += names_pin(r.names, name, false, public_addr, 60, 0) == -ENOSPC;
	}
	assert_int_equal(refused, 10000 - 4096);
	/* Once the pins have run out, and nobody looks at the names any more, there is room. */
	assert_int_equal(names_pin(r.names, "new.b.example", false, private_addr, 60, 22 * MINUTE),
			 0);
	assert_int_equal(names_of_address_at(r.names, false, private_addr, found, 4, 22 * MINUTE),
			 1);
	unmake(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_query),
		cmocka_unit_test(test_query_faults),
		cmocka_unit_test(test_reply_with_alias),
		cmocka_unit_test(test_alias_loop),
		cmocka_unit_test(test_reply_faults),
		cmocka_unit_test(test_answer_is_truncated),
		cmocka_unit_test(test_classes),
		cmocka_unit_test(test_host_files),
		cmocka_unit_test(test_judge),
		cmocka_unit_test(test_private_answers),
		cmocka_unit_test(test_pins),
		cmocka_unit_test(test_hosts_text),
		cmocka_unit_test(test_many_names),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
