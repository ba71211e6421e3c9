/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Network rules and port lists. Every fault names its position in the text; a rule that parses
 * prints in one normal form that parses to the same rule.
 */
#include "policy/net_rule.h"

#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/util.h"

enum { RULE_MAX = 4096, NAME_MAX_LEN = 253, LABEL_MAX = 63 };

/* A part of the rule text that knows where it stands. */
struct span {
	const char *base; /* start of the whole text */
	const char *s;
	size_t len;
};

static int fault(const char *base, const char *at, struct err *err, const char *reason)
{
	return err_set(err, EINVAL, "character %zu: %s", (size_t)(at - base) + 1, reason);
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static char lower(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

/* --- Ports -------------------------------------------------------------------------------- */

void port_set_done(struct port_set *set)
{
	free(set->v);
	*set = (struct port_set){0};
}

static void port_set_insert(struct port_set *set, struct port_range add)
{
	size_t n = 0;
	struct port_range *v = xcalloc(set->n + 1, sizeof(*v));
	bool placed = false;

	for (size_t i = 0; i < set->n; i++) {
		struct port_range r = set->v[i];

		if ((unsigned int)r.hi + 1 < add.lo) {
			v[n++] = r;
		} else if ((unsigned int)add.hi + 1 < r.lo) {
			if (!placed)
				v[n++] = add;
			placed = true;
			v[n++] = r;
		} else {
			add.lo = r.lo < add.lo ? r.lo : add.lo;
			add.hi = r.hi > add.hi ? r.hi : add.hi;
		}
	}
	if (!placed)
		v[n++] = add;
	free(set->v);
	set->v = v;
	set->n = n;
}

void port_set_merge(struct port_set *to, const struct port_set *from)
{
	to->any = to->any || from->any;
	for (size_t i = 0; i < from->n; i++)
		port_set_insert(to, from->v[i]);
}

/* Reads a port number at *POS and moves it behind. */
static int parse_port(struct span in, size_t *pos, unsigned int min, uint16_t *ret, struct err *err)
{
	size_t i = *pos;
	unsigned int n = 0;

	while (i < in.len && is_digit(in.s[i]) && n <= 65535)
		n = n * 10 + (unsigned int)(in.s[i++] - '0');
	if (i == *pos)
		return fault(in.base, in.s + i, err, "a port number is missing");
	if (n > 65535 || n < min)
		return fault(in.base, in.s + *pos, err,
			     min ? "the port is not within 1 and 65535"
				 : "the port is not within 0 and 65535");
	*pos = i;
	*ret = (uint16_t)n;
	return 0;
}

static int parse_range(struct span in, size_t *pos, unsigned int min, struct port_range *ret,
		       struct err *err)
{
	struct port_range r = {0};
	size_t start = *pos;
	int rc = parse_port(in, pos, min, &r.lo, err);

	if (rc < 0)
		return rc;
	r.hi = r.lo;
	if (*pos < in.len && in.s[*pos] == '-') {
		(*pos)++;
		rc = parse_port(in, pos, min, &r.hi, err);
		if (rc < 0)
			return rc;
	}
	if (r.hi < r.lo)
		return fault(in.base, in.s + start, err, "the range ends below its start");
	*ret = r;
	return 0;
}

static int parse_ports(struct span in, unsigned int min, struct port_set *set, struct err *err)
{
	if (in.len == 0)
		return fault(in.base, in.s, err, "ports are missing; write a number or *");
	if (in.len == 1 && in.s[0] == '*') {
		set->any = true;
		return 0;
	}
	for (size_t pos = 0;;) {
		struct port_range r = {0};

		if (pos < in.len && in.s[pos] == '*')
			return fault(in.base, in.s + pos, err,
				     "* cannot be mixed with port numbers");
		int rc = parse_range(in, &pos, min, &r, err);

		if (rc < 0)
			return rc;
		port_set_insert(set, r);
		if (pos == in.len)
			return 0;
		if (in.s[pos] != ',')
			return fault(in.base, in.s + pos, err,
				     "expected a comma, a range or the end behind a port");
		pos++;
	}
}

int port_set_parse(const char *text, unsigned int min, struct port_set *ret_set, struct err *err)
{
	struct port_set set = {0};
	int rc = parse_ports((struct span){text, text, strlen(text)}, min, &set, err);

	if (rc < 0) {
		port_set_done(&set);
		return rc;
	}
	*ret_set = set;
	return 0;
}

static void add_ports(struct buf *b, const struct port_set *set)
{
	if (set->any)
		buf_add_char(b, '*');
	for (size_t i = 0; !set->any && i < set->n; i++) {
		const struct port_range *r = &set->v[i];

		if (i > 0)
			buf_add_char(b, ',');
		if (r->lo == r->hi)
			buf_printf(b, "%u", r->lo);
		else
			buf_printf(b, "%u-%u", r->lo, r->hi);
	}
}

char *port_set_format(const struct port_set *set)
{
	struct buf b = BUF_INIT(1 << 20);

	add_ports(&b, set);
	return buf_take(&b);
}

/* --- Targets ------------------------------------------------------------------------------ */

/* Clears the bits of ADDR (LEN bytes) that lie behind the first PREFIX ones. */
static void mask_address(uint8_t *addr, size_t len, unsigned int prefix)
{
	for (size_t i = 0; i < len; i++) {
		unsigned int keep = prefix > i * 8 ? prefix - (unsigned int)i * 8 : 0;

		if (keep < 8)
			addr[i] &= (uint8_t)(0xff00 >> keep);
	}
}

/* An IPv4-mapped network becomes the IPv4 one: destinations are compared in that form. */
static void unmap_v4(struct net_rule *rule)
{
	static const uint8_t mapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
	uint8_t v4[4];

	if (rule->target != NET_TARGET_CIDR6 || rule->prefix_len < 96 ||
	    memcmp(rule->addr, mapped, sizeof(mapped)) != 0)
		return;
	memcpy(v4, rule->addr + 12, sizeof(v4));
	memset(rule->addr, 0, sizeof(rule->addr));
	memcpy(rule->addr, v4, sizeof(v4));
	rule->prefix_len = (uint8_t)(rule->prefix_len - 96);
	rule->target = NET_TARGET_CIDR4;
}

/* The number behind the slash; -1 if it is none up to MAX. */
static int parse_prefix(const char *s, size_t len, int max)
{
	int n = 0;

	if (len == 0 || len > 3 || (len > 1 && s[0] == '0'))
		return -1;
	for (size_t i = 0; i < len; i++) {
		if (!is_digit(s[i]))
			return -1;
		n = n * 10 + (s[i] - '0');
	}
	return n <= max ? n : -1;
}

/* Whether IN is an address or a network as a whole; then RULE's target is set. */
static bool parse_address(struct span in, struct net_rule *rule)
{
	const char *slash = memchr(in.s, '/', in.len);
	size_t len = slash ? (size_t)(slash - in.s) : in.len;
	char host[INET6_ADDRSTRLEN];
	uint8_t addr[16] = {0};

	if (len == 0 || len >= sizeof(host))
		return false;
	memcpy(host, in.s, len);
	host[len] = '\0';

	bool v6 = memchr(host, ':', len) != NULL;
	int max = v6 ? 128 : 32;
	int prefix = slash ? parse_prefix(slash + 1, in.len - len - 1, max) : max;

	if (prefix < 0 || inet_pton(v6 ? AF_INET6 : AF_INET, host, addr) != 1)
		return false;
	mask_address(addr, v6 ? 16 : 4, (unsigned int)prefix);
	memcpy(rule->addr, addr, sizeof(addr));
	rule->target = v6 ? NET_TARGET_CIDR6 : NET_TARGET_CIDR4;
	rule->prefix_len = (uint8_t)prefix;
	unmap_v4(rule);
	return true;
}

static bool is_name_char(char c)
{
	char l = lower(c);

	return is_digit(c) || (l >= 'a' && l <= 'z') || c == '-' || c == '_';
}

/* One label at POS: its length, or 0 and *RET_WHY. */
static size_t label_length(struct span in, size_t pos, const char **ret_why)
{
	size_t n = 0;

	while (pos + n < in.len && is_name_char(in.s[pos + n]))
		n++;
	if (pos + n < in.len && in.s[pos + n] != '.') {
		*ret_why = "this character cannot stand in a host name";
		return 0;
	}
	if (n == 0)
		*ret_why = "a part of the host name is empty";
	else if (n > LABEL_MAX)
		*ret_why = "a part of the host name is longer than 63 characters";
	else if (in.s[pos] == '-' || in.s[pos + n - 1] == '-')
		*ret_why = "a part of the host name begins or ends with a hyphen";
	else
		return n;
	return 0;
}

static bool all_digits(const char *s, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (!is_digit(s[i]))
			return false;
	return true;
}

static const char *label_fault_at(struct span in, size_t pos)
{
	size_t n = 0;

	while (pos + n < in.len && is_name_char(in.s[pos + n]))
		n++;
	return pos + n < in.len && in.s[pos + n] != '.' ? in.s + pos + n : in.s + pos;
}

static int parse_name(struct span in, char **ret_name, struct err *err)
{
	size_t last = 0, last_len = 0;

	if (in.len > 1 && in.s[in.len - 1] == '.')
		in.len--;
	if (in.len > NAME_MAX_LEN)
		return fault(in.base, in.s, err, "the host name is longer than 253 characters");
	for (size_t pos = 0; pos <= in.len; pos += last_len + 1) {
		const char *why = NULL;

		last = pos;
		last_len = label_length(in, pos, &why);
		if (last_len == 0)
			return fault(in.base, label_fault_at(in, pos), err, why);
	}
	if (all_digits(in.s + last, last_len))
		return fault(
			in.base, in.s, err,
			"this is neither an address nor a host name (its last part is a number)");

	char *name = xstrndup(in.s, in.len);

	for (char *p = name; *p; p++)
		*p = lower(*p);
	*ret_name = name;
	return 0;
}

static int parse_target(struct span in, struct net_rule *rule, struct err *err)
{
	if (in.len == 0 || (in.len == 1 && in.s[0] == '*')) {
		rule->target = NET_TARGET_ANY;
		return 0;
	}
	if (parse_address(in, rule))
		return 0;
	if (memchr(in.s, '/', in.len))
		return fault(in.base, in.s, err,
			     "this is not a network: write an IPv4 or IPv6 address, / and the "
			     "length of its prefix");
	if (in.len > 2 && in.s[0] == '*' && in.s[1] == '.') {
		struct span rest = {in.base, in.s + 2, in.len - 2};

		rule->target = NET_TARGET_WILDCARD;
		return parse_name(rest, &rule->name, err);
	}
	if (in.s[0] == '*')
		return fault(in.base, in.s, err,
			     "a wildcard is * alone or *. in front of a domain");
	rule->target = NET_TARGET_NAME;
	return parse_name(in, &rule->name, err);
}

/* --- Rules -------------------------------------------------------------------------------- */

void net_rule_done(struct net_rule *rule)
{
	free(rule->name);
	free(rule->text);
	port_set_done(&rule->ports);
	*rule = (struct net_rule){0};
}

static bool span_is(const char *s, size_t len, const char *word)
{
	if (strlen(word) != len)
		return false;
	for (size_t i = 0; i < len; i++)
		if (lower(s[i]) != word[i])
			return false;
	return true;
}

/* Takes "scheme://" off the front of IN. */
static int parse_scheme(struct span *in, struct net_rule *rule, struct err *err)
{
	const char *sep = strstr(in->s, "://");
	size_t len = sep ? (size_t)(sep - in->s) : 0;

	rule->protos = NET_TCP | NET_UDP;
	if (!sep)
		return 0;
	rule->scheme_given = true;
	if (span_is(in->s, len, "tcp"))
		rule->protos = NET_TCP;
	else if (span_is(in->s, len, "udp"))
		rule->protos = NET_UDP;
	else if (span_is(in->s, len, "icmp"))
		rule->protos = NET_ICMP;
	else
		return fault(in->base, in->s, err,
			     "the protocol in front of :// is not tcp, udp or icmp");
	in->s += len + 3;
	in->len -= len + 3;
	return 0;
}

/* Splits "[v6]:ports" or "target:ports"; *RET_PORTS.s is NULL where there are none. */
static int split_body(struct span in, struct span *ret_target, struct span *ret_ports,
		      struct err *err)
{
	const char *end = in.s + in.len;
	const char *colon = memchr(in.s, ':', in.len);

	*ret_target = in;
	*ret_ports = (struct span){.base = in.base};
	if (in.s[0] == '[') {
		const char *close = memchr(in.s, ']', in.len);

		if (!close)
			return fault(in.base, in.s, err, "the bracket is not closed");
		if (close + 1 < end && close[1] != ':')
			return fault(in.base, close + 1, err, "expected : behind the bracket");
		*ret_target = (struct span){in.base, in.s + 1, (size_t)(close - in.s) - 1};
		colon = close + 1 < end ? close + 1 : NULL;
		if (!memchr(ret_target->s, ':', ret_target->len))
			return fault(in.base, in.s, err, "only an IPv6 address stands in brackets");
	} else if (colon) {
		if (memchr(colon + 1, ':', (size_t)(end - colon) - 1))
			return fault(in.base, in.s, err,
				     "this is not an address; IPv6 with ports is written "
				     "[ADDRESS]:PORTS");
		ret_target->len = (size_t)(colon - in.s);
	}
	if (colon)
		*ret_ports = (struct span){in.base, colon + 1, (size_t)(end - colon) - 1};
	return 0;
}

static int parse_body(struct span in, struct net_rule *rule, struct err *err)
{
	struct span target, ports;

	if (in.len == 0)
		return fault(in.base, in.s, err, "a target is missing; * means every address");
	if (parse_address(in, rule)) {
		rule->ports.any = rule->protos != NET_ICMP;
		return 0;
	}
	int rc = split_body(in, &target, &ports, err);

	if (rc < 0)
		return rc;
	if (in.s[0] == '[' && !parse_address(target, rule))
		return fault(in.base, target.s, err, "this is not an IPv6 address or network");
	if (in.s[0] != '[')
		rc = parse_target(target, rule, err);
	if (rc < 0)
		return rc;
	if (ports.s && rule->protos == NET_ICMP)
		return fault(in.base, ports.s - 1, err, "an icmp rule takes no ports");
	if (!ports.s) {
		rule->ports.any = rule->protos != NET_ICMP;
		return 0;
	}
	return parse_ports(ports, 1, &rule->ports, err);
}

int net_rule_parse(const char *text, struct net_rule *ret_rule, struct err *err)
{
	struct net_rule rule = {0};
	struct span in = {text, text, strlen(text)};

	if (in.len > RULE_MAX)
		return err_set(err, E2BIG, "the rule is longer than 4096 characters");
	int rc = parse_scheme(&in, &rule, err);

	if (rc == 0)
		rc = parse_body(in, &rule, err);
	if (rc < 0) {
		net_rule_done(&rule);
		return rc;
	}
	rule.text = xstrdup(text);
	*ret_rule = rule;
	return 0;
}

static void add_address(struct buf *b, const struct net_rule *rule)
{
	bool v6 = rule->target == NET_TARGET_CIDR6;
	bool brackets = v6 && !rule->ports.any && rule->protos != NET_ICMP;
	char text[INET6_ADDRSTRLEN];

	inet_ntop(v6 ? AF_INET6 : AF_INET, rule->addr, text, sizeof(text));
	buf_printf(b, "%s%s", brackets ? "[" : "", text);
	if (rule->prefix_len != (v6 ? 128 : 32))
		buf_printf(b, "/%u", rule->prefix_len);
	if (brackets)
		buf_add_char(b, ']');
}

char *net_rule_format(const struct net_rule *rule)
{
	struct buf b = BUF_INIT(1 << 20);
	bool has_ports = !rule->ports.any && rule->protos != NET_ICMP;

	if (rule->scheme_given)
		buf_add_str(&b, rule->protos == NET_TCP	  ? "tcp://"
				: rule->protos == NET_UDP ? "udp://"
							  : "icmp://");
	switch (rule->target) {
	case NET_TARGET_ANY:
		if (!has_ports)
			buf_add_char(&b, '*');
		break;
	case NET_TARGET_CIDR4:
	case NET_TARGET_CIDR6:
		add_address(&b, rule);
		break;
	case NET_TARGET_NAME:
		buf_add_str(&b, rule->name);
		break;
	case NET_TARGET_WILDCARD:
		buf_printf(&b, "*.%s", rule->name);
		break;
	}
	if (has_ports) {
		buf_add_char(&b, ':');
		add_ports(&b, &rule->ports);
	}
	return buf_take(&b);
}
