/* SPDX-License-Identifier: Apache-2.0 */
/* Events of the library: where they are told. */
#pragma once

#include "events/event.h"

struct sandlock_policy;

/* Who listens: the two values of sandlock_policy_on_event, copied into every process handle. */
struct listener {
	void (*fn)(void *data, const char *json);
	void *data;
};

/* Fills in the time and tells LISTENER. */
void notify_event(const struct listener *listener, struct event *event);
