/* SPDX-License-Identifier: Apache-2.0 */
/* Path calls relative to descriptors. */
#include "sys/at.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/util.h"
#include "sys/uapi.h"

/* "/proc/self/fd/N": of this process, whose table its threads share. */
struct fd_name {
	char text[32];
};

static struct fd_name fd_name(int fd)
{
	struct fd_name name;
	snprintf(name.text, sizeof(name.text), "/proc/self/fd/%d", fd);
	return name;
}

int at_open(int dir, const char *path, uint64_t flags, uint64_t resolve)
{
	struct open_how how = {.flags = O_PATH | O_CLOEXEC | flags, .resolve = resolve};
	int fd = (int)syscall(SYS_openat2, dir, path, &how, sizeof(how));
	return fd < 0 ? -errno : fd;
}

static int info(int dir, const char *name, int flags, struct at_info *ret)
{
	const unsigned int mask =
		STATX_TYPE | STATX_MODE | STATX_INO | STATX_NLINK | STATX_UID | STATX_MNT_ID;
	struct statx sx;
	if (statx(dir, name, flags | AT_STATX_DONT_SYNC | AT_NO_AUTOMOUNT, mask, &sx) < 0)
		return -errno;
	*ret = (struct at_info){.mode = sx.stx_mode,
				.nlink = sx.stx_nlink,
				.uid = sx.stx_uid,
				.dev = makedev(sx.stx_dev_major, sx.stx_dev_minor),
				.ino = sx.stx_ino,
				.mnt = sx.stx_mnt_id};
	return 0;
}

int at_info(int fd, struct at_info *ret)
{
	return info(fd, "", AT_EMPTY_PATH, ret);
}

int at_info_of(int dir, const char *name, struct at_info *ret)
{
	return info(dir, name, AT_SYMLINK_NOFOLLOW, ret);
}

static ssize_t ended(ssize_t n, char *text, size_t size)
{
	if (n < 0)
		return -errno;
	if ((size_t)n >= size)
		return -ENAMETOOLONG;
	text[n] = '\0';
	return n;
}

ssize_t at_read_link(int fd, char *ret_text, size_t size)
{
	return ended(readlinkat(fd, "", ret_text, size), ret_text, size);
}

ssize_t at_name(int fd, char *ret_text, size_t size)
{
	return ended(readlink(fd_name(fd).text, ret_text, size), ret_text, size);
}

int at_file_system(int fd, uint32_t *ret_magic, uint64_t *ret_flags)
{
	struct statfs fs;
	if (fstatfs(fd, &fs) < 0)
		return -errno;
	*ret_magic = (uint32_t)fs.f_type;
	*ret_flags = (uint64_t)fs.f_flags;
	return 0;
}

bool at_is_slow(int fd)
{
	/* linux/magic.h does not name these. */
	enum { MAGIC_CEPH = 0x00c36400, MAGIC_LUSTRE = 0x0bd00bd0, MAGIC_GFS2 = 0x01161970 };
	static const uint32_t quick[] = {
		EXT4_SUPER_MAGIC,     XFS_SUPER_MAGIC,	 BTRFS_SUPER_MAGIC,
		TMPFS_MAGIC,	      RAMFS_MAGIC,	 OVERLAYFS_SUPER_MAGIC,
		F2FS_SUPER_MAGIC,     PROC_SUPER_MAGIC,	 SYSFS_MAGIC,
		SQUASHFS_MAGIC,	      MSDOS_SUPER_MAGIC, DEVPTS_SUPER_MAGIC,
		EROFS_SUPER_MAGIC_V1, 0x2fc12fc1 /* ZFS */};
	struct statfs fs;
	if (fstatfs(fd, &fs) < 0)
		return true;
	for (size_t i = 0; i < ARRAY_SIZE(quick); i++)
		if ((uint32_t)fs.f_type == quick[i])
			return false;
	return true;
}

ssize_t at_read_file(int dir, const char *path, char *ret_text, size_t size)
{
	auto_close int fd = openat(dir, path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (fd < 0)
		return -errno;
	size_t used = 0;
	while (used < size - 1) {
		ssize_t n = read(fd, ret_text + used, size - 1 - used);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			break;
		used += (size_t)n;
	}
	ret_text[used] = '\0';
	return (ssize_t)used;
}

int at_access(int fd, int mode)
{
	/* The raw call: where the kernel lacks the flags, libc judges by ids and modes itself. */
	long r = syscall(SYS_faccessat2, fd, "", mode, AT_EMPTY_PATH | AT_EACCESS);
	return r < 0 ? -errno : 0;
}

int at_set_mode(int fd, bool is_path, mode_t mode)
{
	int r;
	if (!is_path) {
		r = fchmod(fd, mode);
		return r < 0 ? -errno : 0;
	}
	/* 6.6; before that, and where an outer filter does not know it, by way of procfs. */
	r = (int)syscall(__NR_fchmodat2, fd, "", mode, AT_EMPTY_PATH);
	if (r < 0 && (errno == ENOSYS || errno == EPERM))
		r = chmod(fd_name(fd).text, mode);
	return r < 0 ? -errno : 0;
}

int at_set_owner(int fd, bool is_path, uid_t uid, gid_t gid)
{
	int r = is_path ? fchownat(fd, "", uid, gid, AT_EMPTY_PATH) : fchown(fd, uid, gid);
	return r < 0 ? -errno : 0;
}

int at_set_times(int fd, bool is_path, const struct timespec *times)
{
	long r = is_path ? syscall(SYS_utimensat, fd, "", times, AT_EMPTY_PATH)
			 : syscall(SYS_utimensat, fd, NULL, times, 0);
	return r < 0 ? -errno : 0;
}

int at_set_xattr(int fd, bool is_path, const char *name, const void *value, size_t size, int flags)
{
	int r = is_path ? setxattr(fd_name(fd).text, name, value, size, flags)
			: fsetxattr(fd, name, value, size, flags);
	return r < 0 ? -errno : 0;
}

int at_remove_xattr(int fd, bool is_path, const char *name)
{
	int r = is_path ? removexattr(fd_name(fd).text, name) : fremovexattr(fd, name);
	return r < 0 ? -errno : 0;
}

int at_watch(int inotify, int fd, uint32_t mask)
{
	/* The object is named by a magic link, which must be followed whatever it is. */
	int wd = inotify_add_watch(inotify, fd_name(fd).text, mask & ~(uint32_t)IN_DONT_FOLLOW);
	return wd < 0 ? -errno : wd;
}

int at_reopen(int fd, int flags)
{
	int r = open(fd_name(fd).text, flags | O_CLOEXEC);
	return r < 0 ? -errno : r;
}

int at_open_entry(int dir, const char *name, int flags, mode_t mode)
{
	int r = openat(dir, name, flags | O_NOFOLLOW | O_CLOEXEC, mode);
	return r < 0 ? -errno : r;
}

DIR *at_dir(int dir, const char *path)
{
	auto_close int fd = openat(dir, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *d = fd >= 0 ? fdopendir(fd) : NULL;
	if (d)
		(void)take_fd(&fd);
	return d;
}

void at_dir_done_cleanup(DIR **dir)
{
	if (*dir)
		closedir(*dir);
}

ssize_t at_read_link_of(int dir, const char *name, char *ret_text, size_t size)
{
	return ended(readlinkat(dir, name, ret_text, size), ret_text, size);
}

int at_make_dir(int dir, const char *name, mode_t mode)
{
	return mkdirat(dir, name, mode) < 0 ? -errno : 0;
}

int at_make_link(int dir, const char *name, const char *text)
{
	return symlinkat(text, dir, name) < 0 ? -errno : 0;
}

int at_unlink(int dir, const char *name, int flags)
{
	return unlinkat(dir, name, flags) < 0 ? -errno : 0;
}

int at_rename(int from_dir, const char *from, int to_dir, const char *to, unsigned int flags)
{
	return syscall(SYS_renameat2, from_dir, from, to_dir, to, flags) < 0 ? -errno : 0;
}

int at_hard_link(int from_dir, const char *from, int to_dir, const char *to)
{
	return linkat(from_dir, from, to_dir, to, 0) < 0 ? -errno : 0;
}
