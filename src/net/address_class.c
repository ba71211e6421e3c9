/* SPDX-License-Identifier: Apache-2.0 */
/* A table of networks for each family, the narrower before the wider ones; what none covers is
 * public. */
#include "net/address_class.h"

#include <stddef.h>
#include <string.h>

#include "base/util.h"

struct network {
	uint8_t addr[16];
	uint8_t bits;
	int8_t class;
	uint8_t v4_at; /* an IPv4 address lies there, which decides; 0: none */
};

/* clang-format off */
static const struct network v4[] = {
	{ { 0 },                    8, ADDRESS_SPECIAL }, /* this host */
	{ { 10 },                   8, ADDRESS_PRIVATE },
	{ { 100, 100, 100, 200 },  32, ADDRESS_SPECIAL }, /* metadata of Alibaba */
	{ { 100, 64 },             10, ADDRESS_PRIVATE },
	{ { 127 },                  8, ADDRESS_SPECIAL },
	{ { 168, 63, 129, 16 },    32, ADDRESS_SPECIAL }, /* Azure's host */
	{ { 169, 254 },            16, ADDRESS_SPECIAL }, /* link-local, metadata */
	{ { 172, 16 },             12, ADDRESS_PRIVATE },
	{ { 192, 0, 0 },           24, ADDRESS_SPECIAL }, /* protocols; metadata of Oracle */
	{ { 192, 168 },            16, ADDRESS_PRIVATE },
	{ { 198, 18 },             15, ADDRESS_PRIVATE }, /* benchmarks */
	{ { 224 },                  3, ADDRESS_SPECIAL }, /* multicast, reserved, broadcast */
};

static const struct network v6[] = {
	{ { 0, 0x64, 0xff, 0x9b },           96, ADDRESS_PUBLIC, 12 }, /* NAT64 */
	{ { 0, 0x64, 0xff, 0x9b, 0, 1 },     48, ADDRESS_SPECIAL }, /* NAT64 of a network's own */
	{ { 0 },                              8, ADDRESS_SPECIAL }, /* ::, ::1, mapped, compatible */
	{ { 1 },                              8, ADDRESS_SPECIAL }, /* discard-only */
	{ { 0x20, 0x01, 0 },                 32, ADDRESS_SPECIAL }, /* Teredo */
	{ { 0x20, 0x02 },                    16, ADDRESS_PUBLIC, 2 }, /* 6to4 */
	{ { 0xfd, 0, 0x0e, 0xc2, [14] = 0x02, 0x54 }, 128, ADDRESS_SPECIAL }, /* metadata of EC2 */
	{ { 0xfd, 0x20, 0, 0xce, [14] = 0x02, 0x54 }, 128, ADDRESS_SPECIAL }, /* metadata of Google */
	{ { 0xfc },                           7, ADDRESS_PRIVATE },
	{ { 0xfe, 0x80 },                    10, ADDRESS_SPECIAL }, /* link-local */
	{ { 0xfe, 0xc0 },                    10, ADDRESS_PRIVATE }, /* site-local */
	{ { 0xff },                           8, ADDRESS_SPECIAL }, /* multicast */
};
/* clang-format on */

static bool covers(const struct network *n, const uint8_t *addr)
{
	size_t whole = n->bits / 8;
	unsigned int rest = n->bits % 8;
	if (memcmp(n->addr, addr, whole) != 0)
		return false;
	return !rest || (n->addr[whole] ^ addr[whole]) >> (8 - rest) == 0;
}

static enum address_class class_v4(const uint8_t *addr)
{
	for (size_t i = 0; i < ARRAY_SIZE(v4); i++)
		if (covers(&v4[i], addr))
			return v4[i].class;
	return ADDRESS_PUBLIC;
}

enum address_class address_class(bool is_v6, const uint8_t *addr)
{
	if (!is_v6)
		return class_v4(addr);
	for (size_t i = 0; i < ARRAY_SIZE(v6); i++) {
		if (!covers(&v6[i], addr))
			continue;
		if (!v6[i].v4_at)
			return v6[i].class;
		return class_v4(addr + v6[i].v4_at) == ADDRESS_PUBLIC ? ADDRESS_PUBLIC
								      : ADDRESS_SPECIAL;
	}
	return ADDRESS_PUBLIC;
}
