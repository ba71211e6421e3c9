/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A growing list of owned strings, always NULL-terminated, so that V can be passed as an argv.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct strv {
	char **v; /* NULL while empty */
	size_t n;
};

void strv_done(struct strv *s);
/* Appends a copy of STR. */
void strv_add(struct strv *s, const char *str);
/* Appends STR itself, which the list now owns. */
void strv_add_take(struct strv *s, char *str);
void strv_copy(struct strv *dst, const struct strv *src);
bool strv_has(const struct strv *s, const char *str);
