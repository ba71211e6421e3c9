/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whose an abstract name is. The kernel's list of Unix sockets gives the inodes that carry the
 * name; a process of the sandbox that holds such a socket makes it the sandbox's own. A copy of
 * that very descriptor is kept while the caller connects or sends: a name is bound as long as its
 * socket lives, so it cannot pass to a stranger in between. The copy also is the proof: what it is
 * bound to is asked of the kernel, and so nothing that the sandbox writes into the list's text can
 * mislead.
 *
 * A foreign socket that a process of the sandbox holds a descriptor of counts as its own: it has
 * that socket already.
 */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/util.h"
#include "supervise/box.h"
#include "supervise/own.h"
#include "supervise/sock.h"
#include "sys/proc.h"

#define UN_PATH_AT offsetof(struct sockaddr_un, sun_path)

enum {
	NAMED_MAX = 16, /* sockets of one name: one per type, and lines that lie */
	DESCRIPTORS_MAX = 65536,
};

struct search {
	struct call *call;
	const struct sock_addr *addr;
	int type;
	char name[sizeof(((struct sockaddr_un *)0)->sun_path) + 1]; /* as the list shows it */
	uint64_t inodes[NAMED_MAX];
	size_t n;
	size_t looked_at; /* descriptors */
	pid_t pid;	  /* of the process whose descriptors are looked at */
	int hold;
};

/* --- The kernel's list -------------------------------------------------------------------- */

/* The name as the list shows it: each NUL as an at sign, at most 108 of them. */
static void shown_name(const struct sock_addr *addr, char *ret_text)
{
	size_t n = addr->len - UN_PATH_AT;
	for (size_t i = 0; i < n; i++)
		ret_text[i] = addr->un.sun_path[i] ? addr->un.sun_path[i] : '@';
	ret_text[n] = '\0';
}

/* Where field N (from 0) of LINE begins, NULL where there are not so many. */
static const char *field_at(const char *line, int n)
{
	line += strspn(line, " ");
	for (; n > 0 && *line; n--) {
		line += strcspn(line, " ");
		line += strspn(line, " ");
	}
	return *line ? line : NULL;
}

/*
 * A line: seven fields, the fifth the type, the last the inode, and the name behind one blank.
 * A name that holds a newline is cut by it, so a name is compared up to its first newline.
 */
static void read_line(void *data, const char *line)
{
	struct search *s = data;
	const char *type = field_at(line, 4);
	const char *inode = type ? field_at(type, 2) : NULL;
	char *end = NULL;
	if (!inode || s->n == NAMED_MAX || strtoul(type, NULL, 16) != (unsigned long)s->type)
		return;
	uint64_t number = strtoull(inode, &end, 10);
	if (end[0] == ' ' && str_eq(end + 1, s->name))
		s->inodes[s->n++] = number;
}

/* --- The sandbox's processes -------------------------------------------------------------- */

static bool is_it(const struct search *s, int fd)
{
	struct sock_addr bound = {0};
	struct sock_info info;
	socklen_t len = sizeof(bound.storage);
	return sock_info_get(fd, &info) == 0 && info.domain == AF_UNIX && info.type == s->type &&
	       getsockname(fd, &bound.sa, &len) == 0 && len == s->addr->len &&
	       memcmp(&bound.storage, &s->addr->storage, len) == 0;
}

static bool names_one(const struct search *s, const char *link)
{
	uint64_t inode = 0;
	if (!sock_link_inode(link, &inode))
		return false;
	for (size_t i = 0; i < s->n; i++)
		if (s->inodes[i] == inode)
			return true;
	return false;
}

/*
 * Asked whose it is when a copy is held already; and as the process is alive then, it was the one
 * whose ancestors were looked at, and not a stranger with its number.
 */
static bool look_at(void *data, int number, const char *link)
{
	struct search *s = data;
	if (!names_one(s, link))
		return ++s->looked_at > DESCRIPTORS_MAX;
	auto_close int pidfd = (int)syscall(SYS_pidfd_open, s->pid, 0);
	if (pidfd < 0)
		return true;
	auto_close int fd = (int)syscall(SYS_pidfd_getfd, pidfd, number, 0);
	if (fd < 0 || !is_it(s, fd) || !own_process(s->call->box, s->pid))
		return false;
	struct pollfd dead = {.fd = pidfd, .events = POLLIN};
	if (poll(&dead, 1, 0) == 0)
		s->hold = take_fd(&fd);
	return true;
}

static void search_process(struct search *s, pid_t pid)
{
	s->pid = pid;
	proc_each_fd(pid, look_at, s);
}

static bool search_tree(struct search *s)
{
	auto_free pid_t *pids = NULL;
	/* Client and server are often one process. */
	search_process(s, s->call->tid);
	size_t n = s->hold < 0 ? own_processes(s->call->box, &pids) : 0;
	for (size_t i = 0; i < n && s->hold < 0 && s->looked_at <= DESCRIPTORS_MAX; i++)
		search_process(s, pids[i]);
	return s->hold >= 0;
}

/* Without pidfd_getfd: only the sockets whose copies are here are known to be the sandbox's. */
static bool search_table(struct search *s)
{
	for (size_t i = 0; i < s->n; i++) {
		auto_close int fd = sock_table_find(s->call->box->socks, s->inodes[i]);
		if (fd >= 0 && is_it(s, fd)) {
			s->hold = take_fd(&fd);
			return true;
		}
	}
	return false;
}

int sock_abstract_find(struct call *call, const struct sock_addr *addr, int type, int *ret_hold)
{
	struct search s = {.call = call, .addr = addr, .type = type, .hold = -1};
	shown_name(addr, s.name);
	s.name[strcspn(s.name, "\n")] = '\0';
	if (proc_each_line("/proc/net/unix", read_line, &s) < 0)
		return -EPERM;
	if (!s.n)
		return -ECONNREFUSED;
	bool found = call->box->have_getfd ? search_tree(&s) : search_table(&s);
	if (!found)
		return -EPERM;
	*ret_hold = s.hold;
	return 0;
}
