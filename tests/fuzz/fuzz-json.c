/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as JSON: reading ends, a failure has a message of one printable line, every value has a
 * line of the text, and what is accepted is written in both forms and read back to the same.
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/util.h"
#include "base/value.h"
#include "fuzz.h"

static void check_error(const struct err *err, int r)
{
	assert(err->code == -r);
	assert(str_starts(err->msg, "input:"));
	for (const char *p = err->msg; *p; p++)
		assert((unsigned char)*p >= 0x20 && *p != 0x7f);
}

/* The children of the root have lines that do not go back and do not pass the end of the text. */
static void check_lines(const struct value *root, const uint8_t *data, size_t size)
{
	int last = 1;
	for (size_t i = 0; i < size; i++)
		last += data[i] == '\n';
	int line = root->line;
	assert(line >= 1);
	for (size_t i = 0; i < root->n; i++) {
		assert(root->items[i]->line >= line && root->items[i]->line <= last);
		line = root->items[i]->line;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	AUTO(value_free) struct value *first = NULL;
	AUTO(value_free) struct value *second = NULL;
	struct err err = {0};
	int r = json_parse((const char *)data, size, "input", &first, &err);

	if (r < 0) {
		check_error(&err, r);
		return 0;
	}
	check_lines(first, data, size);
	auto_free char *text = json_write(first);
	auto_free char *compact = json_write_compact(first);
	if (json_parse(text, strlen(text), "written", &second, &err) < 0) {
		assert(err.code == E2BIG && strlen(text) > VALUE_TEXT_MAX);
		return 0;
	}
	auto_free char *again = json_write_compact(second);
	assert(str_eq(compact, again));
	return 0;
}
