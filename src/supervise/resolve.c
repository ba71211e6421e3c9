/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The path resolver. A path without symbolic links means the same to the kernel whoever asks, given
 * the task's start point, so the kernel walks it at one go; anything else is walked with care
 * (walk.c), and on a worker, since links may lie on slow disks.
 */
#include "supervise/resolve.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/util.h"
#include "supervise/act.h"
#include "supervise/box.h"
#include "supervise/walk.h"
#include "sys/at.h"

#define DELETED " (deleted)"

void resolved_done(struct resolved *r)
{
	r->fd = util_close(r->fd);
}

void resolved_done_cleanup(struct resolved *r)
{
	resolved_done(r);
}

/* Whether PATH leads to the object: a name may really end as the kernel marks the deleted. */
static bool is_named(struct call *call, const char *path, const struct at_info *info)
{
	struct at_info found;
	int root = walk_root(call);
	if (root < 0)
		return false;
	auto_close int fd = at_open(root, path, O_NOFOLLOW, RESOLVE_IN_ROOT | RESOLVE_NO_SYMLINKS);
	return fd >= 0 && at_info(fd, &found) == 0 && found.dev == info->dev &&
	       found.ino == info->ino;
}

int resolved_describe(struct call *call, struct resolved *r)
{
	struct at_info info;
	int e = at_info(r->fd, &info);
	if (e < 0)
		return e;
	ssize_t n = at_name(r->fd, r->path, sizeof(r->path));
	if (n < 0)
		return (int)n;
	r->mode = info.mode;
	r->dev = info.dev;
	r->ino = info.ino;
	r->mnt = info.mnt;
	r->deleted = r->anonymous = false;
	if (r->path[0] != '/') {
		/* Namespaces ("net:[…]") are not the task's own. */
		r->anonymous = S_ISFIFO(r->mode) || S_ISSOCK(r->mode) ||
			       str_starts(r->path, "anon_inode:");
		return 0;
	}
	if (!str_ends(r->path, DELETED) || (info.nlink > 0 && is_named(call, r->path, &info)))
		return 0;
	r->path[(size_t)n - strlen(DELETED)] = '\0';
	r->deleted = true;
	r->anonymous = info.nlink == 0 && str_starts(r->path, "/memfd:");
	return 0;
}

/*
 * Whether the kernel's own idea of the topmost directory will do for "..": it knows our root, and
 * the top of the task's mounts. A name of the task's root other than "/" is neither.
 */
static bool is_root_plain(struct call *call)
{
	char text[8];
	int root = walk_root(call);
	return root >= 0 && at_name(root, text, sizeof(text)) == 1 && text[0] == '/';
}

static bool has_dotdot(const char *path)
{
	for (const char *p = strstr(path, ".."); p; p = strstr(p + 1, ".."))
		if ((p == path || p[-1] == '/') && (p[2] == '/' || p[2] == '\0'))
			return true;
	return false;
}

/* The walk in one system call; -ELOOP: it takes a careful one. */
static int walk_at_once(struct call *call, int start, const char *path, uint64_t open_flags)
{
	uint64_t how = RESOLVE_NO_SYMLINKS;
	if (!call->on_worker)
		how |= RESOLVE_CACHED;
	if (*path == '/')
		how |= RESOLVE_IN_ROOT;
	else if (has_dotdot(path) && !is_root_plain(call))
		return -ELOOP;
	int fd = at_open(start, path, open_flags, how);
	/* Something was renamed or mounted meanwhile: the careful walk needs no luck. */
	return fd == -EAGAIN && call->on_worker ? -ELOOP : fd;
}

static bool is_link(int dir, const char *name)
{
	struct at_info info;
	return at_info_of(dir, name, &info) == 0 && S_ISLNK(info.mode);
}

/* The directory that PATH's last component lies in, where no link is met on the way there. */
static int find_parent(struct call *call, int start, const char *path, unsigned int flags,
		       char *ret_last)
{
	char parent[PATH_MAX];
	int r = walk_split(path, parent, ret_last);
	if (r < 0)
		return r;
	auto_close int fd = walk_at_once(call, start, parent, ret_last[0] ? O_DIRECTORY : 0);
	if (fd < 0)
		return fd;
	if ((flags & RESOLVE_CREATE) && ret_last[0]) {
		if (!call->on_worker)
			return -EAGAIN; /* whether a link stands there may be on the disk only */
		char name[NAME_MAX + 2];
		snprintf(name, sizeof(name), "%s", ret_last);
		name[strcspn(name, "/")] = '\0';
		if (is_link(fd, name))
			return -ELOOP;
	}
	return take_fd(&fd);
}

int resolve_path(struct call *call, int dirfd, const char *path, unsigned int flags,
		 struct resolved *ret)
{
	AUTO(resolved_done) struct resolved r = RESOLVED_INIT;
	if (*path == '\0')
		return flags & RESOLVE_EMPTY ? resolve_fd(call, dirfd, ret) : -ENOENT;
	if (strlen(path) >= PATH_MAX)
		return -ENAMETOOLONG;
	auto_close int own = *path == '/' ? -1 : call_fd_path(call, dirfd);
	int start = *path == '/' ? walk_root(call) : own;
	if (start < 0)
		return start;
	if (flags & (RESOLVE_PARENT | RESOLVE_CREATE))
		r.fd = find_parent(call, start, path, flags, r.last);
	else
		r.fd = walk_at_once(call, start, path, flags & RESOLVE_NOFOLLOW ? O_NOFOLLOW : 0);
	if (r.fd == -ELOOP && !call->on_worker)
		return -EAGAIN;
	if (r.fd == -ELOOP) {
		r.last[0] = '\0';
		int e = walk_path(call, take_fd(&own), path, flags, &r.fd, r.last);
		if (e < 0)
			return e;
	}
	if (r.fd < 0)
		return r.fd;
	int e = resolved_describe(call, &r);
	if (e < 0)
		return e;
	*ret = r;
	r.fd = -1;
	return 0;
}

int resolve_fd(struct call *call, int fd, struct resolved *ret)
{
	AUTO(resolved_done) struct resolved r = RESOLVED_INIT;
	r.fd = call_fd_path(call, fd);
	if (r.fd < 0)
		return r.fd;
	int e = resolved_describe(call, &r);
	if (e < 0)
		return e;
	*ret = r;
	r.fd = -1;
	return 0;
}

int resolve_arg(struct call *call, int dirfd_arg, unsigned int path_arg, unsigned int flags,
		struct resolved *ret, char *ret_text)
{
	ret_text[0] = '\0';
	ssize_t n = call_read_str(call, call_arg(call, path_arg), ret_text, PATH_MAX);
	if (n < 0)
		return (int)n;
	AUTO(act_end) struct act act;
	int r = act_begin(call->box, &act);
	if (r < 0)
		return r;
	int dirfd = dirfd_arg < 0 ? AT_FDCWD : call_int(call, (unsigned int)dirfd_arg);
	return resolve_path(call, dirfd, ret_text, flags, ret);
}
