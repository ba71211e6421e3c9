/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The walk over a layer. Directories wait in a list of nodes and are opened by their path from the
 * top, so that neither the stack nor the number of descriptors grows with the depth.
 */
#include "fs/changes.h"

#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>

#include "base/err.h"
#include "base/util.h"
#include "fs/layer.h"
#include "sys/fs_call.h"

struct walk {
	struct layer *layer;
	struct changes *out;
	struct change **unread; /* directories still to be read */
	size_t n_unread;
	size_t room;
};

static const char *const kind_names[NODE_KIND_COUNT] = {
	[NODE_ABSENT] = "absent",   [NODE_FILE] = "file", [NODE_DIR] = "dir",
	[NODE_SYMLINK] = "symlink", [NODE_FIFO] = "fifo", [NODE_SOCKET] = "socket",
	[NODE_DEVICE] = "device",
};

const char *node_kind_name(enum node_kind kind)
{
	return kind_names[kind];
}

static enum node_kind kind_of(mode_t mode)
{
	switch (mode & S_IFMT) {
	case S_IFREG:
		return NODE_FILE;
	case S_IFDIR:
		return NODE_DIR;
	case S_IFLNK:
		return NODE_SYMLINK;
	case S_IFIFO:
		return NODE_FIFO;
	case S_IFSOCK:
		return NODE_SOCKET;
	default:
		return NODE_DEVICE;
	}
}

static struct change_side side_of(const struct stat *st, mode_t mode)
{
	return (struct change_side){
		.kind = kind_of(st->st_mode),
		.mode = mode & 07777,
		.uid = st->st_uid,
		.gid = st->st_gid,
		.size = S_ISREG(st->st_mode) || S_ISLNK(st->st_mode) ? (uint64_t)st->st_size : 0,
		.ino = st->st_ino,
		.nlink = st->st_nlink,
		.mtime = st->st_mtim,
		.ctime = st->st_ctim,
	};
}

static bool is_later(const struct timespec *a, const struct timespec *b)
{
	return a->tv_sec != b->tv_sec ? a->tv_sec > b->tv_sec : a->tv_nsec > b->tv_nsec;
}

struct change *change_skip(const struct change *c)
{
	while (c && !c->next)
		c = c->parent;
	return c ? c->next : NULL;
}

struct change *change_next(const struct change *c)
{
	return c->children ? c->children : change_skip(c);
}

int change_path(const struct change *c, struct buf *b)
{
	size_t len = 0;
	for (const struct change *at = c; at->parent; at = at->parent)
		len += strlen(at->name) + 1;
	buf_clear(b);
	if (len == 0)
		return buf_add_str(b, "");
	if (len > CHANGES_PATH_MAX)
		return -E2BIG;
	auto_free char *text = xzalloc(len);
	size_t end = len - 1;
	for (const struct change *at = c; at->parent; at = at->parent) {
		size_t n = strlen(at->name);
		memcpy(text + end - n, at->name, n);
		if (end > n)
			text[end - n - 1] = '/';
		end -= n + (end > n);
	}
	return buf_add(b, text, len - 1);
}

void changes_done(struct changes *changes)
{
	struct change *c = changes->root;
	while (c) {
		/* The first child takes the place of its siblings' list until that is empty. */
		if (c->children) {
			struct change *child = c->children;
			c->children = NULL;
			c = child;
			continue;
		}
		struct change *after = c->next ? c->next : c->parent;
		free(c->name);
		free(c);
		c = after;
	}
	*changes = (struct changes){0};
}

void changes_done_cleanup(struct changes *changes)
{
	changes_done(changes);
}

static void wait_for(struct walk *w, struct change *c)
{
	if (w->n_unread == w->room) {
		w->room = w->room ? w->room * 2 : 64;
		w->unread = xrealloc(w->unread, w->room, sizeof(struct change *));
	}
	w->unread[w->n_unread++] = c;
}

/* Whether the attribute says yes; what overlayfs would not write itself is an error. */
static int overlay_mark(struct layer *layer, int dir, int fd, const char *name, char *ret_value)
{
	char value[8];
	ssize_t n = layer_xattr(layer, dir, fd, name, value, sizeof(value));
	if (n == -ENODATA || n == -ENOTSUP || n == -EPERM)
		return 0;
	if (n == -ERANGE || n == 0)
		value[0] = '\0';
	else if (n < 0)
		return (int)n;
	*ret_value = value[0];
	return 1;
}

static bool has_name(const char *names, size_t len, const char *wanted)
{
	for (const char *name = names; name < names + len; name += strlen(name) + 1)
		if (str_eq(name, wanted))
			return true;
	return false;
}

static int read_marks(struct layer *layer, int up_dir, struct change *c)
{
	char value = 0;
	auto_free char *names = NULL;
	size_t len = 0;
	const char *self = c->parent ? c->name : ".";
	int r = fs_xattr_names_of(up_dir, self, &names, &len);
	if (r < 0)
		return r == -ENOTSUP || r == -EPERM ? 0 : r;
	/* Forms of layer that userxattr does not know; neither can a program make them. */
	if (has_name(names, len, "user.overlay.redirect") ||
	    has_name(names, len, "user.overlay.metacopy"))
		return -ENOTSUP;
	c->is_copy = has_name(names, len, "user.overlay.origin");
	if (c->after.kind != NODE_DIR || !has_name(names, len, "user.overlay.opaque"))
		return 0;
	auto_close int fd = fs_open_any(up_dir, self);
	r = fd < 0 ? fd : overlay_mark(layer, up_dir, fd, "user.overlay.opaque", &value);
	if (r < 0)
		return r;
	c->is_opaque = r > 0 && value == 'y';
	return 0;
}

/* Whiteouts: a device 0:0, or (made by other programs only) an empty file that says so. */
static int is_whiteout(struct layer *layer, int up_dir, const char *name, const struct stat *st)
{
	char value = 0;
	if (S_ISCHR(st->st_mode))
		return st->st_rdev == makedev(0, 0);
	if (!S_ISREG(st->st_mode) || st->st_size != 0)
		return 0;
	auto_free char *names = NULL;
	size_t len = 0;
	int r = fs_xattr_names_of(up_dir, name, &names, &len);
	if (r < 0 || !has_name(names, len, "user.overlay.whiteout"))
		return r == -ENOTSUP || r == -EPERM || r == -ENAMETOOLONG || r >= 0 ? 0 : r;
	auto_close int fd = fs_open_any(up_dir, name);
	return fd < 0 ? fd : overlay_mark(layer, up_dir, fd, "user.overlay.whiteout", &value);
}

static void note_conflict(struct walk *w, struct change *c, const struct change_side *dir)
{
	const struct timespec *since = &w->layer->since;
	if (c->kind == CHANGE_NONE)
		return;
	if (c->kind == CHANGE_ADDED) {
		/* A copy without its original was renamed, unless somebody worked down there. */
		if (c->is_copy && dir && is_later(&dir->ctime, since))
			c->conflict = CONFLICT_REMOVED;
	} else if (is_later(&c->before.ctime, since)) {
		/* Another's new entry in a directory is no change of the directory's mode. */
		bool entries_only = c->kind == CHANGE_MODIFIED && c->before.kind == NODE_DIR &&
				    !(c->what & CHANGE_TYPE) && is_later(&c->before.mtime, since);
		if (!entries_only)
			c->conflict = CONFLICT_CHANGED;
	}
	w->out->n_conflicts += c->conflict != CONFLICT_NONE;
}

/* Decides the kind of change from both sides, which are known. */
static int judge(struct walk *w, int up, int low, struct change *c)
{
	const struct change_side *dir = c->parent ? &c->parent->before : NULL;
	if (c->after.kind == NODE_ABSENT) {
		c->kind = CHANGE_DELETED;
	} else if (c->before.kind == NODE_ABSENT) {
		c->kind = CHANGE_ADDED;
	} else if (c->before.kind != c->after.kind) {
		c->kind = CHANGE_MODIFIED;
		c->what = CHANGE_TYPE;
	} else {
		int what = changes_compare(w->layer, up, low, c);
		if (what < 0)
			return what;
		c->what = (unsigned int)what;
		if (c->after.kind == NODE_DIR && !(c->what & ~CHANGE_TIME))
			c->kind = CHANGE_NONE;
		else
			c->kind = c->what ? CHANGE_MODIFIED : CHANGE_NONE;
	}
	w->out->n_listed += c->kind != CHANGE_NONE;
	note_conflict(w, c, dir);
	return 0;
}

/* Looks at NAME on both sides (-1: that side is not there). *RET is NULL where nothing is. */
static int look(struct walk *w, struct change *parent, int up, int low, const char *name,
		struct change **ret)
{
	struct stat st;
	struct change found = {.parent = parent};
	bool hidden = false;
	*ret = NULL;
	int r = up >= 0 ? fs_stat(up, name, &st) : -ENOENT;
	if (r == 0) {
		int white = is_whiteout(w->layer, up, name, &st);
		if (white < 0)
			return white;
		hidden = white > 0;
		if (!hidden)
			found.after = side_of(&st, layer_mode(w->layer, &st));
	} else if (r != -ENOENT) {
		return r;
	}
	r = low >= 0 ? fs_stat(low, name, &st) : -ENOENT;
	if (r == 0)
		found.before = side_of(&st, st.st_mode);
	else if (r != -ENOENT && r != -ENOTDIR)
		return r;
	if (found.before.kind == NODE_ABSENT && found.after.kind == NODE_ABSENT)
		return 0;
	if (w->out->n_nodes == CHANGES_MAX)
		return -E2BIG;
	struct change *c = xnew(struct change);
	*c = found;
	c->name = xstrdup(name);
	w->out->n_nodes++;
	*ret = c;
	return 0;
}

static int add_node(struct walk *w, struct change *parent, int up, int low, const char *name,
		    struct change ***tail)
{
	struct change *c = NULL;
	int r = look(w, parent, up, low, name, &c);
	if (r < 0 || !c)
		return r;
	**tail = c;
	*tail = &c->next;
	if (c->after.kind != NODE_ABSENT) {
		r = read_marks(w->layer, up, c);
		if (r < 0)
			return r;
		/* What is hidden from the sandbox stays so in all directories below. */
		c->is_opaque = c->is_opaque || parent->is_opaque;
	}
	r = judge(w, up, low, c);
	if (r < 0)
		return r;
	if (c->after.kind == NODE_DIR || c->before.kind == NODE_DIR)
		wait_for(w, c);
	return 0;
}

/* The union of both lists, in order; where LOW_NAMES is empty only what the upper has. */
static int merge(struct walk *w, struct change *dir, int up, int low,
		 const struct fs_names *up_names, const struct fs_names *low_names)
{
	struct change **tail = &dir->children;
	size_t i = 0;
	size_t j = 0;
	while (i < up_names->n || j < low_names->n) {
		int order = i == up_names->n	? 1
			    : j == low_names->n ? -1
						: strcmp(up_names->v[i], low_names->v[j]);
		const char *name = order <= 0 ? up_names->v[i] : low_names->v[j];
		i += order <= 0;
		j += order >= 0;
		int r = add_node(w, dir, order <= 0 ? up : -1, low, name, &tail);
		if (r < 0)
			return r;
	}
	return 0;
}

static int read_dir(struct walk *w, struct change *dir, struct buf *path)
{
	AUTO(fs_names_done) struct fs_names up_names = {0};
	AUTO(fs_names_done) struct fs_names low_names = {0};
	auto_close int up = -1;
	auto_close int low = -1;
	int r = change_path(dir, path);
	if (r < 0)
		return r;
	bool has_up = dir->after.kind == NODE_DIR;
	bool has_low = dir->before.kind == NODE_DIR;
	if (has_up) {
		up = layer_open_dir(w->layer, buf_text(path));
		r = up < 0 ? up : fs_list(up, CHANGES_MAX, &up_names);
		if (r < 0)
			return r;
	}
	if (has_low) {
		bool all = !has_up || dir->is_opaque;
		low = fs_open_dir(w->layer->lower, buf_text(path), all ? O_RDONLY : O_PATH);
		if (low == -EACCES && !has_up)
			return 0; /* it goes as a whole, unseen */
		r = low < 0 ? low : all ? fs_list(low, CHANGES_MAX, &low_names) : 0;
		if (r < 0)
			return r;
	}
	return merge(w, dir, up, low, &up_names, &low_names);
}

static int scan_root(struct walk *w)
{
	struct stat up;
	struct stat low;
	int r = fs_stat(w->layer->upper, "", &up);
	if (r < 0)
		return r;
	r = fs_stat(w->layer->lower, "", &low);
	if (r < 0)
		return r;
	struct change *root = xnew(struct change);
	w->out->root = root;
	w->out->n_nodes = 1;
	root->name = xstrdup("");
	root->before = side_of(&low, low.st_mode);
	root->after = side_of(&up, layer_mode(w->layer, &up));
	wait_for(w, root);
	r = read_marks(w->layer, w->layer->upper, root);
	return r < 0 ? r : judge(w, w->layer->upper, w->layer->lower, root);
}

int changes_scan(struct layer *layer, struct changes *ret, struct err *err)
{
	AUTO(changes_done) struct changes out = {0};
	AUTO(buf_done) struct buf path = BUF_INIT(CHANGES_PATH_MAX);
	struct walk w = {.layer = layer, .out = &out};
	int r = scan_root(&w);
	while (r >= 0 && w.n_unread)
		r = read_dir(&w, w.unread[--w.n_unread], &path);
	free(w.unread);
	if (r < 0) {
		char quoted[QUOTE_SIZE];
		return err_sys(err, -r, "the changes in %s of the workspace cannot be read",
			       quote_str(path.len ? buf_text(&path) : ".", quoted, sizeof(quoted)));
	}
	*ret = out;
	out = (struct changes){0};
	return 0;
}

static bool matches(const char *glob, const char *path)
{
	/* A plain fnmatch lets `*` stop at a slash; "**" is asked for by leaving that out. */
	int flags = strstr(glob, "**") ? 0 : FNM_PATHNAME;
	return fnmatch(glob, path, flags) == 0;
}

/* What replaces a directory, or was one, goes with all that was in it. */
static bool takes_all(const struct change *c)
{
	return c->is_whole || (c->is_chosen && (c->what & CHANGE_TYPE)) ||
	       (c->is_chosen && c->kind == CHANGE_DELETED);
}

size_t changes_choose(struct changes *changes, const char *glob)
{
	AUTO(buf_done) struct buf path = BUF_INIT(CHANGES_PATH_MAX);
	size_t n = 0;
	for (struct change *c = changes->root; c; c = change_next(c)) {
		c->is_whole =
			!glob || (c->parent && takes_all(c->parent)) ||
			(c->parent && change_path(c, &path) >= 0 && matches(glob, buf_text(&path)));
		c->is_chosen = c->is_whole;
		if (!c->is_chosen || c->kind == CHANGE_NONE)
			continue;
		n++;
		/* A file cannot come without the new directory that it lies in. */
		struct change *up = c->parent;
		for (; up && !up->is_chosen && up->after.kind == NODE_DIR; up = up->parent) {
			up->is_chosen = up->kind == CHANGE_ADDED || (up->what & CHANGE_TYPE);
			if (!up->is_chosen)
				break;
			n++;
		}
	}
	return n;
}
