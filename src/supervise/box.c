/* SPDX-License-Identifier: Apache-2.0 */
/* What a sandbox's handlers share, and its end. */
#include "supervise/box.h"

#include <stdlib.h>

#include "base/util.h"
#include "net/netlink.h"
#include "net/ports.h"
#include "net/relay.h"
#include "net/resolver.h"
#include "policy/policy.h"
#include "supervise/ask.h"
#include "supervise/places.h"
#include "supervise/sock.h"

void box_release(struct box *box)
{
	for (unsigned int i = 0; i < box->n_narrowed && i < ARRAY_SIZE(box->narrowed); i++)
		util_close(box->narrowed[i].ruleset);
	grants_done(&box->grants);
	util_close(box->root_plus_one - 1);
	sock_table_free(box->socks);
	sock_guard_free(box->guard);
	netlink_free(box->netlink);
	resolver_free(box->resolver);
	net_relay_free(box->relay);
	ports_unref(box->ports);
	ask_unref(box->ask);
	policy_unref((struct policy *)(uintptr_t)box->policy);
	free(box->tmpdir);
	strv_done(&box->layers);
	filter_program_done(&box->plain_filter);
	filter_program_done(&box->open_filter);
	places_free(box->places);
}
