/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The policy functions of the public header, as a host of the library uses them: options by their
 * three names, JSON, words of a command line, codes and messages of failures.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "sandlock/sandlock.h"

static void assert_printed(struct sandlock_policy *p, const char *expected)
{
	char *text = NULL;

	assert_int_equal(sandlock_policy_print(p, "toml", &text, NULL), 0);
	assert_string_equal(text, expected);
	sandlock_free(text);
}

static void test_set(void **state)
{
	struct sandlock_policy *p = sandlock_policy_new();
	struct sandlock_error err = {0};

	(void)state;
	assert_int_equal(sandlock_policy_set(p, "fs-read", "/usr", &err), 0);
	assert_int_equal(sandlock_policy_set(p, "filesystem.read", "/etc", &err), 0);
	assert_int_equal(sandlock_policy_set(p, "fs_readable", "/opt", NULL), 0);
	assert_int_equal(sandlock_policy_set(p, "clean-env", NULL, &err), 0);
	assert_int_equal(sandlock_policy_set(p, "no-coredump", "true", &err), 0);
	assert_int_equal(sandlock_policy_set(p, "no-coredump", "false", &err), 0);
	assert_int_equal(sandlock_policy_set(p, "timeout", "2", &err), 0);
	assert_printed(p, "[program]\nclean_env = true\nno_coredump = false\n\n"
			  "[filesystem]\nread = [\"/usr\", \"/etc\", \"/opt\"]\n\n"
			  "[limits]\ntimeout = 2\n");
	assert_int_equal(sandlock_policy_check(p, &err), 0);
	assert_int_equal(err.code, 0);
	sandlock_policy_free(p);
}

static const struct {
	const char *option;
	const char *value;
	enum sandlock_code code;
	const char *message;
} failures[] = {
	/* clang-format off */
	{ "nonsense", "x", SANDLOCK_E_NOT_FOUND, "there is no option nonsense" },
	{ "status-fd", "3", SANDLOCK_E_INVALID, "status-fd belongs to the command line or to profile files, not to a policy" },
	{ "include", "x", SANDLOCK_E_INVALID, "include belongs to the command line or to profile files, not to a policy" },
	{ "fs-read", NULL, SANDLOCK_E_INVALID, "fs-read needs a value" },
	{ "fs-read", "", SANDLOCK_E_INVALID, "fs-read: the path is empty; write . for the working directory" },
	{ "cpu-cores", "1,x", SANDLOCK_E_INVALID, "cpu-cores: \"x\" is not a whole number; give one from 0 to 1023" },
	{ "clean-env", "yes", SANDLOCK_E_INVALID, "clean-env: \"yes\" is neither true nor false" },
	{ "limits.open_files", "0", SANDLOCK_E_INVALID, "max-open-files: \"0\" is out of range; give a number from 1 to 4294967295" },
	/* clang-format on */
};

/* A change that fails is not forgotten by the check. */
static void test_failures(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(failures) / sizeof(failures[0]); i++) {
		struct sandlock_policy *p = sandlock_policy_new();
		struct sandlock_error err = {0}, again = {0};
		int code = -(int)failures[i].code;

		assert_int_equal(
			sandlock_policy_set(p, failures[i].option, failures[i].value, &err), code);
		assert_int_equal(err.code, failures[i].code);
		assert_string_equal(err.msg, failures[i].message);
		assert_int_equal(sandlock_policy_set(p, "timeout", "5", NULL), 0);
		assert_int_equal(sandlock_policy_check(p, &again), code);
		assert_string_equal(again.msg, failures[i].message);
		sandlock_policy_free(p);
	}
}

static void test_not_available(void **state)
{
	struct sandlock_policy *p = sandlock_policy_new();
	struct sandlock_error err = {0};

	(void)state;
	assert_int_equal(sandlock_policy_set(p, "max-memory", "1G", &err), 0);
	assert_int_equal(sandlock_policy_check(p, &err), -SANDLOCK_E_UNSUPPORTED);
	assert_string_equal(err.msg, "max-memory is not available in this version: it arrives with "
				     "the limits work; remove it");
	sandlock_policy_free(p);
}

static void test_json(void **state)
{
	static const char good[] = "{\"limits\": {\"timeout\": 3}, \"program\": {\"exec\": "
				   "\"true\", \"args\": [\"a\", \"b\"]}}";
	static const char with_nul[] = "{\"limits\": {}}\0 ";
	struct sandlock_policy *p = sandlock_policy_new();
	struct sandlock_error err = {0};

	(void)state;
	assert_null(sandlock_policy_command(p));
	assert_int_equal(sandlock_policy_load_json(p, good, strlen(good), &err), 0);
	assert_string_equal(sandlock_policy_command(p)[0], "true");
	assert_string_equal(sandlock_policy_command(p)[2], "b");
	assert_null(sandlock_policy_command(p)[3]);
	assert_int_equal(sandlock_policy_set(p, "program.exec", "false", &err), 0);
	assert_string_equal(sandlock_policy_command(p)[0], "false");
	assert_int_equal(sandlock_policy_load_json(p, good, 5, &err), -SANDLOCK_E_INVALID);
	assert_int_equal(sandlock_policy_check(p, &err), -SANDLOCK_E_INVALID);
	sandlock_policy_free(p);

	p = sandlock_policy_new();
	assert_int_equal(sandlock_policy_load_json(p, with_nul, sizeof(with_nul) - 1, &err),
			 -SANDLOCK_E_INVALID);
	sandlock_policy_free(p);
}

/* A profile that is not there leaves the policy usable: the caller may have another one. */
static void test_missing_profile(void **state)
{
	struct sandlock_policy *p = sandlock_policy_new();
	struct sandlock_error err = {0};

	(void)state;
	assert_int_equal(sandlock_policy_load_profile(p, "builtin:none", &err),
			 -SANDLOCK_E_NOT_FOUND);
	assert_int_equal(sandlock_policy_load_file(p, "/nonexistent/x.toml", &err),
			 -SANDLOCK_E_NOT_FOUND);
	assert_int_equal(sandlock_policy_load_profile(p, "builtin:system", &err), 0);
	assert_int_equal(sandlock_policy_check(p, &err), 0);
	sandlock_policy_free(p);
}

static int parse(struct sandlock_policy *p, const char *const *words, struct sandlock_cli *cli,
		 struct sandlock_error *err)
{
	char *argv[16] = {NULL};
	int argc = 0, used = -1;

	while (words[argc]) {
		argv[argc] = strdup(words[argc]);
		argc++;
	}
	int r = sandlock_policy_parse_args(p, argc, argv, cli, &used, err);

	/* The events of the test outlive argv: only used and the numbers are looked at. */
	for (int i = 0; i < argc; i++)
		free(argv[i]);
	return r < 0 ? r : used;
}

static void test_args(void **state)
{
	static const char *const words[] = {
		"-t",	"1",  "--status-fd", "7", "--pty", "--quiet", "--print-policy",
		"json", "--", "cmd",	     NULL};
	struct sandlock_cli cli = {.struct_size = sizeof(cli)};
	struct sandlock_policy *p = sandlock_policy_new();
	struct sandlock_error err = {0};

	(void)state;
	assert_int_equal(parse(p, words, &cli, &err), 9);
	assert_int_equal(cli.status_fd, 7);
	assert_int_equal(cli.print_policy, 2);
	assert_int_equal(cli.pty, 1);
	assert_int_equal(cli.quiet, 1);
	assert_int_equal(cli.help + cli.version, 0);
	assert_null(cli.exec_shell);
	assert_null(cli.profile);
	assert_null(cli.events);
	assert_int_equal(cli.struct_size, sizeof(cli));
	assert_printed(p, "[limits]\ntimeout = 1\n");
	sandlock_policy_free(p);
}

static void test_args_smaller_struct(void **state)
{
	static const char *const words[] = {"--status-fd", "7", "--pty", NULL};
	struct sandlock_cli cli = {.struct_size = offsetof(struct sandlock_cli, pty), .pty = 55};
	struct sandlock_policy *p = sandlock_policy_new();
	struct sandlock_error err = {0};

	(void)state;
	assert_int_equal(parse(p, words, &cli, &err), 3);
	assert_int_equal(cli.status_fd, 7);
	assert_int_equal(cli.pty, 55);
	sandlock_policy_free(p);
}

static void test_args_without_cli(void **state)
{
	static const char *const words[] = {"--pty", NULL};
	static const char *const help[] = {"--help", NULL};
	struct sandlock_policy *p = sandlock_policy_new();
	struct sandlock_error err = {0};

	(void)state;
	assert_int_equal(parse(p, words, NULL, &err), -SANDLOCK_E_INVALID);
	assert_string_equal(err.msg, "--pty belongs to the command line, not to a policy");
	sandlock_policy_free(p);
	p = sandlock_policy_new();
	assert_int_equal(parse(p, help, NULL, &err), -SANDLOCK_E_INVALID);
	sandlock_policy_free(p);
}

/* A refused command line still says where its end is to be reported. */
static void test_status_fd_on_failure(void **state)
{
	static const char *const before[] = {"--status-fd", "5", "--max-open-files", "x", NULL};
	static const char *const behind[] = {"--nonsense", "-r", "/", "--status-fd=6", NULL};
	static const char *const profile[] = {"-p", "nothing", "--status-fd", "7", NULL};
	static const char *const command[] = {"--nonsense", "--", "--status-fd", "8", NULL};
	static const char *const broken[] = {"--status-fd", "x", NULL};
	static const char *const *const lines[] = {before, behind, profile, command, broken};
	static const int expected[] = {5, 6, 7, -1, -1};

	(void)state;
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		struct sandlock_policy *p = sandlock_policy_new();
		struct sandlock_cli cli = {.struct_size = sizeof(cli), .status_fd = 99};

		assert_true(parse(p, lines[i], &cli, NULL) < 0);
		assert_int_equal(cli.status_fd, expected[i]);
		sandlock_policy_free(p);
	}
}

static void test_print_faults(void **state)
{
	struct sandlock_policy *p = sandlock_policy_new();
	struct sandlock_error err = {0};
	char *text = NULL;

	(void)state;
	assert_int_equal(sandlock_policy_print(p, "yaml", &text, &err), -SANDLOCK_E_INVALID);
	assert_string_equal(err.msg, "the format of a policy is toml or json");
	assert_null(text);
	assert_printed(p, "");
	sandlock_policy_free(p);
	sandlock_policy_free(NULL);
}

static void test_texts(void **state)
{
	static const char *const names[] = {"help", "man-run", "man-policy", "bash",
					    "zsh",  "fish",    "schema",     "reference"};
	char *text = NULL;

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		assert_int_equal(sandlock_text(names[i], &text), 0);
		assert_true(strlen(text) > 100);
		sandlock_free(text);
	}
	text = NULL;
	assert_int_equal(sandlock_text("poem", &text), -SANDLOCK_E_NOT_FOUND);
	assert_null(text);
	assert_true(strlen(sandlock_version()) > 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_set),
		cmocka_unit_test(test_failures),
		cmocka_unit_test(test_not_available),
		cmocka_unit_test(test_json),
		cmocka_unit_test(test_missing_profile),
		cmocka_unit_test(test_args),
		cmocka_unit_test(test_args_smaller_struct),
		cmocka_unit_test(test_args_without_cli),
		cmocka_unit_test(test_status_fd_on_failure),
		cmocka_unit_test(test_print_faults),
		cmocka_unit_test(test_texts),
	};

	return cmocka_run_group_tests_name("policy-api", tests, NULL, NULL);
}
