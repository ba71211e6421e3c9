/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the running kernel's Landlock can do, found out with real rulesets rather than from the
 * version number alone: some vendor kernels report an ABI and refuse parts of it (landlock(7)).
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct landlock_caps {
	int abi;     /* 0: no Landlock; see ERROR for why */
	int error;   /* errno of the version query when ABI is 0 */
	uint64_t fs; /* rights that a ruleset may handle */
	uint64_t net;
	uint64_t scopes;
};

/* Never fails: what cannot be had is zero. */
void landlock_probe(struct landlock_caps *ret_caps);
