/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Dates and times; see the header. The calendar is the Gregorian one throughout, worked in whole
 * days, so nothing depends on the C library's time zone or locale.
 */
#include "base/timestamp.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/buf.h"
#include "base/err.h"

#define SECONDS_PER_DAY 86400
/* 0001-01-01T00:00:00Z and 9999-12-31T23:59:59Z. */
#define FIRST_SECOND (-62135596800LL)
#define LAST_SECOND  253402300799LL

static bool is_leap_year(int year)
{
	return (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
}

static int days_in_month(int year, int month)
{
	static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
	return days[month - 1] + (month == 2 && is_leap_year(year));
}

/* --- Scanning ------------------------------------------------------------------------------ */

struct scanner {
	const char *p;
	const char *end;
};

static bool is_digit_at(const struct scanner *s, size_t offset)
{
	return (size_t)(s->end - s->p) > offset && s->p[offset] >= '0' && s->p[offset] <= '9';
}

static bool is_char_at(const struct scanner *s, size_t offset, char c)
{
	return (size_t)(s->end - s->p) > offset && s->p[offset] == c;
}

/* Takes exactly N digits and no more than that many. */
static bool take_digits(struct scanner *s, size_t n, int *ret)
{
	int value = 0;

	for (size_t i = 0; i < n; i++) {
		if (!is_digit_at(s, i))
			return false;
		value = value * 10 + (s->p[i] - '0');
	}
	s->p += n;
	*ret = value;
	return true;
}

static bool take_char(struct scanner *s, char c)
{
	if (!is_char_at(s, 0, c))
		return false;
	s->p++;
	return true;
}

static int scan_date(struct scanner *s, struct date_time *dt, struct err *err)
{
	if (!take_digits(s, 4, &dt->year) || !take_char(s, '-') || !take_digits(s, 2, &dt->month) ||
	    !take_char(s, '-') || !take_digits(s, 2, &dt->day) || is_digit_at(s, 0))
		return err_set(err, EINVAL, "a date has the form YYYY-MM-DD");
	if (dt->year < 1)
		return err_set(err, EINVAL, "there is no year 0000");
	if (dt->month < 1 || dt->month > 12)
		return err_set(err, EINVAL, "there is no month %02d", dt->month);
	if (dt->day < 1 || dt->day > days_in_month(dt->year, dt->month))
		return err_set(err, EINVAL, "there is no day %02d in %04d-%02d", dt->day, dt->year,
			       dt->month);
	dt->has_date = true;
	return 0;
}

/* The digits behind the point: nine of them count. */
static int scan_fraction(struct scanner *s, int32_t *ret_ns, struct err *err)
{
	int32_t ns = 0;
	int32_t unit = 100000000;

	if (!is_digit_at(s, 0))
		return err_set(err, EINVAL, "digits must follow the point of the seconds");
	for (; is_digit_at(s, 0); s->p++, unit /= 10)
		ns += (s->p[0] - '0') * unit;
	*ret_ns = ns;
	return 0;
}

static int scan_time(struct scanner *s, struct date_time *dt, struct err *err)
{
	if (!take_digits(s, 2, &dt->hour) || !take_char(s, ':') ||
	    !take_digits(s, 2, &dt->minute) || !take_char(s, ':') ||
	    !take_digits(s, 2, &dt->second) || is_digit_at(s, 0))
		return err_set(err, EINVAL, "a time has the form HH:MM:SS");
	if (dt->second == 60)
		return err_set(err, EINVAL, "leap seconds are not supported; write :59");
	if (dt->hour > 23 || dt->minute > 59 || dt->second > 59)
		return err_set(err, EINVAL, "there is no time %02d:%02d:%02d", dt->hour, dt->minute,
			       dt->second);
	dt->has_time = true;
	return take_char(s, '.') ? scan_fraction(s, &dt->ns, err) : 0;
}

static int scan_offset(struct scanner *s, struct date_time *dt, struct err *err)
{
	int hours = 0;
	int minutes = 0;

	if (take_char(s, 'Z') || take_char(s, 'z')) {
		dt->has_offset = true;
		return 0;
	}
	if (!is_char_at(s, 0, '+') && !is_char_at(s, 0, '-'))
		return 0;
	int sign = *s->p++ == '-' ? -1 : 1;
	if (!take_digits(s, 2, &hours) || !take_char(s, ':') || !take_digits(s, 2, &minutes) ||
	    is_digit_at(s, 0))
		return err_set(err, EINVAL, "an offset has the form +HH:MM or -HH:MM");
	if (hours > 23 || minutes > 59)
		return err_set(err, EINVAL, "there is no offset %02d:%02d", hours, minutes);
	dt->has_offset = true;
	dt->offset_minutes = sign * (hours * 60 + minutes);
	return 0;
}

/* Whether a time follows the date: after T always, after a blank if a digit comes next. */
static bool take_separator(struct scanner *s)
{
	if (take_char(s, 'T') || take_char(s, 't'))
		return true;
	return is_digit_at(s, 1) && take_char(s, ' ');
}

int date_time_scan(const char *text, size_t len, struct date_time *ret_dt, struct err *err)
{
	struct scanner s = {.p = text, .end = text + len};
	struct date_time dt = {0};

	if (len > 2 && text[2] == ':') {
		int r = scan_time(&s, &dt, err);
		if (r < 0)
			return r;
	} else {
		int r = scan_date(&s, &dt, err);
		if (r == 0 && take_separator(&s))
			r = scan_time(&s, &dt, err);
		if (r == 0 && dt.has_time)
			r = scan_offset(&s, &dt, err);
		if (r < 0)
			return r;
	}
	*ret_dt = dt;
	return (int)(s.p - text);
}

/* --- The epoch ----------------------------------------------------------------------------- */

/* Days from 1970-01-01 to the first day of YEAR. */
static int64_t days_before_year(int year)
{
	int64_t y = year - 1;
	return y * 365 + y / 4 - y / 100 + y / 400 - 719162;
}

static int64_t epoch_seconds(const struct date_time *dt)
{
	int64_t days = days_before_year(dt->year) + dt->day - 1;

	for (int month = 1; month < dt->month; month++)
		days += days_in_month(dt->year, month);
	int64_t minutes = (int64_t)dt->hour * 60 + dt->minute - dt->offset_minutes;
	return days * SECONDS_PER_DAY + minutes * 60 + dt->second;
}

int timestamp_parse(const char *text, struct timestamp *ret_ts, struct err *err)
{
	char quoted[QUOTE_SIZE];
	struct date_time dt;
	struct err why = {0};
	int n = date_time_scan(text, strlen(text), &dt, &why);

	quote_str(text, quoted, sizeof(quoted));
	if (n < 0)
		return err_set(err, EINVAL, "%s is not a time: %s", quoted, why.msg);
	if (text[n] != '\0' || !dt.has_date || !dt.has_time)
		return err_set(err, EINVAL,
			       "%s is not a time; give one of the form 2026-01-31T12:00:00Z",
			       quoted);
	*ret_ts = (struct timestamp){.sec = epoch_seconds(&dt), .ns = dt.ns};
	return dt.has_offset ? TIMESTAMP_OK : TIMESTAMP_NO_OFFSET;
}

/* The UTC date and time of SEC, which lies in the years 1 to 9999. */
static struct date_time split_seconds(int64_t sec)
{
	struct date_time dt = {.has_date = true, .has_time = true};
	int64_t from_first = sec - FIRST_SECOND;
	int64_t days = from_first / SECONDS_PER_DAY + days_before_year(1);
	int rest = (int)(from_first % SECONDS_PER_DAY);

	dt.year = 1970 + (int)(days / 365);
	while (dt.year > 1 && days_before_year(dt.year) > days)
		dt.year--;
	while (days_before_year(dt.year + 1) <= days)
		dt.year++;
	int day = (int)(days - days_before_year(dt.year));
	for (dt.month = 1; day >= days_in_month(dt.year, dt.month); dt.month++)
		day -= days_in_month(dt.year, dt.month);
	dt.day = day + 1;
	dt.hour = rest / 3600;
	dt.minute = rest / 60 % 60;
	dt.second = rest % 60;
	return dt;
}

/* TS, or the nearest time inside the years 1 to 9999. */
static struct timestamp clamp(struct timestamp ts)
{
	if (ts.sec < FIRST_SECOND)
		return (struct timestamp){.sec = FIRST_SECOND};
	if (ts.sec > LAST_SECOND)
		return (struct timestamp){.sec = LAST_SECOND, .ns = 999999999};
	return ts;
}

/* Prints TS, which is clamped, with DIGITS decimals, 0 to 9. */
static const char *print_digits(struct timestamp ts, int digits, char *out)
{
	struct date_time dt = split_seconds(ts.sec);
	int32_t part = ts.ns;

	for (int i = digits; i < 9; i++)
		part /= 10;
	int n = snprintf(out, TIMESTAMP_TEXT_SIZE, "%04d-%02d-%02dT%02d:%02d:%02d", dt.year,
			 dt.month, dt.day, dt.hour, dt.minute, dt.second);
	if (digits > 0)
		snprintf(out + n, TIMESTAMP_TEXT_SIZE - (size_t)n, ".%0*dZ", digits, part);
	else
		snprintf(out + n, TIMESTAMP_TEXT_SIZE - (size_t)n, "Z");
	return out;
}

const char *timestamp_print_ms(struct timestamp ts, char out[TIMESTAMP_TEXT_SIZE])
{
	return print_digits(clamp(ts), 3, out);
}

const char *timestamp_print(struct timestamp ts, char out[TIMESTAMP_TEXT_SIZE])
{
	ts = clamp(ts);
	int digits = ts.ns ? 9 : 0;
	for (int32_t part = ts.ns; digits > 0 && part % 10 == 0; part /= 10)
		digits--;
	return print_digits(ts, digits, out);
}

struct timestamp timestamp_now(void)
{
	struct timespec ts = {0};
	clock_gettime(CLOCK_REALTIME, &ts);
	return (struct timestamp){.sec = ts.tv_sec, .ns = (int32_t)ts.tv_nsec};
}
