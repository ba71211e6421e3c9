/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The object of a call that changes metadata, by path or by descriptor: found, judged and then
 * changed on one and the same descriptor. Shared by metadata.c and xattr.c.
 */
#pragma once

#include "supervise/judge.h"

struct object {
	struct resolved at;
	bool is_path; /* AT.fd is an O_PATH descriptor; else a copy of the task's own */
	int dirfd;
	char text[PATH_MAX]; /* what the task wrote; "" for the descriptor DIRFD itself */
};

#define OBJECT_INIT                                                                                \
	{                                                                                          \
		.at = RESOLVED_INIT                                                                \
	}

void object_done_cleanup(struct object *o);

/* Which one: read from the task, before act_begin. 0 or a negative errno. */
int object_read_path(struct call *call, int dirfd, uint64_t addr, struct object *ret);
int object_take_fd(struct call *call, int fd, struct object *ret);

/* What is to be done to it: 0 or a negative errno. */
typedef int (*object_change)(const struct object *o, const void *how);
/*
 * Finds the object (FLAGS: enum resolve_flags), judges it, and changes it with CHANGE(HOW), with
 * the task's rights. OP names the call in a refusal.
 */
struct verdict object_handle(struct call *call, struct object *o, unsigned int flags,
			     const char *op, object_change change, const void *how);
