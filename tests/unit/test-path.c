/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests of the lexical paths.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/path.h"
#include "base/util.h"

static void test_normalize(void **state)
{
	static const char *const rows[][2] = {
		{"/", "/"},
		{"//", "/"},
		{"///a//b/", "/a/b"},
		{"/.", "/"},
		{"/./a/./b/.", "/a/b"},
		{"/..", "/"},
		{"/../../a", "/a"},
		{"/a/..", "/"},
		{"/a/../..", "/"},
		{"/a/b/../c", "/a/c"},
		{"/a/b/../../c/", "/c"},
		{"/...", "/..."},
		{"/a/..b/.c", "/a/..b/.c"},
		{"/a/b../c.", "/a/b../c."},
		{"/\xc3\xa4 x", "/\xc3\xa4 x"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		auto_free char *got = path_normalize(rows[i][0]);
		assert_string_equal(got, rows[i][1]);
		assert_true(path_is_normal(got));
		assert_int_equal(path_is_normal(rows[i][0]), str_eq(rows[i][0], rows[i][1]));
	}
	assert_false(path_is_normal(""));
	assert_false(path_is_normal("a"));
}

static void test_absolute(void **state)
{
	static const char *const rows[][3] = {
		{"/w", "", "/w"},	  {"/w", ".", "/w"},	   {"/w", "a", "/w/a"},
		{"/w/", "a/", "/w/a"},	  {"/w", "../a", "/a"},	   {"/w", "../../../a", "/a"},
		{"/w", "/a/../b", "/b"},  {"/", "a", "/a"},	   {"/w", "./a//b", "/w/a/b"},
		{"/w/x/..", "a", "/w/a"}, {"/w", "~/a", "/w/~/a"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		auto_free char *got = path_absolute(rows[i][0], rows[i][1]);
		assert_string_equal(got, rows[i][2]);
	}
	assert_true(path_is_absolute("/"));
	assert_false(path_is_absolute("a/b"));
	assert_false(path_is_absolute(""));
}

static void test_join(void **state)
{
	static const char *const rows[][3] = {
		{"/", "a", "/a"},	 {"/a", "b", "/a/b"}, {"/a/", "b", "/a/b"},
		{"/a//", "//b", "/a/b"}, {"a", "b", "a/b"},   {"/a", "", "/a/"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		auto_free char *got = path_join(rows[i][0], rows[i][1]);
		assert_string_equal(got, rows[i][2]);
	}
}

static void test_beneath(void **state)
{
	static const struct {
		const char *path;
		const char *dir;
		const char *rest; /* NULL: not beneath */
	} rows[] = {
		{"/", "/", ""},		  {"/a", "/", "a"},	   {"/a", "/a", ""},
		{"/a/b", "/a", "b"},	  {"/a/b/c", "/a", "b/c"}, {"/ab", "/a", NULL},
		{"/a", "/ab", NULL},	  {"/", "/a", NULL},	   {"/b/a", "/a", NULL},
		{"/a/b", "/a/b/c", NULL}, {"/a/bc", "/a/b", NULL}, {"/a-b/c", "/a", NULL},
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		const char *rest = path_relative_to(rows[i].path, rows[i].dir);
		assert_int_equal(path_is_beneath(rows[i].path, rows[i].dir), rows[i].rest != NULL);
		if (rows[i].rest)
			assert_string_equal(rest, rows[i].rest);
		else
			assert_null(rest);
	}
}

static void test_names(void **state)
{
	static const char *const rows[][3] = {
		{"/", "/", ""},	      {"/a", "/", "a"},	 {"/a/b", "/a", "b"},
		{"a", ".", "a"},      {"a/b", "a", "b"}, {"a/", "a", ""},
		{"/a//b", "/a", "b"}, {"//a", "/", "a"}, {"", ".", ""},
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		auto_free char *dir = path_dirname(rows[i][0]);
		assert_string_equal(dir, rows[i][1]);
		assert_string_equal(path_basename(rows[i][0]), rows[i][2]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_normalize), cmocka_unit_test(test_absolute),
		cmocka_unit_test(test_join),	  cmocka_unit_test(test_beneath),
		cmocka_unit_test(test_names),
	};
	return cmocka_run_group_tests_name("path", tests, NULL, NULL);
}
