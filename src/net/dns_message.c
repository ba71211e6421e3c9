/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading and writing of DNS messages. Reading goes through struct reader, which never leaves the
 * message; a failed read sticks, so that lengths are checked in one place.
 */
#include "net/dns_message.h"

#include <errno.h>
#include <string.h>

#include "base/util.h"

#define FLAG_REPLY     0x8000
#define OPCODE_MASK    0x7800
#define FLAG_TRUNCATED 0x0200
#define FLAG_RD	       0x0100
#define FLAG_RA	       0x0080
#define FLAG_CD	       0x0010
#define RCODE_MASK     0x000f
#define EDNS_DO	       0x8000
#define CLASS_IN       1
#define LABEL_MAX      63
#define POINTER	       0xc0
#define POINTERS_MAX   32
#define RECORDS_MAX    1024 /* in one section */

struct reader {
	const uint8_t *data;
	size_t n;
	size_t at;
	bool bad;
};

static uint8_t get8(struct reader *r)
{
	if (r->bad || r->at >= r->n) {
		r->bad = true;
		return 0;
	}
	return r->data[r->at++];
}

static uint16_t get16(struct reader *r)
{
	unsigned int high = get8(r);
	return (uint16_t)(high << 8 | get8(r));
}

static uint32_t get32(struct reader *r)
{
	uint32_t high = get16(r);
	return high << 16 | get16(r);
}

static void skip(struct reader *r, size_t n)
{
	if (r->bad || n > r->n - r->at)
		r->bad = true;
	else
		r->at += n;
}

static uint8_t lower(uint8_t c)
{
	return c >= 'A' && c <= 'Z' ? (uint8_t)(c - 'A' + 'a') : c;
}

/* --- Names ------------------------------------------------------------------------------------ */

/* Copies one label of LEN bytes; false if the name becomes too long. */
static bool get_label(struct reader *r, unsigned int len, struct dns_name *name, uint8_t *ret_asked)
{
	if (name->len + len + 2 > DNS_WIRE_MAX) {
		r->bad = true;
		return false;
	}
	name->wire[name->len] = (uint8_t)len;
	if (ret_asked)
		ret_asked[name->len] = (uint8_t)len;
	name->len++;
	for (unsigned int i = 0; i < len; i++, name->len++) {
		uint8_t c = get8(r);
		name->wire[name->len] = lower(c);
		if (ret_asked)
			ret_asked[name->len] = c;
	}
	return !r->bad;
}

/* A pointer may lead to what lies before the name's own start and any earlier pointer's target. */
static void get_name(struct reader *r, struct dns_name *ret, uint8_t *ret_asked)
{
	struct reader at = *r;
	size_t bound = r->at;
	size_t behind = 0;
	ret->len = 0;
	for (int pointers = 0;;) {
		uint8_t len = get8(&at);
		if (at.bad || len == 0)
			break;
		if ((len & POINTER) == POINTER) {
			size_t target = (size_t)(len & ~POINTER) << 8 | get8(&at);
			behind = behind ? behind : at.at;
			at.bad |= target >= bound || ++pointers > POINTERS_MAX;
			bound = at.at = target;
		} else if (len > LABEL_MAX || !get_label(&at, len, ret, ret_asked)) {
			at.bad = true;
		}
		if (at.bad)
			break;
	}
	ret->wire[ret->len] = 0;
	if (ret_asked)
		ret_asked[ret->len] = 0;
	ret->len++;
	r->bad |= at.bad;
	if (!r->bad)
		r->at = behind ? behind : at.at;
}

bool dns_name_eq(const struct dns_name *a, const struct dns_name *b)
{
	return a->len == b->len && memcmp(a->wire, b->wire, a->len) == 0;
}

static bool is_host_char(uint8_t c)
{
	return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
}

bool dns_name_text(const struct dns_name *name, char *ret_text)
{
	size_t out = 0;
	for (size_t i = 0; i < name->len && name->wire[i];) {
		size_t len = name->wire[i++];
		if (out)
			ret_text[out++] = '.';
		for (size_t end = i + len; i < end; i++) {
			if (!is_host_char(name->wire[i]))
				return false;
			ret_text[out++] = (char)name->wire[i];
		}
	}
	ret_text[out] = '\0';
	return true;
}

bool dns_name_from_text(const char *text, struct dns_name *ret)
{
	ret->len = 0;
	while (*text) {
		size_t len = strcspn(text, ".");
		if (len == 0 || len > LABEL_MAX || ret->len + len + 2 > DNS_WIRE_MAX)
			return false;
		ret->wire[ret->len++] = (uint8_t)len;
		for (size_t i = 0; i < len; i++)
			ret->wire[ret->len++] = lower((uint8_t)text[i]);
		text += len + (text[len] == '.');
	}
	ret->wire[ret->len++] = 0;
	return true;
}

/* --- Queries ---------------------------------------------------------------------------------- */

/* A question is never compressed: there is nothing before it. */
static void get_question(struct reader *r, struct dns_question *ret)
{
	size_t start = r->at;
	get_name(r, &ret->name, ret->asked);
	r->bad |= r->at - start != ret->name.len;
	ret->type = get16(r);
	ret->class = get16(r);
}

/* What lies behind the question of a query: EDNS, or signatures, which we pass over. */
static int get_additional(struct reader *r, unsigned int n, struct dns_query *q)
{
	struct dns_name owner;
	int code = 0;
	for (unsigned int i = 0; i < n && !r->bad; i++) {
		get_name(r, &owner, NULL);
		uint16_t type = get16(r);
		uint16_t class = get16(r);
		uint32_t ttl = get32(r);
		skip(r, get16(r));
		if (type != DNS_OPT || r->bad)
			continue;
		if (q->edns || owner.len != 1)
			return DNS_FORMERR;
		q->edns = true;
		q->dnssec = ttl & EDNS_DO;
		q->udp_size = class < DNS_PLAIN_UDP ? DNS_PLAIN_UDP : class;
		if (ttl >> 16 & 0xff)
			code = DNS_BADVERS;
	}
	return r->bad ? DNS_FORMERR : code;
}

int dns_query_parse(const uint8_t *data, size_t n, struct dns_query *ret)
{
	struct reader r = {.data = data, .n = n};
	memset(ret, 0, sizeof(*ret));
	ret->udp_size = DNS_PLAIN_UDP;
	ret->id = get16(&r);
	uint16_t flags = get16(&r);
	uint16_t questions = get16(&r);
	uint16_t answers = get16(&r);
	uint16_t authorities = get16(&r);
	uint16_t additional = get16(&r);
	/* Replies are not replied to, or two resolvers could talk for ever. */
	if (r.bad || (flags & FLAG_REPLY))
		return -EBADMSG;
	ret->recursion = flags & FLAG_RD;
	ret->checking_disabled = flags & FLAG_CD;
	if (flags & OPCODE_MASK)
		return DNS_NOTIMP;
	if (questions != 1 || answers || authorities || additional > 8)
		return DNS_FORMERR;
	get_question(&r, &ret->question);
	if (r.bad) {
		memset(&ret->question, 0, sizeof(ret->question));
		return DNS_FORMERR;
	}
	return get_additional(&r, additional, ret);
}

/* --- Writing ---------------------------------------------------------------------------------- */

struct writer {
	uint8_t *data;
	size_t max;
	size_t n;
	bool full;
};

static void put(struct writer *w, const void *data, size_t n)
{
	if (w->full || n > w->max - w->n) {
		w->full = true;
		return;
	}
	memcpy(w->data + w->n, data, n);
	w->n += n;
}

static void put16(struct writer *w, unsigned int value)
{
	uint8_t b[2] = {(uint8_t)(value >> 8), (uint8_t)value};
	put(w, b, sizeof(b));
}

static void put32(struct writer *w, uint32_t value)
{
	put16(w, value >> 16);
	put16(w, value & 0xffff);
}

static void put_opt(struct writer *w, bool dnssec, unsigned int rcode)
{
	put(w, "", 1);
	put16(w, DNS_OPT);
	put16(w, DNS_OWN_UDP);
	put16(w, rcode >> 4 << 8);
	put16(w, dnssec ? EDNS_DO : 0);
	put16(w, 0);
}

static void put_header(struct writer *w, uint16_t id, unsigned int flags, unsigned int questions,
		       unsigned int answers, unsigned int additional)
{
	put16(w, id);
	put16(w, flags);
	put16(w, questions);
	put16(w, answers);
	put16(w, 0);
	put16(w, additional);
}

size_t dns_query_build(const struct dns_question *q, uint16_t id, bool edns, bool dnssec,
		       uint8_t ret_data[DNS_PLAIN_UDP])
{
	struct writer w = {.data = ret_data, .max = DNS_PLAIN_UDP};
	put_header(&w, id, FLAG_RD, 1, 0, edns);
	put(&w, q->name.wire, q->name.len);
	put16(&w, q->type);
	put16(&w, q->class);
	if (edns)
		put_opt(&w, dnssec, 0);
	return w.n;
}

static unsigned int answer_flags(const struct dns_query *query, unsigned int rcode)
{
	return FLAG_REPLY | (query->recursion ? FLAG_RD : 0) | FLAG_RA |
	       (query->checking_disabled ? FLAG_CD : 0) | (rcode & RCODE_MASK);
}

/* The records of the name that was asked for stand behind a pointer to the question. */
static void put_owner(struct writer *w, const struct dns_addresses *a, size_t chained)
{
	if (chained == 0)
		put16(w, POINTER << 8 | DNS_HEADER_SIZE);
	else
		put(w, a->chain[chained - 1].wire, a->chain[chained - 1].len);
}

static void put_addresses(struct writer *w, const struct dns_addresses *a)
{
	for (size_t i = 0; i < a->n_chain; i++) {
		put_owner(w, a, i);
		put16(w, DNS_CNAME);
		put16(w, CLASS_IN);
		put32(w, a->chain_ttl[i]);
		put16(w, a->chain[i].len);
		put(w, a->chain[i].wire, a->chain[i].len);
	}
	for (size_t i = 0; i < a->n; i++) {
		put_owner(w, a, a->n_chain);
		put16(w, a->v[i].v6 ? DNS_AAAA : DNS_A);
		put16(w, CLASS_IN);
		put32(w, a->v[i].ttl);
		put16(w, a->v[i].v6 ? 16 : 4);
		put(w, a->v[i].addr, a->v[i].v6 ? 16 : 4);
	}
}

size_t dns_answer_build(const struct dns_query *query, unsigned int rcode,
			const struct dns_addresses *addresses, size_t max,
			uint8_t ret_data[DNS_MESSAGE_MAX])
{
	const struct dns_question *q = &query->question;
	bool asked = q->name.len > 0;
	size_t records = addresses ? addresses->n_chain + addresses->n : 0;
	unsigned int flags = answer_flags(query, rcode);
	/* What always fits: header, question and EDNS are less than 512 bytes. */
	size_t room = max < DNS_PLAIN_UDP ? DNS_PLAIN_UDP : max;
	for (;;) {
		struct writer w = {.data = ret_data,
				   .max = room < DNS_MESSAGE_MAX ? room : DNS_MESSAGE_MAX};
		put_header(&w, query->id, flags, asked, (unsigned int)records, query->edns);
		if (asked) {
			put(&w, q->asked, q->name.len);
			put16(&w, q->type);
			put16(&w, q->class);
		}
		if (records)
			put_addresses(&w, addresses);
		if (query->edns)
			put_opt(&w, query->dnssec, rcode);
		if (!w.full)
			return w.n;
		flags |= FLAG_TRUNCATED;
		records = 0;
	}
}

void dns_answer_truncate(uint8_t *data)
{
	data[2] |= FLAG_TRUNCATED >> 8;
}

void dns_answer_relay(const struct dns_query *query, uint8_t *data, size_t n)
{
	const struct dns_question *q = &query->question;
	if (n < (size_t)DNS_HEADER_SIZE + q->name.len)
		return;
	data[0] = (uint8_t)(query->id >> 8);
	data[1] = (uint8_t)query->id;
	memcpy(data + DNS_HEADER_SIZE, q->asked, q->name.len);
}

/* --- Replies ---------------------------------------------------------------------------------- */

struct record {
	struct dns_name owner;
	uint16_t type;
	uint16_t class;
	uint32_t ttl;
	size_t at; /* of its data */
	size_t len;
};

static void get_record(struct reader *r, struct record *ret)
{
	get_name(r, &ret->owner, NULL);
	ret->type = get16(r);
	ret->class = get16(r);
	ret->ttl = get32(r);
	ret->len = get16(r);
	ret->at = r->at;
	if (ret->ttl & 0x80000000)
		ret->ttl = 0; /* RFC 2181, 8 */
	skip(r, ret->len);
}

/* The data of an alias: a name that ends where the data does. */
static bool get_alias(const struct reader *r, const struct record *rec, struct dns_name *ret)
{
	struct reader at = {.data = r->data, .n = rec->at + rec->len, .at = rec->at};
	get_name(&at, ret, NULL);
	return !at.bad && at.at == rec->at + rec->len;
}

static bool record_is_sound(const struct reader *r, const struct record *rec)
{
	struct dns_name alias;
	switch (rec->type) {
	case DNS_A:
		return rec->len == 4;
	case DNS_AAAA:
		return rec->len == 16;
	case DNS_CNAME:
		return get_alias(r, rec, &alias);
	default:
		return true;
	}
}

int dns_reply_parse(const uint8_t *data, size_t n, struct dns_reply *ret)
{
	struct reader r = {.data = data, .n = n};
	struct record rec;
	memset(ret, 0, sizeof(*ret));
	ret->id = get16(&r);
	uint16_t flags = get16(&r);
	uint16_t questions = get16(&r);
	ret->n_records = get16(&r);
	skip(&r, 4);
	if (r.bad || !(flags & FLAG_REPLY) || (flags & OPCODE_MASK) || questions != 1 ||
	    ret->n_records > RECORDS_MAX)
		return -EBADMSG;
	ret->truncated = flags & FLAG_TRUNCATED;
	ret->rcode = flags & RCODE_MASK;
	get_question(&r, &ret->question);
	ret->records_at = r.at;
	/* A truncated message may end anywhere: it is asked for again. */
	if (ret->truncated)
		ret->n_records = 0;
	for (unsigned int i = 0; i < ret->n_records && !r.bad; i++) {
		get_record(&r, &rec);
		if (!r.bad && rec.class == CLASS_IN && !record_is_sound(&r, &rec))
			r.bad = true;
	}
	return r.bad ? -EBADMSG : 0;
}

/* The alias of NAME, if there is one. */
static bool find_alias(struct reader r, unsigned int n, const struct dns_name *name,
		       struct dns_name *ret, uint32_t *ret_ttl)
{
	struct record rec;
	for (unsigned int i = 0; i < n && !r.bad; i++) {
		get_record(&r, &rec);
		if (r.bad || rec.type != DNS_CNAME || rec.class != CLASS_IN ||
		    !dns_name_eq(&rec.owner, name))
			continue;
		*ret_ttl = rec.ttl;
		return get_alias(&r, &rec, ret);
	}
	return false;
}

static void collect(struct reader r, unsigned int n, const struct dns_name *name, uint16_t type,
		    struct dns_addresses *ret)
{
	struct record rec;
	for (unsigned int i = 0; i < n && !r.bad && ret->n < DNS_ADDRESSES_MAX; i++) {
		get_record(&r, &rec);
		if (r.bad || rec.type != type || rec.class != CLASS_IN ||
		    !dns_name_eq(&rec.owner, name))
			continue;
		struct dns_address *a = &ret->v[ret->n++];
		*a = (struct dns_address){.v6 = type == DNS_AAAA, .ttl = rec.ttl};
		memcpy(a->addr, r.data + rec.at, rec.len < 16 ? rec.len : 16);
	}
}

int dns_reply_addresses(const uint8_t *data, size_t n, const struct dns_reply *reply,
			struct dns_addresses *ret)
{
	struct reader r = {.data = data, .n = n, .at = reply->records_at};
	struct dns_name name = reply->question.name;
	struct dns_name next;
	uint32_t ttl = 0;
	ret->n = ret->n_chain = 0;
	while (find_alias(r, reply->n_records, &name, &next, &ttl)) {
		if (ret->n_chain == DNS_CHAIN_MAX)
			return -ELOOP;
		ret->chain[ret->n_chain] = name = next;
		ret->chain_ttl[ret->n_chain++] = ttl;
	}
	collect(r, reply->n_records, &name, reply->question.type, ret);
	return 0;
}
