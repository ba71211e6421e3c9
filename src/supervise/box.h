/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One sandbox as its handlers see it: what its policy says, fixed for its life.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/strv.h"
#include "policy/filter.h"
#include "supervise/grants.h"

struct ask;
struct policy;
struct task;
struct names;
struct netlink;
struct ports;
struct places;
struct net_relay;
struct resolver;
struct sock_guard;
struct sock_table;

struct box {
	const struct policy *policy; /* owned reference */
	int listener;		     /* owned: the seccomp listener */
	struct task *tasks;	     /* the loop's table of tasks; NULL: none are kept */
	_Atomic int root_plus_one;   /* owned: the tasks' root (walk.h) and one; 0: not yet known */
	struct grants grants;
	struct sock_table *socks;  /* owned (sock.h) */
	struct sock_guard *guard;  /* owned (sock.h): of UDP ports; NULL: none is needed */
	struct ports *ports;	   /* a reference: --port-remap; NULL: no ports of its own */
	struct net_relay *relay;   /* owned (net/relay.h); NULL: no data is limited */
	struct netlink *netlink;   /* owned; made with the first socket; NULL: none yet */
	unsigned int notify;	   /* enum filter_notify bits: what is mediated */
	struct resolver *resolver; /* owned (net/resolver.h); NULL: no rule has a name */
	struct names *names;	   /* the resolver's */
	bool base;		   /* in its own namespaces, read-only mounts behind it */
	bool as_root;		   /* started by root: acts with the task's rights only (act.h) */
	bool have_getfd;	   /* pidfd_getfd works here */
	bool have_vm_read;	   /* process_vm_readv works here, else /proc/PID/mem */
	/* Processes that have entered a domain of their own (narrow.h); written by the loop alone.
	 */
	struct {
		pid_t pid;
		unsigned long long start;
		int ruleset; /* owned: a copy of the descriptor that it was entered by */
	} narrowed[16];
	unsigned int n_narrowed; /* atomic; more than fit: all are taken for such */
	pid_t main_pid;		 /* the command, as this process sees it */
	pid_t guardian_pid;	 /* as this process sees it */
	/* Ids: what the sandbox calls UID/GID is HOST_UID/HOST_GID outside. */
	uint32_t uid, gid;
	uint32_t host_uid, host_gid;
	bool id_map; /* only that one id exists inside: others are EINVAL there */
	/* Regular files inherited as descriptors 0 to 2 that lie outside the write grants. */
	struct {
		uint64_t dev, ino;
	} inherited[3];
	size_t n_inherited;
	bool trap_link, trap_chown;
	struct strv layers; /* owned: the workdirs of a workspace; canonical */
	bool closing;	    /* atomic: nothing long is to be begun or gone on with */
	bool torn;	    /* atomic: the end met a rename half-way */
	bool explain;	    /* tell of the kernel's own refusals as well (explain.h) */
	/* Then: what the filter would be without it, and with --allow-metadata as well. */
	struct filter_program plain_filter;
	struct filter_program open_filter;
	char *tmpdir;	       /* private TMPDIR without the base, NULL: none */
	struct places *places; /* owned; /proc and its like without the base, NULL: none */
	struct ask *ask;       /* a reference: --net-ask; NULL: nobody is asked */
	/* Its own control socket, which would answer for the user; 0: there is none yet. Atomic. */
	uint64_t control_dev, control_ino;
};

/* Releases what BOX holds but its listener and itself. */
void box_release(struct box *box);
