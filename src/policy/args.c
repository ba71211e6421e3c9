/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Splits the flags of `sandlock run`. The rules are in args.h; every fault names the word.
 */
#include "policy/args.h"

#include <errno.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/util.h"

struct scan {
	int argc;
	char *const *argv;
	int pos; /* next word */
	struct args out;
};

void args_done(struct args *args)
{
	free(args->v);
	*args = (struct args){0};
}

void args_done_cleanup(struct args *args)
{
	args_done(args);
}

static void add_item(struct scan *s, const struct option *o, const char *value)
{
	s->out.v = xrealloc(s->out.v, s->out.n + 1, sizeof(*s->out.v));
	s->out.v[s->out.n++] = (struct arg_item){.option = o, .value = value};
}

/* The word behind the flag as its value. */
static int take_value(struct scan *s, const struct option *o, const char **ret, struct err *err)
{
	const char *next = s->pos < s->argc ? s->argv[s->pos] : NULL;
	char q[QUOTE_SIZE];

	if (!next || str_eq(next, "--"))
		return err_set(err, EINVAL, "%s needs a value: %s %s", o->flag, o->flag,
			       o->metavar);
	if (next[0] == '-' && next[1])
		return err_set(err, EINVAL,
			       "%s needs a value, but %s follows; write %s=VALUE if the value "
			       "begins with a dash",
			       o->flag, quote_str(next, q, sizeof(q)), o->flag);
	s->pos++;
	*ret = next;
	return 0;
}

static int unknown_flag(const char *word, struct err *err)
{
	auto_free char *flag = xstrndup(word, strcspn(word, "="));
	const char *near = option_suggest_flag(flag);
	char q[QUOTE_SIZE];

	quote_str(flag, q, sizeof(q));
	if (near)
		return err_set(err, EINVAL, "unknown option %s; did you mean %s?", q, near);
	return err_set(err, EINVAL, "unknown option %s; sandlock run --help lists what there is",
		       q);
}

/* --X, --X=VALUE or --no-X, where WORD begins behind the dashes. */
static int parse_long(struct scan *s, const char *word, struct err *err)
{
	size_t len = strcspn(word, "=");
	const struct option *o = option_find_flag(word, len);
	const char *value = word[len] == '=' ? word + len + 1 : NULL;
	int r = 0;

	if (!o && !value && str_starts(word, "no-")) {
		o = option_find_flag(word + 3, len - 3);
		if (o && option_is_switch(o)) {
			add_item(s, o, "false");
			return 0;
		}
		o = NULL;
	}
	if (!o)
		return unknown_flag(word - 2, err);
	if (!value && option_is_switch(o))
		value = "true";
	else if (!value)
		r = take_value(s, o, &value, err);
	if (r == 0)
		add_item(s, o, value);
	return r;
}

/* -abc: switches up to the first letter that takes a value, which the rest of the word is. */
static int parse_short(struct scan *s, const char *word, struct err *err)
{
	for (const char *p = word + 1; *p; p++) {
		const struct option *o = option_find_letter(*p);
		const char *value = NULL;
		char q[QUOTE_SIZE];

		if (!o)
			return err_set(
				err, EINVAL,
				"unknown option -%c in %s; sandlock run --help lists what there is",
				*p > 0x20 && *p < 0x7f ? *p : '?', quote_str(word, q, sizeof(q)));
		if (option_is_switch(o)) {
			add_item(s, o, "true");
			continue;
		}
		if (p[1])
			value = p + (p[1] == '=' ? 2 : 1);
		int r = value ? 0 : take_value(s, o, &value, err);

		if (r == 0)
			add_item(s, o, value);
		return r;
	}
	return 0;
}

/* Behind --help and --version nothing matters, not even what is wrong there. */
static bool asks_for_text(const struct scan *s)
{
	enum option_id last = s->out.n ? s->out.v[s->out.n - 1].option->id : OPT_NONE;

	return last == OPT_HELP || last == OPT_VERSION;
}

int args_parse(int argc, char *const *argv, struct args *ret_args, struct err *err)
{
	struct scan s = {.argc = argc, .argv = argv};

	while (s.pos < argc) {
		const char *word = argv[s.pos];
		int r;

		if (word[0] != '-' || !word[1])
			break;
		s.pos++;
		if (str_eq(word, "--"))
			break;
		r = word[1] == '-' ? parse_long(&s, word + 2, err) : parse_short(&s, word, err);
		if (r < 0) {
			s.out.used = s.pos;
			*ret_args = s.out;
			return r;
		}
		if (asks_for_text(&s))
			break;
	}
	s.out.used = s.pos;
	*ret_args = s.out;
	return 0;
}
