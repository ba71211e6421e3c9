/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The check of a single value by its option's type, and its normal form. What comes out reads back
 * to itself; what is refused is refused with a message that names the value and says what would do.
 */
#include <errno.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/number.h"
#include "base/path.h"
#include "base/timestamp.h"
#include "base/util.h"
#include "policy/builder_internal.h"
#include "policy/net_rule.h"

enum { PATH_LEN_MAX = 4095, SANDBOX_NAME_MAX = 64, WORD_LEN_MAX = 65536 };

static bool has_control(const char *s)
{
	for (; *s; s++)
		if ((unsigned char)*s < 0x20 || *s == 0x7f)
			return true;
	return false;
}

static int refuse(struct err *err, const char *text, const char *reason)
{
	char q[QUOTE_SIZE];

	return err_set(err, EINVAL, "%s %s", quote_str(text, q, sizeof(q)), reason);
}

static int value_bool(const char *text, char **ret, struct err *err)
{
	if (!str_eq(text, "true") && !str_eq(text, "false"))
		return refuse(err, text, "is neither true nor false");
	*ret = xstrdup(text);
	return 0;
}

static int value_word(const char *text, char **ret, struct err *err)
{
	if (!text[0])
		return err_set(err, EINVAL, "the value is empty");
	if (strlen(text) > WORD_LEN_MAX)
		return refuse(err, text, "is longer than 65536 bytes");
	if (has_control(text))
		return refuse(err, text, "holds a control character");
	*ret = xstrdup(text);
	return 0;
}

static int check_path(const char *text, struct err *err)
{
	if (!text[0])
		return err_set(err, EINVAL, "the path is empty; write . for the working directory");
	if (strlen(text) > PATH_LEN_MAX)
		return refuse(err, text, "is longer than 4095 bytes, which no path is");
	if (strchr(text, '\n'))
		return refuse(err, text, "holds a line break; such a path cannot be named");
	return 0;
}

static int make_absolute(const char *text, const char *base, char **ret, struct err *err)
{
	if (text[0] != '/' && !base)
		return refuse(
			err, text,
			"is relative and there is no working directory; write it from the root");

	auto_free char *abs = path_absolute(base ? base : "/", text);

	if (strlen(abs) > PATH_LEN_MAX)
		return refuse(err, abs, "is longer than 4095 bytes, which no path is");
	*ret = take_ptr(abs);
	return 0;
}

static int value_path(const char *text, const struct builder *b, char **ret, struct err *err)
{
	int r = check_path(text, err);

	return r < 0 ? r : make_absolute(text, b->host.cwd, ret, err);
}

/* "*" is every socket; a file of that name is written with its directory. */
static int value_socket(const char *text, const struct builder *b, char **ret, struct err *err)
{
	if (!str_eq(text, "*"))
		return value_path(text, b, ret, err);
	*ret = xstrdup(text);
	return 0;
}

static int value_file(const char *text, char **ret, struct err *err)
{
	int r = check_path(text, err);

	if (r == 0)
		*ret = xstrdup(text);
	return r;
}

/* A path or glob to deny or hide: anchored at the profile that names it, else at the cwd. */
static int value_pattern(const char *text, const struct builder *b, const struct origin *from,
			 char **ret, struct err *err)
{
	const char *base = from->kind == ORIGIN_FILE ? from->dir : b->host.cwd;
	bool literal = str_starts(text, "path:");
	const char *path = literal ? text + strlen("path:") : text;
	bool glob = !literal && strpbrk(path, "*?[");
	int r = check_path(path, err);

	if (r < 0)
		return r;
	if (!glob) {
		auto_free char *abs = NULL;

		r = make_absolute(path, base, &abs, err);
		if (r < 0 || !abs)
			return r;
		*ret = strpbrk(abs, "*?[") ? xasprintf("path:%s", abs) : take_ptr(abs);
		return 0;
	}
	if (path[0] == '/' || str_starts(path, "**/")) {
		*ret = xstrdup(path);
		return 0;
	}
	if (!base || strpbrk(base, "*?["))
		return refuse(err, text,
			      "is a relative pattern and cannot be anchored here; write it from "
			      "the root");
	*ret = path_join(base, str_starts(path, "./") ? path + 2 : path);
	return 0;
}

static int value_mount(const char *text, const struct builder *b, char **ret, struct err *err)
{
	size_t len = strlen(text);
	const char *mode = str_ends(text, ":ro") ? ":ro" : str_ends(text, ":rw") ? ":rw" : "";
	auto_free char *spec = xstrndup(text, len - strlen(mode));
	char *colon = strchr(spec, ':');
	auto_free char *virtual_path = NULL, *host_path = NULL;

	if (!colon || colon == spec || !colon[1])
		return refuse(err, text, "is not of the form VIRTUAL:HOST[:ro|:rw]");
	*colon = '\0';
	if (spec[0] != '/')
		return refuse(err, text, "does not begin with an absolute path");

	int r = value_path(spec, b, &virtual_path, err);

	if (r == 0)
		r = value_path(colon + 1, b, &host_path, err);
	if (r < 0)
		return r;
	*ret = xasprintf("%s:%s%s", virtual_path, host_path, mode);
	return 0;
}

static int value_env(const char *text, char **ret, struct err *err)
{
	const char *eq = strchr(text, '=');

	if (!eq)
		return refuse(err, text, "is not of the form KEY=VALUE");
	if (eq == text)
		return refuse(err, text, "has no name in front of the equals sign");

	auto_free char *key = xstrndup(text, (size_t)(eq - text));

	if (has_control(key))
		return refuse(err, key, "holds a control character; this is no variable's name");
	if (strlen(text) > WORD_LEN_MAX)
		return refuse(err, key, "is set to a value longer than 65536 bytes");
	*ret = xstrdup(text);
	return 0;
}

static int value_name(const char *text, char **ret, struct err *err)
{
	if (!text[0])
		return err_set(err, EINVAL, "the name is empty");
	if (strlen(text) > SANDBOX_NAME_MAX)
		return refuse(err, text, "is longer than 64 bytes");
	if (strchr(text, '/'))
		return refuse(err, text, "holds a slash, which a name cannot");
	if (str_eq(text, ".") || str_eq(text, ".."))
		return refuse(err, text, "is not a name");
	if (strchr(text, ' ') || has_control(text))
		return refuse(err, text,
			      "holds a blank or a control character, which a name cannot");
	*ret = xstrdup(text);
	return 0;
}

static int value_choice(const struct option *o, const char *text, char **ret, struct err *err)
{
	auto_free char *lower = xstrdup(text);
	AUTO(buf_done) struct buf known = BUF_INIT(1024);

	for (char *p = lower; *p && o->type == OPTION_PROTECTIONS; p++)
		if (*p >= 'A' && *p <= 'Z')
			*p = (char)(*p - 'A' + 'a');
	for (size_t i = 0; o->words[i]; i++) {
		if (str_eq(o->words[i], lower)) {
			*ret = take_ptr(lower);
			return 0;
		}
		buf_printf(&known, "%s%s", i ? ", " : "", o->words[i]);
	}
	char q[QUOTE_SIZE];

	return err_set(err, EINVAL, "%s is not one of %s", quote_str(text, q, sizeof(q)),
		       buf_text(&known));
}

static int value_uint(const struct option *o, const char *text, char **ret, struct err *err)
{
	uint64_t n = 0;
	int r = number_parse_u64(text, o->min, o->max, &n, err);

	if (r == 0)
		*ret = xasprintf("%llu", (unsigned long long)n);
	return r;
}

static int value_size(const char *text, char **ret, struct err *err)
{
	char out[NUMBER_TEXT_SIZE];
	uint64_t n = 0;
	int r = number_parse_size(text, false, &n, err);

	if (r == 0)
		*ret = xstrdup(number_print_size(n, out));
	return r;
}

static int value_duration(const char *text, char **ret, struct err *err)
{
	char out[NUMBER_TEXT_SIZE];
	uint64_t ms = 0;
	int r = number_parse_duration(text, &ms, err);

	if (r == 0)
		*ret = xstrdup(number_print_duration(ms, out));
	return r;
}

static int value_ports(const struct option *o, const char *text, char **ret, struct err *err)
{
	struct port_set set = {0};
	bool single = o->type == OPTION_PORT_NUMBERS;
	int r = port_set_parse(text, single ? 1 : 0, &set, err);

	if (r < 0) {
		char q[QUOTE_SIZE];

		return err_prefix(err, "%s", quote_str(text, q, sizeof(q)));
	}
	if (single && (set.any || set.v[0].lo != set.v[0].hi))
		r = refuse(err, text, "is not a single port");
	else
		*ret = port_set_format(&set);
	port_set_done(&set);
	return r;
}

static int value_net_rule(const char *text, char **ret, struct err *err)
{
	struct net_rule rule;
	int r = net_rule_parse(text, &rule, err);

	if (r < 0) {
		char q[QUOTE_SIZE];

		return err_prefix(err, "%s", quote_str(text, q, sizeof(q)));
	}
	*ret = net_rule_format(&rule);
	net_rule_done(&rule);
	return 0;
}

/* Seconds since 1970, with a sign and a fraction if need be. */
static bool is_epoch(const char *s)
{
	size_t digits = strspn(s + (*s == '-'), "0123456789");

	s += (*s == '-') + digits;
	if (digits == 0 || digits > 18)
		return false;
	if (*s == '.') {
		size_t fraction = strspn(s + 1, "0123456789");

		return fraction > 0 && fraction <= 9 && s[1 + fraction] == '\0';
	}
	return *s == '\0';
}

static int value_time(const char *text, char **ret, struct err *err)
{
	struct timestamp ts;

	if (!is_epoch(text)) {
		int r = timestamp_parse(text, &ts, err);

		if (r < 0)
			return r;
	}
	*ret = xstrdup(text);
	return 0;
}

static int value_factor(const char *text, char **ret, struct err *err)
{
	if (!is_epoch(text) || text[0] == '-' || strspn(text, "0.") == strlen(text))
		return refuse(err, text, "is not a positive decimal number");
	*ret = xstrdup(text);
	return 0;
}

static int value_gpu(const struct option *o, const char *text, char **ret, struct err *err)
{
	if (strcasecmp(text, "all") != 0)
		return value_uint(o, text, ret, err);
	*ret = xstrdup("all");
	return 0;
}

static int value_text(const struct option *o, const char *text, char **ret, struct err *err)
{
	if (o->type != OPTION_STRINGS && !text[0])
		return err_set(err, EINVAL, "the value is empty");
	*ret = xstrdup(text);
	return 0;
}

int option_value_normalize(const struct option *o, const char *text, const struct builder *b,
			   const struct origin *from, char **ret_text, struct err *err)
{
	switch (o->type) {
	case OPTION_BOOL:
		return value_bool(text, ret_text, err);
	case OPTION_STRING:
	case OPTION_STRINGS:
		return value_text(o, text, ret_text, err);
	case OPTION_WORDS:
		return value_word(text, ret_text, err);
	case OPTION_PATH:
	case OPTION_PATHS:
		return value_path(text, b, ret_text, err);
	case OPTION_SOCKETS:
		return value_socket(text, b, ret_text, err);
	case OPTION_PATTERNS:
		return value_pattern(text, b, from, ret_text, err);
	case OPTION_FILE:
	case OPTION_EXEC:
		return value_file(text, ret_text, err);
	case OPTION_MOUNTS:
		return value_mount(text, b, ret_text, err);
	case OPTION_ENV:
		return value_env(text, ret_text, err);
	case OPTION_UINT:
	case OPTION_CORES:
		return value_uint(o, text, ret_text, err);
	case OPTION_SIZE:
		return value_size(text, ret_text, err);
	case OPTION_DURATION:
		return value_duration(text, ret_text, err);
	case OPTION_ENUM:
	case OPTION_PROTECTIONS:
		return value_choice(o, text, ret_text, err);
	case OPTION_NAME:
		return value_name(text, ret_text, err);
	case OPTION_PORTS:
	case OPTION_PORT_NUMBERS:
		return value_ports(o, text, ret_text, err);
	case OPTION_NET_RULES:
		return value_net_rule(text, ret_text, err);
	case OPTION_GPUS:
		return value_gpu(o, text, ret_text, err);
	case OPTION_TIME:
		return value_time(text, ret_text, err);
	case OPTION_FACTOR:
		return value_factor(text, ret_text, err);
	case OPTION_USER:
	case OPTION_TYPE_COUNT:
		break;
	}
	return err_set(err, EINVAL, "%s takes no single value", option_label(o));
}
