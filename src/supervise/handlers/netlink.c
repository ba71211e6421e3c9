/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Route netlink: a socket of it is a Unix socket whose other end is here (net/netlink.h). What
 * programs send and receive goes between the two; only what such a socket would answer otherwise is
 * done here. Which socket a number means is asked by its inode, and an answer that comes too late
 * for a number that was given to another socket misleads nobody but the task itself.
 */
#include <errno.h>
#include <linux/netlink.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/util.h"
#include "net/netlink.h"
#include "supervise/box.h"
#include "supervise/handlers/handlers.h"
#include "supervise/sock.h"
#include "supervise/supervisor.h"
#include "sys/proc.h"

/* --- Making one ------------------------------------------------------------------------------ */

static int on_netlink(void *data, bool ready)
{
	(void)ready;
	netlink_step(data);
	return -1;
}

/* The loop runs the first call about it, so that there is one. */
static int start(struct call *call)
{
	struct box *box = call->box;
	if (box->netlink)
		return 0;
	if (call->on_worker)
		return -EAGAIN;
	struct netlink *nl = netlink_new();
	if (!nl)
		return -errno;
	int r = box_attach(box, netlink_fd(nl), on_netlink, nl);
	if (r < 0) {
		netlink_free(nl);
		return r;
	}
	box->netlink = nl;
	return 0;
}

/* The last number of the line is that of the innermost namespace. */
static void read_number(void *data, const char *line)
{
	uint32_t *number = data;
	const char *last = strrchr(line, '\t');
	if (str_starts(line, "NStgid:") && last)
		*number = (uint32_t)strtoul(last, NULL, 10);
}

/* The process's number as it knows it itself; 0 where that cannot be read. */
static uint32_t own_number(const struct call *call)
{
	uint32_t number = 0;
	char path[40];
	snprintf(path, sizeof(path), "/proc/%d/status", call->tid);
	proc_each_line(path, read_number, &number);
	return number;
}

static struct verdict make_socket(struct call *call)
{
	int flags = call_int(call, 1) & ~UAPI_SOCK_TYPE_MASK;
	struct sock_ids ids;
	int fd = -1;
	if (call_int(call, 2) != NETLINK_ROUTE)
		return verdict_errno(EAFNOSUPPORT);
	if (flags & ~(SOCK_CLOEXEC | SOCK_NONBLOCK))
		return verdict_errno(EINVAL);
	int r = start(call);
	if (r < 0)
		return verdict_errno(-r);
	uint32_t number = own_number(call);
	if (!sock_ids_begin(call->box, &ids))
		return verdict_errno(EACCES);
	r = netlink_open(call->box->netlink, number, flags & SOCK_NONBLOCK, &fd);
	sock_ids_end(&ids);
	return r < 0 ? verdict_errno(-r) : verdict_fd(fd, flags & SOCK_CLOEXEC);
}

/* --- Asking one ------------------------------------------------------------------------------ */

/* The inode of the task's descriptor NUMBER; 0 where it is no socket or there is none to find. */
static uint64_t inode_of(const struct call *call, int number)
{
	char text[64];
	uint64_t inode = 0;
	if (!call->box->netlink || !netlink_is_used(call->box->netlink))
		return 0;
	ssize_t n = proc_fd_link(call->tid, number, text, sizeof(text));
	return n > 0 && sock_link_inode(text, &inode) ? inode : 0;
}

static bool takes_bind(struct call *call, struct verdict *ret)
{
	struct sockaddr_nl addr;
	uint64_t inode = inode_of(call, call_int(call, 0));
	struct sockaddr_nl own;
	if (!inode || !netlink_name(call->box->netlink, inode, &own)) {
		/* Only its length brought it here. */
		*ret = verdict_continue();
		return !(call->box->notify & FILTER_NOTIFY_BIND);
	}
	int r = call_int(call, 2) < (int)sizeof(addr)
			? -EINVAL
			: call_read(call, call_arg(call, 1), &addr, sizeof(addr));
	if (r == 0 && addr.nl_family != AF_NETLINK)
		r = -EINVAL;
	if (r == 0)
		r = netlink_bind(call->box->netlink, inode, &addr);
	*ret = r < 0 ? verdict_errno(-r) : verdict_value(0);
	return true;
}

static bool takes_name(struct call *call, struct verdict *ret)
{
	struct sockaddr_nl addr;
	int32_t len = 0;
	int32_t whole = sizeof(addr);
	uint64_t inode = inode_of(call, call_int(call, 0));
	if (!inode || !netlink_name(call->box->netlink, inode, &addr))
		return false;
	int r = call_read(call, call_arg(call, 2), &len, sizeof(len));
	if (r == 0 && len < 0)
		r = -EINVAL;
	if (r == 0)
		r = call_write(call, call_arg(call, 1), &addr, (size_t)(len < whole ? len : whole));
	if (r == 0)
		r = call_write(call, call_arg(call, 2), &whole, sizeof(whole));
	*ret = r < 0 ? verdict_errno(-r) : verdict_value(0);
	return true;
}

/* The kernel receives what is there then. */
static bool takes_receive(struct call *call, struct verdict *ret)
{
	uint64_t inode = inode_of(call, call_int(call, 0));
	if (inode)
		netlink_serve(call->box->netlink, inode);
	*ret = verdict_continue();
	return call_arg(call, 4) == 0;
}

/* Whom it is connected to does not matter: there is only the kernel. */
static bool takes_connect(struct call *call, struct verdict *ret)
{
	struct sockaddr_nl own;
	uint64_t inode = inode_of(call, call_int(call, 0));
	if (!inode || !netlink_name(call->box->netlink, inode, &own))
		return false;
	*ret = verdict_value(0);
	return true;
}

bool netlink_takes(struct call *call, struct verdict *ret)
{
	const char *name = call->row->name;
	switch (call->row->family) {
	case FAMILY_SOCKET:
		if (!str_eq(name, "socket") || call_int(call, 0) != AF_NETLINK)
			return false;
		*ret = make_socket(call);
		return true;
	case FAMILY_SOCKOPT:
		/* Nothing here ever changes, so there is nothing to be told of. */
		*ret = verdict_value(0);
		return str_eq(name, "setsockopt") && call_int(call, 1) == UAPI_SOL_NETLINK;
	case FAMILY_BIND:
		return str_eq(name, "bind") && takes_bind(call, ret);
	case FAMILY_CONNECT:
		return takes_connect(call, ret);
	case FAMILY_SOCKNAME:
		return str_eq(name, "getsockname") && takes_name(call, ret);
	case FAMILY_RECV:
		return str_eq(name, "recvfrom") && takes_receive(call, ret);
	default:
		return false;
	}
}
