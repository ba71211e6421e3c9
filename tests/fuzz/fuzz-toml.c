/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as TOML: reading ends, a failure has a message of one printable line, and what is
 * accepted is written and read back to the same.
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/util.h"
#include "base/value.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	AUTO(value_free) struct value *first = NULL;
	AUTO(value_free) struct value *second = NULL;
	struct err err = {0};
	int r = toml_parse((const char *)data, size, "input", &first, &err);

	if (r < 0) {
		assert(err.code == -r);
		assert(str_starts(err.msg, "input:"));
		for (const char *p = err.msg; *p; p++)
			assert((unsigned char)*p >= 0x20 && *p != 0x7f);
		return 0;
	}
	auto_free char *text = toml_write(first);
	if (toml_parse(text, strlen(text), "written", &second, &err) < 0) {
		/* Escapes can make the text longer than the reader takes; nothing else may fail. */
		assert(err.code == E2BIG && strlen(text) > VALUE_TEXT_MAX);
		return 0;
	}
	auto_free char *again = toml_write(second);
	assert(str_eq(text, again));
	auto_free char *json = json_write(first);
	assert(json[0] == '{');
	return 0;
}
