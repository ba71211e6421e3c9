/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The library's side of names in network rules: their look-up before the start, and the resolver's
 * place in the loop.
 */
#pragma once

#include "lib/launch.h"

/*
 * Where rules of REQ hold names, makes REQ->resolver and looks the literal names up; waits for
 * that. An allowed name that has no address ends the start.
 */
int name_service_prepare(struct job_request *req, struct sandlock_error *err);
/* Hands the resolver over to BOX, and has P's loop step it. */
void name_service_hand_over(struct job_request *req, struct box *box);
int name_service_start(struct sandlock_process *p, struct box *box);
/* Before the box is removed. */
void name_service_stop(struct sandlock_process *p);
