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
	int hold_fd; /* owned: copy of the own abstract socket, which keeps its name bound; -1 */
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
