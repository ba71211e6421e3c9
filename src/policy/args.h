/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The command line of `sandlock run`, by the option table: words to (option, value) pairs. Nothing
 * is applied here, so that profiles can be loaded first wherever they stand.
 *
 *   --flag VALUE, --flag=VALUE, -f VALUE, -fVALUE, -abc (switches), --switch, --no-switch,
 *   --switch=true|false; "--" or the first word without a dash ends the flags.
 *
 * A separate VALUE does not begin with a dash ("-" alone is one): `-r -w DIR` is a mistake, and is
 * called one. `--flag=-x` says it.
 */
#pragma once

#include <stddef.h>

#include "policy/options.h"

struct err;

struct arg_item {
	const struct option *option;
	const char *value; /* borrowed from argv or static; "true" and "false" for switches */
};

struct args {
	struct arg_item *v; /* owned */
	size_t n;
	int used; /* words taken, a "--" included */
};

/*
 * On failure RET_ARGS holds what stood in front of the fault, USED the words up to it, for callers
 * who must know where to report; args_done either way.
 */
int args_parse(int argc, char *const *argv, struct args *ret_args, struct err *err);
void args_done(struct args *args);
void args_done_cleanup(struct args *args);
