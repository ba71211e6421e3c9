/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Expansion in policy files: ${VAR}, ${VAR:-default}, a leading ~/ (or ~ alone), $$ for a dollar
 * sign and $~ for a tilde. Anything else behind a dollar sign is an error, so that a value never
 * means something that its writer did not see. One pass: what a variable holds is not expanded.
 */
#include <errno.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/util.h"
#include "policy/builder_internal.h"

enum { EXPAND_MAX = 1 << 20 };

static bool is_var_char(char c, bool first)
{
	if ((c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_')
		return true;
	return !first && c >= '0' && c <= '9';
}

static size_t var_length(const char *s)
{
	size_t n = 0;

	while (is_var_char(s[n], n == 0))
		n++;
	return n;
}

/* Expands what follows "${" at *POS and moves it behind the brace. */
static int expand_braces(const char **pos, const struct builder_host *host, struct buf *out,
			 struct err *err)
{
	const char *s = *pos;
	size_t n = var_length(s);
	const char *close = strchr(s, '}');
	char q[QUOTE_SIZE];

	if (!close)
		return err_set(err, EINVAL, "\"${\" is not closed with \"}\"");
	if (n == 0)
		return err_set(err, EINVAL, "\"${\" is not followed by the name of a variable");

	auto_free char *name = xstrndup(s, n);
	const char *value = host->env ? host->env(host->data, name) : NULL;

	if (str_starts(s + n, ":-")) {
		const char *fallback = s + n + 2;
		size_t len = (size_t)(close - fallback);

		if (memchr(fallback, '$', len))
			return err_set(err, EINVAL,
				       "the default of ${%s:-…} cannot hold a dollar sign", name);
		if (value && value[0])
			buf_add_str(out, value);
		else
			buf_add(out, fallback, len);
	} else if (s + n != close) {
		return err_set(err, EINVAL, "%s is not of the form ${VAR} or ${VAR:-default}",
			       quote_str(s - 2, q, sizeof(q)));
	} else if (!value) {
		return err_set(
			err, EINVAL,
			"the environment variable %s is not set; set it or write ${%s:-default}",
			name, name);
	} else {
		buf_add_str(out, value);
	}
	*pos = close + 1;
	return 0;
}

/* A tilde in front: the home directory, or an error for ~user. Moves *POS behind it. */
static int expand_tilde(const char **pos, const struct builder_host *host, struct buf *out,
			struct err *err)
{
	const char *home = host->env ? host->env(host->data, "HOME") : NULL;
	char c = (*pos)[1];

	if (c != '\0' && c != '/')
		return err_set(err, EINVAL,
			       "~ stands for your own home directory only; write $~ for a tilde");
	if (!home || home[0] != '/')
		return err_set(err, EINVAL,
			       "~ cannot be expanded: HOME is not set to an absolute path");
	buf_add_str(out, home);
	(*pos)++;
	return 0;
}

static int expand_dollar(const char **pos, const struct builder_host *host, struct buf *out,
			 struct err *err)
{
	char c = (*pos)[1];

	*pos += 2;
	switch (c) {
	case '$':
	case '~':
		buf_add_char(out, c);
		return 0;
	case '{':
		return expand_braces(pos, host, out, err);
	default:
		return err_set(err, EINVAL,
			       "a dollar sign stands alone; write ${VAR} for a variable, $$ for a "
			       "dollar sign");
	}
}

int expand_text(const char *text, const struct builder_host *host, char **ret_text, struct err *err)
{
	AUTO(buf_done) struct buf out = BUF_INIT(EXPAND_MAX);
	const char *pos = text;
	int rc = 0;

	if (*pos == '~')
		rc = expand_tilde(&pos, host, &out, err);
	while (rc == 0 && *pos) {
		size_t plain = strcspn(pos, "$");

		buf_add(&out, pos, plain);
		pos += plain;
		if (*pos == '$')
			rc = expand_dollar(&pos, host, &out, err);
	}
	if (rc < 0)
		return rc;
	if (out.error)
		return err_set(err, E2BIG, "the value is too long once variables are expanded");
	*ret_text = buf_take(&out);
	return 0;
}

char *expand_quote(const char *text)
{
	struct buf out = BUF_INIT(2 * EXPAND_MAX + 2);

	for (const char *p = text; *p; p++) {
		if (*p == '$' || (*p == '~' && p == text))
			buf_add_char(&out, '$');
		buf_add_char(&out, *p);
	}
	return buf_take(&out);
}
