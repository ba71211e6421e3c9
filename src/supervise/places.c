/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The stand-ins for /proc, /dev/pts and /dev/shm. A listing is one directory per sandbox that is
 * brought up to date whenever somebody opens it; like /proc itself it may change under a reader.
 * The sandbox has no right to change anything in it, and what it opens relative to it is judged by
 * the name that is meant.
 */
#include "supervise/places.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/util.h"
#include "supervise/box.h"
#include "supervise/own.h"
#include "sys/at.h"

struct places {
	char *dir; /* owned */
	uint64_t dir_dev;
	struct at_info at[PLACE_COUNT]; /* INO 0: absent */
	pthread_mutex_t lock;		/* held while a listing is brought up to date */
	bool filled;			/* names of /proc that never change */
};

static const char *const real_names[PLACE_COUNT] = {
	[PLACE_PROC] = "/proc", [PLACE_PTS] = "/dev/pts", [PLACE_SHM] = "/dev/shm"};
static const char *const own_names[PLACE_COUNT] = {
	[PLACE_PROC] = "proc", [PLACE_PTS] = "pts", [PLACE_SHM] = "shm"};

static int open_own(const struct places *p)
{
	return at_open(AT_FDCWD, p->dir, O_DIRECTORY | O_NOFOLLOW, 0);
}

struct places *places_new(const char *dir)
{
	struct places *p = xnew(struct places);
	p->dir = xstrdup(dir);
	pthread_mutex_init(&p->lock, NULL);
	struct at_info info;
	auto_close int top = open_own(p);
	if (top >= 0 && at_info(top, &info) == 0)
		p->dir_dev = info.dev;
	for (int i = PLACE_PROC; i < PLACE_COUNT; i++) {
		auto_close int fd = at_open(AT_FDCWD, real_names[i], O_DIRECTORY, 0);
		if (fd < 0 || at_info(fd, &p->at[i]) < 0)
			p->at[i] = (struct at_info){0};
	}
	return p;
}

void places_free(struct places *p)
{
	if (!p)
		return;
	pthread_mutex_destroy(&p->lock);
	free(p->dir);
	free(p);
}

enum place places_find(const struct places *p, const struct at_info *info)
{
	const struct at_info *at = p->at;
	if (at[PLACE_PROC].ino && info->dev == at[PLACE_PROC].dev)
		return PLACE_PROC;
	if (at[PLACE_PTS].ino && info->dev == at[PLACE_PTS].dev)
		return PLACE_PTS;
	if (at[PLACE_SHM].ino && info->dev == at[PLACE_SHM].dev && info->ino == at[PLACE_SHM].ino)
		return PLACE_SHM;
	return PLACE_NONE;
}

int places_shm(const struct places *p)
{
	auto_close int top = open_own(p);
	if (top < 0)
		return top;
	return at_open(top, own_names[PLACE_SHM], O_DIRECTORY | O_NOFOLLOW, RESOLVE_NO_SYMLINKS);
}

bool places_real_name(const struct places *p, int fd, const struct at_info *info, char *ret_path,
		      size_t size)
{
	char name[PATH_MAX];
	if (info->dev != p->dir_dev || at_name(fd, name, sizeof(name)) < 0 ||
	    !str_starts(name, p->dir))
		return false;
	const char *rest = name + strlen(p->dir);
	for (int i = PLACE_PROC; i <= PLACE_PTS; i++) {
		size_t n = strlen(own_names[i]);
		if (rest[0] != '/' || strncmp(rest + 1, own_names[i], n) != 0 ||
		    (rest[n + 1] && rest[n + 1] != '/'))
			continue;
		int len = snprintf(ret_path, size, "%s%s", real_names[i], rest + n + 1);
		return len > 0 && (size_t)len < size;
	}
	return false;
}

/* --- Listings --------------------------------------------------------------------------------- */

static DIR *open_listing(int top, const char *name)
{
	DIR *dir = at_dir(top, name);
	if (!dir && errno == ENOENT && at_make_dir(top, name, 0755) == 0)
		dir = at_dir(top, name);
	if (dir)
		fchmod(dirfd(dir), 0755); /* whatever the host's umask is */
	return dir;
}

static bool is_number(const char *name)
{
	return name[0] && strspn(name, "0123456789") == strlen(name);
}

static void make_file(int dir, const char *name)
{
	util_close(at_open_entry(dir, name, O_CREAT | O_EXCL | O_RDONLY, 0444));
}

/*
 * Links are made to lead to the real ones: what they say depends on who asks, and stat follows them
 * without asking us.
 */
static void add_fixed_name(int dir, int proc, const char *name)
{
	struct at_info info;
	char target[NAME_MAX + sizeof("/proc/")];
	if (at_info_of(proc, name, &info) < 0)
		return;
	if (S_ISLNK(info.mode)) {
		snprintf(target, sizeof(target), "/proc/%s", name);
		at_make_link(dir, name, target);
	} else if (S_ISDIR(info.mode)) {
		at_make_dir(dir, name, 0555);
	} else {
		make_file(dir, name);
	}
}

static void fill_proc(int dir)
{
	AUTO(at_dir_done) DIR *proc = at_dir(AT_FDCWD, "/proc");
	for (struct dirent *e = proc ? readdir(proc) : NULL; e; e = readdir(proc)) {
		if (e->d_name[0] != '.' && !is_number(e->d_name))
			add_fixed_name(dir, dirfd(proc), e->d_name);
	}
}

static int compare_numbers(const void *a, const void *b)
{
	unsigned int x = *(const unsigned int *)a;
	unsigned int y = *(const unsigned int *)b;
	return x < y ? -1 : x > y;
}

/* Makes the numbers in DIR those in V. */
static void set_numbers(DIR *dir, unsigned int *v, size_t n, bool dirs)
{
	if (n)
		qsort(v, n, sizeof(*v), compare_numbers);
	for (struct dirent *e = readdir(dir); e; e = readdir(dir)) {
		unsigned int number = (unsigned int)strtoul(e->d_name, NULL, 10);
		if (is_number(e->d_name) &&
		    !(n && bsearch(&number, v, n, sizeof(*v), compare_numbers)))
			at_unlink(dirfd(dir), e->d_name, dirs ? AT_REMOVEDIR : 0);
	}
	for (size_t i = 0; i < n; i++) {
		char name[16];
		snprintf(name, sizeof(name), "%u", v[i]);
		if (dirs)
			at_make_dir(dirfd(dir), name, 0555);
		else
			make_file(dirfd(dir), name);
	}
}

static void update(struct places *p, const struct box *box, enum place place, DIR *dir)
{
	auto_free unsigned int *numbers = NULL;
	size_t n;
	if (place == PLACE_PROC) {
		pid_t *pids = NULL;
		n = own_processes(box, &pids);
		numbers = (unsigned int *)pids; /* none is negative */
		if (!p->filled)
			fill_proc(dirfd(dir));
		p->filled = true;
	} else {
		n = own_terminals(box, &numbers);
		make_file(dirfd(dir), "ptmx");
	}
	set_numbers(dir, numbers, n, place == PLACE_PROC);
}

int places_list(struct places *p, const struct box *box, enum place place)
{
	auto_close int top = open_own(p);
	if (top < 0)
		return top;
	pthread_mutex_lock(&p->lock);
	AUTO(at_dir_done) DIR *dir = open_listing(top, own_names[place]);
	int code = dir ? 0 : errno;
	if (dir)
		update(p, box, place, dir);
	pthread_mutex_unlock(&p->lock);
	if (!dir)
		return -code;
	return at_open_entry(top, own_names[place], O_RDONLY | O_DIRECTORY, 0);
}
