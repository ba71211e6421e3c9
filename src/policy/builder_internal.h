/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files of the builder share among themselves, and what its unit tests call.
 */
#pragma once

#include "policy/builder.h"

/*
 * Checks one value of option O and gives its normal form (owned). Never sees a list: the caller has
 * split it.
 */
int option_value_normalize(const struct option *o, const char *text, const struct builder *b,
			   const struct origin *from, char **ret_text, struct err *err);

/* The place as messages name it, owned: "--fs-read", "web.toml:3: filesystem.read", "fs-read". */
char *origin_describe(const struct origin *from, const struct option *o);

/* Appends to a list or replaces a scalar. Both strings are taken. */
void builder_store_take(struct builder *b, const struct option *o, char *text, char *where);
/* Marks O as given, with no value if it had none. */
void builder_mark(struct builder *b, const struct option *o);

/* Whether ${VAR} and a leading ~/ stand for something in values of O that come from a file. */
bool option_is_expanded(const struct option *o);
/* Text that expand_text turns back into TEXT (owned). */
char *expand_quote(const char *text);
