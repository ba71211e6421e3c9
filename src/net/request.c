/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is answered to a question: nothing of names that no rule knows; for addresses, a reply that
 * is made anew of those that count, and pinned before it is sent; for other types, what the host's
 * name server says. A single-label name is looked for in the host's search list, and the forms that
 * a search list makes of allowed names do not exist, so that whoever searches goes on.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "base/util.h"
#include "net/relay.h"
#include "net/resolver_internal.h"

#define HOSTS_TTL      60 /* of what the host's own file says */
#define LOOPBACK_TTL   86400
#define STAMP_EVERY_MS 1000
#define CLASS_IN       1

struct request {
	struct dns_query query;
	struct asker asker;
	enum names_kind kind;
	char name[DNS_TEXT_SIZE]; /* whose pins these are */
	size_t searched;	  /* entries of the search list that were tried */
	bool starting;
};

/* --- The host's files ------------------------------------------------------------------------- */

static void refresh_host(struct resolver *r)
{
	struct host_stamp stamp;
	int64_t now = net_now_ms();
	if (r->stamp_ms && now - r->stamp_ms < STAMP_EVERY_MS)
		return;
	r->stamp_ms = now;
	host_stamp_get(&stamp);
	if (memcmp(&stamp, &r->stamp, sizeof(stamp)) == 0)
		return;
	r->stamp = stamp;
	host_config_done(&r->host);
	host_config_read(&r->host);
}

/* Whether the host's file has NAME; then RET is what it says of the type. */
static bool find_in_hosts(const struct resolver *r, const char *name, bool v6,
			  struct dns_addresses *ret)
{
	bool found = false;
	ret->n = ret->n_chain = 0;
	for (size_t i = 0; i < r->host.n_hosts; i++) {
		const struct host_address *h = &r->host.hosts[i];
		if (!str_eq(h->name, name))
			continue;
		found = true;
		if (h->v6 != v6 || ret->n == DNS_ADDRESSES_MAX)
			continue;
		struct dns_address *a = &ret->v[ret->n++];
		*a = (struct dns_address){.v6 = v6, .ttl = HOSTS_TTL};
		memcpy(a->addr, h->addr, sizeof(a->addr));
	}
	return found;
}

/* --- Replies ---------------------------------------------------------------------------------- */

static void send_to(struct resolver *r, const struct asker *asker, const struct dns_query *query,
		    unsigned int rcode, const struct dns_addresses *addresses)
{
	size_t max = asker->connection ? DNS_MESSAGE_MAX : query->udp_size;
	size_t n = dns_answer_build(query, rcode, addresses, max, r->out);
	asker_reply(r, asker, r->out, n);
}

static void end_request(struct resolver *r, struct request *q)
{
	if (q->starting)
		r->n_starting--;
	free(q);
}

static void answer(struct resolver *r, struct request *q, unsigned int rcode,
		   const struct dns_addresses *addresses)
{
	send_to(r, &q->asker, &q->query, rcode, addresses);
	end_request(r, q);
}

static void tell_refused(struct resolver *r, const char *name, const struct dns_address *a)
{
	char text[INET6_ADDRSTRLEN];
	if (!r->refused)
		return;
	if (a)
		inet_ntop(a->v6 ? AF_INET6 : AF_INET, a->addr, text, sizeof(text));
	r->refused(r->refused_data, name, a ? text : NULL);
}

/* Leaves what counts, and tells of one that does not. */
static void filter(struct resolver *r, const struct request *q, bool from_hosts,
		   struct dns_addresses *a)
{
	size_t kept = 0;
	for (size_t i = 0; i < a->n; i++) {
		if (names_address_counts(q->kind, from_hosts, a->v[i].v6, a->v[i].addr))
			a->v[kept++] = a->v[i];
		else if (i == kept)
			tell_refused(r, q->name, &a->v[i]);
	}
	a->n = kept;
}

static int pin(struct resolver *r, const struct request *q, const struct dns_addresses *a)
{
	int64_t now = net_now_ms();
	int e = 0;
	if (!names_matter(r->names, q->name))
		return 0;
	names_renew(r->names, q->name, q->query.question.type == DNS_AAAA);
	for (size_t i = 0; i < a->n && e == 0; i++)
		e = names_pin(r->names, q->name, a->v[i].v6, a->v[i].addr, a->v[i].ttl, now);
	return e;
}

static void answer_addresses(struct resolver *r, struct request *q, bool from_hosts,
			     struct dns_addresses *a)
{
	filter(r, q, from_hosts, a);
	answer(r, q, pin(r, q, a) < 0 ? DNS_SERVFAIL : DNS_NOERROR, a);
}

/* --- From upstream ---------------------------------------------------------------------------- */

static void ask(struct resolver *r, struct request *q);

static bool is_single_label(const char *name)
{
	return !strchr(name, '.');
}

static bool asks_address(const struct dns_query *query)
{
	return query->question.type == DNS_A || query->question.type == DNS_AAAA;
}

/* A single-label name that was not found here is looked for at the next place. */
static bool search_on(struct resolver *r, struct request *q)
{
	if (!is_single_label(q->name) || q->searched >= r->host.search.n)
		return false;
	q->searched++;
	ask(r, q);
	return true;
}

static void on_addresses(struct resolver *r, struct request *q, const struct lookup_result *result)
{
	struct dns_addresses a;
	if (dns_reply_addresses(result->data, result->n, &result->reply, &a) < 0) {
		answer(r, q, DNS_SERVFAIL, NULL);
		return;
	}
	if (!a.n && (result->reply.rcode == DNS_NXDOMAIN || is_single_label(q->name)) &&
	    search_on(r, q))
		return;
	if (result->reply.rcode != DNS_NOERROR) {
		answer(r, q, result->reply.rcode, NULL);
		return;
	}
	/* What was found by searching is this name's own. */
	if (is_single_label(q->name))
		a.n_chain = 0;
	answer_addresses(r, q, false, &a);
}

static void on_lookup(struct resolver *r, void *data, const struct lookup_result *result)
{
	struct request *q = data;
	if (result->error) {
		answer(r, q, DNS_SERVFAIL, NULL);
		return;
	}
	if (asks_address(&q->query)) {
		on_addresses(r, q, result);
		return;
	}
	if (!q->asker.connection && result->n > q->query.udp_size) {
		size_t n = dns_answer_build(&q->query, result->reply.rcode, NULL, 0, r->out);
		dns_answer_truncate(r->out);
		asker_reply(r, &q->asker, r->out, n);
		end_request(r, q);
		return;
	}
	dns_answer_relay(&q->query, result->data, result->n);
	asker_reply(r, &q->asker, result->data, result->n);
	end_request(r, q);
}

/* The question as it goes out: a single label with the search list's next entry behind it, which
 * comes before the label alone, as in libc. */
static bool outgoing(const struct resolver *r, const struct request *q, struct dns_question *ret)
{
	*ret = q->query.question;
	if (!is_single_label(q->name) || !asks_address(&q->query))
		return true;
	auto_free char *text = q->searched < r->host.search.n
				       ? xasprintf("%s.%s", q->name, r->host.search.v[q->searched])
				       : xstrdup(q->name);
	return dns_name_from_text(text, &ret->name);
}

/* Takes Q. */
static void ask(struct resolver *r, struct request *q)
{
	struct dns_question question;
	const struct dns_query *query = &q->query;
	/* For addresses we ask as we like: the reply is made anew. */
	bool edns = query->edns || asks_address(query);
	bool dnssec = query->dnssec && !asks_address(query);
	if (!outgoing(r, q, &question) ||
	    lookup_start(r, &question, edns, dnssec, on_lookup, q) < 0)
		answer(r, q, DNS_SERVFAIL, NULL);
}

static bool is_localhost(const char *name)
{
	return str_eq(name, "localhost") || str_ends(name, ".localhost");
}

static void set_loopback(bool v6, struct dns_addresses *ret)
{
	ret->n_chain = 0;
	ret->n = 1;
	ret->v[0] = (struct dns_address){.v6 = v6, .ttl = LOOPBACK_TTL};
	if (v6)
		ret->v[0].addr[15] = 1;
	else
		memcpy(ret->v[0].addr, (const uint8_t[]){127, 0, 0, 1}, 4);
}

/* Takes Q. */
static void resolve(struct resolver *r, struct request *q)
{
	struct dns_addresses a;
	bool v6 = q->query.question.type == DNS_AAAA;
	refresh_host(r);
	bool found = asks_address(&q->query) && find_in_hosts(r, q->name, v6, &a);
	if (!found && asks_address(&q->query) && is_localhost(q->name)) {
		set_loopback(v6, &a);
		found = true;
	}
	if (found)
		answer_addresses(r, q, true, &a);
	else
		ask(r, q);
}

/* --- Questions -------------------------------------------------------------------------------- */

/* Whatever the servers say, these are this machine (RFC 6761). */
static void answer_localhost(struct resolver *r, const struct dns_query *query,
			     const struct asker *asker)
{
	struct dns_addresses a = {0};
	if (asks_address(query))
		set_loopback(query->question.type == DNS_AAAA, &a);
	send_to(r, asker, query, DNS_NOERROR, &a);
}

/*
 * What NAME is where it is no rule's own: a form that the search list makes of an allowed name.
 * True if it is such; a single label keeps its kind, in RET_KIND, and its name, in RET.
 */
static bool is_searched(const struct resolver *r, const char *name, char *ret,
			enum names_kind *ret_kind)
{
	for (size_t i = 0; i < r->host.search.n; i++) {
		const char *domain = r->host.search.v[i];
		size_t n = strlen(name);
		size_t d = strlen(domain);
		if (n <= d + 1 || name[n - d - 1] != '.' || !str_eq(name + n - d, domain))
			continue;
		memcpy(ret, name, n - d - 1);
		ret[n - d - 1] = '\0';
		*ret_kind = names_judge(r->names, ret);
		if (*ret_kind == NAMES_LITERAL || *ret_kind == NAMES_WILDCARD)
			return true;
	}
	return false;
}

static enum names_kind judge(struct resolver *r, char *name, bool *ret_absent)
{
	char rest[DNS_TEXT_SIZE];
	enum names_kind other;
	enum names_kind kind = names_judge(r->names, name);
	*ret_absent = false;
	if (kind != NAMES_REFUSED)
		return kind;
	refresh_host(r);
	if (!is_searched(r, name, rest, &other))
		return kind;
	if (!is_single_label(rest)) {
		*ret_absent = true;
		return kind;
	}
	memcpy(name, rest, sizeof(rest));
	return other;
}

/*
 * Types that say nothing of the name or that hold addresses which would not be pinned: a client
 * that finds no HTTPS record asks for the address.
 */
static bool is_empty_type(enum names_kind kind, uint16_t type)
{
	return kind != NAMES_FREE && (type == DNS_HTTPS || type == DNS_SVCB);
}

static unsigned int check(const struct dns_query *query, int parsed)
{
	uint16_t type = query->question.type;
	if (parsed)
		return (unsigned int)parsed;
	if (query->question.class != CLASS_IN || type == DNS_OPT || type == 0)
		return DNS_REFUSED;
	return type >= DNS_META_FIRST && type <= DNS_META_LAST ? DNS_NOTIMP : DNS_NOERROR;
}

int request_handle(struct resolver *r, const uint8_t *data, size_t n, const struct asker *asker)
{
	struct dns_query query;
	char name[DNS_TEXT_SIZE] = "";
	bool absent = false;
	int parsed = dns_query_parse(data, n, &query);
	if (parsed < 0)
		return parsed;
	if (r->relay && !net_relay_count(r->relay, n))
		return -EDQUOT;
	unsigned int rcode = check(&query, parsed);
	if (rcode == DNS_NOERROR && !dns_name_text(&query.question.name, name))
		rcode = DNS_REFUSED;
	if (rcode != DNS_NOERROR) {
		send_to(r, asker, &query, rcode, NULL);
		return 0;
	}
	enum names_kind kind = judge(r, name, &absent);
	if (is_localhost(name) && (kind == NAMES_REFUSED || kind == NAMES_FREE)) {
		answer_localhost(r, &query, asker);
		return 0;
	}
	if (kind == NAMES_REFUSED || kind == NAMES_DENIED) {
		if (!absent)
			tell_refused(r, name, NULL);
		send_to(r, asker, &query, absent ? DNS_NXDOMAIN : DNS_REFUSED, NULL);
		return 0;
	}
	if (is_empty_type(kind, query.question.type)) {
		send_to(r, asker, &query, DNS_NOERROR, NULL);
		return 0;
	}
	struct request *q = xnew(struct request);
	q->query = query;
	q->asker = *asker;
	q->kind = kind;
	memcpy(q->name, name, sizeof(name));
	resolve(r, q);
	return 0;
}

void request_refresh(struct resolver *r, const char *name, enum names_kind kind, uint16_t type)
{
	struct request *q = xnew(struct request);
	q->query = (struct dns_query){.recursion = true, .udp_size = DNS_PLAIN_UDP};
	q->query.question.type = type;
	q->query.question.class = CLASS_IN;
	q->asker = (struct asker){.fd = -1};
	q->kind = kind;
	q->starting = true;
	r->n_starting++;
	size_t n = strlen(name);
	bool good = n < sizeof(q->name) && dns_name_from_text(name, &q->query.question.name);
	if (!good) {
		end_request(r, q);
		return;
	}
	memcpy(q->name, name, n + 1);
	resolve(r, q);
}
