/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Between the parts of the resolver: sockets that face the sandbox (resolver.c, resolver_tcp.c),
 * what is answered (request.c), and questions to the host's name servers (lookup.c). All is
 * called with the resolver's lock held. One event is fetched at a time, so that whatever an event
 * leads to may be freed by the one before it.
 */
#pragma once

#include <pthread.h>

#include "net/dns_message.h"
#include "net/resolver.h"

enum {
	STAND_INS_MAX = 16,
	CLIENTS_MAX = 1024,
	CONNECTIONS_MAX = 32,
	LOOKUPS_MAX = 512,    /* waiting or under way */
	LOOKUPS_RUNNING = 48, /* with a socket */
	NOT_A_CONNECTION = 0,
};

/* What an epoll event leads to; embedded in its owner. */
struct net_watch {
	void (*fn)(struct resolver *r, struct net_watch *watch, uint32_t events);
};

/* A socket that stands for the name server ADDR, one for each family of ours. */
struct stand_in {
	union inet_addr addr;
	int64_t last_ms;
	struct {
		struct net_watch watch;
		int fd;
		uint16_t port; /* network order */
	} on[2];
};

struct listener {
	struct net_watch watch;
	int fd;
	uint16_t port;
};

/* A socket of the sandbox that was led here. */
struct client {
	uint64_t cookie;
	int64_t last_ms;
	uint16_t port; /* network order */
};

struct connection;
struct lookup;

struct resolver {
	pthread_mutex_t lock;
	struct names *names; /* owned */
	int epoll_fd;
	struct net_watch wake;
	int wake_fd;
	struct host_config host;
	struct host_stamp stamp;
	int64_t stamp_ms; /* when it was last looked at */
	struct stand_in stand_ins[STAND_INS_MAX];
	size_t n_stand_ins;
	struct listener tcp[2];
	struct client clients[CLIENTS_MAX];
	size_t n_clients;
	struct connection *connections;
	size_t n_connections;
	uint64_t last_connection;
	struct lookup *lookups; /* oldest first */
	struct lookup **lookups_end;
	size_t n_lookups;
	size_t n_running;
	int64_t refresh_ms;	 /* when denied names are looked up again; 0: not yet set */
	size_t n_starting;	 /* look-ups of the start that are not answered yet */
	struct net_relay *relay; /* borrowed: counts what is said; NULL: nobody does */
	resolver_refused_fn refused;
	void *refused_data;
	uint8_t out[DNS_MESSAGE_MAX]; /* a message being made */
	uint8_t in[DNS_MESSAGE_MAX];
};

int64_t net_now_ms(void);
int net_watch_fd(struct resolver *r, struct net_watch *watch, int fd, uint32_t events);
/* Whether the socket at PORT (network order) is the sandbox's. */
bool resolver_has_client(struct resolver *r, uint16_t port);

/* --- Who asked ---------------------------------------------------------------------------- */

/* Where the reply goes. */
struct asker {
	int fd; /* of a stand-in, borrowed; -1: not by UDP */
	union inet_addr peer;
	socklen_t peer_len;
	uint64_t connection; /* NOT_A_CONNECTION: not by TCP */
};

/* Answers the query DATA of ASKER, now or later. 0 if there will be a reply. */
int request_handle(struct resolver *r, const uint8_t *data, size_t n, const struct asker *asker);
/* Looks NAME up for its pins. */
void request_refresh(struct resolver *r, const char *name, enum names_kind kind, uint16_t type);
/* Sends a reply to ASKER, who may be gone. */
void asker_reply(struct resolver *r, const struct asker *asker, const uint8_t *data, size_t n);

/* --- TCP ---------------------------------------------------------------------------------- */

int tcp_listen(struct resolver *r, bool v6);
void tcp_reply(struct resolver *r, uint64_t connection, const uint8_t *data, size_t n);
void tcp_free_all(struct resolver *r);
/* Ends what idles; returns when that is next to be looked at, 0: never. */
int64_t tcp_run_due(struct resolver *r, int64_t now_ms);

/* --- Upstream ----------------------------------------------------------------------------- */

struct lookup_result {
	int error; /* 0, or a negative errno: no server has answered */
	uint8_t *data;
	size_t n;
	struct dns_reply reply;
};

/* Called once; DATA is the callee's then. */
typedef void (*lookup_fn)(struct resolver *r, void *data, const struct lookup_result *result);

/* 0, or -EAGAIN where too many are under way (FN is not called then). */
int lookup_start(struct resolver *r, const struct dns_question *q, bool edns, bool dnssec,
		 lookup_fn fn, void *data);
int64_t lookup_run_due(struct resolver *r, int64_t now_ms);
/* FREE_DATA is called for the data of each. */
void lookup_free_all(struct resolver *r, void (*free_data)(void *data));
