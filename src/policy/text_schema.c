/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The JSON Schema (draft 2020-12) of policy files: what the parser accepts by form. Contradictions
 * between settings are left to the parser.
 */
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "base/value.h"
#include "policy/text_internal.h"

static void put_str(struct value *t, const char *key, const char *text)
{
	value_table_put_take(t, key, value_new_string(text));
}

static struct value *typed(const char *type)
{
	struct value *t = value_new(VALUE_TABLE);

	put_str(t, "type", type);
	return t;
}

static struct value *string_like(const char *pattern)
{
	struct value *t = typed("string");

	if (pattern)
		put_str(t, "pattern", pattern);
	else
		value_table_put_take(t, "minLength", value_new_int(1));
	return t;
}

static struct value *integer(uint64_t min, uint64_t max)
{
	struct value *t = typed("integer");

	value_table_put_take(t, "minimum", value_new_int((int64_t)min));
	if (max <= INT64_MAX)
		value_table_put_take(t, "maximum", value_new_int((int64_t)max));
	return t;
}

static struct value *positive_number(void)
{
	struct value *t = typed("number");

	value_table_put_take(t, "exclusiveMinimum", value_new_int(0));
	return t;
}

static struct value *either(struct value *a, struct value *b)
{
	struct value *t = value_new(VALUE_TABLE);
	struct value *list = value_new(VALUE_ARRAY);

	value_array_add_take(list, a);
	value_array_add_take(list, b);
	value_table_put_take(t, "anyOf", list);
	return t;
}

static struct value *words(const struct option *o)
{
	struct value *t = value_new(VALUE_TABLE);
	struct value *list = value_new(VALUE_ARRAY);

	for (size_t i = 0; o->words[i]; i++)
		value_array_add_take(list, value_new_string(o->words[i]));
	value_table_put_take(t, "enum", list);
	return t;
}

static struct value *map_of_strings(void)
{
	struct value *t = typed("object");

	value_table_put_take(t, "additionalProperties", typed("string"));
	return t;
}

#define PATTERN_PORTS	"^(\\*|[0-9]+(-[0-9]+)?(,[0-9]+(-[0-9]+)?)*)$"
#define PATTERN_SIZE	"^([0-9]+|[0-9]+(\\.[0-9]+)?[KMGTkmgt]([Ii]?[Bb])?)$"
#define PATTERN_DECIMAL "^[0-9]+(\\.[0-9]+)?$"
#define PATTERN_RANGE	"^[0-9]+(-[0-9]+)?(,[0-9]+(-[0-9]+)?)*$"

/* One value of O: the whole for a scalar, an item for a list. */
static struct value *item_schema(const struct option *o)
{
	switch ((int)o->type) {
	case OPTION_BOOL:
		return typed("boolean");
	case OPTION_STRINGS:
		return typed("string");
	case OPTION_UINT:
		if (o->max > INT64_MAX)
			return either(integer(o->min, o->max), string_like("^[0-9]+$"));
		return integer(o->min, o->max);
	case OPTION_SIZE:
		return either(integer(1, INT64_MAX), string_like(PATTERN_SIZE));
	case OPTION_DURATION:
	case OPTION_FACTOR:
		return either(positive_number(), string_like(PATTERN_DECIMAL));
	case OPTION_ENUM:
	case OPTION_PROTECTIONS:
		return words(o);
	case OPTION_PORTS:
		return either(integer(0, 65535), string_like(PATTERN_PORTS));
	case OPTION_PORT_NUMBERS:
		return either(integer(1, 65535), string_like(PATTERN_RANGE));
	case OPTION_CORES:
	case OPTION_GPUS:
		return either(integer(o->min, o->max),
			      string_like(o->type == OPTION_GPUS
						  ? "^([Aa][Ll][Ll]|[0-9]+(,[0-9]+)*)$"
						  : PATTERN_RANGE));
	case OPTION_TIME:
		return either(typed("number"), string_like(NULL));
	case OPTION_MOUNTS:
		return string_like("^/[^:]*:.+$");
	default:
		return string_like(NULL);
	}
}

static struct value *option_schema(const struct option *o)
{
	AUTO(buf_done) struct buf text = BUF_INIT(8192);
	struct value *t;

	if (o->type == OPTION_ENV) {
		t = map_of_strings();
	} else if (option_is_list(o)) {
		t = typed("array");
		value_table_put_take(t, "items", item_schema(o));
		if (o->type == OPTION_MOUNTS)
			t = either(t, map_of_strings());
	} else {
		t = item_schema(o);
	}
	buf_printf(&text, "%s.", o->help);
	if (o->detail)
		buf_printf(&text, " %s", o->detail);
	buf_printf(&text, " Unset: %s.", o->default_text);
	if (o->later != LATER_NOTHING) {
		buf_add_char(&text, ' ');
		text_add_later(&text, o);
	}
	put_str(t, "description", buf_text(&text));
	return t;
}

/* "b is needed with a", for pairs within one section. */
static void add_needs(struct value *needs, const struct option *o)
{
	const struct option *other = o->needs[0] ? option_get(o->needs[0]) : NULL;

	if (!other || o->needs[1] || !other->key || !str_eq(other->section, o->section))
		return;
	struct value *list = value_new(VALUE_ARRAY);

	value_array_add_take(list, value_new_string(other->key));
	value_table_put_take(needs, o->key, list);
}

static struct value *section_schema(const char *section)
{
	struct value *t = typed("object");
	struct value *properties = value_new(VALUE_TABLE);
	struct value *needs = value_new(VALUE_TABLE);

	for (size_t id = OPT_NONE + 1; id < OPT_COUNT; id++) {
		const struct option *o = option_get((enum option_id)id);

		if (!o->key || !str_eq(o->section, section))
			continue;
		value_table_put_take(properties, o->key, option_schema(o));
		add_needs(needs, o);
	}
	value_table_put_take(t, "additionalProperties", value_new_bool(false));
	value_table_put_take(t, "properties", properties);
	if (needs->n)
		value_table_put_take(t, "dependentRequired", needs);
	else
		value_free(needs);
	return t;
}

void text_schema(struct buf *out)
{
	struct value *root = value_new(VALUE_TABLE);
	struct value *properties = value_new(VALUE_TABLE);

	put_str(root, "$schema", "https://json-schema.org/draft/2020-12/schema");
	put_str(root, "title", "sandlock policy");
	put_str(root, "type", "object");
	value_table_put_take(root, "additionalProperties", value_new_bool(false));
	value_table_put_take(properties, "include", option_schema(option_get(OPT_INCLUDE)));
	for (size_t i = 0; option_sections[i]; i++)
		value_table_put_take(properties, option_sections[i],
				     section_schema(option_sections[i]));
	value_table_put_take(root, "properties", properties);

	auto_free char *text = json_write(root);

	buf_add_str(out, text);
	value_free(root);
}
