/* SPDX-License-Identifier: Apache-2.0 */
/* The questions of --net-ask as the API and the control socket show them, and their answers. */
#pragma once

#include <stdint.h>

struct sandlock_process;
struct value;

/* An array; any thread. */
struct value *questions_value(struct sandlock_process *p);
/*
 * Answers question ID with WORD: "once", "run" or "no". 0, or a negative errno and, owned by the
 * caller, *RET_WHY. Any thread.
 */
int questions_answer(struct sandlock_process *p, int64_t id, const char *word, char **ret_why);
