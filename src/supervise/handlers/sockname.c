/* SPDX-License-Identifier: Apache-2.0 */
/*
 * getsockname and getpeername, where the sandbox has ports of its own or its connections go through
 * the relay: what it knows.
 * Nothing depends on what is told here; where the kernel's own answer is right it gives it.
 */
#include <errno.h>
#include <sys/socket.h>

#include "base/util.h"
#include "net/ports.h"
#include "supervise/box.h"
#include "supervise/handlers/handlers.h"
#include "supervise/sock_relay.h"
#include "supervise/sock_remap.h"

static int tell(struct call *call, const struct sock_addr *addr)
{
	int32_t room = 0;
	int32_t len = (int32_t)addr->len;
	int r = call_read(call, call_arg(call, 2), &room, sizeof(room));
	if (r == 0 && room < 0)
		r = -EINVAL;
	if (r == 0)
		r = call_write(call, call_arg(call, 1), &addr->storage,
			       (size_t)(room < len ? room : len));
	return r < 0 ? r : call_write(call, call_arg(call, 2), &len, sizeof(len));
}

/* What goes through the relay is seen as if it did not. */
static bool shows_relay(const struct box *box, const struct sock_info *info, int fd, bool peer,
			const struct sock_addr *own, struct sock_addr *ret)
{
	struct sock_addr other = {.len = sizeof(other.storage)};
	return box->relay && getpeername(fd, &other.sa, &other.len) == 0 &&
	       sock_relay_name(box, info, peer, own, &other, ret);
}

struct verdict handle_sockname(struct call *call)
{
	struct box *box = call->box;
	struct sock_info info;
	struct sock_addr own = {.len = sizeof(own.storage)};
	struct sock_addr other = {.len = sizeof(other.storage)};
	bool peer = str_eq(call->row->name, "getpeername");
	if (!box->relay && (!box->ports || !ports_differ(box->ports)))
		return verdict_continue();
	int fd = sock_copy(call, call_int(call, 0));
	if (fd < 0 || sock_info_get(fd, &info) < 0 || !sock_proto(&info) ||
	    getsockname(fd, &own.sa, &own.len) < 0 ||
	    (peer && getpeername(fd, &other.sa, &other.len) < 0))
		return verdict_continue();
	struct sock_addr *addr = peer ? &other : &own;
	if (!shows_relay(box, &info, fd, peer, &own, addr) &&
	    !sock_remap_show(box, &info, peer, &own, addr))
		return verdict_continue();
	int r = tell(call, addr);
	if (r == -ESRCH)
		return (struct verdict){.answer = ANSWER_GONE};
	return verdict_result(r, -r);
}
