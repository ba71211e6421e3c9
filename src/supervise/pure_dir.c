/* SPDX-License-Identifier: Apache-2.0 */
/* A directory of the upper layer in place of one of the lower. */
#include "supervise/pure_dir.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/util.h"
#include "fs/tree.h"
#include "sys/at.h"
#include "sys/fs_call.h"

enum {
	DIRS_MAX = 1000000,
	NAMES_MAX = 4000000,
	PATH_LIMIT = 2 * 1024 * 1024,
	ROUNDS = 3,	    /* of what others can be in the way of for a moment */
	EMPTY_ROUNDS = 100, /* over a directory in which names appear meanwhile */
	ASK_EVERY = 64,
};

/* One directory of the tree, by its path below the top ("" for the top itself). */
struct entry {
	char *path;
	mode_t mode;
	struct timespec times[2];
	bool seen; /* mode and times are known */
};

struct move {
	struct pure_dir *how;
	struct fs_io io;
	int from; /* the tops, O_PATH */
	int to;
	struct entry *v;
	size_t n;
	size_t room;
	unsigned int steps;
	bool taking_back;
};

static void move_done(struct move *m)
{
	for (size_t i = 0; i < m->n; i++)
		free(m->v[i].path);
	free(m->v);
	util_close(m->from);
	util_close(m->to);
}

static int add(struct move *m, char *path)
{
	if (m->n == DIRS_MAX || strlen(path) > PATH_LIMIT) {
		free(path);
		return -E2BIG;
	}
	if (m->n == m->room) {
		m->room = m->room ? 2 * m->room : 64;
		m->v = xrealloc(m->v, m->room, sizeof(*m->v));
	}
	m->v[m->n++] = (struct entry){.path = path};
	return 0;
}

static int step(struct move *m)
{
	if (++m->steps % ASK_EVERY || m->how->go_on(m->how->data, m->taking_back))
		return 0;
	m->how->torn = m->taking_back;
	return -EINTR;
}

/* What the directory FD (O_PATH) is like, once; then its owner may work in it. */
static int open_up(struct move *m, int fd, struct entry *e)
{
	struct stat st;
	int r = fs_stat(fd, "", &st);
	if (r < 0)
		return r;
	if (!e->seen) {
		e->mode = st.st_mode & 07777;
		e->times[0] = st.st_atim;
		e->times[1] = st.st_mtim;
		e->seen = true;
	}
	return (st.st_mode & 0700) == 0700 ? 0 : fs_set_mode(&m->io, fd, e->mode | 0700);
}

static int make_dir(struct move *m, int from, int to, const char *name)
{
	/* First, since it fails where something is mounted. */
	auto_close int source = fs_open_dir(from, name, O_PATH);
	int r = source < 0 ? source : at_make_dir(to, name, 0700);
	if (r < 0)
		return r == -EEXIST && m->taking_back ? 0 : r;
	auto_close int made = fs_open_dir(to, name, O_PATH);
	struct stat st;
	r = made < 0 ? made : fs_stat(source, "", &st);
	return r < 0 ? r : tree_copy_metadata(&m->io, source, made, st.st_mode | 0700, true);
}

static int move_name(struct move *m, size_t i, int from, int to, const char *name)
{
	struct stat st;
	int r = step(m);
	if (r == 0)
		r = fs_stat(from, name, &st);
	if (r == -ENOENT)
		return 0;
	if (r < 0)
		return r;
	if (!S_ISDIR(st.st_mode))
		return at_rename(from, name, to, name, RENAME_NOREPLACE);
	r = make_dir(m, from, to, name);
	if (r < 0)
		return r;
	const char *path = m->v[i].path;
	return add(m, *path ? xasprintf("%s/%s", path, name) : xstrdup(name));
}

/* All names of directory I. Directories in it get in line behind. */
static int move_names(struct move *m, size_t i)
{
	AUTO(fs_names_done) struct fs_names names = {0};
	auto_close int held = fs_open_dir(m->from, m->v[i].path, O_PATH);
	int r = held < 0 ? held : open_up(m, held, &m->v[i]);
	auto_close int from = r < 0 ? r : fs_open_dir(m->from, m->v[i].path, O_RDONLY);
	auto_close int to = r < 0 ? r : fs_open_dir(m->to, m->v[i].path, O_PATH);
	r = from < 0 ? from : to < 0 ? to : fs_list(from, NAMES_MAX, &names);
	for (size_t k = 0; r >= 0 && k < names.n; k++)
		r = move_name(m, i, from, to, names.v[k]);
	return r;
}

/* The new directory I has all of the old one, whose contents are gone. */
static int finish_dir(struct move *m, size_t i)
{
	auto_close int to = fs_open_dir(m->to, m->v[i].path, O_PATH);
	int r = to < 0 ? to : fs_set_mode(&m->io, to, m->v[i].mode);
	return r < 0 ? r : at_set_times(to, true, m->v[i].times);
}

/* Removes the old directory I, or says -ENOTEMPTY. The top is the caller's. */
static int remove_dir(struct move *m, size_t i)
{
	const char *path = m->v[i].path;
	const char *slash = strrchr(path, '/');
	if (!*path)
		return 0;
	auto_free char *parent = xstrndup(path, slash ? (size_t)(slash - path) : 0);
	auto_close int dir = fs_open_dir(m->from, parent, O_PATH);
	int r = dir < 0 ? dir : at_unlink(dir, slash ? slash + 1 : path, AT_REMOVEDIR);
	return r == -ENOENT ? 0 : r;
}

/* From first to last the names, from last to first the directories. */
static int move_tree(struct move *m)
{
	int r = add(m, xstrdup(""));
	for (size_t i = 0; r >= 0 && i < m->n; i++)
		r = move_names(m, i);
	for (size_t i = m->n; r >= 0 && i > 0; i--) {
		r = remove_dir(m, i - 1);
		for (int k = 0; r == -ENOTEMPTY && k < EMPTY_ROUNDS; k++) {
			size_t n = m->n;
			r = move_names(m, i - 1);
			/* New directories in it would have to be walked as well. */
			if (r >= 0)
				r = m->n == n ? remove_dir(m, i - 1) : -EBUSY;
		}
		if (r == -ENOTEMPTY)
			r = -EBUSY;
		if (r >= 0)
			r = finish_dir(m, i - 1);
	}
	return r;
}

static int open_tops(struct move *m, int dir, const char *from, const char *to)
{
	m->from = fs_open_dir(dir, from, O_PATH);
	m->to = m->from < 0 ? m->from : fs_open_dir(dir, to, O_PATH);
	return m->to < 0 ? m->to : 0;
}

/* What FORTH has found of the directories before it opened them. */
static void restore_dirs(const struct move *forth, struct move *back)
{
	for (size_t i = forth->n; i > 0; i--) {
		const struct entry *e = &forth->v[i - 1];
		auto_close int fd = e->seen ? fs_open_dir(back->to, e->path, O_PATH) : -1;
		if (fd < 0)
			continue;
		(void)fs_set_mode(&back->io, fd, e->mode);
		(void)at_set_times(fd, true, e->times);
	}
}

static int take_back_once(const struct move *forth, int dir, const char *temp, const char *name)
{
	struct move m = {.how = forth->how, .from = -1, .to = -1, .taking_back = true};
	(void)at_make_dir(dir, name, 0700);
	int r = open_tops(&m, dir, temp, name);
	if (r == 0)
		r = move_tree(&m);
	if (m.to >= 0)
		restore_dirs(forth, &m);
	if (r >= 0)
		r = at_unlink(dir, temp, AT_REMOVEDIR);
	move_done(&m);
	return r;
}

/* Everything back into NAME, which may be gone by now; again where others were in the way. */
static void take_back(const struct move *forth, int dir, const char *temp, const char *name)
{
	int r = -EBUSY;
	for (int i = 0; r < 0 && r != -EINTR && i < ROUNDS; i++)
		r = take_back_once(forth, dir, temp, name);
	forth->how->torn = r < 0;
}

static int make_temp(struct move *m, int dir, const char *name, char *temp, size_t size)
{
	uint64_t random = 0;
	if (getrandom(&random, sizeof(random), GRND_NONBLOCK) != (ssize_t)sizeof(random))
		return -EAGAIN;
	snprintf(temp, size, ".sandlock-%016llx", (unsigned long long)random);
	int r = at_make_dir(dir, temp, 0700);
	if (r < 0)
		return r;
	r = open_tops(m, dir, name, temp);
	struct stat st;
	if (r == 0)
		r = fs_stat(m->from, "", &st);
	return r < 0 ? r : tree_copy_metadata(&m->io, m->from, m->to, st.st_mode | 0700, true);
}

int pure_dir_make(struct pure_dir *how, int dir, const char *name)
{
	struct move m = {.how = how, .from = -1, .to = -1};
	char temp[40] = "";
	how->torn = false;
	int r = make_temp(&m, dir, name, temp, sizeof(temp));
	if (r >= 0)
		r = move_tree(&m);
	if (r >= 0)
		r = at_unlink(dir, name, AT_REMOVEDIR);
	if (r >= 0)
		r = at_rename(dir, temp, dir, name, RENAME_NOREPLACE);
	if (r < 0 && m.to >= 0)
		take_back(&m, dir, temp, name);
	else if (r < 0 && temp[0] && r != -EEXIST)
		(void)at_unlink(dir, temp, AT_REMOVEDIR);
	move_done(&m);
	return r == -EXDEV || r == -ENOTEMPTY ? -EBUSY : r;
}
