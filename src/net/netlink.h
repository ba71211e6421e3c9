/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Route netlink as a sandbox sees it: one interface, the loopback, its addresses, routes and rules.
 * What asks for anything else is answered with an error; nothing here asks the kernel's netlink.
 *
 * A socket of the sandbox is one end of a Unix pair. It keeps messages apart, reaches nothing but
 * its other end, and what is known of it belongs to the open file, not to a number. The other end
 * carries an abstract name that reads as a netlink address of process 0, the kernel, which is whom
 * a receiver expects.
 */
#pragma once

#include <linux/netlink.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* --- Messages (netlink_message.c): pure ---------------------------------------------------- */

enum {
	NETLINK_REQUEST_MAX = 32 * 1024, /* of one datagram; what lies behind is not looked at */
	NETLINK_REPLY_MAX = 4096,
	NETLINK_ECHO_MAX = 1024, /* of a request that is returned with its error */
};

struct netlink_reply {
	size_t len; /* 0: the request asks for no reply */
	char data[NETLINK_REPLY_MAX];
};

/*
 * Answers the first message of the N bytes at DATA, sent by the socket PORT; with V6 the loopback
 * has its address of version 6. Returns how many bytes the message takes; 0 where there is none or
 * a malformed one, and what is left is dropped as the kernel drops it.
 */
size_t netlink_answer(bool v6, uint32_t port, const char *data, size_t n,
		      struct netlink_reply *ret);

/* --- Sockets (netlink.c) ------------------------------------------------------------------- */

enum { NETLINK_SOCKETS_MAX = 64 }; /* of one sandbox */

/* All of one sandbox's; any thread may call. NULL where no descriptor is left. */
struct netlink *netlink_new(void);
void netlink_free(struct netlink *nl);
/* Readable when netlink_step has work; borrowed. */
int netlink_fd(const struct netlink *nl);
/* Answers what can be answered; never blocks. */
void netlink_step(struct netlink *nl);
/*
 * Makes a socket; *RET_FD (owned) is the sandbox's end, *RET_INODE names it from now on. PORT is
 * what its address will be unless another has it. -EMFILE past NETLINK_SOCKETS_MAX.
 */
int netlink_open(struct netlink *nl, uint32_t port, bool nonblock, int *ret_fd);
/* Answers what the socket INODE has asked by now. False: there is none. */
bool netlink_serve(struct netlink *nl, uint64_t inode);
/* bind of the socket INODE: 0, -EADDRINUSE, -EINVAL (it has another address), -ENOENT: there is
 * none. */
int netlink_bind(struct netlink *nl, uint64_t inode, const struct sockaddr_nl *addr);
/* Its address. False: there is none. */
bool netlink_name(struct netlink *nl, uint64_t inode, struct sockaddr_nl *ret);
/* Whether there is any socket. */
bool netlink_is_used(struct netlink *nl);
