/* SPDX-License-Identifier: Apache-2.0 */
/* The handlers, one per family of system calls; the dispatcher (dispatch.c) picks by the syscall
 * table's family. */
#pragma once

#include "supervise/call.h"

struct verdict handle_metadata(struct call *call); /* chmod, chown, utime families */
struct verdict handle_xattr(struct call *call);	   /* setxattr, removexattr families */
struct verdict handle_link(struct call *call);	   /* rename and link families */
struct verdict handle_lock(struct call *call);	   /* flock with LOCK_EX, fcntl with F_SETLEASE */
struct verdict handle_watch(struct call *call);	   /* inotify_add_watch */
struct verdict handle_connect(struct call *call);
struct verdict handle_send(struct call *call); /* sendto, sendmsg, sendmmsg */
struct verdict handle_listen(struct call *call);
struct verdict handle_bind(struct call *call);	 /* bind and listen */
struct verdict handle_narrow(struct call *call); /* landlock_restrict_self (narrow.c) */
struct verdict handle_socket(struct call *call); /* UDP; all where pidfd_getfd is barred */
struct verdict handle_open(struct call *call);	 /* without the base: /proc, /dev/pts, /dev/shm */
/* Without the base: what makes, moves and removes names in /dev/shm. */
struct verdict handle_names(struct call *call);
struct verdict handle_interface(struct call *call); /* ioctls that ask about interfaces */
struct verdict handle_recv(struct call *call);	    /* with an address, where names are in play */
struct verdict handle_sockopt(struct call *call);   /* setsockopt with SO_LINGER */
struct verdict handle_sockname(struct call *call);  /* getsockname, getpeername */
/*
 * Whether CALL is about a route netlink socket, or one that was trapped because it might have been:
 * RET is the answer then. Asked before the others.
 */
bool netlink_takes(struct call *call, struct verdict *ret);
struct verdict handle_tune(struct call *call); /* without the base: priorities, limits by pid */
