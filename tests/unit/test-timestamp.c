/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests of dates and times: the calendar at its edges, RFC 3339 in and out.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include "base/err.h"
#include "base/timestamp.h"
#include "base/util.h"

static void test_parse(void **state)
{
	static const struct {
		const char *text;
		int result;
		int64_t sec;
		int32_t ns;
	} rows[] = {
		{"1970-01-01T00:00:00Z", TIMESTAMP_OK, 0, 0},
		{"1969-12-31T23:59:59Z", TIMESTAMP_OK, -1, 0},
		{"1969-12-31T23:59:59.25Z", TIMESTAMP_OK, -1, 250000000},
		{"2026-01-31t12:00:00.5z", TIMESTAMP_OK, 1769860800, 500000000},
		{"2026-01-31 12:00:00+01:30", TIMESTAMP_OK, 1769855400, 0},
		{"2026-01-31T12:00:00-23:59", TIMESTAMP_OK, 1769947140, 0},
		{"2026-01-31T12:00:00-00:00", TIMESTAMP_OK, 1769860800, 0},
		{"2026-01-31T12:00:00", TIMESTAMP_NO_OFFSET, 1769860800, 0},
		{"2000-02-29T00:00:00Z", TIMESTAMP_OK, 951782400, 0},
		{"2024-12-31T23:59:59.9999999999Z", TIMESTAMP_OK, 1735689599, 999999999},
		{"0001-01-01T00:00:00Z", TIMESTAMP_OK, -62135596800, 0},
		{"9999-12-31T23:59:59Z", TIMESTAMP_OK, 253402300799, 0},
		{"2038-01-19T03:14:08Z", TIMESTAMP_OK, 2147483648, 0},
		{"1900-02-29T00:00:00Z", -EINVAL, 0, 0},
		{"2023-02-29T00:00:00Z", -EINVAL, 0, 0},
		{"2026-04-31T00:00:00Z", -EINVAL, 0, 0},
		{"2026-00-01T00:00:00Z", -EINVAL, 0, 0},
		{"2026-13-01T00:00:00Z", -EINVAL, 0, 0},
		{"2026-01-00T00:00:00Z", -EINVAL, 0, 0},
		{"0000-01-01T00:00:00Z", -EINVAL, 0, 0},
		{"2026-01-01T24:00:00Z", -EINVAL, 0, 0},
		{"2026-01-01T00:60:00Z", -EINVAL, 0, 0},
		{"2016-12-31T23:59:60Z", -EINVAL, 0, 0},
		{"2026-01-01T00:00:00+24:00", -EINVAL, 0, 0},
		{"2026-01-01T00:00:00+00:60", -EINVAL, 0, 0},
		{"2026-01-01T00:00:00+0100", -EINVAL, 0, 0},
		{"2026-01-01T00:00:00.Z", -EINVAL, 0, 0},
		{"2026-01-01T00:00Z", -EINVAL, 0, 0},
		{"2026-01-01", -EINVAL, 0, 0},
		{"12:00:00", -EINVAL, 0, 0},
		{"2026-1-1T00:00:00Z", -EINVAL, 0, 0},
		{"12026-01-01T00:00:00Z", -EINVAL, 0, 0},
		{"2026-01-01T00:00:00Zx", -EINVAL, 0, 0},
		{"2026-01-01T00:00:00Z ", -EINVAL, 0, 0},
		{" 2026-01-01T00:00:00Z", -EINVAL, 0, 0},
		{"1769860800", -EINVAL, 0, 0},
		{"", -EINVAL, 0, 0},
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct err err = {0};
		struct timestamp ts = {.sec = 7, .ns = 7};
		int r = timestamp_parse(rows[i].text, &ts, &err);
		assert_int_equal(r, rows[i].result);
		assert_int_equal(ts.sec, r < 0 ? 7 : rows[i].sec);
		assert_int_equal(ts.ns, r < 0 ? 7 : rows[i].ns);
		assert_int_equal(err.code, r < 0 ? EINVAL : 0);
	}
}

static void test_messages(void **state)
{
	static const char *const rows[][2] = {
		{"now", "\"now\" is not a time: a date has the form YYYY-MM-DD"},
		{"2026-01-31",
		 "\"2026-01-31\" is not a time; give one of the form 2026-01-31T12:00:00Z"},
		{"2023-02-29T00:00:00Z",
		 "\"2023-02-29T00:00:00Z\" is not a time: there is no day 29 in 2023-02"},
		{"2016-12-31T23:59:60Z",
		 "\"2016-12-31T23:59:60Z\" is not a time: leap seconds are not "
		 "supported; write :59"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct err err = {0};
		struct timestamp ts;
		assert_int_equal(timestamp_parse(rows[i][0], &ts, &err), -EINVAL);
		assert_string_equal(err.msg, rows[i][1]);
	}
}

static void test_print(void **state)
{
	static const struct {
		struct timestamp ts;
		const char *ms;
		const char *full;
	} rows[] = {
		{{0, 0}, "1970-01-01T00:00:00.000Z", "1970-01-01T00:00:00Z"},
		{{-1, 999999999}, "1969-12-31T23:59:59.999Z", "1969-12-31T23:59:59.999999999Z"},
		{{1769860800, 50000000}, "2026-01-31T12:00:00.050Z", "2026-01-31T12:00:00.05Z"},
		{{951782400, 1}, "2000-02-29T00:00:00.000Z", "2000-02-29T00:00:00.000000001Z"},
		{{INT64_MIN, 5}, "0001-01-01T00:00:00.000Z", "0001-01-01T00:00:00Z"},
		{{INT64_MAX, 5}, "9999-12-31T23:59:59.999Z", "9999-12-31T23:59:59.999999999Z"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		char out[TIMESTAMP_TEXT_SIZE];
		assert_string_equal(timestamp_print_ms(rows[i].ts, out), rows[i].ms);
		assert_string_equal(timestamp_print(rows[i].ts, out), rows[i].full);
	}
}

/* Every day of some centuries, and the first and last years, come back as they went. */
static void test_round_trip(void **state)
{
	static const int64_t spans[][2] = {
		{-62135596800, -62135596800 + 800LL * 86400},
		{-4102444800, 4102444800},
		{253402300799 - 800LL * 86400, 253402300799},
	};

	for (size_t i = 0; i < ARRAY_SIZE(spans); i++) {
		for (int64_t sec = spans[i][0]; sec <= spans[i][1]; sec += 86400 - 1) {
			char out[TIMESTAMP_TEXT_SIZE];
			struct timestamp again;
			timestamp_print((struct timestamp){.sec = sec}, out);
			assert_int_equal(timestamp_parse(out, &again, NULL), TIMESTAMP_OK);
			assert_int_equal(again.sec, sec);
		}
	}
}

static void test_scan(void **state)
{
	static const struct {
		const char *text;
		int taken;
	} rows[] = {
		{"2026-01-31", 10},
		{"2026-01-31 ", 10},
		{"2026-01-31 x", 10},
		{"2026-01-31 12:00:00", 19},
		{"2026-01-31T12:00:00Z,", 20},
		{"12:00:00Z", 8},
		{"12:00:00.125]", 12},
		{"2026-01-31 1", -EINVAL},
		{"2026-01-31T", -EINVAL},
		{"12:00", -EINVAL},
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct date_time dt;
		assert_int_equal(date_time_scan(rows[i].text, strlen(rows[i].text), &dt, NULL),
				 rows[i].taken);
	}
	struct date_time dt;
	assert_int_equal(date_time_scan("2026-01-31T12:00:00Z", 10, &dt, NULL), 10);
	assert_false(dt.has_time);
}

static void test_now(void **state)
{
	char out[TIMESTAMP_TEXT_SIZE];
	struct timestamp again;
	struct timestamp now = timestamp_now();

	assert_int_equal(timestamp_parse(timestamp_print(now, out), &again, NULL), TIMESTAMP_OK);
	assert_int_equal(again.sec, now.sec);
	assert_int_equal(again.ns, now.ns);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_parse), cmocka_unit_test(test_messages),
		cmocka_unit_test(test_print), cmocka_unit_test(test_round_trip),
		cmocka_unit_test(test_scan),  cmocka_unit_test(test_now),
	};
	return cmocka_run_group_tests_name("timestamp", tests, NULL, NULL);
}
