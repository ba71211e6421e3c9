/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The careful walk. Each component is opened without following it, and what was opened is looked
 * at, so that nothing depends on a name still meaning the same. The text that remains grows with
 * each link, within the kernel's own bound of links.
 */
#include "supervise/walk.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/util.h"
#include "supervise/box.h"
#include "supervise/proc_link.h"
#include "supervise/resolve.h"
#include "sys/at.h"

enum { LINKS_MAX = 40, FLAG_NOSYMFOLLOW = 0x2000 /* of statfs; newer than the headers */ };

struct walk {
	struct call *call;
	unsigned int flags;
	unsigned int links;
	int root;   /* the box's; -1 until needed */
	int cur;    /* owned */
	char *text; /* owned: what remains to be walked, from REST on */
	const char *rest;
	char *last; /* the caller's */
};

static void walk_done_cleanup(struct walk *w)
{
	util_close(w->cur);
	free(w->text);
}

static void set_cur(struct walk *w, int fd)
{
	util_close(w->cur);
	w->cur = fd;
}

static int need_root(struct walk *w)
{
	if (w->root < 0)
		w->root = walk_root(w->call);
	return w->root < 0 ? w->root : 0;
}

static int start_at_root(struct walk *w)
{
	int r = need_root(w);
	int root = r < 0 ? r : at_open(w->root, ".", 0, RESOLVE_NO_SYMLINKS);
	if (root < 0)
		return root;
	set_cur(w, root);
	return 0;
}

/* Puts TEXT in front of what remains; an absolute one begins at the task's root. */
static int add_text(struct walk *w, const char *text)
{
	if (*text == '\0')
		return -ENOENT;
	int r = *text == '/' ? start_at_root(w) : 0;
	if (r < 0)
		return r;
	/* What remains is either nothing or begins with the slash that ended the link's name. */
	char *joined = xasprintf("%s%s", text, w->rest);
	free(w->text);
	w->text = joined;
	w->rest = joined;
	return 0;
}

static int open_entry(struct walk *w, const char *name)
{
	uint64_t resolve = RESOLVE_NO_SYMLINKS | (w->call->on_worker ? 0 : RESOLVE_CACHED);
	return at_open(w->cur, name, O_NOFOLLOW, resolve);
}

static int is_at_root(struct walk *w)
{
	struct at_info here = {0};
	struct at_info root = {0};
	int r = need_root(w);
	if (r == 0)
		r = at_info(w->cur, &here);
	if (r == 0)
		r = at_info(w->root, &root);
	if (r < 0)
		return r;
	return here.ino == root.ino && here.dev == root.dev && here.mnt == root.mnt;
}

/* The sysctl protected_symlinks: links of others in directories that anybody may write are not
 * followed as the last component. */
static int check_protected(struct walk *w, const struct at_info *link)
{
	struct at_info dir;
	char text[16];
	if (link->uid == w->call->box->host_uid)
		return 0;
	int r = at_info(w->cur, &dir);
	if (r < 0)
		return r;
	if ((dir.mode & (S_ISVTX | S_IWOTH)) != (S_ISVTX | S_IWOTH) || dir.uid == link->uid)
		return 0;
	ssize_t n = at_read_file(AT_FDCWD, "/proc/sys/fs/protected_symlinks", text, sizeof(text));
	return n > 0 && text[0] == '0' ? 0 : -EACCES;
}

static int follow(struct walk *w, const char *name, int link, const struct at_info *info, bool last)
{
	char text[PATH_MAX];
	uint32_t magic;
	uint64_t flags;
	if (w->links++ >= LINKS_MAX)
		return -ELOOP;
	int r = at_file_system(link, &magic, &flags);
	if (r < 0)
		return r;
	if (flags & FLAG_NOSYMFOLLOW)
		return -ELOOP;
	if (magic == PROC_SUPER_MAGIC) {
		int fd = -1;
		r = proc_link_follow(w->call, w->cur, name, link, text, &fd);
		if (r == 0)
			set_cur(w, fd);
		return r > 0 ? add_text(w, text) : r;
	}
	r = last ? check_protected(w, info) : 0;
	if (r < 0)
		return r;
	ssize_t n = at_read_link(link, text, sizeof(text));
	return n < 0 ? (int)n : add_text(w, text);
}

/* NAME is the next component, REST stands behind it. LAST: nothing but slashes follows. */
static int step(struct walk *w, const char *name, bool last)
{
	struct at_info info;
	if (str_eq(name, "..")) {
		int r = is_at_root(w);
		if (r != 0)
			return r < 0 ? r : 0;
	}
	auto_close int fd = open_entry(w, name);
	if (fd < 0)
		return fd;
	int r = at_info(fd, &info);
	if (r < 0)
		return r;
	bool whole = last && *w->rest == '\0' && (w->flags & RESOLVE_NOFOLLOW);
	if (S_ISLNK(info.mode) && !whole)
		return follow(w, name, fd, &info, last);
	if (!S_ISDIR(info.mode) && *w->rest == '/')
		return -ENOTDIR;
	set_cur(w, take_fd(&fd));
	return 0;
}

/* A name that is too long stays so: it is for the call that uses it to fail. */
static void put_last(char *ret_last, const char *name, size_t n, bool slash)
{
	snprintf(ret_last, NAME_MAX + 2, "%.*s%s", (int)n, name, slash ? "/" : "");
}

/* The last component where its parent is wanted: 1 if it is to be followed all the same. */
static int stop_before(struct walk *w, const char *name)
{
	struct at_info info;
	if (w->flags & RESOLVE_CREATE) {
		auto_close int fd = open_entry(w, name);
		if (fd < 0 && fd != -ENOENT)
			return fd;
		if (fd >= 0 && at_info(fd, &info) == 0 && S_ISLNK(info.mode))
			return 1;
	}
	put_last(w->last, name, strlen(name), *w->rest);
	w->rest = "";
	return 0;
}

/* "dir/" can only mean a directory, also where a link led there. */
static int check_dir(const struct walk *w)
{
	struct at_info info;
	int r = at_info(w->cur, &info);
	if (r < 0)
		return r;
	return S_ISDIR(info.mode) ? 0 : -ENOTDIR;
}

/* One component. Positive: there is none left. */
static int next(struct walk *w)
{
	char name[PATH_MAX];
	const char *p = w->rest + strspn(w->rest, "/");
	size_t n = strcspn(p, "/");
	if (n == 0) {
		int r = p > w->rest ? check_dir(w) : 0;
		return r < 0 ? r : 1;
	}
	if (n >= sizeof(name))
		return -ENAMETOOLONG;
	memcpy(name, p, n);
	name[n] = '\0';
	w->rest = p + n;
	bool last = w->rest[strspn(w->rest, "/")] == '\0';
	bool dots = str_eq(name, ".") || str_eq(name, "..");
	if (last && !dots && (w->flags & (RESOLVE_PARENT | RESOLVE_CREATE))) {
		int r = stop_before(w, name);
		if (r <= 0)
			return r;
	}
	return step(w, name, last);
}

int walk_path(struct call *call, int start, const char *path, unsigned int flags, int *ret_fd,
	      char *ret_last)
{
	AUTO(walk_done) struct walk w = {.call = call, .flags = flags, .root = -1, .cur = start};
	char last[NAME_MAX + 2] = "";
	w.text = xstrdup(path);
	w.rest = w.text;
	w.last = last;
	int r = *path == '/' ? start_at_root(&w) : 0;
	while (r == 0 && *w.rest)
		r = next(&w);
	if (r >= 0 && last[0])
		r = check_dir(&w);
	if (r < 0)
		return r;
	memcpy(ret_last, last, sizeof(last));
	*ret_fd = take_fd(&w.cur);
	return 0;
}

int walk_split(const char *path, char *ret_parent, char *ret_last)
{
	size_t end = strlen(path);
	if (end >= PATH_MAX)
		return -ENAMETOOLONG;
	while (end > 0 && path[end - 1] == '/')
		end--;
	size_t start = end;
	while (start > 0 && path[start - 1] != '/')
		start--;
	const char *name = path + start;
	size_t n = end - start;
	if (n == 0 || (n == 1 && name[0] == '.') || (n == 2 && name[0] == '.' && name[1] == '.')) {
		ret_last[0] = '\0';
		snprintf(ret_parent, PATH_MAX, "%s", path);
		return 0;
	}
	put_last(ret_last, name, n, path[end]);
	snprintf(ret_parent, PATH_MAX, "%.*s", start ? (int)start : 1, start ? path : ".");
	return 0;
}

int walk_root(struct call *call)
{
	char path[40];
	int known = call->box->root_plus_one;
	if (known > 0)
		return known - 1;
	snprintf(path, sizeof(path), "/proc/%d/root", call->tid);
	auto_close int fd = at_open(AT_FDCWD, path, O_DIRECTORY, 0);
	if (fd == -ENOENT || fd == -ESRCH || !call_is_alive(call))
		return -ESRCH;
	if (fd < 0)
		return -EACCES;
	/* Another thread may have been faster. */
	if (atomic_compare_exchange_strong(&call->box->root_plus_one, &known, fd + 1))
		return take_fd(&fd);
	return known - 1;
}
