/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests of the smallest helpers: error objects, string lists, allocation wrappers, ownership.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/strv.h"
#include "base/util.h"

static void test_err_set(void **state)
{
	struct err err = {0};

	assert_int_equal(err_set(&err, EINVAL, "bad %s", "thing"), -EINVAL);
	assert_int_equal(err.code, EINVAL);
	assert_string_equal(err.msg, "bad thing");
	assert_int_equal(err_set(NULL, ENOENT, "x"), -ENOENT);
}

static void test_err_prefix(void **state)
{
	struct err err = {0};

	err_set(&err, ENOENT, "no such profile");
	assert_int_equal(err_prefix(&err, "--profile %s", "web"), -ENOENT);
	assert_string_equal(err.msg, "--profile web: no such profile");
	assert_int_equal(err_prefix(NULL, "x"), -EINVAL);
}

static void test_err_sys(void **state)
{
	struct err err = {0};

	assert_int_equal(err_sys(&err, EACCES, "open %s", "/x"), -EACCES);
	assert_string_equal(err.msg, "open /x: Permission denied");
}

/* A message that is too long ends at a character boundary. */
static void test_err_cut(void **state)
{
	struct err err = {0};
	char text[2 * sizeof(err.msg)];

	for (size_t i = 0; i + 2 < sizeof(text); i += 2)
		memcpy(text + i, "\xc3\xa4", 2);
	text[sizeof(text) - 2] = '\0';
	err_set(&err, EINVAL, "%s", text);
	assert_int_equal(strlen(err.msg), sizeof(err.msg) - 2);
	assert_memory_equal(err.msg + strlen(err.msg) - 2, "\xc3\xa4", 2);
}

static void test_strv(void **state)
{
	struct strv a = {0};
	struct strv b = {0};

	strv_add(&a, "one");
	strv_add_take(&a, xstrdup("two"));
	strv_copy(&b, &a);
	assert_int_equal(b.n, 2);
	assert_string_equal(b.v[0], "one");
	assert_string_equal(b.v[1], "two");
	assert_null(b.v[2]);
	assert_true(strv_has(&b, "two"));
	assert_false(strv_has(&b, "three"));
	strv_done(&a);
	assert_int_equal(a.n, 0);
	assert_null(a.v);
	strv_done(&a);
	strv_done(&b);
}

static void test_strings(void **state)
{
	assert_true(str_eq(NULL, NULL));
	assert_false(str_eq("a", NULL));
	assert_true(str_eq("a", "a"));
	assert_true(str_starts("builtin:x", "builtin:"));
	assert_false(str_starts("bu", "builtin:"));
	assert_true(str_ends("a.json", ".json"));
	assert_false(str_ends("json", ".json"));

	auto_free char *cut = xstrndup("abcdef", 3);
	assert_string_equal(cut, "abc");
	auto_free char *text = xasprintf("%d-%s", 7, "x");
	assert_string_equal(text, "7-x");
}

static void test_ownership(void **state)
{
	auto_free char *a = xstrdup("x");
	char *b = take_ptr(a);

	assert_null(a);
	assert_string_equal(b, "x");
	free(b);

	int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	{
		auto_close int owner = take_fd(&fd);
		assert_int_equal(fd, -1);
		fd = owner;
	}
	assert_int_equal(fcntl(fd, F_GETFD), -1);
	errno = ENOTTY;
	assert_int_equal(util_close(-1), -1);
	assert_int_equal(errno, ENOTTY);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_err_set),	  cmocka_unit_test(test_err_prefix),
		cmocka_unit_test(test_err_sys),	  cmocka_unit_test(test_err_cut),
		cmocka_unit_test(test_strv),	  cmocka_unit_test(test_strings),
		cmocka_unit_test(test_ownership),
	};
	return cmocka_run_group_tests_name("base", tests, NULL, NULL);
}
