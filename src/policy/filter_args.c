/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The argument checks of the filter, one function each. They look at registers only.
 *
 * Width: a register has 64 bits, but the kernel takes an argument that it declares int, unsigned
 * int or pid_t from the low 32 bits alone and never sees what lies above. All checks here are of
 * such arguments, so they compare the low half and ignore the high half, as the kernel does: a
 * program gains nothing by putting garbage there. clone's flags are declared unsigned long, but
 * the kernel takes lower_32_bits() of them (since 5.7; Landlock needs 5.13), so there is no flag
 * above bit 31 for this call either.
 *
 * The code is made from its end to its start (bpf.h): read each function from the bottom up.
 */
#include <errno.h>

#include "base/util.h"
#include "policy/filter_internal.h"
#include "sys/uapi.h"

enum { SEND_FLAGS_ARG2 = 2, SEND_FLAGS_ARG3 = 3 };

/* All supported architectures are little-endian: the low half comes first. */
static bpf_pos load_arg(struct bpf_asm *a, unsigned int arg, bpf_pos next)
{
	uint32_t offset = (uint32_t)offsetof(struct seccomp_data, args) + 8 * arg;

	return bpf_load(a, offset, next);
}

/* For a pointer, of which the kernel takes all bits. */
static bpf_pos load_arg_high(struct bpf_asm *a, unsigned int arg, bpf_pos next)
{
	uint32_t offset = (uint32_t)offsetof(struct seccomp_data, args) + 8 * arg + 4;

	return bpf_load(a, offset, next);
}

static bpf_pos allow(struct bpf_asm *a)
{
	return bpf_ret(a, SECCOMP_RET_ALLOW);
}

static bpf_pos notify(struct bpf_asm *a)
{
	return bpf_ret(a, SECCOMP_RET_USER_NOTIF);
}

/* To be explained is to be refused by the supervisor, with the errno that stands here. */
static bpf_pos refuse(struct bpf_asm *a, const struct filter_args_ctx *ctx, unsigned int errnum)
{
	return ctx->spec->explain ? notify(a) : bpf_ret(a, SECCOMP_RET_ERRNO | errnum);
}

/* An id argument that changes nothing or names the one id that exists inside goes to FINE. */
static bpf_pos check_id(struct bpf_asm *a, unsigned int arg, uint32_t own, bpf_pos fine)
{
	bpf_pos known = bpf_if(a, BPF_JEQ, own, fine, notify(a));

	return load_arg(a, arg, bpf_if(a, BPF_JEQ, 0xffffffff, fine, known));
}

/* Other ids do not exist in the base's user namespace: the supervisor does it, outside. */
static bpf_pos check_chown(struct bpf_asm *a, unsigned int owner, const struct filter_args_ctx *ctx)
{
	bpf_pos fine = ctx->spec->allow_metadata ? allow(a) : refuse(a, ctx, EPERM);
	bpf_pos group = check_id(a, owner + 1, ctx->spec->own_gid, fine);

	return check_id(a, owner, ctx->spec->own_uid, group);
}

static bpf_pos check_chown_arg1(struct bpf_asm *a, const struct filter_args_ctx *ctx)
{
	return check_chown(a, 1, ctx);
}

static bpf_pos check_chown_arg2(struct bpf_asm *a, const struct filter_args_ctx *ctx)
{
	return check_chown(a, 2, ctx);
}

/* A lease or delegation holds up other programs' opens. */
static bpf_pos check_fcntl(struct bpf_asm *a, const struct filter_args_ctx *ctx)
{
	static const uint32_t leases[] = {UAPI_F_SETLEASE, UAPI_F_SETDELEG};

	(void)ctx;
	return load_arg(a, 1, bpf_if_any(a, leases, ARRAY_SIZE(leases), notify(a), allow(a)));
}

static bpf_pos check_flock(struct bpf_asm *a, const struct filter_args_ctx *ctx)
{
	(void)ctx;
	return load_arg(a, 1, bpf_if(a, BPF_JSET, UAPI_LOCK_EX, notify(a), allow(a)));
}

/*
 * CLONE_NEWTIME (0x80) lies in the byte that holds the exit signal, and the kernel reads it as part
 * of the signal here; no signal is that high, so refusing it costs nothing and does not lean on
 * that. CLONE_PARENT would make a child of the sandbox's parent, which arrives in a foreign wait.
 * CLONE_PTRACE and CLONE_UNTRACED only say whether a tracer outside follows the child: harmless.
 */
static bpf_pos check_clone(struct bpf_asm *a, const struct filter_args_ctx *ctx)
{
	uint32_t mask = UAPI_CLONE_NAMESPACES | CLONE_PARENT;

	return load_arg(a, 0, bpf_if(a, BPF_JSET, mask, refuse(a, ctx, EPERM), allow(a)));
}

/*
 * Attribute requests, refused where neither mounts nor the user vouch for metadata calls. The two
 * request types that filesystems share ('f' and btrfs's) are closed but for requests that read or
 * that copy between descriptors: their other numbers set flags, keys and verity, move extents, and
 * make and remove subvolumes, all of which Landlock does not see.
 */
static bpf_pos check_ioctl_metadata(struct bpf_asm *a, const struct filter_args_ctx *ctx)
{
	static const uint32_t setters[] = {
		UAPI_FS_IOC_FSSETXATTR,
		UAPI_FS_IOC_SETVERSION,
		UAPI_FAT_IOCTL_SET_ATTRIBUTES,
		UAPI_OCFS2_IOC_REFLINK,
	};
	static const uint32_t ext_readers[] = {
		UAPI_FS_IOC_GETFLAGS,
		UAPI_FS_IOC_FIEMAP,
		UAPI_FS_IOC_GET_ENCRYPTION_POLICY,
		UAPI_FS_IOC_GET_ENCRYPTION_POLICY_EX,
		UAPI_FS_IOC_GET_ENCRYPTION_KEY_STATUS,
		UAPI_FS_IOC_GET_ENCRYPTION_NONCE,
		UAPI_FS_IOC_MEASURE_VERITY,
		UAPI_FS_IOC_READ_VERITY_METADATA,
	};
	static const uint32_t btrfs_readers[] = {
		UAPI_FICLONE,
		UAPI_FICLONERANGE,
		UAPI_FIDEDUPERANGE,
		UAPI_FS_IOC_GETFSLABEL,
	};

	bpf_pos ext = bpf_if_any(a, ext_readers, ARRAY_SIZE(ext_readers), allow(a),
				 refuse(a, ctx, EPERM));
	ext = load_arg(a, 1, ext);
	bpf_pos btrfs = bpf_if_any(a, btrfs_readers, ARRAY_SIZE(btrfs_readers), allow(a),
				   refuse(a, ctx, EPERM));
	btrfs = load_arg(a, 1, btrfs);

	bpf_pos type = bpf_if(a, BPF_JEQ, UAPI_IOC_TYPE_BTRFS << 8, btrfs, allow(a));
	type = bpf_if(a, BPF_JEQ, UAPI_IOC_TYPE_EXT << 8, ext, type);
	type = bpf_and(a, 0xff00, type);
	return bpf_if_any(a, setters, ARRAY_SIZE(setters), refuse(a, ctx, EPERM), type);
}

/* Values from FIRST to LAST are refused; all others go to OTHER. */
static bpf_pos check_range(struct bpf_asm *a, const struct filter_args_ctx *ctx, uint32_t first,
			   uint32_t last, bpf_pos other)
{
	bpf_pos inside = bpf_if(a, BPF_JGT, last, other, refuse(a, ctx, EPERM));
	return bpf_if(a, BPF_JGE, first, inside, other);
}

/*
 * TIOCSTI and TIOCLINUX type into the terminal, TIOCSETD puts a line discipline (kernel modules of
 * odd protocols) on it, TIOCEXCL locks the user's other programs out of it, and the requests of the
 * Linux console (ioctl_console(2)) blank or deafen it beyond the run. Socket requests from 0x8908
 * on read and change interfaces and routes; those that read are answered by the supervisor, if
 * there is one, which knows the loopback only.
 */
static bpf_pos check_ioctl(struct bpf_asm *a, const struct filter_args_ctx *ctx)
{
	static const uint32_t questions[] = {
		UAPI_SIOCGIFNAME,    UAPI_SIOCGIFCONF,	  UAPI_SIOCGIFFLAGS,   UAPI_SIOCGIFADDR,
		UAPI_SIOCGIFDSTADDR, UAPI_SIOCGIFBRDADDR, UAPI_SIOCGIFNETMASK, UAPI_SIOCGIFMETRIC,
		UAPI_SIOCGIFMTU,     UAPI_SIOCGIFHWADDR,  UAPI_SIOCGIFINDEX,   UAPI_SIOCGIFTXQLEN,
		UAPI_SIOCGIFMAP,
	};
	static const uint32_t terminal[] = {UAPI_TIOCSTI, UAPI_TIOCLINUX, UAPI_TIOCSETD,
					    UAPI_TIOCEXCL};
	bpf_pos rest = ctx->spec->allow_metadata ? allow(a) : check_ioctl_metadata(a, ctx);

	bpf_pos range = refuse(a, ctx, EPERM);
	if (ctx->spec->notify & FILTER_NOTIFY_NETLINK)
		range = bpf_if_any(a, questions, ARRAY_SIZE(questions), notify(a), range);
	range = bpf_if(a, BPF_JEQ, UAPI_SIOCOUTQNSD, allow(a), range);
	range = bpf_if(a, BPF_JGT, UAPI_SIOC_INTERFACE_LAST, rest, range);
	range = bpf_if(a, BPF_JGE, UAPI_SIOC_INTERFACE_FIRST, range, rest);
	range = check_range(a, ctx, UAPI_VT_FIRST, UAPI_VT_LAST, range);
	range = check_range(a, ctx, UAPI_KD_FIRST, UAPI_KD_LAST, range);
	range = bpf_if_any(a, terminal, ARRAY_SIZE(terminal), refuse(a, ctx, EPERM), range);
	return load_arg(a, 1, range);
}

/* What names another process than the caller: the supervisor's to judge, if it is asked. */
static bpf_pos foreign(struct bpf_asm *a, const struct filter_args_ctx *ctx)
{
	return ctx->spec->notify & FILTER_NOTIFY_TUNE ? notify(a) : refuse(a, ctx, EPERM);
}

/* A pair of arguments must be exactly VALUE0 and VALUE1, or goes to OTHER. */
static bpf_pos check_pair(struct bpf_asm *a, uint32_t value0, uint32_t value1, bpf_pos other)
{
	bpf_pos second = bpf_if(a, BPF_JEQ, value1, allow(a), other);
	second = load_arg(a, 1, second);

	return load_arg(a, 0, bpf_if(a, BPF_JEQ, value0, second, other));
}

/* Process 0 only; the caller's group or user may hold processes of the host. */
static bpf_pos check_ioprio(struct bpf_asm *a, const struct filter_args_ctx *ctx)
{
	return check_pair(a, 1 /* IOPRIO_WHO_PROCESS */, 0, foreign(a, ctx));
}

static bpf_pos check_setpriority(struct bpf_asm *a, const struct filter_args_ctx *ctx)
{
	return check_pair(a, 0 /* PRIO_PROCESS */, 0, foreign(a, ctx));
}

/*
 * In a PID namespace of its own the sandbox may tune any process that it can name but the first:
 * that is the guardian, which has the same user (limits on it would keep it from its work: tried).
 */
static bpf_pos check_pid0(struct bpf_asm *a, const struct filter_args_ctx *ctx)
{
	if (ctx->spec->own_pid_namespace)
		return load_arg(a, 0, bpf_if(a, BPF_JEQ, 1, refuse(a, ctx, EPERM), allow(a)));
	return load_arg(a, 0, bpf_if(a, BPF_JEQ, 0, allow(a), foreign(a, ctx)));
}

/* Asking (0xffffffff) and PER_LINUX; other values change address space layout and the ABI. */
static bpf_pos check_personality(struct bpf_asm *a, const struct filter_args_ctx *ctx)
{
	static const uint32_t plain[] = {0xffffffff, 0};

	return load_arg(a, 0,
			bpf_if_any(a, plain, ARRAY_SIZE(plain), allow(a), refuse(a, ctx, EPERM)));
}

/*
 * PR_SET_MM is refused: it moves what the supervisor and ps read of a process. PR_SET_SECUREBITS
 * is refused: it changes what identity means, and nothing without capabilities can use it.
 * PR_SET_PTRACER is refused unless ptrace is waived, since it names who may trace the caller. An
 * option that is newer than this table gets EINVAL, as on a kernel that does not know it.
 *
 * Allowed after thought: PR_SET_DUMPABLE (no decision rests on it: what cannot be read is refused),
 * PR_SET_SECCOMP (can only narrow; it takes no flags, so makes no listener), PR_SET_CHILD_SUBREAPER
 * (the guardian ends the tree by namespace or domain, not by parenthood), PR_CAP_AMBIENT,
 * PR_CAPBSET_DROP and PR_SET_KEEPCAPS (nothing to raise), PR_SCHED_CORE (its pid passes the
 * kernel's ptrace check, which Landlock's domain bounds), PR_SET_PDEATHSIG, PR_SET_THP_DISABLE and
 * PR_SET_TIMERSLACK (the caller only).
 */
static bpf_pos check_prctl(struct bpf_asm *a, const struct filter_args_ctx *ctx)
{
	static const uint32_t named[] = {PR_SET_VMA, PR_GET_AUXV};
	static const uint32_t refused[] = {PR_SET_MM, PR_SET_SECUREBITS};

	bpf_pos other = bpf_if_any(a, named, ARRAY_SIZE(named), allow(a), refuse(a, ctx, EINVAL));
	other = bpf_if(a, BPF_JEQ, PR_SET_PTRACER,
		       ctx->ptrace_allowed ? allow(a) : refuse(a, ctx, EPERM), other);
	bpf_pos known =
		bpf_if_any(a, refused, ARRAY_SIZE(refused), refuse(a, ctx, EPERM), allow(a));
	return load_arg(a, 0, bpf_if(a, BPF_JGT, UAPI_PR_OPTION_LAST, other, known));
}

/*
 * A task can have one listener: ours. EBUSY is the answer of the kernel for a second one
 * (seccomp(2)), and tells a sandlock inside that it is supervised. Filters without one can only
 * narrow.
 */
static bpf_pos check_seccomp(struct bpf_asm *a, const struct filter_args_ctx *ctx)
{
	if (ctx->spec->allow_listener)
		return allow(a);

	bpf_pos flags = bpf_if(a, BPF_JSET, SECCOMP_FILTER_FLAG_NEW_LISTENER, refuse(a, ctx, EBUSY),
			       allow(a));
	flags = load_arg(a, 1, flags);
	return load_arg(a, 0, bpf_if(a, BPF_JEQ, SECCOMP_SET_MODE_FILTER, flags, allow(a)));
}

/* MSG_FASTOPEN connects without the check that connect(2) passes (tried). */
static bpf_pos check_send(struct bpf_asm *a, const struct filter_args_ctx *ctx,
			  unsigned int flags_arg, bpf_pos other)
{
	bpf_pos flags = bpf_if(a, BPF_JSET, UAPI_MSG_FASTOPEN, refuse(a, ctx, EOPNOTSUPP), other);

	return load_arg(a, flags_arg, flags);
}

/* The address of a message lies in memory. */
static bpf_pos check_message(struct bpf_asm *a, unsigned int flags_arg,
			     const struct filter_args_ctx *ctx)
{
	bool judged = ctx->spec->notify & FILTER_NOTIFY_SOCKETS;

	return check_send(a, ctx, flags_arg, judged ? notify(a) : allow(a));
}

static bpf_pos check_send_arg2(struct bpf_asm *a, const struct filter_args_ctx *ctx)
{
	return check_message(a, SEND_FLAGS_ARG2, ctx);
}

static bpf_pos check_send_arg3(struct bpf_asm *a, const struct filter_args_ctx *ctx)
{
	return check_message(a, SEND_FLAGS_ARG3, ctx);
}

/* sendto without an address, which is what send(2) makes, goes where the socket is connected. */
static bpf_pos check_sendto(struct bpf_asm *a, const struct filter_args_ctx *ctx)
{
	bpf_pos other = allow(a);

	if (ctx->spec->notify & FILTER_NOTIFY_SOCKETS) {
		bpf_pos high = load_arg_high(a, 4, bpf_if(a, BPF_JEQ, 0, allow(a), notify(a)));
		other = load_arg(a, 4, bpf_if(a, BPF_JEQ, 0, high, notify(a)));
	}
	return check_send(a, ctx, SEND_FLAGS_ARG3, other);
}

/*
 * TCP_FASTOPEN_CONNECT puts the connection off to the first write. TCP_ULP turns a TCP socket into
 * another protocol (SMC among them) whose connect is no TCP connect to Landlock.
 *
 * IP_OPTIONS and the IPv6 options hold a route: what is sent goes to its first stop and not to the
 * address that was judged. A flow label can hold one as well.
 *
 * SO_LINGER makes whoever closes a socket last wait, and that may be the supervisor with its copy.
 */
static bpf_pos check_setsockopt(struct bpf_asm *a, const struct filter_args_ctx *ctx)
{
	static const uint32_t tcp[] = {UAPI_TCP_FASTOPEN_CONNECT, UAPI_TCP_ULP};
	static const uint32_t ip6[] = {UAPI_IPV6_2292PKTOPTIONS, UAPI_IPV6_FLOWLABEL_MGR,
				       UAPI_IPV6_RTHDR};
	bpf_pos tcp_name =
		bpf_if_any(a, tcp, ARRAY_SIZE(tcp), refuse(a, ctx, EOPNOTSUPP), allow(a));
	bpf_pos ip6_name = bpf_if_any(a, ip6, ARRAY_SIZE(ip6), refuse(a, ctx, EPERM), allow(a));
	bpf_pos ip_name = bpf_if(a, BPF_JEQ, UAPI_IP_OPTIONS, refuse(a, ctx, EPERM), allow(a));

	bpf_pos level = bpf_if(a, BPF_JEQ, UAPI_IPPROTO_IP, load_arg(a, 2, ip_name), allow(a));
	level = bpf_if(a, BPF_JEQ, UAPI_IPPROTO_IPV6, load_arg(a, 2, ip6_name), level);
	level = bpf_if(a, BPF_JEQ, UAPI_IPPROTO_TCP, load_arg(a, 2, tcp_name), level);
	if (ctx->spec->notify & FILTER_NOTIFY_NETLINK)
		level = bpf_if(a, BPF_JEQ, UAPI_SOL_NETLINK, notify(a), level);
	if (ctx->spec->notify & FILTER_NOTIFY_SOCKETS) {
		bpf_pos name = bpf_if(a, BPF_JEQ, UAPI_SO_LINGER, notify(a), allow(a));
		level = bpf_if(a, BPF_JEQ, UAPI_SOL_SOCKET, load_arg(a, 2, name), level);
	}
	return load_arg(a, 1, level);
}

/* listen(2) on an unbound socket binds it to a free port, past the rules for bind (tried). */
static bpf_pos check_listen(struct bpf_asm *a, const struct filter_args_ctx *ctx)
{
	return ctx->spec->allow_listen ? allow(a) : refuse(a, ctx, EACCES);
}

/* The supervisor judges whom they reach, or the user has opened all. */
static bool unix_allowed(const struct filter_spec *spec)
{
	return spec->allow_unix_sockets || (spec->notify & FILTER_NOTIFY_SOCKETS);
}

/* UDP and ping sockets, where the policy has them. */
static bpf_pos check_datagram_socket(struct bpf_asm *a, const struct filter_args_ctx *ctx)
{
	static const uint32_t udp[] = {0, UAPI_IPPROTO_UDP};
	static const uint32_t ping[] = {UAPI_IPPROTO_ICMP, UAPI_IPPROTO_ICMPV6};
	const struct filter_spec *spec = ctx->spec;
	bpf_pos other = refuse(a, ctx, EPERM);

	if (spec->allow_ping)
		other = bpf_if_any(a, ping, ARRAY_SIZE(ping), allow(a), other);
	if (spec->allow_udp)
		other = bpf_if_any(a, udp, ARRAY_SIZE(udp),
				   spec->notify & FILTER_NOTIFY_BIND ? notify(a) : allow(a), other);
	return load_arg(a, 2, other);
}

/* Route netlink is made by the supervisor; the other protocols speak of what is the machine's. */
static bpf_pos check_netlink(struct bpf_asm *a, const struct filter_args_ctx *ctx)
{
	static const uint32_t types[] = {UAPI_SOCK_DGRAM, UAPI_SOCK_RAW};
	bpf_pos no = refuse(a, ctx, EAFNOSUPPORT);
	bpf_pos type = bpf_if_any(a, types, ARRAY_SIZE(types), notify(a), no);

	type = load_arg(a, 1, bpf_and(a, UAPI_SOCK_TYPE_MASK, type));
	return load_arg(a, 2, bpf_if(a, BPF_JEQ, UAPI_NETLINK_ROUTE, type, no));
}

/* The length tells: no other family that works here has addresses of that size but Unix. */
static bpf_pos check_bind_netlink(struct bpf_asm *a, const struct filter_args_ctx *ctx)
{
	(void)ctx;
	return load_arg(a, 2, bpf_if(a, BPF_JEQ, UAPI_SOCKADDR_NL_SIZE, notify(a), allow(a)));
}

/*
 * musl asks without an address and then receives at once, without waiting: the answer must be there
 * when it does. The call is told by its buffer's size and its flags.
 */
static bpf_pos check_recv_netlink(struct bpf_asm *a, const struct filter_args_ctx *ctx)
{
	(void)ctx;
	bpf_pos size = load_arg(a, 2, bpf_if(a, BPF_JEQ, 8192, notify(a), allow(a)));

	return load_arg(a, 3, bpf_if(a, BPF_JEQ, UAPI_MSG_DONTWAIT, size, allow(a)));
}

/* Who asks whom a message is from is told by the supervisor. */
static bpf_pos check_recv(struct bpf_asm *a, const struct filter_args_ctx *ctx)
{
	bool netlink = ctx->spec->notify & FILTER_NOTIFY_NETLINK;
	bpf_pos other = netlink ? check_recv_netlink(a, ctx) : allow(a);
	bpf_pos high = load_arg_high(a, 4, bpf_if(a, BPF_JEQ, 0, other, notify(a)));

	return load_arg(a, 4, bpf_if(a, BPF_JEQ, 0, high, notify(a)));
}

/*
 * Internet sockets: (SOCK_STREAM, 0 or IPPROTO_TCP), and datagram ones. The type's flag bits are
 * masked as the kernel masks them; it refuses flags that it does not know. SOCK_PACKET would turn
 * the family into AF_PACKET.
 */
static bpf_pos check_socket(struct bpf_asm *a, const struct filter_args_ctx *ctx)
{
	bool made_outside = ctx->spec->notify & FILTER_NOTIFY_SOCKET_CREATE;
	bpf_pos make = made_outside ? notify(a) : allow(a);
	static const uint32_t tcp[] = {0, UAPI_IPPROTO_TCP};
	static const uint32_t inet[] = {UAPI_AF_INET, UAPI_AF_INET6};
	static const uint32_t no_right[] = {UAPI_SOCK_RAW, UAPI_SOCK_PACKET};

	bpf_pos protocol =
		bpf_if_any(a, tcp, ARRAY_SIZE(tcp), make, refuse(a, ctx, EPROTONOSUPPORT));
	protocol = load_arg(a, 2, protocol);

	bpf_pos type = bpf_if_any(a, no_right, ARRAY_SIZE(no_right), refuse(a, ctx, EPERM),
				  refuse(a, ctx, EPROTONOSUPPORT));
	type = bpf_if(a, BPF_JEQ, UAPI_SOCK_DGRAM, check_datagram_socket(a, ctx), type);
	type = bpf_if(a, BPF_JEQ, UAPI_SOCK_STREAM, protocol, type);
	type = load_arg(a, 1, bpf_and(a, UAPI_SOCK_TYPE_MASK, type));

	bpf_pos family = bpf_if_any(a, inet, ARRAY_SIZE(inet), type, refuse(a, ctx, EAFNOSUPPORT));
	if (ctx->spec->notify & FILTER_NOTIFY_NETLINK)
		family = bpf_if(a, BPF_JEQ, UAPI_AF_NETLINK, check_netlink(a, ctx), family);
	bpf_pos named = unix_allowed(ctx->spec) ? make : refuse(a, ctx, EACCES);
	family = bpf_if(a, BPF_JEQ, UAPI_AF_UNIX, named, family);
	return load_arg(a, 0, family);
}

/* Where sockets are made outside, what they send cannot be judged: see handlers/socket.c. */
static bool datagrams_allowed(const struct filter_spec *spec)
{
	bool judged = (spec->notify & FILTER_NOTIFY_SOCKETS) &&
		      !(spec->notify & FILTER_NOTIFY_SOCKET_CREATE);

	return spec->allow_unix_sockets || judged;
}

/*
 * A connected stream or seqpacket pair can reach nothing but its other end; a datagram one can send
 * to any name. Internet families answer as the kernel does: their sockets come in no pairs.
 */
static bpf_pos check_socketpair(struct bpf_asm *a, const struct filter_args_ctx *ctx)
{
	static const uint32_t connected[] = {UAPI_SOCK_STREAM, UAPI_SOCK_SEQPACKET};
	static const uint32_t inet[] = {UAPI_AF_INET, UAPI_AF_INET6};
	bpf_pos other = datagrams_allowed(ctx->spec) ? allow(a) : refuse(a, ctx, EACCES);

	bpf_pos type = bpf_if_any(a, connected, ARRAY_SIZE(connected), allow(a), other);
	type = load_arg(a, 1, bpf_and(a, UAPI_SOCK_TYPE_MASK, type));
	bpf_pos family = bpf_if_any(a, inet, ARRAY_SIZE(inet), refuse(a, ctx, EOPNOTSUPP),
				    refuse(a, ctx, EAFNOSUPPORT));
	return load_arg(a, 0, bpf_if(a, BPF_JEQ, UAPI_AF_UNIX, type, family));
}

typedef bpf_pos (*check_fn)(struct bpf_asm *a, const struct filter_args_ctx *ctx);

/* clang-format off */
static const check_fn checks[CHECK_COUNT] = {
	[CHECK_BIND_NETLINK] = check_bind_netlink,
	[CHECK_CHOWN_ARG1]  = check_chown_arg1,
	[CHECK_CHOWN_ARG2]  = check_chown_arg2,
	[CHECK_CLONE]       = check_clone,
	[CHECK_FCNTL]       = check_fcntl,
	[CHECK_FLOCK]       = check_flock,
	[CHECK_IOCTL]       = check_ioctl,
	[CHECK_IOPRIO]      = check_ioprio,
	[CHECK_LISTEN]      = check_listen,
	[CHECK_PERSONALITY] = check_personality,
	[CHECK_PID0]        = check_pid0,
	[CHECK_PRCTL]       = check_prctl,
	[CHECK_RECV]        = check_recv,
	[CHECK_RECV_NETLINK] = check_recv_netlink,
	[CHECK_SECCOMP]     = check_seccomp,
	[CHECK_SENDTO]      = check_sendto,
	[CHECK_SEND_ARG2]   = check_send_arg2,
	[CHECK_SEND_ARG3]   = check_send_arg3,
	[CHECK_SETPRIORITY] = check_setpriority,
	[CHECK_SETSOCKOPT]  = check_setsockopt,
	[CHECK_SOCKET]      = check_socket,
	[CHECK_SOCKETPAIR]  = check_socketpair,
};
/* clang-format on */

bpf_pos filter_args_emit(struct bpf_asm *a, enum syscall_check check,
			 const struct filter_args_ctx *ctx)
{
	/* A row that asks for a check that is not there is refused, never let through. */
	if (check >= CHECK_COUNT || !checks[check])
		return refuse(a, ctx, EPERM);
	return checks[check](a, ctx);
}
