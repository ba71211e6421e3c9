/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The plain model of the filter (see model.h). It is written from the documentation (decisions.md
 * 10 and 11, issue 3) with the C library's constants, and shares with the product the table's rows
 * only, so that a slip in the argument checks is seen.
 */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <linux/fiemap.h>
#include <linux/fs.h>
#include <linux/fscrypt.h>
#include <linux/fsverity.h>
#include <linux/msdos_fs.h>
#include <linux/netlink.h>
#include <linux/seccomp.h>
#include <linux/sockios.h>

#include "base/util.h"
#include "model.h"
#include "policy/filter_internal.h"
#include "sys/uapi.h"

enum { ALLOW = 0, NOTIFY = -1, WHO_PROCESS = 1, SETDELEG = 1024 + 16 };

static bool notifies(const struct filter_spec *spec, enum filter_notify bit)
{
	return (spec->notify & bit) != 0;
}

/* Of the Unix family: allowed by the user, or judged by the supervisor once they are used. */
static bool unix_open(const struct filter_spec *spec)
{
	return spec->allow_unix_sockets || notifies(spec, FILTER_NOTIFY_SOCKETS);
}

static int judge_socket(const struct filter_spec *spec, uint32_t family, uint32_t type,
			uint32_t protocol)
{
	int make = notifies(spec, FILTER_NOTIFY_SOCKET_CREATE) ? NOTIFY : ALLOW;

	type &= 0xf;
	if (family == AF_UNIX)
		return unix_open(spec) ? make : EACCES;
	if (family == AF_NETLINK && notifies(spec, FILTER_NOTIFY_NETLINK) &&
	    (type == SOCK_RAW || type == SOCK_DGRAM) && protocol == NETLINK_ROUTE)
		return NOTIFY;
	if (family != AF_INET && family != AF_INET6)
		return EAFNOSUPPORT;
	if (type == SOCK_DGRAM && spec->allow_udp && (protocol == 0 || protocol == IPPROTO_UDP))
		return notifies(spec, FILTER_NOTIFY_BIND) ? NOTIFY : ALLOW;
	if (type == SOCK_DGRAM && spec->allow_ping &&
	    (protocol == IPPROTO_ICMP || protocol == IPPROTO_ICMPV6))
		return ALLOW;
	if (type == SOCK_DGRAM || type == SOCK_RAW || type == SOCK_PACKET)
		return EPERM;
	if (type == SOCK_STREAM && (protocol == 0 || protocol == IPPROTO_TCP))
		return make;
	return EPROTONOSUPPORT;
}

static int judge_socketpair(const struct filter_spec *spec, uint32_t family, uint32_t type)
{
	type &= 0xf;
	if (family == AF_INET || family == AF_INET6)
		return EOPNOTSUPP;
	if (family != AF_UNIX)
		return EAFNOSUPPORT;
	if (type == SOCK_STREAM || type == SOCK_SEQPACKET || spec->allow_unix_sockets)
		return ALLOW;
	/* A datagram pair can send to any name, which only a copy of it can be judged by. */
	return unix_open(spec) && !notifies(spec, FILTER_NOTIFY_SOCKET_CREATE) ? ALLOW : EACCES;
}

static int judge_ext_ioctl(uint32_t request)
{
	switch (request) {
	case FS_IOC_GETFLAGS:
	case FS_IOC_FIEMAP:
	case FS_IOC_GET_ENCRYPTION_POLICY:
	case FS_IOC_GET_ENCRYPTION_POLICY_EX:
	case FS_IOC_GET_ENCRYPTION_KEY_STATUS:
	case FS_IOC_GET_ENCRYPTION_NONCE:
	case FS_IOC_MEASURE_VERITY:
	case FS_IOC_READ_VERITY_METADATA:
		return ALLOW;
	default:
		return EPERM;
	}
}

static int judge_btrfs_ioctl(uint32_t request)
{
	if (request == FICLONE || request == FICLONERANGE || request == FIDEDUPERANGE ||
	    request == FS_IOC_GETFSLABEL)
		return ALLOW;
	return EPERM;
}

static bool asks_about_interface(uint32_t request)
{
	switch (request) {
	case SIOCGIFNAME:
	case SIOCGIFCONF:
	case SIOCGIFFLAGS:
	case SIOCGIFADDR:
	case SIOCGIFDSTADDR:
	case SIOCGIFBRDADDR:
	case SIOCGIFNETMASK:
	case SIOCGIFMETRIC:
	case SIOCGIFMTU:
	case SIOCGIFHWADDR:
	case SIOCGIFINDEX:
	case SIOCGIFTXQLEN:
	case SIOCGIFMAP:
		return true;
	default:
		return false;
	}
}

static int judge_ioctl(const struct filter_spec *spec, uint32_t request)
{
	if (request == TIOCSTI || request == TIOCLINUX || request == TIOCSETD ||
	    request == TIOCEXCL)
		return EPERM;
	if ((request >= 0x4b30 && request <= 0x4bff) || (request >= 0x5600 && request <= 0x56ff))
		return EPERM;
	if (notifies(spec, FILTER_NOTIFY_NETLINK) && asks_about_interface(request))
		return NOTIFY;
	if (request > 0x8907 && request < 0x8c00)
		return request == SIOCOUTQNSD ? ALLOW : EPERM;
	if (spec->allow_metadata)
		return ALLOW;
	if (request == FS_IOC_FSSETXATTR || request == FS_IOC_SETVERSION ||
	    request == FAT_IOCTL_SET_ATTRIBUTES || request == 0x40186f04 /* OCFS2_IOC_REFLINK */)
		return EPERM;
	if (_IOC_TYPE(request) == 'f')
		return judge_ext_ioctl(request);
	if (_IOC_TYPE(request) == 0x94)
		return judge_btrfs_ioctl(request);
	return ALLOW;
}

static int judge_prctl(const struct filter_sets *sets, uint32_t option)
{
	const struct syscall_row *ptrace = syscall_by_name("ptrace");

	if (option == PR_SET_MM || option == PR_SET_SECUREBITS)
		return EPERM;
	if (option == PR_SET_PTRACER)
		return syscall_set_has(&sets->allow, (size_t)(ptrace - syscall_table)) ? ALLOW
										       : EPERM;
	if (option <= 79 || option == PR_SET_VMA || option == 0x41555856)
		return ALLOW;
	return EINVAL;
}

static int judge_clone(uint32_t flags)
{
	uint32_t bad = CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER |
		       CLONE_NEWPID | CLONE_NEWNET | 0x80 | CLONE_PARENT;

	return flags & bad ? EPERM : ALLOW;
}

static int judge_setsockopt(const struct filter_spec *spec, uint32_t level, uint32_t name)
{
	if (level == SOL_NETLINK && notifies(spec, FILTER_NOTIFY_NETLINK))
		return NOTIFY;
	if (level == SOL_SOCKET && name == SO_LINGER && notifies(spec, FILTER_NOTIFY_SOCKETS))
		return NOTIFY;
	if (level == IPPROTO_IP)
		return name == IP_OPTIONS ? EPERM : ALLOW;
	if (level == IPPROTO_IPV6)
		return name == IPV6_RTHDR || name == IPV6_2292PKTOPTIONS ||
				       name == UAPI_IPV6_FLOWLABEL_MGR
			       ? EPERM
			       : ALLOW;
	if (level != IPPROTO_TCP)
		return ALLOW;
	return name == TCP_FASTOPEN_CONNECT || name == TCP_ULP ? EOPNOTSUPP : ALLOW;
}

static int judge_seccomp(const struct filter_spec *spec, uint32_t op, uint32_t flags)
{
	bool listener = op == SECCOMP_SET_MODE_FILTER && (flags & SECCOMP_FILTER_FLAG_NEW_LISTENER);

	return listener && !spec->allow_listener ? EBUSY : ALLOW;
}

/* A message with an address may go anywhere; one without goes where the socket is connected. */
static int judge_send(const struct filter_spec *spec, uint32_t flags, bool may_have_address)
{
	if (flags & MSG_FASTOPEN)
		return EOPNOTSUPP;
	return may_have_address && notifies(spec, FILTER_NOTIFY_SOCKETS) ? NOTIFY : ALLOW;
}

/* What tunes the calling process alone is free. */
static int judge_tune(const struct filter_spec *spec, bool self)
{
	if (self)
		return ALLOW;
	return notifies(spec, FILTER_NOTIFY_TUNE) ? NOTIFY : EPERM;
}

/* The kernel takes every argument that is judged here from the low 32 bits; only a pointer is
 * whole. */
static int judge_args(const struct filter_spec *spec, const struct filter_sets *sets,
		      enum syscall_check check, const uint32_t arg[6], uint64_t address)
{
	switch (check) {
	case CHECK_CLONE:
		return judge_clone(arg[0]);
	case CHECK_IOCTL:
		return judge_ioctl(spec, arg[1]);
	case CHECK_IOPRIO:
		return judge_tune(spec, arg[0] == WHO_PROCESS && arg[1] == 0);
	case CHECK_LISTEN:
		return spec->allow_listen ? ALLOW : EACCES;
	case CHECK_PERSONALITY:
		return arg[0] == 0 || arg[0] == 0xffffffff ? ALLOW : EPERM;
	case CHECK_PID0:
		if (spec->own_pid_namespace)
			return arg[0] == 1 ? EPERM : ALLOW;
		return judge_tune(spec, arg[0] == 0);
	case CHECK_PRCTL:
		return judge_prctl(sets, arg[0]);
	case CHECK_SECCOMP:
		return judge_seccomp(spec, arg[0], arg[1]);
	case CHECK_SEND_ARG2:
		return judge_send(spec, arg[2], true);
	case CHECK_SEND_ARG3:
		return judge_send(spec, arg[3], true);
	case CHECK_SENDTO:
		return judge_send(spec, arg[3], address != 0);
	case CHECK_SETPRIORITY:
		return judge_tune(spec, arg[0] == PRIO_PROCESS && arg[1] == 0);
	case CHECK_SETSOCKOPT:
		return judge_setsockopt(spec, arg[1], arg[2]);
	case CHECK_SOCKET:
		return judge_socket(spec, arg[0], arg[1], arg[2]);
	case CHECK_SOCKETPAIR:
		return judge_socketpair(spec, arg[0], arg[1]);
	case CHECK_NONE:
	case CHECK_BIND_NETLINK:
	case CHECK_RECV:
	case CHECK_RECV_NETLINK:
	case CHECK_CHOWN_ARG1:
	case CHECK_CHOWN_ARG2:
	case CHECK_FCNTL:
	case CHECK_FLOCK:
	case CHECK_COUNT:
		break;
	}
	return EPERM;
}

struct sent_name {
	const char *name;
	unsigned int bits; /* any of them sends it */
};

/* Calls that go to the supervisor whatever they are called with, by name. */
static const struct sent_name sent_names[] = {
	{"bind", FILTER_NOTIFY_BIND},
	{"connect", FILTER_NOTIFY_SOCKETS},
	{"creat", FILTER_NOTIFY_OPEN},
	{"inotify_add_watch", FILTER_NOTIFY_WATCH},
	{"getpeername", FILTER_NOTIFY_PEERNAME},
	{"getsockname", FILTER_NOTIFY_NETLINK},
	{"link", FILTER_NOTIFY_LINK | FILTER_NOTIFY_NAMES},
	{"linkat", FILTER_NOTIFY_LINK | FILTER_NOTIFY_NAMES},
	{"landlock_restrict_self", FILTER_NOTIFY_SOCKETS},
	{"listen", FILTER_NOTIFY_SOCKETS},
	{"mkdir", FILTER_NOTIFY_NAMES},
	{"mkdirat", FILTER_NOTIFY_NAMES},
	{"mknod", FILTER_NOTIFY_NAMES},
	{"mknodat", FILTER_NOTIFY_NAMES},
	{"open", FILTER_NOTIFY_OPEN},
	{"openat", FILTER_NOTIFY_OPEN},
	{"openat2", FILTER_NOTIFY_OPEN},
	{"readlink", FILTER_NOTIFY_STAT},
	{"readlinkat", FILTER_NOTIFY_STAT},
	{"recvmmsg", FILTER_NOTIFY_RECV},
	{"recvmsg", FILTER_NOTIFY_RECV},
	{"rename", FILTER_NOTIFY_LINK | FILTER_NOTIFY_NAMES},
	{"renameat", FILTER_NOTIFY_LINK | FILTER_NOTIFY_NAMES},
	{"renameat2", FILTER_NOTIFY_LINK | FILTER_NOTIFY_NAMES},
	{"rmdir", FILTER_NOTIFY_NAMES},
	{"symlink", FILTER_NOTIFY_NAMES},
	{"symlinkat", FILTER_NOTIFY_NAMES},
	{"unlink", FILTER_NOTIFY_NAMES},
	{"unlinkat", FILTER_NOTIFY_NAMES},
};

static bool is_sent(const struct filter_spec *spec, const struct syscall_row *row)
{
	/* Access control lists are set by setting and removing attributes. */
	if (row->class == SYSCALL_METADATA &&
	    (notifies(spec, FILTER_NOTIFY_METADATA) ||
	     (notifies(spec, FILTER_NOTIFY_CHOWN) && row->family == FAMILY_XATTR)))
		return true;
	for (size_t i = 0; i < ARRAY_SIZE(sent_names); i++) {
		if (str_eq(row->name, sent_names[i].name))
			return (spec->notify & sent_names[i].bits) != 0;
	}
	return false;
}

static bool is_own(uint32_t id, uint32_t own)
{
	return id == own || id == 0xffffffff; /* that one changes nothing */
}

/* Calls that go to the supervisor by what they are called with, whatever their class. */
static bool is_sent_by_args(const struct filter_spec *spec, const struct syscall_row *row,
			    const uint32_t arg[6], uint64_t whole4)
{
	bool by_chown = notifies(spec, FILTER_NOTIFY_CHOWN);
	bool by_lock = notifies(spec, FILTER_NOTIFY_LOCK);

	if (notifies(spec, FILTER_NOTIFY_NETLINK) && str_eq(row->name, "bind"))
		return arg[2] == sizeof(struct sockaddr_nl);
	if (notifies(spec, FILTER_NOTIFY_RECV) && str_eq(row->name, "recvfrom") && whole4)
		return true;
	if (notifies(spec, FILTER_NOTIFY_NETLINK) && str_eq(row->name, "recvfrom"))
		return arg[2] == 8192 && arg[3] == MSG_DONTWAIT;
	if (str_eq(row->name, "flock"))
		return by_lock && (arg[1] & LOCK_EX);
	if (str_eq(row->name, "fcntl"))
		return by_lock && (arg[1] == F_SETLEASE || arg[1] == SETDELEG);
	if (str_eq(row->name, "fchownat"))
		return by_chown &&
		       !(is_own(arg[2], spec->own_uid) && is_own(arg[3], spec->own_gid));
	if (str_eq(row->name, "chown") || str_eq(row->name, "fchown") ||
	    str_eq(row->name, "lchown"))
		return by_chown &&
		       !(is_own(arg[1], spec->own_uid) && is_own(arg[2], spec->own_gid));
	return false;
}

static int judge(const struct filter_spec *spec, const struct filter_sets *sets,
		 const struct syscall_row *row, const struct seccomp_data *data)
{
	size_t i = (size_t)(row - syscall_table);
	enum syscall_class class = row->class;
	uint32_t arg[6];

	for (size_t j = 0; j < ARRAY_SIZE(arg); j++)
		arg[j] = (uint32_t)data->args[j];
	if (class == SYSCALL_ENOSYS)
		return ENOSYS;
	if (syscall_set_has(&sets->deny, i))
		return EPERM;
	if (is_sent(spec, row) || is_sent_by_args(spec, row, arg, data->args[4]))
		return NOTIFY;
	if (syscall_set_has(&sets->allow, i) || class == SYSCALL_ALLOW ||
	    (class == SYSCALL_METADATA && spec->allow_metadata) ||
	    (class == SYSCALL_TUNE && spec->own_pid_namespace && row->check != CHECK_PID0) ||
	    (class == SYSCALL_POSIX_MQ && spec->own_ipc_namespace))
		return ALLOW;
	/* A sandbox that may have a supervisor of its own inside lets it look at its tasks. */
	if (spec->allow_listener &&
	    (str_starts(row->name, "process_vm_") || str_eq(row->name, "pidfd_getfd")))
		return ALLOW;
	if (class == SYSCALL_ARGS || class == SYSCALL_TUNE)
		return judge_args(spec, sets, row->check, arg, data->args[4]);
	return EPERM;
}

static bool is_any(const char *name, const char *const *names, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (str_eq(name, names[i]))
			return true;
	}
	return false;
}

/* What the kernel's rules on files, ports and signals may refuse. */
static bool may_be_refused(const struct filter_spec *spec, const struct syscall_row *row)
{
	static const char *const names[] = {
		"bind",	  "connect", "creat",	  "execve",   "execveat", "link",
		"linkat", "listen",  "mkdir",	  "mkdirat",  "mknod",	  "mknodat",
		"open",	  "openat",  "openat2",	  "rename",   "renameat", "renameat2",
		"rmdir",  "symlink", "symlinkat", "truncate", "unlink",	  "unlinkat"};
	static const char *const signals[] = {
		"kill", "pidfd_send_signal", "rt_sigqueueinfo", "rt_tgsigqueueinfo", "tgkill",
		"tkill"};

	if (is_any(row->name, names, ARRAY_SIZE(names)))
		return true;
	if (spec->own_pid_namespace)
		return row->class == SYSCALL_METADATA;
	return is_any(row->name, signals, ARRAY_SIZE(signals));
}

/* The same call where it is to be explained. */
static int explain(const struct filter_spec *spec, const struct filter_sets *sets,
		   const struct syscall_row *row, int answer)
{
	static const char *const at_start[] = {"close_range", "write"};

	if (answer == ENOSYS || answer == NOTIFY)
		return answer;
	if (answer != ALLOW)
		return syscall_set_has(&sets->deny, (size_t)(row - syscall_table)) &&
				       is_any(row->name, at_start, ARRAY_SIZE(at_start))
			       ? answer
			       : NOTIFY;
	return may_be_refused(spec, row) ? NOTIFY : ALLOW;
}

uint32_t model_answer(const struct filter_spec *spec, const struct filter_sets *sets,
		      const struct seccomp_data *data)
{
	int answer = ENOSYS;

	if (data->arch == filter_audit_arch(spec->arch) && data->nr >= 0) {
		const struct syscall_row *row = syscall_by_nr(spec->arch, (uint32_t)data->nr);
		if (row)
			answer = judge(spec, sets, row, data);
		if (row && spec->explain)
			answer = explain(spec, sets, row, answer);
	}
	if (answer == NOTIFY)
		return SECCOMP_RET_USER_NOTIF;
	return answer == ALLOW ? SECCOMP_RET_ALLOW : SECCOMP_RET_ERRNO | (uint32_t)answer;
}
