/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests of the JSON reader: strictness, lines, limits, and the round trip.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/util.h"
#include "base/value.h"

static struct value *parse(const char *text)
{
	struct value *v = NULL;
	struct err err = {0};

	if (json_parse(text, strlen(text), "policy", &v, &err) < 0)
		fail_msg("%s", err.msg);
	return v;
}

static void test_kinds(void **state)
{
	AUTO(value_free)
	struct value *v =
		parse("[null, true, false, -3, 1.5, \"\\u00e4\\u0000x\", [], {\"a\": 1}]");

	assert_int_equal(v->kind, VALUE_ARRAY);
	assert_int_equal(v->n, 8);
	assert_int_equal(v->items[0]->kind, VALUE_NULL);
	assert_true(v->items[1]->kind == VALUE_BOOL && v->items[1]->boolean);
	assert_true(v->items[2]->kind == VALUE_BOOL && !v->items[2]->boolean);
	assert_true(v->items[3]->kind == VALUE_INT && v->items[3]->integer == -3);
	assert_true(v->items[4]->kind == VALUE_FLOAT && v->items[4]->real == 1.5);
	assert_int_equal(v->items[5]->kind, VALUE_STRING);
	assert_int_equal(v->items[5]->len, 4);
	assert_memory_equal(v->items[5]->str, "\xc3\xa4\0x", 5);
	assert_int_equal(v->items[6]->kind, VALUE_ARRAY);
	assert_int_equal(value_get(v->items[7], "a")->integer, 1);
}

static void test_lines(void **state)
{
	AUTO(value_free)
	struct value *v = parse("\n{\n\"b\"\n:\n[1,\n \"x:\\\"\\n\", {}\n],"
				"\"a\": {\"c\"\n:\ntrue}\n}\n");
	const struct value *b = value_get(v, "b");
	const struct value *a = value_get(v, "a");

	assert_int_equal(v->line, 2);
	assert_string_equal(v->keys[0], "b"); /* the order of the text, not of names */
	assert_int_equal(b->line, 5);
	assert_int_equal(b->items[0]->line, 5);
	assert_int_equal(b->items[1]->line, 6);
	assert_int_equal(b->items[2]->line, 6);
	assert_int_equal(a->line, 7);
	assert_int_equal(value_get(a, "c")->line, 9);
}

static void test_errors(void **state)
{
	static const char *const rows[][2] = {
		{"", "policy:1: '[' or '{' expected near end of file"},
		{"{\n\"a\": 1,\n\"a\": 2}", "policy:3: duplicate object key near '\"a\"'"},
		{"[1,]", "policy:1: unexpected token near ']'"},
		{"{\"a\": 1,}", "policy:1: string or '}' expected near '}'"},
		{"[1] x", "policy:1: end of file expected near 'x'"},
		{"42", "policy:1: '[' or '{' expected near '42'"},
		{"[\n9223372036854775808]", "policy:2: too big integer near '9223372036854775808'"},
		{"[1e999]", "policy:1: real number overflow near '1e999'"},
		{"[\"\xff\"]", "policy:1: unable to decode byte 0xff near '\"'"},
		{"[\"a\nb\"]", "policy:1: unexpected newline near '\"a'"},
		{"['a']", "policy:1: invalid token near '''"},
		{"[01]", "policy:1: invalid token near '0'"},
		{"[NaN]", "policy:1: invalid token near 'NaN'"},
		{"{a: 1}", "policy:1: string or '}' expected near 'a'"},
		{"[1 /* x */]", "policy:1: ']' expected near '/'"},
		{"[\"\\ud800\"]", "policy:1: invalid Unicode '\\uD800' near '\"\\ud800\"'"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct value *v = NULL;
		struct err err = {0};
		int r = json_parse(rows[i][0], strlen(rows[i][0]), "policy", &v, &err);
		assert_int_equal(r, -EINVAL);
		assert_null(v);
		assert_string_equal(err.msg, rows[i][1]);
	}
}

/* Nothing of the source's name or of the text reaches a terminal as it is. */
static void test_error_escaped(void **state)
{
	struct value *v = NULL;
	struct err err = {0};

	assert_int_equal(json_parse("[\x1b[0m]", 6, "a\nb", &v, &err), -EINVAL);
	assert_string_equal(err.msg, "a\\x0ab:1: invalid token near '\\x1b'");
	assert_int_equal(json_parse("[\0]", 3, "x", &v, &err), -EINVAL);
	assert_int_equal(json_parse("[", 1, "x", &v, NULL), -EINVAL);

	char what[600];
	memset(what, 'w', sizeof(what));
	what[sizeof(what) - 1] = '\0';
	assert_int_equal(json_parse("[", 1, what, &v, &err), -EINVAL);
	assert_memory_equal(err.msg, "...wwww", 7);
	assert_true(str_ends(err.msg, "w:1: ']' expected near end of file"));
}

static void test_limits(void **state)
{
	struct value *v = NULL;
	struct err err = {0};
	char deep[260];

	memset(deep, '[', 130);
	memset(deep + 128, ']', 128);
	assert_int_equal(json_parse(deep, 256, "x", &v, &err), 0);
	value_free(v);
	v = NULL;
	memset(deep, '[', 129);
	memset(deep + 129, ']', 129);
	assert_int_equal(json_parse(deep, 258, "x", &v, &err), -E2BIG);
	assert_string_equal(err.msg, "x:1: nesting is deeper than 128 levels");

	auto_free char *large = xzalloc(VALUE_TEXT_MAX + 1);
	memset(large, ' ', VALUE_TEXT_MAX + 1);
	memcpy(large, "[]", 2);
	assert_int_equal(json_parse(large, VALUE_TEXT_MAX + 1, "x", &v, &err), -E2BIG);
	assert_string_equal(err.msg, "x:1: text is larger than 1 MiB");
	assert_int_equal(json_parse(large, VALUE_TEXT_MAX, "x", &v, &err), 0);
	value_free(v);
}

static void test_round_trip(void **state)
{
	static const char text[] =
		"{\"s\":\"\\u0000\\b\\\"\\\\\xc3\xa4\\u202e\",\"i\":-9223372036854775808,"
		"\"r\":[0.1,-0.0,1e+100],\"n\":null,\"b\":[true,false],\"o\":{\"\":{}}}";
	AUTO(value_free) struct value *v = parse(text);
	auto_free char *compact = json_write_compact(v);
	assert_string_equal(compact, text);

	auto_free char *indented = json_write(v);
	AUTO(value_free) struct value *again = parse(indented);
	auto_free char *compact_again = json_write_compact(again);
	assert_string_equal(compact_again, text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_kinds),  cmocka_unit_test(test_lines),
		cmocka_unit_test(test_errors), cmocka_unit_test(test_error_escaped),
		cmocka_unit_test(test_limits), cmocka_unit_test(test_round_trip),
	};
	return cmocka_run_group_tests_name("json", tests, NULL, NULL);
}
