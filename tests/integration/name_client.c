/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Asks a name server for an address as the resolvers of several C libraries do, and trusts a reply
 * only if it comes from the server that was asked.
 *
 *   name-client WAY SERVER NAME     prints the IPv4 addresses of NAME, one a line
 *
 * WAY: from (unconnected, recvfrom), msg (recvmsg), mmsg (sendmmsg and recvmmsg), mapped (an IPv6
 * socket and the mapped address, as musl), poll (non-blocking, poll first), connected (Go, glibc:
 * send and recv), same (connected, but the source is compared: c-ares), only6 (an IPv6 socket that
 * takes no mapped addresses), bound6 (one bound to ::1), tcp. Exit 0: a reply; 3: no reply in time;
 * 4: from somebody else; 5: the server said an error code, which is printed.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

static void die(const char *what)
{
	fprintf(stderr, "%s: %s\n", what, strerror(errno));
	exit(1);
}

static bool is(const char *a, const char *b)
{
	return strcmp(a, b) == 0;
}

static size_t make_query(const char *name, uint8_t *q)
{
	static const uint8_t head[12] = {0x4a, 0x17, 1, 0, 0, 1};
	static const uint8_t tail[5] = {0, 0, 1, 0, 1};
	size_t n = sizeof(head);
	memcpy(q, head, n);
	while (*name) {
		size_t len = strcspn(name, ".");
		q[n++] = (uint8_t)len;
		memcpy(q + n, name, len);
		n += len;
		name += len + (name[len] == '.');
	}
	memcpy(q + n, tail, sizeof(tail));
	return n + sizeof(tail);
}

/* Aliases in a reply of the sandbox's resolver are pointers or whole names: both end a record. */
static size_t skip_name(const uint8_t *d, size_t n, size_t at)
{
	while (at < n && d[at]) {
		if (d[at] >= 0xc0)
			return at + 2;
		at += d[at] + 1u;
	}
	return at + 1;
}

static int print(const uint8_t *d, size_t n)
{
	if (n < 12 || d[0] != 0x4a || d[1] != 0x17 || !(d[2] & 0x80))
		return 4;
	if (d[3] & 15) {
		printf("rcode %d\n", d[3] & 15);
		return 5;
	}
	unsigned int answers = (unsigned int)d[6] << 8 | d[7];
	size_t at = skip_name(d, n, 12) + 4;
	if (d[2] & 2)
		puts("truncated");
	for (; answers && at < n; answers--) {
		at = skip_name(d, n, at);
		if (at + 10 > n)
			return 4;
		unsigned int type = (unsigned int)d[at] << 8 | d[at + 1];
		unsigned int len = (unsigned int)d[at + 8] << 8 | d[at + 9];
		at += 10;
		if (type == 1 && len == 4 && at + 4 <= n)
			printf("%d.%d.%d.%d\n", d[at], d[at + 1], d[at + 2], d[at + 3]);
		at += len;
	}
	return 0;
}

struct way {
	struct sockaddr_storage server;
	socklen_t len;
	int fd;
	uint8_t query[512];
	size_t n;
	uint8_t reply[65536];
};

static void set_server(struct way *w, const char *way, const char *text)
{
	struct sockaddr_in *v4 = (struct sockaddr_in *)&w->server;
	struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)&w->server;
	char mapped[64];
	snprintf(mapped, sizeof(mapped), "::ffff:%s", text);
	if (is(way, "mapped") && !strchr(text, ':'))
		text = mapped;
	if (strchr(text, ':')) {
		v6->sin6_family = AF_INET6;
		v6->sin6_port = htons(53);
		w->len = sizeof(*v6);
		if (inet_pton(AF_INET6, text, &v6->sin6_addr) != 1)
			die("address");
	} else {
		v4->sin_family = AF_INET;
		v4->sin_port = htons(53);
		w->len = sizeof(*v4);
		if (inet_pton(AF_INET, text, &v4->sin_addr) != 1)
			die("address");
	}
}

static bool same(const struct way *w, const struct sockaddr_storage *from, socklen_t len)
{
	return len == w->len && memcmp(from, &w->server, len) == 0;
}

static void check(ssize_t n)
{
	if (n < 0 && errno == EAGAIN)
		exit(3);
	if (n < 0)
		die("receive");
}

static ssize_t by_udp(struct way *w, const char *way)
{
	struct sockaddr_storage from;
	struct iovec out = {w->query, w->n};
	struct iovec in = {w->reply, sizeof(w->reply)};
	struct msghdr h = {
		.msg_name = &w->server, .msg_namelen = w->len, .msg_iov = &out, .msg_iovlen = 1};
	struct mmsghdr m = {.msg_hdr = h};
	bool connected = is(way, "connected") || is(way, "same");
	ssize_t n;
	if (connected && connect(w->fd, (struct sockaddr *)&w->server, w->len) < 0)
		die("connect");
	if (connected)
		n = send(w->fd, w->query, w->n, 0);
	else if (is(way, "msg"))
		n = sendmsg(w->fd, &h, 0);
	else if (is(way, "mmsg"))
		n = sendmmsg(w->fd, &m, 1, 0);
	else
		n = sendto(w->fd, w->query, w->n, 0, (struct sockaddr *)&w->server, w->len);
	if (n < 0)
		die("send");
	if (is(way, "poll")) {
		struct pollfd p = {.fd = w->fd, .events = POLLIN};
		fcntl(w->fd, F_SETFL, O_NONBLOCK);
		if (poll(&p, 1, 8000) != 1)
			exit(3);
	}
	h.msg_name = &from;
	h.msg_namelen = sizeof(from);
	h.msg_iov = &in;
	m.msg_hdr = h;
	socklen_t len = sizeof(from);
	if (is(way, "connected")) {
		n = recv(w->fd, w->reply, sizeof(w->reply), 0);
		check(n);
		return n;
	}
	if (is(way, "msg")) {
		n = recvmsg(w->fd, &h, 0);
		len = h.msg_namelen;
	} else if (is(way, "mmsg")) {
		n = recvmmsg(w->fd, &m, 1, MSG_WAITFORONE, NULL);
		len = m.msg_hdr.msg_namelen;
		n = n == 1 ? (ssize_t)m.msg_len : -1;
	} else {
		n = recvfrom(w->fd, w->reply, sizeof(w->reply), 0, (struct sockaddr *)&from, &len);
	}
	check(n);
	if (!same(w, &from, len))
		exit(4);
	return n;
}

static ssize_t by_tcp(struct way *w)
{
	uint8_t head[2] = {(uint8_t)(w->n >> 8), (uint8_t)w->n};
	if (connect(w->fd, (struct sockaddr *)&w->server, w->len) < 0)
		die("connect");
	if (write(w->fd, head, 2) != 2 || write(w->fd, w->query, w->n) != (ssize_t)w->n)
		die("write");
	ssize_t n = recv(w->fd, head, 2, MSG_WAITALL);
	check(n);
	if (n != 2)
		exit(3);
	n = recv(w->fd, w->reply, (size_t)head[0] << 8 | head[1], MSG_WAITALL);
	check(n);
	return n;
}

int main(int argc, char **argv)
{
	static struct way w;
	struct timeval patience = {.tv_sec = 15};
	if (argc != 4)
		return 2;
	set_server(&w, argv[1], argv[2]);
	bool tcp = is(argv[1], "tcp");
	w.fd = socket(w.server.ss_family, tcp ? SOCK_STREAM : SOCK_DGRAM, 0);
	if (w.fd < 0)
		die("socket");
	int on = 1;
	struct sockaddr_in6 own = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
	if (is(argv[1], "only6") && setsockopt(w.fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on)))
		die("setsockopt");
	if (is(argv[1], "bound6") && bind(w.fd, (struct sockaddr *)&own, sizeof(own)) < 0)
		die("bind");
	setsockopt(w.fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	w.n = make_query(argv[3], w.query);
	ssize_t n = tcp ? by_tcp(&w) : by_udp(&w, argv[1]);
	return print(w.reply, (size_t)n);
}
