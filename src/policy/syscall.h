/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The syscall table: every system call of x86_64, aarch64 and riscv64, classified once. The BPF
 * generator and the supervisor's dispatcher both read it, so that they cannot drift. A number that
 * no row names is answered ENOSYS; a test walks the kernel's lists and fails on such a number.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "policy/filter.h"

enum syscall_class {
	SYSCALL_ALLOW,
	SYSCALL_EPERM,	  /* dangerous, or no business of a sandbox */
	SYSCALL_ENOSYS,	  /* callers fall back to what can be judged */
	SYSCALL_ARGS,	  /* judged by register arguments: column check */
	SYSCALL_METADATA, /* allowed where mounts judge it, else EPERM (issue 3, point 5) */
	SYSCALL_TUNE,	  /* acts on a process by pid: allowed in a PID namespace, else by check */
	SYSCALL_SYSV,	  /* EPERM unless waived, which needs an IPC namespace */
	SYSCALL_POSIX_MQ, /* allowed in an IPC namespace, else EPERM */
	SYSCALL_CLASS_COUNT,
};

/* Named argument checks; their code is in filter_args.c. */
enum syscall_check {
	CHECK_NONE,
	CHECK_BIND_NETLINK, /* an address as long as a netlink one in argument 2 */
	CHECK_CHOWN_ARG1,   /* owner and group in arguments 1 and 2 */
	CHECK_CHOWN_ARG2,
	CHECK_CLONE,
	CHECK_FCNTL,
	CHECK_FLOCK,
	CHECK_IOCTL,
	CHECK_IOPRIO,
	CHECK_LISTEN,
	CHECK_PERSONALITY,
	CHECK_PID0,
	CHECK_PRCTL,
	CHECK_RECV,	    /* an address in argument 4 */
	CHECK_RECV_NETLINK, /* recvfrom as musl's getifaddrs makes it */
	CHECK_SECCOMP,
	CHECK_SENDTO,	 /* flags in argument 3 and an address in argument 4 */
	CHECK_SEND_ARG2, /* flags in argument 2, addresses in memory */
	CHECK_SEND_ARG3, /* flags in argument 3, addresses in memory */
	CHECK_SETPRIORITY,
	CHECK_SETSOCKOPT,
	CHECK_SOCKET,
	CHECK_SOCKETPAIR,
	CHECK_COUNT,
};

/* What a call is about; the supervisor has one handler file per family. */
enum syscall_family {
	FAMILY_NONE,
	FAMILY_ACCEPT,
	FAMILY_BIND,
	FAMILY_CONNECT,
	FAMILY_CREATE, /* makes a name: mkdir, mknod, symlink */
	FAMILY_CWD,
	FAMILY_EXEC,
	FAMILY_FORK,
	FAMILY_IDENTITY, /* host name, memory and CPU counts */
	FAMILY_IOCTL,
	FAMILY_LINK, /* two paths: link, rename */
	FAMILY_LISTDIR,
	FAMILY_LOCK,
	FAMILY_MEMORY,
	FAMILY_METADATA, /* mode, owner, times, attributes */
	FAMILY_MOUNT,
	FAMILY_NARROW, /* enters a Landlock domain of one's own making */
	FAMILY_OPEN,
	FAMILY_PATH_ADMIN, /* privileged calls that take a path */
	FAMILY_PROCESS,	   /* other calls that name a process */
	FAMILY_RANDOM,
	FAMILY_RECV,
	FAMILY_REMOVE,
	FAMILY_RLIMIT,
	FAMILY_SEND,
	FAMILY_SIGNAL,
	FAMILY_SOCKET,
	FAMILY_SOCKNAME,
	FAMILY_SOCKOPT,
	FAMILY_STAT, /* stat, access, readlink, statfs */
	FAMILY_TIME,
	FAMILY_TRUNCATE,
	FAMILY_TUNE,
	FAMILY_WAIT,
	FAMILY_WATCH,
	FAMILY_XATTR,
	FAMILY_COUNT,
};

/*
 * What an argument means. A DIRFD belongs to the PATH that follows it; a PATH without a DIRFD in
 * front is relative to the working directory. The target text of a symlink is no PATH: it is not
 * resolved. Arguments that decide nothing are ARG_NONE.
 */
enum syscall_arg {
	ARG_NONE,
	ARG_DIRFD,
	ARG_DOMAIN,
	ARG_FD,
	ARG_FLAGS,
	ARG_HOW, /* pointer to struct open_how */
	ARG_LEVEL,
	ARG_MMSGHDR, /* pointer to an array of struct mmsghdr */
	ARG_MODE,
	ARG_MSGHDR,
	ARG_NAME,   /* text or number that is no path: xattr, socket option, host name */
	ARG_OFLAGS, /* O_* flags */
	ARG_PATH,
	ARG_PID,
	ARG_PROTOCOL,
	ARG_REQUEST, /* ioctl or fcntl command */
	ARG_SIGNAL,
	ARG_SIZE, /* bytes, or number of array elements */
	ARG_SOCKADDR,
	ARG_SOCKADDR_OUT,
	ARG_SOCKLEN,
	ARG_SOCKLEN_OUT,
	ARG_TYPE,
	ARG_COUNT,
};

/* Groups that --extra-allow-syscall and --extra-deny-syscall take like a name. */
enum syscall_group {
	GROUP_CLOCK = 1 << 0,
	GROUP_FANOTIFY = 1 << 1,
	GROUP_IO_URING = 1 << 2,
	GROUP_KEXEC = 1 << 3,
	GROUP_KEYRING = 1 << 4,
	GROUP_METADATA = 1 << 5,
	GROUP_MODULE = 1 << 6,
	GROUP_MOUNT = 1 << 7,
	GROUP_NAMESPACE = 1 << 8,
	GROUP_POSIX_MQ = 1 << 9,
	GROUP_PTRACE = 1 << 10, /* also the name of one member: the word means the group */
	GROUP_SWAP = 1 << 11,
	GROUP_SYSV_IPC = 1 << 12,
	GROUP_TUNE = 1 << 13,
};

struct syscall_row {
	const char *name;
	int16_t nr[FILTER_ARCH_COUNT]; /* -1 where the architecture has no such call */
	uint8_t class;		       /* enum syscall_class */
	uint8_t check;		       /* enum syscall_check */
	uint8_t family;		       /* enum syscall_family */
	uint8_t args[6];	       /* enum syscall_arg */
	uint16_t groups;	       /* enum syscall_group bits */
	/* Why --extra-allow-syscall refuses this call; NULL where a waiver is possible. */
	const char *no_waiver;
};

enum { SYSCALL_ROWS_MAX = 512, SYSCALL_NR_MAX = 511 };

extern const struct syscall_row syscall_table[];
extern const size_t syscall_table_n;

/* One bit of a set per row of the table. */
struct syscall_set {
	uint64_t bits[SYSCALL_ROWS_MAX / 64];
};

bool syscall_set_has(const struct syscall_set *set, size_t row);

/* The row for a number, NULL if the table has none. */
const struct syscall_row *syscall_by_nr(enum filter_arch arch, uint32_t nr);
/* The row for a name or an alias of one (fstatat, umount, …), NULL if there is none. */
const struct syscall_row *syscall_by_name(const char *name);
/*
 * Adds the rows that WORD means, a group, a name or an alias, to SET. Returns false, and leaves SET
 * alone, if it means none.
 */
bool syscall_set_add(struct syscall_set *set, const char *word);
/* The known name or group that looks most like WORD, NULL if none is near. */
const char *syscall_nearest(const char *word);
/* Name of group number I (0, 1, …) and its bit; NULL past the last. */
const char *syscall_group_name(size_t i, uint16_t *ret_bit);
