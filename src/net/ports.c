/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of virtual ports: an array in the order of protocol and virtual port. It has few
 * entries, as a program binds few ports by number.
 */
#include "net/ports.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"

struct entry {
	struct ports_key key;
	uint16_t real;
	size_t n; /* of INODES, ever */
	uint64_t inodes[PORTS_INODES_KEPT];
};

struct ports {
	unsigned int refs; /* atomic */
	pthread_mutex_t bind_lock;
	pthread_mutex_t lock; /* of what follows */
	struct entry *v;      /* owned */
	size_t n;
	size_t n_differ;
};

struct ports *ports_new(void)
{
	struct ports *p = xnew(struct ports);
	p->refs = 1;
	pthread_mutex_init(&p->bind_lock, NULL);
	pthread_mutex_init(&p->lock, NULL);
	return p;
}

struct ports *ports_ref(struct ports *p)
{
	if (p)
		__atomic_add_fetch(&p->refs, 1, __ATOMIC_RELAXED);
	return p;
}

void ports_unref(struct ports *p)
{
	if (!p || __atomic_sub_fetch(&p->refs, 1, __ATOMIC_ACQ_REL))
		return;
	pthread_mutex_destroy(&p->bind_lock);
	pthread_mutex_destroy(&p->lock);
	free(p->v);
	free(p);
}

bool ports_lock(struct ports *p, bool wait)
{
	return (wait ? pthread_mutex_lock(&p->bind_lock) : pthread_mutex_trylock(&p->bind_lock)) ==
	       0;
}

void ports_unlock(struct ports *p)
{
	pthread_mutex_unlock(&p->bind_lock);
}

static uint64_t rank(const struct ports_key *key)
{
	return (uint64_t)key->proto << 32 | (uint64_t)key->port << 1 | key->v6;
}

/* Where the entry is, or would be. */
static size_t place_of(const struct ports *p, const struct ports_key *key)
{
	size_t i = 0;
	while (i < p->n && rank(&p->v[i].key) < rank(key))
		i++;
	return i;
}

static struct entry *find(const struct ports *p, const struct ports_key *key)
{
	size_t i = place_of(p, key);
	return i < p->n && rank(&p->v[i].key) == rank(key) ? &p->v[i] : NULL;
}

uint16_t ports_real(struct ports *p, const struct ports_key *key)
{
	pthread_mutex_lock(&p->lock);
	const struct entry *e = find(p, key);
	uint16_t real = e ? e->real : 0;
	pthread_mutex_unlock(&p->lock);
	return real;
}

uint16_t ports_virtual(struct ports *p, unsigned int proto, uint16_t real)
{
	uint16_t port = real;
	pthread_mutex_lock(&p->lock);
	for (size_t i = 0; i < p->n; i++)
		if (p->v[i].key.proto == proto && p->v[i].real == real)
			port = p->v[i].key.port;
	pthread_mutex_unlock(&p->lock);
	return port;
}

bool ports_differ(struct ports *p)
{
	pthread_mutex_lock(&p->lock);
	bool differ = p->n_differ;
	pthread_mutex_unlock(&p->lock);
	return differ;
}

static struct entry *insert(struct ports *p, const struct ports_key *key)
{
	size_t i = place_of(p, key);
	p->v = xrealloc(p->v, p->n + 1, sizeof(*p->v));
	memmove(&p->v[i + 1], &p->v[i], (p->n - i) * sizeof(*p->v));
	p->v[i] = (struct entry){.key = *key};
	p->n++;
	return &p->v[i];
}

int ports_add(struct ports *p, const struct ports_key *key, uint16_t real, uint64_t inode)
{
	pthread_mutex_lock(&p->lock);
	struct entry *e = find(p, key);
	if (!e && p->n < PORTS_MAX)
		e = insert(p, key);
	if (e) {
		p->n_differ -= e->real && e->real != key->port;
		p->n_differ += real != key->port;
		e->n = e->real == real ? e->n : 0;
		e->real = real;
		e->inodes[e->n++ % PORTS_INODES_KEPT] = inode;
	}
	pthread_mutex_unlock(&p->lock);
	return e ? 0 : -ENOBUFS;
}

size_t ports_inodes(struct ports *p, const struct ports_key *key, uint64_t ret[PORTS_INODES_KEPT])
{
	size_t n = 0;
	pthread_mutex_lock(&p->lock);
	const struct entry *e = find(p, key);
	if (e) {
		n = e->n < PORTS_INODES_KEPT ? e->n : PORTS_INODES_KEPT;
		memcpy(ret, e->inodes, n * sizeof(*ret));
	}
	pthread_mutex_unlock(&p->lock);
	return n;
}

void ports_each(struct ports *p, void (*fn)(void *data, const struct ports_key *key, uint16_t real),
		void *data)
{
	pthread_mutex_lock(&p->lock);
	for (size_t i = 0; i < p->n; i++)
		fn(data, &p->v[i].key, p->v[i].real);
	pthread_mutex_unlock(&p->lock);
}
