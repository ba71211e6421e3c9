/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The list of texts, and what they have in common: groups, types in words, availability.
 */
#include "policy/text.h"

#include <stdlib.h>

#include "base/util.h"
#include "policy/text_internal.h"

enum { TEXT_MAX = 1 << 20 };

const struct option_group option_groups[] = {
	{"Files", OPT_FS_READ, OPT_DIFF_OUTPUT},
	{"Program", OPT_EXEC, OPT_INTERACTIVE},
	{"Network", OPT_NET_ALLOW, OPT_UNIX_ALLOW},
	{"HTTP", OPT_HTTP_ALLOW, OPT_HTTP_AUTH},
	{"Limits", OPT_TIMEOUT, OPT_GPU},
	{"Determinism", OPT_NO_RANDOMIZE_MEMORY, OPT_DETERMINISTIC},
	{"System calls", OPT_EXTRA_DENY_SYSCALL, OPT_EXTRA_ALLOW_SYSCALL},
	{"Protections", OPT_ALLOW_DEGRADED, OPT_ALLOW_METADATA},
	{"Policy and output", OPT_VIEW, OPT_VERSION},
	{NULL, OPT_NONE, OPT_NONE},
};

const struct subcommand subcommands[] = {
	{"run", "run a command in a sandbox"},
	{"ps", "list the running sandboxes"},
	{"inspect", "print the policy of a running sandbox"},
	{"kill", "end a running sandbox"},
	{"answer", "answer what a running sandbox asks"},
	{"check", "try what this machine can enforce"},
	{"profile", "list, show, check and delete profiles"},
	{"complete-script", "print the completion script for a shell"},
	{NULL, NULL},
};

static const struct {
	const char *name;
	void (*make)(struct buf *out);
} texts[] = {
	{"help", text_help},	   {"reference", text_reference},
	{"man-run", text_man_run}, {"man-policy", text_man_policy},
	{"bash", text_bash},	   {"zsh", text_zsh},
	{"fish", text_fish},	   {"schema", text_schema},
};

char *text_make(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		if (!str_eq(texts[i].name, name))
			continue;
		AUTO(buf_done) struct buf out = BUF_INIT(TEXT_MAX);

		texts[i].make(&out);
		if (out.error)
			util_abort("a text made from the option table is larger than its maximum");
		return buf_take(&out);
	}
	return NULL;
}

static void add_words(struct buf *out, const struct option *o)
{
	for (size_t i = 0; o->words[i]; i++)
		buf_printf(out, "%s%s", i == 0 ? "" : o->words[i + 1] ? ", " : " or ", o->words[i]);
}

static const char *type_text(enum option_type type)
{
	static const char *const texts_of[OPTION_TYPE_COUNT] = {
		[OPTION_BOOL] = "true or false",
		[OPTION_STRING] = "a string",
		[OPTION_STRINGS] = "list of strings",
		[OPTION_WORDS] = "list of strings",
		[OPTION_PATH] = "a path",
		[OPTION_PATHS] = "list of paths",
		[OPTION_SOCKETS] = "list of paths, or *",
		[OPTION_PATTERNS] = "list of paths and patterns",
		[OPTION_FILE] = "a file",
		[OPTION_EXEC] = "a program",
		[OPTION_MOUNTS] = "list, or table from VIRTUAL to HOST",
		[OPTION_ENV] = "table from names to strings",
		[OPTION_SIZE] = "a size: bytes, or a number with K, M, G, T, KiB, KB …",
		[OPTION_DURATION] = "seconds, with a fraction if need be",
		[OPTION_NAME] = "a name",
		[OPTION_USER] = "two numbers from 0 to 4294967294",
		[OPTION_PORTS] = "list of ports and ranges, or *",
		[OPTION_PORT_NUMBERS] = "list of ports",
		[OPTION_NET_RULES] = "list of rules",
		[OPTION_GPUS] = "list of indices, empty for all",
		[OPTION_TIME] = "a time: RFC 3339, or seconds since 1970",
		[OPTION_FACTOR] = "a positive number",
	};

	return texts_of[type];
}

void text_add_type(struct buf *out, const struct option *o)
{
	switch ((int)o->type) {
	case OPTION_UINT:
		buf_printf(out, "a number from %llu to %llu", (unsigned long long)o->min,
			   (unsigned long long)o->max);
		break;
	case OPTION_CORES:
		buf_printf(out, "list of numbers from %llu to %llu, and ranges",
			   (unsigned long long)o->min, (unsigned long long)o->max);
		break;
	case OPTION_ENUM:
		add_words(out, o);
		break;
	case OPTION_PROTECTIONS:
		buf_add_str(out, "list of ");
		add_words(out, o);
		break;
	default:
		buf_add_str(out, type_text(o->type));
		break;
	}
}

void text_add_later(struct buf *out, const struct option *o)
{
	if (o->later != LATER_NOTHING)
		buf_printf(out, "Not available in this version: %s.", option_later_text(o->later));
}

bool text_takes_path(const struct option *o)
{
	return o->type == OPTION_PATH || o->type == OPTION_PATHS || o->type == OPTION_SOCKETS ||
	       o->type == OPTION_PATTERNS || o->type == OPTION_FILE;
}
