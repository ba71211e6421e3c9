/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Times sandlock_spawn + sandlock_wait of /bin/true against posix_spawn + waitpid in the same
 * program, in turn, or counts how many sandboxes a second several workers start.
 *
 *     spawn [--user UID:GID] [--cwd DIR] [--rounds N] [--resident MIB] [--view auto|notify]
 *           [--workers N --seconds S] OPTION=VALUE...
 *
 * OPTION=VALUE are options of the policy by name; OPTION alone is a switch. Prints a JSON object.
 */
#include <fcntl.h>
#include <getopt.h>
#include <spawn.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include <sandlock/sandlock.h>

#include "bench.h"

extern char **environ;

struct bench {
	unsigned int rounds;
	unsigned int workers;
	unsigned int seconds;
	size_t resident_mib;
	struct sandlock_policy *policy;
};

static char true_path[] = "/bin/true";
static char *const true_argv[] = {true_path, NULL};

static void check(int r, const struct sandlock_error *err, const char *what)
{
	if (r >= 0)
		return;
	fprintf(stderr, "%s: %s\n", what, err->msg);
	exit(1);
}

static uint64_t time_bare(void)
{
	uint64_t start = bench_now_ns();
	int status = 0;
	pid_t pid;

	if (posix_spawn(&pid, true_path, NULL, NULL, true_argv, environ) != 0 ||
	    waitpid(pid, &status, 0) != pid || status != 0)
		bench_fail("posix_spawn of /bin/true");
	return bench_now_ns() - start;
}

static uint64_t time_sandbox(const struct bench *b)
{
	struct sandlock_spawn spawn = {
		.struct_size = sizeof(spawn), .argv = true_argv, .fds = {0, 1, 2}};
	struct sandlock_result result = {.struct_size = sizeof(result)};
	struct sandlock_error err = {.code = 0};
	struct sandlock_process *process;
	uint64_t start = bench_now_ns();
	uint64_t end;

	check(sandlock_spawn(b->policy, &spawn, &process, &err), &err, "sandlock_spawn");
	check(sandlock_wait(process, -1, &result, &err), &err, "sandlock_wait");
	end = bench_now_ns();
	sandlock_process_free(process);
	if (result.reason != SANDLOCK_EXITED || result.exit_code != 0) {
		fprintf(stderr, "/bin/true ended with reason %u, status %d\n", result.reason,
			result.exit_code);
		exit(1);
	}
	return end - start;
}

static void latency(const struct bench *b)
{
	uint64_t *bare = calloc(b->rounds, sizeof(*bare));
	uint64_t *sandbox = calloc(b->rounds, sizeof(*sandbox));

	if (!bare || !sandbox)
		bench_fail("calloc");
	for (int i = 0; i < 5; i++) {
		time_bare();
		time_sandbox(b);
	}
	for (unsigned int i = 0; i < b->rounds; i++) {
		bare[i] = time_bare();
		sandbox[i] = time_sandbox(b);
	}
	printf("{");
	bench_print_ns("bare", bare, b->rounds);
	printf(", ");
	bench_print_ns("sandbox", sandbox, b->rounds);
	printf("}\n");
	free(bare);
	free(sandbox);
}

/* Each worker is a process of its own, as a service with several workers would have it. */
static void throughput(const struct bench *b)
{
	uint64_t *counts = mmap(NULL, b->workers * sizeof(*counts), PROT_READ | PROT_WRITE,
				MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	uint64_t start = bench_now_ns();
	uint64_t total = 0;

	if (counts == MAP_FAILED)
		bench_fail("mmap");
	for (unsigned int i = 0; i < b->workers; i++) {
		pid_t pid = fork();

		if (pid < 0)
			bench_fail("fork");
		if (pid > 0)
			continue;
		while (bench_now_ns() - start < b->seconds * 1000000000ull) {
			time_sandbox(b);
			counts[i]++;
		}
		_exit(0);
	}
	for (int status; wait(&status) > 0 || errno == EINTR;)
		if (status != 0)
			exit(1);
	for (unsigned int i = 0; i < b->workers; i++)
		total += counts[i];
	printf("{\"per_second\": %.1f}\n", (double)total * 1e9 / (double)(bench_now_ns() - start));
}

static void set_option(struct bench *b, char *word)
{
	struct sandlock_error err = {.code = 0};
	char *value = strchr(word, '=');

	if (value)
		*value++ = '\0';
	check(sandlock_policy_set(b->policy, word, value, &err), &err, word);
}

static void parse(struct bench *b, int argc, char **argv)
{
	static const struct option options[] = {
		{"user", required_argument, NULL, 'u'},
		{"cwd", required_argument, NULL, 'd'},
		{"rounds", required_argument, NULL, 'n'},
		{"resident", required_argument, NULL, 'm'},
		{"workers", required_argument, NULL, 'w'},
		{"seconds", required_argument, NULL, 's'},
		{NULL, 0, NULL, 0},
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
		else if (c == 'm')
			b->resident_mib = strtoul(optarg, NULL, 10);
		else if (c == 'w')
			b->workers = (unsigned int)strtoul(optarg, NULL, 10);
		else if (c == 's')
			b->seconds = (unsigned int)strtoul(optarg, NULL, 10);
		else if (c == '?')
			exit(2);
	}
	if (user)
		bench_become(user);
	for (char **word = argv + optind; *word; word++)
		set_option(b, *word);
}

int main(int argc, char **argv)
{
	struct bench b = {.rounds = 200, .seconds = 5, .policy = sandlock_policy_new()};

	parse(&b, argc, argv);
	if (b.resident_mib) {
		char *block = malloc(b.resident_mib << 20);

		if (!block)
			bench_fail("malloc");
		memset(block, 1, b.resident_mib << 20);
		/* The compiler must not drop a block that nobody reads. */
		__asm__ volatile("" : : "r"(block) : "memory");
	}
	if (b.workers)
		throughput(&b);
	else
		latency(&b);
	sandlock_policy_free(b.policy);
	return 0;
}
