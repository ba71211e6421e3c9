/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any text as a path (two of them, parted by a newline), and through the escapes: normal form is
 * normal and stays itself, what is below a folder is found to be, escapes hold nothing unprintable.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/path.h"
#include "base/utf8.h"
#include "base/util.h"
#include "fuzz.h"

static void check_path(const char *base, const char *path)
{
	auto_free char *abs_base = path_absolute("/", base);
	auto_free char *abs = path_absolute(abs_base, path);
	assert(path_is_normal(abs_base) && path_is_normal(abs));
	auto_free char *again = path_normalize(abs);
	assert(str_eq(abs, again));
	assert(path_is_beneath(abs, "/") && path_is_beneath(abs, abs));

	auto_free char *parent = path_dirname(abs);
	assert(path_is_normal(parent) && path_is_beneath(abs, parent));
	auto_free char *joined = path_join(parent, path_basename(abs));
	assert(str_eq(joined, abs));

	const char *rest = path_relative_to(abs, abs_base);
	assert(path_is_beneath(abs, abs_base) == (rest != NULL));
	if (rest && *rest) {
		auto_free char *whole = path_join(abs_base, rest);
		assert(str_eq(whole, abs));
	}
}

static void check_shown(const struct buf *b)
{
	uint32_t cp = 0;
	size_t n;

	for (size_t i = 0; i < b->len; i += n) {
		n = utf8_decode(b->data + i, b->len - i, &cp);
		assert(n > 0 && !utf8_is_unsafe(cp));
	}
}

static void check_escapes(const char *text, size_t size)
{
	AUTO(buf_done) struct buf b = BUF_INIT(64 * size + 64);
	AUTO(buf_done) struct buf again = BUF_INIT(64 * size + 64);
	char quoted[QUOTE_SIZE];

	assert(buf_add_terminal(&b, text, size) == 0);
	check_shown(&b);
	assert(buf_add_terminal(&again, buf_text(&b), b.len) == 0);
	assert(str_eq(buf_text(&b), buf_text(&again)));
	buf_clear(&b);
	assert(buf_add_json(&b, text, size) == 0);
	check_shown(&b);
	buf_clear(&b);
	assert(buf_add_shell(&b, text) == 0);
	check_shown(&b);
	quote_text(text, size, quoted, sizeof(quoted));
	assert(strlen(quoted) < sizeof(quoted) && quoted[0] == '"');
	assert(quoted[strlen(quoted) - 1] == '"');
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	auto_free char *text = xzalloc(size + 1);

	if (size)
		memcpy(text, data, size);
	check_escapes(text, size);
	char *newline = strchr(text, '\n');
	if (newline)
		*newline = '\0';
	check_path(text, newline ? newline + 1 : "");
	return 0;
}
