/* SPDX-License-Identifier: Apache-2.0 */
/*
 * attack NAME [ARG...]: tries one attack of the escape corpus and prints one line,
 * `RESULT ok|fail|na errno=E detail`. Exit status: 0 the attack worked, 1 it was refused, 2 it
 * could not be tried here, 3 wrong usage. `attack --list` prints the names.
 *
 * Invariant: exactly one attack per process, so that nothing an attack leaves behind changes the
 * outcome of another.
 */
#include "attack.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static char detail_text[256];

static const struct attack *const families[] = {
	attacks_files,	 attacks_names,	   attacks_meta,      attacks_mounts,
	attacks_process, attacks_outlive,  attacks_terminal,  attacks_ipc,
	attacks_net,	 attacks_syscalls, attacks_privilege,
};

void detail(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(detail_text, sizeof(detail_text), fmt, ap);
	va_end(ap);
}

int outcome(long r)
{
	return r < 0 ? errno : ATTACK_WORKED;
}

int outcome_reached(long r, int reached)
{
	if (r < 0 && errno == reached) {
		detail("reached the kernel's own check");
		return ATTACK_WORKED;
	}
	return outcome(r);
}

long number(const char *text)
{
	char *end = NULL;
	long value;

	errno = 0;
	value = strtol(text, &end, 0);
	if (errno || end == text || *end) {
		fprintf(stderr, "attack: '%s' is not a number\n", text);
		_exit(3);
	}
	return value;
}

int read_some(int fd)
{
	char buf[64];
	ssize_t n = read(fd, buf, sizeof(buf));

	if (n < 0)
		return errno;
	detail("read %zd bytes", n);
	return ATTACK_WORKED;
}

char *join(const char *dir, const char *name)
{
	char *path = NULL;

	if (asprintf(&path, "%s/%s", dir, name) < 0)
		abort();
	return path;
}

int reap(pid_t pid)
{
	int status = 0;

	while (waitpid(pid, &status, 0) < 0) {
		if (errno != EINTR)
			return 255;
	}
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

static const struct attack *find(const char *name)
{
	for (size_t i = 0; i < sizeof(families) / sizeof(families[0]); i++) {
		for (const struct attack *a = families[i]; a->name; a++) {
			if (strcmp(a->name, name) == 0)
				return a;
		}
	}
	return NULL;
}

static void list(void)
{
	for (size_t i = 0; i < sizeof(families) / sizeof(families[0]); i++) {
		for (const struct attack *a = families[i]; a->name; a++)
			printf("%s %d\n", a->name, a->n_args);
	}
}

static const char *errno_name(int e)
{
	const char *name = strerrorname_np(e);

	return name ? name : "?";
}

int main(int argc, char **argv)
{
	const struct attack *a;
	int r;

	if (argc == 2 && strcmp(argv[1], "--list") == 0) {
		list();
		return 0;
	}
	a = argc > 1 ? find(argv[1]) : NULL;
	if (!a || argc - 2 != a->n_args) {
		fprintf(stderr, "attack: no attack '%s' with %d arguments\n",
			argc > 1 ? argv[1] : "", argc - 2);
		return 3;
	}
	r = a->run(argv + 2);
	if (r == ATTACK_WORKED)
		printf("RESULT ok errno=0 %s\n", detail_text);
	else if (r == ATTACK_NA)
		printf("RESULT na errno=0 %s\n", detail_text);
	else
		printf("RESULT fail errno=%s %s\n", errno_name(r), detail_text);
	fflush(stdout);
	return r == ATTACK_WORKED ? 0 : r == ATTACK_NA ? 2 : 1;
}
