/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Between the handlers that stand in for /proc, /dev/pts and /dev/shm where there is no base:
 * open.c, which finds out what an open is about, and those that do it.
 */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "supervise/call.h"
#include "supervise/resolve.h"

/* An open call, read once from the task. */
struct open_request {
	int dirfd;
	uint64_t flags;
	uint64_t resolve;
	mode_t mode;
	bool mapped;	     /* TEXT is not what the task wrote: it was relative to a stand-in */
	char text[PATH_MAX]; /* "" if it cannot be read */
};

/* Opens the object that R->fd is with the flags of REQ, for the task. */
struct verdict special_reopen(const struct open_request *req, const struct resolved *r);

/*
 * Whether this opens the host's /etc/hosts, where names are in play (hosts.c): RET is the answer
 * then.
 */
bool hosts_takes(struct call *call, const struct open_request *req, struct verdict *ret);

/*
 * What of TEXT lies in the task's /dev/shm (FROM_SHM: a relative one begins there): the rest behind
 * that, "" for the directory itself, borrowed; NULL: nothing. Links are not followed.
 */
const char *shm_rest(const char *text, bool from_shm);
/* Whether the policy itself grants PATH below /dev/shm, so that the real one is meant. */
bool shm_is_granted(const struct call *call, const char *rest);
struct verdict shm_open_rest(struct call *call, const struct open_request *req, const char *rest);
