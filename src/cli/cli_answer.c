/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sandlock answer NAME [ID once|run|no]: the open questions of a sandbox that was started with
 * --net-ask, and their answers. Exit 0, 1 if it failed, 2 for wrong usage.
 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/util.h"
#include "base/value.h"
#include "cli/cli.h"
#include "cli/cli_ask.h"

static const char usage_text[] =
	"Usage: sandlock answer NAME [ID once|run|no]\n"
	"\n"
	"Lists the open questions of the sandbox NAME, which was started with --net-ask, or "
	"answers\n"
	"question ID.\n"
	"\n"
	"  once  lets the calls that wait go on\n"
	"  run   allows the destination for the rest of the run (--ask-save: saved as well)\n"
	"  no    refuses it for the rest of the run\n";

static int list(const char *name)
{
	AUTO(value_free) struct value *all = NULL;
	AUTO(buf_done) struct buf out = BUF_INIT((size_t)256 * 1024);
	auto_free char *json = NULL;
	struct sandlock_error err;
	if (sandlock_questions(name, &json, &err) < 0)
		return cli_error(CLI_FAILED, "%s", err.msg);
	if (json_parse(json, strlen(json), "questions", &all, NULL) < 0 || all->kind != VALUE_ARRAY)
		return cli_error(CLI_FAILED, "the sandbox answers what is no list of questions");
	for (size_t i = 0; i < all->n; i++) {
		const struct value *id = value_get(all->items[i], "id");
		const struct value *left = value_get(all->items[i], "left_ms");
		buf_printf(&out, "%lld  ",
			   id && id->kind == VALUE_INT ? (long long)id->integer : 0);
		ask_add_text(all->items[i], &out);
		if (left && left->kind == VALUE_INT)
			buf_printf(&out, "; %lld s left", (long long)(left->integer + 999) / 1000);
		buf_add_char(&out, '\n');
	}
	fputs(all->n ? buf_text(&out) : "No open questions.\n", stdout);
	return fflush(stdout) == 0 ? CLI_OK : CLI_FAILED;
}

int cli_answer(int argc, char **argv)
{
	struct sandlock_error err;
	char *end = NULL;
	if (argc == 1 && (str_eq(argv[0], "--help") || str_eq(argv[0], "-h"))) {
		fputs(usage_text, stdout);
		return CLI_OK;
	}
	if ((argc != 1 && argc != 3) || argv[0][0] == '-')
		return cli_error(CLI_USAGE,
				 "answer takes the name of a sandbox, or that, the number of a "
				 "question and once, run or no");
	if (argc == 1)
		return list(argv[0]);
	errno = 0;
	long id = strtol(argv[1], &end, 10);
	if (errno || end == argv[1] || *end || id <= 0 || id > INT_MAX)
		return cli_error(CLI_USAGE, "%s is no number of a question", argv[1]);
	if (!str_eq(argv[2], "once") && !str_eq(argv[2], "run") && !str_eq(argv[2], "no"))
		return cli_error(CLI_USAGE, "an answer is once, run or no, not %s", argv[2]);
	if (sandlock_answer(argv[0], (int)id, argv[2], &err) < 0)
		return cli_error(CLI_FAILED, "%s", err.msg);
	return CLI_OK;
}
