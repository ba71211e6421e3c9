/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The names of a sandbox: which may be looked up, which answers count, and which address belongs to
 * an allowed name at the moment (its pin). Pure but for its lock; the caller brings the time
 * (CLOCK_MONOTONIC, ms). May be called from any thread.
 *
 * A pin outlives its answer's time to live by ten minutes. An address that is asked about while its
 * pin holds keeps it for ten minutes more, but never for longer than a day after DNS last said so:
 * that stands for "as long as a connection uses it" of flows that are judged per message, of QUIC,
 * say. Connections are judged once, and are not cut.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct net_rules;
struct names;

/* NULL where no rule of the two names a host. Both are borrowed and outlive the names. */
struct names *names_new(const struct net_rules *allow, const struct net_rules *deny);
void names_free(struct names *n);

/* What becomes of a look-up. */
enum names_kind {
	NAMES_REFUSED,
	NAMES_LITERAL,	/* a rule has this name: private answers count, loopback does not */
	NAMES_WILDCARD, /* a rule has its domain: only public answers count */
	NAMES_FREE,	/* a rule allows every address: answers are passed on as they are */
	NAMES_DENIED,	/* refused; looked up by us only, for the addresses that it forbids */
};

/* NAME: lower case, no dot at its end. */
enum names_kind names_judge(const struct names *n, const char *name);
/* Whether what NAME answers is to be pinned: a rule is about it. */
bool names_matter(const struct names *n, const char *name);
/* Whether an answer for a name of KIND counts; FROM_HOSTS: it is of the host's own /etc/hosts. */
bool names_address_counts(enum names_kind kind, bool from_hosts, bool v6, const uint8_t *addr);

/* --- Literal names ------------------------------------------------------------------------ */

/* The names that rules spell out, allowed and denied ones: index 0 to names_count - 1. */
size_t names_count(const struct names *n);
const char *names_get(const struct names *n, size_t i, enum names_kind *ret_kind);
/* The rule that name I is from, as the user wrote it. */
const char *names_rule(const struct names *n, size_t i);
/* Whether an address is known for name I. */
bool names_is_known(struct names *n, size_t i);

/* --- Pins --------------------------------------------------------------------------------- */

/* Adds or renews a pin. -ENOSPC where the sandbox has looked up too many names. */
int names_pin(struct names *n, const char *name, bool v6, const uint8_t *addr, uint32_t ttl,
	      int64_t now_ms);
/* Told before the pins of a new answer for NAME: what it does not repeat is not current any more.
 */
void names_renew(struct names *n, const char *name, bool v6);
/*
 * The names that ADDR belongs to now, allowed and denied ones, at most MAX; borrowed, good for
 * minutes. Returns how many.
 */
size_t names_of_address(struct names *n, bool v6, const uint8_t *addr, const char **ret,
			size_t max);
/* The same at a time of the caller's. */
size_t names_of_address_at(struct names *n, bool v6, const uint8_t *addr, const char **ret,
			   size_t max, int64_t now_ms);
/* The text of /etc/hosts: loopback, and literal names with their current answers. Owned. */
char *names_hosts_text(struct names *n, int64_t now_ms);
