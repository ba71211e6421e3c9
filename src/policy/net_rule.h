/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The grammar of network rules and port lists, to struct net_rule and back. Pure; names are checked
 * for form and never looked up.
 *
 *   rule   = [("tcp" | "udp" | "icmp") "://"] body
 *   body   = target [":" ports] | ":" ports | "[" ipv6 ["/" bits] "]" [":" ports]
 *   target = "*" | ipv4 | ipv6 | ipv4 "/" bits | ipv6 "/" bits | name | "*." name
 *   ports  = "*" | port ["-" port] *("," port ["-" port])
 *
 * A body that is an address or a network as a whole is taken as that, so a bare IPv6 address works.
 * IPv4-mapped IPv6 addresses become the IPv4 address that they stand for, names become lower case,
 * and bits of a network address behind its prefix become zero.
 */
#pragma once

#include "policy/policy.h"

/* Messages name the position of the fault: "character 7: …". Nothing is left behind on failure. */
int net_rule_parse(const char *text, struct net_rule *ret_rule, struct err *err);
void net_rule_done(struct net_rule *rule);
/* The rule in its one normal form (owned); reads back as the same rule. */
char *net_rule_format(const struct net_rule *rule);

/*
 * Ports and ranges with commas, or "*". MIN is 0 or 1: whether port 0 is a value. Ranges come out
 * sorted, without overlap and with neighbours joined.
 */
int port_set_parse(const char *text, unsigned int min, struct port_set *ret_set, struct err *err);
/* Adds the ports of FROM to TO, which stays sorted and joined. */
void port_set_merge(struct port_set *to, const struct port_set *from);
void port_set_done(struct port_set *set);
char *port_set_format(const struct port_set *set);
