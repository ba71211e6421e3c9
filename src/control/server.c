/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The control socket's server. Each step does a bounded piece of work for whoever is ready; a
 * client that stalls costs a slot until its time is up, or until another needs the slot.
 */
#include "control/server.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "base/util.h"
#include "base/value.h"
#include "control/protocol.h"

/* How long no connection is taken after one failed for want of descriptors or memory. */
#define PAUSE_MS 100
/* Connections taken per step. */
#define ACCEPT_ROUND 16
/* Connections that wait to be taken; further ones are told to try again. */
#define BACKLOG 128

struct client {
	int fd; /* -1: free */
	int64_t until_ms;
	char header[CONTROL_HEADER];
	char *in; /* the request, once its length is known */
	size_t in_len;
	size_t got; /* of header and request together */
	char *out;
	size_t out_len;
	size_t sent;
};

struct control_server {
	const struct control_ops *ops;
	void *data;
	int epoll_fd;
	int listen_fd;
	int64_t paused_until_ms; /* 0: not paused */
	struct client clients[CONTROL_CLIENTS];
};

static int64_t now_ms(void)
{
	struct timespec ts;
	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

/* --- Clients -------------------------------------------------------------------------------- */

static void client_close(struct client *c)
{
	c->fd = util_close(c->fd); /* leaves the epoll set with it */
	free(take_ptr(c->in));
	free(take_ptr(c->out));
	c->in_len = c->got = c->out_len = c->sent = 0;
}

/* A free slot; where there is none, that of the client who has had the longest time. */
static struct client *take_slot(struct control_server *s)
{
	struct client *oldest = &s->clients[0];
	for (size_t i = 0; i < CONTROL_CLIENTS; i++) {
		if (s->clients[i].fd < 0)
			return &s->clients[i];
		if (s->clients[i].until_ms < oldest->until_ms)
			oldest = &s->clients[i];
	}
	client_close(oldest);
	return oldest;
}

static bool is_own_uid(int fd)
{
	struct ucred peer;
	socklen_t len = sizeof(peer);
	return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) == 0 && len == sizeof(peer) &&
	       peer.uid == geteuid();
}

/* The words for what a verb failed with: REASON, or those for CODE. */
static char *failure_reply(enum control_verb verb, int code, const char *reason, size_t *ret_len)
{
	auto_free char *why = xasprintf("%s failed: %s", control_verb_name(verb),
					reason ? reason : strerror(code));
	return control_reply_error(why, ret_len);
}

static char *answer(struct control_server *s, enum control_verb verb, const struct value *args,
		    size_t *ret_len)
{
	auto_free char *json = NULL;
	auto_free char *reason = NULL;
	int r = -EOPNOTSUPP;
	switch (verb) {
	case CONTROL_CONFIG:
		r = s->ops->config(s->data, &json);
		break;
	case CONTROL_PORTS:
		r = s->ops->ports(s->data, &json);
		break;
	case CONTROL_INFO:
		r = s->ops->info(s->data, &json);
		break;
	case CONTROL_KILL:
		r = s->ops->kill(s->data);
		break;
	case CONTROL_QUESTIONS:
		r = s->ops->questions(s->data, &json);
		break;
	case CONTROL_ANSWER:
		r = s->ops->answer(s->data, args, &reason);
		break;
	case CONTROL_VERB_COUNT:
		break;
	}
	return r < 0 ? failure_reply(verb, -r, reason, ret_len)
		     : control_reply_ok(json ? json : "{}", ret_len);
}

static void make_reply(struct control_server *s, struct client *c)
{
	enum control_verb verb;
	auto_free char *why = NULL;
	AUTO(value_free) struct value *args = NULL;
	if (control_request_parse(c->in, c->in_len, &verb, &args, &why) == 0)
		c->out = answer(s, verb, args, &c->out_len);
	else
		c->out = control_reply_error(why, &c->out_len);
}

/* The length is there: memory for the request, or the refusal. */
static void begin_request(struct client *c)
{
	c->in_len = control_get_length(c->header);
	if (c->in_len > CONTROL_REQUEST_MAX) {
		auto_free char *why = xasprintf("request too large (%zu bytes, at most %zu)",
						c->in_len, CONTROL_REQUEST_MAX);
		c->out = control_reply_error(why, &c->out_len);
	} else {
		c->in = xzalloc(c->in_len + 1);
	}
}

/* Takes what is there of header and request. 1 to go on, 0 if there is no more now, or -1. */
static int client_read(struct control_server *s, struct client *c)
{
	bool in_header = c->got < CONTROL_HEADER;
	char *at = in_header ? c->header + c->got : c->in + (c->got - CONTROL_HEADER);
	size_t want = in_header ? CONTROL_HEADER - c->got : CONTROL_HEADER + c->in_len - c->got;
	ssize_t n = recv(c->fd, at, want, MSG_DONTWAIT);
	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -1;
	if (n == 0)
		return -1;
	c->got += (size_t)n;
	if (in_header && c->got == CONTROL_HEADER)
		begin_request(c);
	if (c->in && c->got == CONTROL_HEADER + c->in_len)
		make_reply(s, c);
	return 1;
}

/* 1 once all is sent, 0 if there is no room now, or -1. */
static int client_write(struct client *c)
{
	while (c->sent < c->out_len) {
		ssize_t n = send(c->fd, c->out + c->sent, c->out_len - c->sent,
				 MSG_DONTWAIT | MSG_NOSIGNAL);
		if (n < 0)
			return errno == EAGAIN || errno == EINTR ? 0 : -1;
		c->sent += (size_t)n;
	}
	return 1;
}

/* One client's turn: at most its request and as much of the reply as there is room for. */
static void client_step(struct control_server *s, struct client *c)
{
	int r = 1;
	while (r == 1 && !c->out)
		r = client_read(s, c);
	if (r == 0)
		return;
	if (r == 1)
		r = client_write(c);
	if (r != 0) {
		client_close(c);
		return;
	}
	struct epoll_event ev = {.events = EPOLLOUT, .data.ptr = c};
	if (epoll_ctl(s->epoll_fd, EPOLL_CTL_MOD, c->fd, &ev) < 0)
		client_close(c);
}

/* --- The listening socket ------------------------------------------------------------------- */

static void watch_listener(struct control_server *s, int64_t paused_until_ms)
{
	struct epoll_event ev = {.events = paused_until_ms ? 0 : EPOLLIN, .data.ptr = NULL};
	s->paused_until_ms = paused_until_ms;
	epoll_ctl(s->epoll_fd, EPOLL_CTL_MOD, s->listen_fd, &ev);
}

static void admit(struct control_server *s, int fd)
{
	if (!is_own_uid(fd)) {
		close(fd);
		return;
	}
	struct client *c = take_slot(s);
	struct epoll_event ev = {.events = EPOLLIN, .data.ptr = c};
	c->fd = fd;
	c->until_ms = now_ms() + CONTROL_CLIENT_MS;
	if (epoll_ctl(s->epoll_fd, EPOLL_CTL_ADD, fd, &ev) < 0)
		client_close(c);
	else
		client_step(s, c); /* most requests are there already */
}

static void accept_clients(struct control_server *s)
{
	for (int i = 0; i < ACCEPT_ROUND; i++) {
		int fd = accept4(s->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
		if (fd >= 0) {
			admit(s, fd);
			continue;
		}
		/* Out of descriptors or memory: the connection stays, and would wake us for ever.
		 */
		if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED)
			watch_listener(s, now_ms() + PAUSE_MS);
		return;
	}
}

static int open_listener(int dir_fd)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	auto_close int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	/* The name takes its mode from the socket: it never exists with another one. */
	if (fchmod(fd, 0600) < 0)
		return -errno;
	/* The directory's own path may be longer than an address can hold. */
	snprintf(addr.sun_path, sizeof(addr.sun_path), "/proc/self/fd/%d/" CONTROL_SOCKET_NAME,
		 dir_fd);
	if (bind(fd, (struct sockaddr *)&addr, sizeof(addr)) < 0 || listen(fd, BACKLOG) < 0)
		return -errno;
	return take_fd(&fd);
}

/* --- The server ----------------------------------------------------------------------------- */

int control_server_new(const struct control_ops *ops, void *data,
		       struct control_server **ret_server)
{
	auto_close int epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (epoll_fd < 0)
		return -errno;
	struct control_server *s = xnew(struct control_server);
	s->ops = ops;
	s->data = data;
	s->epoll_fd = take_fd(&epoll_fd);
	s->listen_fd = -1;
	for (size_t i = 0; i < CONTROL_CLIENTS; i++)
		s->clients[i].fd = -1;
	*ret_server = s;
	return 0;
}

int control_server_listen(struct control_server *s, int dir_fd)
{
	struct epoll_event ev = {.events = EPOLLIN, .data.ptr = NULL};
	auto_close int fd = open_listener(dir_fd);
	if (fd < 0)
		return fd;
	if (epoll_ctl(s->epoll_fd, EPOLL_CTL_ADD, fd, &ev) < 0)
		return -errno;
	s->listen_fd = take_fd(&fd);
	return 0;
}

int control_server_fd(const struct control_server *s)
{
	return s->epoll_fd;
}

int control_server_timeout_ms(const struct control_server *s)
{
	int64_t first = s->paused_until_ms ? s->paused_until_ms : INT64_MAX;
	for (size_t i = 0; i < CONTROL_CLIENTS; i++) {
		if (s->clients[i].fd >= 0 && s->clients[i].until_ms < first)
			first = s->clients[i].until_ms;
	}
	if (first == INT64_MAX)
		return -1;
	int64_t left = first - now_ms();
	return left < 0 ? 0 : (int)left;
}

static void end_overdue(struct control_server *s)
{
	int64_t now = now_ms();
	if (s->paused_until_ms && s->paused_until_ms <= now)
		watch_listener(s, 0);
	for (size_t i = 0; i < CONTROL_CLIENTS; i++) {
		if (s->clients[i].fd >= 0 && s->clients[i].until_ms <= now)
			client_close(&s->clients[i]);
	}
}

void control_server_step(struct control_server *s)
{
	struct epoll_event events[CONTROL_CLIENTS + 1];
	bool knocked = false;
	end_overdue(s);
	int n = epoll_wait(s->epoll_fd, events, CONTROL_CLIENTS + 1, 0);
	/* Clients first: taking new ones may give an old one's slot away. */
	for (int i = 0; i < n; i++) {
		struct client *c = events[i].data.ptr;
		if (!c)
			knocked = true;
		else if (c->fd >= 0)
			client_step(s, c);
	}
	if (knocked)
		accept_clients(s);
}

void control_server_free(struct control_server *s)
{
	if (!s)
		return;
	for (size_t i = 0; i < CONTROL_CLIENTS; i++)
		client_close(&s->clients[i]);
	util_close(s->listen_fd);
	util_close(s->epoll_fd);
	free(s);
}

void control_server_free_cleanup(struct control_server **s)
{
	control_server_free(*s);
}
