/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The resolver by TCP: a listener on loopback, and a bounded number of connections. A connection
 * has one question at a time; more of them wait in the socket.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/util.h"
#include "net/resolver_internal.h"

#define IDLE_MS	   15000
#define BACKLOG	   16
#define FRAME_SIZE ((size_t)DNS_MESSAGE_MAX + 2)

struct connection {
	struct net_watch watch;
	struct connection *next;
	uint64_t id;
	int fd;
	uint16_t port; /* of its client */
	bool known;
	bool waits; /* for its reply */
	bool sending;
	uint8_t *buffer; /* owned: a length of two bytes, then the message */
	size_t done;
	int64_t due_ms;
};

static void end_connection(struct resolver *r, struct connection *c)
{
	for (struct connection **p = &r->connections; *p; p = &(*p)->next) {
		if (*p == c) {
			*p = c->next;
			break;
		}
	}
	r->n_connections--;
	util_close(c->fd);
	free(c->buffer);
	free(c);
}

static struct connection *find_connection(struct resolver *r, uint64_t id)
{
	struct connection *c = r->connections;
	while (c && c->id != id)
		c = c->next;
	return c;
}

static size_t frame_size(const struct connection *c)
{
	return 2 + ((size_t)c->buffer[0] << 8 | c->buffer[1]);
}

static void watch_for(struct resolver *r, struct connection *c, uint32_t events)
{
	struct epoll_event ev = {.events = events, .data.ptr = &c->watch};
	if (epoll_ctl(r->epoll_fd, EPOLL_CTL_MOD, c->fd, &ev) < 0)
		end_connection(r, c);
}

/* 1: the frame is read; 0: not yet; a negative errno. */
static int read_frame(struct connection *c)
{
	for (;;) {
		size_t size = c->done < 2 ? 2 : frame_size(c);
		if (c->done >= 2 && size == 2)
			return -EBADMSG;
		if (c->done >= 2 && c->done == size)
			return 1;
		ssize_t n = recv(c->fd, c->buffer + c->done, size - c->done, 0);
		if (n == 0)
			return -ECONNRESET;
		if (n < 0)
			return errno == EAGAIN ? 0 : -errno;
		c->done += (size_t)n;
	}
}

/* While a question is open, only an end of both directions is of interest: a client may have closed
 * its own. */
static void take_question(struct resolver *r, struct connection *c)
{
	int got = read_frame(c);
	if (got == 0)
		return;
	/* The one that connected may not have been taken note of when it was accepted. */
	if (got > 0 && !c->known)
		c->known = resolver_has_client(r, c->port);
	if (got < 0 || !c->known) {
		end_connection(r, c);
		return;
	}
	struct asker asker = {.fd = -1, .connection = c->id};
	size_t n = frame_size(c) - 2;
	c->waits = true;
	c->done = 0;
	c->due_ms = net_now_ms() + IDLE_MS;
	/* The reply may come at once: then C is not what it was, or gone. */
	auto_free uint8_t *question = xzalloc(n);
	memcpy(question, c->buffer + 2, n);
	watch_for(r, c, 0);
	if (request_handle(r, question, n, &asker) < 0) {
		struct connection *left = find_connection(r, asker.connection);
		if (left)
			end_connection(r, left);
	}
}

static void send_frame(struct resolver *r, struct connection *c)
{
	size_t size = frame_size(c);
	while (c->done < size) {
		ssize_t n = send(c->fd, c->buffer + c->done, size - c->done, MSG_NOSIGNAL);
		if (n < 0 && errno == EAGAIN) {
			watch_for(r, c, EPOLLOUT);
			return;
		}
		if (n <= 0) {
			end_connection(r, c);
			return;
		}
		c->done += (size_t)n;
	}
	c->sending = c->waits = false;
	c->done = 0;
	watch_for(r, c, EPOLLIN);
}

static void on_connection(struct resolver *r, struct net_watch *watch, uint32_t events)
{
	struct connection *c = (struct connection *)(void *)watch;
	if (c->waits && !c->sending) {
		if (events & (EPOLLHUP | EPOLLERR))
			end_connection(r, c);
	} else if (c->sending) {
		send_frame(r, c);
	} else {
		take_question(r, c);
	}
}

static uint16_t port_of(const union inet_addr *a)
{
	return a->sa.sa_family == AF_INET6 ? a->v6.sin6_port : a->v4.sin_port;
}

static void on_listener(struct resolver *r, struct net_watch *watch, uint32_t events)
{
	struct listener *l = (struct listener *)(void *)watch;
	union inet_addr peer = {0};
	socklen_t len = sizeof(peer);
	(void)events;
	auto_close int fd = accept4(l->fd, &peer.sa, &len, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (fd < 0 || r->n_connections == CONNECTIONS_MAX)
		return;
	struct connection *c = xnew(struct connection);
	c->watch.fn = on_connection;
	c->id = ++r->last_connection;
	c->port = port_of(&peer);
	c->buffer = xzalloc(FRAME_SIZE);
	c->due_ms = net_now_ms() + IDLE_MS;
	c->fd = take_fd(&fd);
	c->next = r->connections;
	r->connections = c;
	r->n_connections++;
	if (net_watch_fd(r, &c->watch, c->fd, EPOLLIN) < 0)
		end_connection(r, c);
}

int tcp_listen(struct resolver *r, bool v6)
{
	struct listener *l = &r->tcp[v6];
	union inet_addr a = {0};
	socklen_t len = sizeof(a);
	if (l->fd >= 0)
		return 0;
	auto_close int fd =
		socket(v6 ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	a.sa.sa_family = v6 ? AF_INET6 : AF_INET;
	if (v6)
		a.v6.sin6_addr = in6addr_loopback;
	else
		a.v4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (bind(fd, &a.sa, v6 ? sizeof(a.v6) : sizeof(a.v4)) < 0 || listen(fd, BACKLOG) < 0 ||
	    getsockname(fd, &a.sa, &len) < 0)
		return -errno;
	l->watch.fn = on_listener;
	int e = net_watch_fd(r, &l->watch, fd, EPOLLIN);
	if (e < 0)
		return e;
	l->port = port_of(&a);
	l->fd = take_fd(&fd);
	return 0;
}

void tcp_reply(struct resolver *r, uint64_t connection, const uint8_t *data, size_t n)
{
	struct connection *c = find_connection(r, connection);
	if (!c || !c->waits || c->sending || n > DNS_MESSAGE_MAX)
		return;
	c->buffer[0] = (uint8_t)(n >> 8);
	c->buffer[1] = (uint8_t)n;
	memcpy(c->buffer + 2, data, n);
	c->done = 0;
	c->sending = true;
	c->due_ms = net_now_ms() + IDLE_MS;
	send_frame(r, c);
}

int64_t tcp_run_due(struct resolver *r, int64_t now_ms)
{
	int64_t next = 0;
	for (struct connection *c = r->connections; c;) {
		struct connection *after = c->next;
		if (c->due_ms <= now_ms)
			end_connection(r, c);
		else if (!next || c->due_ms < next)
			next = c->due_ms;
		c = after;
	}
	return next;
}

void tcp_free_all(struct resolver *r)
{
	while (r->connections)
		end_connection(r, r->connections);
	for (size_t i = 0; i < ARRAY_SIZE(r->tcp); i++)
		r->tcp[i].fd = util_close(r->tcp[i].fd);
}
