/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Name servers as the sandbox addresses them: while rules hold names, what is sent to port 53 goes
 * to the sandbox's own resolver, except to a server that an address rule names.
 */
#pragma once

#include "supervise/sock.h"

bool sock_dns_is_server(const struct box *box, const struct net_point *point);
/*
 * Leads the call's socket (its first copy) there: T->addr, the server, becomes where to go. False:
 * RET_VERDICT is the answer.
 */
bool sock_dns_lead(struct call *call, const struct sock_info *info, struct sock_target *t,
		   struct verdict *ret_verdict);
