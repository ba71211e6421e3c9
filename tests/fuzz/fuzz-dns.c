/* SPDX-License-Identifier: Apache-2.0 */
/*
 * DNS messages of both hostile sides. The first byte says whose: a question of the sandbox, which
 * must be answered by a reply to it, or a reply of a name server, from which a reply is made that
 * says the same. Then the host's files, which are text.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "fuzz.h"
#include "net/dns_message.h"
#include "net/host_config.h"

static uint8_t out[DNS_MESSAGE_MAX];

static void must(bool holds)
{
	if (!holds)
		abort();
}

static void check_answer(const struct dns_query *q, size_t n, size_t max)
{
	struct dns_reply reply;
	must(n <= (max < DNS_PLAIN_UDP ? DNS_PLAIN_UDP : max));
	if (!q->question.name.len)
		return;
	must(dns_reply_parse(out, n, &reply) == 0);
	must(reply.id == q->id && dns_name_eq(&reply.question.name, &q->question.name));
	must(reply.question.type == q->question.type);
}

static void check_query(const uint8_t *data, size_t n)
{
	struct dns_query q;
	struct dns_query again;
	char text[DNS_TEXT_SIZE];
	struct dns_name name;
	int r = dns_query_parse(data, n, &q);
	if (r < 0)
		return;
	check_answer(&q,
		     dns_answer_build(&q, r ? (unsigned int)r : DNS_REFUSED, NULL, q.udp_size, out),
		     q.udp_size);
	if (r)
		return;
	must(q.question.name.len >= 1 && q.question.name.wire[q.question.name.len - 1] == 0);
	if (dns_name_text(&q.question.name, text)) {
		must(strlen(text) < sizeof(text));
		must(dns_name_from_text(text, &name) && dns_name_eq(&name, &q.question.name));
	}
	size_t sent = dns_query_build(&q.question, 7, q.edns, q.dnssec, out);
	must(sent <= DNS_PLAIN_UDP && dns_query_parse(out, sent, &again) == 0);
	must(again.id == 7 && dns_name_eq(&again.question.name, &q.question.name));
}

static void check_reply(const uint8_t *data, size_t n)
{
	struct dns_reply reply;
	struct dns_addresses a;
	struct dns_addresses b;
	struct dns_query q = {.id = 1};
	if (dns_reply_parse(data, n, &reply) < 0)
		return;
	if (reply.question.type != DNS_A && reply.question.type != DNS_AAAA)
		return;
	if (dns_reply_addresses(data, n, &reply, &a) < 0)
		return;
	must(a.n <= DNS_ADDRESSES_MAX && a.n_chain <= DNS_CHAIN_MAX);
	q.question = reply.question;
	size_t made = dns_answer_build(&q, DNS_NOERROR, &a, DNS_MESSAGE_MAX, out);
	check_answer(&q, made, DNS_MESSAGE_MAX);
	if (reply.question.class != 1)
		return;
	must(dns_reply_parse(out, made, &reply) == 0);
	must(dns_reply_addresses(out, made, &reply, &b) == 0);
	must(b.n == a.n && b.n_chain == a.n_chain);
	for (size_t i = 0; i < a.n; i++)
		must(memcmp(a.v[i].addr, b.v[i].addr, a.v[i].v6 ? 16 : 4) == 0);
}

static void check_files(const uint8_t *data, size_t n)
{
	auto_free char *text = xstrndup((const char *)data, n);
	struct host_config c = {0};
	host_config_add_resolv(&c, text);
	host_config_add_hosts(&c, text);
	must(c.n_servers >= 1 && c.n_servers <= HOST_SERVERS_MAX);
	host_config_done(&c);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (!size)
		return 0;
	switch (data[0] % 3) {
	case 0:
		check_query(data + 1, size - 1);
		break;
	case 1:
		check_reply(data + 1, size - 1);
		break;
	default:
		check_files(data + 1, size - 1);
		break;
	}
	return 0;
}
