/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ports of the sandbox's own (--port-remap): a bind whose port somebody outside has already gets
 * another one, and the sandbox goes on to see the number that it asked for. All of these do nothing
 * where box->ports is NULL.
 */
#pragma once

#include "supervise/sock.h"

struct call;

/*
 * bind of FD to ADDR, which the policy allows as POINT. True: RET is the answer. False:
 * bind as usual.
 */
bool sock_remap_bind(struct call *call, int fd, const struct sock_addr *addr,
		     const struct net_point *point, struct verdict *ret);
/*
 * Whether the sandbox has bound the loopback port POINT under another number: 1, and RET leads
 * there and holds one of its sockets; 0: no; -EAGAIN: only a worker can tell.
 */
int sock_remap_lead(struct call *call, const struct net_point *point, struct sock_target *ret);
/* The address ADDR of the sandbox's own side of a socket of INFO (PEER: of the other side, whose
 * own one is OWN) as the sandbox should see it. True if it was changed. */
bool sock_remap_show(const struct box *box, const struct sock_info *info, bool peer,
		     const struct sock_addr *own, struct sock_addr *addr);
