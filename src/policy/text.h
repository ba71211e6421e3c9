/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Texts made from the option table: help, manual pages, completions, schema, reference. Everything
 * in them that names an option comes from the table, so they are right by construction; golden
 * files in tests/golden show what they look like.
 */
#pragma once

/*
 * "help", "man-run", "man-policy", "bash", "zsh", "fish", "schema", "reference": the text (owned);
 * NULL for any other NAME.
 */
char *text_make(const char *name);
