/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The way of TCP connections whose data is limited. The command's own socket is connected to a
 * socket here (inner), and another one leads to the destination (outer); nothing goes from one to
 * the other but by this module, which counts and paces it before it reads it. So a limit holds to
 * the byte; what a peer has sent beyond it waits in a receive buffer of a fixed size, and is thrown
 * away at the end.
 *
 * It never blocks: its owner steps it when its descriptor is readable or its time has come.
 * Functions may be called from any thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "net/host_config.h"
#include "policy/net_table.h"

struct net_relay;

/* POLICY (borrowed) has a limit. NULL with errno set. */
struct net_relay *net_relay_new(const struct policy *policy);
void net_relay_free(struct net_relay *r);

/*
 * Whether a TCP connection to POINT, to which NAMES lead (NULL: any may), has to go this way;
 * *RET_RATES is the set of limits that hold for it.
 */
bool net_relay_wants(const struct net_relay *r, const struct net_point *point,
		     const struct net_names_view *names, uint32_t *ret_rates);
/* 0, -EDQUOT: all bytes are used up, -ENOBUFS: too many connections. */
int net_relay_check(struct net_relay *r);
/* Prepares FD, a new socket that will be an inner or an outer one: its buffers. */
void net_relay_prepare(int fd);

struct net_relay_pair {
	int inner; /* taken */
	int outer; /* taken */
	uint32_t rates;
	union inet_addr task; /* the command's end of the inner connection */
};
/* Takes PAIR, both ends connected and O_NONBLOCK. As net_relay_check, or another negative errno. */
int net_relay_add_take(struct net_relay *r, struct net_relay_pair *pair);

/*
 * What the command is told about its socket at TASK that is connected to the inner one at INNER:
 * the destination if PEER, else the outer socket's own address. False: it is not known.
 */
bool net_relay_name(struct net_relay *r, const union inet_addr *task, const union inet_addr *inner,
		    bool peer, union inet_addr *ret);

/* Counts N bytes that go another way; false: not so many are left, and nothing is counted. */
bool net_relay_count(struct net_relay *r, size_t n);

/* Told once, when all bytes are used up; must be quick and call nothing of this module. */
typedef void (*net_relay_spent_fn)(void *data);
void net_relay_on_spent(struct net_relay *r, net_relay_spent_fn fn, void *data);

/* Readable when net_relay_step has work; borrowed. */
int net_relay_fd(const struct net_relay *r);
/* DATA: the relay. Returns the ms after which it wants to be called in any case, -1: none. */
int net_relay_step(void *data, bool ready);
/*
 * Sends on what a command that has ended has left, within its limits and up to TIMEOUT_MS; waits
 * for that.
 */
void net_relay_drain(struct net_relay *r, int timeout_ms);
