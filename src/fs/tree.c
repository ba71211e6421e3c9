/* SPDX-License-Identifier: Apache-2.0 */
/* Trees: the walk, removal, and the question what was changed. */
#include "fs/tree.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/util.h"
#include "fs/tree_walk.h"

enum { PATH_LIMIT = 2 * 1024 * 1024, NAMES_MAX = 4 * 1024 * 1024 };

void tree_walk_init(struct tree_walk *w, int root, const char *name)
{
	*w = (struct tree_walk){.root = root, .path = {.max = PATH_LIMIT}};
	(void)tree_walk_add(w, SIZE_MAX, name);
}

void tree_walk_done_cleanup(struct tree_walk *w)
{
	for (size_t i = 0; i < w->n; i++)
		free(w->dirs[i].name);
	free(w->dirs);
	buf_done(&w->path);
}

int tree_walk_add(struct tree_walk *w, size_t parent, const char *name)
{
	if (w->n == NAMES_MAX)
		return -E2BIG;
	if (w->n == w->room) {
		w->room = w->room ? w->room * 2 : 16;
		w->dirs = xrealloc(w->dirs, w->room, sizeof(*w->dirs));
	}
	w->dirs[w->n++] = (struct tree_dir){.parent = parent, .name = xstrdup(name)};
	return 0;
}

const char *tree_walk_path(struct tree_walk *w, size_t i, const char *top)
{
	size_t len = 0;
	buf_clear(&w->path);
	for (size_t at = i; at != SIZE_MAX; at = w->dirs[at].parent)
		len += strlen(w->dirs[at].parent == SIZE_MAX ? top : w->dirs[at].name) + 1;
	if (len > PATH_LIMIT)
		return NULL;
	auto_free char *text = xzalloc(len);
	size_t end = len - 1;
	for (size_t at = i; at != SIZE_MAX; at = w->dirs[at].parent) {
		const char *name = w->dirs[at].parent == SIZE_MAX ? top : w->dirs[at].name;
		size_t n = strlen(name);
		memcpy(text + end - n, name, n);
		end -= n;
		if (end)
			text[--end] = '/';
	}
	return buf_add(&w->path, text, len - 1) < 0 ? NULL : buf_text(&w->path);
}

/* For removal: our own directories are made accessible. */
static int open_to_empty(const struct fs_io *io, int root, const char *path)
{
	int fd = fs_open_dir(root, path, O_RDONLY);
	auto_close int held = fs_open_dir(root, path, O_PATH);
	struct stat st = {0};
	if (held < 0 || fs_stat(held, "", &st) < 0 || (st.st_mode & 0700) == 0700)
		return fd;
	util_close(fd);
	int r = fs_set_mode(io, held, 0700);
	return r < 0 ? r : fs_open_dir(root, path, O_RDONLY);
}

static int empty_dir(const struct fs_io *io, struct tree_walk *w, size_t i)
{
	AUTO(fs_names_done) struct fs_names names = {0};
	const char *path = tree_walk_path(w, i, w->dirs[0].name);
	if (!path)
		return -E2BIG;
	auto_close int fd = open_to_empty(io, w->root, path);
	int r = fd < 0 ? fd : fs_list(fd, NAMES_MAX, &names);
	for (size_t k = 0; r >= 0 && k < names.n; k++) {
		r = fs_unlink(io, fd, names.v[k], 0);
		if (r == -EISDIR || r == -EPERM) {
			struct stat st;
			int s = fs_stat(fd, names.v[k], &st);
			r = s < 0 ? s : S_ISDIR(st.st_mode) ? tree_walk_add(w, i, names.v[k]) : r;
		}
	}
	return r;
}

int tree_remove(const struct fs_io *io, int dir, const char *name)
{
	struct stat st = {0};
	int r = fs_stat(dir, name, &st);
	if (r < 0)
		return r == -ENOENT ? 0 : r;
	if (!S_ISDIR(st.st_mode))
		return fs_unlink(io, dir, name, 0);
	AUTO(tree_walk_done) struct tree_walk w;
	tree_walk_init(&w, dir, name);
	for (size_t i = 0; r >= 0 && i < w.n; i++)
		r = empty_dir(io, &w, i);
	for (size_t i = w.n; r >= 0 && i > 1; i--) {
		const char *path = tree_walk_path(&w, w.dirs[i - 1].parent, name);
		auto_close int parent = path ? fs_open_dir(dir, path, O_PATH) : -E2BIG;
		r = parent < 0 ? parent : fs_unlink(io, parent, w.dirs[i - 1].name, AT_REMOVEDIR);
	}
	return r < 0 ? r : fs_unlink(io, dir, name, AT_REMOVEDIR);
}

static bool is_later(const struct timespec *a, const struct timespec *b)
{
	return a->tv_sec != b->tv_sec ? a->tv_sec > b->tv_sec : a->tv_nsec > b->tv_nsec;
}

static int dir_is_changed(struct tree_walk *w, size_t i, const struct timespec *since)
{
	AUTO(fs_names_done) struct fs_names names = {0};
	const char *path = tree_walk_path(w, i, w->dirs[0].name);
	auto_close int fd = path ? fs_open_dir(w->root, path, O_RDONLY) : -E2BIG;
	if (fd == -EACCES)
		return 0; /* nobody's business that nobody can see */
	int r = fd < 0 ? fd : fs_list(fd, NAMES_MAX, &names);
	for (size_t k = 0; r == 0 && k < names.n; k++) {
		struct stat st = {0};
		r = fs_stat(fd, names.v[k], &st);
		if (r == 0 && is_later(&st.st_ctim, since))
			return 1;
		if (r == 0 && S_ISDIR(st.st_mode))
			r = tree_walk_add(w, i, names.v[k]);
	}
	return r;
}

int tree_is_changed(int dir, const char *name, const struct timespec *since)
{
	struct stat st = {0};
	int r = fs_stat(dir, name, &st);
	if (r < 0)
		return r;
	if (is_later(&st.st_ctim, since))
		return 1;
	if (!S_ISDIR(st.st_mode))
		return 0;
	AUTO(tree_walk_done) struct tree_walk w;
	tree_walk_init(&w, dir, name);
	for (size_t i = 0; r == 0 && i < w.n; i++)
		r = dir_is_changed(&w, i, since);
	return r;
}

static void mix(uint64_t *print, uint64_t number)
{
	for (int i = 0; i < 64; i += 8)
		*print = (*print ^ (number >> i & 0xff)) * 1099511628211u;
}

static void mix_stat(uint64_t *print, const char *name, const struct stat *st)
{
	for (; *name; name++)
		mix(print, (unsigned char)*name);
	mix(print, st->st_ino);
	mix(print, st->st_mode);
	mix(print, (uint64_t)st->st_size);
	mix(print, (uint64_t)st->st_mtim.tv_sec);
	mix(print, (uint64_t)st->st_mtim.tv_nsec);
	mix(print, (uint64_t)st->st_ctim.tv_sec);
	mix(print, (uint64_t)st->st_ctim.tv_nsec);
}

static int print_dir(struct tree_walk *w, size_t i, uint64_t *print)
{
	AUTO(fs_names_done) struct fs_names names = {0};
	const char *path = tree_walk_path(w, i, w->dirs[0].name);
	auto_close int fd = path ? fs_open_dir(w->root, path, O_RDONLY) : -E2BIG;
	if (fd == -EACCES)
		return 0;
	int r = fd < 0 ? fd : fs_list(fd, NAMES_MAX, &names);
	for (size_t k = 0; r >= 0 && k < names.n; k++) {
		struct stat st = {0};
		r = fs_stat(fd, names.v[k], &st);
		if (r < 0)
			return r;
		mix_stat(print, names.v[k], &st);
		if (S_ISDIR(st.st_mode))
			r = tree_walk_add(w, i, names.v[k]);
	}
	return r;
}

int tree_print(int dir, const char *name, uint64_t *ret_print)
{
	uint64_t print = 14695981039346656037u;
	struct stat st = {0};
	int r = fs_stat(dir, name, &st);
	if (r < 0)
		return r;
	mix_stat(&print, "", &st);
	if (S_ISDIR(st.st_mode)) {
		AUTO(tree_walk_done) struct tree_walk w;
		tree_walk_init(&w, dir, name);
		for (size_t i = 0; r >= 0 && i < w.n; i++)
			r = print_dir(&w, i, &print);
	}
	if (r >= 0)
		*ret_print = print;
	return r < 0 ? r : 0;
}
