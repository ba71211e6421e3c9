/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Times commands in turn: one round runs each command once, so that whatever else the machine does
 * meets all of them alike. What is timed is posix_spawn to the end of waitpid.
 *
 *     interleave [--user UID:GID] [--cwd DIR] [--rounds N] [--warmup N] [--before SHELL]
 *                CMD... ,, CMD... ,, ...
 *
 * SHELL is run before every timed run and not timed. Prints a JSON object: "ns" holds a list per
 * command, "status" the exit status of each command's last run. A command that fails in the warm-up
 * is not run again, and its list is empty.
 */
#include <fcntl.h>
#include <getopt.h>
#include <spawn.h>
#include <stdbool.h>
#include <sys/wait.h>

#include "bench.h"

extern char **environ;

enum { COMMANDS_MAX = 16 };

struct command {
	char **argv;
	uint64_t *ns;
	size_t n;
	int status;
};

struct bench {
	struct command commands[COMMANDS_MAX];
	size_t n;
	unsigned int rounds;
	unsigned int warmup;
	const char *before;
	posix_spawn_file_actions_t quiet;
};

static int run(struct bench *b, char **argv, uint64_t *ret_ns)
{
	uint64_t start = bench_now_ns();
	int status = -1;
	pid_t pid;
	int r = posix_spawn(&pid, argv[0], &b->quiet, NULL, argv, environ);

	if (r != 0)
		return 127;
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		continue;
	*ret_ns = bench_now_ns() - start;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static void round_of_all(struct bench *b, bool warm)
{
	static char shell[] = "/bin/sh";
	static char dash_c[] = "-c";
	uint64_t ns;

	for (size_t i = 0; i < b->n; i++) {
		struct command *c = &b->commands[i];

		if (c->status != 0)
			continue;
		if (b->before) {
			char *script = strdup(b->before);
			char *argv[] = {shell, dash_c, script, NULL};

			if (!script || run(b, argv, &ns) != 0)
				bench_fail("the --before command failed");
			free(script);
		}
		c->status = run(b, c->argv, &ns);
		if (!warm && c->status == 0)
			c->ns[c->n++] = ns;
	}
}

static void split_commands(struct bench *b, char **argv)
{
	b->commands[b->n++].argv = argv;
	for (; *argv; argv++) {
		if (strcmp(*argv, ",,") != 0)
			continue;
		*argv = NULL;
		errno = E2BIG;
		if (b->n == COMMANDS_MAX)
			bench_fail("too many commands");
		b->commands[b->n++].argv = argv + 1;
	}
}

static void parse(struct bench *b, int argc, char **argv)
{
	static const struct option options[] = {
		{"user", required_argument, NULL, 'u'},	  {"cwd", required_argument, NULL, 'd'},
		{"rounds", required_argument, NULL, 'n'}, {"warmup", required_argument, NULL, 'w'},
		{"before", required_argument, NULL, 'b'}, {NULL, 0, NULL, 0},
	};
	const char *user = NULL;
	int c;

	while ((c = getopt_long(argc, argv, "+", options, NULL)) != -1) {
		if (c == 'u')
			user = optarg;
		else if (c == 'd' && chdir(optarg) != 0)
			bench_fail(optarg);
		else if (c == 'n')
			b->rounds = (unsigned int)strtoul(optarg, NULL, 10);
		else if (c == 'w')
			b->warmup = (unsigned int)strtoul(optarg, NULL, 10);
		else if (c == 'b')
			b->before = optarg;
		else if (c == '?')
			exit(2);
	}
	if (user)
		bench_become(user);
	split_commands(b, argv + optind);
}

int main(int argc, char **argv)
{
	struct bench b = {.rounds = 30, .warmup = 3};

	parse(&b, argc, argv);
	posix_spawn_file_actions_init(&b.quiet);
	posix_spawn_file_actions_addopen(&b.quiet, 0, "/dev/null", O_RDONLY, 0);
	posix_spawn_file_actions_addopen(&b.quiet, 1, "/dev/null", O_WRONLY, 0);
	if (!getenv("BENCH_VERBOSE"))
		posix_spawn_file_actions_addopen(&b.quiet, 2, "/dev/null", O_WRONLY, 0);
	for (size_t i = 0; i < b.n; i++) {
		b.commands[i].ns = calloc(b.rounds, sizeof(uint64_t));
		if (!b.commands[i].ns)
			bench_fail("calloc");
	}
	for (unsigned int i = 0; i < b.warmup; i++)
		round_of_all(&b, true);
	for (unsigned int i = 0; i < b.rounds; i++)
		round_of_all(&b, false);
	printf("{\"commands\": [");
	for (size_t i = 0; i < b.n; i++) {
		printf("%s{\"status\": %d, ", i ? ", " : "", b.commands[i].status);
		bench_print_ns("ns", b.commands[i].ns, b.commands[i].n);
		printf("}");
		free(b.commands[i].ns);
	}
	printf("]}\n");
	return 0;
}
