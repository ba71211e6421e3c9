/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests of route netlink, as a hostile task writes them. Every step goes on or ends, and what is
 * answered is a row of whole messages for the one who asked.
 */
#include <assert.h>
#include <linux/rtnetlink.h>
#include <string.h>

#include "fuzz.h"
#include "net/netlink.h"

#define PORT 0x01020304u

static void check_reply(const struct netlink_reply *r)
{
	size_t at = 0;
	assert(r->len <= sizeof(r->data));
	while (at < r->len) {
		struct nlmsghdr h;
		assert(r->len - at >= sizeof(h));
		memcpy(&h, r->data + at, sizeof(h));
		assert(h.nlmsg_len >= sizeof(h) && h.nlmsg_len <= r->len - at);
		assert(h.nlmsg_pid == PORT);
		assert(h.nlmsg_type == NLMSG_ERROR || h.nlmsg_type == NLMSG_DONE ||
		       h.nlmsg_type == RTM_NEWLINK || h.nlmsg_type == RTM_NEWADDR ||
		       h.nlmsg_type == RTM_NEWROUTE || h.nlmsg_type == RTM_NEWRULE);
		at += NLMSG_ALIGN(h.nlmsg_len);
	}
	assert(at == r->len);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct netlink_reply reply;
	for (int v6 = 0; v6 < 2; v6++) {
		size_t at = 0;
		while (at < size) {
			size_t step = netlink_answer(v6, PORT, (const char *)data + at, size - at,
						     &reply);
			assert(step <= size - at);
			check_reply(&reply);
			if (!step)
				break;
			at += step;
		}
	}
	return 0;
}
