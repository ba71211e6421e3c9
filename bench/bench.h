/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the benchmark programs share: a clock, giving up privileges, and ending with a message. They
 * are run by bench/run.py and print JSON for it.
 */
#pragma once

#include <errno.h>
#include <grp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

_Noreturn static inline void bench_fail(const char *what)
{
	fprintf(stderr, "%s: %s\n", what, strerror(errno));
	exit(1);
}

static inline uint64_t bench_now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* Becomes "UID:GID", for good. Peers and sandlock are measured as an ordinary user. */
static inline void bench_become(const char *spec)
{
	char *end;
	unsigned long uid = strtoul(spec, &end, 10);
	unsigned long gid = *end == ':' ? strtoul(end + 1, &end, 10) : uid;

	errno = EINVAL;
	if (*end)
		bench_fail(spec);
	if (setgroups(0, NULL) || setgid((gid_t)gid) || setuid((uid_t)uid))
		bench_fail("dropping privileges");
}

static inline void bench_print_ns(const char *name, const uint64_t *ns, size_t n)
{
	printf("\"%s\": [", name);
	for (size_t i = 0; i < n; i++)
		printf("%s%llu", i ? ", " : "", (unsigned long long)ns[i]);
	printf("]");
}
