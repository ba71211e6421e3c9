/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sandlock kill NAME: ends the whole tree of a live sandbox, and returns when it is dead. Exit 0, 1
 * if it failed, 2 for wrong usage.
 */
#include <stdio.h>

#include "base/util.h"
#include "cli/cli.h"

static const char usage_text[] =
	"Usage: sandlock kill NAME\n"
	"\n"
	"Kills every process of the sandbox NAME. The program that started it goes on.\n";

int cli_kill(int argc, char **argv)
{
	pid_t child = 0;
	pid_t supervisor = 0;
	struct sandlock_error err;
	if (argc == 1 && (str_eq(argv[0], "--help") || str_eq(argv[0], "-h"))) {
		fputs(usage_text, stdout);
		return CLI_OK;
	}
	if (argc != 1 || argv[0][0] == '-')
		return cli_error(
			CLI_USAGE,
			"kill takes the name of one sandbox and nothing else: 'sandlock ps' "
			"lists them");
	if (sandlock_kill_name(argv[0], &child, &supervisor, &err) < 0)
		return cli_error(CLI_FAILED, "%s", err.msg);
	printf("Killed sandbox '%s' (child PID %d, supervisor PID %d)\n", argv[0], child,
	       supervisor);
	return CLI_OK;
}
