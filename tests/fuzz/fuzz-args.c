/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any lines as the words of a command line: a failure has one printable line, and what is accepted
 * makes the same policy by way of a policy file.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/util.h"
#include "base/value.h"
#include "fuzz.h"
#include "policy/args.h"
#include "policy/builder.h"
#include "policy/policy.h"

static void check_error(const struct err *err, int r)
{
	assert(err->code == -r && err->msg[0]);
	for (const char *p = err->msg; *p; p++)
		assert((unsigned char)*p >= 0x20 && *p != 0x7f);
}

static void split_lines(const char *text, struct strv *words)
{
	for (const char *p = text;;) {
		size_t n = strcspn(p, "\n");

		strv_add_take(words, xstrndup(p, n));
		if (!p[n])
			return;
		p += n + 1;
	}
}

static int apply(struct builder *b, const struct args *args, struct err *err)
{
	struct origin from = {.kind = ORIGIN_FLAG};

	for (size_t i = 0; i < args->n; i++) {
		int r = builder_set(b, args->v[i].option, args->v[i].value, &from, err);

		if (r < 0)
			return r;
	}
	return 0;
}

static void check_round_trip(const struct builder *b)
{
	AUTO(builder_free) struct builder *again = builder_new();
	AUTO(value_free) struct value *root = NULL;
	AUTO(value_free) struct value *back = NULL;
	struct origin from = {.kind = ORIGIN_FILE, .source = "printed"};

	if (builder_to_tree(b, &root, NULL) < 0)
		return;
	auto_free char *text = json_write(root);
	if (strlen(text) > VALUE_TEXT_MAX)
		return;
	assert(builder_apply_tree(again, root, &from, NULL) == 0);
	assert(builder_to_tree(again, &back, NULL) == 0);
	auto_free char *twice = json_write(back);
	assert(str_eq(text, twice));
}

static void try_words(const struct strv *words)
{
	AUTO(args_done) struct args args = {0};
	AUTO(builder_free) struct builder *b = builder_new();
	AUTO(policy_unref) struct policy *p = NULL;
	struct err err = {0};
	int r = args_parse((int)words->n, words->v, &args, &err);

	b->host.cwd = xstrdup("/cwd");
	if (r == 0) {
		assert(args.used >= 0 && (size_t)args.used <= words->n);
		r = apply(b, &args, &err);
	}
	if (r == 0) {
		check_round_trip(b);
		r = builder_finish(b, &p, &err);
	}
	if (r < 0)
		check_error(&err, r);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	auto_free char *text = xstrndup((const char *)data, size);
	struct strv words = {0};

	split_lines(text, &words);
	try_words(&words);
	strv_done(&words);
	return 0;
}
