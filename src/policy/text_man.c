/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sources of the manual pages for scdoc: prose from man/, with the list of options or keys put in
 * the place of a marker line.
 */
#include <string.h>

#include "base/util.h"
#include "policy/embedded.h"
#include "policy/text_internal.h"

/* Plain text: what scdoc would read as markup is escaped. */
static void scd_text(struct buf *out, const char *text)
{
	for (const char *p = text; *p; p++) {
		if (strchr("*_\\#<>", *p))
			buf_add_char(out, '\\');
		buf_add_char(out, *p);
	}
}

static void scd_sentences(struct buf *out, const struct option *o)
{
	buf_add_char(out, '\t');
	/* Help lines have no capital and no stop: they are the end of a row. */
	char first[2] = {o->help[0], '\0'};

	if (first[0] >= 'a' && first[0] <= 'z')
		first[0] = (char)(first[0] - 'a' + 'A');
	scd_text(out, first);
	scd_text(out, o->help + 1);
	buf_add_str(out, ".");
	if (o->detail) {
		buf_add_char(out, ' ');
		scd_text(out, o->detail);
	}
	if (o->type != OPTION_BOOL) {
		buf_add_str(out, " Unset: ");
		scd_text(out, o->default_text);
		buf_add_char(out, '.');
	}
	if (o->later != LATER_NOTHING) {
		AUTO(buf_done) struct buf later = BUF_INIT(1024);

		text_add_later(&later, o);
		buf_add_char(out, ' ');
		scd_text(out, buf_text(&later));
	}
	buf_add_str(out, "\n\n");
}

static void man_option(struct buf *out, const struct option *o)
{
	if (o->letter)
		buf_printf(out, "*-%c*, ", o->letter);
	buf_printf(out, "*%s*", o->flag);
	if (o->metavar) {
		buf_add_str(out, " ");
		scd_text(out, o->metavar);
	}
	buf_add_char(out, '\n');
	scd_sentences(out, o);
}

static void man_options(struct buf *out)
{
	for (const struct option_group *g = option_groups; g->title; g++) {
		bool titled = false;

		for (size_t id = g->first; id <= (size_t)g->last; id++) {
			const struct option *o = option_get((enum option_id)id);

			if (!o->flag)
				continue;
			if (!titled)
				buf_printf(out, "## %s\n\n", g->title);
			titled = true;
			man_option(out, o);
		}
	}
}

static void man_key(struct buf *out, const struct option *o)
{
	AUTO(buf_done) struct buf type = BUF_INIT(4096);

	text_add_type(&type, o);
	buf_add_char(out, '*');
	scd_text(out, o->key);
	buf_add_str(out, "* (");
	scd_text(out, buf_text(&type));
	buf_add_str(out, ")");
	if (o->flag)
		buf_printf(out, ", as *%s*", o->flag);
	buf_add_char(out, '\n');
	scd_sentences(out, o);
}

static void man_keys(struct buf *out)
{
	man_key(out, option_get(OPT_INCLUDE));
	for (size_t i = 0; option_sections[i]; i++) {
		buf_printf(out, "## [%s]\n\n", option_sections[i]);
		for (size_t id = OPT_NONE + 1; id < OPT_COUNT; id++) {
			const struct option *o = option_get((enum option_id)id);

			if (o->key && str_eq(o->section, option_sections[i]))
				man_key(out, o);
		}
	}
}

/* The embedded page NAME with the line MARKER replaced by what FILL writes. */
static void man_page(struct buf *out, const char *name, const char *marker,
		     void (*fill)(struct buf *out))
{
	const char *text = embedded_text(name);
	const char *at = text ? strstr(text, marker) : NULL;

	if (!at)
		util_abort("the prose of a manual page is missing from the build");
	buf_add(out, text, (size_t)(at - text));
	fill(out);
	buf_add_str(out, at + strlen(marker));
}

void text_man_run(struct buf *out)
{
	man_page(out, "sandlock-run.1.scd.in", "@OPTIONS@\n", man_options);
}

void text_man_policy(struct buf *out)
{
	man_page(out, "sandlock-policy.5.scd.in", "@KEYS@\n", man_keys);
}
