/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What --explain does with a call (see explain.h), and what it says of calls that the filter
 * refuses.
 */
#include "supervise/explain.h"

#include <errno.h>
#include <string.h>

#include "base/buf.h"
#include "base/util.h"
#include "policy/bpf_run.h"
#include "policy/policy.h"
#include "supervise/box.h"

/* --- Refused by the filter ---------------------------------------------------------------- */

static bool is_denied_by_user(const struct call *call)
{
	const struct strv *deny = &call->box->policy->extra_deny;
	struct syscall_set set = {0};
	for (size_t i = 0; i < deny->n; i++)
		syscall_set_add(&set, deny->v[i]);
	return syscall_set_has(&set, (size_t)(call->row - syscall_table));
}

/* Whether --extra-allow-syscall takes this call here. */
static bool is_waivable(const struct call *call)
{
	char *words[] = {(char *)(uintptr_t)call->row->name, NULL};
	const struct strv one = {.v = words, .n = 1};
	return filter_check_names(&one, NULL, call->box->base, NULL) == 0;
}

/* Whether --allow-metadata would have let it through. */
static bool is_metadata(const struct call *call)
{
	const struct filter_program *open = &call->box->open_filter;
	return bpf_run(open->insns, open->n, &call->data) == SECCOMP_RET_ALLOW;
}

/* The registers that decided, as far as they say something. */
static void describe(const struct call *call, struct buf *out)
{
	switch ((enum syscall_check)call->row->check) {
	case CHECK_CLONE:
	case CHECK_PERSONALITY:
		buf_printf(out, "%#x", (unsigned int)call_int(call, 0));
		break;
	case CHECK_IOCTL:
		buf_printf(out, "request %#x", (unsigned int)call_int(call, 1));
		break;
	case CHECK_IOPRIO:
	case CHECK_SETPRIORITY:
		buf_printf(out, "which %d, who %d", call_int(call, 0), call_int(call, 1));
		break;
	case CHECK_PID0:
		buf_printf(out, "process %d", call_int(call, 0));
		break;
	case CHECK_PRCTL:
		buf_printf(out, "option %d", call_int(call, 0));
		break;
	case CHECK_SETSOCKOPT:
		buf_printf(out, "level %d, name %d", call_int(call, 1), call_int(call, 2));
		break;
	case CHECK_SOCKET:
	case CHECK_SOCKETPAIR:
		buf_printf(out, "family %d, type %d, protocol %d", call_int(call, 0),
			   call_int(call, 1) & UAPI_SOCK_TYPE_MASK, call_int(call, 2));
		break;
	case CHECK_SEND_ARG2:
	case CHECK_SEND_ARG3:
	case CHECK_SENDTO:
		buf_add_str(out, "MSG_FASTOPEN");
		break;
	case CHECK_NONE:
	case CHECK_BIND_NETLINK:
	case CHECK_RECV:
	case CHECK_RECV_NETLINK:
	case CHECK_CHOWN_ARG1:
	case CHECK_CHOWN_ARG2:
	case CHECK_FCNTL:
	case CHECK_FLOCK:
	case CHECK_LISTEN:
	case CHECK_SECCOMP:
	case CHECK_COUNT:
		break;
	}
}

/* The rule that opens a kind of socket; NULL: none does. */
static const char *socket_rule(const struct call *call)
{
	int domain = call_int(call, 0);
	int protocol = call_int(call, 2);
	if (call->row->check != CHECK_SOCKET || !call->box->have_getfd ||
	    (domain != UAPI_AF_INET && domain != UAPI_AF_INET6) ||
	    (call_int(call, 1) & (int)UAPI_SOCK_TYPE_MASK) != UAPI_SOCK_DGRAM)
		return NULL;
	if (protocol == 0 || protocol == UAPI_IPPROTO_UDP)
		return "--net-allow 'udp://*'";
	return protocol == UAPI_IPPROTO_ICMP || protocol == UAPI_IPPROTO_ICMPV6
		       ? "--net-allow 'icmp://*'"
		       : NULL;
}

static struct verdict refused_by_filter(struct call *call, int error)
{
	AUTO(buf_done) struct buf object = BUF_INIT(128);
	AUTO(buf_done) struct buf allow = BUF_INIT(128);
	const char *rule = call->row->no_waiver;
	describe(call, &object);
	if (is_denied_by_user(call)) {
		rule = "--extra-deny-syscall names it";
	} else if (is_metadata(call)) {
		rule = "it changes metadata, which no grant opens here";
		buf_add_str(&allow, "--allow-metadata");
	} else if (is_waivable(call)) {
		rule = "the system call filter refuses it";
		buf_printf(&allow, "--extra-allow-syscall %s", call->row->name);
	} else if (socket_rule(call)) {
		buf_add_str(&allow, socket_rule(call));
	} else if (!rule) {
		rule = "it reaches the user's other programs, since this sandbox has no IPC "
		       "namespace of its own";
	}
	struct refusal refusal = {.op = call->row->name,
				  .object = buf_text(&object),
				  .layer = "seccomp",
				  .rule = rule,
				  .allow = allow.len ? buf_text(&allow) : NULL,
				  .error = error};
	return call_refuse(call, &refusal);
}

const char *explain_op(const struct call *call)
{
	if (call->row->family == FAMILY_OPEN)
		return "open";
	return call->row->family == FAMILY_EXEC ? "exec" : call->row->name;
}

/* --- Left to the kernel ------------------------------------------------------------------- */

static explain_fn explainer(const struct call *call)
{
	static const explain_fn by_family[FAMILY_COUNT] = {
		[FAMILY_BIND] = explain_bind,	  [FAMILY_CREATE] = explain_create,
		[FAMILY_EXEC] = explain_exec,	  [FAMILY_LINK] = explain_link,
		[FAMILY_OPEN] = explain_open,	  [FAMILY_REMOVE] = explain_remove,
		[FAMILY_SIGNAL] = explain_signal, [FAMILY_TRUNCATE] = explain_truncate,
	};
	if (call->row->class == SYSCALL_METADATA)
		return call->box->base ? explain_metadata : NULL;
	return by_family[call->row->family];
}

/* The kernel executes it in any case, also where there is nobody to find out what it will say. */
static struct verdict left_to_kernel(struct call *call)
{
	explain_fn fn = explainer(call);
	if (fn && fn(call) == -EAGAIN && !call->on_worker && call_may_work(call))
		return (struct verdict){.answer = ANSWER_WORKER};
	return verdict_continue();
}

struct verdict explain_call(struct call *call, call_handler handler)
{
	const struct filter_program *plain = &call->box->plain_filter;
	uint32_t answer = bpf_run(plain->insns, plain->n, &call->data);
	struct verdict verdict;
	switch (answer & SECCOMP_RET_ACTION_FULL) {
	case SECCOMP_RET_ERRNO:
		return refused_by_filter(call, (int)(answer & SECCOMP_RET_DATA));
	case SECCOMP_RET_ALLOW:
		return left_to_kernel(call);
	case SECCOMP_RET_USER_NOTIF:
		verdict = handler(call);
		return verdict.answer == ANSWER_CONTINUE ? left_to_kernel(call) : verdict;
	default:
		return verdict_errno(EPERM);
	}
}
