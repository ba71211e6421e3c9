/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The judge of socket addresses: where a socket of the sandbox may connect or send to. The socket
 * is a copy of the task's descriptor, taken once; the address is our copy. What is handed back is
 * what the caller uses, so that neither a second thread's dup2 nor its changed sockaddr means
 * anything.
 */
#pragma once

#include <linux/capability.h>
#include <stdbool.h>

#include "policy/net_table.h"
#include "supervise/msg.h"

struct policy;

struct sock_info {
	int domain;
	int type;
	int protocol;
	bool nonblock; /* O_NONBLOCK of the description */
};

/* 0, or -ENOTSOCK, -EBADF. */
int sock_info_get(int fd, struct sock_info *ret);
bool sock_is_tcp(const struct sock_info *info);

/* What is used in place of the address that the task wrote. */
struct sock_target {
	struct sock_addr addr;
	int path_fd; /* owned: O_PATH of the socket's file, which ADDR names through /proc; -1 */
	int hold_fd; /* owned: copy of the own socket there, which keeps its name or port; -1 */
	bool direct; /* not to be counted or paced: it leads to the resolver here */
	bool probe;  /* UDP: only the source address may be found out (connect.c) */
};

#define SOCK_TARGET_INIT                                                                           \
	{                                                                                          \
		.path_fd = -1, .hold_fd = -1                                                       \
	}

void sock_target_done(struct sock_target *t);
void sock_target_done_cleanup(struct sock_target *t);

/*
 * Judges ASKED for a socket of INFO; OP is the call's name for events. True: RET is what to use.
 * False: RET_VERDICT is the answer (a refusal, an errno as the kernel's, or ANSWER_WORKER).
 */
bool sock_judge(struct call *call, const char *op, const struct sock_info *info,
		const struct sock_addr *asked, struct sock_target *ret,
		struct verdict *ret_verdict);

/*
 * A copy of the task's socket NUMBER, the first that the call takes, borrowed until it is answered;
 * the same one when the call is run again. Where pidfd_getfd is
 * barred it is one that was made here (sock_table). Negative errno.
 */
int sock_copy(struct call *call, int number);
/* FD is connected: held here, it would not end for its peer when the task closes its own. */
void sock_forget(const struct box *box, int fd);
/* The number in "socket:[N]", what a link to a socket shows. */
bool sock_link_inode(const char *link, uint64_t *ret_inode);
/* ANSWER_WORKER of a whole call: has it run again on a worker; waits for room there, so that a
 * crowd does not fail. */
struct verdict sock_to_worker(struct call *call);
/* The verdict for a socket that sock_copy could not give. */
struct verdict sock_no_copy(struct call *call, const char *op, int error);
/* Milliseconds of CLOCK_MONOTONIC at which SO_SNDTIMEO of FD ends, counted from NOW_MS; 0: never.
 */
int64_t sock_send_deadline(int fd, int64_t now_ms);
int64_t sock_now_ms(void);

/*
 * Between begin and end this thread acts with the sandbox's ids, as sockets show them to a peer
 * (SO_PEERCRED), and without capabilities; only where the host is root is there anything to do.
 * False: nothing has changed and nothing may be done.
 */
struct sock_ids {
	bool changed;
	struct __user_cap_data_struct caps[2];
	uint32_t uid;
	uint32_t gid;
	int n_groups;
	uint32_t *groups; /* owned */
};
bool sock_ids_begin(const struct box *box, struct sock_ids *ret_saved);
void sock_ids_end(struct sock_ids *saved);

/* --- Internet sockets (sock_inet.c, sock_loopback.c, sock_guard.c) -------------------------- */

/* NET_TCP, NET_UDP or NET_ICMP; 0: no Internet socket of a kind that is let in. */
unsigned int sock_proto(const struct sock_info *info);
/*
 * ASKED as the kernel would take it for a socket of INFO (SENDS: for a message), as a point and in
 * its one form. 0, -EINVAL, -EAFNOSUPPORT.
 */
int sock_inet_read(const struct sock_info *info, const struct sock_addr *asked, bool sends,
		   struct net_point *ret_point, struct sock_addr *ret_addr);
/* sock_judge for them. An address of length 0 comes out where a message's name means nothing. */
bool sock_judge_inet(struct call *call, const char *op, const struct sock_info *info,
		     const struct sock_addr *asked, struct sock_target *ret,
		     struct verdict *ret_verdict);
/*
 * Whether all that is bound to POINT (on a loopback address) is the sandbox's: 0, and *RET_HOLD is
 * a copy of such a socket (owned); -EPERM: not all; -ECONNREFUSED: nothing is. May take long.
 */
int sock_loopback_find(struct call *call, const struct net_point *point, int *ret_hold);
/*
 * The guard of UDP ports: a new socket that it is set on receives nothing but on ports that POLICY
 * lets it bind and on those that the kernel chooses, for good: the sandbox cannot undo it.
 */
struct sock_guard;
/* NULL where the policy's ports are in too many pieces: then no UDP socket can be made. */
struct sock_guard *sock_guard_new(const struct policy *policy);
void sock_guard_free(struct sock_guard *g);
/* Negative errno; -ENOBUFS without a guard. */
int sock_guard_set(const struct sock_guard *g, int fd);

/* --- The sandbox's own sockets (sock_own.c) ------------------------------------------------ */

struct sock_search {
	const uint64_t *inodes;
	size_t n;
	bool (*is_it)(void *data, int fd); /* whether a copy is what is looked for */
	void *data;
};
/* A copy (owned) of one of these sockets that a process of the sandbox holds, or -EPERM. */
int sock_own_find(struct call *call, const struct sock_search *what);

/* --- Abstract names (sock_abstract.c) ------------------------------------------------------ */

/*
 * Whether the abstract name ADDR of sockets of TYPE is bound by the sandbox: 0, and *RET_HOLD is a
 * copy of that socket (owned); -EPERM: bound by another; -ECONNREFUSED: by nobody.
 */
int sock_abstract_find(struct call *call, const struct sock_addr *addr, int type, int *ret_hold);

/* --- Sockets of a sandbox (sock_table.c) --------------------------------------------------- */

struct sock_table;

/* Finds the canonical paths of the policy's --unix-allow. To be called before the command runs. */
struct sock_table *sock_table_new(const struct policy *policy);
void sock_table_free(struct sock_table *t);
/* Whether --unix-allow covers PATH (canonical). */
bool sock_table_allows(const struct sock_table *t, const char *path);
/* Keeps a copy of FD, a new socket of the sandbox; the oldest one goes where there are too many. */
int sock_table_keep(struct sock_table *t, int fd);
/* A copy (owned) of the kept socket INODE; -ENOENT. */
int sock_table_find(struct sock_table *t, uint64_t inode);
/* Forgets it: held here it would never end for its peer. */
void sock_table_drop(struct sock_table *t, uint64_t inode);
