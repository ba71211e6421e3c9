/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The one reading of numbers, sizes and durations: flags, profiles, JSON and the APIs all come
 * here, so that the same words mean the same everywhere.
 *
 * All take text to its end: no blanks, no sign, decimal digits of ASCII only. Failures are -EINVAL
 * (not of the form) or -ERANGE (of the form, but out of range), with a message that names the value
 * and what would do; the caller puts the place in front.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;

int number_parse_u64(const char *text, uint64_t min, uint64_t max, uint64_t *ret, struct err *err);
int number_parse_u32(const char *text, uint32_t min, uint32_t max, uint32_t *ret, struct err *err);

/* The largest size: what fits a file offset and a TOML integer. */
#define NUMBER_SIZE_MAX ((uint64_t)INT64_MAX)

/*
 * A size in bytes: digits and, in any case and without a blank, K, M, G, T, or KiB, MiB, GiB, TiB
 * (powers of 1024) or KB, MB, GB, TB (powers of 1000). A decimal ("1.5G") needs such a suffix and
 * is rounded down. Zero is refused unless ALLOW_ZERO; a value that rounds down to zero counts as
 * zero.
 */
int number_parse_size(const char *text, bool allow_zero, uint64_t *ret_bytes, struct err *err);

/*
 * A duration in seconds ("30", "0.25"), in milliseconds rounded up, so that it is at least one.
 * Zero is refused.
 */
int number_parse_duration(const char *text, uint64_t *ret_ms, struct err *err);

/* Both write what the parser above reads back to the same value; OUT has NUMBER_TEXT_SIZE bytes. */
#define NUMBER_TEXT_SIZE 32
/* With the largest of K, M, G and T that leaves a whole number. */
const char *number_print_size(uint64_t bytes, char out[NUMBER_TEXT_SIZE]);
/* In seconds, with as many decimals as are needed. */
const char *number_print_duration(uint64_t ms, char out[NUMBER_TEXT_SIZE]);
