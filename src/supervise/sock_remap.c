/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Virtual ports. The number that was asked for is tried first, so that a sandbox that is alone has
 * it, and from then on the one that stood behind it before; if somebody else has that, any that is
 * free. A port is never shared with a stranger: SO_REUSEPORT and SO_REUSEADDR, which can mean that,
 * are off while the socket is bound, but where the sandbox has the port already.
 *
 * The sandbox's own listeners are reached by their virtual numbers. That the real port behind one
 * is the sandbox's still is looked at each time, and a copy of the socket is held meanwhile: a port
 * that was given up may be a stranger's by then.
 */
#include "supervise/sock_remap.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "base/util.h"
#include "net/ports.h"
#include "policy/policy.h"
#include "supervise/box.h"
#include "sys/proc.h"

/* The port lies at the same place in both families. */
static uint16_t port_of(const struct sock_addr *addr)
{
	struct sockaddr_in in;
	memcpy(&in, &addr->storage, sizeof(in));
	return ntohs(in.sin_port);
}

static void set_port(struct sock_addr *addr, uint16_t port)
{
	uint16_t wire = htons(port);
	memcpy((char *)&addr->storage + offsetof(struct sockaddr_in, sin_port), &wire,
	       sizeof(wire));
}

/* --- bind ------------------------------------------------------------------------------------ */

enum { TCP_CLOSE_STATE = 7, TCP_LISTEN_STATE = 10 };

static int get_option(int fd, int name)
{
	int value = 0;
	socklen_t n = sizeof(value);
	return getsockopt(fd, SOL_SOCKET, name, &value, &n) < 0 ? 0 : value;
}

static void set_option(int fd, int name, int value)
{
	setsockopt(fd, SOL_SOCKET, name, &value, sizeof(value));
}

static int bind_to(int fd, const struct sock_addr *addr, uint16_t port)
{
	struct sock_addr real = *addr;
	set_port(&real, port);
	return bind(fd, &real.sa, real.len) < 0 ? -errno : 0;
}

/* Without the options that let it share the port with strangers who set them, too. */
static int bind_alone(int fd, const struct sock_addr *addr, uint16_t port)
{
	int address = get_option(fd, SO_REUSEADDR);
	int group = get_option(fd, SO_REUSEPORT);
	if (address)
		set_option(fd, SO_REUSEADDR, 0);
	if (group)
		set_option(fd, SO_REUSEPORT, 0);
	int r = bind_to(fd, addr, port);
	if (address)
		set_option(fd, SO_REUSEADDR, address);
	if (group)
		set_option(fd, SO_REUSEPORT, group);
	return r;
}

struct remnants {
	uint16_t port;
	bool over;    /* a connection that is over, or goes on without its listener */
	bool listens; /* somebody listens */
};

static void read_line(void *data, const char *line)
{
	struct remnants *r = data;
	unsigned int port = 0;
	unsigned int state = 0;
	/* NOLINTNEXTLINE(cert-err34-c): the kernel writes these numbers */
	if (sscanf(line, " %*[^:]: %*[^:]:%4x %*s %x", &port, &state) != 2 || port != r->port)
		return;
	if (state == TCP_LISTEN_STATE)
		r->listens = true;
	else if (state != TCP_CLOSE_STATE)
		r->over = true;
}

/* Whether it is connections only that keep the port, which SO_REUSEADDR is for. */
static bool only_remnants(uint16_t port)
{
	struct remnants r = {.port = port};
	proc_each_line("/proc/net/tcp", read_line, &r);
	proc_each_line("/proc/net/tcp6", read_line, &r);
	return r.over && !r.listens;
}

/* What a socket is bound to, or is to be. */
struct binding {
	bool v6;
	bool any;
	bool only; /* of IPv6, and not of IPv4 as well */
	uint8_t addr[16];
};

static bool binding_of(int fd, const struct sock_addr *addr, struct binding *ret)
{
	static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};
	static const uint8_t none[16];
	socklen_t n = sizeof(int);
	int only = 0;
	*ret = (struct binding){.v6 = addr->sa.sa_family == AF_INET6};
	if (ret->v6) {
		struct sockaddr_in6 in;
		memcpy(&in, &addr->storage, sizeof(in));
		memcpy(ret->addr, &in.sin6_addr, sizeof(ret->addr));
		getsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &only, &n);
	} else if (addr->sa.sa_family == AF_INET) {
		struct sockaddr_in in;
		memcpy(&in, &addr->storage, sizeof(in));
		memcpy(ret->addr, &in.sin_addr, sizeof(in.sin_addr));
	} else {
		return false;
	}
	if (ret->v6 && memcmp(ret->addr, mapped, sizeof(mapped)) == 0) {
		ret->v6 = false;
		memmove(ret->addr, ret->addr + sizeof(mapped), 4);
		memset(ret->addr + 4, 0, sizeof(mapped));
	}
	ret->any = memcmp(ret->addr, none, sizeof(none)) == 0;
	ret->only = only;
	return true;
}

static bool conflict(const struct binding *a, const struct binding *b)
{
	if (a->v6 == b->v6)
		return a->any || b->any || memcmp(a->addr, b->addr, sizeof(a->addr)) == 0;
	const struct binding *six = a->v6 ? a : b;
	return six->any && !six->only;
}

static bool is_in_the_way(void *data, int fd)
{
	struct sock_addr bound = {.len = sizeof(bound.storage)};
	struct binding own;
	return getsockname(fd, &bound.sa, &bound.len) == 0 && binding_of(fd, &bound, &own) &&
	       conflict(&own, data);
}

/* Whether a socket that the sandbox has bound to the port already has ADDR for itself. */
static bool is_in_use(struct call *call, int fd, const struct sock_addr *addr,
		      const struct ports_key *key)
{
	struct binding wanted;
	if (!binding_of(fd, addr, &wanted))
		return false;
	for (int v6 = 0; v6 < 2; v6++) {
		uint64_t inodes[PORTS_INODES_KEPT];
		struct ports_key one = {key->proto, v6, key->port};
		size_t n = ports_inodes(call->box->ports, &one, inodes);
		struct sock_search what = {
			.inodes = inodes, .n = n, .is_it = is_in_the_way, .data = &wanted};
		auto_close int found = n ? sock_own_find(call, &what) : -1;
		if (found >= 0)
			return true;
	}
	return false;
}

/* The real port that was behind it, of the other family if need be; 0: none. */
static uint16_t real_before(struct ports *ports, const struct ports_key *key)
{
	struct ports_key other = {key->proto, !key->v6, key->port};
	uint16_t real = ports_real(ports, key);
	return real ? real : ports_real(ports, &other);
}

struct how {
	bool shared; /* with the sandbox's own */
	bool again;  /* connections that are over do not count */
	uint16_t port;
};

/* With the sandbox's ids. */
static int bind_so(struct call *call, int fd, const struct sock_addr *addr, struct how how)
{
	struct sock_ids ids;
	if (!sock_ids_begin(call->box, &ids))
		return -EPERM;
	int r = how.shared || how.again || !how.port ? bind_to(fd, addr, how.port)
						     : bind_alone(fd, addr, how.port);
	sock_ids_end(&ids);
	return r;
}

/*
 * 0; -EAGAIN: only a worker can do it; or what bind says. A port that this user may not have counts
 * as one that somebody has.
 */
static int bind_somewhere(struct call *call, int fd, const struct sock_addr *addr,
			  const struct ports_key *key)
{
	uint16_t before = real_before(call->box->ports, key);
	struct how how = {.port = before ? before : key->port};
	if (before && !call->on_worker)
		return -EAGAIN;
	/* What the sandbox has itself it may share, or not, as its options say. */
	how.shared = before && is_in_use(call, fd, addr, key);
	int r = bind_so(call, fd, addr, how);
	if (how.shared || (r != -EADDRINUSE && r != -EACCES))
		return r;
	if (r == -EADDRINUSE && key->proto == NET_TCP && get_option(fd, SO_REUSEADDR)) {
		if (!call->on_worker)
			return -EAGAIN;
		how.again = only_remnants(how.port);
		r = how.again ? bind_so(call, fd, addr, how) : r;
	}
	return r < 0 ? bind_so(call, fd, addr, (struct how){.port = 0}) : r;
}

static int note(struct ports *ports, int fd, const struct ports_key *key)
{
	struct sock_addr bound = {.len = sizeof(bound.storage)};
	struct stat st;
	if (getsockname(fd, &bound.sa, &bound.len) < 0 || fstat(fd, &st) < 0)
		return -errno;
	return ports_add(ports, key, port_of(&bound), st.st_ino);
}

/* One at a time: what one finds free the next would take. */
static int bind_in_turn(struct call *call, int fd, const struct sock_addr *addr,
			const struct net_point *point)
{
	struct ports *ports = call->box->ports;
	struct ports_key key = {point->proto, point->v6, point->port};
	if (!ports_lock(ports, call->on_worker))
		return -EAGAIN;
	int r = bind_somewhere(call, fd, addr, &key);
	if (r == 0)
		note(ports, fd, &key);
	ports_unlock(ports);
	return r;
}

bool sock_remap_bind(struct call *call, int fd, const struct sock_addr *addr,
		     const struct net_point *point, struct verdict *ret)
{
	struct sock_addr now = {.len = sizeof(now.storage)};
	if (!call->box->ports || !point->port ||
	    (point->proto != NET_TCP && point->proto != NET_UDP))
		return false;
	/* A second bind fails, as the kernel says. */
	if (getsockname(fd, &now.sa, &now.len) == 0 && port_of(&now))
		return false;
	if (!call_is_alive(call)) {
		*ret = (struct verdict){.answer = ANSWER_GONE};
		return true;
	}
	int r = bind_in_turn(call, fd, addr, point);
	*ret = r == -EAGAIN ? sock_to_worker(call) : r < 0 ? verdict_errno(-r) : verdict_value(0);
	return true;
}

/* --- Where a port leads ---------------------------------------------------------------------- */

int sock_remap_lead(struct call *call, const struct net_point *point, struct sock_target *ret)
{
	struct ports *ports = call->box->ports;
	if (!ports || !point->port || !net_point_is_loopback(point) || !ports_differ(ports))
		return 0;
	/* An IPv6 socket may have both; an IPv4 one has its own only. */
	for (int v6 = point->v6; v6 < 2; v6++) {
		struct ports_key key = {point->proto, v6, point->port};
		struct net_point real = *point;
		real.port = ports_real(ports, &key);
		if (!real.port || real.port == point->port)
			continue;
		if (!call->on_worker)
			return -EAGAIN;
		if (sock_loopback_find(call, &real, &ret->hold_fd) < 0)
			continue;
		set_port(&ret->addr, real.port);
		return 1;
	}
	return 0;
}

static bool same_address(const struct net_point *a, const struct net_point *b)
{
	return a->v6 == b->v6 && memcmp(a->addr, b->addr, a->v6 ? 16 : 4) == 0;
}

/* The other side is the sandbox's too where it is on this machine and has a port of its own. */
bool sock_remap_show(const struct box *box, const struct sock_info *info, bool peer,
		     const struct sock_addr *own, struct sock_addr *addr)
{
	struct net_point point;
	struct net_point own_point;
	struct sock_addr form;
	unsigned int proto = sock_proto(info);
	if (!box->ports || (proto != NET_TCP && proto != NET_UDP) ||
	    sock_inet_read(info, addr, false, &point, &form) < 0 || !point.port)
		return false;
	uint16_t port = ports_virtual(box->ports, proto, point.port);
	if (port == point.port)
		return false;
	if (peer && !net_point_is_loopback(&point) &&
	    (sock_inet_read(info, own, false, &own_point, &form) < 0 ||
	     !same_address(&own_point, &point)))
		return false;
	set_port(addr, port);
	return true;
}
