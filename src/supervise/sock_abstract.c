/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whose an abstract name is. The kernel's list of Unix sockets gives the inodes that carry the
 * name; a process of the sandbox that holds such a socket makes it the sandbox's own. A copy of
 * that very descriptor is kept while the caller connects or sends: a name is bound as long as its
 * socket lives, so it cannot pass to a stranger in between. The copy also is the proof: what it is
 * bound to is asked of the kernel, and so nothing that the sandbox writes into the list's text can
 * mislead.
 *
 * A foreign socket that a process of the sandbox holds a descriptor of counts as its own: it has
 * that socket already.
 */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/util.h"
#include "supervise/box.h"
#include "supervise/sock.h"

#define UN_PATH_AT offsetof(struct sockaddr_un, sun_path)

enum {
	NAMED_MAX = 16,	      /* sockets of one name: one per type, and lines that lie */
	PROCESSES_MAX = 8192, /* of the sandbox that are looked at */
	DESCRIPTORS_MAX = 65536,
	ANCESTORS_MAX = 8192,
	LINE_SIZE = 512,
};

struct search {
	struct call *call;
	const struct sock_addr *addr;
	int type;
	uint64_t inodes[NAMED_MAX];
	size_t n;
	size_t looked_at; /* descriptors */
	int hold;
};

/* --- The kernel's list -------------------------------------------------------------------- */

/* The name as the list shows it: each NUL as an at sign, at most 108 of them. */
static void shown_name(const struct sock_addr *addr, char *ret_text)
{
	size_t n = addr->len - UN_PATH_AT;
	for (size_t i = 0; i < n; i++)
		ret_text[i] = addr->un.sun_path[i] ? addr->un.sun_path[i] : '@';
	ret_text[n] = '\0';
}

/*
 * A line: eight fields, the fifth the type, the seventh the inode, and the name behind one blank.
 * A name that holds a newline is cut by it, so a name is compared up to its first newline.
 */
static void read_line(struct search *s, const char *line, const char *name)
{
	unsigned int type = 0;
	unsigned long long inode = 0;
	int end = 0;
	if (sscanf(line, "%*s %*x %*x %*x %x %*x %llu%n", &type, &inode, &end) != 2 || !end ||
	    line[end] != ' ' || (int)type != s->type || s->n == NAMED_MAX)
		return;
	if (str_eq(line + end + 1, name))
		s->inodes[s->n++] = inode;
}

static int read_list(struct search *s)
{
	char name[sizeof(s->addr->un.sun_path) + 1];
	char line[LINE_SIZE];
	shown_name(s->addr, name);
	name[strcspn(name, "\n")] = '\0';
	FILE *f = fopen("/proc/net/unix", "re");
	if (!f)
		return -EPERM;
	while (fgets(line, sizeof(line), f)) {
		line[strcspn(line, "\n")] = '\0';
		read_line(s, line, name);
	}
	fclose(f);
	return s->n ? 0 : -ECONNREFUSED;
}

/* --- The sandbox's processes -------------------------------------------------------------- */

static bool is_it(const struct search *s, int fd)
{
	struct sock_addr bound = {0};
	struct sock_info info;
	socklen_t len = sizeof(bound.storage);
	return sock_info_get(fd, &info) == 0 && info.domain == AF_UNIX && info.type == s->type &&
	       getsockname(fd, &bound.sa, &len) == 0 && len == s->addr->len &&
	       memcmp(&bound.storage, &s->addr->storage, len) == 0;
}

static pid_t parent_of(pid_t pid)
{
	char path[40];
	char text[1024];
	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	auto_close int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd >= 0 ? read(fd, text, sizeof(text) - 1) : -1;
	if (n <= 0)
		return -1;
	text[n] = '\0';
	/* The name in parentheses may hold anything. */
	const char *p = strrchr(text, ')');
	int parent = -1;
	if (!p || sscanf(p + 1, " %*c %d", &parent) != 1)
		return -1;
	return parent;
}

/* Whether PID descends from the guardian, to which orphans go. */
static bool is_inside(const struct box *box, pid_t pid)
{
	for (int i = 0; i < ANCESTORS_MAX && pid > 1; i++) {
		pid = parent_of(pid);
		if (pid == box->guardian_pid)
			return true;
	}
	return false;
}

static bool names_one(const struct search *s, const char *link)
{
	unsigned long long inode = 0;
	if (sscanf(link, "socket:[%llu]", &inode) != 1)
		return false;
	for (size_t i = 0; i < s->n; i++)
		if (s->inodes[i] == inode)
			return true;
	return false;
}

static bool look_at(struct search *s, pid_t pid, int dir, const char *name)
{
	char link[64];
	ssize_t n = readlinkat(dir, name, link, sizeof(link) - 1);
	if (n <= 0)
		return false;
	link[n] = '\0';
	if (!names_one(s, link))
		return false;
	auto_close int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	if (pidfd < 0)
		return false;
	auto_close int fd = (int)syscall(SYS_pidfd_getfd, pidfd, strtol(name, NULL, 10), 0);
	if (fd < 0 || !is_it(s, fd) || !is_inside(s->call->box, pid))
		return false;
	/* Alive still: so it was this process whose ancestors were looked at. */
	struct pollfd dead = {.fd = pidfd, .events = POLLIN};
	if (poll(&dead, 1, 0) != 0)
		return false;
	s->hold = take_fd(&fd);
	return true;
}

static bool search_process(struct search *s, pid_t pid)
{
	char path[40];
	bool found = false;
	snprintf(path, sizeof(path), "/proc/%d/fd", pid);
	DIR *d = opendir(path);
	if (!d)
		return false;
	for (struct dirent *e = readdir(d); e && !found; e = readdir(d)) {
		if (!isdigit((unsigned char)e->d_name[0]))
			continue;
		if (++s->looked_at > DESCRIPTORS_MAX)
			break;
		found = look_at(s, pid, dirfd(d), e->d_name);
	}
	closedir(d);
	return found;
}

/* Adds the children of one thread; returns the new number of processes in LIST. */
static size_t add_children(int task_dir, const char *tid, pid_t *list, size_t n)
{
	char path[300];
	snprintf(path, sizeof(path), "%s/children", tid);
	int fd = openat(task_dir, path, O_RDONLY | O_CLOEXEC);
	FILE *f = fd >= 0 ? fdopen(fd, "r") : NULL;
	if (!f) {
		util_close(fd);
		return n;
	}
	while (n < PROCESSES_MAX && fscanf(f, "%d", &list[n]) == 1)
		n++;
	fclose(f);
	return n;
}

static size_t add_children_of(pid_t pid, pid_t *list, size_t n)
{
	char path[40];
	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	DIR *d = opendir(path);
	if (!d)
		return n;
	for (struct dirent *e = readdir(d); e; e = readdir(d))
		if (isdigit((unsigned char)e->d_name[0]))
			n = add_children(dirfd(d), e->d_name, list, n);
	closedir(d);
	return n;
}

static bool search_tree(struct search *s)
{
	/* Client and server are often one process. */
	if (search_process(s, s->call->tid))
		return true;
	auto_free pid_t *list = xcalloc(PROCESSES_MAX, sizeof(*list));
	size_t n = add_children_of(s->call->box->guardian_pid, list, 0);
	for (size_t i = 0; i < n; i++) {
		if (search_process(s, list[i]))
			return true;
		n = add_children_of(list[i], list, n);
	}
	return false;
}

/* Without pidfd_getfd: only the sockets whose copies are here are known to be the sandbox's. */
static bool search_table(struct search *s)
{
	for (size_t i = 0; i < s->n; i++) {
		auto_close int fd = sock_table_find(s->call->box->socks, s->inodes[i]);
		if (fd >= 0 && is_it(s, fd)) {
			s->hold = take_fd(&fd);
			return true;
		}
	}
	return false;
}

int sock_abstract_find(struct call *call, const struct sock_addr *addr, int type, int *ret_hold)
{
	struct search s = {.call = call, .addr = addr, .type = type, .hold = -1};
	int r = read_list(&s);
	if (r < 0)
		return r;
	bool found = call->box->have_getfd ? search_tree(&s) : search_table(&s);
	if (!found)
		return -EPERM;
	*ret_hold = s.hold;
	return 0;
}
