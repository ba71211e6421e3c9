/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Dates and times as RFC 3339 writes them: scanning with full validation (days of the month, leap
 * years; years 0001 to 9999), conversion to and from the epoch, and printing. The TOML reader and
 * the options share the scanner, so that both accept the same. A leap second (:60) is refused:
 * there is no second of the epoch for it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;

struct timestamp {
	int64_t sec; /* since 1970-01-01T00:00:00Z, negative before */
	int32_t ns;  /* 0 to 999,999,999, counted forward from SEC */
};

/* The parts of a date, a time, or both, as they were written. */
struct date_time {
	bool has_date;
	bool has_time;
	bool has_offset;
	int year;
	int month; /* 1 to 12 */
	int day;
	int hour;
	int minute;
	int second;
	int32_t ns; /* further digits of the fraction are cut */
	int offset_minutes;
};

/*
 * Scans the longest date-time, date or time at the start of the LEN bytes of TEXT. Between date and
 * time stands T, t, or a blank that a digit follows. Returns the bytes taken (greater than 0), or
 * -EINVAL with a message.
 */
int date_time_scan(const char *text, size_t len, struct date_time *ret_dt, struct err *err);

enum timestamp_outcome {
	TIMESTAMP_OK = 0,
	TIMESTAMP_NO_OFFSET = 1, /* done, but TEXT names no offset and was taken as UTC */
};

/* Reads a date with a time. Returns an outcome, or -EINVAL with a message that names the value. */
int timestamp_parse(const char *text, struct timestamp *ret_ts, struct err *err);

/* Sizes OUT for the longest text that the printers write. */
#define TIMESTAMP_TEXT_SIZE 40
/*
 * Prints "2026-11-29T18:47:47.125Z", cut to milliseconds, and returns OUT. A time outside the years
 * 1 to 9999 is printed as the nearest one that is inside.
 */
const char *timestamp_print_ms(struct timestamp ts, char out[TIMESTAMP_TEXT_SIZE]);
/* The same with only the decimals that are needed, none for whole seconds. */
const char *timestamp_print(struct timestamp ts, char out[TIMESTAMP_TEXT_SIZE]);

/* The present time of the real-time clock. */
struct timestamp timestamp_now(void);
