/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Applies a profile with everything that it includes: what is included first, in order, then the
 * file itself. Chains are at most INCLUDE_DEPTH long and never come back to a file that is still
 * open; the number of files is bounded too, since a few files that include each other twice would
 * otherwise take for ever.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/util.h"
#include "base/value.h"
#include "lib/lib_internal.h"
#include "policy/builder.h"

enum { INCLUDE_DEPTH = 16, INCLUDE_FILES = 256 };

/* A file whose includes are being applied. */
struct open_profile {
	struct profile_text text;
	struct value *root;
	size_t next; /* include to be applied next */
};

struct loader {
	struct builder *builder;
	struct open_profile stack[INCLUDE_DEPTH + 1];
	size_t depth; /* number of open profiles */
	size_t files;
};

static void pop(struct loader *l)
{
	struct open_profile *top = &l->stack[--l->depth];

	profile_text_done(&top->text);
	value_free(top->root);
	*top = (struct open_profile){0};
}

/* "web.toml:3", or "web.toml" where the line is unknown; owned. */
static char *place_of(const struct open_profile *p, const struct value *v)
{
	return v->line > 0 ? xasprintf("%s:%d", p->text.label, v->line) : xstrdup(p->text.label);
}

/* Checks the shape of "include". */
static int check_include(const struct open_profile *p, const struct value *include, struct err *err)
{
	auto_free char *place = place_of(p, include);

	if (include->kind != VALUE_ARRAY)
		return err_set(err, EINVAL,
			       "%s: include: expected a list of profiles in brackets, found %s",
			       place, value_kind_name(include->kind));
	for (size_t i = 0; i < include->n; i++) {
		const struct value *v = include->items[i];

		if (v->kind != VALUE_STRING || v->len == 0 || strlen(v->str) != v->len)
			return err_set(err, EINVAL,
				       "%s: include: expected the name or the path of a profile",
				       place);
	}
	return 0;
}

/* Opens TEXT (taken): parsed, its includes still to be applied. */
static int push_take(struct loader *l, struct profile_text *text, struct err *err)
{
	struct open_profile p = {.text = *text};

	*text = (struct profile_text){0};
	for (size_t i = 0; i < l->depth; i++) {
		if (!str_eq(l->stack[i].text.id, p.text.id))
			continue;
		err_set(err, ELOOP, "%s includes itself by way of %s", p.text.label,
			l->stack[l->depth - 1].text.label);
		profile_text_done(&p.text);
		return -ELOOP;
	}
	int r = 0;

	if (l->depth > INCLUDE_DEPTH)
		r = err_set(err, ELOOP, "%s is included more than 16 deep", p.text.label);
	else if (++l->files > INCLUDE_FILES)
		r = err_set(err, E2BIG, "more than 256 profiles are included altogether");
	else
		r = profile_parse(&p.text, &p.root, err);

	const struct value *include = r == 0 ? value_get(p.root, "include") : NULL;

	if (include)
		r = check_include(&p, include, err);
	if (r < 0) {
		value_free(p.root);
		profile_text_done(&p.text);
		return r;
	}
	l->stack[l->depth++] = p;
	return 0;
}

/* Applies the innermost file, whose includes are done. */
static int apply_top(struct loader *l, struct err *err)
{
	struct open_profile *top = &l->stack[l->depth - 1];
	struct origin from = {
		.kind = ORIGIN_FILE,
		.source = top->text.label,
		.dir = top->text.dir,
	};
	int r = builder_apply_tree(l->builder, top->root, &from, err);

	pop(l);
	return r;
}

static int read_include(struct loader *l, const char *what, struct profile_text *ret,
			struct err *err)
{
	const struct open_profile *top = &l->stack[l->depth - 1];
	auto_free char *path = NULL;
	char q[QUOTE_SIZE];

	if (!strchr(what, '/'))
		return profile_read_name(what, ret, err);

	int r = expand_text(what, &l->builder->host, &path, err);

	if (r < 0)
		return r;
	if (path[0] != '/' && !top->text.dir)
		return err_set(err, EINVAL,
			       "the relative path %s cannot be included here: %s has no directory",
			       quote_str(path, q, sizeof(q)), top->text.label);
	return profile_read_path(path, top->text.dir, ret, err);
}

static int open_include(struct loader *l, const struct value *what, struct err *err)
{
	auto_free char *place = place_of(&l->stack[l->depth - 1], what);
	size_t depth = l->depth;
	struct profile_text text = {0};
	int r = read_include(l, what->str, &text, err);

	if (r == 0)
		r = push_take(l, &text, err);
	else
		return err_prefix(err, "%s: include", place);
	/* A fault inside the included file names its own place. */
	if (l->depth == depth && (r == -ELOOP || r == -E2BIG))
		return err_prefix(err, "%s: include", place);
	return r;
}

int profile_apply_take(struct builder *b, struct profile_text *text, struct err *err)
{
	struct loader l = {.builder = b};
	int r = push_take(&l, text, err);

	while (r == 0 && l.depth > 0) {
		struct open_profile *top = &l.stack[l.depth - 1];
		const struct value *include = value_get(top->root, "include");

		if (include && top->next < include->n)
			r = open_include(&l, include->items[top->next++], err);
		else
			r = apply_top(&l, err);
	}
	while (l.depth > 0)
		pop(&l);
	return r;
}
