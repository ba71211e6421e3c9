/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The name server of one sandbox. What the sandbox sends to port 53 is led here (the supervisor
 * connects or addresses its sockets so), questions for names that the rules know are asked of the
 * host's name servers, and answers that count are pinned (names.h). It never blocks: its owner
 * steps it when its descriptor is readable or its time has come. Functions may be called from any
 * thread.
 *
 * For each server that the sandbox asks there is a socket of its own here, so that the port that a
 * reply comes from tells which address the sandbox expects to see as its source.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "net/host_config.h"
#include "net/names.h"

struct resolver;

/* NULL with errno set. Takes NAMES. */
struct resolver *resolver_new_take(struct names *names);
void resolver_free(struct resolver *r);
struct names *resolver_names(struct resolver *r);

/*
 * Told of names that were refused, and of answers that do not count (ADDRESS: their text, else
 * NULL); called by resolver_step, must be quick and call nothing of this module.
 */
typedef void (*resolver_refused_fn)(void *data, const char *name, const char *address);
void resolver_on_refused(struct resolver *r, resolver_refused_fn fn, void *data);

/* What it hears and answers is counted by RELAY (borrowed): when that says no, it is silent. */
struct net_relay;
void resolver_set_relay(struct resolver *r, struct net_relay *relay);

/* Readable when resolver_step has work; borrowed. */
int resolver_fd(const struct resolver *r);
/* DATA: the resolver. Returns the ms after which it wants to be called in any case, -1: none. */
int resolver_step(void *data, bool ready);

/*
 * Looks up every literal name (LAZY: only those that are denied), and waits for that: the one
 * function that does.
 */
void resolver_start(struct resolver *r, bool lazy);

/*
 * Where the socket FD of DOMAIN (AF_INET, AF_INET6) is to go instead of ASKED, a name server.
 * Binds FD if it is not, and takes note of it: only such sockets are answered. 0 or a negative
 * errno.
 */
int resolver_redirect(struct resolver *r, int fd, int domain, const union inet_addr *asked,
		      union inet_addr *ret, socklen_t *ret_len);
/* Whether FD has been redirected: then what it receives may come from here. */
bool resolver_knows(struct resolver *r, int fd);
/*
 * Whether FROM is a stand-in; RET is the server that it stands for, as a socket of DOMAIN sees it.
 */
bool resolver_original(struct resolver *r, int domain, const union inet_addr *from,
		       union inet_addr *ret, socklen_t *ret_len);
