/* SPDX-License-Identifier: Apache-2.0 */
/* Reading procfs. */
#include "sys/proc.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sys/at.h"

enum { LINK_SIZE = 256, LINE_SIZE = 512 };

ssize_t proc_fd_link(pid_t pid, int fd, char *ret_text, size_t size)
{
	char path[48];
	snprintf(path, sizeof(path), "/proc/%d/fd/%d", pid, fd);
	ssize_t n = readlink(path, ret_text, size - 1);
	if (n < 0)
		return -errno;
	ret_text[n] = '\0';
	return n;
}

bool proc_each_fd(pid_t pid, bool (*fn)(void *data, int fd, const char *link), void *data)
{
	char path[32];
	char link[LINK_SIZE];
	bool stop = false;
	snprintf(path, sizeof(path), "/proc/%d/fd", pid);
	DIR *dir = opendir(path);
	if (!dir)
		return false;
	for (struct dirent *e = readdir(dir); e && !stop; e = readdir(dir)) {
		ssize_t n = readlinkat(dirfd(dir), e->d_name, link, sizeof(link) - 1);
		if (n < 0)
			continue; /* closed meanwhile, or one of the two dots */
		link[n] = '\0';
		stop = fn(data, (int)strtol(e->d_name, NULL, 10), link);
	}
	closedir(dir);
	return stop;
}

int proc_each_line(const char *path, void (*fn)(void *data, const char *line), void *data)
{
	char line[LINE_SIZE];
	FILE *f = fopen(path, "re");
	if (!f)
		return -errno;
	while (fgets(line, sizeof(line), f)) {
		line[strcspn(line, "\n")] = '\0';
		fn(data, line);
	}
	fclose(f);
	return 0;
}

char *proc_real_path(const char *path)
{
	return realpath(path, NULL);
}

pid_t proc_group(pid_t tid)
{
	char path[40];
	char text[4096];
	snprintf(path, sizeof(path), "/proc/%d/status", tid);
	ssize_t n = at_read_file(AT_FDCWD, path, text, sizeof(text));
	const char *line = n > 0 ? strstr(text, "\nTgid:") : NULL;
	return line ? (pid_t)strtol(line + 6, NULL, 10) : -1;
}
