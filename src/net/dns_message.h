/* SPDX-License-Identifier: Apache-2.0 */
/*
 * DNS messages (RFC 1035, RFC 6891): what of them a filtering resolver needs. Both sides are
 * hostile: questions come from the sandbox, replies from whoever answers. Pure; nothing is kept,
 * nothing is allocated, every length is checked, and pointers in names go backwards only.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	DNS_HEADER_SIZE = 12,
	DNS_WIRE_MAX = 255, /* a name in a message, its end included */
	DNS_TEXT_SIZE = 256,
	DNS_MESSAGE_MAX = 65535,
	DNS_PLAIN_UDP = 512, /* bytes of a reply without EDNS */
	DNS_OWN_UDP = 1232,  /* what we ask for: no fragments */
	DNS_CHAIN_MAX = 12,  /* aliases from a name to its addresses */
	DNS_ADDRESSES_MAX = 64,
};

enum dns_type {
	DNS_A = 1,
	DNS_CNAME = 5,
	DNS_AAAA = 28,
	DNS_OPT = 41,
	DNS_SVCB = 64,
	DNS_HTTPS = 65,
	DNS_META_FIRST = 128, /* transfers, ANY and their like */
	DNS_META_LAST = 255,
};

enum dns_rcode {
	DNS_NOERROR = 0,
	DNS_FORMERR = 1,
	DNS_SERVFAIL = 2,
	DNS_NXDOMAIN = 3,
	DNS_NOTIMP = 4,
	DNS_REFUSED = 5,
	DNS_BADVERS = 16,
};

/* A name as labels, in lower case, without pointers. */
struct dns_name {
	uint8_t len; /* with the empty label at its end */
	uint8_t wire[DNS_WIRE_MAX];
};

struct dns_question {
	struct dns_name name;
	uint8_t asked[DNS_WIRE_MAX]; /* the same with the letters as they came */
	uint16_t type;
	uint16_t class;
};

struct dns_query {
	uint16_t id;
	bool recursion;
	bool checking_disabled;
	struct dns_question question;
	bool edns;
	bool dnssec;	   /* EDNS asks for signatures */
	uint16_t udp_size; /* bytes that a reply by UDP may have */
};

/*
 * 0; a positive enum dns_rcode, with what can be told of the query in RET, where an error reply is
 * due; -EBADMSG where no reply is.
 */
int dns_query_parse(const uint8_t *data, size_t n, struct dns_query *ret);
/* A query to send, with a random ID of the caller's. Its length, always less than 512. */
size_t dns_query_build(const struct dns_question *q, uint16_t id, bool edns, bool dnssec,
		       uint8_t ret_data[DNS_PLAIN_UDP]);

struct dns_address {
	bool v6;
	uint8_t addr[16];
	uint32_t ttl;
};

struct dns_reply {
	uint16_t id;
	bool truncated;
	unsigned int rcode;
	struct dns_question question;
	unsigned int n_records; /* in the answer section */
	size_t records_at;
};

/* A reply, of which all records of the answer section are well-formed. 0 or -EBADMSG. */
int dns_reply_parse(const uint8_t *data, size_t n, struct dns_reply *ret);

/* What a reply says of the addresses of the name that was asked for. */
struct dns_addresses {
	struct dns_name chain[DNS_CHAIN_MAX]; /* aliases, in order: what each leads to */
	uint32_t chain_ttl[DNS_CHAIN_MAX];
	size_t n_chain;
	struct dns_address v[DNS_ADDRESSES_MAX]; /* of the type that was asked for */
	size_t n;
};

/*
 * Follows the aliases of a reply that dns_reply_parse took (its question's type is A or AAAA).
 * 0, or -ELOOP where they run in a circle or are too many.
 */
int dns_reply_addresses(const uint8_t *data, size_t n, const struct dns_reply *reply,
			struct dns_addresses *ret);

/*
 * The reply to QUERY: RCODE and, if not NULL, what ADDRESSES holds. Where that is more than MAX
 * bytes, a truncated one without records. Returns its length.
 */
size_t dns_answer_build(const struct dns_query *query, unsigned int rcode,
			const struct dns_addresses *addresses, size_t max,
			uint8_t ret_data[DNS_MESSAGE_MAX]);
/* Marks a reply that was made as truncated: the asker is to ask by TCP. */
void dns_answer_truncate(uint8_t *data);
/*
 * Makes DATA, a reply to the same question that dns_reply_parse took, the reply to QUERY: its ID
 * and its spelling of the name.
 */
void dns_answer_relay(const struct dns_query *query, uint8_t *data, size_t n);

/* The text of a name into RET (DNS_TEXT_SIZE bytes); false if it is no host name's (letters,
 * digits, - and _). */
bool dns_name_text(const struct dns_name *name, char *ret_text);
/* The name of a text such as a rule holds; false if it is none. */
bool dns_name_from_text(const char *text, struct dns_name *ret);
bool dns_name_eq(const struct dns_name *a, const struct dns_name *b);
