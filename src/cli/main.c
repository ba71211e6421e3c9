/* SPDX-License-Identifier: Apache-2.0 */
/* The sandlock program: finds the subcommand and hands it its words. */
#include <stdio.h>
#include <string.h>

#include "base/util.h"
#include "cli/cli.h"

static const struct {
	const char *name;
	int (*fn)(int argc, char **argv);
	const char *help;
} commands[] = {
	/* clang-format off */
	{"run",             cli_run,             "run a command in a sandbox"},
	{"ps",              cli_ps,              "list the running sandboxes"},
	{"inspect",         cli_inspect,         "print the policy of a running sandbox"},
	{"kill",            cli_kill,            "end a running sandbox"},
	{"answer",          cli_answer,          "answer what a running sandbox asks"},
	{"changes",         cli_changes,         "show, apply and take back what runs changed"},
	{"check",           cli_check,           "try what this machine can do"},
	{"profile",         cli_profile,         "list, show, delete or validate profiles"},
	{"complete-script", cli_complete_script, "print the completion script of a shell"},
	/* clang-format on */
};

static int usage(FILE *out, int code)
{
	fputs("Usage: sandlock COMMAND [OPTIONS]\n\nCommands:\n", out);
	for (size_t i = 0; i < ARRAY_SIZE(commands); i++)
		fprintf(out, "  %-16s %s\n", commands[i].name, commands[i].help);
	fputs("\n'sandlock run --help' shows the options of run. "
	      "'sandlock --version' shows the version.\n",
	      out);
	return code;
}

int main(int argc, char **argv)
{
	if (argc < 2)
		return usage(stderr, CLI_USAGE);
	if (str_eq(argv[1], "--help") || str_eq(argv[1], "-h") || str_eq(argv[1], "help"))
		return usage(stdout, CLI_OK);
	if (str_eq(argv[1], "--version") || str_eq(argv[1], "-V")) {
		printf("sandlock %s\n", sandlock_version());
		return CLI_OK;
	}
	for (size_t i = 0; i < ARRAY_SIZE(commands); i++) {
		if (str_eq(argv[1], commands[i].name))
			return commands[i].fn(argc - 2, argv + 2);
	}
	cli_error(CLI_USAGE, "there is no command %s: 'sandlock --help' lists them", argv[1]);
	return CLI_USAGE;
}
