/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The policy while it is being put together: for each option the values given so far, as text in
 * normal form, and where each came from. Every front end (flags, TOML, JSON, API) ends here, so the
 * same words make the same policy.
 *
 * Invariant: a value that is stored has passed its type's check. Unset (never named) and empty
 * (named, with no value) stay different. Pure: what is asked of the outside comes by struct
 * builder_host.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/strv.h"
#include "policy/options.h"

struct err;
struct policy;
struct value;

struct builder_host {
	/* Absolute directory that relative paths start at; NULL: relative paths are refused. */
	char *cwd;
	/* Looks up an environment variable; borrowed result, NULL if it is unset. */
	const char *(*env)(void *data, const char *name);
	void *data;
};

/* Where values come from. */
enum origin_kind { ORIGIN_FLAG, ORIGIN_API, ORIGIN_FILE };

struct origin {
	enum origin_kind kind;
	const char *source; /* ORIGIN_FILE: file as messages name it */
	const char *dir;    /* ORIGIN_FILE: its directory, absolute, NULL: none (standard input) */
	int line;	    /* ORIGIN_FILE: 0 if unknown */
};

struct setting_value {
	char *text;  /* owned, in normal form */
	char *where; /* owned: "--fs-read", "web.toml:3: filesystem.read" */
};

struct setting {
	bool set;
	struct setting_value *v;
	size_t n;
};

struct builder {
	struct builder_host host;
	struct setting settings[OPT_COUNT];
	struct strv warnings;
};

struct builder *builder_new(void);
void builder_free(struct builder *b);
void builder_free_cleanup(struct builder **b);

/* Sets or appends TEXT, as a user writes it behind the flag (lists of numbers may have commas). */
int builder_set(struct builder *b, const struct option *o, const char *text,
		const struct origin *from, struct err *err);
/*
 * Applies a tree read from TOML or JSON: known sections and keys of the right kind only. A
 * top-level "include" is passed over: who reads files has applied it. ${VAR} and ~/ are expanded.
 */
int builder_apply_tree(struct builder *b, const struct value *root, const struct origin *from,
		       struct err *err);
/*
 * The policy as a tree in the form that builder_apply_tree reads (owned): what is set, but for
 * options of the command line. Text that would be expanded is quoted with "$".
 */
int builder_to_tree(const struct builder *b, struct value **ret_root, struct err *err);

/*
 * ${VAR}, ${VAR:-default}, ~/ in front, $$ and $~ (owned result). Messages name the fault, not the
 * place.
 */
int expand_text(const char *text, const struct builder_host *host, char **ret_text,
		struct err *err);

bool builder_is_set(const struct builder *b, enum option_id id);
/* Value of a scalar, NULL while unset. Borrowed. */
const char *builder_text(const struct builder *b, enum option_id id);
bool builder_is_true(const struct builder *b, enum option_id id);
/* Where the last value of ID was given; its label if there is none. */
const char *builder_where(const struct builder *b, enum option_id id);
void builder_warn(struct builder *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* All checks over the whole, and the immutable result. */
int builder_finish(struct builder *b, struct policy **ret_policy, struct err *err);
