/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a sandbox has of sockets: the canonical paths of --unix-allow, and, where descriptors cannot
 * be copied out of a task (pidfd_getfd barred, as by Docker's default profile), copies of the
 * sockets that were made for it.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/path.h"
#include "base/strv.h"
#include "base/util.h"
#include "policy/policy.h"
#include "supervise/sock.h"
#include "sys/proc.h"

enum { KEPT_MAX = 256 };

struct kept {
	int fd; /* owned; -1: free */
	uint64_t inode;
	uint64_t used; /* stamp; the smallest goes first */
};

struct sock_table {
	struct strv allow;
	pthread_mutex_t lock; /* workers use the rest as well */
	struct kept kept[KEPT_MAX];
	uint64_t stamp;
};

/*
 * The path as the kernel will show it: links of the part that exists are followed, now, while the
 * sandbox cannot change them; a socket may be made later, so the rest need not exist.
 */
static char *canonical(const char *path)
{
	auto_free char *head = xstrdup(path);
	auto_free char *tail = xstrdup("");
	for (;;) {
		auto_free char *real = proc_real_path(head);
		if (real)
			return tail[0] ? path_join(real, tail) : take_ptr(real);
		if (str_eq(head, "/"))
			return xstrdup(path);
		char *rest = tail[0] ? path_join(path_basename(head), tail)
				     : xstrdup(path_basename(head));
		free(tail);
		tail = rest;
		char *up = path_dirname(head);
		free(head);
		head = up;
	}
}

struct sock_table *sock_table_new(const struct policy *policy)
{
	struct sock_table *t = xnew(struct sock_table);
	pthread_mutex_init(&t->lock, NULL);
	for (size_t i = 0; i < KEPT_MAX; i++)
		t->kept[i].fd = -1;
	for (size_t i = 0; i < policy->unix_allow.n; i++)
		strv_add_take(&t->allow, canonical(policy->unix_allow.v[i]));
	return t;
}

void sock_table_free(struct sock_table *t)
{
	if (!t)
		return;
	for (size_t i = 0; i < KEPT_MAX; i++)
		util_close(t->kept[i].fd);
	pthread_mutex_destroy(&t->lock);
	strv_done(&t->allow);
	free(t);
}

bool sock_table_allows(const struct sock_table *t, const char *path)
{
	for (size_t i = 0; t && i < t->allow.n; i++)
		if (path_is_beneath(path, t->allow.v[i]))
			return true;
	return false;
}

static struct kept *find_slot(struct sock_table *t)
{
	struct kept *oldest = &t->kept[0];
	for (size_t i = 0; i < KEPT_MAX; i++) {
		if (t->kept[i].fd < 0)
			return &t->kept[i];
		if (t->kept[i].used < oldest->used)
			oldest = &t->kept[i];
	}
	return oldest;
}

int sock_table_keep(struct sock_table *t, int fd)
{
	struct stat st;
	if (!t)
		return -EACCES;
	int copy = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	if (copy < 0 || fstat(copy, &st) < 0) {
		int r = -errno;
		util_close(copy);
		return r;
	}
	pthread_mutex_lock(&t->lock);
	struct kept *k = find_slot(t);
	util_close(k->fd);
	*k = (struct kept){copy, st.st_ino, ++t->stamp};
	pthread_mutex_unlock(&t->lock);
	return 0;
}

int sock_table_find(struct sock_table *t, uint64_t inode)
{
	int fd = -ENOENT;
	if (!t)
		return fd;
	pthread_mutex_lock(&t->lock);
	for (size_t i = 0; i < KEPT_MAX; i++) {
		struct kept *k = &t->kept[i];
		if (k->fd < 0 || k->inode != inode)
			continue;
		k->used = ++t->stamp;
		fd = fcntl(k->fd, F_DUPFD_CLOEXEC, 0);
		if (fd < 0)
			fd = -errno;
		break;
	}
	pthread_mutex_unlock(&t->lock);
	return fd;
}

void sock_table_drop(struct sock_table *t, uint64_t inode)
{
	if (!t)
		return;
	pthread_mutex_lock(&t->lock);
	for (size_t i = 0; i < KEPT_MAX; i++) {
		struct kept *k = &t->kept[i];
		if (k->fd >= 0 && k->inode == inode)
			k->fd = util_close(k->fd);
	}
	pthread_mutex_unlock(&t->lock);
}
