/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From the syscall table and a policy to a seccomp BPF program: a search tree over system call
 * numbers whose leaves allow, refuse with an errno, or check register arguments. Pure: nothing is
 * installed here. The same table will drive the supervisor's dispatcher.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/strv.h"

struct err;
struct sock_filter;

enum filter_arch { FILTER_X86_64, FILTER_AARCH64, FILTER_RISCV64, FILTER_ARCH_COUNT };

/* What is sent to the supervisor instead of being decided by registers alone. */
enum filter_notify {
	/* connect, listen, sendmsg, sendmmsg, sendto with an address, and SO_LINGER: every socket
	   of the Unix family is allowed then, and which name it may reach is the supervisor's to
	   judge. */
	FILTER_NOTIFY_SOCKETS = 1 << 0,
	FILTER_NOTIFY_SOCKET_CREATE = 1 << 1, /* socket: the supervisor makes it */
	FILTER_NOTIFY_METADATA = 1 << 2,      /* the whole class */
	/* chown to an id that is not OWN_UID or OWN_GID, and the calls that can set an ACL. */
	FILTER_NOTIFY_CHOWN = 1 << 3,
	FILTER_NOTIFY_LINK = 1 << 4,  /* rename and link */
	FILTER_NOTIFY_LOCK = 1 << 5,  /* exclusive flock, leases and delegations */
	FILTER_NOTIFY_WATCH = 1 << 6, /* inotify_add_watch */
	FILTER_NOTIFY_OPEN = 1 << 7,  /* what opens by path */
	FILTER_NOTIFY_STAT = 1 << 8,  /* readlink */
	FILTER_NOTIFY_NAMES = 1 << 9, /* what makes and removes names */
	FILTER_NOTIFY_TUNE = 1 << 10, /* tuning of another process than the caller */
	FILTER_NOTIFY_BIND = 1 << 11, /* bind, and socket for UDP */
	/* recvmsg, recvmmsg, and recvfrom with an address: whom a name server's reply seems to come
	   from is the supervisor's to say. */
	FILTER_NOTIFY_RECV = 1 << 21,
	/* Route netlink sockets, what else they are asked, and ioctls that ask about interfaces. */
	FILTER_NOTIFY_NETLINK = 1 << 20,
	FILTER_NOTIFY_PEERNAME = 1 << 22, /* getpeername */
};

struct filter_spec {
	enum filter_arch arch;
	unsigned int notify; /* enum filter_notify bits; 0: there is no supervisor */
	uint32_t own_uid;    /* for FILTER_NOTIFY_CHOWN: as the sandbox numbers them */
	uint32_t own_gid;
	/*
	 * The base's read-only mounts judge metadata calls (or --allow-metadata was given): leave
	 * chmod, chown, utime, xattr and file-attribute calls to the kernel. Else the whole class
	 * is refused with EPERM.
	 */
	bool allow_metadata;
	/*
	 * A private PID namespace bounds prlimit64, sched_set*, setpriority, ioprio_set and the
	 * like: leave their pid argument alone, but for 1, the guardian. Else only pid 0 (the
	 * caller) is let through.
	 */
	bool own_pid_namespace;
	/* socket(AF_UNIX): EACCES unless set; stream and seqpacket socketpairs always work. */
	bool allow_unix_sockets;
	/* A bind grant exists: listen() is let through, else EACCES. */
	bool allow_listen;
	/*
	 * UDP and ping sockets can be made; else EPERM, as raw ones always. What they send is
	 * judged with FILTER_NOTIFY_SOCKETS, which must be set too; with FILTER_NOTIFY_BIND the
	 * supervisor makes UDP sockets, since it guards their ports.
	 */
	bool allow_udp;
	bool allow_ping;
	/*
	 * There is a private IPC namespace: POSIX message queues work, and sysv_ipc may be let in
	 * by extra_allow. Else both are refused with EPERM.
	 */
	bool own_ipc_namespace;
	/*
	 * The sandbox has no supervisor, so that a supervised one may be started inside it: leave
	 * seccomp(2) with SECCOMP_FILTER_FLAG_NEW_LISTENER alone, else EBUSY. A listener inside can
	 * only narrow: the kernel takes the strictest answer of all filters.
	 */
	bool allow_listener;
	/*
	 * Every refusal, but ENOSYS, goes to the supervisor, and so do the calls that the kernel's
	 * own rules may refuse (is_explained in filter.c). The same spec without this says what to
	 * answer.
	 */
	bool explain;
	/* Names or groups as the user gave them, already checked by filter_check_names. */
	const struct strv *extra_deny;
	const struct strv *extra_allow;
};

struct filter_program {
	struct sock_filter *insns; /* owned */
	size_t n;
};

/* The architecture that this library was built for. */
enum filter_arch filter_native_arch(void);
/* The kernel's number for ARCH (AUDIT_ARCH_…). */
uint32_t filter_audit_arch(enum filter_arch arch);
/*
 * Refuses unknown names and groups, names in both lists, names whose use would break the boundary
 * (with the reason), and, with IPC_NAMESPACE false, sysv_ipc. Messages name the value.
 */
int filter_check_names(const struct strv *extra_allow, const struct strv *extra_deny,
		       bool ipc_namespace, struct err *err);
/*
 * Builds the program for SPEC. Everything in it is decided by the call number and the registers:
 * no memory of the program is looked at, and no call is answered by a signal. *RET_PROG is the
 * caller's (filter_program_done).
 */
int filter_build(const struct filter_spec *spec, struct filter_program *ret_prog, struct err *err);
void filter_program_done(struct filter_program *prog);
void filter_program_done_cleanup(struct filter_program *prog);
