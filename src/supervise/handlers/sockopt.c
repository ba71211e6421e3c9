/* SPDX-License-Identifier: Apache-2.0 */
/*
 * setsockopt of SO_LINGER. A TCP socket that lingers keeps whoever closes it last waiting for its
 * peer, as long as the sandbox likes; and the last descriptor may be our copy, when the task has
 * closed its own, or has died, while a call waits here. So a socket of the sandbox never lingers:
 * what is asked for is granted in words, and what was written goes out after the close as it does
 * by default. A linger time of 0, by which a close cuts the connection, waits for nothing.
 */
#include <errno.h>
#include <sys/socket.h>

#include "base/util.h"
#include "supervise/box.h"
#include "supervise/handlers/handlers.h"
#include "supervise/sock.h"

static struct verdict set(int fd, const struct linger *asked)
{
	struct sock_info info;
	struct linger value = *asked;
	int r = sock_info_get(fd, &info);
	if (r < 0)
		return verdict_errno(-r);
	if (value.l_linger != 0 && info.domain != AF_UNIX)
		value = (struct linger){0};
	r = setsockopt(fd, SOL_SOCKET, SO_LINGER, &value, sizeof(value));
	return verdict_result(r, errno);
}

struct verdict handle_sockopt(struct call *call)
{
	struct linger asked;
	if (!str_eq(call->row->name, "setsockopt") || call_int(call, 1) != SOL_SOCKET ||
	    call_int(call, 2) != SO_LINGER)
		return verdict_errno(EPERM);
	int fd = sock_copy(call, call_int(call, 0));
	/* Without a copy (sock_table.c) nothing can be set, which is what a time becomes anyway. */
	bool none = fd == -EPERM && !call->box->have_getfd;
	if (fd < 0 && !none)
		return sock_no_copy(call, "setsockopt", fd);
	if (call_int(call, 4) < (int)sizeof(asked))
		return verdict_errno(EINVAL);
	int r = call_read(call, call_arg(call, 3), &asked, sizeof(asked));
	if (r == -ESRCH)
		return (struct verdict){.answer = ANSWER_GONE};
	if (r < 0)
		return verdict_errno(-r);
	return none ? verdict_value(0) : set(fd, &asked);
}
