/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `sandlock run --help`, and the reference table of the documentation.
 */
#include <string.h>

#include "base/util.h"
#include "policy/text_internal.h"

enum { HELP_COLUMN = 34, HELP_WIDTH = 98 };

/* Adds TEXT from column START on, broken between words at the width. */
static void add_wrapped(struct buf *out, const char *text, size_t start)
{
	size_t column = start;

	for (const char *p = text; *p;) {
		size_t n = strcspn(p, " ");

		if (column > start && column + 1 + n > HELP_WIDTH) {
			buf_printf(out, "\n%*s", (int)start, "");
			column = start;
		}
		if (column > start) {
			buf_add_char(out, ' ');
			column++;
		}
		buf_add(out, p, n);
		column += n;
		p += n + (p[n] == ' ');
	}
	buf_add_char(out, '\n');
}

static void help_line(struct buf *out, const struct option *o)
{
	size_t start = out->len;

	if (o->letter)
		buf_printf(out, "  -%c, %s", o->letter, o->flag);
	else
		buf_printf(out, "      %s", o->flag);
	if (o->metavar)
		buf_printf(out, " %s", o->metavar);

	size_t used = out->len - start;

	if (used + 2 > HELP_COLUMN)
		buf_printf(out, "\n%*s", HELP_COLUMN, "");
	else
		buf_printf(out, "%*s", (int)(HELP_COLUMN - used), "");
	add_wrapped(out, o->help, HELP_COLUMN);
}

static void help_group(struct buf *out, const struct option_group *g)
{
	bool titled = false;

	for (size_t id = g->first; id <= (size_t)g->last; id++) {
		const struct option *o = option_get((enum option_id)id);

		if (!o->flag || o->later != LATER_NOTHING)
			continue;
		if (!titled)
			buf_printf(out, "\n%s:\n", g->title);
		titled = true;
		help_line(out, o);
	}
}

void text_help(struct buf *out)
{
	buf_add_str(
		out,
		"Usage: sandlock run [OPTIONS] -- COMMAND [ARG...]\n"
		"\n"
		"Runs COMMAND in a sandbox that can do what the options grant and nothing else.\n"
		"Lists can be given several times and append; a switch --X that a profile sets is\n"
		"switched off by --no-X or --X=false.\n");
	for (const struct option_group *g = option_groups; g->title; g++)
		help_group(out, g);
	buf_add_str(out, "\nNot available in this version (giving one is an error):\n");
	for (size_t id = OPT_NONE + 1; id < OPT_COUNT; id++) {
		const struct option *o = option_get((enum option_id)id);

		if (o->flag && o->later != LATER_NOTHING)
			help_line(out, o);
	}
	buf_add_str(out,
		    "\nExit status: that of COMMAND; 128+N ended by signal N; 124 time-out; 125 "
		    "sandlock\n"
		    "failed; 126 COMMAND cannot be executed; 127 COMMAND not found.\n"
		    "See sandlock-run(1) for all of this, sandlock-policy(5) for policy files.\n");
}

/* A table cell: bars would end it. */
static void add_cell(struct buf *out, const char *text)
{
	for (const char *p = text; *p; p++) {
		if (*p == '|' || *p == '*')
			buf_add_char(out, '\\');
		buf_add_char(out, *p);
	}
}

static void reference_row(struct buf *out, const struct option *o)
{
	AUTO(buf_done) struct buf type = BUF_INIT(4096);

	text_add_type(&type, o);
	buf_add_str(out, "| ");
	if (o->flag)
		buf_printf(out, "`%s`", o->flag);
	if (o->letter)
		buf_printf(out, ", `-%c`", o->letter);
	buf_printf(out, " | %s%s%s | %s%s%s | ", o->path ? "`" : "", o->path ? o->path : "",
		   o->path ? "`" : "", o->api ? "`" : "", o->api ? o->api : "", o->api ? "`" : "");
	add_cell(out, buf_text(&type));
	buf_add_str(out, " | ");
	add_cell(out, o->default_text);
	buf_add_str(out, " | ");
	add_cell(out, o->help);
	buf_add_char(out, '.');
	if (o->detail) {
		buf_add_char(out, ' ');
		add_cell(out, o->detail);
	}
	if (o->later != LATER_NOTHING) {
		buf_add_char(out, ' ');
		text_add_later(out, o);
	}
	if (o->flags & OPTION_SUPERVISED)
		buf_add_str(out, " Not with `--no-supervisor`.");
	buf_add_str(out, " |\n");
}

void text_reference(struct buf *out)
{
	buf_add_str(out, "# Settings\n\n"
			 "Made from the option table (`sandlock run`, policy files, the API).\n");
	for (const struct option_group *g = option_groups; g->title; g++) {
		buf_printf(out,
			   "\n## %s\n\n"
			   "| flag | key | API | value | unset | meaning |\n"
			   "|---|---|---|---|---|---|\n",
			   g->title);
		for (size_t id = g->first; id <= (size_t)g->last; id++)
			reference_row(out, option_get((enum option_id)id));
	}
}
