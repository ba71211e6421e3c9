/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Policy files: from the tree that TOML or JSON was read into to settings, and back. Both go by the
 * option table alone, so that a row survives flags, TOML, JSON and TOML again; only known sections
 * and keys of the right kind are taken.
 */
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/number.h"
#include "base/utf8.h"
#include "base/util.h"
#include "base/value.h"
#include "policy/builder_internal.h"

bool option_is_expanded(const struct option *o)
{
	switch (o->type) {
	case OPTION_PATH:
	case OPTION_PATHS:
	case OPTION_SOCKETS:
	case OPTION_PATTERNS:
	case OPTION_FILE:
	case OPTION_EXEC:
	case OPTION_MOUNTS:
	case OPTION_ENV:
		return true;
	case OPTION_BOOL:
	case OPTION_STRING:
	case OPTION_STRINGS:
	case OPTION_WORDS:
	case OPTION_UINT:
	case OPTION_SIZE:
	case OPTION_DURATION:
	case OPTION_ENUM:
	case OPTION_NAME:
	case OPTION_USER:
	case OPTION_PORTS:
	case OPTION_PORT_NUMBERS:
	case OPTION_NET_RULES:
	case OPTION_PROTECTIONS:
	case OPTION_CORES:
	case OPTION_GPUS:
	case OPTION_TIME:
	case OPTION_FACTOR:
	case OPTION_TYPE_COUNT:
		return false;
	}
	return false;
}

/* --- Reading ------------------------------------------------------------------------------ */

/* A real number as the text parsers read it: plain decimals, no zeros at the end. */
static int real_text(double real, char **ret, struct err *err)
{
	char text[64];

	if (!isfinite(real) || fabs(real) >= 1e15)
		return err_set(err, EINVAL, "the number is out of range");
	snprintf(text, sizeof(text), "%.9f", real);
	for (size_t n = strlen(text); n > 2 && text[n - 1] == '0' && text[n - 2] != '.'; n--)
		text[n - 1] = '\0';
	if (str_ends(text, ".0"))
		text[strlen(text) - 2] = '\0';
	*ret = xstrdup(text);
	return 0;
}

static int wrong_kind(const struct value *v, const char *expected, struct err *err)
{
	return err_set(err, EINVAL, "expected %s, found %s", expected, value_kind_name(v->kind));
}

static bool takes_int(const struct option *o)
{
	return o->type == OPTION_UINT || o->type == OPTION_SIZE || o->type == OPTION_DURATION ||
	       o->type == OPTION_PORTS || o->type == OPTION_PORT_NUMBERS ||
	       o->type == OPTION_CORES || o->type == OPTION_GPUS || o->type == OPTION_TIME ||
	       o->type == OPTION_FACTOR;
}

static bool takes_real(const struct option *o)
{
	return o->type == OPTION_DURATION || o->type == OPTION_TIME || o->type == OPTION_FACTOR;
}

static bool takes_string(const struct option *o)
{
	if (o->type == OPTION_UINT)
		return o->max > INT64_MAX;
	return o->type != OPTION_BOOL;
}

static const char *expected_kind(const struct option *o)
{
	if (o->type == OPTION_BOOL)
		return "true or false";
	if (takes_int(o))
		return takes_string(o) ? "a number or a string" : "an integer";
	return "a string";
}

/* One value of O as text; strings are expanded where the option says so. */
static int item_text(const struct builder *b, const struct option *o, const struct value *v,
		     char **ret, struct err *err)
{
	switch (v->kind) {
	case VALUE_STRING:
		if (!takes_string(o))
			break;
		if (strlen(v->str) != v->len)
			return err_set(err, EINVAL, "the string holds a NUL character");
		if (option_is_expanded(o))
			return expand_text(v->str, &b->host, ret, err);
		*ret = xstrdup(v->str);
		return 0;
	case VALUE_INT:
		if (!takes_int(o))
			break;
		*ret = xasprintf("%lld", (long long)v->integer);
		return 0;
	case VALUE_FLOAT:
		if (!takes_real(o))
			break;
		return real_text(v->real, ret, err);
	case VALUE_BOOL:
		if (o->type != OPTION_BOOL)
			break;
		*ret = xstrdup(v->boolean ? "true" : "false");
		return 0;
	case VALUE_OFFSET_DATETIME:
	case VALUE_LOCAL_DATETIME:
		if (o->type != OPTION_TIME)
			break;
		*ret = xstrdup(v->str);
		return 0;
	case VALUE_NULL:
	case VALUE_LOCAL_DATE:
	case VALUE_LOCAL_TIME:
	case VALUE_ARRAY:
	case VALUE_TABLE:
	case VALUE_KIND_COUNT:
		break;
	}
	return wrong_kind(v, expected_kind(o), err);
}

static int prefix_place(const struct origin *at, const struct option *o, struct err *err)
{
	auto_free char *where = origin_describe(at, o);

	return err_prefix(err, "%s", where);
}

static int apply_item(struct builder *b, const struct option *o, const struct value *v,
		      const struct origin *at, struct err *err)
{
	auto_free char *text = NULL;
	int r = item_text(b, o, v, &text, err);

	return r < 0 ? prefix_place(at, o, err) : builder_set(b, o, text, at, err);
}

/* The origin of a value inside the file: its own line where it is known. */
static struct origin origin_at(const struct origin *from, const struct value *v)
{
	struct origin at = *from;

	if (v->line > 0)
		at.line = v->line;
	return at;
}

/* An entry of a table: env (KEY, VALUE) or mount (VIRTUAL, HOST). Only env keys are literal. */
static int pair_text(const struct builder *b, const struct option *o, const struct value *table,
		     size_t i, char **ret, struct err *err)
{
	const char *key = table->keys[i];
	auto_free char *left = NULL, *right = NULL;
	char q[QUOTE_SIZE];
	int r = 0;

	if (strlen(key) != table->key_lens[i])
		return err_set(err, EINVAL, "the key %s holds a NUL character",
			       quote_str(key, q, sizeof(q)));
	if (o->type == OPTION_ENV && (!key[0] || strchr(key, '=')))
		return err_set(err, EINVAL, "%s is not the name of a variable",
			       quote_str(key, q, sizeof(q)));
	if (o->type == OPTION_ENV)
		left = xstrdup(key);
	else
		r = expand_text(key, &b->host, &left, err);
	if (r == 0)
		r = item_text(b, o, table->items[i], &right, err);
	if (r < 0)
		return err_prefix(err, "%s", quote_str(key, q, sizeof(q)));
	*ret = xasprintf("%s%c%s", left, o->type == OPTION_ENV ? '=' : ':', right);
	return 0;
}

static int apply_pairs(struct builder *b, const struct option *o, const struct value *table,
		       const struct origin *from, struct err *err)
{
	for (size_t i = 0; i < table->n; i++) {
		struct origin at = origin_at(from, table->items[i]);
		auto_free char *text = NULL;
		int r = pair_text(b, o, table, i, &text, err);

		if (r < 0)
			return prefix_place(&at, o, err);
		r = builder_set(b, o, text, &at, err);
		if (r < 0)
			return r;
	}
	return 0;
}

static int apply_list(struct builder *b, const struct option *o, const struct value *v,
		      const struct origin *from, struct err *err)
{
	if (v->kind == VALUE_TABLE && (o->type == OPTION_ENV || o->type == OPTION_MOUNTS))
		return apply_pairs(b, o, v, from, err);
	if (v->kind != VALUE_ARRAY || o->type == OPTION_ENV) {
		wrong_kind(v, o->type == OPTION_ENV ? "a table" : "a list in brackets", err);
		return prefix_place(from, o, err);
	}
	for (size_t i = 0; i < v->n; i++) {
		struct origin at = origin_at(from, v->items[i]);
		int r = apply_item(b, o, v->items[i], &at, err);

		if (r < 0)
			return r;
	}
	return 0;
}

static int apply_option(struct builder *b, const struct option *o, const struct value *v,
			const struct origin *from, struct err *err)
{
	struct origin at = origin_at(from, v);

	if (!option_is_list(o))
		return apply_item(b, o, v, &at, err);
	builder_mark(b, o);
	if (o->type == OPTION_GPUS && v->kind == VALUE_ARRAY && v->n == 0)
		return builder_set(b, o, "all", &at, err);
	return apply_list(b, o, v, &at, err);
}

/* "web.toml:3" in front of messages about the file's structure. */
static int structure_fault(const struct origin *at, const char *what, const char *known,
			   struct err *err)
{
	char line[16] = "";

	if (at->line > 0)
		snprintf(line, sizeof(line), ":%d", at->line);
	if (known)
		return err_set(err, EINVAL, "%s%s: unknown %s; did you mean \"%s\"?", at->source,
			       line, what, known);
	return err_set(err, EINVAL, "%s%s: unknown %s; sandlock-policy(5) lists what there is",
		       at->source, line, what);
}

/* A key with a NUL inside is not the key that its first part names. */
static bool is_whole_key(const struct value *table, size_t i)
{
	return strlen(table->keys[i]) == table->key_lens[i];
}

static int apply_section(struct builder *b, const char *section, const struct value *table,
			 const struct origin *from, struct err *err)
{
	for (size_t i = 0; i < table->n; i++) {
		const struct option *o =
			is_whole_key(table, i) ? option_find_key(section, table->keys[i]) : NULL;
		int r;

		if (o) {
			r = apply_option(b, o, table->items[i], from, err);
		} else {
			struct origin at = origin_at(from, table->items[i]);
			char q[QUOTE_SIZE];
			auto_free char *what =
				xasprintf("key %s in section [%s]",
					  quote_str(table->keys[i], q, sizeof(q)), section);

			r = structure_fault(&at, what, option_suggest_key(section, table->keys[i]),
					    err);
		}
		if (r < 0)
			return r;
	}
	return 0;
}

static bool is_section(const char *name)
{
	for (size_t i = 0; option_sections[i]; i++)
		if (str_eq(option_sections[i], name))
			return true;
	return false;
}

static int apply_top(struct builder *b, const char *key, const struct value *v,
		     const struct origin *from, struct err *err)
{
	struct origin at = origin_at(from, v);
	char q[QUOTE_SIZE];
	const char *shown = quote_str(key, q, sizeof(q));

	if (is_section(key) && v->kind == VALUE_TABLE)
		return apply_section(b, key, v, &at, err);
	if (is_section(key)) {
		auto_free char *where = xasprintf("%s:%d", at.source, at.line);

		wrong_kind(v, "a section", err);
		return err_prefix(err, "%s: %s", where, key);
	}
	if (v->kind == VALUE_TABLE) {
		auto_free char *what = xasprintf("section %s", shown);

		return structure_fault(&at, what, option_suggest_section(key), err);
	}
	const struct option *o = option_find(key);
	auto_free char *what = xasprintf("key %s outside a section", shown);

	return structure_fault(&at, what, o ? o->path : NULL, err);
}

int builder_apply_tree(struct builder *b, const struct value *root, const struct origin *from,
		       struct err *err)
{
	if (root->kind != VALUE_TABLE) {
		wrong_kind(root, "sections", err);
		return err_prefix(err, "%s", from->source);
	}
	for (size_t i = 0; i < root->n; i++) {
		if (str_eq(root->keys[i], "include") && is_whole_key(root, i))
			continue;
		if (!is_whole_key(root, i)) {
			err_set(err, EINVAL, "a key holds a NUL character");
			return err_prefix(err, "%s", from->source);
		}
		int r = apply_top(b, root->keys[i], root->items[i], from, err);

		if (r < 0)
			return r;
	}
	return 0;
}

/* --- Writing ------------------------------------------------------------------------------ */

static int check_utf8(const char *s, struct err *err)
{
	size_t len = strlen(s);
	char q[QUOTE_SIZE];
	uint32_t cp;

	for (size_t i = 0; i < len;) {
		size_t n = utf8_decode(s + i, len - i, &cp);

		if (n == 0)
			return err_set(err, EINVAL,
				       "%s is not UTF-8, which a policy file cannot hold",
				       quote_text(s, len, q, sizeof(q)));
		i += n;
	}
	return 0;
}

static struct value *string_item(const struct option *o, const char *text)
{
	if (!option_is_expanded(o))
		return value_new_string(text);

	auto_free char *quoted = expand_quote(text);

	return value_new_string(quoted);
}

static bool is_plain_int(const char *text)
{
	size_t n = strlen(text);

	return n > 0 && n <= 18 && strspn(text, "0123456789") == n;
}

static struct value *number_item(const char *text)
{
	if (is_plain_int(text))
		return value_new_int((int64_t)strtoll(text, NULL, 10));
	return value_new_string(text);
}

static struct value *item_value(const struct option *o, const char *text)
{
	if (o->type == OPTION_BOOL)
		return value_new_bool(str_eq(text, "true"));
	if (takes_int(o) && o->type != OPTION_SIZE && o->type != OPTION_TIME)
		return number_item(text);
	return string_item(o, text);
}

static struct value *env_table(const struct option *o, const struct setting *s)
{
	struct value *table = value_new(VALUE_TABLE);

	for (size_t i = 0; i < s->n; i++) {
		const char *text = s->v[i].text;
		size_t n = strcspn(text, "=");
		auto_free char *key = xstrndup(text, n);

		value_table_put_take(table, key, string_item(o, text + n + 1));
	}
	return table;
}

static struct value *setting_value(const struct option *o, const struct setting *s)
{
	if (o->type == OPTION_ENV)
		return env_table(o, s);
	if (!option_is_list(o))
		return item_value(o, s->v[0].text);

	struct value *array = value_new(VALUE_ARRAY);
	bool all = o->type == OPTION_GPUS && s->n == 1 && str_eq(s->v[0].text, "all");

	for (size_t i = 0; !all && i < s->n; i++)
		value_array_add_take(array, item_value(o, s->v[i].text));
	return array;
}

static int put_setting(struct value *root, const struct option *o, const struct setting *s,
		       struct err *err)
{
	for (size_t i = 0; i < s->n; i++) {
		int r = check_utf8(s->v[i].text, err);

		if (r < 0)
			return err_prefix(err, "%s", s->v[i].where);
	}
	struct value *section = value_get(root, o->section);

	if (!section) {
		section = value_new(VALUE_TABLE);
		value_table_put_take(root, o->section, section);
	}
	value_table_put_take(section, o->key, setting_value(o, s));
	return 0;
}

int builder_to_tree(const struct builder *b, struct value **ret_root, struct err *err)
{
	struct value *root = value_new(VALUE_TABLE);

	for (size_t s = 0; option_sections[s]; s++) {
		for (size_t i = OPT_NONE + 1; i < OPT_COUNT; i++) {
			const struct option *o = option_get((enum option_id)i);

			if (!o->key || !str_eq(o->section, option_sections[s]) ||
			    !b->settings[i].set)
				continue;
			int r = put_setting(root, o, &b->settings[i], err);

			if (r < 0) {
				value_free(root);
				return r;
			}
		}
	}
	*ret_root = root;
	return 0;
}
