/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sandlock profile list | show NAME [--json] | delete NAME | validate NAME|FILE...
 * Exit 0, 1 where it failed or the answer is no, 2 for wrong usage.
 */
#include <stdio.h>
#include <string.h>

#include "base/util.h"
#include "cli/cli.h"

static const char usage_text[] =
	"Usage: sandlock profile list\n"
	"       sandlock profile show NAME [--json]\n"
	"       sandlock profile delete NAME\n"
	"       sandlock profile validate NAME|FILE...\n"
	"\n"
	"Profiles are TOML files in $XDG_CONFIG_HOME/sandlock/profiles and\n"
	"~/.config/sandlock/profiles; built-in ones are called builtin:NAME.\n"
	"validate reads a FILE where the word holds a slash or ends in .toml or .json, or is -.\n";

static int failed(const struct sandlock_error *err)
{
	return cli_error(CLI_FAILED, "%s", err->msg);
}

/* Prints the names with two blanks in front; a user without own profiles is told where they go. */
static void print_names(const char *text)
{
	for (const char *p = text; *p;) {
		size_t n = strcspn(p, "\n");

		printf("  %.*s\n", (int)n, p);
		p += n + (p[n] == '\n');
	}
}

static int profile_list(int argc, char **argv)
{
	struct sandlock_error err;
	char *text = NULL, *dir = NULL;

	(void)argv;
	if (argc > 0)
		return cli_error(CLI_USAGE, "profile list takes no arguments");
	if (sandlock_profile_list(&text, &err) < 0)
		return failed(&err);
	if (str_starts(text, "builtin:") && sandlock_profile_dir(&dir, NULL) == 0)
		fprintf(stderr, "No profiles found in %s\n", dir);
	print_names(text);
	sandlock_free(dir);
	sandlock_free(text);
	return CLI_OK;
}

static int profile_show(int argc, char **argv)
{
	struct sandlock_error err;
	const char *name = NULL, *format = "toml";
	char *text = NULL;

	for (int i = 0; i < argc; i++) {
		if (str_eq(argv[i], "--json"))
			format = "json";
		else if (name || argv[i][0] == '-')
			return cli_error(CLI_USAGE,
					 "profile show takes one name and --json, not %s", argv[i]);
		else
			name = argv[i];
	}
	if (!name)
		return cli_error(CLI_USAGE, "profile show needs the name of a profile");
	if (sandlock_profile_show(name, format, &text, &err) < 0)
		return failed(&err);
	fputs(text, stdout);
	sandlock_free(text);
	return CLI_OK;
}

static int profile_delete(int argc, char **argv)
{
	struct sandlock_error err;

	if (argc != 1)
		return cli_error(CLI_USAGE, "profile delete needs the name of one profile");
	if (sandlock_profile_delete(argv[0], &err) < 0)
		return failed(&err);
	printf("Deleted profile '%s'\n", argv[0]);
	return CLI_OK;
}

static bool is_file(const char *word)
{
	return strchr(word, '/') || str_ends(word, ".toml") || str_ends(word, ".json") ||
	       str_eq(word, "-");
}

static int validate_one(const char *word)
{
	struct sandlock_policy *policy = sandlock_policy_new();
	struct sandlock_error err;
	int r = is_file(word) ? sandlock_policy_load_file(policy, word, &err)
			      : sandlock_policy_load_profile(policy, word, &err);

	if (r == 0)
		r = sandlock_policy_check(policy, &err);
	if (r < 0) {
		failed(&err);
	} else {
		printf("%s: ok\n", word);
		for (size_t i = 0; sandlock_policy_warning(policy, i); i++)
			cli_warning(sandlock_policy_warning(policy, i));
	}
	sandlock_policy_free(policy);
	return r < 0 ? CLI_FAILED : CLI_OK;
}

static int profile_validate(int argc, char **argv)
{
	int code = CLI_OK;

	if (argc == 0)
		return cli_error(CLI_USAGE,
				 "profile validate needs the name or the file of a profile");
	for (int i = 0; i < argc; i++)
		if (validate_one(argv[i]) != CLI_OK)
			code = CLI_FAILED;
	return code;
}

static const struct {
	const char *name;
	int (*fn)(int argc, char **argv);
} actions[] = {
	{"list", profile_list},
	{"show", profile_show},
	{"delete", profile_delete},
	{"validate", profile_validate},
};

int cli_profile(int argc, char **argv)
{
	if (argc == 0) {
		fputs(usage_text, stderr);
		return CLI_USAGE;
	}
	if (str_eq(argv[0], "--help") || str_eq(argv[0], "-h")) {
		fputs(usage_text, stdout);
		return CLI_OK;
	}
	for (size_t i = 0; i < ARRAY_SIZE(actions); i++)
		if (str_eq(argv[0], actions[i].name))
			return actions[i].fn(argc - 1, argv + 1);
	return cli_error(CLI_USAGE,
			 "there is no action %s of profile: list, show, delete and validate are",
			 argv[0]);
}
