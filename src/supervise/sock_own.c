/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether a socket that the kernel's lists show is the sandbox's: a process of it holds a
 * descriptor of it. A copy of that very descriptor is the proof and is given to the caller, which
 * asks the kernel what it is; and as long as the copy is held, what the socket is bound to cannot
 * pass to a stranger.
 *
 * A foreign socket that a process of the sandbox holds a descriptor of counts as its own: it has
 * that socket already.
 */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/util.h"
#include "supervise/box.h"
#include "supervise/own.h"
#include "supervise/sock.h"
#include "sys/proc.h"

enum { DESCRIPTORS_MAX = 65536 };

struct search {
	struct call *call;
	const struct sock_search *what;
	size_t looked_at; /* descriptors */
	pid_t pid;	  /* of the process whose descriptors are looked at */
	int hold;
};

static bool names_one(const struct sock_search *what, const char *link)
{
	uint64_t inode = 0;
	if (!sock_link_inode(link, &inode))
		return false;
	for (size_t i = 0; i < what->n; i++)
		if (what->inodes[i] == inode)
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
	if (!names_one(s->what, link))
		return ++s->looked_at > DESCRIPTORS_MAX;
	auto_close int pidfd = (int)syscall(SYS_pidfd_open, s->pid, 0);
	if (pidfd < 0)
		return true;
	auto_close int fd = (int)syscall(SYS_pidfd_getfd, pidfd, number, 0);
	if (fd < 0 || !s->what->is_it(s->what->data, fd) || !own_process(s->call->box, s->pid))
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

static void search_tree(struct search *s)
{
	auto_free pid_t *pids = NULL;
	/* Client and server are often one process. */
	search_process(s, s->call->tid);
	size_t n = s->hold < 0 ? own_processes(s->call->box, &pids) : 0;
	for (size_t i = 0; i < n && s->hold < 0 && s->looked_at <= DESCRIPTORS_MAX; i++)
		search_process(s, pids[i]);
}

/* Without pidfd_getfd: only the sockets whose copies are here are known to be the sandbox's. */
static void search_table(struct search *s)
{
	for (size_t i = 0; i < s->what->n && s->hold < 0; i++) {
		auto_close int fd = sock_table_find(s->call->box->socks, s->what->inodes[i]);
		if (fd >= 0 && s->what->is_it(s->what->data, fd))
			s->hold = take_fd(&fd);
	}
}

int sock_own_find(struct call *call, const struct sock_search *what)
{
	struct search s = {.call = call, .what = what, .hold = -1};
	if (call->box->have_getfd)
		search_tree(&s);
	else
		search_table(&s);
	return s.hold < 0 ? -EPERM : s.hold;
}
