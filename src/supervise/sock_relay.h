/* SPDX-License-Identifier: Apache-2.0 */
/* Connections that go through the relay (net/relay.h), under --net-rate and --net-max-bytes. */
#pragma once

#include "supervise/sock.h"

/* Whether the socket of INFO has to go through it to reach what was judged; *RET_RATES for start.
 */
bool sock_relay_wants(const struct box *box, const struct sock_info *info,
		      const struct sock_target *target, uint32_t *ret_rates);
/* connect for such a socket, the copy FD. */
struct verdict sock_relay_start(struct call *call, int fd, const struct sock_info *info,
				const struct sock_target *target, uint32_t rates);
/* Whether CALL was started so, and is run again: *RET is what comes of it. */
bool sock_relay_goes_on(struct call *call, struct verdict *ret);
/*
 * The name (of the peer, if PEER) that the command is told of its socket, where it goes through the
 * relay: OWN and OTHER are the names that the kernel has for it.
 */
bool sock_relay_name(const struct box *box, const struct sock_info *info, bool peer,
		     const struct sock_addr *own, const struct sock_addr *other,
		     struct sock_addr *ret);
