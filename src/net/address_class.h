/* SPDX-License-Identifier: Apache-2.0 */
/* What an address that DNS answered stands for: whether an attacker's name may lead there. Pure. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum address_class {
	ADDRESS_PUBLIC,
	ADDRESS_PRIVATE, /* RFC 1918, ULA, carrier-grade NAT and other networks of one's own */
	/* This machine, this link, cloud metadata, multicast, reserved, and every form in which an
	   IPv6 address hides an IPv4 one that is not public. */
	ADDRESS_SPECIAL,
};

/* ADDR: 4 bytes, or 16 with V6, in network order. */
enum address_class address_class(bool v6, const uint8_t *addr);
