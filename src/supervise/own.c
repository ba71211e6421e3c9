/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What belongs to a sandbox without namespaces. Everything is looked up when it is asked for:
 * nothing that is kept could follow a storm of forks.
 */
#include "supervise/own.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/util.h"
#include "supervise/box.h"
#include "sys/at.h"

enum { ANCESTORS_MAX = 4096, ANCESTORS_NEAR = 32, PROCESSES_MAX = 65536, TERMINALS_MAX = 4096 };

int own_parent(pid_t pid, pid_t *ret_parent, unsigned long long *ret_start)
{
	char path[32];
	char text[1024];
	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	ssize_t n = at_read_file(AT_FDCWD, path, text, sizeof(text));
	if (n < 0)
		return (int)n;
	char *p = strrchr(text, ')'); /* the name before it is the process's own choice */
	/* State, parent; the start time is the 20th word behind the name. */
	for (int word = 1; p && word <= 20; word++) {
		p = strchr(p + 1, ' ');
		if (p && word == 2)
			*ret_parent = (pid_t)strtol(p + 1, NULL, 10);
		if (p && word == 20)
			*ret_start = strtoull(p + 1, NULL, 10);
	}
	return p ? 0 : -ESRCH;
}

/* A number that was given anew on the way shows by a parent younger than its child. */
static bool descends(const struct box *box, pid_t pid, int ancestors)
{
	unsigned long long child_start = ~0ULL;
	for (int i = 0; i < ancestors && pid > 1; i++) {
		pid_t parent = 0;
		unsigned long long start = 0;
		if (own_parent(pid, &parent, &start) < 0 || start > child_start)
			return false;
		if (pid == box->guardian_pid)
			return i > 0;
		child_start = start;
		pid = parent;
	}
	return false;
}

bool own_process(const struct box *box, pid_t pid)
{
	return descends(box, pid, ANCESTORS_MAX);
}

bool own_process_near(const struct box *box, pid_t pid)
{
	return descends(box, pid, ANCESTORS_NEAR);
}

/* --- Lists ------------------------------------------------------------------------------------ */

struct pid_list {
	pid_t *v;
	size_t n;
	size_t room;
};

static void add_pid(struct pid_list *list, pid_t pid)
{
	if (list->n == PROCESSES_MAX)
		return;
	if (list->n == list->room) {
		list->room = list->room ? 2 * list->room : 64;
		list->v = xrealloc(list->v, list->room, sizeof(*list->v));
	}
	list->v[list->n++] = pid;
}

/* The children of one thread. */
static bool add_children_of(struct pid_list *list, int task_dir, const char *tid)
{
	char path[NAME_MAX + 16];
	pid_t pid;
	snprintf(path, sizeof(path), "%s/children", tid);
	auto_close int fd = at_open_entry(task_dir, path, O_RDONLY, 0);
	FILE *f = fd >= 0 ? fdopen(fd, "r") : NULL;
	if (!f)
		return fd == -ESRCH;
	(void)take_fd(&fd);
	/* NOLINTNEXTLINE(cert-err34-c): the kernel writes these numbers */
	while (fscanf(f, "%d", &pid) == 1)
		add_pid(list, pid);
	fclose(f);
	return true;
}

/* False where this kernel keeps no lists of children. */
static bool add_children(struct pid_list *list, pid_t pid)
{
	char path[32];
	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	AUTO(at_dir_done) DIR *dir = at_dir(AT_FDCWD, path);
	bool known = true;
	struct at_info info;
	for (struct dirent *e = dir ? readdir(dir) : NULL; e; e = readdir(dir)) {
		if (e->d_name[0] != '.')
			known &= add_children_of(list, dirfd(dir), e->d_name) ||
				 at_info_of(dirfd(dir), e->d_name, &info) < 0;
	}
	return known;
}

/* All processes of the machine, each traced to its ancestors. */
static void add_descendants_slowly(const struct box *box, struct pid_list *list)
{
	AUTO(at_dir_done) DIR *dir = at_dir(AT_FDCWD, "/proc");
	for (struct dirent *e = dir ? readdir(dir) : NULL; e; e = readdir(dir)) {
		pid_t pid = (pid_t)strtol(e->d_name, NULL, 10);
		if (pid > 1 && own_process(box, pid))
			add_pid(list, pid);
	}
}

size_t own_processes(const struct box *box, pid_t **ret_pids)
{
	struct pid_list list = {0};
	bool known = add_children(&list, box->guardian_pid);
	for (size_t i = 0; known && i < list.n; i++)
		known = add_children(&list, list.v[i]);
	if (!known) {
		list.n = 0;
		add_descendants_slowly(box, &list);
	}
	*ret_pids = list.v;
	return list.n;
}

/* --- Terminals -------------------------------------------------------------------------------- */

/* The terminal whose master descriptor FD of the process is, or -1. */
static int master_index(pid_t pid, int fd_dir, const char *fd)
{
	char target[64];
	char path[NAME_MAX + 32];
	char text[512];
	if (at_read_link_of(fd_dir, fd, target, sizeof(target)) < 0 || !str_ends(target, "/ptmx"))
		return -1;
	snprintf(path, sizeof(path), "/proc/%d/fdinfo/%s", pid, fd);
	if (at_read_file(AT_FDCWD, path, text, sizeof(text)) < 0)
		return -1;
	const char *line = strstr(text, "\ntty-index:");
	return line ? (int)strtol(line + strlen("\ntty-index:"), NULL, 10) : -1;
}

/* Calls FN with each terminal whose master PID holds, until it says true. */
static bool each_terminal(pid_t pid, bool (*fn)(void *data, unsigned int index), void *data)
{
	char path[32];
	snprintf(path, sizeof(path), "/proc/%d/fd", pid);
	AUTO(at_dir_done) DIR *dir = at_dir(AT_FDCWD, path);
	for (struct dirent *e = dir ? readdir(dir) : NULL; e; e = readdir(dir)) {
		int index = e->d_name[0] == '.' ? -1 : master_index(pid, dirfd(dir), e->d_name);
		if (index >= 0 && fn(data, (unsigned int)index))
			return true;
	}
	return false;
}

static bool is_index(void *data, unsigned int index)
{
	return *(const unsigned int *)data == index;
}

bool own_terminal(const struct box *box, pid_t asker, unsigned int index)
{
	if (each_terminal(asker, is_index, &index))
		return true;
	auto_free pid_t *pids = NULL;
	size_t n = own_processes(box, &pids);
	bool found = false;
	for (size_t i = 0; i < n && !found; i++)
		found = each_terminal(pids[i], is_index, &index);
	return found;
}

struct index_list {
	unsigned int *v;
	size_t n;
};

static bool add_index(void *data, unsigned int index)
{
	struct index_list *list = data;
	for (size_t i = 0; i < list->n; i++) {
		if (list->v[i] == index)
			return false;
	}
	if (list->n < TERMINALS_MAX) {
		list->v = xrealloc(list->v, list->n + 1, sizeof(*list->v));
		list->v[list->n++] = index;
	}
	return false;
}

size_t own_terminals(const struct box *box, unsigned int **ret_indexes)
{
	struct index_list list = {0};
	auto_free pid_t *pids = NULL;
	size_t n = own_processes(box, &pids);
	for (size_t i = 0; i < n; i++)
		each_terminal(pids[i], add_index, &list);
	*ret_indexes = list.v;
	return list.n;
}
