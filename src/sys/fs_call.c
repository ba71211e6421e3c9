/* SPDX-License-Identifier: Apache-2.0 */
/* Changes to trees, each past the hook. */
#include "sys/fs_call.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/util.h"
#include "sys/at.h"
#include "sys/uapi.h"

static int do_call(const struct fs_call *c)
{
	switch (c->op) {
	case FS_MKDIR:
		return mkdirat(c->dir, c->name, (mode_t)c->value) < 0 ? -errno : 0;
	case FS_CREATE: {
		int fd = openat(c->dir, c->name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
				(mode_t)c->value);
		return fd < 0 ? -errno : fd;
	}
	case FS_SYMLINK:
		return symlinkat(c->data, c->dir, c->name) < 0 ? -errno : 0;
	case FS_MKNOD:
		return mknodat(c->dir, c->name, (mode_t)c->value, 0) < 0 ? -errno : 0;
	case FS_LINK:
		return at_hard_link(c->dir, c->name, c->dir2, c->name2);
	case FS_RENAME:
		return at_rename(c->dir, c->name, c->dir2, c->name2, (unsigned int)c->value);
	case FS_UNLINK:
		return at_unlink(c->dir, c->name, (int)c->value);
	case FS_WRITE:
		return pwrite(c->fd, c->data, c->len, (off_t)c->value) == (ssize_t)c->len
			       ? 0
			       : -(errno ? errno : ENOSPC);
	case FS_TRUNCATE:
		return ftruncate(c->fd, (off_t)c->value) < 0 ? -errno : 0;
	case FS_CLONE:
		return ioctl(c->fd, UAPI_FICLONE, c->dir) < 0 ? -errno : 0;
	case FS_SET_MODE:
		return at_set_mode(c->fd, true, (mode_t)c->value);
	case FS_SET_OWNER:
		return at_set_owner(c->fd, true, (uid_t)(c->value >> 32), (gid_t)c->value);
	case FS_SET_TIMES:
		return at_set_times(c->fd, true, c->times);
	case FS_SET_XATTR:
		return at_set_xattr(c->fd, true, c->name, c->data, c->len, 0);
	case FS_REMOVE_XATTR:
		return at_remove_xattr(c->fd, true, c->name);
	case FS_SYNC:
		return fsync(c->fd) < 0 ? -errno : 0;
	case FS_SYNC_ALL:
		return syncfs(c->fd) < 0 ? -errno : 0;
	case FS_IDENTIFY:
	case FS_OP_COUNT:
		break;
	}
	return -EINVAL;
}

static int call(const struct fs_io *io, struct fs_call *c)
{
	int r = io && io->hook ? io->hook(io->data, c) : 0;
	if (r < 0)
		return r;
	errno = 0;
	r = do_call(c);
	if (r < 0 || !io || !io->hook)
		return r;
	c->after = true;
	if (c->op == FS_CREATE)
		c->fd = r;
	(void)io->hook(io->data, c);
	return r;
}

int fs_make_dir(const struct fs_io *io, int dir, const char *name, mode_t mode)
{
	return call(io, &(struct fs_call){.op = FS_MKDIR, .dir = dir, .name = name, .value = mode});
}

int fs_create(const struct fs_io *io, int dir, const char *name, mode_t mode)
{
	return call(io,
		    &(struct fs_call){.op = FS_CREATE, .dir = dir, .name = name, .value = mode});
}

int fs_make_link(const struct fs_io *io, int dir, const char *name, const char *text)
{
	return call(io,
		    &(struct fs_call){.op = FS_SYMLINK, .dir = dir, .name = name, .data = text});
}

int fs_make_node(const struct fs_io *io, int dir, const char *name, mode_t mode)
{
	return call(io, &(struct fs_call){.op = FS_MKNOD, .dir = dir, .name = name, .value = mode});
}

int fs_hard_link(const struct fs_io *io, int dir, const char *name, int dir2, const char *name2)
{
	return call(io,
		    &(struct fs_call){
			    .op = FS_LINK, .dir = dir, .name = name, .dir2 = dir2, .name2 = name2});
}

int fs_rename(const struct fs_io *io, int dir, const char *name, int dir2, const char *name2,
	      unsigned int flags)
{
	return call(io, &(struct fs_call){.op = FS_RENAME,
					  .dir = dir,
					  .name = name,
					  .dir2 = dir2,
					  .name2 = name2,
					  .value = flags});
}

int fs_unlink(const struct fs_io *io, int dir, const char *name, int flags)
{
	return call(io,
		    &(struct fs_call){
			    .op = FS_UNLINK, .dir = dir, .name = name, .value = (uint64_t)flags});
}

int fs_write(const struct fs_io *io, int fd, const void *data, size_t len, uint64_t offset)
{
	return call(io,
		    &(struct fs_call){
			    .op = FS_WRITE, .fd = fd, .data = data, .len = len, .value = offset});
}

int fs_truncate(const struct fs_io *io, int fd, uint64_t size)
{
	return call(io, &(struct fs_call){.op = FS_TRUNCATE, .fd = fd, .value = size});
}

int fs_clone(const struct fs_io *io, int from, int to)
{
	return call(io, &(struct fs_call){.op = FS_CLONE, .fd = to, .dir = from});
}

int fs_set_mode(const struct fs_io *io, int fd, mode_t mode)
{
	return call(io, &(struct fs_call){.op = FS_SET_MODE, .fd = fd, .value = mode});
}

int fs_set_owner(const struct fs_io *io, int fd, uid_t uid, gid_t gid)
{
	return call(io, &(struct fs_call){
				.op = FS_SET_OWNER, .fd = fd, .value = (uint64_t)uid << 32 | gid});
}

int fs_set_mtime(const struct fs_io *io, int fd, const struct timespec *mtime)
{
	struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, *mtime};
	return call(io, &(struct fs_call){.op = FS_SET_TIMES, .fd = fd, .times = times});
}

int fs_set_xattr(const struct fs_io *io, int fd, const char *name, const void *value, size_t len)
{
	return call(io,
		    &(struct fs_call){
			    .op = FS_SET_XATTR, .fd = fd, .name = name, .data = value, .len = len});
}

int fs_remove_xattr(const struct fs_io *io, int fd, const char *name)
{
	return call(io, &(struct fs_call){.op = FS_REMOVE_XATTR, .fd = fd, .name = name});
}

int fs_sync(const struct fs_io *io, int fd)
{
	return call(io, &(struct fs_call){.op = FS_SYNC, .fd = fd});
}

int fs_sync_all(const struct fs_io *io, int fd)
{
	return call(io, &(struct fs_call){.op = FS_SYNC_ALL, .fd = fd});
}

int fs_identify(const struct fs_io *io, int dir, const char *name, struct fs_id *ret)
{
	struct statx sx;
	struct fs_id id = {0};
	if (statx(dir, name, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT, STATX_INO | STATX_BTIME, &sx) <
	    0)
		return -errno;
	id.ino = sx.stx_ino;
	if (sx.stx_mask & STATX_BTIME)
		id.born = (uint64_t)sx.stx_btime.tv_sec * 1000000000u + sx.stx_btime.tv_nsec;
	if (io && io->hook) {
		struct fs_call c = {.op = FS_IDENTIFY, .dir = dir, .name = name, .id = &id};
		int r = io->hook(io->data, &c);
		if (r < 0)
			return r;
	}
	*ret = id;
	return 0;
}

bool fs_id_same(const struct fs_id *a, const struct fs_id *b)
{
	return a->ino == b->ino && a->born == b->born;
}
