/* SPDX-License-Identifier: Apache-2.0 */
/* Small files, whole or not at all. */
#include "fs/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/util.h"

struct name {
	char text[80];
};

static struct name temporary(const char *name)
{
	struct name n;
	snprintf(n.text, sizeof(n.text), "%s.tmp", name);
	return n;
}

int file_prepare(const struct fs_io *io, int dir, const char *name, const void *data, size_t len,
		 bool sync)
{
	struct name tmp = temporary(name);
	int r = fs_unlink(io, dir, tmp.text, 0);
	if (r < 0 && r != -ENOENT)
		return r;
	auto_close int fd = fs_create(io, dir, tmp.text, 0600);
	if (fd < 0)
		return fd;
	r = len ? fs_write(io, fd, data, len, 0) : 0;
	return r >= 0 && sync ? fs_sync(io, fd) : r;
}

int file_place(const struct fs_io *io, int dir, const char *name)
{
	struct name tmp = temporary(name);
	int r = fs_rename(io, dir, tmp.text, dir, name, 0);
	return r < 0 ? r : fs_sync(io, dir);
}

int file_write(const struct fs_io *io, int dir, const char *name, const void *data, size_t len)
{
	int r = file_prepare(io, dir, name, data, len, true);
	return r < 0 ? r : file_place(io, dir, name);
}

bool file_number(const char **at, int base, char end, uint64_t *ret)
{
	char *stop = NULL;
	/* strtoull takes blanks and signs. */
	if (**at < '0' || **at > '9')
		return false;
	errno = 0;
	unsigned long long value = strtoull(*at, &stop, base);
	if (errno || *stop != end)
		return false;
	*at = end ? stop + 1 : stop;
	*ret = value;
	return true;
}

bool file_time(const char **at, char end, struct timespec *ret)
{
	uint64_t sec = 0;
	uint64_t ns = 0;
	if (!file_number(at, 10, '.', &sec) || sec > INT64_MAX || strcspn(*at, " \n") != 9 ||
	    !file_number(at, 10, end, &ns))
		return false;
	*ret = (struct timespec){.tv_sec = (time_t)sec, .tv_nsec = (long)ns};
	return true;
}

int file_read(int dir, const char *name, size_t max, char **ret_data, size_t *ret_len)
{
	struct stat st;
	auto_close int fd = fs_open_file(dir, name, O_RDONLY);
	int r = fd < 0 ? fd : fs_stat(fd, "", &st);
	if (r < 0)
		return r;
	if ((uint64_t)st.st_size > max)
		return -E2BIG;
	size_t size = (size_t)st.st_size;
	auto_free char *data = xzalloc(size + 1);
	size_t used = 0;
	while (used < size) {
		ssize_t n = fs_read(fd, data + used, size - used, used);
		if (n < 0)
			return (int)n;
		if (n == 0)
			break;
		used += (size_t)n;
	}
	*ret_data = take_ptr(data);
	*ret_len = used;
	return 0;
}
