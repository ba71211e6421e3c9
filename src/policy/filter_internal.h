/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Between the parts of the filter builder: the tree (filter.c), the argument checks (filter_args.c)
 * and the waivers (filter_names.c); tests compare the program with filter_leaf.
 */
#pragma once

#include "policy/bpf.h"
#include "policy/syscall.h"

/*
 * What becomes of a call: LEAF_ALLOW, LEAF_NOTIFY, the errno that refuses it, or LEAF_CHECK + enum
 * syscall_check where registers decide.
 */
enum { LEAF_ALLOW = 0, LEAF_NOTIFY = 0x0fff, LEAF_CHECK = 0x1000 };

/* The rows that the lists of a spec name; checked as filter_check_names does. */
struct filter_sets {
	struct syscall_set allow;
	struct syscall_set deny;
};

int filter_make_sets(const struct strv *extra_allow, const struct strv *extra_deny,
		     bool ipc_namespace, struct filter_sets *ret_sets, struct err *err);

/* What becomes of the call in row number I. */
unsigned int filter_leaf(const struct filter_spec *spec, const struct filter_sets *sets, size_t i);

/* What the argument checks need to know. */
struct filter_args_ctx {
	const struct filter_spec *spec;
	bool ptrace_allowed; /* waived: PR_SET_PTRACER goes with it */
};

/* Makes the code of one check; every path through it returns. */
bpf_pos filter_args_emit(struct bpf_asm *a, enum syscall_check check,
			 const struct filter_args_ctx *ctx);
