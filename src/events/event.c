/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Events; see the header. The order of the keys is part of the format and stands in one place,
 * event_add_json.
 */
#include "events/event.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/util.h"

static uint64_t count_of(const struct event *e)
{
	return e->count ? e->count : 1;
}

static const char *error_name(int error)
{
	const char *name = error > 0 ? strerrorname_np(error) : NULL;
	return name ? name : "unknown error";
}

/* --- One event ----------------------------------------------------------------------------- */

static void add_key(struct buf *out, const char *key, const char *text)
{
	buf_printf(out, ",\"%s\":", key);
	if (text)
		buf_add_json(out, text, strlen(text));
	else
		buf_add_str(out, "null");
}

int event_add_json(const struct event *e, struct buf *out)
{
	char time[TIMESTAMP_TEXT_SIZE];

	buf_printf(out, "{\"v\":%d", EVENT_VERSION);
	add_key(out, "time", timestamp_print_ms(e->time, time));
	add_key(out, "sandbox", e->sandbox);
	if (e->pid > 0)
		buf_printf(out, ",\"pid\":%d", (int)e->pid);
	else
		add_key(out, "pid", NULL);
	add_key(out, "program", e->program);
	add_key(out, "op", e->op);
	add_key(out, "object", e->object);
	add_key(out, "layer", e->layer);
	add_key(out, "rule", e->rule);
	add_key(out, "allow", e->allow);
	add_key(out, "errno", e->error > 0 ? error_name(e->error) : NULL);
	return buf_printf(out, ",\"count\":%" PRIu64 "}\n", count_of(e));
}

static bool is_given(const char *text)
{
	return text && *text;
}

static void add_escaped(struct buf *out, const char *text)
{
	buf_add_terminal(out, text, strlen(text));
}

/* " (LAYER: RULE)" with what there is of it. */
static void add_reason(const struct event *e, struct buf *out)
{
	if (!is_given(e->layer) && !is_given(e->rule))
		return;
	buf_add_str(out, " (");
	if (is_given(e->layer))
		add_escaped(out, e->layer);
	if (is_given(e->layer) && is_given(e->rule))
		buf_add_str(out, ": ");
	if (is_given(e->rule))
		add_escaped(out, e->rule);
	buf_add_char(out, ')');
}

int event_add_text(const struct event *e, struct buf *out)
{
	if (is_given(e->program)) {
		add_escaped(out, e->program);
		buf_add_str(out, ": ");
	}
	add_escaped(out, is_given(e->op) ? e->op : "unknown operation");
	if (is_given(e->object)) {
		buf_add_char(out, ' ');
		add_escaped(out, e->object);
	}
	if (e->error > 0)
		buf_printf(out, ": %s", error_name(e->error));
	add_reason(e, out);
	if (count_of(e) > 1)
		buf_printf(out, ", %" PRIu64 " times", count_of(e));
	if (is_given(e->allow)) {
		buf_add_str(out, "; allow it with ");
		add_escaped(out, e->allow);
	}
	return out->error;
}

/* --- The log ------------------------------------------------------------------------------- */

static char *copy_text(const char *text)
{
	return text ? xstrndup(text, EVENT_TEXT_MAX) : NULL;
}

/* The strings of an event in the log are its own; elsewhere they are borrowed, hence const. */
static void free_text(const char *text)
{
	free((void *)(uintptr_t)text);
}

static void event_done(struct event *e)
{
	free_text(e->sandbox);
	free_text(e->program);
	free_text(e->op);
	free_text(e->object);
	free_text(e->layer);
	free_text(e->rule);
	free_text(e->allow);
}

void event_log_init(struct event_log *log, size_t max)
{
	*log = (struct event_log){.max = max};
}

void event_log_done(struct event_log *log)
{
	if (!log)
		return;
	for (size_t i = 0; i < log->n; i++)
		event_done(&log->v[i]);
	free(log->v);
	log->v = NULL;
	log->n = 0;
	log->total = 0;
	log->dropped = 0;
}

void event_log_done_cleanup(struct event_log *log)
{
	event_log_done(log);
}

/* Compares as far as text is kept, so that the repeat of a long one is a repeat. */
static bool same_text(const char *a, const char *b)
{
	if (!a || !b)
		return a == b;
	return strncmp(a, b, EVENT_TEXT_MAX) == 0;
}

static bool is_repeat(const struct event *a, const struct event *b)
{
	return a->error == b->error && same_text(a->program, b->program) &&
	       same_text(a->op, b->op) && same_text(a->object, b->object) &&
	       same_text(a->layer, b->layer) && same_text(a->rule, b->rule);
}

/* Adds without wrapping: a count that is full stays full. */
static void add_count(uint64_t *sum, uint64_t n)
{
	if (__builtin_add_overflow(*sum, n, sum))
		*sum = UINT64_MAX;
}

enum event_log_outcome event_log_add(struct event_log *log, const struct event *e)
{
	uint64_t count = count_of(e);

	add_count(&log->total, count);
	for (size_t i = 0; i < log->n; i++) {
		if (is_repeat(&log->v[i], e)) {
			add_count(&log->v[i].count, count);
			return EVENT_LOG_REPEATED;
		}
	}
	if (log->n == log->max) {
		add_count(&log->dropped, count);
		return EVENT_LOG_DROPPED;
	}
	log->v = xrealloc(log->v, log->n + 1, sizeof(*log->v));
	log->v[log->n++] = (struct event){
		.time = e->time,
		.sandbox = copy_text(e->sandbox),
		.pid = e->pid,
		.program = copy_text(e->program),
		.op = copy_text(e->op),
		.object = copy_text(e->object),
		.layer = copy_text(e->layer),
		.rule = copy_text(e->rule),
		.allow = copy_text(e->allow),
		.error = e->error,
		.count = count,
	};
	return EVENT_LOG_ADDED;
}

int event_log_add_footer(const struct event_log *log, struct buf *out)
{
	uint64_t unshown = log->dropped;

	if (log->total == 0)
		return 0;
	buf_printf(out, "sandlock: refused %" PRIu64 " %s:\n", log->total,
		   log->total == 1 ? "operation" : "operations");
	for (size_t i = 0; i < log->n; i++) {
		if (i >= EVENT_FOOTER_LINES) {
			add_count(&unshown, log->v[i].count);
			continue;
		}
		buf_add_str(out, "  ");
		event_add_text(&log->v[i], out);
		buf_add_char(out, '\n');
	}
	if (unshown > 0)
		buf_printf(out, "  and %" PRIu64 " more\n", unshown);
	return out->error;
}
