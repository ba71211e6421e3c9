/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The grants, sorted by path. There are a few dozen at most, and the deepest one that covers a path
 * is the last one that does in that order.
 */
#include "supervise/grants.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/path.h"
#include "base/util.h"
#include "sys/at.h"

void grants_done(struct grants *g)
{
	for (size_t i = 0; i < g->n; i++) {
		free(g->v[i].path);
		util_close(g->v[i].fd);
	}
	free(g->v);
	*g = (struct grants){0};
}

void grants_add_take(struct grants *g, struct grant *grant)
{
	struct grant new = *grant;
	*grant = (struct grant){.fd = -1};
	if (!(new.rights &GRANT_WRITE))
		new.fd = util_close(new.fd);
	size_t i = g->n;
	g->v = xrealloc(g->v, g->n + 1, sizeof(*g->v));
	for (; i > 0 && strcmp(g->v[i - 1].path, new.path) > 0; i--)
		g->v[i] = g->v[i - 1];
	g->v[i] = new;
	g->n++;
}

void grants_add(struct grants *g, const char *path, unsigned int rights, int fd)
{
	/* What was made for the sandbox alone is not to be seen from here: directories. */
	struct grant new = {.path = xstrdup(path), .rights = rights, .fd = fd, .is_dir = fd < 0};
	struct at_info info;
	if (fd >= 0 && at_info(fd, &info) == 0) {
		new.is_dir = S_ISDIR(info.mode);
		new.dev = info.dev;
		new.ino = info.ino;
		new.mnt = info.mnt;
		new.quick = !at_is_slow(fd);
	}
	grants_add_take(g, &new);
}

const struct grant *grants_find_outer(const struct grants *g, const char *path, unsigned int rights,
				      const struct grant *inner)
{
	for (size_t i = inner ? (size_t)(inner - g->v) : g->n; i-- > 0;) {
		const struct grant *grant = &g->v[i];
		if ((grant->rights & rights) != rights)
			continue;
		if (grant->is_dir ? path_is_beneath(path, grant->path) : str_eq(path, grant->path))
			return grant;
	}
	return NULL;
}

const struct grant *grants_find(const struct grants *g, const char *path, unsigned int rights)
{
	return grants_find_outer(g, path, rights, NULL);
}

size_t grants_count_write_dirs(const struct grants *g)
{
	size_t n = 0;
	for (size_t i = 0; i < g->n; i++)
		n += g->v[i].is_dir && (g->v[i].rights & GRANT_WRITE);
	return n;
}
