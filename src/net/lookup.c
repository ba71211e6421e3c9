/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Questions to the host's name servers. Each goes out from a socket of its own, which is connected
 * (so that nobody but the server can answer without forging its address) and has a port of the
 * kernel's choice; the ID is random, and a reply that does not repeat ID and question is not one.
 * A truncated reply is asked for again by TCP.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/util.h"
#include "net/resolver_internal.h"

enum {
	ROUNDS = 3, /* through all servers */
	UDP_FIRST_MS = 1500,
	TCP_MS = 4000,
	TOTAL_MS = 12000,
	JUNK_MAX = 64, /* datagrams that are no reply, before the server is given up */
};

struct lookup {
	struct net_watch watch;
	struct lookup *next;
	lookup_fn fn;
	void *data;
	struct dns_question question;
	bool edns;
	bool dnssec;
	int fd; /* -1: waits for its turn */
	bool running;
	bool stream;
	bool ended;
	uint16_t id;
	unsigned int tries;
	unsigned int junk;
	int64_t due_ms;
	int64_t end_ms;
	/* The stream: a length of two bytes, then a message, both ways. */
	uint8_t *buffer; /* owned */
	size_t done;
	bool sending;
	/* The last reply that says no more than that the server cannot tell. */
	uint8_t *poor; /* owned */
	size_t n_poor;
};

static void try_next(struct resolver *r, struct lookup *l);

static void close_socket(struct lookup *l)
{
	l->fd = util_close(l->fd); /* leaves the epoll set: there is no copy of it */
	free(take_ptr(l->buffer));
	l->stream = false;
	l->done = 0;
}

static void free_lookup(struct lookup *l)
{
	close_socket(l);
	free(l->poor);
	free(l);
}

static void unlink_lookup(struct resolver *r, struct lookup *l)
{
	for (struct lookup **p = &r->lookups; *p; p = &(*p)->next) {
		if (*p != l)
			continue;
		*p = l->next;
		if (!l->next)
			r->lookups_end = p;
		break;
	}
	r->n_lookups--;
	r->n_running -= l->running;
}

/* Ends L, which is freed. */
static void finish(struct resolver *r, struct lookup *l, int error, uint8_t *data, size_t n)
{
	struct lookup_result result = {.error = error, .data = data, .n = n};
	unlink_lookup(r, l);
	if (!error && dns_reply_parse(data, n, &result.reply) < 0)
		result.error = -EBADMSG;
	l->fn(r, l->data, &result);
	free_lookup(l);
}

/* What is left where no server has answered well. */
static void give_up(struct resolver *r, struct lookup *l)
{
	if (l->poor)
		finish(r, l, 0, l->poor, l->n_poor);
	else
		finish(r, l, -ETIMEDOUT, NULL, 0);
}

static bool says_nothing(const struct dns_reply *reply)
{
	return reply->rcode != DNS_NOERROR && reply->rcode != DNS_NXDOMAIN;
}

static bool is_answer(const struct lookup *l, const struct dns_reply *reply)
{
	return reply->id == l->id && dns_name_eq(&reply->question.name, &l->question.name) &&
	       reply->question.type == l->question.type &&
	       reply->question.class == l->question.class;
}

/* --- TCP -------------------------------------------------------------------------------------- */

static void on_stream(struct resolver *r, struct net_watch *watch, uint32_t events);

static const union inet_addr *server_of(const struct resolver *r, const struct lookup *l)
{
	return &r->host.servers[(l->tries - 1) % r->host.n_servers];
}

static socklen_t addr_len(const union inet_addr *a)
{
	return a->sa.sa_family == AF_INET ? sizeof(a->v4) : sizeof(a->v6);
}

static int open_socket(struct resolver *r, struct lookup *l, int type)
{
	const union inet_addr *server = server_of(r, l);
	l->fd = socket(server->sa.sa_family, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (l->fd < 0)
		return -errno;
	if (connect(l->fd, &server->sa, addr_len(server)) < 0 && errno != EINPROGRESS)
		return -errno;
	if (getrandom(&l->id, sizeof(l->id), GRND_NONBLOCK) != sizeof(l->id))
		return -EAGAIN;
	return 0;
}

static void start_stream(struct resolver *r, struct lookup *l)
{
	close_socket(l);
	l->stream = l->sending = true;
	l->watch.fn = on_stream;
	l->due_ms = net_now_ms() + TCP_MS;
	l->buffer = xzalloc(DNS_MESSAGE_MAX + 2);
	if (open_socket(r, l, SOCK_STREAM) < 0 || net_watch_fd(r, &l->watch, l->fd, EPOLLOUT) < 0) {
		try_next(r, l);
		return;
	}
	size_t n = dns_query_build(&l->question, l->id, l->edns, l->dnssec, l->buffer + 2);
	l->buffer[0] = (uint8_t)(n >> 8);
	l->buffer[1] = (uint8_t)n;
}

static size_t frame_size(const struct lookup *l)
{
	return 2 + ((size_t)l->buffer[0] << 8 | l->buffer[1]);
}

/* True once the whole frame is through; *RET_FAILED where it never will be. */
static bool move_frame(struct lookup *l, bool *ret_failed)
{
	for (;;) {
		size_t size = l->sending || l->done >= 2 ? frame_size(l) : 2;
		if (l->done == size && (l->sending || l->done > 2))
			return true;
		if (l->done == size && size == 2 && frame_size(l) == 2) {
			*ret_failed = true; /* an empty message */
			return false;
		}
		if (!l->sending && l->done == 2)
			size = frame_size(l);
		ssize_t n = l->sending
				    ? send(l->fd, l->buffer + l->done, size - l->done, MSG_NOSIGNAL)
				    : recv(l->fd, l->buffer + l->done, size - l->done, 0);
		if (n <= 0) {
			*ret_failed = n == 0 || errno != EAGAIN;
			return false;
		}
		l->done += (size_t)n;
	}
}

static void on_stream(struct resolver *r, struct net_watch *watch, uint32_t events)
{
	struct lookup *l = (struct lookup *)(void *)watch;
	struct dns_reply reply;
	struct epoll_event ev = {.events = EPOLLIN, .data.ptr = watch};
	bool failed = false;
	(void)events;
	bool through = move_frame(l, &failed);
	if (failed) {
		try_next(r, l);
		return;
	}
	if (!through)
		return;
	if (l->sending) {
		l->sending = false;
		l->done = 0;
		if (epoll_ctl(r->epoll_fd, EPOLL_CTL_MOD, l->fd, &ev) < 0)
			try_next(r, l);
		return;
	}
	size_t n = frame_size(l) - 2;
	if (dns_reply_parse(l->buffer + 2, n, &reply) < 0 || !is_answer(l, &reply) ||
	    reply.truncated || says_nothing(&reply)) {
		try_next(r, l);
		return;
	}
	auto_free uint8_t *message = take_ptr(l->buffer);
	finish(r, l, 0, message + 2, n);
}

/* --- UDP -------------------------------------------------------------------------------------- */

static void keep_poor(struct lookup *l, const uint8_t *data, size_t n)
{
	free(l->poor);
	l->poor = xzalloc(n);
	memcpy(l->poor, data, n);
	l->n_poor = n;
}

/* True where L is done with or goes on elsewhere. */
static bool take_datagram(struct resolver *r, struct lookup *l, size_t n)
{
	struct dns_reply reply;
	if (dns_reply_parse(r->in, n, &reply) < 0 || !is_answer(l, &reply)) {
		if (++l->junk <= JUNK_MAX)
			return false;
		try_next(r, l);
	} else if (reply.truncated) {
		start_stream(r, l);
	} else if (says_nothing(&reply)) {
		keep_poor(l, r->in, n);
		try_next(r, l);
	} else {
		auto_free uint8_t *message = xzalloc(n);
		memcpy(message, r->in, n);
		finish(r, l, 0, message, n);
	}
	return true;
}

static void on_datagram(struct resolver *r, struct net_watch *watch, uint32_t events)
{
	struct lookup *l = (struct lookup *)(void *)watch;
	(void)events;
	for (;;) {
		ssize_t n = recv(l->fd, r->in, sizeof(r->in), 0);
		if (n < 0 && errno == EAGAIN)
			return;
		if (n < 0) {
			try_next(r, l); /* nobody listens there */
			return;
		}
		if (take_datagram(r, l, (size_t)n))
			return;
	}
}

static bool send_query(struct resolver *r, struct lookup *l)
{
	uint8_t message[DNS_PLAIN_UDP];
	if (open_socket(r, l, SOCK_DGRAM) < 0)
		return false;
	size_t n = dns_query_build(&l->question, l->id, l->edns, l->dnssec, message);
	l->watch.fn = on_datagram;
	return send(l->fd, message, n, MSG_NOSIGNAL) == (ssize_t)n &&
	       net_watch_fd(r, &l->watch, l->fd, EPOLLIN) == 0;
}

/* Goes on with the next server; L may be freed. */
static void try_next(struct resolver *r, struct lookup *l)
{
	int64_t now = net_now_ms();
	for (;;) {
		close_socket(l);
		if (!r->host.n_servers || l->tries >= ROUNDS * r->host.n_servers ||
		    now >= l->end_ms) {
			give_up(r, l);
			return;
		}
		unsigned int round = l->tries / (unsigned int)r->host.n_servers;
		l->tries++;
		l->junk = 0;
		l->due_ms = now + (int64_t)UDP_FIRST_MS * (round + 1);
		if (send_query(r, l))
			return;
	}
}

/* --- Turns ------------------------------------------------------------------------------------ */

/* Starts what waits for its turn; each start may end at once and free its look-up. */
static void run_waiting(struct resolver *r)
{
	while (r->n_running < LOOKUPS_RUNNING) {
		struct lookup *l = r->lookups;
		while (l && l->running)
			l = l->next;
		if (!l)
			return;
		l->running = true;
		r->n_running++;
		l->end_ms = net_now_ms() + TOTAL_MS;
		try_next(r, l);
	}
}

/* It starts with the next look at what is due, so that FN is never called from here. */
int lookup_start(struct resolver *r, const struct dns_question *q, bool edns, bool dnssec,
		 lookup_fn fn, void *data)
{
	if (r->n_lookups == LOOKUPS_MAX)
		return -EAGAIN;
	struct lookup *l = xnew(struct lookup);
	l->fn = fn;
	l->data = data;
	l->question = *q;
	l->edns = edns;
	l->dnssec = dnssec;
	l->fd = -1;
	*r->lookups_end = l;
	r->lookups_end = &l->next;
	r->n_lookups++;
	return 0;
}

static struct lookup *find_due(struct resolver *r, int64_t now_ms)
{
	struct lookup *l = r->lookups;
	while (l && (!l->running || l->due_ms > now_ms))
		l = l->next;
	return l;
}

int64_t lookup_run_due(struct resolver *r, int64_t now_ms)
{
	int64_t next = 0;
	for (struct lookup *l = find_due(r, now_ms); l; l = find_due(r, now_ms))
		try_next(r, l);
	run_waiting(r);
	for (struct lookup *l = r->lookups; l; l = l->next)
		if (l->running && (!next || l->due_ms < next))
			next = l->due_ms;
	return next;
}

void lookup_free_all(struct resolver *r, void (*free_data)(void *data))
{
	while (r->lookups) {
		struct lookup *l = r->lookups;
		r->lookups = l->next;
		free_data(l->data);
		free_lookup(l);
	}
	r->lookups_end = &r->lookups;
	r->n_lookups = r->n_running = 0;
}
