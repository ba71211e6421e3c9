/* SPDX-License-Identifier: Apache-2.0 */
/* sandlock changes: lists, shows, applies, takes back and forgets change sets. Exit 0, 1 if it
 * failed, 2 for wrong usage. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/util.h"
#include "base/value.h"
#include "cli/cli.h"

static const char usage_text[] =
	"Usage: sandlock changes [list] [--json]\n"
	"       sandlock changes show [ID] [--format text|json|patch|stat]\n"
	"       sandlock changes apply ID [--only GLOB] [--on-conflict abort|theirs|ours]\n"
	"       sandlock changes undo [ID] [--on-conflict abort|ours]\n"
	"       sandlock changes redo [ID] [--on-conflict abort|ours]\n"
	"       sandlock changes discard ID\n"
	"       sandlock changes recover\n"
	"\n"
	"Works on what runs with --workdir have kept or committed. --fs-storage DIR names the\n"
	"directory where they are, as it does for run.\n";

enum { TAKES_JSON = 1, TAKES_FORMAT = 2, TAKES_ONLY = 4, TAKES_CONFLICT = 8, TAKES_ID = 16 };

struct request {
	const char *storage;
	const char *id;
	const char *format;
	const char *only;
	const char *on_conflict;
	bool json;
};

struct verb {
	const char *name;
	unsigned int takes;
	bool wants_id;
	int (*fn)(const struct request *r, struct sandlock_error *err);
};

static void add_words(struct buf *out, const struct value *list)
{
	for (size_t i = 0; list && list->kind == VALUE_ARRAY && i < list->n; i++) {
		if (i)
			buf_add_char(out, ' ');
		if (list->items[i]->kind == VALUE_STRING)
			buf_add_terminal(out, list->items[i]->str, list->items[i]->len);
	}
}

static const char *text_of(const struct value *row, const char *key)
{
	const struct value *v = value_get(row, key);
	return v && v->kind == VALUE_STRING ? v->str : "";
}

static int print_table(const char *json)
{
	AUTO(value_free) struct value *rows = NULL;
	AUTO(buf_done) struct buf out = BUF_INIT((size_t)64 * 1024 * 1024);
	if (json_parse(json, strlen(json), "list", &rows, NULL) < 0 || rows->kind != VALUE_ARRAY)
		return cli_error(CLI_FAILED, "there are too many change sets to list: use --json");
	if (!rows->n) {
		puts("No change sets.");
		return CLI_OK;
	}
	buf_printf(&out, "%-24s %-10s %-24s %s\n", "ID", "STATUS", "BEGAN", "WORKDIR AND COMMAND");
	for (size_t i = 0; i < rows->n; i++) {
		const struct value *row = rows->items[i];
		buf_printf(&out, "%-24s %-10s %-24s ", text_of(row, "id"), text_of(row, "status"),
			   text_of(row, "began"));
		add_words(&out, value_get(row, "workdirs"));
		buf_add_str(&out, ": ");
		add_words(&out, value_get(row, "command"));
		buf_add_char(&out, '\n');
	}
	fputs(buf_text(&out), stdout);
	return CLI_OK;
}

static int do_list(const struct request *r, struct sandlock_error *err)
{
	char *text = NULL;
	int code = sandlock_changes_list(r->storage, &text, err);
	if (code < 0)
		return code;
	if (r->json)
		fputs(text, stdout);
	else
		code = print_table(text) == CLI_OK ? 0 : 1;
	sandlock_free(text);
	return code;
}

static int do_show(const struct request *r, struct sandlock_error *err)
{
	return sandlock_changes_show(r->storage, r->id, r->format, STDOUT_FILENO, err);
}

static int do_apply(const struct request *r, struct sandlock_error *err)
{
	char *id = NULL;
	int code = sandlock_changes_apply(r->storage, r->id, r->only, r->on_conflict, &id, err);
	if (code < 0)
		return code;
	if (*id)
		printf("Applied; 'sandlock changes undo %s' takes it back.\n", id);
	else
		puts("There was nothing to apply.");
	sandlock_free(id);
	return 0;
}

static int do_undo(const struct request *r, struct sandlock_error *err)
{
	return sandlock_changes_undo(r->storage, r->id, r->on_conflict, err);
}

static int do_redo(const struct request *r, struct sandlock_error *err)
{
	return sandlock_changes_redo(r->storage, r->id, r->on_conflict, err);
}

static int do_discard(const struct request *r, struct sandlock_error *err)
{
	return sandlock_changes_discard(r->storage, r->id, err);
}

static int do_recover(const struct request *r, struct sandlock_error *err)
{
	return sandlock_changes_recover(r->storage, err);
}

static const struct verb verbs[] = {
	/* clang-format off */
	{"list",    TAKES_JSON,                             false, do_list},
	{"show",    TAKES_ID | TAKES_FORMAT,                false, do_show},
	{"apply",   TAKES_ID | TAKES_ONLY | TAKES_CONFLICT, true,  do_apply},
	{"undo",    TAKES_ID | TAKES_CONFLICT,              false, do_undo},
	{"redo",    TAKES_ID | TAKES_CONFLICT,              false, do_redo},
	{"discard", TAKES_ID,                               true,  do_discard},
	{"recover", 0,                                      false, do_recover},
	/* clang-format on */
};

/* Where the value of the option WORD goes; NULL if VERB does not take it. */
static const char **option_place(const struct verb *verb, struct request *r, const char *word,
				 size_t len)
{
	const struct {
		const char *name;
		unsigned int takes; /* 0: all do */
		const char **place;
	} options[] = {{"--fs-storage", 0, &r->storage},
		       {"--format", TAKES_FORMAT, &r->format},
		       {"--only", TAKES_ONLY, &r->only},
		       {"--on-conflict", TAKES_CONFLICT, &r->on_conflict}};
	for (size_t i = 0; i < ARRAY_SIZE(options); i++)
		if (strlen(options[i].name) == len && strncmp(word, options[i].name, len) == 0 &&
		    (!options[i].takes || (verb->takes & options[i].takes)))
			return options[i].place;
	return NULL;
}

static int parse(const struct verb *verb, int argc, char **argv, struct request *r)
{
	for (int i = 0; i < argc; i++) {
		const char *equals = strchr(argv[i], '=');
		size_t len = equals ? (size_t)(equals - argv[i]) : strlen(argv[i]);
		const char **place = option_place(verb, r, argv[i], len);
		if (place && (equals || i + 1 < argc)) {
			*place = equals ? equals + 1 : argv[++i];
		} else if ((verb->takes & TAKES_JSON) && str_eq(argv[i], "--json")) {
			r->json = true;
		} else if ((verb->takes & TAKES_ID) && argv[i][0] != '-' && !r->id) {
			r->id = argv[i];
		} else {
			return cli_error(
				CLI_USAGE,
				"changes %s does not take %s: see 'sandlock changes --help'",
				verb->name, argv[i]);
		}
	}
	if (verb->wants_id && !r->id)
		return cli_error(CLI_USAGE, "changes %s takes an id: 'sandlock changes' lists them",
				 verb->name);
	return CLI_OK;
}

int cli_changes(int argc, char **argv)
{
	const struct verb *verb = &verbs[0];
	struct request request = {0};
	struct sandlock_error err = {0};
	for (int i = 0; i < argc; i++)
		if (str_eq(argv[i], "--help") || str_eq(argv[i], "-h")) {
			fputs(usage_text, stdout);
			return CLI_OK;
		}
	if (argc > 0 && argv[0][0] != '-') {
		verb = NULL;
		for (size_t i = 0; i < ARRAY_SIZE(verbs); i++)
			if (str_eq(argv[0], verbs[i].name))
				verb = &verbs[i];
		if (!verb)
			return cli_error(CLI_USAGE,
					 "there is no changes %s: see 'sandlock changes --help'",
					 argv[0]);
		argc--;
		argv++;
	}
	int code = parse(verb, argc, argv, &request);
	if (code != CLI_OK)
		return code;
	int r = verb->fn(&request, &err);
	if (r < 0)
		return cli_error(CLI_FAILED, "%s", err.msg);
	if (r > 0)
		return CLI_FAILED;
	if (fflush(stdout) != 0 || ferror(stdout))
		return cli_error(CLI_FAILED, "standard output cannot be written");
	return CLI_OK;
}
