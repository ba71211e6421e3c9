/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The file of --ask-save: a profile that what was allowed for the run is added to. It is found
 * before the sandbox starts, by its directory, so that nothing the sandbox does leads elsewhere.
 */
#pragma once

#include "sandlock/sandlock.h"

struct ask_question;
struct ask_save;
struct policy;

/* *RET_SAVE is NULL where POLICY names no file. */
int ask_save_open(const struct policy *policy, struct ask_save **ret_save,
		  struct sandlock_error *err);
/* Adds the rule for Q. 0, or a negative errno. NULL: there is nothing to save to. Any thread. */
int ask_save_add(struct ask_save *s, const struct ask_question *q);
void ask_save_free(struct ask_save *s);
