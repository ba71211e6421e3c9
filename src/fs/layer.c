/* SPDX-License-Identifier: Apache-2.0 */
/* Layers: opening, and reading what may not be read. */
#include "fs/layer.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/util.h"
#include "fs/file.h"
#include "sys/at.h"

enum { NAMES_MAX = 4 * 1024 * 1024 };

static const char modes_name[] = "modes";

/* A last line without its end was not followed by a change of mode. */
static int read_modes(struct layer *layer)
{
	auto_close int fd = fs_open_file(layer->dir, modes_name, O_RDONLY);
	if (fd < 0)
		return fd == -ENOENT ? 0 : fd;
	char line[64];
	size_t used = 0;
	uint64_t at = 0;
	for (;;) {
		ssize_t n = fs_read(fd, line + used, sizeof(line) - 1 - used, at);
		if (n < 0)
			return (int)n;
		used += (size_t)n;
		at += (uint64_t)n;
		line[used] = '\0';
		char *end = strchr(line, '\n');
		if (!end)
			return used == sizeof(line) - 1 ? -EINVAL : 0;
		const char *p = line;
		uint64_t ino = 0;
		uint64_t mode = 0;
		if (!file_number(&p, 10, ' ', &ino) || !file_number(&p, 8, '\n', &mode))
			return -EINVAL;
		inode_map_add(&layer->modes, ino, mode & 07777);
		used -= (size_t)(end + 1 - line);
		memmove(line, end + 1, used);
	}
}

int layer_open(int dir, const char *lower, const struct timespec *since, const struct fs_io *io,
	       struct layer *ret, struct err *err)
{
	char quoted[QUOTE_SIZE];
	struct layer layer = {.dir = dir,
			      .upper = -1,
			      .since = *since,
			      .io = io,
			      .uid = geteuid(),
			      .gid = getegid()};
	layer.lower = at_open(AT_FDCWD, lower, O_DIRECTORY, 0);
	if (layer.lower < 0)
		return err_sys(err, -layer.lower, "%s cannot be opened",
			       quote_str(lower, quoted, sizeof(quoted)));
	layer.upper = fs_open_dir(dir, "upper", O_PATH);
	int r = layer.upper < 0 ? layer.upper : read_modes(&layer);
	if (r < 0) {
		layer_done(&layer);
		return err_sys(err, -r, "the layer over %s cannot be read",
			       quote_str(lower, quoted, sizeof(quoted)));
	}
	*ret = layer;
	return 0;
}

void layer_done(struct layer *layer)
{
	layer->upper = util_close(layer->upper);
	layer->lower = util_close(layer->lower);
	inode_map_done(&layer->modes);
}

mode_t layer_mode(const struct layer *layer, const struct stat *st)
{
	uint64_t mode = 0;
	if (!inode_map_find(&layer->modes, st->st_ino, &mode))
		return st->st_mode;
	return (st->st_mode & S_IFMT) | (mode_t)mode;
}

static mode_t wanted_mode(const struct stat *st)
{
	return S_ISDIR(st->st_mode) ? 0700 : 0400;
}

static int append_log(struct layer *layer, const struct buf *lines)
{
	auto_close int fd = fs_open_file(layer->dir, modes_name, O_RDWR);
	bool is_new = fd == -ENOENT;
	if (is_new)
		fd = fs_create(layer->io, layer->dir, modes_name, 0600);
	if (fd < 0)
		return fd;
	off_t end = lseek(fd, 0, SEEK_END);
	int r = fs_write(layer->io, fd, lines->data, lines->len, (uint64_t)end);
	if (r >= 0)
		r = fs_sync(layer->io, fd);
	return r >= 0 && is_new ? fs_sync(layer->io, layer->dir) : r;
}

/* All that is closed in DIR at once, so that a sandbox cannot make us sync for each. */
static int log_dir(struct layer *layer, int dir)
{
	AUTO(fs_names_done) struct fs_names names = {0};
	AUTO(buf_done) struct buf lines = BUF_INIT((size_t)256 * 1024 * 1024);
	auto_close int fd = fs_open_dir(dir, "", O_RDONLY);
	int r = fd < 0 ? fd : fs_list(fd, NAMES_MAX, &names);
	for (size_t i = 0; r >= 0 && i < names.n; i++) {
		struct stat st;
		uint64_t known = 0;
		r = fs_stat(fd, names.v[i], &st);
		if (r < 0 || !(S_ISDIR(st.st_mode) || S_ISREG(st.st_mode)) ||
		    st.st_uid != layer->uid ||
		    (st.st_mode & wanted_mode(&st)) == wanted_mode(&st) ||
		    inode_map_find(&layer->modes, st.st_ino, &known))
			continue;
		buf_printf(&lines, "%llu %o\n", (unsigned long long)st.st_ino, st.st_mode & 07777);
		inode_map_add(&layer->modes, st.st_ino, st.st_mode & 07777);
	}
	if (r < 0 || lines.error)
		return r < 0 ? r : lines.error;
	return lines.len ? append_log(layer, &lines) : 0;
}

/* Makes the object of FD (O_PATH), which lies in DIR, readable for its owner, who we are. */
static int make_readable(struct layer *layer, int dir, int fd)
{
	struct stat st;
	uint64_t known = 0;
	int r = fs_stat(fd, "", &st);
	if (r < 0)
		return r;
	mode_t wanted = wanted_mode(&st);
	if (st.st_uid != layer->uid || (st.st_mode & wanted) == wanted)
		return -EACCES;
	if (!inode_map_find(&layer->modes, st.st_ino, &known)) {
		r = log_dir(layer, dir);
		if (r < 0)
			return r;
		if (!inode_map_find(&layer->modes, st.st_ino, &known))
			return -EACCES;
	}
	return fs_set_mode(layer->io, fd, (st.st_mode & 07777) | wanted);
}

int layer_open_dir(struct layer *layer, const char *path)
{
	int fd = fs_open_dir(layer->upper, path, O_RDONLY);
	if (fd != -EACCES || !*path)
		return fd;
	const char *slash = strrchr(path, '/');
	auto_free char *above = xstrndup(path, slash ? (size_t)(slash - path) : 0);
	auto_close int dir = fs_open_dir(layer->upper, above, O_PATH);
	auto_close int held = dir < 0 ? dir : fs_open_any(dir, slash ? slash + 1 : path);
	int r = held < 0 ? held : make_readable(layer, dir, held);
	return r < 0 ? r : fs_open_dir(layer->upper, path, O_RDONLY);
}

int layer_open_file(struct layer *layer, int dir, const char *name)
{
	int fd = fs_open_file(dir, name, O_RDONLY);
	if (fd != -EACCES)
		return fd;
	auto_close int held = fs_open_any(dir, name);
	int r = held < 0 ? held : make_readable(layer, dir, held);
	return r < 0 ? r : fs_open_file(dir, name, O_RDONLY);
}

ssize_t layer_xattr(struct layer *layer, int dir, int fd, const char *name, void *out, size_t size)
{
	ssize_t n = fs_xattr_into(fd, name, out, size);
	if (n != -EACCES)
		return n;
	int r = make_readable(layer, dir, fd);
	return r < 0 ? r : fs_xattr_into(fd, name, out, size);
}

bool layer_is_carried(const char *xattr)
{
	if (str_starts(xattr, "user."))
		return !str_starts(xattr, "user.overlay.");
	return str_starts(xattr, "system.posix_acl_") || str_eq(xattr, "security.capability");
}
