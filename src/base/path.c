/* SPDX-License-Identifier: Apache-2.0 */
/* Lexical paths; see the header. Every result that is promised in normal form is in normal form. */
#include "base/path.h"

#include <assert.h>
#include <stddef.h>
#include <string.h>

#include "base/util.h"

bool path_is_absolute(const char *path)
{
	return path[0] == '/';
}

static bool is_dot(const char *component, size_t len)
{
	return len == 1 && component[0] == '.';
}

static bool is_dot_dot(const char *component, size_t len)
{
	return len == 2 && component[0] == '.' && component[1] == '.';
}

bool path_is_normal(const char *path)
{
	if (path[0] != '/')
		return false;
	if (path[1] == '\0')
		return true;
	for (const char *p = path; *p == '/';) {
		size_t n = strcspn(++p, "/");
		if (n == 0 || is_dot(p, n) || is_dot_dot(p, n))
			return false;
		p += n;
	}
	return true;
}

char *path_normalize(const char *path)
{
	assert(path_is_absolute(path));
	char *out = xzalloc(strlen(path) + 2);
	size_t len = 0;

	for (const char *p = path; *p;) {
		p += strspn(p, "/");
		size_t n = strcspn(p, "/");
		if (is_dot_dot(p, n)) {
			while (len > 0 && out[--len] != '/')
				;
		} else if (n > 0 && !is_dot(p, n)) {
			out[len++] = '/';
			memcpy(out + len, p, n);
			len += n;
		}
		p += n;
	}
	if (len == 0)
		out[len++] = '/';
	out[len] = '\0';
	return out;
}

char *path_absolute(const char *base, const char *path)
{
	if (path_is_absolute(path))
		return path_normalize(path);
	assert(path_is_absolute(base));
	auto_free char *joined = path_join(base, path);
	return path_normalize(joined);
}

char *path_join(const char *dir, const char *name)
{
	size_t n = strlen(dir);
	while (n > 0 && dir[n - 1] == '/')
		n--;
	while (*name == '/')
		name++;
	return xasprintf("%.*s/%s", (int)n, dir, name);
}

const char *path_relative_to(const char *path, const char *dir)
{
	size_t n = strlen(dir);
	if (n == 1 && dir[0] == '/')
		return path[0] == '/' ? path + 1 : NULL;
	if (strncmp(path, dir, n) != 0)
		return NULL;
	if (path[n] == '\0')
		return path + n;
	return path[n] == '/' ? path + n + 1 : NULL;
}

bool path_is_beneath(const char *path, const char *dir)
{
	return path_relative_to(path, dir) != NULL;
}

const char *path_basename(const char *path)
{
	const char *slash = strrchr(path, '/');
	return slash ? slash + 1 : path;
}

char *path_dirname(const char *path)
{
	const char *slash = strrchr(path, '/');
	if (!slash)
		return xstrdup(".");
	size_t n = (size_t)(slash - path);
	while (n > 0 && path[n - 1] == '/')
		n--;
	return n == 0 ? xstrdup("/") : xstrndup(path, n);
}
