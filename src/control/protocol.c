/* SPDX-License-Identifier: Apache-2.0 */
/* The control protocol as text: see protocol.h. */
#include "control/protocol.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/util.h"
#include "base/value.h"

static const char *const verb_names[CONTROL_VERB_COUNT] = {
	[CONTROL_CONFIG] = "config", [CONTROL_PORTS] = "ports",		[CONTROL_INFO] = "info",
	[CONTROL_KILL] = "kill",     [CONTROL_QUESTIONS] = "questions", [CONTROL_ANSWER] = "answer",
};

const char *control_verb_name(enum control_verb verb)
{
	return verb_names[verb];
}

void control_put_length(char out[CONTROL_HEADER], size_t len)
{
	for (int i = 0; i < CONTROL_HEADER; i++)
		out[i] = (char)(unsigned char)(len >> (8 * (CONTROL_HEADER - 1 - i)));
}

size_t control_get_length(const char in[CONTROL_HEADER])
{
	size_t len = 0;
	for (int i = 0; i < CONTROL_HEADER; i++)
		len = len << 8 | (unsigned char)in[i];
	return len;
}

/* Takes B, whose first bytes are room for the length. */
static char *finish_frame(struct buf *b, size_t *ret_len)
{
	control_put_length(b->data, b->len - CONTROL_HEADER);
	*ret_len = b->len;
	return buf_take(b);
}

static void begin_frame(struct buf *b)
{
	static const char room[CONTROL_HEADER];
	buf_add(b, room, sizeof(room));
}

/* --- Requests ------------------------------------------------------------------------------- */

char *control_request_text(enum control_verb verb, const struct value *args, size_t *ret_len)
{
	struct buf b = BUF_INIT(CONTROL_REQUEST_MAX);
	auto_free char *text = args ? json_write_compact(args) : xstrdup("{}");
	begin_frame(&b);
	buf_printf(&b, "{\"v\":%d,\"verb\":\"%s\",\"args\":%s}", CONTROL_VERSION, verb_names[verb],
		   text);
	return finish_frame(&b, ret_len);
}

static int find_verb(const struct value *verb, enum control_verb *ret_verb)
{
	for (size_t i = 0; i < CONTROL_VERB_COUNT; i++) {
		/* A string may hold NUL bytes: its length is what counts. */
		if (verb->len == strlen(verb_names[i]) && str_eq(verb->str, verb_names[i])) {
			*ret_verb = (enum control_verb)i;
			return 0;
		}
	}
	return -EINVAL;
}

static char *unknown_verb(const struct value *verb)
{
	struct buf b = BUF_INIT(1024);
	size_t n = verb->len > CONTROL_VERB_MAX_SHOW ? CONTROL_VERB_MAX_SHOW : verb->len;
	buf_add_str(&b, "unknown verb: ");
	buf_add_terminal(&b, verb->str, n);
	return buf_take(&b);
}

static int judge_request(const struct value *root, enum control_verb *ret_verb, char **ret_why)
{
	const struct value *v = value_get(root, "v");
	const struct value *verb = value_get(root, "verb");
	const struct value *args = value_get(root, "args");

	if (root->kind != VALUE_TABLE)
		*ret_why = xstrdup("parse error: a request is an object");
	else if (!v || v->kind != VALUE_INT)
		*ret_why = xstrdup("parse error: v is no integer");
	else if (v->integer != CONTROL_VERSION)
		*ret_why = xasprintf("unsupported protocol version: %lld", (long long)v->integer);
	else if (!verb || verb->kind != VALUE_STRING)
		*ret_why = xstrdup("parse error: verb is no string");
	else if (args && args->kind != VALUE_TABLE)
		*ret_why = xstrdup("parse error: args is no object");
	else if (find_verb(verb, ret_verb) < 0)
		*ret_why = unknown_verb(verb);
	return *ret_why ? -EINVAL : 0;
}

/* The child KEY, no longer in TABLE; NULL if it is not there. */
static struct value *take_child(struct value *table, const char *key)
{
	for (size_t i = 0; i < table->n; i++) {
		if (str_eq(table->keys[i], key)) {
			struct value *child = table->items[i];
			table->items[i] = value_new(VALUE_NULL);
			return child;
		}
	}
	return NULL;
}

int control_request_parse(const char *text, size_t len, enum control_verb *ret_verb,
			  struct value **ret_args, char **ret_why)
{
	AUTO(value_free) struct value *root = NULL;
	struct err err = {0};

	*ret_why = NULL;
	if (json_parse(text, len, "request", &root, &err) < 0) {
		*ret_why = xasprintf("parse error: %s", err.msg);
		return -EINVAL;
	}
	int r = judge_request(root, ret_verb, ret_why);
	if (r == 0)
		*ret_args = take_child(root, "args");
	return r;
}

/* --- Replies -------------------------------------------------------------------------------- */

char *control_reply_error(const char *why, size_t *ret_len)
{
	struct buf b = BUF_INIT(CONTROL_REQUEST_MAX);
	begin_frame(&b);
	buf_printf(&b, "{\"v\":%d,\"ok\":false,\"err\":", CONTROL_VERSION);
	buf_add_json(&b, why, strlen(why));
	buf_add_char(&b, '}');
	return finish_frame(&b, ret_len);
}

char *control_reply_ok(const char *data, size_t *ret_len)
{
	struct buf b = BUF_INIT(CONTROL_HEADER + CONTROL_REPLY_MAX);
	begin_frame(&b);
	buf_printf(&b, "{\"v\":%d,\"ok\":true,\"data\":", CONTROL_VERSION);
	buf_add_str(&b, data);
	buf_add_char(&b, '}');
	if (b.error) {
		buf_done(&b);
		auto_free char *why = xasprintf("response too large (%zu bytes of data, at most "
						"%zu in all)",
						strlen(data), CONTROL_REPLY_MAX);
		return control_reply_error(why, ret_len);
	}
	return finish_frame(&b, ret_len);
}

int control_reply_parse(const char *text, size_t len, struct value **ret_data, char **ret_why)
{
	AUTO(value_free) struct value *root = NULL;

	*ret_why = NULL;
	if (json_parse(text, len, "reply", &root, NULL) < 0 || root->kind != VALUE_TABLE)
		return -EPROTO;
	const struct value *v = value_get(root, "v");
	const struct value *ok = value_get(root, "ok");
	const struct value *why = value_get(root, "err");
	if (!v || v->kind != VALUE_INT || v->integer != CONTROL_VERSION || !ok ||
	    ok->kind != VALUE_BOOL)
		return -EPROTO;
	if (!ok->boolean) {
		*ret_why = xstrdup(why && why->kind == VALUE_STRING ? why->str : "no reason given");
		return -EREMOTEIO;
	}
	*ret_data = take_child(root, "data");
	return *ret_data ? 0 : -EPROTO;
}
