/* SPDX-License-Identifier: Apache-2.0 */
/* sandlock complete-script bash | zsh | fish: the completion script for that shell. */
#include <stdio.h>

#include "base/util.h"
#include "cli/cli.h"

static const char usage_text[] = "Usage: sandlock complete-script bash|zsh|fish\n"
				 "\n"
				 "For one session: eval \"$(sandlock complete-script bash)\"\n";

int cli_complete_script(int argc, char **argv)
{
	char *text = NULL;

	if (argc == 1 && (str_eq(argv[0], "--help") || str_eq(argv[0], "-h"))) {
		fputs(usage_text, stdout);
		return CLI_OK;
	}
	if (argc != 1) {
		fputs(usage_text, stderr);
		return CLI_USAGE;
	}
	if (!str_eq(argv[0], "bash") && !str_eq(argv[0], "zsh") && !str_eq(argv[0], "fish"))
		return cli_error(CLI_USAGE, "there is no completion for %s: bash, zsh and fish are",
				 argv[0]);
	if (sandlock_text(argv[0], &text) < 0)
		return cli_error(CLI_FAILED, "the completion script is missing");
	fputs(text, stdout);
	sandlock_free(text);
	return CLI_OK;
}
