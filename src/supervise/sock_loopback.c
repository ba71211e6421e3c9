/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whose a port on the loopback addresses is. All sandboxes and the host share them, so a sandbox
 * that may reach its own listeners only is let through where every socket that the kernel could
 * choose for the destination is its own; the copy of one of them is held until the connection is
 * made, so that the port cannot pass to a stranger in between.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

#include "base/util.h"
#include "supervise/sock.h"
#include "sys/proc.h"

enum {
	BOUND_MAX = 32, /* sockets that share a port */
	TCP_LISTEN_STATE = 10,
};

struct search {
	const struct net_point *point;
	bool v6_list; /* the list at hand shows IPv6 sockets */
	uint64_t inodes[BOUND_MAX];
	size_t n;
	bool too_many;
};

static bool is_zero(const uint8_t *v, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (v[i])
			return false;
	return true;
}

/* The address as a list shows it: words of four bytes, each as this machine reads a number. */
static bool read_address(const char *text, bool v6, uint8_t *ret_addr)
{
	size_t words = v6 ? 4 : 1;
	for (size_t i = 0; i < words; i++) {
		unsigned int word = 0;
		/* NOLINTNEXTLINE(cert-err34-c): the kernel writes this number */
		if (sscanf(text + 8 * i, "%8x", &word) != 1)
			return false;
		memcpy(ret_addr + 4 * i, &word, sizeof(word));
	}
	return text[8 * words] == ':';
}

/*
 * Whether a socket bound to ADDR may be chosen. Which of several the kernel prefers depends on more
 * than the list shows (a device, a preference for one family): so each counts.
 */
static bool covers(const struct search *s, const uint8_t *addr)
{
	static const uint8_t mapped_any[16] = {[10] = 0xff, [11] = 0xff};
	struct net_point own;
	if (is_zero(addr, s->v6_list ? 16 : 4))
		return s->v6_list || !s->point->v6;
	if (s->v6_list && memcmp(addr, mapped_any, sizeof(mapped_any)) == 0)
		return !s->point->v6;
	net_point_set(&own, s->point->proto, s->v6_list, addr, s->point->port);
	return own.v6 == s->point->v6 && memcmp(own.addr, s->point->addr, own.v6 ? 16 : 4) == 0;
}

/* A line: number, local address, remote address, state, queues, timer, retries, uid, wait, inode.
 */
static void read_line(void *data, const char *line)
{
	struct search *s = data;
	char local[48] = "";
	unsigned int state = 0;
	unsigned long long inode = 0;
	unsigned int port = 0;
	uint8_t addr[16] = {0};
	/* NOLINTNEXTLINE(cert-err34-c): the kernel writes these numbers */
	if (sscanf(line, " %*[^:]: %47s %*s %x %*s %*s %*s %*s %*s %llu", local, &state, &inode) !=
	    3)
		return;
	const char *colon = strchr(local, ':');
	/* NOLINTNEXTLINE(cert-err34-c): the kernel writes this number */
	if (!colon || sscanf(colon, ":%4x", &port) != 1 || port != s->point->port)
		return;
	if (s->point->proto == NET_TCP && state != TCP_LISTEN_STATE)
		return;
	if (!read_address(local, s->v6_list, addr) || !covers(s, addr))
		return;
	if (s->n == BOUND_MAX)
		s->too_many = true;
	else
		s->inodes[s->n++] = inode;
}

/* A listener at the port, or a UDP socket there. */
static bool is_it(void *data, int fd)
{
	const struct net_point *p = data;
	struct sock_info info;
	struct sockaddr_in6 bound = {0};
	socklen_t len = sizeof(bound);
	int listens = 0;
	socklen_t n = sizeof(listens);
	if (sock_info_get(fd, &info) < 0 || sock_proto(&info) != p->proto ||
	    getsockname(fd, (struct sockaddr *)&bound, &len) < 0 ||
	    ntohs(bound.sin6_port) != p->port)
		return false;
	return p->proto != NET_TCP ||
	       (getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &n) == 0 && listens);
}

/* All of them must be the sandbox's; a copy of the last is what is held. */
static int find_all(struct call *call, const struct search *s, int *ret_hold)
{
	auto_close int hold = -1;
	if (s->too_many)
		return -EPERM;
	for (size_t i = 0; i < s->n; i++) {
		struct sock_search what = {.inodes = &s->inodes[i],
					   .n = 1,
					   .is_it = is_it,
					   .data = (void *)(uintptr_t)s->point};
		int fd = sock_own_find(call, &what);
		if (fd < 0)
			return fd;
		util_close(hold);
		hold = fd;
	}
	*ret_hold = take_fd(&hold);
	return 0;
}

int sock_loopback_find(struct call *call, const struct net_point *point, int *ret_hold)
{
	bool tcp = point->proto == NET_TCP;
	struct search s = {.point = point};
	int r = proc_each_line(tcp ? "/proc/net/tcp" : "/proc/net/udp", read_line, &s);
	s.v6_list = true;
	if (r >= 0)
		r = proc_each_line(tcp ? "/proc/net/tcp6" : "/proc/net/udp6", read_line, &s);
	if (r < 0 && r != -ENOENT)
		return -EPERM;
	return s.n ? find_all(call, &s, ret_hold) : -ECONNREFUSED;
}
