/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The resolver's sockets that face the sandbox, its clients, and its turns. A question is taken
 * from sockets only that were led here: other programs of the machine, which could reach these
 * ports as well, are not answered.
 */
#include "net/resolver.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/util.h"
#include "net/relay.h"
#include "net/resolver_internal.h"

enum {
	EVENTS_PER_STEP = 32,
	DATAGRAMS_PER_EVENT = 8,
	START_MS = 15000,
};

#define CLIENT_MS  ((int64_t)10 * 60 * 1000) /* how long a port stays known that asks nothing */
#define REFRESH_MS ((int64_t)5 * 60 * 1000)  /* of the addresses of denied names */

int64_t net_now_ms(void)
{
	struct timespec ts;
	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

int net_watch_fd(struct resolver *r, struct net_watch *watch, int fd, uint32_t events)
{
	struct epoll_event ev = {.events = events, .data.ptr = watch};
	return epoll_ctl(r->epoll_fd, EPOLL_CTL_ADD, fd, &ev) < 0 ? -errno : 0;
}

/* Read once, so that whoever steps the resolver learns when it wants to be called next. */
static void on_wake(struct resolver *r, struct net_watch *watch, uint32_t events)
{
	(void)watch;
	(void)events;
	r->wake_fd = util_close(r->wake_fd);
}

static int start_wake(struct resolver *r)
{
	r->wake.fn = on_wake;
	r->wake_fd = eventfd(1, EFD_CLOEXEC | EFD_NONBLOCK);
	return r->wake_fd < 0 ? -errno : net_watch_fd(r, &r->wake, r->wake_fd, EPOLLIN);
}

struct resolver *resolver_new_take(struct names *names)
{
	struct resolver *r = xnew(struct resolver);
	pthread_mutex_init(&r->lock, NULL);
	r->names = names;
	r->lookups_end = &r->lookups;
	r->tcp[0].fd = r->tcp[1].fd = r->wake_fd = -1;
	r->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (r->epoll_fd < 0) {
		int code = errno;
		resolver_free(r);
		errno = code;
		return NULL;
	}
	return r;
}

void resolver_free(struct resolver *r)
{
	if (!r)
		return;
	lookup_free_all(r, free);
	tcp_free_all(r);
	for (size_t i = 0; i < r->n_stand_ins; i++)
		for (size_t f = 0; f < 2; f++)
			util_close(r->stand_ins[i].on[f].fd);
	host_config_done(&r->host);
	names_free(r->names);
	util_close(r->wake_fd);
	util_close(r->epoll_fd);
	pthread_mutex_destroy(&r->lock);
	free(r);
}

struct names *resolver_names(struct resolver *r)
{
	return r->names;
}

int resolver_fd(const struct resolver *r)
{
	return r->epoll_fd;
}

void resolver_on_refused(struct resolver *r, resolver_refused_fn fn, void *data)
{
	pthread_mutex_lock(&r->lock);
	r->refused = fn;
	r->refused_data = data;
	pthread_mutex_unlock(&r->lock);
}

void resolver_set_relay(struct resolver *r, struct net_relay *relay)
{
	pthread_mutex_lock(&r->lock);
	r->relay = relay;
	pthread_mutex_unlock(&r->lock);
}

/* --- Addresses -------------------------------------------------------------------------------- */

static socklen_t addr_len(const union inet_addr *a)
{
	return a->sa.sa_family == AF_INET ? sizeof(a->v4) : sizeof(a->v6);
}

static uint16_t port_of(const union inet_addr *a)
{
	return a->sa.sa_family == AF_INET6 ? a->v6.sin6_port : a->v4.sin_port;
}

static void loopback(union inet_addr *ret, bool v6, uint16_t port)
{
	memset(ret, 0, sizeof(*ret));
	if (v6) {
		ret->v6.sin6_family = AF_INET6;
		ret->v6.sin6_addr = in6addr_loopback;
		ret->v6.sin6_port = port;
	} else {
		ret->v4.sin_family = AF_INET;
		ret->v4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
		ret->v4.sin_port = port;
	}
}

static bool is_mapped(const union inet_addr *a)
{
	return a->sa.sa_family == AF_INET6 && IN6_IS_ADDR_V4MAPPED(&a->v6.sin6_addr);
}

/* The IPv4 address that a mapped one stands for; others as they are. */
static union inet_addr unmap(const union inet_addr *a)
{
	union inet_addr v4 = {0};
	if (!is_mapped(a))
		return *a;
	v4.v4.sin_family = AF_INET;
	v4.v4.sin_port = a->v6.sin6_port;
	memcpy(&v4.v4.sin_addr, a->v6.sin6_addr.s6_addr + 12, 4);
	return v4;
}

static union inet_addr map(const union inet_addr *a)
{
	union inet_addr v6 = {0};
	v6.v6.sin6_family = AF_INET6;
	v6.v6.sin6_port = a->v4.sin_port;
	v6.v6.sin6_addr.s6_addr[10] = v6.v6.sin6_addr.s6_addr[11] = 0xff;
	memcpy(v6.v6.sin6_addr.s6_addr + 12, &a->v4.sin_addr, 4);
	return v6;
}

static bool same_server(const union inet_addr *a, const union inet_addr *b)
{
	if (a->sa.sa_family != b->sa.sa_family || port_of(a) != port_of(b))
		return false;
	if (a->sa.sa_family == AF_INET)
		return a->v4.sin_addr.s_addr == b->v4.sin_addr.s_addr;
	return IN6_ARE_ADDR_EQUAL(&a->v6.sin6_addr, &b->v6.sin6_addr) &&
	       a->v6.sin6_scope_id == b->v6.sin6_scope_id;
}

/* --- Clients ---------------------------------------------------------------------------------- */

static struct client *oldest_client(struct resolver *r)
{
	struct client *oldest = r->clients;
	if (r->n_clients < CLIENTS_MAX)
		return &r->clients[r->n_clients++];
	for (size_t i = 1; i < r->n_clients; i++)
		if (r->clients[i].last_ms < oldest->last_ms)
			oldest = &r->clients[i];
	return oldest;
}

static void note_client(struct resolver *r, uint64_t cookie, uint16_t port)
{
	struct client *c = NULL;
	for (size_t i = 0; i < r->n_clients && !c; i++)
		if (r->clients[i].cookie == cookie)
			c = &r->clients[i];
	if (!c)
		c = oldest_client(r);
	*c = (struct client){.cookie = cookie, .port = port, .last_ms = net_now_ms()};
}

bool resolver_has_client(struct resolver *r, uint16_t port)
{
	int64_t now = net_now_ms();
	for (size_t i = 0; i < r->n_clients; i++) {
		struct client *c = &r->clients[i];
		if (c->port != port || now - c->last_ms > CLIENT_MS)
			continue;
		c->last_ms = now;
		return true;
	}
	return false;
}

static int cookie_of(int fd, uint64_t *ret)
{
	socklen_t n = sizeof(*ret);
	return getsockopt(fd, SOL_SOCKET, SO_COOKIE, ret, &n) < 0 ? -errno : 0;
}

bool resolver_knows(struct resolver *r, int fd)
{
	uint64_t cookie;
	bool known = false;
	if (cookie_of(fd, &cookie) < 0)
		return false;
	pthread_mutex_lock(&r->lock);
	for (size_t i = 0; i < r->n_clients && !known; i++)
		known = r->clients[i].cookie == cookie;
	pthread_mutex_unlock(&r->lock);
	return known;
}

/* --- Stand-ins -------------------------------------------------------------------------------- */

static void on_stand_in(struct resolver *r, struct net_watch *watch, int fd)
{
	(void)watch;
	for (int i = 0; i < DATAGRAMS_PER_EVENT; i++) {
		struct asker asker = {.fd = fd, .peer_len = sizeof(asker.peer)};
		ssize_t n = recvfrom(fd, r->in, sizeof(r->in), MSG_DONTWAIT, &asker.peer.sa,
				     &asker.peer_len);
		/* A reply that could not be delivered shows as an error of the next call. */
		if (n < 0 && errno == EAGAIN)
			return;
		if (n >= 0 && resolver_has_client(r, port_of(&asker.peer)))
			request_handle(r, r->in, (size_t)n, &asker);
	}
}

static void on_stand_in4(struct resolver *r, struct net_watch *watch, uint32_t events)
{
	const struct stand_in *s =
		(const struct stand_in *)(const void *)((const char *)watch -
							offsetof(struct stand_in, on[0].watch));
	(void)events;
	on_stand_in(r, watch, s->on[0].fd);
}

static void on_stand_in6(struct resolver *r, struct net_watch *watch, uint32_t events)
{
	const struct stand_in *s =
		(const struct stand_in *)(const void *)((const char *)watch -
							offsetof(struct stand_in, on[1].watch));
	(void)events;
	on_stand_in(r, watch, s->on[1].fd);
}

static int open_stand_in(struct resolver *r, struct stand_in *s, bool v6)
{
	union inet_addr a;
	socklen_t len = sizeof(a);
	if (s->on[v6].fd >= 0)
		return 0;
	auto_close int fd =
		socket(v6 ? AF_INET6 : AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	loopback(&a, v6, 0);
	if (bind(fd, &a.sa, addr_len(&a)) < 0 || getsockname(fd, &a.sa, &len) < 0)
		return -errno;
	s->on[v6].watch.fn = v6 ? on_stand_in6 : on_stand_in4;
	int e = net_watch_fd(r, &s->on[v6].watch, fd, EPOLLIN);
	if (e < 0)
		return e;
	s->on[v6].port = port_of(&a);
	s->on[v6].fd = take_fd(&fd);
	return 0;
}

/* Who asks more servers than anybody has sees replies of the oldest come from the wrong one. */
static struct stand_in *new_stand_in(struct resolver *r, const union inet_addr *server)
{
	struct stand_in *s = r->stand_ins;
	if (r->n_stand_ins < STAND_INS_MAX) {
		s = &r->stand_ins[r->n_stand_ins++];
		s->on[0].fd = s->on[1].fd = -1;
	} else {
		for (size_t i = 1; i < STAND_INS_MAX; i++)
			if (r->stand_ins[i].last_ms < s->last_ms)
				s = &r->stand_ins[i];
	}
	s->addr = *server;
	return s;
}

static int find_stand_in(struct resolver *r, const union inet_addr *server, bool v6,
			 struct stand_in **ret)
{
	struct stand_in *s = NULL;
	for (size_t i = 0; i < r->n_stand_ins && !s; i++)
		if (same_server(&r->stand_ins[i].addr, server))
			s = &r->stand_ins[i];
	if (!s)
		s = new_stand_in(r, server);
	s->last_ms = net_now_ms();
	*ret = s;
	return open_stand_in(r, s, v6);
}

/* --- Leading here ----------------------------------------------------------------------------- */

/* The port of FD, which is bound now at the latest. A TCP socket may have asked to be bound late.
 */
static int bind_client(int fd, int domain, uint16_t *ret_port)
{
	union inet_addr a = {0};
	socklen_t len = sizeof(a);
	int off = 0;
	if (getsockname(fd, &a.sa, &len) < 0)
		return -errno;
	if (!port_of(&a)) {
		setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &off, sizeof(off));
		a.sa.sa_family = (sa_family_t)domain;
		if (bind(fd, &a.sa, addr_len(&a)) < 0)
			return -errno;
		len = sizeof(a);
		if (getsockname(fd, &a.sa, &len) < 0)
			return -errno;
	}
	*ret_port = port_of(&a);
	return *ret_port ? 0 : -ECONNREFUSED;
}

/* Whether FD cannot send to mapped addresses: by its option, or bound to an address of its own. */
static bool is_v6_only(int fd, int domain)
{
	union inet_addr own = {0};
	socklen_t len = sizeof(own);
	int only = 0;
	socklen_t n = sizeof(only);
	if (domain != AF_INET6)
		return false;
	if (getsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &only, &n) == 0 && only)
		return true;
	return getsockname(fd, &own.sa, &len) == 0 && !is_mapped(&own) &&
	       !IN6_IS_ADDR_UNSPECIFIED(&own.v6.sin6_addr);
}

static int find_port(struct resolver *r, int fd, const union inet_addr *server, bool v6,
		     uint16_t *ret_port)
{
	struct stand_in *s = NULL;
	int type = 0;
	socklen_t n = sizeof(type);
	if (getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &n) < 0)
		return -errno;
	int e = type == SOCK_STREAM ? tcp_listen(r, v6) : find_stand_in(r, server, v6, &s);
	if (e == 0)
		*ret_port = s ? s->on[v6].port : r->tcp[v6].port;
	return e;
}

int resolver_redirect(struct resolver *r, int fd, int domain, const union inet_addr *asked,
		      union inet_addr *ret, socklen_t *ret_len)
{
	union inet_addr server = unmap(asked);
	union inet_addr here;
	uint64_t cookie;
	uint16_t port = 0;
	uint16_t own = 0;
	bool v6 = is_v6_only(fd, domain);
	int e = cookie_of(fd, &cookie);
	if (e == 0)
		e = bind_client(fd, domain, &own);
	if (e < 0)
		return e;
	pthread_mutex_lock(&r->lock);
	e = find_port(r, fd, &server, v6, &port);
	if (e == 0)
		note_client(r, cookie, own);
	pthread_mutex_unlock(&r->lock);
	loopback(&here, v6, port);
	*ret = domain == AF_INET6 && !v6 ? map(&here) : here;
	*ret_len = addr_len(ret);
	return e;
}

bool resolver_original(struct resolver *r, int domain, const union inet_addr *from,
		       union inet_addr *ret, socklen_t *ret_len)
{
	union inet_addr here;
	union inet_addr plain = unmap(from);
	bool v6 = plain.sa.sa_family == AF_INET6;
	bool found = false;
	pthread_mutex_lock(&r->lock);
	for (size_t i = 0; i < r->n_stand_ins && !found; i++) {
		const struct stand_in *s = &r->stand_ins[i];
		loopback(&here, v6, s->on[v6].port);
		found = s->on[v6].fd >= 0 && same_server(&here, &plain);
		if (found)
			*ret = domain == AF_INET6 && s->addr.sa.sa_family == AF_INET ? map(&s->addr)
										     : s->addr;
	}
	pthread_mutex_unlock(&r->lock);
	if (found)
		*ret_len = addr_len(ret);
	return found;
}

/* --- Replies and turns ------------------------------------------------------------------------ */

void asker_reply(struct resolver *r, const struct asker *asker, const uint8_t *data, size_t n)
{
	if (r->relay && !net_relay_count(r->relay, n))
		return;
	if (asker->connection)
		tcp_reply(r, asker->connection, data, n);
	else if (asker->fd >= 0)
		(void)!sendto(asker->fd, data, n, MSG_DONTWAIT | MSG_NOSIGNAL, &asker->peer.sa,
			      asker->peer_len);
}

static int64_t earlier(int64_t a, int64_t b)
{
	return a && (!b || a < b) ? a : b;
}

/* Pins of names that are denied hold no longer than others, and nobody else renews them. */
static int64_t refresh_denied(struct resolver *r, int64_t now_ms)
{
	bool any = false;
	for (size_t i = 0; i < names_count(r->names); i++) {
		enum names_kind kind;
		const char *name = names_get(r->names, i, &kind);
		if (kind != NAMES_DENIED)
			continue;
		any = true;
		if (!r->refresh_ms || r->refresh_ms > now_ms)
			continue;
		request_refresh(r, name, kind, DNS_A);
		request_refresh(r, name, kind, DNS_AAAA);
	}
	if (any && r->refresh_ms <= now_ms)
		r->refresh_ms = now_ms + REFRESH_MS;
	return any ? r->refresh_ms : 0;
}

/* Returns the ms until something is due. */
static int step(struct resolver *r)
{
	struct epoll_event ev;
	for (int i = 0; i < EVENTS_PER_STEP && epoll_wait(r->epoll_fd, &ev, 1, 0) == 1; i++) {
		struct net_watch *watch = ev.data.ptr;
		watch->fn(r, watch, ev.events);
	}
	int64_t now = net_now_ms();
	int64_t next = refresh_denied(r, now);
	next = earlier(lookup_run_due(r, now), next);
	next = earlier(tcp_run_due(r, now), next);
	if (!next)
		return -1;
	return next <= now ? 0 : (int)(next - now);
}

int resolver_step(void *data, bool ready)
{
	struct resolver *r = data;
	(void)ready;
	pthread_mutex_lock(&r->lock);
	int ms = step(r);
	pthread_mutex_unlock(&r->lock);
	return ms;
}

void resolver_start(struct resolver *r, bool lazy)
{
	int64_t end = net_now_ms() + START_MS;
	pthread_mutex_lock(&r->lock);
	for (size_t i = 0; i < names_count(r->names); i++) {
		enum names_kind kind;
		const char *name = names_get(r->names, i, &kind);
		if (lazy && kind != NAMES_DENIED)
			continue;
		request_refresh(r, name, kind, DNS_A);
		request_refresh(r, name, kind, DNS_AAAA);
	}
	for (;;) {
		struct pollfd pfd = {.fd = r->epoll_fd, .events = POLLIN};
		int ms = step(r);
		int64_t left = end - net_now_ms();
		if (!r->n_starting || left <= 0)
			break;
		if (ms < 0 || ms > left)
			ms = (int)left;
		poll(&pfd, 1, ms);
	}
	if (start_wake(r) < 0)
		r->wake_fd = util_close(r->wake_fd);
	pthread_mutex_unlock(&r->lock);
}
