/* SPDX-License-Identifier: Apache-2.0 */
/* The line of --status-fd (decisions 2). */
#pragma once

#include "sandlock/sandlock.h"

/* Writes the line to FD, which stays open; nothing if FD is negative. ERROR may be NULL. */
void status_write(int fd, const struct sandlock_result *result, const char *error);
