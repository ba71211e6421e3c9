/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Symbolic links of procfs. A process is known by its PID namespace and its number there: that is
 * the same from whichever procfs one looks. In the base, who lives in the sandbox's namespace
 * belongs to it, but for the guardian; without it, who descends from the guardian.
 */
#include "supervise/proc_link.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "supervise/box.h"
#include "supervise/own.h"
#include "sys/at.h"

enum { PROC_ROOT_INO = 1, LEVELS_MAX = 33, DEPTH_MAX = 5 };

/* A process as the kernel numbers it: from the namespace of the procfs inwards. */
struct who {
	uint64_t ns_dev, ns_ino;
	pid_t group[LEVELS_MAX];
	pid_t thread[LEVELS_MAX];
	size_t n;
};

static size_t read_numbers(const char *text, const char *key, pid_t *ret)
{
	const char *p = strstr(text, key);
	size_t n = 0;
	if (!p)
		return 0;
	p += strlen(key);
	while (n < LEVELS_MAX && *p != '\n' && *p != '\0') {
		char *end;
		long value = strtol(p, &end, 10);
		if (end == p)
			break;
		ret[n++] = (pid_t)value;
		p = end;
	}
	return n;
}

/* DIR is the process's directory in some procfs. */
static int read_who(int dir, struct who *ret)
{
	char text[4096];
	ssize_t n = at_read_file(dir, "status", text, sizeof(text));
	if (n < 0)
		return (int)n;
	size_t groups = read_numbers(text, "\nNStgid:", ret->group);
	ret->n = read_numbers(text, "\nNSpid:", ret->thread);
	if (groups != ret->n || ret->n == 0)
		return -ESRCH;
	auto_close int ns = at_open(dir, "ns/pid", 0, 0);
	if (ns < 0)
		return ns;
	struct at_info info;
	int r = at_info(ns, &info);
	if (r < 0)
		return r;
	ret->ns_dev = info.dev;
	ret->ns_ino = info.ino;
	return 0;
}

static int read_caller(struct call *call, struct who *ret)
{
	char path[32];
	snprintf(path, sizeof(path), "/proc/%d", call->tid);
	auto_close int dir = at_open(AT_FDCWD, path, O_DIRECTORY, 0);
	int r = dir < 0 ? dir : read_who(dir, ret);
	return r == 0 && !call_is_alive(call) ? -ESRCH : r;
}

static bool same_space(const struct who *a, const struct who *b)
{
	return a->ns_dev == b->ns_dev && a->ns_ino == b->ns_ino;
}

static bool same_group(const struct who *a, const struct who *b)
{
	return same_space(a, b) && a->group[a->n - 1] == b->group[b->n - 1];
}

/* Whether the task may follow the links of the process whose directory DIR is. */
static int check_member(struct call *call, int dir)
{
	struct who caller;
	struct who other;
	int r = read_caller(call, &caller);
	if (r < 0)
		return r;
	r = read_who(dir, &other);
	if (r < 0)
		return r == -ENOENT || r == -ESRCH ? -ENOENT : -EACCES;
	if (same_group(&caller, &other))
		return 0;
	if (!same_space(&caller, &other))
		return -EACCES;
	if (call->box->base)
		return other.group[other.n - 1] != 1 ? 0 : -EACCES;
	return own_process(call->box, other.group[other.n - 1]) ? 0 : -EACCES;
}

/* The process's directory above DIR, which may be that itself: the one below the procfs's root. */
static int process_dir(int dir)
{
	struct at_info info;
	auto_close int at = at_open(dir, ".", O_DIRECTORY, 0);
	int r = at < 0 ? at : at_info(at, &info);
	const uint64_t dev = r == 0 ? info.dev : 0;
	for (int i = 0; r == 0 && i < DEPTH_MAX; i++) {
		auto_close int up = at_open(at, "..", O_DIRECTORY, 0);
		r = up < 0 ? up : at_info(up, &info);
		if (r < 0 || info.dev != dev)
			return r < 0 ? r : -EACCES;
		if (info.ino == PROC_ROOT_INO)
			return take_fd(&at);
		util_close(at);
		at = take_fd(&up);
	}
	return r < 0 ? r : -EACCES;
}

/* The text of "self" and "thread-self" for the task in the procfs whose root DIR is. */
static int self_text(struct call *call, int dir, bool thread, char *ret, size_t size)
{
	struct who caller;
	int r = read_caller(call, &caller);
	if (r < 0)
		return r;
	for (size_t i = caller.n; i-- > 0;) {
		char name[16];
		struct who found;
		snprintf(name, sizeof(name), "%d", caller.group[i]);
		auto_close int entry = at_open(dir, name, O_DIRECTORY, RESOLVE_NO_SYMLINKS);
		if (entry < 0 || read_who(entry, &found) < 0 || !same_group(&caller, &found))
			continue;
		if (thread)
			snprintf(ret, size, "%d/task/%d", caller.group[i], caller.thread[i]);
		else
			snprintf(ret, size, "%d", caller.group[i]);
		return 1;
	}
	return -ENOENT;
}

int proc_link_follow(struct call *call, int dir, const char *name, int link, char *ret_text,
		     int *ret_fd)
{
	struct at_info info;
	int r = at_info(dir, &info);
	if (r < 0)
		return r;
	if (info.ino == PROC_ROOT_INO && (str_eq(name, "self") || str_eq(name, "thread-self")))
		return self_text(call, dir, name[0] == 't', ret_text, PATH_MAX);
	/* The kernel tells a text from a jump; where the text leads to is of no interest here. */
	auto_close int plain = at_open(dir, name, 0, RESOLVE_NO_MAGICLINKS);
	if (plain == -EPERM)
		return plain; /* a link that takes a capability, though its text does not */
	if (plain != -ELOOP) {
		ssize_t n = at_read_link(link, ret_text, PATH_MAX);
		return n < 0 ? (int)n : 1;
	}
	auto_close int process = process_dir(dir);
	if (process < 0)
		return process;
	r = check_member(call, process);
	if (r < 0)
		return r;
	int fd = at_open(dir, name, 0, 0);
	if (fd < 0)
		return fd == -EPERM ? -EACCES : fd;
	*ret_fd = fd;
	return 0;
}
