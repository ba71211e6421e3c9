/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Asking control sockets: many at once, with one time limit for all, so that supervisors which hang
 * cost it once.
 */
#pragma once

#include <stddef.h>

#include "control/protocol.h"

struct control_query {
	int dir_fd; /* borrowed: the directory with the socket */
	enum control_verb verb;
	const struct value *args; /* borrowed: a table, or NULL */
	/* Out: 0, or a negative errno (-ETIMEDOUT: no answer in time; -EREMOTEIO: refused, see
	 * WHY). */
	int result;
	struct value *data; /* the reply's data, hostile like all of a reply */
	char *why;
};

/* Asks all N, waiting TIMEOUT_MS at most for the slowest. */
void control_query_all(struct control_query *queries, size_t n, int timeout_ms);
/* Releases what the reply left. */
void control_query_done(struct control_query *query);
