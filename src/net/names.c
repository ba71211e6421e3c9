/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names and pins. Entries of rules stay for ever; the others come by look-ups of the sandbox, are
 * bounded in number, and make room once their pins have run out.
 */
#include "net/names.h"

#include <arpa/inet.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/buf.h"
#include "base/util.h"
#include "net/address_class.h"
#include "policy/policy.h"

enum {
	ENTRIES_MAX = 4096,
	PINS_MAX = 256, /* of one name: what rotates through some servers' answers */
	SLOTS = 4096,	/* of the table by name; a power of two */
};

#define GRACE_MS  ((int64_t)10 * 60 * 1000)
#define LAST_MS	  ((int64_t)24 * 60 * 60 * 1000)
#define TTL_MAX	  (24u * 60 * 60)
#define HOSTS_MAX ((size_t)1 << 20)

struct pin {
	uint8_t addr[16];
	bool v6;
	bool current;	   /* in the last answer */
	int64_t told_ms;   /* when DNS last said so */
	int64_t ttl_ms;	   /* until when that answer is good */
	int64_t expiry_ms; /* of the pin */
};

struct entry {
	char *name;
	struct entry *next; /* in its slot */
	const char *rule;   /* of literal names, NULL: looked up */
	bool denied;
	struct pin *pins;
	size_t n_pins;
};

/* A name that a rule spells out. */
struct literal {
	struct entry *entry; /* borrowed from the slots */
};

struct names {
	const struct net_rules *allow;
	const struct net_rules *deny;
	bool free_names; /* a rule allows every address */
	pthread_mutex_t lock;
	struct entry *slots[SLOTS];
	size_t n_entries;
	struct literal *literals;
	size_t n_literals;
};

/* --- Rules ------------------------------------------------------------------------------------ */

static bool is_named(const struct net_rule *r)
{
	return r->target == NET_TARGET_NAME || r->target == NET_TARGET_WILDCARD;
}

static bool has_names(const struct net_rules *rules)
{
	for (size_t i = 0; i < rules->n; i++)
		if (is_named(&rules->v[i]))
			return true;
	return false;
}

static bool is_below(const char *name, const char *domain)
{
	size_t n = strlen(name);
	size_t d = strlen(domain);
	return n > d + 1 && name[n - d - 1] == '.' && str_eq(name + n - d, domain);
}

static enum names_kind match(const struct net_rules *rules, const char *name)
{
	enum names_kind kind = NAMES_REFUSED;
	for (size_t i = 0; i < rules->n; i++) {
		const struct net_rule *r = &rules->v[i];
		if (r->target == NET_TARGET_NAME && str_eq(r->name, name))
			return NAMES_LITERAL;
		if (r->target == NET_TARGET_WILDCARD && is_below(name, r->name))
			kind = NAMES_WILDCARD;
	}
	return kind;
}

/*
 * A name that is denied on some ports or protocols only can still be needed on others: it is
 * looked up then, and the rules judge its address.
 */
static bool denied_whole(const struct net_rule *r)
{
	return r->ports.any && (r->protos & NET_TCP) && (r->protos & NET_UDP);
}

static bool is_denied(const struct net_rules *rules, const char *name)
{
	for (size_t i = 0; i < rules->n; i++) {
		const struct net_rule *r = &rules->v[i];
		if (!is_named(r) || !denied_whole(r))
			continue;
		if (r->target == NET_TARGET_NAME ? str_eq(r->name, name) : is_below(name, r->name))
			return true;
	}
	return false;
}

enum names_kind names_judge(const struct names *n, const char *name)
{
	if (!*name)
		return NAMES_REFUSED;
	if (is_denied(n->deny, name))
		return NAMES_DENIED;
	enum names_kind kind = match(n->allow, name);
	return kind == NAMES_REFUSED && n->free_names ? NAMES_FREE : kind;
}

bool names_matter(const struct names *n, const char *name)
{
	return match(n->allow, name) != NAMES_REFUSED || match(n->deny, name) != NAMES_REFUSED;
}

bool names_address_counts(enum names_kind kind, bool from_hosts, bool v6, const uint8_t *addr)
{
	enum address_class class = address_class(v6, addr);
	switch (kind) {
	case NAMES_FREE:
	case NAMES_DENIED:
		return true;
	case NAMES_LITERAL:
		return class != ADDRESS_SPECIAL || from_hosts;
	case NAMES_WILDCARD:
		return class == ADDRESS_PUBLIC;
	case NAMES_REFUSED:
		break;
	}
	return false;
}

/* --- Entries ---------------------------------------------------------------------------------- */

static size_t slot_of(const char *name)
{
	uint32_t h = 2166136261u;
	for (; *name; name++)
		h = (h ^ (uint8_t)*name) * 16777619u;
	return (h ^ h >> 16) % SLOTS;
}

static struct entry *find(const struct names *n, const char *name)
{
	struct entry *e = n->slots[slot_of(name)];
	while (e && !str_eq(e->name, name))
		e = e->next;
	return e;
}

static void free_entry(struct entry *e)
{
	free(e->name);
	free(e->pins);
	free(e);
}

/* Nobody who was given such a name still looks at it. */
static bool is_stale(const struct entry *e, int64_t now_ms)
{
	for (size_t i = 0; i < e->n_pins; i++)
		if (e->pins[i].expiry_ms + GRACE_MS > now_ms)
			return false;
	return !e->rule;
}

static void make_room(struct names *n, int64_t now_ms)
{
	for (size_t i = 0; i < SLOTS; i++) {
		for (struct entry **p = &n->slots[i]; *p;) {
			struct entry *e = *p;
			if (!is_stale(e, now_ms)) {
				p = &e->next;
				continue;
			}
			*p = e->next;
			free_entry(e);
			n->n_entries--;
		}
	}
}

static struct entry *add(struct names *n, const char *name)
{
	struct entry **slot = &n->slots[slot_of(name)];
	struct entry *e = xnew(struct entry);
	e->name = xstrdup(name);
	e->next = *slot;
	*slot = e;
	n->n_entries++;
	return e;
}

static void add_literals(struct names *n, const struct net_rules *rules, bool denied)
{
	for (size_t i = 0; i < rules->n; i++) {
		const struct net_rule *r = &rules->v[i];
		if (r->target != NET_TARGET_NAME)
			continue;
		struct entry *e = find(n, r->name);
		if (e) {
			e->denied |= denied;
			continue;
		}
		e = add(n, r->name);
		e->rule = r->text;
		e->denied = denied;
		n->literals = xrealloc(n->literals, n->n_literals + 1, sizeof(*n->literals));
		n->literals[n->n_literals++].entry = e;
	}
}

struct names *names_new(const struct net_rules *allow, const struct net_rules *deny)
{
	if (!has_names(allow) && !has_names(deny))
		return NULL;
	struct names *n = xnew(struct names);
	pthread_mutex_init(&n->lock, NULL);
	n->allow = allow;
	n->deny = deny;
	for (size_t i = 0; i < allow->n; i++)
		n->free_names |= allow->v[i].target == NET_TARGET_ANY &&
				 (allow->v[i].protos & (NET_TCP | NET_UDP));
	add_literals(n, allow, false);
	add_literals(n, deny, true);
	return n;
}

void names_free(struct names *n)
{
	if (!n)
		return;
	for (size_t i = 0; i < SLOTS; i++) {
		while (n->slots[i]) {
			struct entry *e = n->slots[i];
			n->slots[i] = e->next;
			free_entry(e);
		}
	}
	free(n->literals);
	pthread_mutex_destroy(&n->lock);
	free(n);
}

size_t names_count(const struct names *n)
{
	return n->n_literals;
}

const char *names_get(const struct names *n, size_t i, enum names_kind *ret_kind)
{
	const struct entry *e = n->literals[i].entry;
	*ret_kind = e->denied ? NAMES_DENIED : NAMES_LITERAL;
	return e->name;
}

const char *names_rule(const struct names *n, size_t i)
{
	return n->literals[i].entry->rule;
}

bool names_is_known(struct names *n, size_t i)
{
	pthread_mutex_lock(&n->lock);
	bool known = n->literals[i].entry->n_pins > 0;
	pthread_mutex_unlock(&n->lock);
	return known;
}

/* --- Pins ------------------------------------------------------------------------------------- */

static bool same(const struct pin *p, bool v6, const uint8_t *addr)
{
	return p->v6 == v6 && memcmp(p->addr, addr, v6 ? 16 : 4) == 0;
}

/* Drops pins that have run out. */
static void sweep(struct entry *e, int64_t now_ms)
{
	size_t kept = 0;
	for (size_t i = 0; i < e->n_pins; i++)
		if (e->pins[i].expiry_ms > now_ms)
			e->pins[kept++] = e->pins[i];
	e->n_pins = kept;
}

static struct pin *new_pin(struct entry *e, int64_t now_ms)
{
	sweep(e, now_ms);
	if (e->n_pins == PINS_MAX) {
		/* The one that DNS has not confirmed for longest makes room. */
		struct pin *oldest = e->pins;
		for (size_t i = 1; i < e->n_pins; i++)
			if (e->pins[i].told_ms < oldest->told_ms)
				oldest = &e->pins[i];
		return oldest;
	}
	e->pins = xrealloc(e->pins, e->n_pins + 1, sizeof(*e->pins));
	return &e->pins[e->n_pins++];
}

static void renew_pin(struct entry *e, bool v6, const uint8_t *addr, uint32_t ttl, int64_t now_ms)
{
	struct pin *p = NULL;
	for (size_t i = 0; i < e->n_pins && !p; i++)
		if (same(&e->pins[i], v6, addr))
			p = &e->pins[i];
	if (!p) {
		p = new_pin(e, now_ms);
		*p = (struct pin){.v6 = v6};
		memcpy(p->addr, addr, v6 ? 16 : 4);
	}
	int64_t ttl_ms = (int64_t)(ttl < TTL_MAX ? ttl : TTL_MAX) * 1000;
	p->current = true;
	p->told_ms = now_ms;
	p->ttl_ms = now_ms + ttl_ms;
	if (p->expiry_ms < now_ms + ttl_ms + GRACE_MS)
		p->expiry_ms = now_ms + ttl_ms + GRACE_MS;
}

int names_pin(struct names *n, const char *name, bool v6, const uint8_t *addr, uint32_t ttl,
	      int64_t now_ms)
{
	pthread_mutex_lock(&n->lock);
	struct entry *e = find(n, name);
	if (!e && n->n_entries >= ENTRIES_MAX)
		make_room(n, now_ms);
	if (!e && n->n_entries < ENTRIES_MAX)
		e = add(n, name);
	if (e)
		renew_pin(e, v6, addr, ttl, now_ms);
	pthread_mutex_unlock(&n->lock);
	return e ? 0 : -ENOSPC;
}

void names_renew(struct names *n, const char *name, bool v6)
{
	pthread_mutex_lock(&n->lock);
	struct entry *e = find(n, name);
	for (size_t i = 0; e && i < e->n_pins; i++)
		if (e->pins[i].v6 == v6)
			e->pins[i].current = false;
	pthread_mutex_unlock(&n->lock);
}

/* Whether E has a pin of the address; one that is used is kept. */
static bool holds(struct entry *e, bool v6, const uint8_t *addr, int64_t now_ms)
{
	for (size_t i = 0; i < e->n_pins; i++) {
		struct pin *p = &e->pins[i];
		if (!same(p, v6, addr) || p->expiry_ms <= now_ms)
			continue;
		int64_t longer = now_ms + GRACE_MS;
		if (longer > p->told_ms + LAST_MS)
			longer = p->told_ms + LAST_MS;
		if (p->expiry_ms < longer)
			p->expiry_ms = longer;
		return true;
	}
	return false;
}

size_t names_of_address_at(struct names *n, bool v6, const uint8_t *addr, const char **ret,
			   size_t max, int64_t now_ms)
{
	size_t found = 0;
	if (!n)
		return 0;
	pthread_mutex_lock(&n->lock);
	/* Denied ones first: they must not be missing where there are more than MAX. */
	for (size_t i = 0; i < n->n_literals && found < max; i++)
		if (n->literals[i].entry->denied && holds(n->literals[i].entry, v6, addr, now_ms))
			ret[found++] = n->literals[i].entry->name;
	for (size_t i = 0; i < SLOTS && found < max; i++)
		for (struct entry *e = n->slots[i]; e && found < max; e = e->next)
			if (!e->denied && holds(e, v6, addr, now_ms))
				ret[found++] = e->name;
	pthread_mutex_unlock(&n->lock);
	return found;
}

size_t names_of_address(struct names *n, bool v6, const uint8_t *addr, const char **ret, size_t max)
{
	struct timespec ts;
	clock_gettime(CLOCK_MONOTONIC, &ts);
	return names_of_address_at(n, v6, addr, ret, max,
				   (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000);
}

/* --- /etc/hosts ------------------------------------------------------------------------------- */

/*
 * What has run out is left out: who does not find a name here asks for it, and gets a new answer.
 */
static void add_lines(struct buf *b, const struct entry *e, bool v6, int64_t now_ms)
{
	for (size_t i = 0; i < e->n_pins; i++) {
		const struct pin *p = &e->pins[i];
		char text[INET6_ADDRSTRLEN];
		if (p->v6 != v6 || !p->current || p->ttl_ms <= now_ms)
			continue;
		inet_ntop(p->v6 ? AF_INET6 : AF_INET, p->addr, text, sizeof(text));
		buf_printf(b, "%s %s\n", text, e->name);
	}
}

char *names_hosts_text(struct names *n, int64_t now_ms)
{
	struct buf b = BUF_INIT(HOSTS_MAX);
	buf_add_str(&b, "127.0.0.1 localhost\n::1 localhost\n");
	pthread_mutex_lock(&n->lock);
	for (size_t i = 0; i < n->n_literals; i++) {
		if (n->literals[i].entry->denied)
			continue;
		add_lines(&b, n->literals[i].entry, false, now_ms);
		add_lines(&b, n->literals[i].entry, true, now_ms);
	}
	pthread_mutex_unlock(&n->lock);
	return buf_take(&b);
}
