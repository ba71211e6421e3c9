/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests of events: the exact JSON line, the exact text, the counting of repeats, and that nothing
 * which a sandbox chooses gets through unescaped.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include "base/buf.h"
#include "base/util.h"
#include "base/value.h"
#include "events/event.h"

static const struct event sample = {
	.time = {.sec = 1769860800, .ns = 125999999},
	.sandbox = "build-1",
	.pid = 4711,
	.program = "cat",
	.op = "open",
	.object = "/etc/shadow",
	.layer = "landlock",
	.rule = "no read grant covers it",
	.allow = "--fs-read /etc/shadow",
	.error = EACCES,
	.count = 1,
};

static void test_json(void **state)
{
	AUTO(buf_done) struct buf b = BUF_INIT(4096);

	assert_int_equal(event_add_json(&sample, &b), 0);
	assert_string_equal(
		buf_text(&b),
		"{\"v\":1,\"time\":\"2026-01-31T12:00:00.125Z\",\"sandbox\":\"build-1\","
		"\"pid\":4711,\"program\":\"cat\",\"op\":\"open\",\"object\":\"/etc/shadow\","
		"\"layer\":\"landlock\",\"rule\":\"no read grant covers it\","
		"\"allow\":\"--fs-read /etc/shadow\",\"errno\":\"EACCES\",\"count\":1}\n");
}

static void test_json_absent(void **state)
{
	AUTO(buf_done) struct buf b = BUF_INIT(4096);
	const struct event e = {.op = "time-out"};

	assert_int_equal(event_add_json(&e, &b), 0);
	assert_string_equal(
		buf_text(&b),
		"{\"v\":1,\"time\":\"1970-01-01T00:00:00.000Z\",\"sandbox\":null,"
		"\"pid\":null,\"program\":null,\"op\":\"time-out\",\"object\":null,"
		"\"layer\":null,\"rule\":null,\"allow\":null,\"errno\":null,\"count\":1}\n");
}

/* Names with everything in them stay one line of valid JSON, and the line is safe to print. */
static void test_json_hostile(void **state)
{
	AUTO(buf_done) struct buf b = BUF_INIT(4096);
	AUTO(value_free) struct value *v = NULL;
	struct event e = sample;

	e.program = "\x1b]0;x\x07\n{\"v\":1}";
	e.object = "/a\"\\\xff\xe2\x80\xae\xc2\x9b";
	event_add_json(&e, &b);
	for (size_t i = 0; i + 1 < b.len; i++)
		assert_true((unsigned char)b.data[i] >= 0x20 && (unsigned char)b.data[i] < 0x7f);
	assert_int_equal(b.data[b.len - 1], '\n');
	assert_int_equal(json_parse(b.data, b.len, "line", &v, NULL), 0);
	assert_string_equal(value_get(v, "program")->str, e.program);
	assert_string_equal(value_get(v, "object")->str, "/a\"\\\\xff\xe2\x80\xae\xc2\x9b");
	assert_int_equal(v->n, 12);
}

static void test_text(void **state)
{
	AUTO(buf_done) struct buf b = BUF_INIT(4096);
	struct event e = sample;

	assert_int_equal(event_add_text(&sample, &b), 0);
	assert_string_equal(buf_text(&b),
			    "cat: open /etc/shadow: EACCES (landlock: no read grant covers "
			    "it); allow it with --fs-read /etc/shadow");
	buf_clear(&b);
	e.program = "\x1b[2J";
	e.object = "/a\nsandlock: fine\xff";
	e.rule = NULL;
	e.allow = NULL;
	e.count = 3;
	event_add_text(&e, &b);
	assert_string_equal(
		buf_text(&b),
		"\\x1b[2J: open /a\\x0asandlock: fine\\xff: EACCES (landlock), 3 times");
	buf_clear(&b);
	const struct event limit = {.op = "time-out", .layer = "limit", .rule = "timeout of 5 s"};
	event_add_text(&limit, &b);
	assert_string_equal(buf_text(&b), "time-out (limit: timeout of 5 s)");
}

static void test_log_repeats(void **state)
{
	AUTO(event_log_done) struct event_log log;
	struct event e = sample;

	event_log_init(&log, 2);
	assert_int_equal(event_log_add(&log, &e), EVENT_LOG_ADDED);
	e.pid = 4712; /* another process is no other event */
	e.count = 5;
	assert_int_equal(event_log_add(&log, &e), EVENT_LOG_REPEATED);
	e.count = 0;
	e.error = EPERM;
	assert_int_equal(event_log_add(&log, &e), EVENT_LOG_ADDED);
	e.object = "/other";
	assert_int_equal(event_log_add(&log, &e), EVENT_LOG_DROPPED);
	e.object = NULL;
	assert_int_equal(event_log_add(&log, &e), EVENT_LOG_DROPPED);
	assert_int_equal(log.n, 2);
	assert_int_equal(log.v[0].count, 6);
	assert_int_equal(log.v[0].pid, 4711);
	assert_int_equal(log.v[1].count, 1);
	assert_int_equal(log.total, 9);
	assert_int_equal(log.dropped, 2);
}

/* The log keeps copies, bounded ones, and a long text still meets its repeat. */
static void test_log_copies(void **state)
{
	AUTO(event_log_done) struct event_log log;
	struct event e = sample;
	char object[2 * EVENT_TEXT_MAX];

	memset(object, 'x', sizeof(object));
	object[sizeof(object) - 1] = '\0';
	e.object = object;
	event_log_init(&log, 4);
	event_log_add(&log, &e);
	assert_int_equal(event_log_add(&log, &e), EVENT_LOG_REPEATED);
	memset(object, 'y', 10);
	assert_int_equal(strlen(log.v[0].object), EVENT_TEXT_MAX);
	assert_int_equal(log.v[0].object[0], 'x');
	e.count = UINT64_MAX;
	event_log_add(&log, &sample);
	event_log_add(&log, &e);
	assert_true(log.total == UINT64_MAX);
}

static void test_footer(void **state)
{
	AUTO(event_log_done) struct event_log log;
	AUTO(buf_done) struct buf b = BUF_INIT(65536);

	event_log_init(&log, EVENT_FOOTER_LINES);
	assert_int_equal(event_log_add_footer(&log, &b), 0);
	assert_string_equal(buf_text(&b), "");

	event_log_add(&log, &sample);
	event_log_add_footer(&log, &b);
	assert_string_equal(
		buf_text(&b),
		"sandlock: refused 1 operation:\n"
		"  cat: open /etc/shadow: EACCES (landlock: no read grant covers it); allow it "
		"with --fs-read /etc/shadow\n");
	buf_clear(&b);
	event_log_add(&log, &sample);
	event_log_add_footer(&log, &b);
	assert_string_equal(
		buf_text(&b),
		"sandlock: refused 2 operations:\n"
		"  cat: open /etc/shadow: EACCES (landlock: no read grant covers it), 2 times; "
		"allow it with --fs-read /etc/shadow\n");
}

static void check_footer_lines(size_t max)
{
	AUTO(event_log_done) struct event_log log;
	AUTO(buf_done) struct buf b = BUF_INIT(65536);

	event_log_init(&log, max);
	for (int i = 0; i < 15; i++) {
		auto_free char *object = xasprintf("/f%d", i);
		const struct event e = {.op = "open", .object = object, .count = 2};
		event_log_add(&log, &e);
	}
	event_log_add_footer(&log, &b);
	assert_string_equal(buf_text(&b),
			    "sandlock: refused 30 operations:\n"
			    "  open /f0, 2 times\n  open /f1, 2 times\n  open /f2, 2 times\n"
			    "  open /f3, 2 times\n  open /f4, 2 times\n  open /f5, 2 times\n"
			    "  open /f6, 2 times\n  open /f7, 2 times\n  open /f8, 2 times\n"
			    "  open /f9, 2 times\n"
			    "  and 10 more\n");
}

static void test_footer_lines(void **state)
{
	check_footer_lines(EVENT_FOOTER_LINES);
	check_footer_lines(100);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_json),	     cmocka_unit_test(test_json_absent),
		cmocka_unit_test(test_json_hostile), cmocka_unit_test(test_text),
		cmocka_unit_test(test_log_repeats),  cmocka_unit_test(test_log_copies),
		cmocka_unit_test(test_footer),	     cmocka_unit_test(test_footer_lines),
	};
	return cmocka_run_group_tests_name("event", tests, NULL, NULL);
}
