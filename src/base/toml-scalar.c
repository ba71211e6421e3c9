/* SPDX-License-Identifier: Apache-2.0 */
/*
 * TOML: booleans, numbers and date-times. The form is checked in full before a value is made, so
 * conversion sees plain digits only.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/timestamp.h"
#include "base/toml_internal.h"
#include "base/util.h"
#include "base/value_internal.h"

static bool is_token_char(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       (c && strchr("+-_.:", c));
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* --- Integers ------------------------------------------------------------------------------ */

static int digit_of(char c)
{
	if (is_digit(c))
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	return c >= 'A' && c <= 'F' ? c - 'A' + 10 : 99;
}

/*
 * The length of the run of digits of BASE at S, in which single underscores may stand between two
 * digits; 0 where there is none.
 */
static size_t digit_run(const char *s, int base)
{
	size_t n = 0;

	while (digit_of(s[n]) < base || (n > 0 && s[n] == '_' && digit_of(s[n + 1]) < base))
		n++;
	return n;
}

static int fail_range(struct toml *t, const char *token)
{
	char quoted[QUOTE_SIZE];
	return toml_fail(t, "integer %s does not fit in 64 bits",
			 quote_str(token, quoted, sizeof(quoted)));
}

static int fail_token(struct toml *t, const char *token)
{
	char quoted[QUOTE_SIZE];
	const char *first = token + (token[0] == '+' || token[0] == '-');

	quote_str(token, quoted, sizeof(quoted));
	if (is_digit(*first))
		return toml_fail(t, "%s is not a number; a string needs quotes", quoted);
	return toml_fail(t, "%s is not a value; a string needs quotes", quoted);
}

/* Reads DIGITS, a run to the end of TOKEN. */
static int make_integer(struct toml *t, const char *token, const char *digits, int base,
			struct value **ret_v)
{
	bool negative = token[0] == '-';
	int64_t value = 0;

	for (; *digits; digits++) {
		if (*digits == '_')
			continue;
		int digit = digit_of(*digits);
		if (__builtin_mul_overflow(value, base, &value) ||
		    __builtin_add_overflow(value, negative ? -digit : digit, &value))
			return fail_range(t, token);
	}
	*ret_v = value_new_int(value);
	return 0;
}

/* 0x, 0o and 0b take no sign. */
static int read_prefixed(struct toml *t, const char *token, struct value **ret_v)
{
	int base = token[1] == 'x' ? 16 : token[1] == 'o' ? 8 : 2;
	size_t n = digit_run(token + 2, base);

	if (n == 0 || token[2 + n] != '\0')
		return fail_token(t, token);
	return make_integer(t, token, token + 2, base, ret_v);
}

/* --- Floats -------------------------------------------------------------------------------- */

/* Whether S, which follows the whole part, is the rest of a float: fraction, exponent, or both. */
static bool is_float_rest(const char *s)
{
	if (*s == '.') {
		size_t n = digit_run(s + 1, 10);
		if (n == 0)
			return false;
		s += 1 + n;
	}
	if (*s == 'e' || *s == 'E') {
		s++;
		s += *s == '+' || *s == '-';
		size_t n = digit_run(s, 10);
		if (n == 0)
			return false;
		s += n;
	}
	return *s == '\0';
}

static int make_float(const char *token, struct value **ret_v)
{
	auto_free char *plain = xstrdup(token);
	size_t n = 0;

	for (const char *p = token; *p; p++) {
		if (*p != '_')
			plain[n++] = *p;
	}
	plain[n] = '\0';
	*ret_v = value_new(VALUE_FLOAT);
	(*ret_v)->real = value_read_real(plain);
	return 0;
}

static int read_special(const char *token, struct value **ret_v)
{
	bool has_sign = token[0] == '+' || token[0] == '-';
	bool is_nan = str_eq(token + has_sign, "nan");

	if (!is_nan && !str_eq(token + has_sign, "inf"))
		return -ENOENT;
	*ret_v = value_new(VALUE_FLOAT);
	(*ret_v)->real =
		copysign(is_nan ? (double)NAN : (double)INFINITY, token[0] == '-' ? -1.0 : 1.0);
	return 0;
}

static int read_number(struct toml *t, const char *token, struct value **ret_v)
{
	const char *whole = token + (token[0] == '+' || token[0] == '-');
	size_t n = digit_run(whole, 10);

	if (token[0] == '0' && token[1] && strchr("xob", token[1]))
		return read_prefixed(t, token, ret_v);
	if (n == 0)
		return fail_token(t, token);
	bool is_integer = whole[n] == '\0';
	if (!is_integer && !is_float_rest(whole + n))
		return fail_token(t, token);
	if (whole[0] == '0' && n > 1) {
		char quoted[QUOTE_SIZE];
		return toml_fail(t, "number %s must not begin with a zero",
				 quote_str(token, quoted, sizeof(quoted)));
	}
	return is_integer ? make_integer(t, token, whole, 10, ret_v) : make_float(token, ret_v);
}

/* --- Date-times ---------------------------------------------------------------------------- */

static enum value_kind date_time_kind(const struct date_time *dt)
{
	if (dt->has_offset)
		return VALUE_OFFSET_DATETIME;
	if (dt->has_date)
		return dt->has_time ? VALUE_LOCAL_DATETIME : VALUE_LOCAL_DATE;
	return VALUE_LOCAL_TIME;
}

static int read_date_time(struct toml *t, struct value **ret_v)
{
	struct date_time dt;
	struct err why = {0};
	int n = date_time_scan(t->p, (size_t)(t->end - t->p), &dt, &why);

	if (n < 0)
		return toml_fail(t, "%s", why.msg);
	if (is_token_char(toml_peek(t, (size_t)n))) {
		t->p += n;
		return toml_fail_expected(t, "the end of the date or time");
	}
	char *text = xstrndup(t->p, (size_t)n);
	for (char *p = text; *p; p++) {
		if (*p == 't' || *p == ' ')
			*p = 'T';
		else if (*p == 'z')
			*p = 'Z';
	}
	*ret_v = value_new_text_take(date_time_kind(&dt), text, (size_t)n);
	t->p += n;
	return 0;
}

static bool is_date_time(const struct toml *t)
{
	size_t n = 0;
	while (is_digit(toml_peek(t, n)))
		n++;
	return (n >= 1 && toml_peek(t, n) == '-') || (n == 2 && toml_peek(t, n) == ':');
}

/* --- All ----------------------------------------------------------------------------------- */

static int read_token(struct toml *t, const char *token, struct value **ret_v)
{
	if (str_eq(token, "true") || str_eq(token, "false")) {
		*ret_v = value_new_bool(token[0] == 't');
		return 0;
	}
	if (read_special(token, ret_v) == 0)
		return 0;
	return read_number(t, token, ret_v);
}

int toml_read_scalar(struct toml *t, struct value **ret_v)
{
	size_t n = 0;

	if (is_date_time(t))
		return read_date_time(t, ret_v);
	while (is_token_char(toml_peek(t, n)))
		n++;
	if (n == 0)
		return toml_fail_expected(t, "a value");
	auto_free char *token = xstrndup(t->p, n);
	int r = read_token(t, token, ret_v);
	if (r < 0)
		return r;
	t->p += n;
	return 0;
}
