/* SPDX-License-Identifier: Apache-2.0 */
/* Binding and signals, as Landlock will judge them. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/util.h"
#include "policy/net_table.h"
#include "policy/policy.h"
#include "supervise/box.h"
#include "supervise/explain_path.h"
#include "supervise/msg.h"
#include "supervise/own.h"

/* --- bind --------------------------------------------------------------------------------- */

static int explain_port(struct call *call, const struct sock_addr *addr)
{
	const struct sockaddr_in *v4 = (const struct sockaddr_in *)&addr->storage;
	const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)&addr->storage;
	bool is_v6 = addr->sa.sa_family == AF_INET6;
	char host[INET6_ADDRSTRLEN] = "";
	char object[INET6_ADDRSTRLEN + 16];
	char allow[40];
	if (addr->len < (is_v6 ? offsetof(struct sockaddr_in6, sin6_scope_id) : sizeof(*v4)))
		return -EINVAL;
	uint16_t port = ntohs(v4->sin_port); /* at the same place in both */
	const struct policy *p = call->box->policy;
	if (p->prot[PROT_NET_TCP] == PROT_DISABLED || net_policy_may_bind(p, port))
		return 0;
	inet_ntop(addr->sa.sa_family, is_v6 ? (const void *)&v6->sin6_addr : &v4->sin_addr, host,
		  sizeof(host));
	snprintf(object, sizeof(object), is_v6 ? "[%s]:%u" : "%s:%u", host, port);
	snprintf(allow, sizeof(allow), "--net-allow-bind %u", port);
	struct refusal refusal = {.op = "bind",
				  .object = object,
				  .layer = "landlock",
				  .rule = "no rule allows binding to this port",
				  .allow = allow,
				  .error = EACCES};
	call_refuse(call, &refusal);
	return 0;
}

/* The socket's file is a new name in its directory. */
static int explain_socket_file(struct call *call, const struct sock_addr *addr)
{
	struct explain_path p = {.dirfd = AT_FDCWD};
	snprintf(p.text, sizeof(p.text), "%s", addr->un.sun_path);
	return explain_with(call, &p, explain_judge_new, NULL);
}

int explain_bind(struct call *call)
{
	struct sock_addr addr;
	if (!str_eq(call->row->name, "bind"))
		return -EINVAL;
	int r = sock_addr_read(call, call_arg(call, 1), call_int(call, 2), &addr);
	if (r < 0 || addr.len < sizeof(addr.sa.sa_family))
		return r;
	if (addr.sa.sa_family == AF_INET || addr.sa.sa_family == AF_INET6)
		return explain_port(call, &addr);
	bool named = addr.sa.sa_family == AF_UNIX &&
		     addr.len > offsetof(struct sockaddr_un, sun_path) && addr.un.sun_path[0];
	return named ? explain_socket_file(call, &addr) : 0;
}

/* --- Signals ------------------------------------------------------------------------------ */

/* The process that a signal call names by number; 0: none, or not one. */
static pid_t target_of(const struct call *call)
{
	for (unsigned int i = 0; i < ARRAY_SIZE(call->row->args); i++) {
		if (call->row->args[i] == ARG_PID)
			return call_int(call, i) > 0 ? call_int(call, i) : 0;
	}
	return 0;
}

int explain_signal(struct call *call)
{
	char object[32];
	pid_t pid = target_of(call);
	struct act act;
	if (call->box->base || pid == 0 || own_process(call->box, pid))
		return 0;
	if (act_begin(call->box, &act) < 0)
		return -EPERM;
	bool could = kill(pid, 0) == 0;
	act_end(&act);
	if (!could)
		return 0;
	snprintf(object, sizeof(object), "process %d", pid);
	struct refusal refusal = {.op = call->row->name,
				  .object = object,
				  .layer = "landlock",
				  .rule = "signals stay inside the sandbox",
				  .error = EPERM};
	call_refuse(call, &refusal);
	return 0;
}
