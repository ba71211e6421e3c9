/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests of buffers, of UTF-8, and of the escapes that everything printed goes through.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include "base/buf.h"
#include "base/utf8.h"
#include "base/util.h"

static void test_grow(void **state)
{
	AUTO(buf_done) struct buf b = BUF_INIT(1000);

	assert_string_equal(buf_text(&b), "");
	for (int i = 0; i < 100; i++)
		assert_int_equal(buf_printf(&b, "%02d,", i), 0);
	assert_int_equal(b.len, 300);
	assert_memory_equal(buf_text(&b) + 297, "99,", 4);
	buf_clear(&b);
	assert_string_equal(buf_text(&b), "");
	assert_int_equal(buf_add_char(&b, 'x'), 0);
	auto_free char *taken = buf_take(&b);
	assert_string_equal(taken, "x");
	assert_int_equal(b.len, 0);
	auto_free char *nothing = buf_take(&b);
	assert_string_equal(nothing, "");
}

static void test_maximum(void **state)
{
	AUTO(buf_done) struct buf b = BUF_INIT(5);

	assert_int_equal(buf_add(&b, "a\0b", 3), 0);
	assert_int_equal(buf_add_str(&b, "12"), 0);
	assert_int_equal(buf_add_char(&b, 'x'), -E2BIG);
	assert_int_equal(b.len, 5);
	assert_memory_equal(b.data, "a\0b12", 6);
	/* The failure sticks, also for what would fit. */
	assert_int_equal(buf_add(&b, "", 0), -E2BIG);
	buf_clear(&b);
	assert_int_equal(buf_printf(&b, "%s", "123456"), -E2BIG);
	assert_int_equal(b.len, 0);
	buf_clear(&b);
	assert_int_equal(buf_printf(&b, "%s", "12345"), 0);
	assert_string_equal(b.data, "12345");
}

/* An escape that does not fit leaves nothing of itself behind. */
static void test_whole_or_nothing(void **state)
{
	AUTO(buf_done) struct buf b = BUF_INIT(8);

	buf_add_str(&b, "ab");
	assert_int_equal(buf_add_json(&b, "12345678", 8), -E2BIG);
	assert_string_equal(buf_text(&b), "ab");
	buf_clear(&b);
	buf_add_str(&b, "ab");
	assert_int_equal(buf_add_terminal(&b, "1\x1b\x1b", 3), -E2BIG);
	assert_string_equal(buf_text(&b), "ab");
	buf_clear(&b);
	buf_add_str(&b, "ab");
	assert_int_equal(buf_add_shell(&b, "it's it"), -E2BIG);
	assert_string_equal(buf_text(&b), "ab");
}

static void test_utf8_decode(void **state)
{
	static const struct {
		const char *text;
		size_t len;
		size_t taken;
		uint32_t cp;
	} rows[] = {
		{"", 0, 0, 99},
		{"a", 1, 1, 'a'},
		{"\0", 1, 1, 0},
		{"\xc3\xa4", 2, 2, 0xe4},
		{"\xe2\x82\xac", 3, 3, 0x20ac},
		{"\xf0\x9f\x98\x80", 4, 4, 0x1f600},
		{"\xf4\x8f\xbf\xbf", 4, 4, 0x10ffff},
		{"\xf4\x90\x80\x80", 4, 0, 99}, /* above the last */
		{"\xc0\x80", 2, 0, 99},		/* overlong */
		{"\xe0\x9f\xbf", 3, 0, 99},
		{"\xf0\x8f\xbf\xbf", 4, 0, 99},
		{"\xed\xa0\x80", 3, 0, 99}, /* surrogate */
		{"\xed\x9f\xbf", 3, 3, 0xd7ff},
		{"\xc3", 1, 0, 99},
		{"\xe2\x82", 2, 0, 99},
		{"\xe2\x28\xa1", 3, 0, 99},
		{"\x80", 1, 0, 99},
		{"\xff", 1, 0, 99},
		{"\xf8\x88\x80\x80\x80", 5, 0, 99},
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		uint32_t cp = 99;
		assert_int_equal(utf8_decode(rows[i].text, rows[i].len, &cp), rows[i].taken);
		assert_int_equal(cp, rows[i].cp);
	}
}

static void test_utf8_put(void **state)
{
	for (uint32_t cp = 0; cp <= 0x10ffff; cp++) {
		char text[4];
		uint32_t again = 0;
		if (!utf8_is_scalar(cp))
			continue;
		size_t n = utf8_put(cp, text);
		assert_int_equal(utf8_decode(text, n, &again), n);
		assert_int_equal(again, cp);
	}
	assert_false(utf8_is_scalar(0xd800));
	assert_false(utf8_is_scalar(0xdfff));
	assert_false(utf8_is_scalar(0x110000));
}

static void test_json(void **state)
{
	static const struct {
		const char *text;
		const char *json;
	} rows[] = {
		{"", "\"\""},
		{"plain /x", "\"plain /x\""},
		{"\"\\\b\f\n\r\t", "\"\\\"\\\\\\b\\f\\n\\r\\t\""},
		{"\x1b[31m\x7f", "\"\\u001b[31m\\u007f\""},
		{"\xc3\xa4\xe2\x82\xac", "\"\xc3\xa4\xe2\x82\xac\""},
		{"\xe2\x80\xae", "\"\\u202e\""},
		{"\xc2\x9b", "\"\\u009b\""},
		{"\xf3\xa0\x80\x81", "\"\\udb40\\udc01\""},
		{"a\xff\xc3", "\"a\\\\xff\\\\xc3\""},
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		AUTO(buf_done) struct buf b = BUF_INIT(1000);
		assert_int_equal(buf_add_json(&b, rows[i].text, strlen(rows[i].text)), 0);
		assert_string_equal(buf_text(&b), rows[i].json);
	}
	AUTO(buf_done) struct buf b = BUF_INIT(1000);
	buf_add_json(&b, "a\0b", 3);
	assert_string_equal(buf_text(&b), "\"a\\u0000b\"");
}

static void test_shell(void **state)
{
	static const struct {
		const char *text;
		const char *quoted;
	} rows[] = {
		{"", "''"},
		{"plain", "plain"},
		{"/usr/lib-1.2/x_y,z:a@b%c+d", "/usr/lib-1.2/x_y,z:a@b%c+d"},
		{"a b", "'a b'"},
		{"$HOME", "'$HOME'"},
		{"a=b", "'a=b'"},
		{"~x", "'~x'"},
		{"it's", "'it'\\''s'"},
		{"\xc3\xa4", "'\xc3\xa4'"},
		{"a\nb", "$'a\\012b'"},
		{"\x1b'\\", "$'\\033\\'\\\\'"},
		{"\xff", "$'\\377'"},
		{"\xe2\x80\xae", "$'\\342\\200\\256'"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		AUTO(buf_done) struct buf b = BUF_INIT(1000);
		assert_int_equal(buf_add_shell(&b, rows[i].text), 0);
		assert_string_equal(buf_text(&b), rows[i].quoted);
	}
}

static void test_terminal(void **state)
{
	static const struct {
		const char *text;
		const char *shown;
	} rows[] = {
		{"", ""},
		{"plain \\x1b", "plain \\x1b"},
		{"\x1b[31m\t\n\x7f", "\\x1b[31m\\x09\\x0a\\x7f"},
		{"\xc2\x80\xc2\x9b", "\\u{80}\\u{9b}"},
		{"\x9b\xff", "\\x9b\\xff"},
		{"\xe2\x80\xae\xe2\x81\xa6\xd8\x9c", "\\u{202e}\\u{2066}\\u{61c}"},
		{"\xe2\x80\xa8\xef\xbb\xbf", "\\u{2028}\\u{feff}"},
		{"\xf3\xa0\x80\x81", "\\u{e0001}"},
		{"\xc3\xa4\xf0\x9f\x98\x80", "\xc3\xa4\xf0\x9f\x98\x80"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		AUTO(buf_done) struct buf b = BUF_INIT(1000);
		assert_int_equal(buf_add_terminal(&b, rows[i].text, strlen(rows[i].text)), 0);
		assert_string_equal(buf_text(&b), rows[i].shown);
	}
}

static void test_quote(void **state)
{
	char out[16];

	assert_string_equal(quote_str("", out, sizeof(out)), "\"\"");
	assert_string_equal(quote_str("a\nb", out, sizeof(out)), "\"a\\x0ab\"");
	/* 13 characters, two quotes and the NUL fill it. */
	assert_string_equal(quote_str("1234567890123", out, sizeof(out)), "\"1234567890123\"");
	assert_string_equal(quote_str("12345678901234", out, sizeof(out)), "\"1234567890...\"");
	assert_string_equal(quote_str("12345678\x1b\x1b\x1b", out, sizeof(out)), "\"12345678...\"");
	assert_string_equal(quote_text("a\0b", 3, out, sizeof(out)), "\"a\\x00b\"");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_grow),
		cmocka_unit_test(test_maximum),
		cmocka_unit_test(test_whole_or_nothing),
		cmocka_unit_test(test_utf8_decode),
		cmocka_unit_test(test_utf8_put),
		cmocka_unit_test(test_json),
		cmocka_unit_test(test_shell),
		cmocka_unit_test(test_terminal),
		cmocka_unit_test(test_quote),
	};
	return cmocka_run_group_tests_name("buf", tests, NULL, NULL);
}
