/* SPDX-License-Identifier: Apache-2.0 */
/* Questions about destinations: see ask.h. */
#include "supervise/ask.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/util.h"
#include "net/names.h"
#include "supervise/box.h"
#include "supervise/pending.h"
#include "supervise/sock.h"

enum {
	KNOWN_MAX = 256, /* answers that are kept; the oldest goes first */
	LOOK_MS = 20,
	ID_FIRST = 1000,
	ID_COUNT = 9000,
	NAMES_MAX = 8,
};

struct question {
	struct ask_question q;
	enum ask_answer answer; /* ASK_OPEN: it is in the list */
	size_t n_waiting;	/* calls that hold it; the last one frees it */
};

struct known {
	struct net_point point;
	bool allowed;
};

struct ask {
	unsigned int refs; /* atomic */
	uint64_t timeout_ms;
	pthread_mutex_t lock;
	struct question *open[ASK_OPEN_MAX];
	size_t n_open;
	/* A question was left without an answer, and nobody has looked since. */
	bool unattended;
	struct known known[KNOWN_MAX];
	size_t n_known; /* in all; of more than KNOWN_MAX the last ones are there */
};

/* A waiting call's part in a question. */
struct waiter {
	struct ask *ask;	   /* a reference */
	struct question *question; /* NULL: there was no room */
};

struct ask *ask_new(uint64_t timeout_ms)
{
	struct ask *a = xnew(struct ask);
	a->refs = 1;
	a->timeout_ms = timeout_ms;
	pthread_mutex_init(&a->lock, NULL);
	return a;
}

struct ask *ask_ref(struct ask *a)
{
	if (a)
		__atomic_add_fetch(&a->refs, 1, __ATOMIC_RELAXED);
	return a;
}

void ask_unref(struct ask *a)
{
	if (!a || __atomic_sub_fetch(&a->refs, 1, __ATOMIC_ACQ_REL) > 0)
		return;
	pthread_mutex_destroy(&a->lock);
	free(a);
}

static bool same_point(const struct net_point *a, const struct net_point *b)
{
	return a->proto == b->proto && a->v6 == b->v6 && a->port == b->port &&
	       memcmp(a->addr, b->addr, a->v6 ? 16 : 4) == 0;
}

/* --- With the lock held --------------------------------------------------------------------- */

static struct question *find_point(struct ask *a, const struct net_point *point)
{
	for (size_t i = 0; i < a->n_open; i++) {
		if (same_point(&a->open[i]->q.point, point))
			return a->open[i];
	}
	return NULL;
}

static struct question *find_id(struct ask *a, unsigned int id)
{
	for (size_t i = 0; i < a->n_open; i++) {
		if (a->open[i]->q.id == id)
			return a->open[i];
	}
	return NULL;
}

static void close_question(struct ask *a, struct question *q, enum ask_answer answer)
{
	if (q->answer != ASK_OPEN)
		return;
	q->answer = answer;
	for (size_t i = 0; i < a->n_open; i++) {
		if (a->open[i] == q) {
			a->n_open--;
			memmove(a->open + i, a->open + i + 1,
				(a->n_open - i) * sizeof(struct question *));
			return;
		}
	}
}

static const struct known *find_known(const struct ask *a, const struct net_point *point)
{
	size_t n = a->n_known < KNOWN_MAX ? a->n_known : KNOWN_MAX;
	for (size_t i = 0; i < n; i++) {
		if (same_point(&a->known[i].point, point))
			return &a->known[i];
	}
	return NULL;
}

/* Open questions have no known answer: none of them comes in twice, unless it was forgotten. */
static void keep_known(struct ask *a, const struct net_point *point, bool allowed)
{
	a->known[a->n_known % KNOWN_MAX] = (struct known){*point, allowed};
	a->n_known++;
}

/* 0: there is no chance to be had. */
static unsigned int new_id(struct ask *a)
{
	for (;;) {
		uint32_t random = 0;
		if (getrandom(&random, sizeof(random), GRND_NONBLOCK) != (ssize_t)sizeof(random))
			return 0;
		unsigned int id = ID_FIRST + random % ID_COUNT;
		if (!find_id(a, id))
			return id;
	}
}

static struct question *add_question(struct ask *a, const struct ask_question *about)
{
	unsigned int id = a->n_open < ASK_OPEN_MAX ? new_id(a) : 0;
	if (!id)
		return NULL;
	struct question *q = xnew(struct question);
	q->q = *about;
	q->q.id = id;
	a->open[a->n_open++] = q;
	return q;
}

/* --- Waiting -------------------------------------------------------------------------------- */

static void free_waiter(struct pending_op *op)
{
	struct waiter *w = op->data;
	struct question *q = w->question;
	pthread_mutex_lock(&w->ask->lock);
	/* Nobody waits for it any more: it is taken back. */
	if (q && --q->n_waiting == 0) {
		close_question(w->ask, q, ASK_NOBODY);
		free(q);
	}
	pthread_mutex_unlock(&w->ask->lock);
	ask_unref(w->ask);
	free(w);
}

static struct verdict resume(struct call *call, struct pending_op *op, bool timed_out)
{
	const struct waiter *w = op->data;
	struct ask *a = w->ask;
	enum ask_answer answer = ASK_NOBODY;
	pthread_mutex_lock(&a->lock);
	if (w->question) {
		if (timed_out && w->question->answer == ASK_OPEN) {
			close_question(a, w->question, ASK_NOBODY);
			a->unattended = true;
		}
		answer = w->question->answer;
	}
	pthread_mutex_unlock(&a->lock);
	if (answer == ASK_OPEN)
		return (struct verdict){.answer = ANSWER_PENDING};
	call->ask_answer = (unsigned char)answer;
	call->ask_wanted = false;
	return (struct verdict){.answer = ANSWER_WORKER};
}

static void describe(struct call *call, struct ask_question *ret)
{
	const struct box *box = call->box;
	const char *names[NAMES_MAX] = {NULL};
	const struct net_point *p = &call->ask_point;
	*ret = (struct ask_question){.point = *p, .pid = call->tid};
	snprintf(ret->op, sizeof(ret->op), "%s", call->row->name);
	call_program(call, ret->program, sizeof(ret->program));
	if (box->names)
		ret->n_hosts = names_of_address(box->names, p->v6, p->addr, names, NAMES_MAX);
	if (ret->n_hosts)
		snprintf(ret->host, sizeof(ret->host), "%s", names[0]);
	ret->until_ms = sock_now_ms() + (int64_t)box->ask->timeout_ms;
}

static void tell(struct call *call, const struct ask_question *q)
{
	char object[NET_POINT_TEXT_MAX];
	char rule[64];
	net_point_format(&q->point, object);
	snprintf(rule, sizeof(rule), "question %u waits for an answer", q->id);
	struct refusal news = {.op = q->op, .object = object, .layer = "ask", .rule = rule};
	call_tell(call, &news);
}

struct verdict ask_wait(struct call *call)
{
	struct ask *a = call->box->ask;
	struct waiter *w = xnew(struct waiter);
	struct ask_question about;
	struct pending_op op = {.resume = resume,
				.free = free_waiter,
				.data = w,
				.fd = -1,
				.retry_ms = 1,
				.interruptible = true};
	bool is_new = false;
	describe(call, &about);
	w->ask = ask_ref(a);
	pthread_mutex_lock(&a->lock);
	w->question = find_point(a, &about.point);
	if (!w->question) {
		w->question = add_question(a, &about);
		is_new = w->question;
	}
	if (w->question) {
		w->question->n_waiting++;
		about = w->question->q;
		op.retry_ms = LOOK_MS;
		op.deadline_ms = about.until_ms;
	}
	pthread_mutex_unlock(&a->lock);
	if (is_new)
		tell(call, &about);
	return call_wait(call, &op);
}

/* --- Judging and answering ------------------------------------------------------------------ */

enum ask_outcome ask_judge(struct call *call, const struct net_point *point)
{
	struct ask *a = call->box->ask;
	bool answered = call->ask_answer != ASK_OPEN && same_point(&call->ask_point, point);
	call->ask_wanted = false;
	if (!a || (point->proto != NET_TCP && point->proto != NET_UDP) || !point->port)
		return ASK_REFUSES;
	if (answered)
		return call->ask_answer == ASK_ONCE || call->ask_answer == ASK_RUN ? ASK_ALLOWS
										   : ASK_REFUSES;
	pthread_mutex_lock(&a->lock);
	const struct known *known = find_known(a, point);
	enum ask_outcome outcome = ASK_WAITS;
	if (known)
		outcome = known->allowed ? ASK_ALLOWS : ASK_REFUSES;
	else if (!find_point(a, point) && (a->unattended || a->n_open == ASK_OPEN_MAX))
		outcome = ASK_REFUSES;
	pthread_mutex_unlock(&a->lock);
	if (outcome == ASK_WAITS) {
		call->ask_point = *point;
		call->ask_answer = ASK_OPEN;
		call->ask_wanted = true;
	}
	return outcome;
}

size_t ask_list(struct ask *a, struct ask_question ret[ASK_OPEN_MAX])
{
	if (!a)
		return 0;
	pthread_mutex_lock(&a->lock);
	size_t n = a->n_open;
	for (size_t i = 0; i < n; i++)
		ret[i] = a->open[i]->q;
	a->unattended = false;
	pthread_mutex_unlock(&a->lock);
	return n;
}

size_t ask_count(struct ask *a)
{
	if (!a)
		return 0;
	pthread_mutex_lock(&a->lock);
	size_t n = a->n_open;
	pthread_mutex_unlock(&a->lock);
	return n;
}

int ask_answer(struct ask *a, unsigned int id, enum ask_answer answer,
	       struct ask_question *ret_question)
{
	if (!a)
		return -ENOENT;
	pthread_mutex_lock(&a->lock);
	struct question *q = find_id(a, id);
	a->unattended = false;
	if (q) {
		*ret_question = q->q;
		if (answer == ASK_RUN || answer == ASK_NO)
			keep_known(a, &q->q.point, answer == ASK_RUN);
		close_question(a, q, answer);
	}
	pthread_mutex_unlock(&a->lock);
	return q ? 0 : -ENOENT;
}
