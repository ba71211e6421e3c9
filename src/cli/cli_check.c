/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sandlock check [--json]: what this machine can do, found out by trying. Exit 0 if the strict
 * default would start here, 1 if not, 2 for wrong usage.
 */
#include <stdio.h>

#include "base/util.h"
#include "cli/cli.h"

static const char usage_text[] =
	"Usage: sandlock check [--json]\n"
	"\n"
	"Tries every mechanism that a sandbox uses, for real, and starts sandboxes whose command\n"
	"tries a forbidden write. Prints a line for each, and a verdict. Exit status: 0 if the\n"
	"strict default would start here, 1 if not, 2 for wrong usage.\n";

int cli_check(int argc, char **argv)
{
	int json = 0;
	char *text = NULL;
	struct sandlock_error err;
	for (int i = 0; i < argc; i++) {
		if (str_eq(argv[i], "--help") || str_eq(argv[i], "-h")) {
			fputs(usage_text, stdout);
			return CLI_OK;
		}
		if (!str_eq(argv[i], "--json"))
			return cli_error(CLI_USAGE, "check takes --json and nothing else, not %s",
					 argv[i]);
		json = 1;
	}
	int r = sandlock_check(json, &text, &err);
	if (r < 0)
		return cli_error(CLI_FAILED, "%s", err.msg);
	fputs(text, stdout);
	sandlock_free(text);
	if (fflush(stdout) != 0 || ferror(stdout))
		return cli_error(CLI_FAILED, "the report could not be written to standard output");
	return r == 0 ? CLI_OK : CLI_FAILED;
}
