/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Why a system call failed that a start or a probe needs: an errno alone does not tell an old
 * kernel from an outer seccomp filter that hides or blocks the call, so the kernel's version and
 * whether there is such a filter are taken into account.
 */
#pragma once

#include <stdbool.h>

/* A version for comparison. */
#define KERNEL(major, minor) ((unsigned int)(major)*1000 + (minor))

struct call_place {
	unsigned int kernel; /* KERNEL of the running one, 0: unknown */
	bool outer_filter;   /* a seccomp filter lies around this process */
	char release[66];
	char machine[66];
};

void call_place_init(struct call_place *ret_place);

enum call_verdict {
	CALL_OTHER,   /* something else: the errno says it all */
	CALL_MISSING, /* this kernel does not have it */
	CALL_BLOCKED, /* something on this machine forbids it */
};

struct call_reason {
	enum call_verdict verdict;
	bool by_filter; /* an outer seccomp filter may be what forbids it */
	char why[160];	/* in words, empty: nothing to add */
};

/*
 * Judges that CALL, which came with kernel SINCE (0: any), failed with the positive errno CODE.
 */
struct call_reason call_judge(const struct call_place *place, const char *call, unsigned int since,
			      int code);
/* The same for landlock_create_ruleset, whose errno tells more. */
struct call_reason call_judge_landlock(const struct call_place *place, int code);
