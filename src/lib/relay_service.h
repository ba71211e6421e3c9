/* SPDX-License-Identifier: Apache-2.0 */
/* The library's side of --net-rate and --net-max-bytes: the relay's place in the loop. */
#pragma once

#include "lib/launch.h"

/* Makes BOX->relay where its policy limits what connections carry. Negative errno. */
int relay_service_make(struct box *box);
/* Has P's loop step it. */
int relay_service_start(struct sandlock_process *p, struct box *box);
/* Before the box is removed; sends on what a command that ended by itself has left. */
void relay_service_stop(struct sandlock_process *p);
