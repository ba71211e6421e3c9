/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the makers of the texts share.
 */
#pragma once

#include <stdbool.h>

#include "base/buf.h"
#include "policy/options.h"

/* Options that belong together: a heading and the first and last row, in the table's order. */
struct option_group {
	const char *title;
	enum option_id first;
	enum option_id last;
};

/* Ends with a NULL title. */
extern const struct option_group option_groups[];

/* Subcommands of the program with a line about each; ends with a NULL name. */
struct subcommand {
	const char *name;
	const char *help;
};
extern const struct subcommand subcommands[];

void text_help(struct buf *out);
void text_reference(struct buf *out);
void text_man_run(struct buf *out);
void text_man_policy(struct buf *out);
void text_bash(struct buf *out);
void text_zsh(struct buf *out);
void text_fish(struct buf *out);
void text_schema(struct buf *out);

/* What kind of value O takes, in words ("a path", "a number from 1 to 100"). */
void text_add_type(struct buf *out, const struct option *o);
/* "not available in this version: …" for rows of later work, else nothing. */
void text_add_later(struct buf *out, const struct option *o);
/* Whether completion offers file names for O. */
bool text_takes_path(const struct option *o);
