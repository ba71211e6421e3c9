/* SPDX-License-Identifier: Apache-2.0 */
/* Trees: copying. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>

#include "base/util.h"
#include "fs/inode_map.h"
#include "fs/layer.h"
#include "fs/tree.h"
#include "fs/tree_walk.h"
#include "sys/at.h"

enum { BLOCK = 131072, NAMES_MAX = 4 * 1024 * 1024 };

/* A file of more than one name that was copied, and the directory and name of its copy. */
struct copied {
	size_t dir;
	char *name;
};

struct copier {
	const struct tree_copy *how;
	struct tree_walk walk;
	int from; /* roots, borrowed */
	int to;
	const char *from_name;
	const char *to_name;
	struct copied *copied;
	size_t n_copied;
	size_t room;
	struct inode_map map; /* inode to its number in COPIED */
};

static int copy_range(const struct fs_io *io, int from, int to, uint64_t at, uint64_t end)
{
	auto_free char *block = xzalloc(BLOCK);
	while (at < end) {
		size_t wanted = end - at < BLOCK ? (size_t)(end - at) : BLOCK;
		ssize_t n = fs_read(from, block, wanted, at);
		if (n <= 0)
			return (int)n;
		int r = fs_write(io, to, block, (size_t)n, at);
		if (r < 0)
			return r;
		at += (uint64_t)n;
	}
	return 0;
}

int tree_copy_data(const struct fs_io *io, int from, int to)
{
	struct stat st;
	int r = fs_stat(from, "", &st);
	if (r < 0)
		return r;
	uint64_t size = (uint64_t)st.st_size;
	if (size && fs_clone(io, from, to) == 0)
		return fs_truncate(io, to, size);
	r = fs_truncate(io, to, 0);
	if (r >= 0)
		r = fs_truncate(io, to, size);
	uint64_t at = 0;
	while (r >= 0 && at < size) {
		at = fs_next_data(from, at, size);
		uint64_t end = at < size ? fs_next_hole(from, at, size) : size;
		if (end <= at)
			break;
		r = copy_range(io, from, to, at, end);
		at = end;
	}
	return r;
}

static int set_attribute(const struct fs_io *io, int to, const char *name, const void *value,
			 size_t len)
{
	struct stat st;
	char old[256];
	ssize_t n = len < sizeof(old) ? fs_xattr_into(to, name, old, sizeof(old)) : -ERANGE;
	if (n == (ssize_t)len && memcmp(old, value, len) == 0)
		return 0;
	int r = fs_set_xattr(io, to, name, value, len);
	if (r != -EACCES || fs_stat(to, "", &st) < 0)
		return r;
	/* User attributes want the owner's write permission; the mode is set at the end. */
	r = fs_set_mode(io, to, (st.st_mode & 07777) | 0600);
	return r < 0 ? r : fs_set_xattr(io, to, name, value, len);
}

static int drop_others(const struct fs_io *io, int from, int to)
{
	auto_free char *names = NULL;
	size_t len = 0;
	int r = fs_xattr_names(to, &names, &len);
	if (r < 0)
		return r == -ENOTSUP || r == -EPERM ? 0 : r;
	for (const char *name = names; r >= 0 && name < names + len; name += strlen(name) + 1) {
		if (!layer_is_carried(name))
			continue;
		char value[8];
		ssize_t n = fs_xattr_into(from, name, value, sizeof(value));
		if (n == -ENODATA || n == -ENOTSUP) {
			r = fs_remove_xattr(io, to, name);
			struct stat st;
			if (r == -EACCES && fs_stat(to, "", &st) == 0) {
				r = fs_set_mode(io, to, (st.st_mode & 07777) | 0600);
				r = r < 0 ? r : fs_remove_xattr(io, to, name);
			}
		}
	}
	return r;
}

static int copy_attributes(const struct fs_io *io, int from, int to)
{
	auto_free char *names = NULL;
	size_t len = 0;
	int r = drop_others(io, from, to);
	if (r < 0)
		return r;
	r = fs_xattr_names(from, &names, &len);
	if (r < 0)
		return r == -ENOTSUP || r == -EPERM ? 0 : r;
	for (const char *name = names; r >= 0 && name < names + len; name += strlen(name) + 1) {
		if (!layer_is_carried(name))
			continue;
		auto_free void *value = NULL;
		ssize_t n = fs_xattr(from, name, &value);
		r = n < 0 ? (int)n : set_attribute(io, to, name, value, (size_t)n);
	}
	return r;
}

int tree_copy_metadata(const struct fs_io *io, int from, int to, mode_t mode, bool with_owner)
{
	struct stat a;
	struct stat b;
	int r = fs_stat(from, "", &a);
	if (r >= 0)
		r = fs_stat(to, "", &b);
	if (r < 0)
		return r;
	bool is_link = S_ISLNK(a.st_mode);
	if (with_owner && (a.st_uid != b.st_uid || a.st_gid != b.st_gid)) {
		r = fs_set_owner(io, to, a.st_uid, a.st_gid);
		/* Who may not give it away, keeps it; the group may be one of ours. */
		if (r == -EPERM)
			r = fs_set_owner(io, to, (uid_t)-1, a.st_gid);
		if (r < 0 && r != -EPERM)
			return r;
	}
	r = is_link ? 0 : copy_attributes(io, from, to);
	if (r >= 0 && !is_link)
		r = fs_set_mode(io, to, mode & 07777);
	return r < 0 ? r : fs_set_mtime(io, to, &a.st_mtim);
}

static mode_t mode_of(const struct tree_copy *how, const struct stat *st)
{
	return how->layer ? layer_mode(how->layer, st) : st->st_mode;
}

static int finish(const struct tree_copy *how, int dir, const char *name, int dir2,
		  const char *name2)
{
	struct stat st;
	auto_close int from = fs_open_any(dir, name);
	auto_close int to = fs_open_any(dir2, name2);
	if (from < 0 || to < 0)
		return from < 0 ? from : to;
	int r = fs_stat(from, "", &st);
	return r < 0 ? r : tree_copy_metadata(how->io, from, to, mode_of(how, &st), true);
}

static int make_shell(const struct fs_io *io, const struct stat *st, int dir, const char *name,
		      int dir2, const char *name2)
{
	char text[4097];
	ssize_t n;
	switch (st->st_mode & S_IFMT) {
	case S_IFDIR:
		return fs_make_dir(io, dir2, name2, 0700);
	case S_IFLNK:
		n = at_read_link_of(dir, name, text, sizeof(text));
		return n < 0 ? (int)n : fs_make_link(io, dir2, name2, text);
	case S_IFREG: {
		auto_close int fd = fs_create(io, dir2, name2, 0600);
		return fd < 0 ? fd : 0;
	}
	case S_IFIFO:
	case S_IFSOCK:
		return fs_make_node(io, dir2, name2, (st->st_mode & S_IFMT) | 0600);
	default:
		return -EPERM; /* devices are made by nobody through us */
	}
}

int tree_copy_shell(const struct tree_copy *how, int dir, const char *name, int dir2,
		    const char *name2)
{
	struct stat st;
	int r = fs_stat(dir, name, &st);
	if (r >= 0)
		r = make_shell(how->io, &st, dir, name, dir2, name2);
	return r < 0 ? r : finish(how, dir, name, dir2, name2);
}

/* What overlayfs wrote on a file that becomes one of the host's. */
static int strip_names(const struct tree_copy *how, int fd, const char *names, size_t len)
{
	for (const char *x = names; x < names + len; x += strlen(x) + 1) {
		int r = str_starts(x, "user.overlay.") ? fs_remove_xattr(how->io, fd, x) : 0;
		if (r < 0)
			return r;
	}
	return 0;
}

static int strip(const struct tree_copy *how, int dir, const char *name, const struct stat *st)
{
	auto_free char *names = NULL;
	size_t len = 0;
	if (S_ISLNK(st->st_mode) || !how->layer)
		return 0;
	int r = fs_xattr_names_of(dir, name, &names, &len);
	if (r < 0)
		return r == -ENOTSUP ? 0 : r;
	bool marked = false;
	for (const char *x = names; x < names + len; x += strlen(x) + 1)
		marked = marked || str_starts(x, "user.overlay.");
	mode_t mode = mode_of(how, st) & 07777;
	mode_t now = st->st_mode & 07777;
	if (!marked && mode == now)
		return 0;
	auto_close int fd = fs_open_any(dir, name);
	if (fd < 0)
		return fd;
	/* Attributes want the owner's write permission. */
	if (marked && !(now & 0200)) {
		now |= 0600;
		r = fs_set_mode(how->io, fd, now);
	}
	if (r >= 0)
		r = strip_names(how, fd, names, len);
	return r >= 0 && now != mode ? fs_set_mode(how->io, fd, mode) : r;
}

static int copy_file(const struct tree_copy *how, int dir, const char *name, int dir2,
		     const char *name2)
{
	auto_close int from = how->layer ? layer_open_file(how->layer, dir, name)
					 : fs_open_file(dir, name, O_RDONLY);
	if (from < 0)
		return from;
	auto_close int to = fs_create(how->io, dir2, name2, 0600);
	return to < 0 ? to : tree_copy_data(how->io, from, to);
}

/* One that is no directory. */
static int copy_leaf(const struct tree_copy *how, const struct stat *st, int dir, const char *name,
		     int dir2, const char *name2)
{
	if (how->link) {
		int r = fs_hard_link(how->io, dir, name, dir2, name2);
		if (r >= 0)
			return strip(how, dir2, name2, st);
		if (r != -EMLINK && r != -EPERM && r != -EXDEV && r != -EOPNOTSUPP)
			return r;
	}
	int r = S_ISREG(st->st_mode) ? copy_file(how, dir, name, dir2, name2)
				     : make_shell(how->io, st, dir, name, dir2, name2);
	return r < 0 ? r : finish(how, dir, name, dir2, name2);
}

static const struct copied *find_copied(const struct copier *c, ino_t ino)
{
	uint64_t i = 0;
	return inode_map_find(&c->map, ino, &i) ? &c->copied[i] : NULL;
}

static void note_copied(struct copier *c, ino_t ino, size_t dir, const char *name)
{
	if (c->n_copied == c->room) {
		c->room = c->room ? c->room * 2 : 64;
		c->copied = xrealloc(c->copied, c->room, sizeof(struct copied));
	}
	inode_map_add(&c->map, ino, c->n_copied);
	c->copied[c->n_copied++] = (struct copied){.dir = dir, .name = xstrdup(name)};
}

/* Files of several names become one here, too, where all of them lie in the tree. */
static int copy_entry(struct copier *c, size_t i, int dir, int dir2, const char *name)
{
	struct stat st;
	int r = fs_stat(dir, name, &st);
	if (r < 0)
		return r;
	if (S_ISDIR(st.st_mode)) {
		r = fs_make_dir(c->how->io, dir2, name, 0700);
		return r < 0 ? r : tree_walk_add(&c->walk, i, name);
	}
	if (c->how->layer && S_ISCHR(st.st_mode) && st.st_rdev == makedev(0, 0))
		return 0;
	bool many = st.st_nlink > 1 && !c->how->link;
	const struct copied *seen = many ? find_copied(c, st.st_ino) : NULL;
	if (seen) {
		const char *path = tree_walk_path(&c->walk, seen->dir, c->to_name);
		auto_close int at = path ? fs_open_dir(c->to, path, O_PATH) : -E2BIG;
		r = at < 0 ? at : fs_hard_link(c->how->io, at, seen->name, dir2, name);
		if (r >= 0)
			return 0;
	}
	r = copy_leaf(c->how, &st, dir, name, dir2, name);
	if (r >= 0 && many && !seen)
		note_copied(c, st.st_ino, i, name);
	return r;
}

static int open_source(struct copier *c, size_t i)
{
	const char *path = tree_walk_path(&c->walk, i, c->from_name);
	if (!path)
		return -E2BIG;
	int fd = fs_open_dir(c->from, path, O_RDONLY);
	if (fd != -EACCES || !c->how->layer)
		return fd;
	return fd; /* the scan has made all directories of a layer readable */
}

static int copy_dir(struct copier *c, size_t i)
{
	AUTO(fs_names_done) struct fs_names names = {0};
	auto_close int dir = open_source(c, i);
	if (dir < 0)
		return dir;
	const char *path = tree_walk_path(&c->walk, i, c->to_name);
	auto_close int dir2 = path ? fs_open_dir(c->to, path, O_PATH) : -E2BIG;
	int r = dir2 < 0 ? dir2 : fs_list(dir, NAMES_MAX, &names);
	for (size_t k = 0; r >= 0 && k < names.n; k++)
		r = copy_entry(c, i, dir, dir2, names.v[k]);
	return r;
}

/* Modes and times of directories, the deepest first: they change while entries are made. */
static int finish_dir(struct copier *c, size_t i)
{
	struct stat st;
	const char *path = tree_walk_path(&c->walk, i, c->from_name);
	auto_close int from = path ? fs_open_dir(c->from, path, O_PATH) : -E2BIG;
	if (from < 0)
		return from;
	path = tree_walk_path(&c->walk, i, c->to_name);
	auto_close int to = path ? fs_open_dir(c->to, path, O_PATH) : -E2BIG;
	int r = to < 0 ? to : fs_stat(from, "", &st);
	return r < 0 ? r : tree_copy_metadata(c->how->io, from, to, mode_of(c->how, &st), true);
}

int tree_copy(const struct tree_copy *how, int dir, const char *name, int dir2, const char *name2)
{
	struct stat st;
	int r = fs_stat(dir, name, &st);
	if (r < 0)
		return r;
	if (!S_ISDIR(st.st_mode))
		return copy_leaf(how, &st, dir, name, dir2, name2);
	struct copier c = {
		.how = how, .from = dir, .to = dir2, .from_name = name, .to_name = name2};
	tree_walk_init(&c.walk, dir, name);
	r = fs_make_dir(how->io, dir2, name2, 0700);
	for (size_t i = 0; r >= 0 && i < c.walk.n; i++)
		r = copy_dir(&c, i);
	for (size_t i = c.walk.n; r >= 0 && i > 0; i--)
		r = finish_dir(&c, i - 1);
	for (size_t i = 0; i < c.n_copied; i++)
		free(c.copied[i].name);
	free(c.copied);
	inode_map_done(&c.map);
	tree_walk_done_cleanup(&c.walk);
	return r;
}
