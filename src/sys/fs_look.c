/* SPDX-License-Identifier: Apache-2.0 */
/* The reading half of fs_call.h. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/util.h"
#include "sys/fs_call.h"

int fs_stat(int dir, const char *name, struct stat *ret)
{
	struct stat st;
	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH | AT_NO_AUTOMOUNT) < 0)
		return -errno;
	*ret = st;
	return 0;
}

int fs_mount_id(int fd, uint64_t *ret)
{
	struct statx sx;
	if (statx(fd, "", AT_EMPTY_PATH, STATX_MNT_ID, &sx) < 0)
		return -errno;
	*ret = sx.stx_mnt_id;
	return 0;
}

static int open_step(int dir, const char *path, int flags)
{
	struct open_how how = {
		.flags = (uint64_t)(unsigned int)flags | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC,
		.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_XDEV,
	};
	int fd = (int)syscall(SYS_openat2, dir, path, &how, sizeof(how));
	return fd < 0 ? -errno : fd;
}

int fs_open_dir(int root, const char *path, int flags)
{
	enum { STEP = 3000 };
	char part[STEP + 1];
	auto_close int at = -1;
	if (!*path)
		return open_step(root, ".", flags);
	for (;;) {
		size_t len = strlen(path);
		if (len <= STEP)
			return open_step(at >= 0 ? at : root, path, flags);
		len = STEP;
		while (len > 0 && path[len] != '/')
			len--;
		if (len == 0)
			return -ENAMETOOLONG;
		memcpy(part, path, len);
		part[len] = '\0';
		int next = open_step(at >= 0 ? at : root, part, O_PATH);
		if (next < 0)
			return next;
		util_close(at);
		at = next;
		path += len + 1;
	}
}

int fs_open_any(int dir, const char *name)
{
	int fd = openat(dir, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

int fs_open_file(int dir, const char *name, int flags)
{
	struct stat st;
	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -ENXIO;
	/* Should it become something else just now, opening it neither waits nor follows. */
	auto_close int fd =
		openat(dir, name, flags | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0)
		return errno == ELOOP ? -ENXIO : -errno;
	if (fstat(fd, &st) < 0)
		return -errno;
	return S_ISREG(st.st_mode) ? take_fd(&fd) : -ENXIO;
}

static int compare_names(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

void fs_names_done(struct fs_names *names)
{
	for (size_t i = 0; i < names->n; i++)
		free(names->v[i]);
	free(names->v);
	*names = (struct fs_names){0};
}

void fs_names_done_cleanup(struct fs_names *names)
{
	fs_names_done(names);
}

static int read_names(DIR *d, size_t max, struct fs_names *names)
{
	size_t room = 0;
	for (;;) {
		errno = 0;
		struct dirent *e = readdir(d);
		if (!e)
			return -errno;
		if (str_eq(e->d_name, ".") || str_eq(e->d_name, ".."))
			continue;
		if (names->n == max)
			return -E2BIG;
		if (names->n == room) {
			room = room ? room * 2 : 16;
			names->v = xrealloc(names->v, room, sizeof(char *));
		}
		names->v[names->n++] = xstrdup(e->d_name);
	}
}

int fs_list(int fd, size_t max, struct fs_names *ret)
{
	AUTO(fs_names_done) struct fs_names names = {0};
	/* A position of its own, from the start. */
	int copy = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (copy < 0)
		return -errno;
	DIR *d = fdopendir(copy);
	if (!d) {
		util_close(copy);
		return -ENOMEM;
	}
	int r = read_names(d, max, &names);
	closedir(d);
	if (r < 0)
		return r;
	if (names.n)
		qsort(names.v, names.n, sizeof(char *), compare_names);
	*ret = names;
	names = (struct fs_names){0};
	return 0;
}

struct proc_name {
	char text[40];
};

static struct proc_name proc_name(int fd)
{
	struct proc_name p;
	snprintf(p.text, sizeof(p.text), "/proc/self/fd/%d", fd);
	return p;
}

static int list_xattr(const char *path, bool follow, char **ret_names, size_t *ret_len)
{
	ssize_t (*list)(const char *, char *, size_t) = follow ? listxattr : llistxattr;
	char small[1024];
	ssize_t n = list(path, small, sizeof(small));
	if (n < 0 && errno != ERANGE)
		return -errno;
	size_t room = n < 0 ? 65536 : (size_t)n + 1;
	auto_free char *names = xzalloc(room);
	if (n < 0) {
		n = list(path, names, room);
		if (n < 0)
			return -errno;
	} else {
		memcpy(names, small, (size_t)n);
	}
	*ret_len = (size_t)n;
	*ret_names = take_ptr(names);
	return 0;
}

int fs_xattr_names(int fd, char **ret_names, size_t *ret_len)
{
	return list_xattr(proc_name(fd).text, true, ret_names, ret_len);
}

int fs_xattr_names_of(int dir, const char *name, char **ret_names, size_t *ret_len)
{
	char path[40 + 256];
	if (strchr(name, '/') || strlen(name) > 255)
		return -EINVAL;
	snprintf(path, sizeof(path), "%s/%s", proc_name(dir).text, name);
	return list_xattr(path, false, ret_names, ret_len);
}

ssize_t fs_xattr_into(int fd, const char *name, void *out, size_t size)
{
	ssize_t n = getxattr(proc_name(fd).text, name, out, size);
	return n < 0 ? -errno : n;
}

ssize_t fs_xattr(int fd, const char *name, void **ret_value)
{
	enum { LARGEST = 65536 };
	char small[4096];
	ssize_t n = fs_xattr_into(fd, name, small, sizeof(small));
	if (n < 0 && n != -ERANGE)
		return n;
	auto_free char *value = xzalloc(n < 0 ? LARGEST : (size_t)n + 1);
	if (n >= 0) {
		memcpy(value, small, (size_t)n);
	} else {
		n = fs_xattr_into(fd, name, value, LARGEST);
		if (n < 0)
			return n;
	}
	*ret_value = take_ptr(value);
	return n;
}

uint64_t fs_next_data(int fd, uint64_t offset, uint64_t size)
{
	off_t at = lseek(fd, (off_t)offset, SEEK_DATA);
	if (at < 0)
		return errno == ENXIO ? size : offset;
	return (uint64_t)at < size ? (uint64_t)at : size;
}

uint64_t fs_next_hole(int fd, uint64_t offset, uint64_t size)
{
	off_t at = lseek(fd, (off_t)offset, SEEK_HOLE);
	return at < 0 || (uint64_t)at > size ? size : (uint64_t)at;
}

ssize_t fs_read(int fd, void *buffer, size_t size, uint64_t offset)
{
	for (;;) {
		ssize_t n = pread(fd, buffer, size, (off_t)offset);
		if (n >= 0 || errno != EINTR)
			return n < 0 ? -errno : n;
	}
}
