/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as a policy file, JSON if they begin with a brace, else TOML: a failure has one
 * printable line, and what is accepted prints as a policy file that reads back to the same.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/util.h"
#include "base/value.h"
#include "fuzz.h"
#include "policy/builder.h"
#include "policy/policy.h"

static const char *host_env(void *data, const char *name)
{
	(void)data;
	return str_eq(name, "HOME") ? "/home/user" : NULL;
}

static void check_error(const struct err *err, int r)
{
	assert(err->code == -r && err->msg[0]);
	for (const char *p = err->msg; *p; p++)
		assert((unsigned char)*p >= 0x20 && *p != 0x7f);
}

static struct builder *new_builder(void)
{
	struct builder *b = builder_new();

	b->host.cwd = xstrdup("/cwd");
	b->host.env = host_env;
	return b;
}

static int apply(struct builder *b, const char *text, size_t size, bool json, struct err *err)
{
	AUTO(value_free) struct value *root = NULL;
	struct origin from = {.kind = ORIGIN_FILE, .source = "input", .dir = "/dir"};
	int r = json ? json_parse(text, size, "input", &root, err)
		     : toml_parse(text, size, "input", &root, err);

	return r < 0 ? r : builder_apply_tree(b, root, &from, err);
}

static char *print(const struct builder *b, bool json)
{
	AUTO(value_free) struct value *root = NULL;

	if (builder_to_tree(b, &root, NULL) < 0)
		return NULL;
	return json ? json_write(root) : toml_write(root);
}

static void check_round_trip(const struct builder *b, bool json)
{
	AUTO(builder_free) struct builder *again = new_builder();
	auto_free char *text = print(b, json);
	auto_free char *plain = print(b, false);
	struct err err = {0};

	if (!text || strlen(text) > VALUE_TEXT_MAX)
		return;
	assert(apply(again, text, strlen(text), json, &err) == 0);
	auto_free char *back = print(again, false);
	assert(str_eq(plain, back));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	AUTO(builder_free) struct builder *b = new_builder();
	AUTO(policy_unref) struct policy *p = NULL;
	struct err err = {0};
	int r = apply(b, (const char *)data, size, size && data[0] == '{', &err);

	if (r < 0) {
		check_error(&err, r);
		return 0;
	}
	check_round_trip(b, false);
	check_round_trip(b, true);
	r = builder_finish(b, &p, &err);
	if (r < 0)
		check_error(&err, r);
	return 0;
}
