/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ioctls that ask about network interfaces: there is one, the loopback, as in the view that route
 * netlink gives (net/netlink.h). Nothing is asked of the kernel, so the socket that the call is
 * made on matters only in that it is one.
 */
#include <errno.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <netinet/in.h>
#include <string.h>

#include "base/util.h"
#include "supervise/call.h"
#include "supervise/handlers/handlers.h"
#include "supervise/sock.h"
#include "sys/proc.h"

enum {
	LO_INDEX = 1,
	LO_MTU = 65536,
	LO_QUEUE = 1000,
	LO_FLAGS = IFF_UP | IFF_LOOPBACK | IFF_RUNNING
};

static void set_address(struct ifreq *req, uint32_t address)
{
	struct sockaddr_in in = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(address)};
	memcpy(&req->ifr_addr, &in, sizeof(in));
}

/* struct ifconf: a length and a pointer, which may be NULL to ask for the length. */
static int answer_list(struct call *call, uint64_t addr)
{
	struct {
		int32_t len;
		uint32_t pad;
		uint64_t list;
	} conf;
	struct ifreq one = {.ifr_name = "lo"};
	int32_t whole = sizeof(one);
	int r = call_read(call, addr, &conf, sizeof(conf));
	if (r < 0)
		return r;
	if (conf.list && conf.len < whole)
		whole = 0;
	set_address(&one, INADDR_LOOPBACK);
	if (conf.list && whole)
		r = call_write(call, conf.list, &one, sizeof(one));
	return r < 0 ? r : call_write(call, addr, &whole, sizeof(whole));
}

static int fill(struct ifreq *req, uint32_t request)
{
	memset(&req->ifr_ifru, 0, sizeof(req->ifr_ifru));
	switch (request) {
	case UAPI_SIOCGIFFLAGS:
		req->ifr_flags = LO_FLAGS;
		return 0;
	case UAPI_SIOCGIFADDR:
	case UAPI_SIOCGIFDSTADDR:
		set_address(req, INADDR_LOOPBACK);
		return 0;
	case UAPI_SIOCGIFBRDADDR:
		set_address(req, INADDR_ANY);
		return 0;
	case UAPI_SIOCGIFNETMASK:
		set_address(req, 0xff000000);
		return 0;
	case UAPI_SIOCGIFMTU:
		req->ifr_mtu = LO_MTU;
		return 0;
	case UAPI_SIOCGIFHWADDR:
		req->ifr_hwaddr.sa_family = ARPHRD_LOOPBACK;
		return 0;
	case UAPI_SIOCGIFINDEX:
		req->ifr_ifindex = LO_INDEX;
		return 0;
	case UAPI_SIOCGIFTXQLEN:
		req->ifr_qlen = LO_QUEUE;
		return 0;
	case UAPI_SIOCGIFMETRIC:
	case UAPI_SIOCGIFMAP:
		return 0;
	default:
		return -EPERM;
	}
}

static int answer_one(struct call *call, uint32_t request, uint64_t addr)
{
	struct ifreq req;
	int r = call_read(call, addr, &req, sizeof(req));
	if (r < 0)
		return r;
	if (request == UAPI_SIOCGIFNAME) {
		if (req.ifr_ifindex != LO_INDEX)
			return -ENODEV;
		memset(req.ifr_name, 0, sizeof(req.ifr_name));
		memcpy(req.ifr_name, "lo", sizeof("lo"));
	} else {
		req.ifr_name[sizeof(req.ifr_name) - 1] = '\0';
		if (!str_eq(req.ifr_name, "lo"))
			return -ENODEV;
		r = fill(&req, request);
	}
	return r < 0 ? r : call_write(call, addr, &req, sizeof(req));
}

struct verdict handle_interface(struct call *call)
{
	char link[64];
	uint64_t inode = 0;
	uint32_t request = (uint32_t)call_int(call, 1);
	if (request < UAPI_SIOC_INTERFACE_FIRST || request > UAPI_SIOC_INTERFACE_LAST)
		return verdict_errno(EPERM);
	ssize_t n = proc_fd_link(call->tid, call_int(call, 0), link, sizeof(link));
	if (n < 0)
		return verdict_errno(n == -ENOENT ? EBADF : EPERM);
	if (!sock_link_inode(link, &inode))
		return verdict_errno(ENOTTY);
	int r = request == UAPI_SIOCGIFCONF ? answer_list(call, call_arg(call, 2))
					    : answer_one(call, request, call_arg(call, 2));
	if (r == -ESRCH)
		return (struct verdict){.answer = ANSWER_GONE};
	return verdict_result(r, -r);
}
