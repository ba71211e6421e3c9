/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sockets of a sandbox's route netlink. A socket is known by the inode of the sandbox's end
 * until nobody holds that end any more, which shows as a hang-up here. One that does not read its
 * answers is not listened to until it does, so it holds one answer here and no more.
 */
#include "net/netlink.h"

#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/util.h"

enum {
	REQUESTS_PER_STEP = 16,
	NAME_TRIES = 8,
};

#define FIRST_FREE_PORT 0xfffff000U /* where the kernel begins, too, downwards */

struct socket {
	int fd; /* owned: our end; -1: free */
	uint64_t inode;
	uint32_t port;
	uint32_t groups;
	bool bound;
	size_t n;   /* of REQUEST */
	size_t at;  /* of it, answered */
	bool waits; /* for room for REPLY */
	char *request;
	struct netlink_reply reply;
};

struct netlink {
	pthread_mutex_t lock;
	int epoll_fd;
	bool v6;
	size_t n;
	struct socket *v[NETLINK_SOCKETS_MAX];
};

/* Whether the loopback has an address of version 6 here. */
static bool have_v6(void)
{
	struct sockaddr_in6 addr = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
	auto_close int fd = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	return fd >= 0 && bind(fd, (struct sockaddr *)&addr, sizeof(addr)) == 0;
}

struct netlink *netlink_new(void)
{
	int epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (epoll_fd < 0)
		return NULL;
	struct netlink *nl = xnew(struct netlink);
	pthread_mutex_init(&nl->lock, NULL);
	nl->epoll_fd = epoll_fd;
	nl->v6 = have_v6();
	return nl;
}

static void free_socket(struct socket *s)
{
	util_close(s->fd);
	free(s->request);
	free(s);
}

void netlink_free(struct netlink *nl)
{
	if (!nl)
		return;
	for (size_t i = 0; i < nl->n; i++)
		free_socket(nl->v[i]);
	util_close(nl->epoll_fd);
	pthread_mutex_destroy(&nl->lock);
	free(nl);
}

int netlink_fd(const struct netlink *nl)
{
	return nl->epoll_fd;
}

static struct socket *find(const struct netlink *nl, uint64_t inode)
{
	for (size_t i = 0; i < nl->n; i++)
		if (nl->v[i]->inode == inode)
			return nl->v[i];
	return NULL;
}

static void drop(struct netlink *nl, struct socket *s)
{
	for (size_t i = 0; i < nl->n; i++) {
		if (nl->v[i] != s)
			continue;
		epoll_ctl(nl->epoll_fd, EPOLL_CTL_DEL, s->fd, NULL);
		nl->v[i] = nl->v[--nl->n];
		free_socket(s);
		return;
	}
}

/* --- Answering ------------------------------------------------------------------------------- */

static void wait_for(struct netlink *nl, struct socket *s, bool room)
{
	struct epoll_event ev = {.events = (room ? EPOLLOUT : EPOLLIN) | EPOLLRDHUP,
				 .data.u64 = s->inode};
	if (s->waits == room)
		return;
	s->waits = room;
	epoll_ctl(nl->epoll_fd, EPOLL_CTL_MOD, s->fd, &ev);
}

/* Sends the reply that is there: 0, -EAGAIN where there is no room, else there is nobody. */
static int send_reply(struct socket *s)
{
	if (s->reply.len &&
	    send(s->fd, s->reply.data, s->reply.len, MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
		return -errno;
	s->reply.len = 0;
	return 0;
}

/* Answers the rest of the request that was received; as send_reply. */
static int answer_all(const struct netlink *nl, struct socket *s)
{
	int r = send_reply(s);
	while (r == 0 && s->at < s->n) {
		size_t step = netlink_answer(nl->v6, s->port, s->request + s->at, s->n - s->at,
					     &s->reply);
		s->at = step ? s->at + step : s->n;
		r = send_reply(s);
	}
	return r;
}

/* Descriptors that come along are closed by the kernel, as nothing takes them. */
static int receive(struct socket *s)
{
	ssize_t n = recv(s->fd, s->request, NETLINK_REQUEST_MAX, MSG_DONTWAIT);
	s->at = 0;
	s->n = n > 0 ? (size_t)n : 0;
	return n < 0 ? -errno : 0;
}

/* False: the other end takes no answers any more. What was received is answered, or waits. */
static bool serve(struct netlink *nl, struct socket *s)
{
	int r = answer_all(nl, s);
	for (int i = 0; i < REQUESTS_PER_STEP && r == 0; i++) {
		r = receive(s);
		if (r == -EAGAIN) {
			wait_for(nl, s, false);
			return true;
		}
		if (r == 0)
			r = answer_all(nl, s);
	}
	wait_for(nl, s, r == -EAGAIN);
	return r == 0 || r == -EAGAIN;
}

void netlink_step(struct netlink *nl)
{
	struct epoll_event events[REQUESTS_PER_STEP];
	pthread_mutex_lock(&nl->lock);
	int n = epoll_wait(nl->epoll_fd, events, REQUESTS_PER_STEP, 0);
	for (int i = 0; i < n; i++) {
		struct socket *s = find(nl, events[i].data.u64);
		if (!s)
			continue;
		/* A half that is shut down would show as readable for ever. */
		bool over = events[i].events & (EPOLLHUP | EPOLLERR | EPOLLRDHUP);
		if (over || !serve(nl, s))
			drop(nl, s);
	}
	pthread_mutex_unlock(&nl->lock);
}

bool netlink_serve(struct netlink *nl, uint64_t inode)
{
	pthread_mutex_lock(&nl->lock);
	struct socket *s = find(nl, inode);
	bool found = s;
	if (s && !serve(nl, s))
		drop(nl, s);
	pthread_mutex_unlock(&nl->lock);
	return found;
}

/* --- Sockets --------------------------------------------------------------------------------- */

static bool port_is_taken(const struct netlink *nl, uint32_t port)
{
	for (size_t i = 0; i < nl->n; i++)
		if (nl->v[i]->port == port)
			return true;
	return false;
}

/*
 * The name of our end: as long as a netlink address, a NUL first, which makes it abstract, and zero
 * where the process stands. The rest is free, and random so that it is nobody's yet.
 */
static int name_end(int fd)
{
	struct {
		uint16_t family;
		uint8_t zero;
		uint8_t free0;
		uint32_t process;
		uint32_t free1;
	} name = {.family = AF_UNIX};
	_Static_assert(sizeof(name) == sizeof(struct sockaddr_nl), "one reads as the other");
	for (int i = 0; i < NAME_TRIES; i++) {
		if (getrandom(&name.free1, sizeof(name.free1), GRND_NONBLOCK) < 0)
			return -errno;
		if (bind(fd, (struct sockaddr *)&name, sizeof(name)) == 0)
			return 0;
		if (errno != EADDRINUSE)
			break;
	}
	return -errno;
}

/* Room is there: the lock is held, and the caller has looked. */
static int add(struct netlink *nl, struct socket *s, uint32_t port)
{
	struct epoll_event ev = {.events = EPOLLIN | EPOLLRDHUP, .data.u64 = s->inode};
	while (!port || port_is_taken(nl, port))
		port = port > FIRST_FREE_PORT || port < FIRST_FREE_PORT - NETLINK_SOCKETS_MAX
			       ? FIRST_FREE_PORT
			       : port - 1;
	s->port = port;
	if (epoll_ctl(nl->epoll_fd, EPOLL_CTL_ADD, s->fd, &ev) < 0)
		return -errno;
	nl->v[nl->n++] = s;
	return 0;
}

static int add_locked(struct netlink *nl, struct socket *s, uint32_t port)
{
	pthread_mutex_lock(&nl->lock);
	int r = nl->n == NETLINK_SOCKETS_MAX ? -EMFILE : add(nl, s, port);
	pthread_mutex_unlock(&nl->lock);
	return r;
}

int netlink_open(struct netlink *nl, uint32_t port, bool nonblock, int *ret_fd)
{
	int ends[2];
	struct stat st = {0};
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | (nonblock ? SOCK_NONBLOCK : 0), 0,
		       ends) < 0)
		return -errno;
	auto_close int theirs = ends[0];
	struct socket *s = xnew(struct socket);
	s->fd = ends[1];
	s->request = xzalloc(NETLINK_REQUEST_MAX);
	int r = fstat(theirs, &st) < 0 ? -errno : name_end(s->fd);
	s->inode = st.st_ino;
	if (r == 0)
		r = add_locked(nl, s, port);
	if (r < 0) {
		free_socket(s);
		return r;
	}
	*ret_fd = take_fd(&theirs);
	return 0;
}

static int bind_socket(const struct netlink *nl, struct socket *s, const struct sockaddr_nl *addr)
{
	if (s->bound && addr->nl_pid != s->port)
		return -EINVAL;
	if (addr->nl_pid && addr->nl_pid != s->port) {
		if (port_is_taken(nl, addr->nl_pid))
			return -EADDRINUSE;
		s->port = addr->nl_pid;
	}
	s->bound = true;
	s->groups = addr->nl_groups;
	return 0;
}

int netlink_bind(struct netlink *nl, uint64_t inode, const struct sockaddr_nl *addr)
{
	pthread_mutex_lock(&nl->lock);
	struct socket *s = find(nl, inode);
	int r = s ? bind_socket(nl, s, addr) : -ENOENT;
	pthread_mutex_unlock(&nl->lock);
	return r;
}

bool netlink_name(struct netlink *nl, uint64_t inode, struct sockaddr_nl *ret)
{
	pthread_mutex_lock(&nl->lock);
	const struct socket *s = find(nl, inode);
	if (s)
		*ret = (struct sockaddr_nl){
			.nl_family = AF_NETLINK, .nl_pid = s->port, .nl_groups = s->groups};
	pthread_mutex_unlock(&nl->lock);
	return s;
}

bool netlink_is_used(struct netlink *nl)
{
	pthread_mutex_lock(&nl->lock);
	bool used = nl->n;
	pthread_mutex_unlock(&nl->lock);
	return used;
}
