/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests of the TOML reader. The breadth is in tests/toml/differential.py; here are the lines,
 * limits and messages, which that cannot know, and one row for each rule.
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

	if (toml_parse(text, strlen(text), "profile", &v, &err) < 0)
		fail_msg("%s", err.msg);
	return v;
}

static void test_scalars(void **state)
{
	static const struct {
		const char *text;
		const char *json; /* of the value */
	} rows[] = {
		{"true", "true"},
		{"false", "false"},
		{"+99", "99"},
		{"-0", "0"},
		{"1_000", "1000"},
		{"0xDEAD_beef", "3735928559"},
		{"0o755", "493"},
		{"0b1101", "13"},
		{"9223372036854775807", "9223372036854775807"},
		{"-9223372036854775808", "-9223372036854775808"},
		{"1.5", "1.5"},
		{"-0.0", "-0.0"},
		{"6.626e-34", "6.626e-34"},
		{"9_0.2_5", "90.25"},
		{"1e1_0", "10000000000.0"},
		{"inf", "\"inf\""},
		{"-inf", "\"-inf\""},
		{"+nan", "\"nan\""},
		{"1e400", "\"inf\""},
		{"1979-05-27t07:32:00z", "\"1979-05-27T07:32:00Z\""},
		{"1979-05-27 07:32:00.1234567890+01:00",
		 "\"1979-05-27T07:32:00.1234567890+01:00\""},
		{"1979-05-27 07:32:00 ", "\"1979-05-27T07:32:00\""},
		{"1979-05-27 # x", "\"1979-05-27\""},
		{"07:32:00.5", "\"07:32:00.5\""},
		{"\"\\b\\t\\n\\f\\r\\\"\\\\\\u00E4\\U0001F600\"",
		 "\"\\b\\t\\n\\f\\r\\\"\\\\\xc3\xa4\xf0\x9f\x98\x80\""},
		{"'c:\\dir'", "\"c:\\\\dir\""},
		{"\"\"\"\na\\\n\n  b\"\"\"\"\"", "\"ab\\\"\\\"\""},
		{"'''\r\na\r\n'b'''''", "\"a\\n'b''\""},
		{"\"\\u0000\"", "\"\\u0000\""},
		{"[]", "[]"},
		{"[ 1 , # one\n 'x' ,\n ]", "[1,\"x\"]"},
		{"{}", "{}"},
		{"{ a.b = 1, a.c = [{}] }", "{\"a\":{\"b\":1,\"c\":[{}]}}"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		auto_free char *text = xasprintf("v = %s\n", rows[i].text);
		AUTO(value_free) struct value *v = parse(text);
		auto_free char *json = json_write_compact(value_get(v, "v"));
		assert_string_equal(json, rows[i].json);
	}
}

static void test_date_time_kinds(void **state)
{
	AUTO(value_free)
	struct value *v = parse("a = 1979-05-27T07:32:00Z\nb = 1979-05-27T07:32:00\n"
				"c = 1979-05-27\nd = 07:32:00\n");

	assert_int_equal(value_get(v, "a")->kind, VALUE_OFFSET_DATETIME);
	assert_int_equal(value_get(v, "b")->kind, VALUE_LOCAL_DATETIME);
	assert_int_equal(value_get(v, "c")->kind, VALUE_LOCAL_DATE);
	assert_int_equal(value_get(v, "d")->kind, VALUE_LOCAL_TIME);
}

static void test_documents(void **state)
{
	static const char *const rows[][2] = {
		{"", "{}"},
		{"# only\n\n", "{}"},
		{"\xef\xbb\xbfx = 1", "{\"x\":1}"},
		{"a.b.c = 1\na.b.d = 2", "{\"a\":{\"b\":{\"c\":1,\"d\":2}}}"},
		{"[a]\nx = 1\n[a.b]\ny = 2", "{\"a\":{\"x\":1,\"b\":{\"y\":2}}}"},
		{"[a.b]\n[a]\nx = 1", "{\"a\":{\"b\":{},\"x\":1}}"},
		{"[[a]]\nx = 1\n[a.b]\n[[a]]\n[[a.b]]",
		 "{\"a\":[{\"x\":1,\"b\":{}},{\"b\":[{}]}]}"},
		{"[a]\nb.c = 1\n[a.b.d]", "{\"a\":{\"b\":{\"c\":1,\"d\":{}}}}"},
		{"'' = 1\n\"a.b\" = 2\n3.14 = 3", "{\"\":1,\"a.b\":2,\"3\":{\"14\":3}}"},
		{"[ a . 'b' ]\r\nx=1\r\n", "{\"a\":{\"b\":{\"x\":1}}}"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		AUTO(value_free) struct value *v = parse(rows[i][0]);
		auto_free char *json = json_write_compact(v);
		assert_string_equal(json, rows[i][1]);
	}
}

static void test_lines(void **state)
{
	AUTO(value_free)
	struct value *v = parse("a = 1\r\nb = [\n 2,\n '''\n\n''',\n {},\n]\n[t.u]\n"
				"x.y = 1\n[[l]]\n\n[[l]]\n[t]\n");
	const struct value *b = value_get(v, "b");
	const struct value *t = value_get(v, "t");
	const struct value *u = value_get(t, "u");

	assert_int_equal(v->line, 1);
	assert_int_equal(value_get(v, "a")->line, 1);
	assert_int_equal(b->line, 2);
	assert_int_equal(b->items[0]->line, 3);
	assert_int_equal(b->items[1]->line, 4);
	assert_int_equal(b->items[2]->line, 7);
	assert_int_equal(u->line, 9);
	assert_int_equal(value_get(u, "x")->line, 10);
	assert_int_equal(value_get(value_get(u, "x"), "y")->line, 10);
	assert_int_equal(value_get(v, "l")->line, 11);
	assert_int_equal(value_get(v, "l")->items[1]->line, 13);
	assert_int_equal(t->line, 14);
}

/* Each error has its line, and says what and, where it helps, what to do. */
static void test_errors(void **state)
{
	static const char *const rows[][2] = {
		{"a = 1\na = 2", "2: \"a\" is already defined in line 1"},
		{"[a]\n[b]\n[a]", "3: \"a\" is already defined in line 1"},
		{"a.b = 1\n[a]", "2: \"a\" is already defined in line 1"},
		{"a = [{}]\n\n[[a]]", "3: \"a\" is already defined in line 1"},
		{"a = {}\n[a.b]", "2: \"a\" is already defined in line 1"},
		{"[[a]]\n[a]", "2: \"a\" is already defined in line 1"},
		{"[a.b]\n[a]\nb.c = 1", "3: \"b\" is already defined in line 1"},
		{"a = {b = 1, b.c = 2}", "1: \"b\" is already defined in line 1"},
		{"a.b.c = 1\na.b = 2", "2: \"a.b\" is already defined in line 1"},
		{"a", "1: = after the key expected at the end of the text"},
		{"a\n", "1: = after the key expected at the end of the line"},
		{"a b = 1", "1: = after the key expected at \"b = 1\""},
		{"= 1", "1: a key expected at \"= 1\""},
		{"a. = 1", "1: a key expected at \"= 1\""},
		{"\"\"\"a\"\"\" = 1", "1: a key cannot be a multi-line string"},
		{"a =", "1: a value expected at the end of the text"},
		{"a = 1 b = 2", "1: end of the line expected at \"b = 2\""},
		{"[a", "1: ] after the name of a table expected at the end of the text"},
		{"[[a] ]", "1: ]] after the name of an array of tables expected at \"] ]\""},
		{"[]", "1: a key expected at \"]\""},
		{"[a] b = 1", "1: end of the line expected at \"b = 1\""},
		{"a = [1,\n2 3]", "2: a comma or ] expected at \"3]\""},
		{"a = [,]", "1: a value expected at \",]\""},
		{"a = [1", "1: a comma or ] expected at the end of the text"},
		{"a = {b = 1,}", "1: a key expected at \"}\""},
		{"a = {b = 1\n}",
		 "1: a comma or }, in the same line expected at the end of the line"},
		{"a = \"x\nb\"", "1: string is not closed at the end of the line"},
		{"\na = '''x\n\n", "4: string that begins in line 2 is not closed"},
		{"a = \"\\x41\"", "1: a valid escape (\\b \\t \\n \\f \\r \\\" \\\\ \\u \\U) "
				  "expected at \"\\x41\"\""},
		{"a = \"\\u12\"", "1: 4 hexadecimal digits must follow \\u"},
		{"a = \"\\ud800\"", "1: there is no character U+D800"},
		{"a = \"\\U00110000\"", "1: there is no character U+110000"},
		{"a = 9223372036854775808",
		 "1: integer \"9223372036854775808\" does not fit in 64 bits"},
		{"a = 0x8000000000000000",
		 "1: integer \"0x8000000000000000\" does not fit in 64 bits"},
		{"a = 012", "1: number \"012\" must not begin with a zero"},
		{"a = 1__0", "1: \"1__0\" is not a number; a string needs quotes"},
		{"a = 512M", "1: \"512M\" is not a number; a string needs quotes"},
		{"a = 1.", "1: \"1.\" is not a number; a string needs quotes"},
		{"a = +0x1", "1: \"+0x1\" is not a number; a string needs quotes"},
		{"a = yes", "1: \"yes\" is not a value; a string needs quotes"},
		{"a = /usr", "1: a value expected at \"/usr\""},
		{"a = 2023-02-29", "1: there is no day 29 in 2023-02"},
		{"a = 1979-05-27T24:00:00Z", "1: there is no time 24:00:00"},
		{"a = 2016-12-31T23:59:60Z", "1: leap seconds are not supported; write :59"},
		{"a = 07:32:00Z", "1: the end of the date or time expected at \"Z\""},
		{"a = \"\x1b\"", "1: control character 0x1b; write it as an escape in a string"},
		{"# \x7f", "1: control character 0x7f; write it as an escape in a string"},
		{"a = 1\rb = 2", "1: carriage return without a newline"},
		{"\n# \xff", "2: byte 0xff is not UTF-8"},
		{"a = 1\xef\xbb\xbf", "1: end of the line expected at \"\\u{feff}\""},
		{"\"\\u001b\\u202e\" = 1\n\"\\u001b\\u202e\" = 1",
		 "2: \"\\x1b\\u{202e}\" is already defined in line 1"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct value *v = NULL;
		struct err err = {0};
		int r = toml_parse(rows[i][0], strlen(rows[i][0]), "profile", &v, &err);
		auto_free char *want = xasprintf("profile:%s", rows[i][1]);
		assert_string_equal(err.msg, want);
		assert_int_equal(r, -EINVAL);
		assert_null(v);
	}
}

static void test_nul_in_text(void **state)
{
	struct value *v = NULL;
	struct err err = {0};

	assert_int_equal(toml_parse("a = \"\0\"", 7, "p", &v, &err), -EINVAL);
	assert_string_equal(err.msg,
			    "p:1: control character 0x00; write it as an escape in a string");
	assert_int_equal(toml_parse("a = 1\0", 6, "p", &v, NULL), -EINVAL);
}

/* Keys that differ only behind a NUL are two keys, and neither is found by the part before it. */
static void test_nul_in_key(void **state)
{
	AUTO(value_free) struct value *v = parse("\"a\\u0000b\" = 1\n\"a\\u0000c\" = 2\na = 3\n");

	assert_int_equal(v->n, 3);
	assert_int_equal(v->key_lens[0], 3);
	assert_memory_equal(v->keys[1], "a\0c", 4);
	assert_int_equal(value_get(v, "a")->integer, 3);
}

/* TEXT with N times PART between HEAD and TAIL. */
static char *repeat(const char *head, const char *part, size_t n, const char *tail)
{
	char *text = xzalloc(strlen(head) + n * strlen(part) + strlen(tail) + 1);
	size_t len = strlen(head);

	memcpy(text, head, len);
	for (size_t i = 0; i < n; i++, len += strlen(part))
		memcpy(text + len, part, strlen(part));
	memcpy(text + len, tail, strlen(tail));
	return text;
}

static void test_depth(void **state)
{
	static const struct {
		const char *head;
		const char *part;
		size_t most; /* the last count that is accepted; the root is one level */
		const char *tail;
	} rows[] = {
		{"a = ", "[", 127, ""},
		{"a = {", "b = {", 126, ""},
		{"a", ".a", 127, " = 1"},
		{"[a", ".a", 126, "]"},
		{"[[a", ".a", 125, "]]"},
		{"a = {b", ".b", 126, " = 1}"},
		{"a = [{b", ".b", 125, " = 1}]"},
		{"[[a]]\n[a", ".b", 125, "]"},
		{"[a]\nb", ".b", 126, " = 1"},
		{"[a]\nb = ", "[", 126, ""},
		{"[[a]]\nb = ", "[", 125, ""},
		{"a.b.c = ", "[", 125, ""},
		{"a = {b.c = ", "{b.c = ", 62, ""},
		{"a = {b = ", "[", 126, ""},
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		for (size_t extra = 0; extra < 2; extra++) {
			AUTO(value_free) struct value *v = NULL;
			struct err err = {0};
			auto_free char *text = repeat(rows[i].head, rows[i].part,
						      rows[i].most + extra, rows[i].tail);
			int r = toml_parse(text, strlen(text), "p", &v, &err);
			bool is_too_deep =
				r == -E2BIG && str_ends(err.msg, "deeper than 128 levels");
			assert_int_equal(is_too_deep, extra);
		}
	}
}

static void test_size(void **state)
{
	AUTO(value_free) struct value *v = NULL;
	struct err err = {0};
	auto_free char *text = xzalloc(VALUE_TEXT_MAX + 1);

	memset(text, '\n', VALUE_TEXT_MAX + 1);
	assert_int_equal(toml_parse(text, VALUE_TEXT_MAX + 1, "p", &v, &err), -E2BIG);
	assert_string_equal(err.msg, "p:1: text is larger than 1 MiB");
	assert_int_equal(toml_parse(text, VALUE_TEXT_MAX, "p", &v, &err), 0);
}

/* As many keys as fit: finding a duplicate must not cost a search for each. */
static void test_many_keys(void **state)
{
	AUTO(value_free) struct value *v = NULL;
	auto_free char *text = xzalloc(VALUE_TEXT_MAX);
	size_t len = 0;
	int n = 0;

	for (; len + 16 < VALUE_TEXT_MAX; n++)
		len += (size_t)snprintf(text + len, 16, "k%d=1\n", n);
	assert_int_equal(toml_parse(text, len, "p", &v, NULL), 0);
	assert_int_equal(v->n, n);
}

static void test_round_trip(void **state)
{
	static const char text[] =
		"s = \"\\u0000\\b\\t\\n\\f\\r\\\"\\\\\\u007F\xc3\xa4\\u202E\"\n"
		"i = -9223372036854775808\n"
		"r = [0.1, -0.0, inf, 1e+100]\n"
		"d = [1979-05-27T07:32:00.5Z, 1979-05-27T07:32:00, 1979-05-27, 07:32:00]\n"
		"l = [[], [{}, { a = { b = [] } }]]\n"
		"\n"
		"[empty]\n"
		"\n"
		"[t.\"x y\".\"\"]\n"
		"a = true\n"
		"\n"
		"[t.z]\n";
	AUTO(value_free) struct value *v = parse(text);
	auto_free char *again = toml_write(v);

	assert_string_equal(again, text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_scalars),	   cmocka_unit_test(test_date_time_kinds),
		cmocka_unit_test(test_documents),  cmocka_unit_test(test_lines),
		cmocka_unit_test(test_errors),	   cmocka_unit_test(test_nul_in_text),
		cmocka_unit_test(test_nul_in_key), cmocka_unit_test(test_depth),
		cmocka_unit_test(test_size),	   cmocka_unit_test(test_many_keys),
		cmocka_unit_test(test_round_trip),
	};
	return cmocka_run_group_tests_name("toml", tests, NULL, NULL);
}
