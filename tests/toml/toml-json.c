/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads TOML on standard input and prints it as the tagged JSON of the toml-test suite; invalid
 * TOML ends with status 1 and the reason on standard error. So the public suite can be run over our
 * reader.
 *
 * With --batch it answers many documents in one run: each is a length (4 bytes, little-endian) and
 * its text; each answer is one byte (0 valid, 1 invalid), a length and the JSON or the reason. With
 * --batch-rewrite the document is written by our writer and read again first, so that the answer
 * tells whether the writer kept everything.
 */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/util.h"
#include "base/value.h"
#include "base/value_internal.h"

#define OUTPUT_MAX ((size_t)1 << 28)

static const char *const type_names[VALUE_KIND_COUNT] = {
	[VALUE_BOOL] = "bool",
	[VALUE_INT] = "integer",
	[VALUE_FLOAT] = "float",
	[VALUE_STRING] = "string",
	[VALUE_OFFSET_DATETIME] = "datetime",
	[VALUE_LOCAL_DATETIME] = "datetime-local",
	[VALUE_LOCAL_DATE] = "date-local",
	[VALUE_LOCAL_TIME] = "time-local",
};

struct level {
	const struct value *v;
	size_t next;
};

static void add_tagged(struct buf *b, const struct value *v)
{
	buf_printf(b, "{\"type\":\"%s\",\"value\":", type_names[v->kind]);
	if (v->kind == VALUE_BOOL) {
		buf_printf(b, "\"%s\"", v->boolean ? "true" : "false");
	} else if (v->kind == VALUE_INT) {
		buf_printf(b, "\"%lld\"", (long long)v->integer);
	} else if (v->kind == VALUE_FLOAT) {
		buf_add_char(b, '"');
		value_add_real(b, v->real);
		buf_add_char(b, '"');
	} else {
		buf_add_json(b, v->str, v->len);
	}
	buf_add_char(b, '}');
}

/* Adds ROOT with all below it; the stack is as deep as the reader lets a document be. */
static void add_tree(struct buf *b, const struct value *root)
{
	struct level levels[VALUE_DEPTH_MAX];
	size_t n = 0;

	buf_add_char(b, '{');
	levels[n++] = (struct level){.v = root};
	while (n > 0) {
		struct level *top = &levels[n - 1];
		bool is_table = top->v->kind == VALUE_TABLE;
		if (top->next == top->v->n) {
			buf_add_char(b, is_table ? '}' : ']');
			n--;
			continue;
		}
		size_t i = top->next++;
		const struct value *v = top->v->items[i];
		if (i > 0)
			buf_add_char(b, ',');
		if (is_table) {
			buf_add_json(b, top->v->keys[i], top->v->key_lens[i]);
			buf_add_char(b, ':');
		}
		if (value_is_container(v)) {
			buf_add_char(b, v->kind == VALUE_TABLE ? '{' : '[');
			levels[n++] = (struct level){.v = v};
		} else {
			add_tagged(b, v);
		}
	}
}

/* Reads all of standard input, at most one byte more than the reader takes. */
static int read_input(struct buf *ret)
{
	char chunk[65536];
	size_t n;

	while ((n = fread(chunk, 1, sizeof(chunk), stdin)) > 0) {
		if (buf_add(ret, chunk, n) < 0)
			return -E2BIG;
	}
	return ferror(stdin) ? -EIO : 0;
}

static int convert(const char *text, size_t len, bool rewrite, struct buf *out, struct err *err)
{
	AUTO(value_free) struct value *root = NULL;
	int r = toml_parse(text, len, "standard input", &root, err);

	if (r == 0 && rewrite) {
		auto_free char *again = toml_write(root);
		value_free(take_ptr(root));
		r = toml_parse(again, strlen(again), "rewritten", &root, err);
	}
	if (r == 0)
		add_tree(out, root);
	return r;
}

static bool read_length(uint32_t *ret)
{
	unsigned char b[4];
	if (fread(b, 1, sizeof(b), stdin) != sizeof(b))
		return false;
	*ret = (uint32_t)b[0] | (uint32_t)b[1] << 8 | (uint32_t)b[2] << 16 | (uint32_t)b[3] << 24;
	return true;
}

static void answer(unsigned char status, const char *text, size_t len)
{
	const unsigned char head[5] = {status, (unsigned char)len, (unsigned char)(len >> 8),
				       (unsigned char)(len >> 16), (unsigned char)(len >> 24)};
	fwrite(head, 1, sizeof(head), stdout);
	fwrite(text, 1, len, stdout);
}

static int run_batch(bool rewrite)
{
	uint32_t len = 0;

	while (read_length(&len)) {
		/* Exactly as large as the text, so that a sanitizer sees a read past its end. */
		auto_free char *text = xzalloc(len);
		if (fread(text, 1, len, stdin) != len)
			return EXIT_FAILURE;
		AUTO(buf_done) struct buf out = BUF_INIT(OUTPUT_MAX);
		struct err err = {0};
		if (convert(text, len, rewrite, &out, &err) < 0)
			answer(1, err.msg, strlen(err.msg));
		else
			answer(0, buf_text(&out), out.len);
	}
	return EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
	AUTO(buf_done) struct buf in = BUF_INIT(16 * VALUE_TEXT_MAX);
	AUTO(buf_done) struct buf out = BUF_INIT(OUTPUT_MAX);
	struct err err = {0};

	if (argc == 2 && (str_eq(argv[1], "--batch") || str_eq(argv[1], "--batch-rewrite")))
		return run_batch(str_eq(argv[1], "--batch-rewrite"));
	if (argc > 1) {
		fprintf(stderr, "usage: toml-json [--batch | --batch-rewrite] < TOML\n");
		return 2;
	}
	if (read_input(&in) < 0) {
		fprintf(stderr, "toml-json: standard input cannot be read or is too large\n");
		return 2;
	}
	if (convert(buf_text(&in), in.len, false, &out, &err) < 0) {
		fprintf(stderr, "toml-json: %s\n", err.msg);
		return 1;
	}
	puts(buf_text(&out));
	return 0;
}
