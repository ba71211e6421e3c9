/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests of numbers, sizes and durations: every row is exact, message included where one is given.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include "base/err.h"
#include "base/number.h"
#include "base/util.h"

#define UNTOUCHED 77

static void test_u64(void **state)
{
	static const struct {
		const char *text;
		int result;
		uint64_t value;
	} rows[] = {
		{"0", 0, 0},
		{"007", 0, 7},
		{"18446744073709551615", 0, UINT64_MAX},
		{"18446744073709551616", -ERANGE, 0},
		{"99999999999999999999999", -ERANGE, 0},
		{"", -EINVAL, 0},
		{" 1", -EINVAL, 0},
		{"1 ", -EINVAL, 0},
		{"+1", -EINVAL, 0},
		{"-1", -EINVAL, 0},
		{"0x10", -EINVAL, 0},
		{"1e3", -EINVAL, 0},
		{"1.0", -EINVAL, 0},
		{"1\n", -EINVAL, 0},
		{"\xd9\xa1", -EINVAL, 0}, /* an Arabic digit */
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct err err = {0};
		uint64_t value = UNTOUCHED;
		int r = number_parse_u64(rows[i].text, 0, UINT64_MAX, &value, &err);
		assert_int_equal(r, rows[i].result);
		assert_int_equal(value, r < 0 ? UNTOUCHED : rows[i].value);
		assert_int_equal(err.code, -r);
	}
}

static void test_ranges(void **state)
{
	struct err err = {0};
	uint64_t wide = UNTOUCHED;
	uint32_t narrow = UNTOUCHED;

	assert_int_equal(number_parse_u64("1", 1, 10, &wide, &err), 0);
	assert_int_equal(wide, 1);
	assert_int_equal(number_parse_u64("10", 1, 10, &wide, &err), 0);
	assert_int_equal(number_parse_u64("0", 1, 10, &wide, &err), -ERANGE);
	assert_string_equal(err.msg, "\"0\" is out of range; give a number from 1 to 10");
	assert_int_equal(number_parse_u64("11", 1, 10, &wide, &err), -ERANGE);
	assert_int_equal(wide, 10);
	assert_int_equal(number_parse_u64("ten\x1b", 1, 10, &wide, NULL), -EINVAL);
	assert_int_equal(number_parse_u64("ten\x1b", 1, 10, &wide, &err), -EINVAL);
	assert_string_equal(err.msg, "\"ten\\x1b\" is not a whole number; give one from 1 to 10");

	assert_int_equal(number_parse_u32("4294967295", 0, UINT32_MAX, &narrow, &err), 0);
	assert_int_equal(narrow, UINT32_MAX);
	assert_int_equal(number_parse_u32("4294967296", 0, UINT32_MAX, &narrow, &err), -ERANGE);
	assert_int_equal(narrow, UINT32_MAX);
}

static void test_sizes(void **state)
{
	static const struct {
		const char *text;
		int result;
		uint64_t bytes;
	} rows[] = {
		{"1", 0, 1},
		{"4096", 0, 4096},
		{"1K", 0, 1024},
		{"1k", 0, 1024},
		{"1KiB", 0, 1024},
		{"1kIb", 0, 1024},
		{"1KB", 0, 1000},
		{"1kb", 0, 1000},
		{"3M", 0, 3 << 20},
		{"3MiB", 0, 3 << 20},
		{"3MB", 0, 3000000},
		{"2G", 0, 2ULL << 30},
		{"2gib", 0, 2ULL << 30},
		{"2GB", 0, 2000000000},
		{"8T", 0, 8ULL << 40},
		{"8TiB", 0, 8ULL << 40},
		{"8TB", 0, 8000000000000},
		{"1.5G", 0, 1610612736},
		{"0.5K", 0, 512},
		{"1.0001K", 0, 1024}, /* rounded down */
		{"0.3KB", 0, 300},
		{"0.0009999KB", -ERANGE, 0},
		{"0.0019999KB", 0, 1},
		{"1.999999999999999999999999999999KB", 0, 1999},
		/* 1 / 2^40 in full: exactly one byte of a T, and just below it. */
		{"0.0000000000009094947017729282379150390625T", 0, 1},
		{"0.0000000000009094947017729282379150390624T", -ERANGE, 0},
		{"9223372036854775807", 0, INT64_MAX},
		{"9223372036854775808", -ERANGE, 0},
		{"8388607T", 0, 8388607ULL << 40},
		{"8388608T", -ERANGE, 0},
		{"8388607.9999999999999T", 0, (8388608ULL << 40) - 1},
		{"99999999999999999999", -ERANGE, 0},
		{"99999999999999999999T", -ERANGE, 0},
		{"0", -ERANGE, 0},
		{"0K", -ERANGE, 0},
		{"0.0G", -ERANGE, 0},
		{"1.5", -EINVAL, 0},
		{"1.0", -EINVAL, 0},
		{"-1", -EINVAL, 0},
		{"-1K", -EINVAL, 0},
		{"+1K", -EINVAL, 0},
		{"", -EINVAL, 0},
		{"K", -EINVAL, 0},
		{".5K", -EINVAL, 0},
		{"5.K", -EINVAL, 0},
		{"1 K", -EINVAL, 0},
		{" 1K", -EINVAL, 0},
		{"1K ", -EINVAL, 0},
		{"1B", -EINVAL, 0},
		{"1Ki", -EINVAL, 0},
		{"1KiBx", -EINVAL, 0},
		{"1KK", -EINVAL, 0},
		{"1P", -EINVAL, 0},
		{"1E", -EINVAL, 0},
		{"1e3", -EINVAL, 0},
		{"0x10", -EINVAL, 0},
		{"1,5G", -EINVAL, 0},
		{"1_000", -EINVAL, 0},
		{"1.5.5G", -EINVAL, 0},
		{"1+", -EINVAL, 0},
		{"1\x0b", -EINVAL, 0},
		{"inf", -EINVAL, 0},
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct err err = {0};
		uint64_t bytes = UNTOUCHED;
		int r = number_parse_size(rows[i].text, false, &bytes, &err);
		assert_int_equal(r, rows[i].result);
		assert_int_equal(bytes, r < 0 ? UNTOUCHED : rows[i].bytes);
		assert_int_equal(err.code, -r);
	}
}

static void test_size_messages(void **state)
{
	static const char *const rows[][2] = {
		{"12Q",
		 "\"12Q\" is not a size; give a number with K, M, G or T (powers of 1024), or KB, "
		 "MB, GB or TB (powers of 1000), without a blank"},
		{"-5", "size \"-5\" must not be negative"},
		{"1.5", "size \"1.5\" is a part of a byte; a decimal needs a suffix, as in 1.5G"},
		{"9000000T",
		 "size \"9000000T\" is too large; the largest is 9223372036854775807 bytes"},
		{"0", "size \"0\" is zero; give at least 1"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct err err = {0};
		uint64_t bytes = 0;
		assert_true(number_parse_size(rows[i][0], false, &bytes, &err) < 0);
		assert_string_equal(err.msg, rows[i][1]);
	}
}

static void test_size_zero(void **state)
{
	uint64_t bytes = UNTOUCHED;

	assert_int_equal(number_parse_size("0", true, &bytes, NULL), 0);
	assert_int_equal(bytes, 0);
	bytes = UNTOUCHED;
	assert_int_equal(number_parse_size("0.0001K", true, &bytes, NULL), 0);
	assert_int_equal(bytes, 0);
}

static void test_size_print(void **state)
{
	static const struct {
		uint64_t bytes;
		const char *text;
	} rows[] = {
		{0, "0"},
		{1, "1"},
		{1000, "1000"},
		{1024, "1K"},
		{1536, "1536"},
		{1025, "1025"},
		{3 << 20, "3M"},
		{1610612736, "1536M"},
		{2ULL << 30, "2G"},
		{8ULL << 40, "8T"},
		{1ULL << 50, "1024T"},
		{INT64_MAX, "9223372036854775807"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		char out[NUMBER_TEXT_SIZE];
		assert_string_equal(number_print_size(rows[i].bytes, out), rows[i].text);
	}
}

static void test_durations(void **state)
{
	static const struct {
		const char *text;
		int result;
		uint64_t ms;
		const char *printed;
	} rows[] = {
		{"30", 0, 30000, "30"},
		{"0.25", 0, 250, "0.25"},
		{"1.5", 0, 1500, "1.5"},
		{"0.001", 0, 1, "0.001"},
		{"0.0001", 0, 1, "0.001"},
		{"0.00000000000000000000000001", 0, 1, "0.001"},
		{"1.0001", 0, 1001, "1.001"},
		{"1.9999", 0, 2000, "2"},
		{"1.0010", 0, 1001, "1.001"},
		{"007.50", 0, 7500, "7.5"},
		{"9223372036854775", 0, 9223372036854775000, "9223372036854775"},
		{"9223372036854775.807", 0, INT64_MAX, "9223372036854775.807"},
		{"9223372036854775.8071", -ERANGE, 0, NULL},
		{"9223372036854776", -ERANGE, 0, NULL},
		{"18446744073709551.616", -ERANGE, 0, NULL},
		{"99999999999999999999", -ERANGE, 0, NULL},
		{"0", -ERANGE, 0, NULL},
		{"0.0", -ERANGE, 0, NULL},
		{"0.000000", -ERANGE, 0, NULL},
		{"", -EINVAL, 0, NULL},
		{"-1", -EINVAL, 0, NULL},
		{"+1", -EINVAL, 0, NULL},
		{"1s", -EINVAL, 0, NULL},
		{"1.", -EINVAL, 0, NULL},
		{".5", -EINVAL, 0, NULL},
		{"1e3", -EINVAL, 0, NULL},
		{"inf", -EINVAL, 0, NULL},
		{"nan", -EINVAL, 0, NULL},
		{"1 ", -EINVAL, 0, NULL},
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct err err = {0};
		char out[NUMBER_TEXT_SIZE];
		uint64_t ms = UNTOUCHED;
		int r = number_parse_duration(rows[i].text, &ms, &err);
		assert_int_equal(r, rows[i].result);
		assert_int_equal(ms, r < 0 ? UNTOUCHED : rows[i].ms);
		assert_int_equal(err.code, -r);
		if (r == 0)
			assert_string_equal(number_print_duration(ms, out), rows[i].printed);
	}
}

static void test_duration_messages(void **state)
{
	static const char *const rows[][2] = {
		{"soon", "\"soon\" is not a duration; give seconds, as in 30 or 0.25"},
		{"-1", "duration \"-1\" must not be negative"},
		{"0", "duration \"0\" is zero; leave it out for no limit"},
		{"9223372036854776", "duration \"9223372036854776\" is too long; the longest is "
				     "9223372036854775 seconds"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct err err = {0};
		uint64_t ms = 0;
		assert_true(number_parse_duration(rows[i][0], &ms, &err) < 0);
		assert_string_equal(err.msg, rows[i][1]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_u64),	  cmocka_unit_test(test_ranges),
		cmocka_unit_test(test_sizes),	  cmocka_unit_test(test_size_messages),
		cmocka_unit_test(test_size_zero), cmocka_unit_test(test_size_print),
		cmocka_unit_test(test_durations), cmocka_unit_test(test_duration_messages),
	};
	return cmocka_run_group_tests_name("number", tests, NULL, NULL);
}
