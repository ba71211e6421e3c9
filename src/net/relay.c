/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Readiness is edge-triggered, so that a connection that is held up wakes nobody: it is looked at
 * when there is room again. A limit by rate is a bucket of a tenth of a second.
 */
#include "net/relay.h"

#include <errno.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/util.h"
#include "policy/policy.h"

enum {
	CHUNK = 32 * 1024,
	CHUNKS_PER_TURN = 4, /* others wait for the loop */
	BUFFER = 96 * 1024,  /* of the kernel: it takes twice as much, bookkeeping included */
	LINKS_MAX = 256,
	NAMES_KEPT = 1024,
	EVENTS_MAX = 64,
	TURN_BYTES_MIN = 1024, /* less is not worth a wake-up */
	WAIT_MS_MAX = 1000,
	BURSTS_PER_SECOND = 10,
	US_PER_SECOND = 1000000,
};

enum side { INNER, OUTER, SIDES };

/* What the command may ask about a connection. */
struct known {
	union inet_addr task;
	union inet_addr inner;
	union inet_addr dest;
	union inet_addr own;
};

/* From one side to the other. */
struct flow {
	char *data; /* owned; CHUNK bytes, from the first use on */
	size_t at, n;
	bool eof;  /* nothing more comes */
	bool shut; /* and the other side knows */
};

struct end {
	struct link *link;
	int fd;
	bool readable, writable; /* as far as is known */
	struct flow flow;	 /* that begins here */
};

struct link {
	struct end ends[SIDES];
	uint32_t rates;
	struct known known;
	bool over;
};

struct bucket {
	uint64_t per_second;
	int64_t burst;
	int64_t left;
	int64_t filled_us;
};

struct net_relay {
	pthread_mutex_t lock;
	const struct policy *policy; /* borrowed */
	int epoll_fd;
	struct bucket buckets[NET_RATES_MAX];
	uint64_t left; /* of --net-max-bytes */
	bool spent;
	net_relay_spent_fn spent_fn;
	void *spent_data;
	struct link *links[LINKS_MAX];
	size_t n_links;
	size_t turn;	/* who comes first */
	int64_t due_us; /* when the first that is held may go on; 0: none is */
	bool again;	/* somebody has had his turn and has more */
	struct known ended[NAMES_KEPT];
	size_t n_ended;
};

static int64_t now_us(void)
{
	struct timespec ts;
	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (int64_t)ts.tv_sec * US_PER_SECOND + ts.tv_nsec / 1000;
}

static int64_t at_most(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

/* --- Limits ---------------------------------------------------------------------------------- */

static bool is_limited(const struct net_rule *rule, const struct net_point *point,
		       const struct net_names_view *names)
{
	static const struct net_rules none;
	struct net_rules one = {.v = (struct net_rule *)(uintptr_t)rule, .n = 1};
	struct net_table table = {.allow = &one, .deny = &none};
	bool is_name = rule->target == NET_TARGET_NAME || rule->target == NET_TARGET_WILDCARD;
	if (is_name && !names)
		return rule->ports.any || port_set_has(&rule->ports, point->port);
	return net_table_judge(&table, point, names).allowed;
}

bool net_relay_wants(const struct net_relay *r, const struct net_point *point,
		     const struct net_names_view *names, uint32_t *ret_rates)
{
	const struct policy *p = r->policy;
	*ret_rates = 0;
	for (size_t i = 0; i < p->n_net_rates; i++) {
		if (is_limited(&p->net_rates[i].rule, point, names))
			*ret_rates |= UINT32_C(1) << i;
	}
	return p->net_max_bytes || *ret_rates;
}

static void refill(struct bucket *b, int64_t now)
{
	int64_t passed = at_most(now - b->filled_us, US_PER_SECOND);
	int64_t more = (int64_t)((double)b->per_second * (double)passed / US_PER_SECOND);
	if (more <= 0)
		return;
	b->left += more;
	b->filled_us += (int64_t)((double)more * US_PER_SECOND / (double)b->per_second);
	if (b->left >= b->burst) {
		b->left = b->burst;
		b->filled_us = now;
	}
}

/* Bytes that LINK may move now, up to CHUNK; 0: it is held up, and the relay's time is set. */
static size_t find_room(struct net_relay *r, struct link *link)
{
	int64_t now = now_us();
	int64_t room = CHUNK;
	int64_t wait = 0;
	for (size_t i = 0; i < r->policy->n_net_rates; i++) {
		struct bucket *b = &r->buckets[i];
		if (!(link->rates & UINT32_C(1) << i))
			continue;
		refill(b, now);
		int64_t least = at_most(TURN_BYTES_MIN, b->burst);
		if (b->left < least) {
			int64_t us = (int64_t)((double)(least - b->left) * US_PER_SECOND /
					       (double)b->per_second) +
				     1;
			wait = us > wait ? us : wait;
		}
		room = at_most(room, b->left);
	}
	if (wait) {
		if (!r->due_us || now + wait < r->due_us)
			r->due_us = now + wait;
		return 0;
	}
	return (size_t)room;
}

static void charge(struct net_relay *r, const struct link *link, size_t n)
{
	for (size_t i = 0; i < r->policy->n_net_rates; i++) {
		if (link->rates & UINT32_C(1) << i)
			r->buckets[i].left -= (int64_t)n;
	}
	if (r->policy->net_max_bytes)
		r->left -= n;
}

static void tell_spent(struct net_relay *r)
{
	if (!r->spent && r->spent_fn)
		r->spent_fn(r->spent_data);
	r->spent = true;
}

bool net_relay_count(struct net_relay *r, size_t n)
{
	pthread_mutex_lock(&r->lock);
	bool fits = !r->policy->net_max_bytes || n <= r->left;
	if (fits && r->policy->net_max_bytes)
		r->left -= n;
	else if (!fits)
		tell_spent(r);
	pthread_mutex_unlock(&r->lock);
	return fits;
}

/* --- Moving ---------------------------------------------------------------------------------- */

enum moved { MOVED, WAITS, FAILED };

static enum moved send_some(struct flow *f, struct end *to)
{
	if (!to->writable)
		return WAITS;
	ssize_t n = send(to->fd, f->data + f->at, f->n, MSG_NOSIGNAL | MSG_DONTWAIT);
	if (n < 0 && errno == EAGAIN) {
		to->writable = false;
		return WAITS;
	}
	if (n < 0)
		return errno == EINTR ? MOVED : FAILED;
	f->at += (size_t)n;
	f->n -= (size_t)n;
	return MOVED;
}

/* A byte beyond the limit ends all; the end of a stream does not. */
static size_t limit_room(struct net_relay *r, const struct end *from, size_t room)
{
	char byte;
	if (!r->policy->net_max_bytes || r->left >= room)
		return room;
	if (r->left)
		return (size_t)r->left;
	if (recv(from->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) <= 0)
		return room;
	tell_spent(r);
	return 0;
}

static enum moved receive_some(struct net_relay *r, struct end *from)
{
	struct flow *f = &from->flow;
	if (!from->readable)
		return WAITS;
	size_t room = find_room(r, from->link);
	if (!room)
		return WAITS;
	room = limit_room(r, from, room);
	if (!room)
		return FAILED;
	if (!f->data)
		f->data = xzalloc(CHUNK);
	/* With nothing left this finds the end of the stream, an error, or nothing yet. */
	bool nothing_left = r->policy->net_max_bytes && !r->left;
	ssize_t n = recv(from->fd, f->data, room, MSG_DONTWAIT | (nothing_left ? MSG_PEEK : 0));
	if (n < 0 && errno == EAGAIN) {
		from->readable = false;
		return WAITS;
	}
	if (n < 0)
		return errno == EINTR ? MOVED : FAILED;
	if (n > 0 && nothing_left)
		return MOVED; /* come since: looked at again */
	f->at = 0;
	f->n = (size_t)n;
	f->eof = n == 0;
	charge(r, from->link, (size_t)n);
	return MOVED;
}

static enum moved move(struct net_relay *r, struct end *from, struct end *to)
{
	struct flow *f = &from->flow;
	if (f->n)
		return send_some(f, to);
	if (!f->eof)
		return receive_some(r, from);
	if (f->shut)
		return WAITS;
	f->shut = true;
	return shutdown(to->fd, SHUT_WR) < 0 && errno != ENOTCONN ? FAILED : MOVED;
}

/* Whatever the kernel still holds of either way is thrown away, and both peers are told. */
static void reset(struct link *link)
{
	struct linger now = {.l_onoff = 1};
	for (int i = 0; i < SIDES; i++)
		setsockopt(link->ends[i].fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
	link->over = true;
}

static void run_link(struct net_relay *r, struct link *link)
{
	for (int i = 0; i < SIDES && !link->over; i++) {
		struct end *from = &link->ends[i];
		enum moved m = MOVED;
		for (int k = 0; k < CHUNKS_PER_TURN && m == MOVED; k++)
			m = move(r, from, &link->ends[!i]);
		if (m == FAILED)
			reset(link);
		else if (m == MOVED)
			r->again = true;
	}
	if (link->ends[INNER].flow.shut && link->ends[OUTER].flow.shut)
		link->over = true;
}

static void free_link(struct link *link)
{
	for (int i = 0; i < SIDES; i++) {
		util_close(link->ends[i].fd);
		free(link->ends[i].flow.data);
	}
	free(link);
}

static void run_all(struct net_relay *r)
{
	r->due_us = 0;
	r->again = false;
	r->turn = r->n_links ? (r->turn + 1) % r->n_links : 0;
	for (size_t i = 0; i < r->n_links && !r->spent; i++)
		run_link(r, r->links[(r->turn + i) % r->n_links]);
	for (size_t i = 0; i < r->n_links;) {
		struct link *link = r->links[i];
		if (r->spent && !link->over)
			reset(link);
		if (!link->over) {
			i++;
			continue;
		}
		r->ended[r->n_ended++ % NAMES_KEPT] = link->known;
		free_link(link);
		r->links[i] = r->links[--r->n_links];
	}
}

static void fetch_events(struct net_relay *r, int timeout_ms)
{
	struct epoll_event v[EVENTS_MAX];
	int n = epoll_wait(r->epoll_fd, v, EVENTS_MAX, timeout_ms);
	for (int i = 0; i < n; i++) {
		struct end *end = v[i].data.ptr;
		if (v[i].events & (EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR))
			end->readable = true;
		if (v[i].events & (EPOLLOUT | EPOLLHUP | EPOLLERR))
			end->writable = true;
	}
	r->again |= n == EVENTS_MAX;
}

static int next_ms(const struct net_relay *r)
{
	if (r->again)
		return 0;
	if (!r->due_us)
		return -1;
	int64_t us = r->due_us - now_us();
	return us <= 0 ? 0 : (int)at_most(us / 1000 + 1, WAIT_MS_MAX);
}

int net_relay_step(void *data, bool ready)
{
	struct net_relay *r = data;
	(void)ready;
	pthread_mutex_lock(&r->lock);
	fetch_events(r, 0);
	run_all(r);
	int ms = next_ms(r);
	pthread_mutex_unlock(&r->lock);
	return ms;
}

static bool has_rest(const struct net_relay *r)
{
	for (size_t i = 0; i < r->n_links; i++) {
		if (!r->links[i]->ends[INNER].flow.shut)
			return true;
	}
	return false;
}

void net_relay_drain(struct net_relay *r, int timeout_ms)
{
	int64_t end = now_us() + (int64_t)timeout_ms * 1000;
	pthread_mutex_lock(&r->lock);
	int64_t left = 0;
	while (has_rest(r) && (left = end - now_us()) > 0) {
		int ms = next_ms(r);
		int most = (int)(left / 1000) + 1;
		fetch_events(r, ms < 0 || ms > most ? most : ms);
		run_all(r);
	}
	pthread_mutex_unlock(&r->lock);
}

/* --- Connections ----------------------------------------------------------------------------- */

void net_relay_prepare(int fd)
{
	int size = BUFFER;
	int on = 1;
	setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof(size));
	setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
	setsockopt(fd, SOL_SOCKET, SO_OOBINLINE, &on, sizeof(on));
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
}

/* A host's descriptors are not the sandbox's to use up. */
static size_t links_max(void)
{
	struct rlimit limit;
	if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
		return 0;
	return limit.rlim_cur / 8 < LINKS_MAX ? (size_t)limit.rlim_cur / 8 : LINKS_MAX;
}

static int check(struct net_relay *r)
{
	if (r->policy->net_max_bytes && !r->left)
		tell_spent(r);
	if (r->spent)
		return -EDQUOT;
	return r->n_links < links_max() ? 0 : -ENOBUFS;
}

int net_relay_check(struct net_relay *r)
{
	pthread_mutex_lock(&r->lock);
	int code = check(r);
	pthread_mutex_unlock(&r->lock);
	return code;
}

static void look_at(struct link *link, const union inet_addr *task)
{
	socklen_t n[] = {sizeof(union inet_addr), sizeof(union inet_addr), sizeof(union inet_addr)};
	link->known.task = *task;
	getsockname(link->ends[INNER].fd, &link->known.inner.sa, &n[0]);
	getpeername(link->ends[OUTER].fd, &link->known.dest.sa, &n[1]);
	getsockname(link->ends[OUTER].fd, &link->known.own.sa, &n[2]);
}

static int watch(struct net_relay *r, struct end *end)
{
	struct epoll_event ev = {.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET,
				 .data.ptr = end};
	return epoll_ctl(r->epoll_fd, EPOLL_CTL_ADD, end->fd, &ev) < 0 ? -errno : 0;
}

int net_relay_add_take(struct net_relay *r, struct net_relay_pair *pair)
{
	struct link *link = xnew(struct link);
	link->ends[INNER] = (struct end){.link = link, .fd = take_fd(&pair->inner)};
	link->ends[OUTER] = (struct end){.link = link, .fd = take_fd(&pair->outer)};
	link->rates = pair->rates;
	look_at(link, &pair->task);
	pthread_mutex_lock(&r->lock);
	int code = check(r);
	for (int i = 0; i < SIDES && code == 0; i++)
		code = watch(r, &link->ends[i]);
	if (code == 0)
		r->links[r->n_links++] = link;
	else
		free_link(link);
	pthread_mutex_unlock(&r->lock);
	return code;
}

/* --- Names ----------------------------------------------------------------------------------- */

static void point_of(const union inet_addr *a, struct net_point *ret)
{
	if (a->sa.sa_family == AF_INET6)
		net_point_set(ret, NET_TCP, true, &a->v6.sin6_addr, ntohs(a->v6.sin6_port));
	else
		net_point_set(ret, NET_TCP, false, &a->v4.sin_addr, ntohs(a->v4.sin_port));
}

static bool same(const union inet_addr *a, const union inet_addr *b)
{
	struct net_point p;
	struct net_point q;
	point_of(a, &p);
	point_of(b, &q);
	return p.port == q.port && p.v6 == q.v6 && memcmp(p.addr, q.addr, p.v6 ? 16 : 4) == 0;
}

static bool is_of(const struct known *k, const union inet_addr *task, const union inet_addr *inner)
{
	return same(&k->inner, inner) && same(&k->task, task);
}

static const struct known *find(const struct net_relay *r, const union inet_addr *task,
				const union inet_addr *inner)
{
	for (size_t i = 0; i < r->n_links; i++) {
		if (is_of(&r->links[i]->known, task, inner))
			return &r->links[i]->known;
	}
	/* The newest first: ports are used again. */
	for (size_t i = 0; i < NAMES_KEPT && i < r->n_ended; i++) {
		const struct known *k = &r->ended[(r->n_ended - 1 - i) % NAMES_KEPT];
		if (is_of(k, task, inner))
			return k;
	}
	return NULL;
}

bool net_relay_name(struct net_relay *r, const union inet_addr *task, const union inet_addr *inner,
		    bool peer, union inet_addr *ret)
{
	pthread_mutex_lock(&r->lock);
	const struct known *k = find(r, task, inner);
	if (k)
		*ret = peer ? k->dest : k->own;
	pthread_mutex_unlock(&r->lock);
	return k;
}

/* --- Making ---------------------------------------------------------------------------------- */

void net_relay_on_spent(struct net_relay *r, net_relay_spent_fn fn, void *data)
{
	pthread_mutex_lock(&r->lock);
	r->spent_fn = fn;
	r->spent_data = data;
	pthread_mutex_unlock(&r->lock);
}

int net_relay_fd(const struct net_relay *r)
{
	return r->epoll_fd;
}

struct net_relay *net_relay_new(const struct policy *policy)
{
	int fd = epoll_create1(EPOLL_CLOEXEC);
	if (fd < 0)
		return NULL;
	struct net_relay *r = xnew(struct net_relay);
	pthread_mutex_init(&r->lock, NULL);
	r->policy = policy;
	r->epoll_fd = fd;
	r->left = policy->net_max_bytes;
	for (size_t i = 0; i < policy->n_net_rates; i++) {
		uint64_t rate = policy->net_rates[i].per_second;
		struct bucket *b = &r->buckets[i];
		b->per_second = rate < INT64_MAX / US_PER_SECOND ? rate : INT64_MAX / US_PER_SECOND;
		b->burst = (int64_t)(b->per_second / BURSTS_PER_SECOND);
		if (b->burst < 1)
			b->burst = 1;
		b->filled_us = now_us();
	}
	return r;
}

void net_relay_free(struct net_relay *r)
{
	if (!r)
		return;
	for (size_t i = 0; i < r->n_links; i++)
		free_link(r->links[i]);
	util_close(r->epoll_fd);
	pthread_mutex_destroy(&r->lock);
	free(r);
}
