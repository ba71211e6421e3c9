/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Storage of the settings under construction, and setting one by text. Lists append without
 * repetition, scalars override, and each value remembers where it was given.
 */
#include "policy/builder.h"

#include <errno.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/number.h"
#include "base/timestamp.h"
#include "base/util.h"
#include "policy/builder_internal.h"

enum { LIST_MAX = 8192 };

struct builder *builder_new(void)
{
	return xnew(struct builder);
}

static void setting_clear(struct setting *s)
{
	for (size_t i = 0; i < s->n; i++) {
		free(s->v[i].text);
		free(s->v[i].where);
	}
	free(s->v);
	*s = (struct setting){0};
}

void builder_free(struct builder *b)
{
	if (!b)
		return;
	for (size_t i = 0; i < OPT_COUNT; i++)
		setting_clear(&b->settings[i]);
	strv_done(&b->warnings);
	free(b->host.cwd);
	free(b);
}

void builder_free_cleanup(struct builder **b)
{
	builder_free(*b);
}

char *origin_describe(const struct origin *from, const struct option *o)
{
	if ((o->id == OPT_UID || o->id == OPT_GID) && from->kind != ORIGIN_FILE)
		o = option_get(OPT_USER);
	switch (from->kind) {
	case ORIGIN_FLAG:
		return xstrdup(option_label(o));
	case ORIGIN_API:
		return xstrdup(o->flag ? o->flag + 2 : o->path);
	case ORIGIN_FILE:
		break;
	}
	const char *name = o->path ? o->path : option_label(o);

	if (from->line > 0)
		return xasprintf("%s:%d: %s", from->source, from->line, name);
	return xasprintf("%s: %s", from->source, name);
}

/* Whether A and B set the same environment variable. */
static bool same_variable(const char *a, const char *b)
{
	size_t n = strcspn(a, "=");

	return strcspn(b, "=") == n && memcmp(a, b, n) == 0;
}

static bool replaces(const struct option *o, const char *old, const char *new)
{
	if (!option_is_list(o))
		return true;
	if (o->type == OPTION_STRINGS)
		return false;
	if (o->type == OPTION_ENV)
		return same_variable(old, new);
	return str_eq(old, new);
}

void builder_mark(struct builder *b, const struct option *o)
{
	b->settings[o->id].set = true;
}

void builder_store_take(struct builder *b, const struct option *o, char *text, char *where)
{
	struct setting *s = &b->settings[o->id];
	struct setting_value value = {.text = text, .where = where};

	s->set = true;
	for (size_t i = 0; i < s->n; i++) {
		if (!replaces(o, s->v[i].text, text))
			continue;
		free(s->v[i].text);
		free(s->v[i].where);
		s->v[i] = value;
		return;
	}
	s->v = xrealloc(s->v, s->n + 1, sizeof(*s->v));
	s->v[s->n++] = value;
}

bool builder_is_set(const struct builder *b, enum option_id id)
{
	return b->settings[id].set;
}

const char *builder_text(const struct builder *b, enum option_id id)
{
	const struct setting *s = &b->settings[id];

	return s->n ? s->v[s->n - 1].text : NULL;
}

bool builder_is_true(const struct builder *b, enum option_id id)
{
	const char *text = builder_text(b, id);

	return text && str_eq(text, "true");
}

const char *builder_where(const struct builder *b, enum option_id id)
{
	const struct setting *s = &b->settings[id];

	return s->n ? s->v[s->n - 1].where : option_label(option_get(id));
}

void builder_warn(struct builder *b, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	auto_free char *text = xvasprintf(fmt, ap);

	va_end(ap);
	if (!strv_has(&b->warnings, text))
		strv_add_take(&b->warnings, take_ptr(text));
}

static int set_one(struct builder *b, const struct option *o, const char *text,
		   const struct origin *from, struct err *err)
{
	struct timestamp time;
	char *normal = NULL;

	if (b->settings[o->id].n >= LIST_MAX)
		return err_set(err, E2BIG, "%s has more than 8192 values", option_label(o));
	int r = option_value_normalize(o, text, b, from, &normal, err);

	if (r < 0)
		return r;

	char *where = origin_describe(from, o);

	if (o->type == OPTION_TIME && timestamp_parse(normal, &time, NULL) == TIMESTAMP_NO_OFFSET)
		builder_warn(b, "%s: %s names no offset from UTC and is taken as UTC", where,
			     normal);
	builder_store_take(b, o, normal, where);
	return 0;
}

/* "0-3" of a list of cores: every core by itself. */
static int set_cores(struct builder *b, const struct option *o, const char *text,
		     const struct origin *from, struct err *err)
{
	const char *dash = strchr(text, '-');
	uint64_t lo = 0, hi = 0;
	char q[QUOTE_SIZE];

	if (!dash)
		return set_one(b, o, text, from, err);

	auto_free char *first = xstrndup(text, (size_t)(dash - text));
	int r = number_parse_u64(first, o->min, o->max, &lo, err);

	if (r == 0)
		r = number_parse_u64(dash + 1, o->min, o->max, &hi, err);
	if (r < 0)
		return r;
	if (hi < lo)
		return err_set(err, EINVAL, "%s ends below its start",
			       quote_str(text, q, sizeof(q)));
	for (uint64_t i = lo; r == 0 && i <= hi; i++) {
		auto_free char *one = xasprintf("%llu", (unsigned long long)i);

		r = set_one(b, o, one, from, err);
	}
	return r;
}

static int set_user(struct builder *b, const char *text, const struct origin *from, struct err *err)
{
	const char *colon = strchr(text, ':');
	char q[QUOTE_SIZE];

	if (!colon || colon == text || !colon[1])
		return err_set(err, EINVAL,
			       "%s is not of the form UID:GID; both numbers are needed",
			       quote_str(text, q, sizeof(q)));

	auto_free char *uid = xstrndup(text, (size_t)(colon - text));
	int r = set_one(b, option_get(OPT_UID), uid, from, err);

	return r < 0 ? r : set_one(b, option_get(OPT_GID), colon + 1, from, err);
}

static bool has_commas(const struct option *o)
{
	return o->type == OPTION_PORTS || o->type == OPTION_PORT_NUMBERS ||
	       o->type == OPTION_CORES || o->type == OPTION_GPUS;
}

static int set_element(struct builder *b, const struct option *o, const char *text,
		       const struct origin *from, struct err *err)
{
	return o->type == OPTION_CORES ? set_cores(b, o, text, from, err)
				       : set_one(b, o, text, from, err);
}

static int set_text(struct builder *b, const struct option *o, const char *text,
		    const struct origin *from, struct err *err)
{
	if (o->type == OPTION_USER)
		return set_user(b, text, from, err);
	if (!has_commas(o))
		return set_one(b, o, text, from, err);
	for (const char *p = text;;) {
		size_t n = strcspn(p, ",");
		auto_free char *one = xstrndup(p, n);
		int r = set_element(b, o, one, from, err);

		if (r < 0 || p[n] == '\0')
			return r;
		p += n + 1;
	}
}

int builder_set(struct builder *b, const struct option *o, const char *text,
		const struct origin *from, struct err *err)
{
	int r = set_text(b, o, text, from, err);

	if (r < 0) {
		auto_free char *where = origin_describe(from, o);

		return err_prefix(err, "%s", where);
	}
	return 0;
}
