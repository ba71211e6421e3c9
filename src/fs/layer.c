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

static const char modes_name[] = "modes";

static void add_mode(struct layer *layer, ino_t ino, mode_t mode)
{
	layer->modes = xrealloc(layer->modes, layer->n_modes + 1, sizeof(struct layer_mode));
	layer->modes[layer->n_modes++] = (struct layer_mode){.ino = ino, .mode = mode};
}

static const struct layer_mode *find_mode(const struct layer *layer, ino_t ino)
{
	for (size_t i = 0; i < layer->n_modes; i++)
		if (layer->modes[i].ino == ino)
			return &layer->modes[i];
	return NULL;
}

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
		if (!find_mode(layer, (ino_t)ino))
			add_mode(layer, (ino_t)ino, (mode_t)mode & 07777);
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
	free(layer->modes);
	layer->modes = NULL;
	layer->n_modes = 0;
}

mode_t layer_mode(const struct layer *layer, const struct stat *st)
{
	const struct layer_mode *known = layer->n_modes ? find_mode(layer, st->st_ino) : NULL;
	return known ? (st->st_mode & S_IFMT) | known->mode : st->st_mode;
}

static int log_mode(struct layer *layer, const struct stat *st)
{
	char line[64];
	auto_close int fd = fs_open_file(layer->dir, modes_name, O_RDWR);
	if (fd == -ENOENT)
		fd = fs_create(layer->io, layer->dir, modes_name, 0600);
	if (fd < 0)
		return fd;
	off_t end = lseek(fd, 0, SEEK_END);
	int n = snprintf(line, sizeof(line), "%llu %o\n", (unsigned long long)st->st_ino,
			 st->st_mode & 07777);
	int r = fs_write(layer->io, fd, line, (size_t)n, (uint64_t)end);
	if (r >= 0)
		r = fs_sync(layer->io, fd);
	return r >= 0 ? fs_sync(layer->io, layer->dir) : r;
}

/* Makes the object of FD (O_PATH) readable for its owner, who we are. */
static int make_readable(struct layer *layer, int fd)
{
	struct stat st;
	int r = fs_stat(fd, "", &st);
	if (r < 0)
		return r;
	mode_t wanted = S_ISDIR(st.st_mode) ? 0700 : 0400;
	if (st.st_uid != layer->uid || (st.st_mode & wanted) == wanted)
		return -EACCES;
	if (!find_mode(layer, st.st_ino)) {
		r = log_mode(layer, &st);
		if (r < 0)
			return r;
		add_mode(layer, st.st_ino, st.st_mode & 07777);
	}
	return fs_set_mode(layer->io, fd, (st.st_mode & 07777) | wanted);
}

int layer_open_dir(struct layer *layer, const char *path)
{
	int fd = fs_open_dir(layer->upper, path, O_RDONLY);
	if (fd != -EACCES)
		return fd;
	auto_close int held = fs_open_dir(layer->upper, path, O_PATH);
	int r = held < 0 ? held : make_readable(layer, held);
	return r < 0 ? r : fs_open_dir(layer->upper, path, O_RDONLY);
}

int layer_open_file(struct layer *layer, int dir, const char *name)
{
	int fd = fs_open_file(dir, name, O_RDONLY);
	if (fd != -EACCES)
		return fd;
	auto_close int held = fs_open_any(dir, name);
	int r = held < 0 ? held : make_readable(layer, held);
	return r < 0 ? r : fs_open_file(dir, name, O_RDONLY);
}

ssize_t layer_xattr(struct layer *layer, int fd, const char *name, void *out, size_t size)
{
	ssize_t n = fs_xattr_into(fd, name, out, size);
	if (n != -EACCES)
		return n;
	int r = make_readable(layer, fd);
	return r < 0 ? r : fs_xattr_into(fd, name, out, size);
}

bool layer_is_carried(const char *xattr)
{
	if (str_starts(xattr, "user."))
		return !str_starts(xattr, "user.overlay.");
	return str_starts(xattr, "system.posix_acl_") || str_eq(xattr, "security.capability");
}
