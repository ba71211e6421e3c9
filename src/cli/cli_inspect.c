/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sandlock inspect NAME [--json | --toml]: the effective policy of a live sandbox and what holds it
 * together. Exit 0, 1 if it failed, 2 for wrong usage.
 */
#include <stdio.h>

#include "base/util.h"
#include "cli/cli.h"

static const char usage_text[] =
	"Usage: sandlock inspect NAME [--json | --toml]\n"
	"\n"
	"Prints the effective policy of the sandbox NAME, and below \"sandbox\" who it is and "
	"what\n"
	"holds it together (rungs, view, waivers).\n"
	"\n"
	"  --json  the policy alone, as 'run --print-policy json' prints it: a profile file\n"
	"  --toml  the policy as TOML, the rest as comments in front\n";

int cli_inspect(int argc, char **argv)
{
	const char *name = NULL;
	const char *format = "full";
	char *text = NULL;
	struct sandlock_error err;
	for (int i = 0; i < argc; i++) {
		if (str_eq(argv[i], "--help") || str_eq(argv[i], "-h")) {
			fputs(usage_text, stdout);
			return CLI_OK;
		}
		bool is_format = str_eq(argv[i], "--json") || str_eq(argv[i], "--toml");
		if (is_format && !str_eq(format, "full") && !str_eq(format, argv[i] + 2))
			return cli_error(CLI_USAGE, "--json and --toml contradict each other");
		if (!is_format && (name || argv[i][0] == '-'))
			return cli_error(CLI_USAGE,
					 "inspect takes one name and --json or --toml, not %s",
					 argv[i]);
		if (is_format)
			format = argv[i] + 2;
		else
			name = argv[i];
	}
	if (!name)
		return cli_error(CLI_USAGE,
				 "inspect needs the name of a sandbox: 'sandlock ps' lists them");
	if (sandlock_inspect(name, format, &text, &err) < 0)
		return cli_error(CLI_FAILED, "%s", err.msg);
	fputs(text, stdout);
	sandlock_free(text);
	if (fflush(stdout) != 0 || ferror(stdout))
		return cli_error(CLI_FAILED, "the policy could not be written to standard output");
	return CLI_OK;
}
