/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests of the value tree: building by hand, looking up, freeing trees of any depth, and writing
 * what a form cannot hold.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <locale.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/util.h"
#include "base/value.h"

static struct value *new_real(double real)
{
	struct value *v = value_new(VALUE_FLOAT);
	v->real = real;
	return v;
}

static void test_table(void **state)
{
	AUTO(value_free) struct value *t = value_new(VALUE_TABLE);

	assert_null(value_get(t, "a"));
	for (int i = 0; i < 100; i++) {
		auto_free char *key = xasprintf("k%d", i);
		value_table_put_take(t, key, value_new_int(i));
	}
	assert_int_equal(t->n, 100);
	assert_int_equal(value_get(t, "k37")->integer, 37);
	assert_string_equal(t->keys[99], "k99");
	value_table_put_take(t, "k37", value_new_string("new"));
	assert_int_equal(t->n, 100);
	assert_string_equal(value_get(t, "k37")->str, "new");
	assert_string_equal(t->keys[37], "k37");
	assert_null(value_get(t, "k"));
	assert_null(value_get(value_get(t, "k1"), "x"));
	assert_null(value_get(NULL, "x"));
}

static void test_free_deep(void **state)
{
	struct value *root = value_new(VALUE_ARRAY);
	struct value *v = root;

	for (int i = 0; i < 1000000; i++) {
		struct value *child = value_new(i % 2 ? VALUE_ARRAY : VALUE_TABLE);
		if (v->kind == VALUE_ARRAY) {
			value_array_add_take(v, value_new_int(1));
			value_array_add_take(v, child);
		} else {
			value_table_put_take(v, "k", child);
		}
		v = child;
	}
	value_free(root);
	value_free(NULL);
}

static void test_kinds(void **state)
{
	for (int kind = 0; kind < VALUE_KIND_COUNT; kind++)
		assert_true(strlen(value_kind_name((enum value_kind)kind)) > 3);
	assert_string_equal(value_kind_name(VALUE_ARRAY), "array");
}

static void test_write_toml(void **state)
{
	AUTO(value_free) struct value *t = value_new(VALUE_TABLE);
	struct value *sub = value_new(VALUE_TABLE);
	struct value *list = value_new(VALUE_ARRAY);

	value_table_put_take(t, "section", sub);
	value_table_put_take(t, "plain", value_new_bool(true));
	value_table_put_take(t, "nothing", value_new(VALUE_NULL));
	value_table_put_take(t, "list", list);
	value_table_put_take(t, "a b", value_new_string("x\"\\\n\x1b\x7f\xe2\x80\xae\xff"));
	value_array_add_take(list, value_new_int(-1));
	value_array_add_take(list, value_new(VALUE_NULL));
	struct value *inside = value_new(VALUE_TABLE);
	value_array_add_take(list, inside);
	value_table_put_take(inside, "", value_new(VALUE_ARRAY));
	value_table_put_take(inside, "n", value_new(VALUE_NULL));
	value_table_put_take(inside, "z", value_new(VALUE_TABLE));
	value_table_put_take(sub, "deep", value_new(VALUE_TABLE));
	value_table_put_take(sub, "real", new_real(2));

	auto_free char *text = toml_write(t);
	assert_string_equal(text, "plain = true\n"
				  "list = [-1, { \"\" = [], z = {} }]\n"
				  "\"a b\" = \"x\\\"\\\\\\n\\u001B\\u007F\\u202E\\\\xff\"\n"
				  "\n"
				  "[section]\n"
				  "real = 2.0\n"
				  "\n"
				  "[section.deep]\n");
}

static void test_write_toml_sections(void **state)
{
	AUTO(value_free) struct value *t = value_new(VALUE_TABLE);
	struct value *a = value_new(VALUE_TABLE);
	struct value *b = value_new(VALUE_TABLE);
	struct value *only_null = value_new(VALUE_TABLE);

	value_table_put_take(t, "a", a);
	value_table_put_take(a, "b.c", b);
	value_table_put_take(b, "x", value_new_int(1));
	value_table_put_take(t, "e", only_null);
	value_table_put_take(only_null, "n", value_new(VALUE_NULL));
	auto_free char *text = toml_write(t);
	assert_string_equal(text, "[a.\"b.c\"]\nx = 1\n\n[e]\n");

	AUTO(value_free) struct value *empty = value_new(VALUE_TABLE);
	auto_free char *nothing = toml_write(empty);
	assert_string_equal(nothing, "");
}

/* An array that makes a long line gets a line for each element. */
static void test_write_toml_tall(void **state)
{
	AUTO(value_free) struct value *t = value_new(VALUE_TABLE);
	struct value *list = value_new(VALUE_ARRAY);
	const char *item = "0123456789012345678901234567890123456789012345";

	value_table_put_take(t, "list", list);
	value_array_add_take(list, value_new_string(item));
	value_array_add_take(list, value_new_string(item));
	auto_free char *text = toml_write(t);
	auto_free char *want = xasprintf("list = [\n\t\"%s\",\n\t\"%s\",\n]\n", item, item);
	assert_string_equal(text, want);
}

static void test_write_json(void **state)
{
	AUTO(value_free) struct value *t = value_new(VALUE_TABLE);
	struct value *list = value_new(VALUE_ARRAY);
	struct value *date = value_new_string("2026-01-31");

	date->kind = VALUE_LOCAL_DATE;
	value_table_put_take(t, "list", list);
	value_array_add_take(list, value_new_int(INT64_MIN));
	value_array_add_take(list, value_new(VALUE_NULL));
	value_array_add_take(list, value_new(VALUE_ARRAY));
	value_array_add_take(list, new_real((double)INFINITY));
	value_array_add_take(list, new_real(-0.0));
	value_table_put_take(t, "date", date);
	value_table_put_take(t, "\x1b", value_new(VALUE_TABLE));
	value_table_put_take(t, "bad", value_new_string("\xff"));

	auto_free char *compact = json_write_compact(t);
	assert_string_equal(compact, "{\"list\":[-9223372036854775808,null,[],\"inf\",-0.0],"
				     "\"date\":\"2026-01-31\",\"\\u001b\":{},\"bad\":\"\\\\xff\"}");
	auto_free char *text = json_write(t);
	assert_string_equal(text, "{\n"
				  "  \"list\": [\n"
				  "    -9223372036854775808,\n"
				  "    null,\n"
				  "    [],\n"
				  "    \"inf\",\n"
				  "    -0.0\n"
				  "  ],\n"
				  "  \"date\": \"2026-01-31\",\n"
				  "  \"\\u001b\": {},\n"
				  "  \"bad\": \"\\\\xff\"\n"
				  "}\n");
}

static void check_real(double real, const char *want)
{
	AUTO(value_free) struct value *t = value_new(VALUE_TABLE);
	AUTO(value_free) struct value *again = NULL;

	value_table_put_take(t, "r", new_real(real));
	auto_free char *text = toml_write(t);
	auto_free char *line = xasprintf("r = %s\n", want);
	assert_string_equal(text, line);
	assert_int_equal(toml_parse(text, strlen(text), "x", &again, NULL), 0);
	double back = value_get(again, "r")->real;
	assert_true(isnan(real) ? isnan(back) : back == real);
	assert_int_equal(!signbit(back), !signbit(real));
}

static void check_reals(void)
{
	check_real(0, "0.0");
	check_real(-0.0, "-0.0");
	check_real(0.1, "0.1");
	check_real(1.0 / 3, "0.3333333333333333");
	check_real(1e300 * 10, "1e+301");
	check_real(5e-324, "4.94065645841247e-324");
	check_real(123456789012345680.0, "1.2345678901234568e+17");
	check_real((double)INFINITY, "inf");
	check_real(-(double)INFINITY, "-inf");
	check_real((double)NAN, "nan");
}

static void test_reals(void **state)
{
	check_reals();
}

/* A host program may have set any locale; one with a decimal comma must change nothing. */
static void test_reals_in_locale(void **state)
{
	static const char *const names[] = {"de_DE.UTF-8", "de_DE.utf8", "fr_FR.UTF-8", "de_DE"};
	AUTO(value_free) struct value *v = NULL;

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		if (setlocale(LC_ALL, names[i]))
			break;
	}
	check_reals();
	assert_int_equal(json_parse("[1.5]", 5, "x", &v, NULL), 0);
	assert_true(v->items[0]->real == 1.5);
	setlocale(LC_ALL, "C");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_table),
		cmocka_unit_test(test_free_deep),
		cmocka_unit_test(test_kinds),
		cmocka_unit_test(test_write_toml),
		cmocka_unit_test(test_write_toml_sections),
		cmocka_unit_test(test_write_toml_tall),
		cmocka_unit_test(test_write_json),
		cmocka_unit_test(test_reals),
		cmocka_unit_test(test_reals_in_locale),
	};
	return cmocka_run_group_tests_name("value", tests, NULL, NULL);
}
