/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Numbers, sizes and durations; see the header. Arithmetic is exact (no floating point), and every
 * step that could overflow is checked before it is taken.
 */
#include "base/number.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/util.h"

#define DIGITS "0123456789"

/* A number as text: whole digits, and perhaps a point with digits behind it. */
struct decimal {
	const char *whole;
	size_t whole_len;
	const char *fraction;
	size_t fraction_len;
	const char *rest; /* what follows */
};

/* Whether TEXT begins with a number of the form; fills RET_D if so. */
static bool scan_decimal(const char *text, struct decimal *ret_d)
{
	struct decimal d = {.whole = text, .whole_len = strspn(text, DIGITS)};

	d.rest = text + d.whole_len;
	if (d.whole_len == 0)
		return false;
	if (d.rest[0] == '.') {
		d.fraction = d.rest + 1;
		d.fraction_len = strspn(d.fraction, DIGITS);
		if (d.fraction_len == 0)
			return false;
		d.rest = d.fraction + d.fraction_len;
	}
	*ret_d = d;
	return true;
}

/* Reads LEN digits; false where the value does not fit. */
static bool read_digits(const char *digits, size_t len, uint64_t *ret)
{
	uint64_t value = 0;

	for (size_t i = 0; i < len; i++) {
		if (__builtin_mul_overflow(value, 10, &value) ||
		    __builtin_add_overflow(value, (uint64_t)(digits[i] - '0'), &value))
			return false;
	}
	*ret = value;
	return true;
}

int number_parse_u64(const char *text, uint64_t min, uint64_t max, uint64_t *ret, struct err *err)
{
	char quoted[QUOTE_SIZE];
	uint64_t value = 0;
	size_t len = strspn(text, DIGITS);

	if (len == 0 || text[len] != '\0')
		return err_set(err, EINVAL,
			       "%s is not a whole number; give one from %" PRIu64 " to %" PRIu64,
			       quote_str(text, quoted, sizeof(quoted)), min, max);
	if (!read_digits(text, len, &value) || value < min || value > max)
		return err_set(err, ERANGE,
			       "%s is out of range; give a number from %" PRIu64 " to %" PRIu64,
			       quote_str(text, quoted, sizeof(quoted)), min, max);
	*ret = value;
	return 0;
}

int number_parse_u32(const char *text, uint32_t min, uint32_t max, uint32_t *ret, struct err *err)
{
	uint64_t value = 0;
	int r = number_parse_u64(text, min, max, &value, err);
	if (r < 0)
		return r;
	*ret = (uint32_t)value;
	return 0;
}

/* --- Sizes --------------------------------------------------------------------------------- */

static uint64_t power(uint64_t base, unsigned int exponent)
{
	uint64_t value = 1;
	while (exponent-- > 0)
		value *= base;
	return value;
}

/* What the suffix multiplies by; 0 where it is none. */
static uint64_t suffix_factor(const char *suffix)
{
	static const char letters[] = "kmgt";

	if (suffix[0] == '\0')
		return 1;
	const char *letter = strchr(letters, suffix[0] | 0x20);
	if (!letter)
		return 0;
	unsigned int exponent = (unsigned int)(letter - letters) + 1;
	if (suffix[1] == '\0' || strcasecmp(suffix + 1, "ib") == 0)
		return power(1024, exponent);
	return strcasecmp(suffix + 1, "b") == 0 ? power(1000, exponent) : 0;
}

/*
 * 0.DIGITS times FACTOR, rounded down, whatever the number of digits: worked from the last digit
 * on, where the parts of a whole that are dropped can never carry.
 */
static uint64_t fraction_of(const char *digits, size_t len, uint64_t factor)
{
	uint64_t carry = 0;

	while (len-- > 0)
		carry = ((uint64_t)(digits[len] - '0') * factor + carry) / 10;
	return carry;
}

static int bad_size(const char *text, struct err *err)
{
	char quoted[QUOTE_SIZE];

	quote_str(text, quoted, sizeof(quoted));
	if (text[0] == '-')
		return err_set(err, EINVAL, "size %s must not be negative", quoted);
	return err_set(err, EINVAL,
		       "%s is not a size; give a number with K, M, G or T (powers of 1024), "
		       "or KB, MB, GB or TB (powers of 1000), without a blank",
		       quoted);
}

int number_parse_size(const char *text, bool allow_zero, uint64_t *ret_bytes, struct err *err)
{
	char quoted[QUOTE_SIZE];
	struct decimal d;
	uint64_t bytes = 0;

	if (!scan_decimal(text, &d))
		return bad_size(text, err);
	uint64_t factor = suffix_factor(d.rest);
	if (factor == 0)
		return bad_size(text, err);
	if (factor == 1 && d.fraction_len > 0)
		return err_set(err, EINVAL,
			       "size %s is a part of a byte; a decimal needs a suffix, as in 1.5G",
			       quote_str(text, quoted, sizeof(quoted)));
	if (!read_digits(d.whole, d.whole_len, &bytes) ||
	    __builtin_mul_overflow(bytes, factor, &bytes) ||
	    __builtin_add_overflow(bytes, fraction_of(d.fraction, d.fraction_len, factor),
				   &bytes) ||
	    bytes > NUMBER_SIZE_MAX)
		return err_set(err, ERANGE,
			       "size %s is too large; the largest is %" PRIu64 " bytes",
			       quote_str(text, quoted, sizeof(quoted)), NUMBER_SIZE_MAX);
	if (bytes == 0 && !allow_zero)
		return err_set(err, ERANGE, "size %s is zero; give at least 1",
			       quote_str(text, quoted, sizeof(quoted)));
	*ret_bytes = bytes;
	return 0;
}

const char *number_print_size(uint64_t bytes, char out[NUMBER_TEXT_SIZE])
{
	static const char letters[] = "KMGT";
	char suffix[2] = "";

	for (size_t i = 0; letters[i] && bytes > 0 && bytes % 1024 == 0; i++) {
		bytes /= 1024;
		suffix[0] = letters[i];
	}
	snprintf(out, NUMBER_TEXT_SIZE, "%" PRIu64 "%s", bytes, suffix);
	return out;
}

/* --- Durations ----------------------------------------------------------------------------- */

/* 0.DIGITS seconds in milliseconds, rounded up. */
static uint64_t fraction_ms(const char *digits, size_t len)
{
	uint64_t ms = fraction_of(digits, len, 1000);
	for (size_t i = 3; i < len; i++) {
		if (digits[i] != '0')
			return ms + 1;
	}
	return ms;
}

int number_parse_duration(const char *text, uint64_t *ret_ms, struct err *err)
{
	char quoted[QUOTE_SIZE];
	struct decimal d;
	uint64_t ms = 0;

	quote_str(text, quoted, sizeof(quoted));
	if (!scan_decimal(text, &d) || d.rest[0] != '\0') {
		if (text[0] == '-')
			return err_set(err, EINVAL, "duration %s must not be negative", quoted);
		return err_set(err, EINVAL, "%s is not a duration; give seconds, as in 30 or 0.25",
			       quoted);
	}
	if (!read_digits(d.whole, d.whole_len, &ms) || __builtin_mul_overflow(ms, 1000, &ms) ||
	    __builtin_add_overflow(ms, fraction_ms(d.fraction, d.fraction_len), &ms) ||
	    ms > INT64_MAX)
		return err_set(err, ERANGE,
			       "duration %s is too long; the longest is %" PRId64 " seconds",
			       quoted, INT64_MAX / 1000);
	if (ms == 0)
		return err_set(err, ERANGE, "duration %s is zero; leave it out for no limit",
			       quoted);
	*ret_ms = ms;
	return 0;
}

const char *number_print_duration(uint64_t ms, char out[NUMBER_TEXT_SIZE])
{
	unsigned int part = (unsigned int)(ms % 1000);
	int digits = 3;

	if (part == 0) {
		snprintf(out, NUMBER_TEXT_SIZE, "%" PRIu64, ms / 1000);
		return out;
	}
	for (; part % 10 == 0; part /= 10)
		digits--;
	snprintf(out, NUMBER_TEXT_SIZE, "%" PRIu64 ".%0*u", ms / 1000, digits, part);
	return out;
}
