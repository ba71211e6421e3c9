/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ports of a sandbox that has numbers of its own: which real port is behind one that it has
 * bound (virtual), by protocol. An entry outlives the socket that it was made for, as the number is
 * asked for again; whether the real port is still the sandbox's, only the kernel knows.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	PORTS_MAX = 4096,	/* entries of one sandbox */
	PORTS_INODES_KEPT = 16, /* sockets remembered for an entry, the newest ones */
};

struct ports;

/* Any thread may use it. */
struct ports *ports_new(void);
struct ports *ports_ref(struct ports *p);
void ports_unref(struct ports *p);

/* Whose ports: each family has numbers of its own. */
struct ports_key {
	unsigned int proto; /* NET_TCP or NET_UDP */
	bool v6;
	uint16_t port; /* virtual */
};

/* Held while a port is looked for and bound. False: it is held already, and WAIT is not set. */
bool ports_lock(struct ports *p, bool wait);
void ports_unlock(struct ports *p);

/* The real port, or 0. */
uint16_t ports_real(struct ports *p, const struct ports_key *key);
/* The virtual port, or REAL itself where it is none's. */
uint16_t ports_virtual(struct ports *p, unsigned int proto, uint16_t real);
/* Whether any port differs from the real one. */
bool ports_differ(struct ports *p);
/* Notes that the socket INODE is bound to REAL and believes to have VIRTUAL_PORT. Negative errno.
 */
int ports_add(struct ports *p, const struct ports_key *key, uint16_t real, uint64_t inode);
/* The sockets that were bound to KEY and its present real port: as many as RET holds. */
size_t ports_inodes(struct ports *p, const struct ports_key *key, uint64_t ret[PORTS_INODES_KEPT]);
/* Calls FN for each entry, ordered by protocol, port and family; FN calls nothing here. */
void ports_each(struct ports *p, void (*fn)(void *data, const struct ports_key *key, uint16_t real),
		void *data);
