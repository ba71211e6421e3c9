/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Walks the option table: no row has a hole, names are unique, the documented default is the one in
 * force, and every row survives flags, TOML, JSON and TOML again with the same value.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/err.h"
#include "base/util.h"
#include "base/value.h"
#include "policy/args.h"
#include "policy/builder.h"
#include "policy/builder_internal.h"
#include "policy/policy.h"
#include "policy/text.h"

static struct builder *new_builder(void)
{
	struct builder *b = builder_new();

	b->host.cwd = xstrdup("/work/dir");
	return b;
}

static char last_char(const char *s)
{
	return s && s[0] ? s[strlen(s) - 1] : '\0';
}

static void test_no_holes(void **state)
{
	(void)state;
	for (size_t i = OPT_NONE + 1; i < OPT_COUNT; i++) {
		const struct option *o = option_get((enum option_id)i);

		assert_int_equal(o->id, i);
		assert_non_null(option_label(o));
		assert_true(last_char(o->help));
		assert_true(o->default_text && o->default_text[0]);
		/* A help line is the end of a row: no capital, no stop. */
		assert_true(last_char(o->help) != '.');
		assert_true(!o->detail || last_char(o->detail) == '.');
		if (o->type == OPTION_BOOL)
			assert_null(o->metavar);
		else
			assert_non_null(o->metavar);
		assert_int_equal(!!o->section, !!o->key);
		assert_int_equal(!!o->path, !!o->key);
		/* A row is a flag or a key, and what a program can set has a name for it. */
		assert_true(o->flag || o->key);
		assert_int_equal(!o->key, o->id == OPT_USER || (o->flags & OPTION_CLI_ONLY) != 0);
		if (o->key && o->id != OPT_INCLUDE)
			assert_non_null(o->api);
		if (o->type == OPTION_ENUM || o->type == OPTION_PROTECTIONS)
			assert_non_null(o->words);
		if (o->type == OPTION_UINT || o->type == OPTION_CORES || o->type == OPTION_GPUS)
			assert_true(o->max > o->min);
		/* What is refused anyway says so with its own reason, or works without a
		 * supervisor. */
		if (o->later != LATER_NOTHING) {
			assert_true(o->flags & OPTION_SUPERVISED);
			assert_true(option_later_text(o->later)[0]);
		}
	}
}

static void test_names_unique(void **state)
{
	(void)state;
	for (size_t i = OPT_NONE + 1; i < OPT_COUNT; i++) {
		const struct option *a = option_get((enum option_id)i);

		if (a->flag) {
			assert_memory_equal(a->flag, "--", 2);
			assert_ptr_equal(option_find_flag(a->flag + 2, strlen(a->flag + 2)), a);
			assert_ptr_equal(option_find(a->flag + 2), a);
		}
		if (a->key)
			assert_ptr_equal(option_find_key(a->section, a->key), a);
		if (a->path)
			assert_ptr_equal(option_find(a->path), a);
		if (a->api)
			assert_ptr_equal(option_find(a->api), a);
		if (a->letter)
			assert_ptr_equal(option_find_letter(a->letter), a);
	}
}

static void test_sections_listed(void **state)
{
	(void)state;
	for (size_t i = OPT_NONE + 1; i < OPT_COUNT; i++) {
		const struct option *o = option_get((enum option_id)i);
		bool found = !o->section || !o->section[0];

		for (size_t s = 0; option_sections[s]; s++)
			found = found || str_eq(option_sections[s], o->section);
		assert_true(found);
	}
}

/* An empty policy is what the table says of options that are not given. */
static void test_defaults(void **state)
{
	struct builder *b = new_builder();
	struct policy *p = NULL;

	(void)state;
	assert_int_equal(builder_finish(b, &p, NULL), 0);
	for (size_t i = OPT_NONE + 1; i < OPT_COUNT; i++) {
		const struct option *o = option_get((enum option_id)i);

		if (o->type == OPTION_BOOL)
			assert_string_equal(o->default_text, "false");
		assert_false(policy_is_set(p, (unsigned int)i));
	}
	assert_false(p->clean_env || p->has_user || p->no_supervisor || p->no_huge_pages);
	assert_false(p->no_coredump || p->no_randomize_memory || p->allow_metadata);
	assert_int_equal(p->fs_read.n + p->fs_read_if_exists.n + p->fs_write.n, 0);
	assert_string_equal(option_get(OPT_FS_READ)->default_text, "nothing");
	assert_int_equal(p->net_allow.n + p->bind_allow.n + p->bind_allow.any, 0);
	assert_string_equal(option_get(OPT_NET_ALLOW)->default_text, "nothing");
	assert_int_equal(p->timeout_ms, 0);
	assert_string_equal(option_get(OPT_TIMEOUT)->default_text, "no limit");
	assert_int_equal(p->max_open_files, 0);
	assert_string_equal(option_get(OPT_MAX_OPEN_FILES)->default_text, "inherited");
	assert_int_equal(p->view, VIEW_AUTO);
	assert_string_equal(option_get(OPT_VIEW)->default_text, "auto");
	for (size_t i = 0; i < PROT_COUNT; i++)
		assert_int_equal(p->prot[i], PROT_STRICT);
	assert_null(p->name);
	assert_null(p->exec);
	assert_null(p->cwd);
	policy_unref(p);
	builder_free(b);
}

/* The words of the table are the names of the protections. */
static void test_protection_words(void **state)
{
	const struct option *o = option_get(OPT_DISABLE);

	(void)state;
	for (size_t i = 0; i < PROT_COUNT; i++)
		assert_string_equal(o->words[i], protection_name((enum protection)i));
	assert_null(o->words[PROT_COUNT]);
}

/* The set that the help text names is the set that is passed on. */
static void test_clean_env_documented(void **state)
{
	const char *help = option_get(OPT_CLEAN_ENV)->help;
	size_t n = 0;

	(void)state;
	while (policy_clean_env_keep[n])
		assert_non_null(strstr(help, policy_clean_env_keep[n++]));
	assert_int_equal(n, 5);
}

/* --- Round trip --------------------------------------------------------------------------- */

static const char *const samples[OPTION_TYPE_COUNT] = {
	[OPTION_BOOL] = "true",
	[OPTION_STRING] = "a $b ${c} ~ \"text\"\n\\",
	[OPTION_STRINGS] = "x $y ${z} $$",
	[OPTION_WORDS] = "GET host/a?b=\"c\"",
	[OPTION_PATH] = "/a/b $c/~d",
	[OPTION_PATHS] = "rel/../x\ty",
	[OPTION_SOCKETS] = "run/../x.sock",
	[OPTION_PATTERNS] = "src/**/*.[ch]",
	[OPTION_FILE] = "some/file",
	[OPTION_EXEC] = "~$prog",
	[OPTION_MOUNTS] = "/v//w:/h/$x:ro",
	[OPTION_ENV] = "K=~/v $x = 1\nline",
	[OPTION_SIZE] = "1.5G",
	[OPTION_DURATION] = "1.25",
	[OPTION_NAME] = "api.local",
	[OPTION_USER] = "0:4294967294",
	[OPTION_PORTS] = "80,9000-9005",
	[OPTION_PORT_NUMBERS] = "80,443",
	[OPTION_NET_RULES] = "TCP://[2001:DB8::1]:443,80-82",
	[OPTION_CORES] = "0-2,7",
	[OPTION_GPUS] = "all",
	[OPTION_TIME] = "2000-01-01T00:00:00Z",
	[OPTION_FACTOR] = "2.5",
};

static void sample_of(const struct option *o, char *out, size_t size)
{
	if (o->type == OPTION_UINT)
		snprintf(out, size, "%llu", (unsigned long long)o->max);
	else if (o->words)
		snprintf(out, size, "%s", o->words[1]);
	else
		snprintf(out, size, "%s", samples[o->type]);
}

static void set_by_flag(struct builder *b, const struct option *o, const char *value)
{
	struct origin from = {.kind = ORIGIN_FLAG};
	auto_free char *word = xasprintf("%s=%s", o->flag ? o->flag : "--env", value);
	char *argv[] = {word};
	AUTO(args_done) struct args args = {0};

	if (!o->flag) {
		assert_int_equal(builder_set(b, o, value, &from, NULL), 0);
		return;
	}
	assert_int_equal(args_parse(1, argv, &args, NULL), 0);
	assert_int_equal(args.n, 1);
	assert_ptr_equal(args.v[0].option, o);
	assert_int_equal(builder_set(b, args.v[0].option, args.v[0].value, &from, NULL), 0);
}

static void assert_same(const struct builder *a, const struct builder *b)
{
	for (size_t i = OPT_NONE + 1; i < OPT_COUNT; i++) {
		const struct setting *x = &a->settings[i], *y = &b->settings[i];

		if (!option_get((enum option_id)i)->key)
			continue;
		assert_int_equal(x->set, y->set);
		assert_int_equal(x->n, y->n);
		for (size_t k = 0; k < x->n; k++)
			assert_string_equal(x->v[k].text, y->v[k].text);
	}
}

static char *write_as(const struct builder *b, bool json)
{
	struct value *root = NULL;

	assert_int_equal(builder_to_tree(b, &root, NULL), 0);

	char *text = json ? json_write(root) : toml_write(root);

	value_free(root);
	return text;
}

static struct builder *read_as(const char *text, bool json)
{
	struct origin from = {.kind = ORIGIN_FILE, .source = "test", .dir = "/elsewhere"};
	struct builder *b = new_builder();
	struct value *root = NULL;
	struct err err = {0};
	int r = json ? json_parse(text, strlen(text), "test", &root, &err)
		     : toml_parse(text, strlen(text), "test", &root, &err);

	assert_string_equal(err.msg, "");
	assert_int_equal(r, 0);
	r = builder_apply_tree(b, root, &from, &err);
	assert_string_equal(err.msg, "");
	assert_int_equal(r, 0);
	value_free(root);
	return b;
}

static void round_trip(const struct builder *flags)
{
	auto_free char *toml = write_as(flags, false);
	AUTO(builder_free) struct builder *from_toml = read_as(toml, false);
	auto_free char *json = write_as(from_toml, true);
	AUTO(builder_free) struct builder *from_json = read_as(json, true);
	auto_free char *toml_again = write_as(from_json, false);

	assert_same(flags, from_toml);
	assert_same(flags, from_json);
	assert_string_equal(toml, toml_again);
}

static void test_round_trip_each(void **state)
{
	(void)state;
	for (size_t i = OPT_NONE + 1; i < OPT_COUNT; i++) {
		const struct option *o = option_get((enum option_id)i);
		char value[128];

		if (o->id == OPT_INCLUDE)
			continue;
		sample_of(o, value, sizeof(value));

		AUTO(builder_free) struct builder *b = new_builder();

		set_by_flag(b, o, value);
		assert_true(o->id == OPT_USER || builder_is_set(b, o->id));
		round_trip(b);
	}
}

static void test_round_trip_all(void **state)
{
	AUTO(builder_free) struct builder *b = new_builder();

	(void)state;
	for (size_t i = OPT_NONE + 1; i < OPT_COUNT; i++) {
		const struct option *o = option_get((enum option_id)i);
		char value[128];

		if (o->id == OPT_INCLUDE)
			continue;
		sample_of(o, value, sizeof(value));
		set_by_flag(b, o, value);
	}
	round_trip(b);
}

/* Flag name, key and API name set the same. */
static void test_three_names(void **state)
{
	struct origin from = {.kind = ORIGIN_API};

	(void)state;
	for (size_t i = OPT_NONE + 1; i < OPT_COUNT; i++) {
		const struct option *o = option_get((enum option_id)i);
		char value[128];

		if (!o->key || o->id == OPT_INCLUDE)
			continue;
		sample_of(o, value, sizeof(value));

		AUTO(builder_free) struct builder *a = new_builder();
		AUTO(builder_free) struct builder *b = new_builder();

		assert_int_equal(builder_set(a, option_find(o->path), value, &from, NULL), 0);
		assert_int_equal(builder_set(b, option_find(o->api), value, &from, NULL), 0);
		assert_same(a, b);
	}
}

/* Empty lists stay different from unset ones in both directions. */
static void test_empty_lists(void **state)
{
	(void)state;
	for (size_t i = OPT_NONE + 1; i < OPT_COUNT; i++) {
		const struct option *o = option_get((enum option_id)i);

		if (!o->key || o->id == OPT_INCLUDE || !option_is_list(o))
			continue;
		auto_free char *text = xasprintf("[%s]\n%s = %s\n", o->section, o->key,
						 o->type == OPTION_ENV ? "{}" : "[]");
		AUTO(builder_free) struct builder *b = read_as(text, false);

		assert_true(builder_is_set(b, o->id));
		assert_int_equal(b->settings[i].n, o->type == OPTION_GPUS ? 1 : 0);
		round_trip(b);
	}
}

/* What waits for later work is refused by name, and never accepted silently. */
static void test_later_refused(void **state)
{
	(void)state;
	for (size_t i = OPT_NONE + 1; i < OPT_COUNT; i++) {
		const struct option *o = option_get((enum option_id)i);
		struct policy *p = NULL;
		struct err err = {0};
		char value[128];

		if (o->later == LATER_NOTHING)
			continue;
		sample_of(o, value, sizeof(value));

		AUTO(builder_free) struct builder *b = new_builder();
		auto_free char *expected =
			xasprintf("%s is not available in this version: %s; remove it",
				  option_label(o), option_later_text(o->later));

		set_by_flag(b, o, value);
		assert_int_equal(builder_finish(b, &p, &err), -EOPNOTSUPP);
		assert_string_equal(err.msg, expected);
	}
}

/* --no-supervisor refuses exactly the rows that say so, in one message. */
static void test_unsupervised_refused(void **state)
{
	struct origin from = {.kind = ORIGIN_FLAG};

	(void)state;
	for (size_t i = OPT_NONE + 1; i < OPT_COUNT; i++) {
		const struct option *o = option_get((enum option_id)i);
		struct policy *p = NULL;
		struct err err = {0};
		char value[128];

		if (!(o->flags & OPTION_SUPERVISED))
			continue;
		sample_of(o, value, sizeof(value));

		AUTO(builder_free) struct builder *b = new_builder();
		auto_free char *expected = xasprintf(
			"--no-supervisor is incompatible with: %s; remove them or run supervised",
			option_label(o));

		set_by_flag(b, o, value);
		assert_int_equal(builder_set(b, option_get(OPT_NO_SUPERVISOR), "true", &from, NULL),
				 0);
		assert_int_equal(builder_finish(b, &p, &err), -EINVAL);
		assert_string_equal(err.msg, expected);
	}
}

/* Every flag and key is in every text that lists them. */
static void test_texts_mention_all(void **state)
{
	static const char *const texts[] = {"help", "man-run", "reference"};

	(void)state;
	for (size_t t = 0; t < ARRAY_SIZE(texts); t++) {
		auto_free char *text = text_make(texts[t]);

		for (size_t i = OPT_NONE + 1; i < OPT_COUNT; i++)
			if (option_get((enum option_id)i)->flag)
				assert_non_null(strstr(text, option_get((enum option_id)i)->flag));
	}
	auto_free char *schema = text_make("schema");

	for (size_t i = OPT_NONE + 1; i < OPT_COUNT; i++) {
		const struct option *o = option_get((enum option_id)i);
		auto_free char *quoted = xasprintf("\"%s\"", o->key ? o->key : "include");

		assert_non_null(strstr(schema, quoted));
	}
	assert_null(text_make("nothing"));
}

static void test_suggestions(void **state)
{
	(void)state;
	assert_string_equal(option_suggest_flag("--fs-raed"), "--fs-read");
	assert_string_equal(option_suggest_flag("--net-alow"), "--net-allow");
	assert_string_equal(option_suggest_flag("--workdr"), "--workdir");
	assert_null(option_suggest_flag("--qqqqqqqqqqqq"));
	assert_string_equal(option_suggest_key("limits", "memry"), "memory");
	assert_string_equal(option_suggest_section("filesytem"), "filesystem");
	assert_null(option_suggest_section("zzzzzzzz"));
	assert_int_equal(option_distance("abcd", "abdc", 9), 1);
	assert_int_equal(option_distance("", "abc", 9), 3);
	assert_int_equal(option_distance("abc", "xyz", 2), 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_no_holes),
		cmocka_unit_test(test_names_unique),
		cmocka_unit_test(test_sections_listed),
		cmocka_unit_test(test_defaults),
		cmocka_unit_test(test_protection_words),
		cmocka_unit_test(test_clean_env_documented),
		cmocka_unit_test(test_round_trip_each),
		cmocka_unit_test(test_round_trip_all),
		cmocka_unit_test(test_three_names),
		cmocka_unit_test(test_empty_lists),
		cmocka_unit_test(test_later_refused),
		cmocka_unit_test(test_unsupervised_refused),
		cmocka_unit_test(test_texts_mention_all),
		cmocka_unit_test(test_suggestions),
	};

	return cmocka_run_group_tests_name("options", tests, NULL, NULL);
}
