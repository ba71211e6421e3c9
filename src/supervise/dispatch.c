/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which handler a call goes to: by the family that the syscall table gives it. What has no row, no
 * identity or no handler is refused.
 */
#include <errno.h>

#include "policy/filter.h"
#include "supervise/explain.h"
#include "supervise/narrow.h"
#include "supervise/supervisor_internal.h"

static const call_handler handlers[FAMILY_COUNT] = {
	[FAMILY_NARROW] = handle_narrow,   [FAMILY_CREATE] = handle_names,
	[FAMILY_OPEN] = handle_open,	   [FAMILY_REMOVE] = handle_names,
	[FAMILY_TUNE] = handle_tune,	   [FAMILY_BIND] = handle_bind,
	[FAMILY_CONNECT] = handle_connect, [FAMILY_LINK] = handle_link,
	[FAMILY_LOCK] = handle_lock,	   [FAMILY_METADATA] = handle_metadata,
	[FAMILY_SEND] = handle_send,	   [FAMILY_SOCKET] = handle_socket,
	[FAMILY_WATCH] = handle_watch,	   [FAMILY_XATTR] = handle_xattr,
	[FAMILY_IOCTL] = handle_interface, [FAMILY_SOCKNAME] = handle_sockname,
	[FAMILY_RECV] = handle_recv,	   [FAMILY_SOCKOPT] = handle_sockopt,
};

static struct verdict handle(struct call *call)
{
	call_handler handler = handlers[call->row->family];
	struct verdict verdict;
	if (netlink_takes(call, &verdict))
		return verdict;
	if (handler == handle_link && !call->box->base)
		handler = handle_names;
	/* The kernel knows the task's own domain, and grants no more than the sandbox's. */
	if ((handler == handle_link || handler == handle_names || handler == handle_open) &&
	    narrow_has(call))
		return verdict_continue();
	return handler ? handler(call) : verdict_errno(EPERM);
}

struct verdict dispatch_call(struct call *call)
{
	/* A task that this process cannot name (another PID namespace) cannot be judged. */
	if (call->tid <= 0)
		return verdict_errno(EPERM);
	if (call->data.arch != filter_audit_arch(filter_native_arch()) || !call->row)
		return verdict_errno(ENOSYS);
	return call->box->explain ? explain_call(call, handle) : handle(call);
}
