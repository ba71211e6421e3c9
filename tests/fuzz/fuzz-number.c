/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any text as a number, size, duration and time: no overflow goes unnoticed, the outputs stay
 * untouched on failure, and what is printed reads back to the same value.
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/number.h"
#include "base/timestamp.h"
#include "base/util.h"
#include "fuzz.h"

#define UNTOUCHED 0x5a5a5a5a5a5a5a5aULL

static void check_failure(int r, const struct err *err, uint64_t value)
{
	assert(r == -EINVAL || r == -ERANGE);
	assert(err->code == -r && err->msg[0]);
	assert(value == UNTOUCHED);
}

static void check_size(const char *text)
{
	char printed[NUMBER_TEXT_SIZE];
	struct err err = {0};
	uint64_t bytes = UNTOUCHED;
	uint64_t again = 0;
	int r = number_parse_size(text, true, &bytes, &err);

	if (r < 0) {
		check_failure(r, &err, bytes);
		return;
	}
	assert(bytes <= NUMBER_SIZE_MAX);
	assert(number_parse_size(number_print_size(bytes, printed), true, &again, &err) == 0);
	assert(again == bytes);
	again = UNTOUCHED;
	r = number_parse_size(text, false, &again, &err);
	assert(bytes == 0 ? r == -ERANGE : r == 0 && again == bytes);
}

static void check_duration(const char *text)
{
	char printed[NUMBER_TEXT_SIZE];
	struct err err = {0};
	uint64_t ms = UNTOUCHED;
	uint64_t again = 0;
	int r = number_parse_duration(text, &ms, &err);

	if (r < 0) {
		check_failure(r, &err, ms);
		return;
	}
	assert(ms >= 1);
	assert(number_parse_duration(number_print_duration(ms, printed), &again, &err) == 0);
	assert(again == ms);
}

static void check_integer(const char *text)
{
	struct err err = {0};
	uint64_t value = UNTOUCHED;
	int r = number_parse_u64(text, 3, 70000, &value, &err);

	if (r < 0)
		check_failure(r, &err, value);
	else
		assert(value >= 3 && value <= 70000);
}

static void check_time(const char *text)
{
	char printed[TIMESTAMP_TEXT_SIZE];
	struct err err = {0};
	struct timestamp ts = {0};
	struct timestamp again = {0};

	if (timestamp_parse(text, &ts, &err) < 0)
		return;
	assert(ts.ns >= 0 && ts.ns < 1000000000);
	int r = timestamp_parse(timestamp_print(ts, printed), &again, &err);
	assert(r == TIMESTAMP_OK);
	/* An offset can lead out of the years that can be written. */
	if (ts.sec >= -62135596800LL && ts.sec <= 253402300799LL)
		assert(again.sec == ts.sec && again.ns == ts.ns);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	auto_free char *text = xzalloc(size + 1);

	if (size)
		memcpy(text, data, size);
	check_size(text);
	check_duration(text);
	check_integer(text);
	check_time(text);
	return 0;
}
