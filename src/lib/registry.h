/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The registry of live sandboxes: one directory per sandbox below the user's runtime directory.
 * Whoever makes the directory locks it; the guardian inherits the lock, so that a lock that is free
 * means a dead sandbox, whatever else the directory says.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/strv.h"
#include "lib/launch.h"
#include "sandlock/sandlock.h"

/* --- Processes (registry_pids.c) ---------------------------------------------------------- */

enum registry_role {
	ROLE_CHILD,	 /* the command */
	ROLE_SUPERVISOR, /* the process that the library lives in */
	ROLE_GUARDIAN,
	ROLE_KEEPER, /* the supervisor's child: the guardian itself, or its parent */
	ROLE_COUNT,
};

/* A process with what tells it from a later one of the same number. */
struct registry_process {
	pid_t pid;	/* 0: unknown */
	uint64_t start; /* clock ticks after boot; 0: unknown */
};

struct registry_pids {
	struct registry_process v[ROLE_COUNT];
};

/* When PID started, 0 where it is gone or only waits to be collected. */
uint64_t process_start(pid_t pid);
/* Whether that very process is still there. */
bool process_is_alive(const struct registry_process *p);
/* A pidfd of that very process, or -1. */
int process_open(const struct registry_process *p);
/* Writes the file of the entry DIR_FD, whole or not at all. Negative errno on failure. */
int registry_write_pids(int dir_fd, const struct registry_pids *pids);
/* -ENOENT while it is not written, -EINVAL where it is none of ours. */
int registry_read_pids(int dir_fd, struct registry_pids *ret_pids);

/* --- Starting (registry.c; registry_claim is in launch.h) ----------------------------------- */

/* Adds the warning that the sandbox NAME (NULL: it has none) is in no registry because of CODE. */
void registry_warn(struct strv *warnings, int code, const char *name);
/*
 * Opens the entry NAME in the runtime directory TOP_NAME of TOP_FD. A negative errno if there is
 * none (any more).
 */
int registry_open_entry(int top_fd, const char *top_name, const char *name);

/* --- Looking (registry.c) ----------------------------------------------------------------- */

/* The places that runtime directories can lie in: the user's own, and the shared one. */
#define REGISTRY_PLACES 2

/* Opens the runtime directory at PLACE if it exists; a negative errno if not. */
int registry_open_place(int place);

enum registry_state {
	ENTRY_NONE,	/* nothing of ours has that name */
	ENTRY_STARTING, /* the lock is held, nothing is known yet; or it is too young to judge */
	ENTRY_LIVE,
	ENTRY_DEAD,
};

/*
 * What NAME in DIR_FD is. *RET_ENTRY is its directory, owned by the caller, but for ENTRY_NONE;
 * RET_PIDS is filled for ENTRY_LIVE.
 */
enum registry_state registry_look(int dir_fd, const char *name, int *ret_entry,
				  struct registry_pids *ret_pids);
/* Whether somebody holds the lock of the entry ENTRY_FD. */
bool registry_is_locked(int entry_fd);
/* Removes NAME from DIR_FD unless its lock is held. */
void registry_prune(int dir_fd, const char *name);
/* Removes the runtime directory of PLACE if nothing is left in it. */
void registry_tidy(int place);
