/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Symbolic links of procfs. What they lead to depends on who asks: "self" must be the task, and the
 * links of a process must be followed only where the task itself could follow them, which this
 * process may do for many more.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "supervise/call.h"

/*
 * The link NAME in DIR, which is a directory of a procfs; LINK is the link itself. Positive: it is
 * a text, in RET_TEXT (PATH_MAX bytes); 0: it led to an object, in RET_FD (O_PATH, owned); or a
 * negative errno.
 */
int proc_link_follow(struct call *call, int dir, const char *name, int link, char *ret_text,
		     int *ret_fd);
