/* SPDX-License-Identifier: Apache-2.0 */
/* Limits of what connections carry, while the sandbox runs. */
#include "lib/relay_service.h"

#include <errno.h>

#include "base/number.h"
#include "base/util.h"
#include "events/event.h"
#include "lib/supervision.h"
#include "net/relay.h"
#include "net/resolver.h"
#include "policy/net_table.h"
#include "supervise/box.h"
#include "supervise/supervisor.h"

enum { DRAIN_MS = 2000 };

int relay_service_make(struct box *box)
{
	if (!net_policy_limits(box->policy))
		return 0;
	box->relay = net_relay_new(box->policy);
	if (!box->relay)
		return -errno;
	if (box->resolver)
		resolver_set_relay(box->resolver, box->relay);
	return 0;
}

static void on_spent(void *data)
{
	struct sandlock_process *p = data;
	char size[NUMBER_TEXT_SIZE];
	number_print_size(p->net_max_bytes, size);
	auto_free char *object = xasprintf("--net-max-bytes %s", size);
	struct event e = {.op = "transfer",
			  .object = object,
			  .layer = "limit",
			  .rule = "all bytes that the sandbox may send and receive are used up",
			  .allow = "--net-max-bytes with a larger size",
			  .error = EDQUOT};
	supervision_event(p, &e, true);
}

int relay_service_start(struct sandlock_process *p, struct box *box)
{
	if (!box->relay)
		return 0;
	p->relay = box->relay;
	p->net_max_bytes = box->policy->net_max_bytes;
	net_relay_on_spent(p->relay, on_spent, p);
	p->relay_guest =
		supervisor_attach(p->sup, net_relay_fd(p->relay), net_relay_step, p->relay);
	return p->relay_guest ? 0 : -ENOMEM;
}

void relay_service_stop(struct sandlock_process *p)
{
	if (!p->relay)
		return;
	supervisor_detach(p->sup, take_ptr(p->relay_guest));
	if (!p->kill_sent)
		net_relay_drain(p->relay, DRAIN_MS);
	net_relay_on_spent(p->relay, NULL, NULL);
	p->relay = NULL;
}
