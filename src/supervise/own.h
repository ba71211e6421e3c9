/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What belongs to a sandbox that has no namespaces of its own: its processes, which descend from
 * its guardian (a subreaper, so that orphans do too), and the terminals whose masters they hold.
 * Numbers are this process's own, which are the sandbox's as well.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct box;

/* The parent of process or thread PID, and when PID started. 0 or a negative errno. */
int own_parent(pid_t pid, pid_t *ret_parent, unsigned long long *ret_start);
/* Whether process or thread PID belongs to the sandbox; the guardian itself does not. */
bool own_process(const struct box *box, pid_t pid);
/* The same, but without looking far: false may mean that it takes a longer look. */
bool own_process_near(const struct box *box, pid_t pid);
/*
 * The sandbox's processes, in no order; those that come or go meanwhile may be missed. *RET_PIDS is
 * the caller's. Returns their number.
 */
size_t own_processes(const struct box *box, pid_t **ret_pids);
/* Whether a process of the sandbox (ASKER is looked at first) holds the master of /dev/pts/INDEX.
 */
bool own_terminal(const struct box *box, pid_t asker, unsigned int index);
/* The numbers of all such terminals; as own_processes. */
size_t own_terminals(const struct box *box, unsigned int **ret_indexes);
