/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Questions about destinations that no rule knows (--net-ask). The call that needs one waits like
 * any other (pending.h), its sandbox goes on; when an answer, the end of the time or a signal has
 * come, its handler is run anew. What was answered is about the destination that was shown: a task
 * that has changed its address meanwhile is judged, and asked about, anew.
 *
 * Functions may be called from any thread; none waits.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "policy/net_table.h"
#include "supervise/call.h"

struct ask;

enum ask_answer {
	ASK_OPEN,   /* none yet */
	ASK_ONCE,   /* the calls that wait may go on */
	ASK_RUN,    /* they, and later ones to the same destination */
	ASK_NO,	    /* none of these */
	ASK_NOBODY, /* the time was over, or there was no room for the question */
};

/* Questions that can be open at a time; more are not asked. */
#define ASK_OPEN_MAX 16

struct ask_question {
	unsigned int id; /* four digits, by chance: the sandbox cannot know it */
	struct net_point point;
	pid_t pid;
	int64_t until_ms; /* CLOCK_MONOTONIC */
	char op[16];
	char program[64]; /* chosen by the sandbox, like part of HOST */
	char host[256];	  /* a name that leads there; "": none is known */
	size_t n_hosts;
};

/* A question waits for TIMEOUT_MS at most. */
struct ask *ask_new(uint64_t timeout_ms);
struct ask *ask_ref(struct ask *a); /* NULL is fine, here and below */
void ask_unref(struct ask *a);

enum ask_outcome {
	ASK_REFUSES, /* nobody is asked */
	ASK_ALLOWS,
	ASK_WAITS, /* ask_wait is to be called */
};
/* What is known of POINT, which no rule knows, for CALL. */
enum ask_outcome ask_judge(struct call *call, const struct net_point *point);
/* Whether sock_to_worker has to ask first. */
static inline bool ask_is_wanted(const struct call *call)
{
	return call->ask_wanted;
}
/* Asks, or joins those who have asked the same. The verdict is to be handed on. */
struct verdict ask_wait(struct call *call);

/* The open questions, the oldest first. Who looks counts as somebody who may answer. */
size_t ask_list(struct ask *a, struct ask_question ret[ASK_OPEN_MAX]);
/* Number of open questions, without looking at them. */
size_t ask_count(struct ask *a);
/* 0 and the question that was answered, or -ENOENT: it is not open. */
int ask_answer(struct ask *a, unsigned int id, enum ask_answer answer,
	       struct ask_question *ret_question);
