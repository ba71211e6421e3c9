/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The command line: one function per subcommand, each getting the words after its name, and the few
 * helpers they share. Nothing here enforces anything; it all goes through sandlock.h.
 */
#pragma once

#include "sandlock/sandlock.h"

enum cli_exit {
	CLI_OK = 0,
	CLI_FAILED = 1,
	CLI_USAGE = 2,
	CLI_TIMEOUT = 124, /* these four: run and learn only (decisions 1) */
	CLI_ERROR = 125,
	CLI_NOT_EXECUTABLE = 126,
	CLI_NOT_FOUND = 127,
};

int cli_run(int argc, char **argv);
int cli_ps(int argc, char **argv);
int cli_inspect(int argc, char **argv);
int cli_kill(int argc, char **argv);
int cli_answer(int argc, char **argv);
int cli_changes(int argc, char **argv);
int cli_check(int argc, char **argv);
int cli_profile(int argc, char **argv);
int cli_complete_script(int argc, char **argv);

/* "sandlock: MESSAGE" on standard error, one line whatever it holds. Returns CODE. */
int cli_error(int code, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void cli_warning(const char *text);
