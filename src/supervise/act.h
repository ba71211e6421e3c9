/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Acting with the task's rights: between begin and end the calling thread, and it alone, has the
 * file rights that the task has outside of its sandbox. Only root's supervisor has more than that
 * to begin with. Memory and descriptors of the task must be taken before: that needs the
 * supervisor's own rights.
 */
#pragma once

#include <linux/capability.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct box;

struct act {
	bool changed;
	struct __user_cap_data_struct caps[2];
	uid_t fsuid;
	gid_t fsgid;
	gid_t *groups; /* owned */
	int n_groups;
};

/* 0, or a negative errno; then nothing has changed. */
int act_begin(const struct box *box, struct act *ret_saved);
/* Gives the thread its own rights back. Does nothing to a zeroed ACT, or for the second time. */
void act_end(struct act *act);
void act_end_cleanup(struct act *act);
