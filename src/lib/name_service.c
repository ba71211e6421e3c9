/* SPDX-License-Identifier: Apache-2.0 */
/* Names of network rules, before and while the sandbox runs. */
#include "lib/name_service.h"

#include <errno.h>
#include <string.h>

#include "base/buf.h"
#include "base/util.h"
#include "events/event.h"
#include "lib/supervision.h"
#include "net/resolver.h"
#include "policy/net_table.h"
#include "supervise/box.h"
#include "supervise/supervisor.h"

static int fail_unknown(struct names *names, struct sandlock_error *err)
{
	for (size_t i = 0; i < names_count(names); i++) {
		enum names_kind kind;
		char q[QUOTE_SIZE];
		const char *name = names_get(names, i, &kind);
		if (kind != NAMES_LITERAL || names_is_known(names, i))
			continue;
		return api_fail(err, SANDLOCK_E_INVALID, EHOSTUNREACH,
				"--net-allow %s: the host name %s cannot be resolved here, or "
				"leads to addresses only that a name may not stand for; correct "
				"it, or look it up at its first use with --net-lazy-dns",
				names_rule(names, i), quote_str(name, q, sizeof(q)));
	}
	return 0;
}

int name_service_prepare(struct job_request *req, struct sandlock_error *err)
{
	const struct policy *p = req->policy;
	if (p->no_supervisor || !net_policy_has_names(p))
		return 0;
	struct names *names = names_new(&p->net_allow, &p->net_deny);
	if (!names)
		return 0;
	req->resolver = resolver_new_take(names);
	if (!req->resolver)
		return api_fail(err, SANDLOCK_E_LIMIT, errno,
				"The resolver of the sandbox cannot be started: %s",
				strerror(errno));
	resolver_start(req->resolver, p->lazy_dns);
	return p->lazy_dns ? 0 : fail_unknown(names, err);
}

static void on_refused(void *data, const char *name, const char *address)
{
	struct sandlock_process *p = data;
	AUTO(buf_done) struct buf allow = BUF_INIT(1024);
	AUTO(buf_done) struct buf object = BUF_INIT(1024);
	buf_add_str(&allow, "--net-allow ");
	buf_add_shell(&allow, address ? address : name);
	buf_add_str(&object, name);
	if (address)
		buf_printf(&object, " -> %s", address);
	struct event e = {
		.op = "lookup",
		.object = buf_text(&object),
		.layer = "resolver",
		.rule = address ? "a name may not lead to this address"
				: "no rule allows this name",
		.allow = buf_text(&allow),
		.error = ECONNREFUSED,
	};
	supervision_event(p, &e, true);
}

void name_service_hand_over(struct job_request *req, struct box *box)
{
	if (!req->resolver)
		return;
	box->names = resolver_names(req->resolver);
	box->resolver = take_ptr(req->resolver);
}

int name_service_start(struct sandlock_process *p, struct box *box)
{
	if (!box->resolver)
		return 0;
	p->resolver = box->resolver;
	resolver_on_refused(p->resolver, on_refused, p);
	p->resolver_guest =
		supervisor_attach(p->sup, resolver_fd(p->resolver), resolver_step, p->resolver);
	return p->resolver_guest ? 0 : -ENOMEM;
}

void name_service_stop(struct sandlock_process *p)
{
	if (!p->resolver)
		return;
	resolver_on_refused(p->resolver, NULL, NULL);
	supervisor_detach(p->sup, take_ptr(p->resolver_guest));
	p->resolver = NULL;
}
