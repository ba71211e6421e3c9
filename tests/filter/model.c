/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The plain model of the filter (see model.h). It is written from the documentation (decisions.md
 * 10 and 11, issue 3) with the C library's constants, and shares with the product the table's rows
 * only, so that a slip in the argument checks is seen.
 */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <linux/fiemap.h>
#include <linux/fs.h>
#include <linux/fscrypt.h>
#include <linux/fsverity.h>
#include <linux/msdos_fs.h>
#include <linux/seccomp.h>
#include <linux/sockios.h>

#include "base/util.h"
#include "model.h"
#include "policy/filter_internal.h"

enum { ALLOW = 0, WHO_PROCESS = 1 };

static int judge_socket(const struct filter_spec *spec, uint32_t family, uint32_t type,
			uint32_t protocol)
{
	type &= 0xf;
	if (family == AF_UNIX)
		return spec->allow_unix_sockets ? ALLOW : EACCES;
	if (family != AF_INET && family != AF_INET6)
		return EAFNOSUPPORT;
	if (type == SOCK_DGRAM || type == SOCK_RAW || type == SOCK_PACKET)
		return EPERM;
	if (type == SOCK_STREAM && (protocol == 0 || protocol == IPPROTO_TCP))
		return ALLOW;
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
	return EACCES;
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

static int judge_ioctl(const struct filter_spec *spec, uint32_t request)
{
	if (request == TIOCSTI || request == TIOCLINUX || request == TIOCSETD ||
	    request == TIOCEXCL)
		return EPERM;
	if ((request >= 0x4b30 && request <= 0x4bff) || (request >= 0x5600 && request <= 0x56ff))
		return EPERM;
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

static int judge_setsockopt(uint32_t level, uint32_t name)
{
	if (level != IPPROTO_TCP)
		return ALLOW;
	return name == TCP_FASTOPEN_CONNECT || name == TCP_ULP ? EOPNOTSUPP : ALLOW;
}

static int judge_seccomp(const struct filter_spec *spec, uint32_t op, uint32_t flags)
{
	bool listener = op == SECCOMP_SET_MODE_FILTER && (flags & SECCOMP_FILTER_FLAG_NEW_LISTENER);

	return listener && !spec->allow_listener ? EBUSY : ALLOW;
}

/* The kernel takes every argument that is judged here from the low 32 bits. */
static int judge_args(const struct filter_spec *spec, const struct filter_sets *sets,
		      enum syscall_check check, const uint32_t arg[6])
{
	switch (check) {
	case CHECK_CLONE:
		return judge_clone(arg[0]);
	case CHECK_IOCTL:
		return judge_ioctl(spec, arg[1]);
	case CHECK_IOPRIO:
		return arg[0] == WHO_PROCESS && arg[1] == 0 ? ALLOW : EPERM;
	case CHECK_LISTEN:
		return spec->allow_listen ? ALLOW : EACCES;
	case CHECK_PERSONALITY:
		return arg[0] == 0 || arg[0] == 0xffffffff ? ALLOW : EPERM;
	case CHECK_PID0:
		if (spec->own_pid_namespace)
			return arg[0] == 1 ? EPERM : ALLOW;
		return arg[0] == 0 ? ALLOW : EPERM;
	case CHECK_PRCTL:
		return judge_prctl(sets, arg[0]);
	case CHECK_SECCOMP:
		return judge_seccomp(spec, arg[0], arg[1]);
	case CHECK_SEND_ARG2:
		return arg[2] & MSG_FASTOPEN ? EOPNOTSUPP : ALLOW;
	case CHECK_SEND_ARG3:
		return arg[3] & MSG_FASTOPEN ? EOPNOTSUPP : ALLOW;
	case CHECK_SETPRIORITY:
		return arg[0] == PRIO_PROCESS && arg[1] == 0 ? ALLOW : EPERM;
	case CHECK_SETSOCKOPT:
		return judge_setsockopt(arg[1], arg[2]);
	case CHECK_SOCKET:
		return judge_socket(spec, arg[0], arg[1], arg[2]);
	case CHECK_SOCKETPAIR:
		return judge_socketpair(spec, arg[0], arg[1]);
	case CHECK_NONE:
	case CHECK_COUNT:
		break;
	}
	return EPERM;
}

static int judge(const struct filter_spec *spec, const struct filter_sets *sets,
		 const struct syscall_row *row, const uint32_t arg[6])
{
	size_t i = (size_t)(row - syscall_table);
	enum syscall_class class = row->class;

	if (class == SYSCALL_ENOSYS)
		return ENOSYS;
	if (syscall_set_has(&sets->deny, i))
		return EPERM;
	if (syscall_set_has(&sets->allow, i) || class == SYSCALL_ALLOW ||
	    (class == SYSCALL_METADATA && spec->allow_metadata) ||
	    (class == SYSCALL_TUNE && spec->own_pid_namespace && row->check != CHECK_PID0) ||
	    (class == SYSCALL_POSIX_MQ && spec->own_ipc_namespace))
		return ALLOW;
	if (class == SYSCALL_ARGS || class == SYSCALL_TUNE)
		return judge_args(spec, sets, row->check, arg);
	return EPERM;
}

uint32_t model_answer(const struct filter_spec *spec, const struct filter_sets *sets,
		      const struct seccomp_data *data)
{
	uint32_t arg[6];
	int answer = ENOSYS;

	for (size_t i = 0; i < ARRAY_SIZE(arg); i++)
		arg[i] = (uint32_t)data->args[i];
	if (data->arch == filter_audit_arch(spec->arch) && data->nr >= 0) {
		const struct syscall_row *row = syscall_by_nr(spec->arch, (uint32_t)data->nr);
		if (row)
			answer = judge(spec, sets, row, arg);
	}
	return answer == ALLOW ? SECCOMP_RET_ALLOW : SECCOMP_RET_ERRNO | (uint32_t)answer;
}
