/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the running kernel's Landlock can do, found out with real rulesets rather than from the
 * version number alone: some vendor kernels report an ABI and refuse parts of it (landlock(7)).
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "sys/uapi.h"

struct landlock_caps {
	int abi;     /* 0: no Landlock; see ERROR for why */
	int error;   /* errno of the version query when ABI is 0 */
	uint64_t fs; /* rights that a ruleset may handle */
	uint64_t net;
	uint64_t scopes;
};

/* The rights of the first ABI: without them there is no confinement of files at all. */
#define LANDLOCK_FS_ABI1 ((LANDLOCK_ACCESS_FS_MAKE_SYM << 1) - 1)

/*
 * What cannot be had on this kernel is zero. A failure that says nothing about the kernel (no
 * descriptor left, no memory) is returned as a negative errno, and nothing is known then.
 */
int landlock_probe(struct landlock_caps *ret_caps);
