/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The guard of UDP ports. bind is judged, but a Unix socket's bind has to be left to the kernel,
 * where a second thread can have put a UDP socket and its address in place meanwhile. So UDP
 * sockets are made with a filter that drops what is sent to a port that the sandbox may not bind.
 * Ports of the kernel's choice are open: answers come there, and a bind of port 0 leads to them.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "base/util.h"
#include "policy/net_table.h"
#include "supervise/sock.h"
#include "sys/at.h"

enum {
	INSNS_MAX = BPF_MAXINSNS,
	INSNS_PER_RANGE = 3,
	IP4_SOURCE_AT = 12,
	IP6_SOURCE_AT = 8,
	PORT_AT = 2, /* of the destination, in the header of UDP, where the data begins */
};

struct sock_guard {
	struct sock_filter v[INSNS_MAX];
	size_t n;
};

/* What the kernel chooses from, here: Linux's own where it does not tell. */
static struct port_range chosen_ports(void)
{
	unsigned int lo = 0;
	unsigned int hi = 0;
	char text[64];
	ssize_t n = at_read_file(AT_FDCWD, "/proc/sys/net/ipv4/ip_local_port_range", text,
				 sizeof(text));
	/* NOLINTNEXTLINE(cert-err34-c): the kernel writes these numbers */
	if (n < 0 || sscanf(text, "%u %u", &lo, &hi) != 2 || lo > hi || hi > 65535)
		return (struct port_range){32768, 60999};
	return (struct port_range){(uint16_t)lo, (uint16_t)hi};
}

static bool is_open(const struct policy *p, struct port_range chosen, uint32_t port)
{
	return (port >= chosen.lo && port <= chosen.hi) || net_policy_may_bind(p, (uint16_t)port);
}

/* By the header before the one that the filter starts at. Nothing on a wire has such a source. */
static void add_loopback_only(struct sock_guard *g)
{
	static const struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_B | BPF_ABS, (uint32_t)SKF_NET_OFF),
		BPF_STMT(BPF_ALU | BPF_RSH | BPF_K, 4),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 6, 3, 0),
		BPF_STMT(BPF_LD | BPF_B | BPF_ABS, (uint32_t)SKF_NET_OFF + IP4_SOURCE_AT),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 127, 10, 0),
		BPF_STMT(BPF_RET | BPF_K, 0),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t)SKF_NET_OFF + IP6_SOURCE_AT),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0, 0, 6),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t)SKF_NET_OFF + IP6_SOURCE_AT + 4),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0, 0, 4),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t)SKF_NET_OFF + IP6_SOURCE_AT + 8),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0, 0, 2),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t)SKF_NET_OFF + IP6_SOURCE_AT + 12),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 1, 1, 0),
		BPF_STMT(BPF_RET | BPF_K, 0),
	};
	for (size_t i = 0; i < ARRAY_SIZE(code); i++)
		g->v[g->n++] = code[i];
}

/* Jumps reach 255 instructions only: each range has its own way out. */
static bool add_range(struct sock_guard *g, uint32_t lo, uint32_t hi)
{
	if (g->n + INSNS_PER_RANGE >= INSNS_MAX)
		return false;
	g->v[g->n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, lo, 0, 2);
	g->v[g->n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, hi, 1, 0);
	g->v[g->n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, UINT32_MAX);
	return true;
}

struct sock_guard *sock_guard_new(const struct policy *p)
{
	struct sock_guard *g = xnew(struct sock_guard);
	struct port_range chosen = chosen_ports();
	bool fits = true;
	if (p->net_max_bytes)
		add_loopback_only(g);
	g->v[g->n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_H | BPF_ABS, PORT_AT);
	for (uint32_t port = 1; port <= 65535; port++) {
		uint32_t lo = port;
		while (port <= 65535 && is_open(p, chosen, port))
			port++;
		fits = fits && (port == lo || add_range(g, lo, port - 1));
	}
	g->v[g->n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, 0);
	if (fits)
		return g;
	sock_guard_free(g);
	return NULL;
}

void sock_guard_free(struct sock_guard *g)
{
	free(g);
}

int sock_guard_set(const struct sock_guard *g, int fd)
{
	int on = 1;
	if (!g)
		return -ENOBUFS;
	struct sock_fprog prog = {.len = (unsigned short)g->n,
				  .filter = (struct sock_filter *)(uintptr_t)g->v};
	if (setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &prog, sizeof(prog)) < 0 ||
	    setsockopt(fd, SOL_SOCKET, SO_LOCK_FILTER, &on, sizeof(on)) < 0)
		return -errno;
	return 0;
}
