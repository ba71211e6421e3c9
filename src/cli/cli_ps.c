/* SPDX-License-Identifier: Apache-2.0 */
/* sandlock ps [--json]: the live sandboxes of this user. Exit 0, 1 if it failed, 2 wrong usage. */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/utf8.h"
#include "base/util.h"
#include "base/value.h"
#include "cli/cli.h"

static const char usage_text[] = "Usage: sandlock ps [--json]\n"
				 "\n"
				 "Lists your running sandboxes, whichever program started them.\n";

/* Widths of the columns, in characters. */
enum { NAME_WIDTH = 32, STATUS_WIDTH = 10, PORTS_WIDTH = 24, COMMAND_WIDTH = 57 };

/*
 * Adds TEXT with blanks up to WIDTH characters; where it has more than MAX, as many with an
 * ellipsis as the last.
 */
static void add_column(struct buf *out, const char *text, size_t width, size_t max)
{
	size_t len = strlen(text);
	size_t shown = 0;
	size_t at = 0;
	size_t cut = 0; /* where the last character that leaves room for the ellipsis ends */
	while (at < len && shown < max) {
		uint32_t cp = 0;
		size_t n = utf8_decode(text + at, len - at, &cp);
		at += n ? n : 1;
		if (++shown == max - 1)
			cut = at;
	}
	buf_add(out, text, at < len ? cut : at);
	if (at < len)
		buf_add_str(out, "…");
	for (; shown < width; shown++)
		buf_add_char(out, ' ');
}

/* "42s", "5m", "3h12m", "2d4h" */
static void uptime_text(int64_t ms, char *out, size_t size)
{
	long long s = ms < 0 ? 0 : ms / 1000;
	if (s < 60)
		snprintf(out, size, "%llds", s);
	else if (s < 3600)
		snprintf(out, size, "%lldm", s / 60);
	else if (s < 86400)
		snprintf(out, size, "%lldh%lldm", s / 3600, s / 60 % 60);
	else
		snprintf(out, size, "%lldd%lldh", s / 86400, s / 3600 % 24);
}

static void add_safe(struct buf *out, const struct value *v)
{
	if (v && v->kind == VALUE_STRING)
		buf_add_terminal(out, v->str, v->len);
	else if (v && v->kind == VALUE_INT)
		buf_printf(out, "%lld", (long long)v->integer);
}

/* "8080→40123, …", or "-" */
static void ports_text(const struct value *ports, struct buf *out)
{
	for (size_t i = 0; ports && ports->kind == VALUE_TABLE && i < ports->n; i++) {
		if (i)
			buf_add_str(out, ", ");
		buf_add_terminal(out, ports->keys[i], ports->key_lens[i]);
		buf_add_str(out, "→");
		add_safe(out, ports->items[i]);
	}
	if (!out->len)
		buf_add_char(out, '-');
}

static void command_text(const struct value *command, struct buf *out)
{
	for (size_t i = 0; command && command->kind == VALUE_ARRAY && i < command->n; i++) {
		if (i)
			buf_add_char(out, ' ');
		add_safe(out, command->items[i]);
	}
}

static int64_t integer_of(const struct value *row, const char *key)
{
	const struct value *v = value_get(row, key);
	return v && v->kind == VALUE_INT ? v->integer : 0;
}

static void add_row(struct buf *out, const struct value *row)
{
	AUTO(buf_done) struct buf name = BUF_INIT(4096);
	AUTO(buf_done) struct buf status = BUF_INIT(1024);
	AUTO(buf_done) struct buf ports = BUF_INIT(65536);
	AUTO(buf_done) struct buf command = BUF_INIT(1UL << 20);
	char uptime[32];
	add_safe(&name, value_get(row, "name"));
	add_safe(&status, value_get(row, "status"));
	ports_text(value_get(row, "ports"), &ports);
	command_text(value_get(row, "command"), &command);
	uptime_text(integer_of(row, "uptime_ms"), uptime, sizeof(uptime));
	/* A name is what inspect and kill take: it is not cut where it is too long. */
	add_column(out, buf_text(&name), NAME_WIDTH, SIZE_MAX);
	buf_printf(out, " %8lld %12s  ", (long long)integer_of(row, "pid"), uptime);
	add_column(out, buf_text(&status), STATUS_WIDTH, STATUS_WIDTH);
	buf_add_char(out, ' ');
	add_column(out, buf_text(&ports), PORTS_WIDTH, PORTS_WIDTH);
	buf_add_char(out, ' ');
	add_column(out, buf_text(&command), 0, COMMAND_WIDTH + 1);
	buf_add_char(out, '\n');
}

static int print_table(const char *json)
{
	AUTO(value_free) struct value *rows = NULL;
	AUTO(buf_done) struct buf out = BUF_INIT(64UL << 20);
	if (json_parse(json, strlen(json), "list", &rows, NULL) < 0 || rows->kind != VALUE_ARRAY)
		return cli_error(CLI_FAILED, "there are too many sandboxes to list: use --json");
	if (!rows->n) {
		puts("No running sandboxes.");
		return CLI_OK;
	}
	buf_printf(&out, "%-*s %8s %12s  %-10s %-*s %s\n", NAME_WIDTH, "NAME", "PID", "UPTIME",
		   "STATUS", PORTS_WIDTH, "PORTS", "CMD");
	for (size_t i = 0; i < rows->n; i++)
		add_row(&out, rows->items[i]);
	fputs(buf_text(&out), stdout);
	return CLI_OK;
}

int cli_ps(int argc, char **argv)
{
	bool as_json = false;
	char *text = NULL;
	struct sandlock_error err;
	for (int i = 0; i < argc; i++) {
		if (str_eq(argv[i], "--help") || str_eq(argv[i], "-h")) {
			fputs(usage_text, stdout);
			return CLI_OK;
		}
		if (!str_eq(argv[i], "--json"))
			return cli_error(CLI_USAGE, "ps takes --json and nothing else, not %s",
					 argv[i]);
		as_json = true;
	}
	if (sandlock_list(&text, &err) < 0)
		return cli_error(CLI_FAILED, "%s", err.msg);
	int code = CLI_OK;
	if (as_json)
		fputs(text, stdout);
	else
		code = print_table(text);
	sandlock_free(text);
	if (fflush(stdout) != 0 || ferror(stdout))
		return cli_error(CLI_FAILED, "the list could not be written to standard output");
	return code;
}
