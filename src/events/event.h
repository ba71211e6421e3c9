/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The record of one decision: what was refused (or what ended the run), by which layer and rule,
 * and what would allow it. One wording on every path: the footer of a run, JSON lines, the control
 * socket. Nothing here does I/O; the caller writes.
 *
 * What a sandbox can choose (program, object) may hold any bytes; every output here escapes them,
 * so a line is always one line and safe for a terminal.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/timestamp.h"

struct buf;

/* The version in each JSON line; it grows when a key changes its meaning, not when one is added. */
#define EVENT_VERSION 1

/* All strings are borrowed and may be NULL where there is nothing to say. */
struct event {
	struct timestamp time;
	const char *sandbox; /* name of the sandbox */
	pid_t pid;	     /* as the host sees it; 0: none */
	const char *program; /* name of the program, from the sandbox */
	const char *op;	     /* what it tried: "open", "connect", "time-out" */
	const char *object;  /* on what: a path, an address, a limit; from the sandbox */
	const char *layer;   /* what refused: "landlock", "seccomp", "supervisor", "limit", "start";
				"ask": a question of --net-ask, or what an answer let through */
	const char *rule;    /* the rule that decided, in words: "no read grant covers it" */
	const char *allow;   /* the flag that would allow it: "--fs-read /etc/hosts" */
	int error;	     /* positive errno that the caller got; 0: none */
	uint64_t count;	     /* how often, at least 1; 0 counts as 1 */
};

/*
 * Adds one JSON line with its newline. All keys are there, in this order: v time sandbox pid
 * program op object layer rule allow errno count. What is absent is null; errno is its name
 * ("EACCES").
 */
int event_add_json(const struct event *e, struct buf *out);
/* Adds one line of text without a newline: "cat: open /x: EACCES (landlock: …); allow it with …".
 */
int event_add_text(const struct event *e, struct buf *out);

/*
 * Collects events for the end of a run. Repeats (same program, op, object, layer, rule and errno)
 * are counted on the first one; it keeps MAX distinct ones, the earliest, and only counts the rest.
 * So what a sandbox can make it use is bounded.
 */
struct event_log {
	struct event *v; /* owned, with their strings */
	size_t n;
	size_t max;
	uint64_t total;	  /* events in all */
	uint64_t dropped; /* of these, the ones that found no room */
};

enum event_log_outcome {
	EVENT_LOG_ADDED = 0,
	EVENT_LOG_REPEATED = 1,
	EVENT_LOG_DROPPED = 2,
};

/* The most lines that the footer of a run shows, and so the MAX of its log. */
#define EVENT_FOOTER_LINES 10
/* Program and object are cut to so many bytes when they are kept. */
#define EVENT_TEXT_MAX 4096

void event_log_init(struct event_log *log, size_t max);
void event_log_done(struct event_log *log);
void event_log_done_cleanup(struct event_log *log);
enum event_log_outcome event_log_add(struct event_log *log, const struct event *e);
/* Adds the lines of the footer, each with its newline; nothing where the log is empty. */
int event_log_add_footer(const struct event_log *log, struct buf *out);
