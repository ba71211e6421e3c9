/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What others can ask of a running sandbox: its control socket, and the answers. All is copied when
 * it is made, so that the policy may change and go while the sandbox runs.
 */
#pragma once

#include <sys/types.h>

#include "lib/launch.h"

struct live;

/* All borrowed for the call, but PROCESS, which must outlive the result. */
struct live_spec {
	struct sandlock_policy *policy;
	struct sandlock_process *process; /* started: rung, caps, prot and child_pid are set */
	const struct registry_entry *entry;
	const char *name; /* the entry's name */
	char *const *argv;
	pid_t guardian_pid; /* 0: unknown */
};

/*
 * Binds the control socket, then writes the pid file, which makes the sandbox visible. NULL if it
 * cannot be visible (a warning says why) or has ended already.
 */
struct live *live_new(const struct live_spec *spec, struct strv *warnings);
/*
 * These take NULL, which never has work, and are called by one thread at a time. The descriptor
 * (-1: none) is readable when live_step has work; live_timeout_ms says how long it can wait without
 * (-1: without end). No step blocks.
 */
int live_fd(const struct live *live);
int live_timeout_ms(const struct live *live);
void live_step(struct live *live);
void live_free(struct live *live);
