/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Allocation wrappers and the abort hook. The hook is the one process-wide setting of the library
 * (design: the library keeps no other global state).
 */
#include "base/util.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static util_abort_fn abort_hook;

void util_set_abort_hook(util_abort_fn fn)
{
	abort_hook = fn;
}

void util_abort(const char *reason)
{
	if (abort_hook)
		abort_hook(reason);
	else
		dprintf(STDERR_FILENO, "sandlock: %s\n", reason);
	abort();
}

void *xzalloc(size_t size)
{
	return xcalloc(1, size);
}

void *xcalloc(size_t count, size_t size)
{
	void *p = calloc(count ? count : 1, size ? size : 1);
	if (!p)
		util_abort("out of memory");
	return p;
}

void *xrealloc(void *p, size_t count, size_t size)
{
	void *n = reallocarray(p, count ? count : 1, size ? size : 1);
	if (!n)
		util_abort("out of memory");
	return n;
}

char *xstrdup(const char *s)
{
	return xstrndup(s, strlen(s));
}

char *xstrndup(const char *s, size_t n)
{
	size_t len = strnlen(s, n);
	char *p = xzalloc(len + 1);
	memcpy(p, s, len);
	return p;
}

char *xvasprintf(const char *fmt, va_list ap)
{
	char *p = NULL;
	if (vasprintf(&p, fmt, ap) < 0)
		util_abort("out of memory");
	return p;
}

char *xasprintf(const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	char *p = xvasprintf(fmt, ap);
	va_end(ap);
	return p;
}

void util_free_cleanup(void *p)
{
	void *v;
	memcpy(&v, p, sizeof(v));
	free(v);
}

int util_close(int fd)
{
	if (fd >= 0) {
		int saved = errno;
		close(fd);
		errno = saved;
	}
	return -1;
}

void util_close_cleanup(int *fd)
{
	util_close(*fd);
}

int take_fd(int *fd)
{
	int v = *fd;
	*fd = -1;
	return v;
}

bool str_eq(const char *a, const char *b)
{
	if (!a || !b)
		return a == b;
	return strcmp(a, b) == 0;
}

bool str_starts(const char *s, const char *prefix)
{
	return strncmp(s, prefix, strlen(prefix)) == 0;
}

bool str_ends(const char *s, const char *suffix)
{
	size_t n = strlen(s);
	size_t m = strlen(suffix);
	return n >= m && memcmp(s + n - m, suffix, m) == 0;
}
