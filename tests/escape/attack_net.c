/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Attacks over the network: TCP, UDP, raw and exotic sockets, fast open by every call that can
 * carry it, listening and binding without a grant.
 *
 * Invariant: only addresses of the loopback interface are used, where the harness listens.
 */
#include "attack.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef IPPROTO_MPTCP
#define IPPROTO_MPTCP 262
#endif

static struct sockaddr_in loopback4(const char *port)
{
	return (struct sockaddr_in){
		.sin_family = AF_INET,
		.sin_port = htons((uint16_t)number(port)),
		.sin_addr = {htonl(INADDR_LOOPBACK)},
	};
}

static int connect4(int fd, const char *port)
{
	struct sockaddr_in sa;

	if (fd < 0)
		return errno;
	sa = loopback4(port);
	return outcome(connect(fd, (struct sockaddr *)&sa, sizeof(sa)));
}

static int tcp_connect(char *const *arg)
{
	return connect4(socket(AF_INET, SOCK_STREAM, 0), arg[0]);
}

static int tcp_connect_nonblock(char *const *arg)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, IPPROTO_TCP);
	struct sockaddr_in sa = loopback4(arg[0]);

	if (fd < 0)
		return errno;
	return outcome_reached(connect(fd, (struct sockaddr *)&sa, sizeof(sa)), EINPROGRESS);
}

/* An IPv6 socket and a v4-mapped address. PORT */
static int tcp_connect_mapped(char *const *arg)
{
	struct sockaddr_in6 sa = {.sin6_family = AF_INET6};
	int fd = socket(AF_INET6, SOCK_STREAM, 0);

	if (fd < 0)
		return errno;
	sa.sin6_port = htons((uint16_t)number(arg[0]));
	inet_pton(AF_INET6, "::ffff:127.0.0.1", &sa.sin6_addr);
	return outcome(connect(fd, (struct sockaddr *)&sa, sizeof(sa)));
}

static int tcp_connect_v6(char *const *arg)
{
	struct sockaddr_in6 sa = {.sin6_family = AF_INET6, .sin6_addr = in6addr_loopback};
	int fd = socket(AF_INET6, SOCK_STREAM, 0);

	if (fd < 0)
		return errno;
	sa.sin6_port = htons((uint16_t)number(arg[0]));
	return outcome(connect(fd, (struct sockaddr *)&sa, sizeof(sa)));
}

static int mptcp_connect(char *const *arg)
{
	return connect4(socket(AF_INET, SOCK_STREAM, IPPROTO_MPTCP), arg[0]);
}

static int tcp_high_bits(char *const *arg)
{
	/* Protocol MPTCP with bits that the kernel cuts off. */
	long fd = syscall(SYS_socket, AF_INET, SOCK_STREAM, IPPROTO_MPTCP | (1UL << 33));

	return connect4((int)fd, arg[0]);
}

static int udp_send(char *const *arg)
{
	struct sockaddr_in sa = loopback4(arg[0]);
	int fd = socket(AF_INET, SOCK_DGRAM, 0);

	if (fd < 0)
		return errno;
	return outcome(sendto(fd, "x", 1, 0, (struct sockaddr *)&sa, sizeof(sa)));
}

static int udp_high_bits(char *const *arg)
{
	struct sockaddr_in sa = loopback4(arg[0]);
	long fd = syscall(SYS_socket, AF_INET | (1UL << 35), SOCK_DGRAM | (1UL << 35),
			  IPPROTO_UDP | (1UL << 35));

	if (fd < 0)
		return errno;
	return outcome(sendto((int)fd, "x", 1, 0, (struct sockaddr *)&sa, sizeof(sa)));
}

static int udp_send_v6(char *const *arg)
{
	struct sockaddr_in6 sa = {.sin6_family = AF_INET6};
	int fd = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, IPPROTO_UDP);

	if (fd < 0)
		return errno;
	sa.sin6_port = htons((uint16_t)number(arg[0]));
	inet_pton(AF_INET6, "::ffff:127.0.0.1", &sa.sin6_addr);
	return outcome(sendto(fd, "x", 1, 0, (struct sockaddr *)&sa, sizeof(sa)));
}

/* FAMILY, TYPE, PROTOCOL as numbers; the socket alone is the gain. */
static int socket_of(char *const *arg)
{
	return outcome(socket((int)number(arg[0]), (int)number(arg[1]), (int)number(arg[2])));
}

static int socketpair_of(char *const *arg)
{
	int sv[2];

	return outcome(
		socketpair((int)number(arg[0]), (int)number(arg[1]), (int)number(arg[2]), sv));
}

/* --- Fast open ----------------------------------------------------------------------------- */

static int fastopen_sendto(char *const *arg)
{
	struct sockaddr_in sa = loopback4(arg[0]);
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	if (fd < 0)
		return errno;
	return outcome(sendto(fd, "x", 1, MSG_FASTOPEN, (struct sockaddr *)&sa, sizeof(sa)));
}

static int fastopen_sendto_high(char *const *arg)
{
	struct sockaddr_in sa = loopback4(arg[0]);
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	unsigned long flags = MSG_FASTOPEN | MSG_NOSIGNAL | (1UL << 36);

	if (fd < 0)
		return errno;
	return outcome(syscall(SYS_sendto, fd, "x", 1UL, flags, &sa, sizeof(sa)));
}

static int fastopen_sendmsg(char *const *arg)
{
	struct sockaddr_in sa = loopback4(arg[0]);
	struct iovec iov = {(char[]){'x'}, 1};
	struct msghdr msg = {
		.msg_name = &sa, .msg_namelen = sizeof(sa), .msg_iov = &iov, .msg_iovlen = 1};
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	if (fd < 0)
		return errno;
	return outcome(sendmsg(fd, &msg, MSG_FASTOPEN));
}

static int fastopen_sendmmsg(char *const *arg)
{
	struct sockaddr_in sa = loopback4(arg[0]);
	struct iovec iov = {(char[]){'x'}, 1};
	struct mmsghdr batch = {.msg_hdr = {.msg_name = &sa,
					    .msg_namelen = sizeof(sa),
					    .msg_iov = &iov,
					    .msg_iovlen = 1}};
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	if (fd < 0)
		return errno;
	return outcome(sendmmsg(fd, &batch, 1, MSG_FASTOPEN));
}

/* The option makes a plain connect, or a plain send after it, a fast open. */
static int fastopen_option(char *const *arg)
{
	int one = 1;
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	if (fd < 0)
		return errno;
	if (setsockopt(fd, IPPROTO_TCP, TCP_FASTOPEN_CONNECT, &one, sizeof(one)) < 0)
		return errno;
	return connect4(fd, arg[0]);
}

/* --- Routes: what is sent goes to their first stop, whatever the address says ---------------- */

/* A loose source route by another address of the loopback network. */
static int route_ip_options(char *const *arg)
{
	static const unsigned char route[] = {131, 7, 4, 127, 0, 0, 2, 0};
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	return fd < 0 ? errno
		      : outcome(setsockopt(fd, IPPROTO_IP, IP_OPTIONS, route, sizeof(route)));
}

/* The same option of an IPv6 socket, which has IPv4's as well. */
static int route_ip_options_v6(char *const *arg)
{
	static const unsigned char route[] = {131, 7, 4, 127, 0, 0, 2, 0};
	int fd = socket(AF_INET6, SOCK_STREAM, 0);

	return fd < 0 ? errno
		      : outcome(setsockopt(fd, IPPROTO_IP, IP_OPTIONS, route, sizeof(route)));
}

/* A segment routing header with one segment, ::1. */
static int route_header(char *const *arg)
{
	static const unsigned char header[24] = {[1] = 2, [2] = 4, [23] = 1};
	int fd = socket(AF_INET6, SOCK_STREAM, 0);

	return fd < 0 ? errno
		      : outcome(setsockopt(fd, IPPROTO_IPV6, IPV6_RTHDR, header, sizeof(header)));
}

static int route_packet_options(char *const *arg)
{
	static const unsigned char header[24] = {[1] = 2, [2] = 4, [23] = 1};
	union {
		struct cmsghdr head;
		unsigned char space[CMSG_SPACE(sizeof(header))];
	} item = {.head = {CMSG_LEN(sizeof(header)), IPPROTO_IPV6, IPV6_RTHDR}};
	int fd = socket(AF_INET6, SOCK_STREAM, 0);

	memcpy(CMSG_DATA(&item.head), header, sizeof(header));
	return fd < 0 ? errno
		      : outcome(setsockopt(fd, IPPROTO_IPV6, 6 /* IPV6_2292PKTOPTIONS */, &item,
					   sizeof(item)));
}

/* A flow label holds options for whoever uses it in an address. */
static int route_flow_label(char *const *arg)
{
	struct {
		struct in6_addr dst;
		uint32_t label;
		uint8_t action, share;
		uint16_t flags, expires, linger;
		uint32_t pad;
	} label = {.dst = in6addr_loopback,
		   .label = htonl(0x12345 + (uint32_t)getpid() % 4096),
		   .share = 1 /* IPV6_FL_S_EXCL */,
		   .flags = 1 /* IPV6_FL_F_CREATE */};
	int fd = socket(AF_INET6, SOCK_STREAM, 0);

	return fd < 0 ? errno
		      : outcome(setsockopt(fd, IPPROTO_IPV6, 32 /* IPV6_FLOWLABEL_MGR */, &label,
					   sizeof(label)));
}

/* --- Listening ----------------------------------------------------------------------------- */

static int bind_family(sa_family_t family, const char *port)
{
	struct sockaddr_in sa = {.sin_family = family};
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	if (fd < 0)
		return errno;
	sa.sin_port = htons((uint16_t)number(port));
	return outcome(bind(fd, (struct sockaddr *)&sa, sizeof(sa)));
}

static int tcp_bind(char *const *arg)
{
	return bind_family(AF_INET, arg[0]);
}

/* The kernel takes AF_UNSPEC with a zero address for AF_INET. */
static int tcp_bind_unspec(char *const *arg)
{
	return bind_family(AF_UNSPEC, arg[0]);
}

/* PORT */
static int udp_bind(char *const *arg)
{
	struct sockaddr_in sa = loopback4(arg[0]);
	int fd = socket(AF_INET, SOCK_DGRAM, 0);

	return fd < 0 ? errno : outcome(bind(fd, (struct sockaddr *)&sa, sizeof(sa)));
}

/* listen takes a port by itself where bind was not called. */
static int listen_unbound(char *const *arg)
{
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	return fd < 0 ? errno : outcome(listen(fd, 1));
}

static int listen_unbound_v6(char *const *arg)
{
	int fd = socket(AF_INET6, SOCK_STREAM, 0);

	return fd < 0 ? errno : outcome(listen(fd, 1));
}

/* --- Interfaces ---------------------------------------------------------------------------- */

static int interface_list(char *const *arg)
{
	struct ifreq req[8];
	struct ifconf conf = {.ifc_len = sizeof(req), .ifc_req = req};
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	return fd < 0 ? errno : outcome(ioctl(fd, SIOCGIFCONF, &conf));
}

static int interface_address(char *const *arg)
{
	struct ifreq req = {.ifr_name = "lo"};
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	return fd < 0 ? errno : outcome(ioctl(fd, SIOCGIFADDR, &req));
}

/* The wireless requests; an interface without them answers EOPNOTSUPP. */
static int interface_wireless(char *const *arg)
{
	struct ifreq req = {.ifr_name = "lo"};
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	if (fd < 0)
		return errno;
	return outcome_reached(ioctl(fd, 0x8b01, &req), ENOTTY);
}

static int interface_high_bits(char *const *arg)
{
	struct ifreq req = {.ifr_name = "lo"};
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	if (fd < 0)
		return errno;
	return outcome(syscall(SYS_ioctl, fd, SIOCGIFFLAGS | (1UL << 34), &req));
}

const struct attack attacks_net[] = {
	{"tcp_connect", 1, tcp_connect},
	{"tcp_connect_nonblock", 1, tcp_connect_nonblock},
	{"tcp_connect_mapped", 1, tcp_connect_mapped},
	{"tcp_connect_v6", 1, tcp_connect_v6},
	{"mptcp_connect", 1, mptcp_connect},
	{"tcp_high_bits", 1, tcp_high_bits},
	{"udp_send", 1, udp_send},
	{"udp_high_bits", 1, udp_high_bits},
	{"udp_send_v6", 1, udp_send_v6},
	{"socket", 3, socket_of},
	{"socketpair", 3, socketpair_of},
	{"fastopen_sendto", 1, fastopen_sendto},
	{"fastopen_sendto_high", 1, fastopen_sendto_high},
	{"fastopen_sendmsg", 1, fastopen_sendmsg},
	{"fastopen_sendmmsg", 1, fastopen_sendmmsg},
	{"fastopen_option", 1, fastopen_option},
	{"route_ip_options", 0, route_ip_options},
	{"route_ip_options_v6", 0, route_ip_options_v6},
	{"route_header", 0, route_header},
	{"route_packet_options", 0, route_packet_options},
	{"route_flow_label", 0, route_flow_label},
	{"udp_bind", 1, udp_bind},
	{"tcp_bind", 1, tcp_bind},
	{"tcp_bind_unspec", 1, tcp_bind_unspec},
	{"listen_unbound", 0, listen_unbound},
	{"listen_unbound_v6", 0, listen_unbound_v6},
	{"interface_list", 0, interface_list},
	{"interface_address", 0, interface_address},
	{"interface_wireless", 0, interface_wireless},
	{"interface_high_bits", 0, interface_high_bits},
	{0},
};
