/* SPDX-License-Identifier: Apache-2.0 */
/*
 * --net-rate and --net-max-bytes. Both hold for TCP connections that the command makes, which go
 * through a relay (net/relay.h); what cannot be led there is refused here, by name, or not granted.
 */
#pragma once

struct builder;
struct err;
struct policy;

/* To be called when the rules of P are complete. */
int net_limits_fill(const struct builder *b, struct policy *p, struct err *err);
