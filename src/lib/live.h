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
 * NULL if the sandbox has no entry. The control socket and the pid file, which make it visible, are
 * made by a step some time later, so that a short run does not pay for them.
 */
struct live *live_new(const struct live_spec *spec, struct strv *warnings);
/*
 * These take NULL, which never has work, and are called by one thread at a time. The descriptor
 * (-1: none) is readable when live_step has work; live_timeout_ms says after how long it has work
 * in any case (-1: never). No step blocks.
 */
int live_fd(const struct live *live);
int live_timeout_ms(const struct live *live);
void live_step(struct live *live);
void live_free(struct live *live);
