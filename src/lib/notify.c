/* SPDX-License-Identifier: Apache-2.0 */
/* Events of the library, one JSON line each, to whoever asked for them. */
#include "lib/notify.h"

#include "base/buf.h"
#include "lib/lib_internal.h"

void notify_event(const struct listener *listener, struct event *event)
{
	if (!listener->fn)
		return;
	struct buf line = BUF_INIT(65536);
	event->time = timestamp_now();
	if (event_add_json(event, &line) == 0 && line.len > 0) {
		line.data[line.len - 1] = '\0'; /* the callback gets the line without its end */
		listener->fn(listener->data, line.data);
	}
	buf_done(&line);
}

void sandlock_policy_on_event(struct sandlock_policy *policy,
			      void (*fn)(void *data, const char *json), void *data)
{
	policy->listener.fn = fn;
	policy->listener.data = data;
}
