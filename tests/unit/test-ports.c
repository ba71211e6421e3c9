/* SPDX-License-Identifier: Apache-2.0 */
/* The table of a sandbox's own ports. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/util.h"
#include "net/ports.h"
#include "policy/policy.h"

static void test_real_and_virtual(void **state)
{
	struct ports *p = ports_new();
	struct ports_key tcp = {NET_TCP, false, 80};
	struct ports_key tcp6 = {NET_TCP, true, 80};
	struct ports_key udp = {NET_UDP, false, 80};
	(void)state;
	assert_int_equal(ports_real(p, &tcp), 0);
	assert_int_equal(ports_add(p, &tcp, 80, 1), 0);
	assert_false(ports_differ(p));
	assert_int_equal(ports_add(p, &udp, 4000, 2), 0);
	assert_true(ports_differ(p));
	assert_int_equal(ports_real(p, &tcp), 80);
	assert_int_equal(ports_real(p, &tcp6), 0);
	assert_int_equal(ports_real(p, &udp), 4000);
	assert_int_equal(ports_virtual(p, NET_UDP, 4000), 80);
	assert_int_equal(ports_virtual(p, NET_TCP, 4000), 4000);
	/* Another real port takes the place of the one before. */
	assert_int_equal(ports_add(p, &udp, 80, 3), 0);
	assert_false(ports_differ(p));
	assert_int_equal(ports_virtual(p, NET_UDP, 4000), 4000);
	ports_unref(p);
}

static void test_sockets_of_a_port(void **state)
{
	struct ports *p = ports_new();
	struct ports_key key = {NET_TCP, false, 8080};
	uint64_t inodes[PORTS_INODES_KEPT];
	(void)state;
	for (uint64_t i = 0; i < 3; i++)
		assert_int_equal(ports_add(p, &key, 5000, 100 + i), 0);
	assert_int_equal(ports_inodes(p, &key, inodes), 3);
	assert_int_equal(inodes[2], 102);
	for (uint64_t i = 0; i < PORTS_INODES_KEPT; i++)
		assert_int_equal(ports_add(p, &key, 5000, 200 + i), 0);
	assert_int_equal(ports_inodes(p, &key, inodes), PORTS_INODES_KEPT);
	for (size_t i = 0; i < PORTS_INODES_KEPT; i++)
		assert_true(inodes[i] >= 200);
	/* Those of another real port do not count any more. */
	assert_int_equal(ports_add(p, &key, 5001, 300), 0);
	assert_int_equal(ports_inodes(p, &key, inodes), 1);
	assert_int_equal(inodes[0], 300);
	ports_unref(p);
}

static void count(void *data, const struct ports_key *key, uint16_t real)
{
	uint16_t *last = data;
	assert_true(key->port > *last);
	assert_int_equal(real, key->port + 1);
	*last = key->port;
}

static void test_order_and_bound(void **state)
{
	struct ports *p = ports_ref(ports_new());
	uint16_t last = 0;
	(void)state;
	ports_unref(p);
	for (int i = PORTS_MAX; i > 0; i--) {
		struct ports_key key = {NET_TCP, false, (uint16_t)i};
		assert_int_equal(ports_add(p, &key, (uint16_t)(i + 1), 1), 0);
	}
	struct ports_key more = {NET_TCP, false, PORTS_MAX + 1};
	struct ports_key known = {NET_TCP, false, 7};
	assert_int_equal(ports_add(p, &more, 9, 1), -ENOBUFS);
	assert_int_equal(ports_add(p, &known, 8, 2), 0);
	ports_each(p, count, &last);
	assert_int_equal(last, PORTS_MAX);
	ports_unref(p);
	ports_unref(NULL);
}

static void test_one_at_a_time(void **state)
{
	struct ports *p = ports_new();
	(void)state;
	assert_true(ports_lock(p, false));
	assert_false(ports_lock(p, false));
	ports_unlock(p);
	assert_true(ports_lock(p, true));
	ports_unlock(p);
	ports_unref(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_real_and_virtual),
		cmocka_unit_test(test_sockets_of_a_port),
		cmocka_unit_test(test_order_and_bound),
		cmocka_unit_test(test_one_at_a_time),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
