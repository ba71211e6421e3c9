/* SPDX-License-Identifier: Apache-2.0 */
/*
 * UTF-8: strict decoding (no overlong forms, no surrogates, nothing above U+10FFFF), encoding, and
 * the question whether a character may be shown on a terminal or in a log.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Decodes the character at S (LEN bytes are there). Returns how many bytes it takes, 1 to 4, and
 * sets *RET_CP; returns 0 and leaves it untouched where S is empty or no well-formed character.
 */
size_t utf8_decode(const char *s, size_t len, uint32_t *ret_cp);

/* Writes the character CP (a scalar value: checked by assertion) to OUT; returns its bytes, 1-4. */
size_t utf8_put(uint32_t cp, char out[4]);

/* Whether CP is a scalar value: at most U+10FFFF and no surrogate. */
bool utf8_is_scalar(uint32_t cp);

/*
 * Whether CP must not reach a terminal or a log as it is: controls (C0, DEL, C1), line and
 * paragraph separators, everything that turns the direction of writing, and marks that cannot be
 * seen (byte order mark, annotation and tag characters).
 */
bool utf8_is_unsafe(uint32_t cp);
