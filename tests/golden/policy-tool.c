/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Drives the policy part of the public API for the golden tests: what it prints is compared with
 * files. No sandbox is started here.
 *
 *   policy-tool text NAME
 *   policy-tool print toml|json FLAG...    the policy, then its warnings on standard error
 *   policy-tool check FLAG...              "ok" and warnings, or "error CODE: message"
 */
#include <stdio.h>
#include <string.h>

#include "sandlock/sandlock.h"

static int fail(const struct sandlock_error *err)
{
	printf("error %d: %s\n", err->code, err->msg);
	return 1;
}

static int show_text(const char *name)
{
	char *text = NULL;

	if (sandlock_text(name, &text) < 0)
		return 2;
	fputs(text, stdout);
	sandlock_free(text);
	return 0;
}

static int print_policy(struct sandlock_policy *policy, const char *format)
{
	struct sandlock_error err;
	char *text = NULL;

	if (sandlock_policy_print(policy, format, &text, &err) < 0)
		return fail(&err);
	fputs(text, stdout);
	sandlock_free(text);
	return 0;
}

static int check_policy(struct sandlock_policy *policy)
{
	struct sandlock_error err;

	if (sandlock_policy_check(policy, &err) < 0)
		return fail(&err);
	printf("ok\n");
	for (size_t i = 0; sandlock_policy_warning(policy, i); i++)
		printf("warning: %s\n", sandlock_policy_warning(policy, i));
	for (char *const *word = sandlock_policy_command(policy); word && *word; word++)
		printf("command: %s\n", *word);
	return 0;
}

int main(int argc, char **argv)
{
	struct sandlock_cli cli = {.struct_size = sizeof(cli)};
	struct sandlock_error err;
	int used = 0;

	if (argc == 3 && strcmp(argv[1], "text") == 0)
		return show_text(argv[2]);

	int skip = argc > 2 && strcmp(argv[1], "print") == 0 ? 3 : 2;

	if (argc < skip)
		return 2;

	struct sandlock_policy *policy = sandlock_policy_new();
	int r = 1;

	if (sandlock_policy_parse_args(policy, argc - skip, argv + skip, &cli, &used, &err) < 0)
		fail(&err);
	else
		r = skip == 3 ? print_policy(policy, argv[2]) : check_policy(policy);
	sandlock_policy_free(policy);
	return r;
}
