/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The processes of a sandbox as its entry names them, told from later ones with the same number by
 * the time of their start (field 22 of /proc/PID/stat).
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/number.h"
#include "base/util.h"
#include "lib/registry.h"

/* Fields behind the name, which may hold anything, ")" included: state is 0, the start 19. */
enum { STAT_STATE, STAT_START = 19 };

/* Reads at most SIZE - 1 bytes of NAME in DIR_FD. Their number, or a negative errno. */
static ssize_t read_text(int dir_fd, const char *name, char *text, size_t size)
{
	auto_close int fd = openat(dir_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	ssize_t n = fd >= 0 ? read(fd, text, size - 1) : -1;
	if (n < 0)
		return -errno;
	text[n] = '\0';
	return n;
}

uint64_t process_start(pid_t pid)
{
	char path[32];
	char text[1024];
	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	if (pid <= 0 || read_text(AT_FDCWD, path, text, sizeof(text)) <= 0)
		return 0;
	char *p = strrchr(text, ')');
	if (!p || p[1] != ' ' || strchr("ZX", p[2]))
		return 0;
	p += 2;
	for (int i = STAT_STATE; p && i < STAT_START; i++) {
		p = strchr(p, ' ');
		p = p ? p + 1 : NULL;
	}
	uint64_t start = 0;
	if (p)
		p[strcspn(p, " \n")] = '\0';
	return p && number_parse_u64(p, 1, UINT64_MAX, &start, NULL) == 0 ? start : 0;
}

bool process_is_alive(const struct registry_process *p)
{
	return p->pid > 0 && p->start && process_start(p->pid) == p->start;
}

int process_open(const struct registry_process *p)
{
	if (p->pid <= 0 || !p->start)
		return -1;
	auto_close int fd = (int)syscall(SYS_pidfd_open, p->pid, 0);
	/* Judged once it is held: from here on the number cannot go to another. */
	if (fd < 0 || process_start(p->pid) != p->start)
		return -1;
	return take_fd(&fd);
}

int registry_write_pids(int dir_fd, const struct registry_pids *pids)
{
	char text[256];
	int n = 0;
	for (size_t i = 0; i < ROLE_COUNT; i++)
		n += snprintf(text + n, sizeof(text) - (size_t)n, "%d\n", pids->v[i].pid);
	for (size_t i = 0; i < ROLE_COUNT; i++)
		n += snprintf(text + n, sizeof(text) - (size_t)n, "%llu\n",
			      (unsigned long long)pids->v[i].start);
	auto_close int fd =
		openat(dir_fd, ".pid", O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	ssize_t done = write(fd, text, (size_t)n);
	if (done != n)
		return done < 0 ? -errno : -ENOSPC;
	return renameat(dir_fd, ".pid", dir_fd, "pid") < 0 ? -errno : 0;
}

/* Cuts a line off *AT and reads its number. */
static bool take_number(char **at, uint64_t max, uint64_t *ret)
{
	char *line = *at;
	char *end = strchr(line, '\n');
	if (!end)
		return false;
	*end = '\0';
	*at = end + 1;
	return number_parse_u64(line, 0, max, ret, NULL) == 0;
}

int registry_read_pids(int dir_fd, struct registry_pids *ret_pids)
{
	char text[256];
	ssize_t n = read_text(dir_fd, "pid", text, sizeof(text));
	if (n < 0)
		return (int)n;
	char *at = text;
	uint64_t value = 0;
	for (size_t i = 0; i < ROLE_COUNT; i++) {
		if (!take_number(&at, INT_MAX, &value))
			return -EINVAL;
		ret_pids->v[i].pid = (pid_t)value;
	}
	for (size_t i = 0; i < ROLE_COUNT; i++) {
		if (!take_number(&at, UINT64_MAX, &value))
			return -EINVAL;
		ret_pids->v[i].start = value;
	}
	return 0;
}
