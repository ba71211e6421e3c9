/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a C program runs something that it does not trust: a policy, a spawn, a wait, and the output
 * through a pipe. Only the public header is used.
 *
 *     cc embed.c $(pkg-config --cflags --libs sandlock) -o embed && ./embed
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <sandlock/sandlock.h>

static int fail(const char *what, const struct sandlock_error *err)
{
	fprintf(stderr, "embed: %s: %s\n", what, err->msg);
	return EXIT_FAILURE;
}

/* The system's programs may be read and run; nothing else may be seen, written or reached. */
static struct sandlock_policy *make_policy(struct sandlock_error *err)
{
	struct sandlock_policy *policy = sandlock_policy_new();

	if (sandlock_policy_load_profile(policy, "builtin:system", err) < 0 ||
	    sandlock_policy_set(policy, "timeout", "10", err) < 0) {
		sandlock_policy_free(policy);
		return NULL;
	}
	return policy;
}

static void copy_output(int fd)
{
	char text[4096];
	ssize_t n;

	while ((n = read(fd, text, sizeof(text))) > 0)
		fwrite(text, 1, (size_t)n, stdout);
}

static int run(struct sandlock_policy *policy, char *const *argv)
{
	struct sandlock_error err = {.code = 0};
	struct sandlock_result result = {.struct_size = sizeof(result)};
	struct sandlock_process *process = NULL;
	int out[2];
	int r;

	if (pipe(out) != 0) {
		perror("pipe");
		return EXIT_FAILURE;
	}
	/* Descriptors that the sandbox gets: no input, a pipe, our own standard error. */
	struct sandlock_spawn spawn = {
		.struct_size = sizeof(spawn),
		.argv = argv,
		.fds = {-1, out[1], STDERR_FILENO},
	};
	r = sandlock_spawn(policy, &spawn, &process, &err);
	close(out[1]);
	if (r < 0) {
		close(out[0]);
		return fail("spawn", &err);
	}
	copy_output(out[0]);
	close(out[0]);
	r = sandlock_wait(process, -1, &result, &err);
	sandlock_process_free(process);
	if (r < 0)
		return fail("wait", &err);
	if (result.reason == SANDLOCK_EXITED)
		printf("exited with %d\n", result.exit_code);
	else
		printf("ended with signal %d\n", result.signal);
	return EXIT_SUCCESS;
}

int main(void)
{
	static char shell[] = "/bin/sh";
	static char dash_c[] = "-c";
	static char script[] = "echo hello from the sandbox; cat /etc/shadow; exit 3";
	char *const argv[] = {shell, dash_c, script, NULL};
	struct sandlock_error err = {.code = 0};
	struct sandlock_policy *policy = make_policy(&err);
	int status;

	if (!policy)
		return fail("policy", &err);
	status = run(policy, argv);
	sandlock_policy_free(policy);
	return status;
}
