/* SPDX-License-Identifier: Apache-2.0 */
/* The asking side of the control socket: see client.h. Nothing here blocks but the one poll. */
#include "control/client.h"

#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "base/util.h"
#include "base/value.h"

/* Connections that are open at a time. */
#define BATCH 64
/* Read at a time, so that what a length claims costs nothing before it comes. */
#define PIECE ((size_t)16384)

struct link {
	struct control_query *query;
	int fd; /* -1: over */
	char *request;
	size_t request_len;
	size_t sent;
	char header[CONTROL_HEADER];
	char *in;
	size_t in_len; /* what the header says */
	size_t room;
	size_t got; /* header included */
};

static int64_t now_ms(void)
{
	struct timespec ts;
	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

/* A connection that is ours on both sides, or a negative errno. */
static int connect_to(int dir_fd)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	struct ucred peer;
	socklen_t len = sizeof(peer);
	auto_close int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	snprintf(addr.sun_path, sizeof(addr.sun_path), "/proc/self/fd/%d/" CONTROL_SOCKET_NAME,
		 dir_fd);
	/* Full, its queue gives EAGAIN: whoever lets it fill does not answer. */
	if (connect(fd, (struct sockaddr *)&addr, sizeof(addr)) < 0)
		return errno == EAGAIN ? -ETIMEDOUT : -errno;
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) < 0)
		return -errno;
	if (peer.uid != geteuid())
		return -EPERM;
	return take_fd(&fd);
}

static void link_end(struct link *l, int result)
{
	l->fd = util_close(l->fd);
	l->query->result = result;
	free(take_ptr(l->request));
	free(take_ptr(l->in));
}

/* 0 to go on, or the negative errno that ends it. */
static int link_send(struct link *l)
{
	ssize_t n = send(l->fd, l->request + l->sent, l->request_len - l->sent,
			 MSG_DONTWAIT | MSG_NOSIGNAL);
	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -errno;
	l->sent += (size_t)n;
	return 0;
}

static void link_begin(struct link *l, struct control_query *query)
{
	*l = (struct link){.query = query, .fd = -1};
	int fd = connect_to(query->dir_fd);
	if (fd < 0) {
		link_end(l, fd);
		return;
	}
	l->fd = fd;
	l->request = control_request_text(query->verb, query->args, &l->request_len);
	/* At once: a connection that says nothing is the first that a busy server gives up. */
	int r = link_send(l);
	if (r < 0)
		link_end(l, r);
}

static void grow(struct link *l)
{
	size_t have = l->got - CONTROL_HEADER;
	if (have < l->room)
		return;
	l->room = l->in_len - have < PIECE ? l->in_len : have + PIECE;
	l->in = xrealloc(l->in, l->room + 1, 1);
}

/* 1 once the reply is whole, 0 to go on, or a negative errno. */
static int link_receive(struct link *l)
{
	bool in_header = l->got < CONTROL_HEADER;
	if (!in_header)
		grow(l);
	char *at = in_header ? l->header + l->got : l->in + (l->got - CONTROL_HEADER);
	size_t want = in_header ? CONTROL_HEADER - l->got : l->room - (l->got - CONTROL_HEADER);
	ssize_t n = recv(l->fd, at, want, MSG_DONTWAIT);
	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -errno;
	if (n == 0)
		return -ECONNRESET;
	l->got += (size_t)n;
	if (l->got == CONTROL_HEADER) {
		l->in_len = control_get_length(l->header);
		if (l->in_len == 0 || l->in_len > CONTROL_REPLY_MAX)
			return -EPROTO;
	}
	return l->got > CONTROL_HEADER && l->got == CONTROL_HEADER + l->in_len;
}

static void link_step(struct link *l)
{
	int r = l->sent < l->request_len ? link_send(l) : link_receive(l);
	if (r < 0) {
		link_end(l, r);
	} else if (r == 1) {
		r = control_reply_parse(l->in, l->in_len, &l->query->data, &l->query->why);
		link_end(l, r);
	}
}

static void run_batch(struct link *links, size_t n, int64_t until_ms)
{
	struct pollfd pfd[BATCH];
	for (;;) {
		size_t open = 0;
		for (size_t i = 0; i < n; i++) {
			const struct link *l = &links[i];
			bool sending = l->sent < l->request_len;
			pfd[i] = (struct pollfd){.fd = l->fd, .events = sending ? POLLOUT : POLLIN};
			open += l->fd >= 0;
		}
		/* Looked at in every round: a reply that comes in drops would go on for ever. */
		int64_t left = until_ms - now_ms();
		if (!open || left <= 0)
			break;
		poll(pfd, n, (int)left);
		for (size_t i = 0; i < n; i++) {
			if (links[i].fd >= 0 && pfd[i].revents)
				link_step(&links[i]);
		}
	}
	for (size_t i = 0; i < n; i++) {
		if (links[i].fd >= 0)
			link_end(&links[i], -ETIMEDOUT);
	}
}

void control_query_all(struct control_query *queries, size_t n, int timeout_ms)
{
	struct link links[BATCH];
	int64_t until = now_ms() + timeout_ms;
	for (size_t from = 0; from < n; from += BATCH) {
		size_t count = n - from < BATCH ? n - from : BATCH;
		for (size_t i = 0; i < count; i++)
			link_begin(&links[i], &queries[from + i]);
		/* Those behind a batch that hung get a moment each, not nothing. */
		int64_t moment = now_ms() + 50;
		run_batch(links, count, until > moment ? until : moment);
	}
}

void control_query_done(struct control_query *query)
{
	value_free(take_ptr(query->data));
	free(take_ptr(query->why));
}
