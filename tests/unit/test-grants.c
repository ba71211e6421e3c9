/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests of the supervisor's grants.
 */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/util.h"
#include "supervise/grants.h"

static int open_path(const char *path)
{
	int fd = open(path, O_PATH | O_CLOEXEC);
	assert_true(fd >= 0);
	return fd;
}

static void expect(const struct grants *g, const char *path, unsigned int rights, const char *found)
{
	const struct grant *grant = grants_find(g, path, rights);
	if (!found)
		assert_null(grant);
	else if (!grant || !str_eq(grant->path, found))
		fail_msg("%s: %s instead of %s", path, grant ? grant->path : "none", found);
}

static void test_find(void **state)
{
	struct grants g = {0};
	expect(&g, "/", GRANT_READ, NULL);
	grants_add(&g, "/w/a/b", GRANT_READ | GRANT_WRITE, open_path("/"));
	grants_add(&g, "/w", GRANT_READ, open_path("/"));
	grants_add(&g, "/w/a", GRANT_WRITE, open_path("/"));
	grants_add(&g, "/w/f", GRANT_WRITE, open_path("/proc/self/exe"));
	grants_add(&g, "/dev/null", GRANT_DEVICE, open_path("/dev/null"));
	grants_add(&g, "/dev/shm", GRANT_READ | GRANT_WRITE, -1);
	expect(&g, "/", GRANT_READ, NULL);
	expect(&g, "/w", GRANT_READ, "/w");
	expect(&g, "/w", GRANT_WRITE, NULL);
	expect(&g, "/wx", GRANT_READ, NULL);
	expect(&g, "/w/x", GRANT_READ, "/w");
	expect(&g, "/w/a/x", GRANT_READ, "/w");
	expect(&g, "/w/a/x", GRANT_WRITE, "/w/a");
	expect(&g, "/w/a/b", GRANT_WRITE, "/w/a/b");
	expect(&g, "/w/a/b/c/d", GRANT_READ | GRANT_WRITE, "/w/a/b");
	expect(&g, "/w/a/bc", GRANT_WRITE, "/w/a");
	expect(&g, "/w/f", GRANT_WRITE, "/w/f");
	expect(&g, "/w/f/x", GRANT_WRITE, NULL);
	expect(&g, "/w/fx", GRANT_WRITE, NULL);
	expect(&g, "/dev/null", GRANT_WRITE, NULL);
	expect(&g, "/dev/null", GRANT_DEVICE, "/dev/null");
	expect(&g, "/dev/shm/x", GRANT_WRITE, "/dev/shm");
	expect(&g, "pipe:[1]", GRANT_READ, NULL);
	assert_int_equal(grants_count_write_dirs(&g), 3);
	grants_done(&g);
	assert_int_equal(g.n, 0);
	grants_done(&g);
}

static void test_root(void **state)
{
	struct grants g = {0};
	grants_add(&g, "/", GRANT_READ | GRANT_WRITE, open_path("/"));
	grants_add(&g, "/a", GRANT_READ, open_path("/"));
	expect(&g, "/", GRANT_WRITE, "/");
	expect(&g, "/a/b", GRANT_WRITE, "/");
	expect(&g, "/a/b", GRANT_READ, "/a");
	grants_done(&g);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_find),
		cmocka_unit_test(test_root),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
