/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a handler reads and takes from the task that waits: memory and descriptors. A number can be
 * given to another task as soon as this one is gone, so whatever was got by number counts only if
 * the notification is still alive afterwards; a pidfd, once proved, needs no second look.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/util.h"
#include "supervise/box.h"
#include "supervise/call.h"
#include "supervise/supervisor_internal.h"
#include "sys/at.h"
#include "sys/proc.h"

bool call_is_alive(const struct call *call)
{
	uint64_t id = call->id;
	int r;
	/* A signal to this process says nothing about the task. */
	do {
		r = ioctl(call->box->listener, SECCOMP_IOCTL_NOTIF_ID_VALID, &id);
	} while (r < 0 && errno == EINTR);
	return r == 0;
}

enum direction { FROM_TASK, TO_TASK };

/* One transfer of up to N bytes through /proc/TID/mem, where process_vm_readv is barred. */
static ssize_t transfer_by_file(const struct call *call, enum direction way, uint64_t addr,
				void *data, size_t n)
{
	char path[40];
	snprintf(path, sizeof(path), "/proc/%d/mem", call->tid);
	auto_close int fd =
		at_open_entry(AT_FDCWD, path, way == FROM_TASK ? O_RDONLY : O_WRONLY, 0);
	if (fd < 0)
		return fd == -ENOENT ? -ESRCH : -EACCES;
	if (addr > INT64_MAX)
		return -EFAULT;
	ssize_t r = way == FROM_TASK ? pread(fd, data, n, (off_t)addr)
				     : pwrite(fd, data, n, (off_t)addr);
	return r < 0 ? (errno == EIO ? -EFAULT : -errno) : r;
}

static ssize_t transfer(const struct call *call, enum direction way, uint64_t addr, void *data,
			size_t n)
{
	if (!call->box->have_vm_read)
		return transfer_by_file(call, way, addr, data, n);
	struct iovec local = {data, n};
	struct iovec remote = {(void *)(uintptr_t)addr, n}; /* NOLINT(performance-no-int-to-ptr) */
	ssize_t r = way == FROM_TASK ? process_vm_readv(call->tid, &local, 1, &remote, 1, 0)
				     : process_vm_writev(call->tid, &local, 1, &remote, 1, 0);
	if (r >= 0)
		return r;
	return errno == EPERM ? -EACCES : -errno;
}

static int transfer_whole(struct call *call, enum direction way, uint64_t addr, void *data,
			  size_t n)
{
	if (n == 0)
		return 0;
	if (addr + n < addr)
		return -EFAULT;
	ssize_t r = transfer(call, way, addr, data, n);
	if (!call_is_alive(call))
		return -ESRCH;
	if (r < 0)
		return (int)r;
	return (size_t)r == n ? 0 : -EFAULT;
}

int call_read(struct call *call, uint64_t addr, void *ret_data, size_t n)
{
	int r = transfer_whole(call, FROM_TASK, addr, ret_data, n);
	if (r < 0 && n)
		memset(ret_data, 0, n);
	return r;
}

int call_write(struct call *call, uint64_t addr, const void *data, size_t n)
{
	/*
	 * Before a byte is written the number must be the right task's: a write cannot be undone.
	 */
	if (n && !call_is_alive(call))
		return -ESRCH;
	return transfer_whole(call, TO_TASK, addr, (void *)(uintptr_t)data, n);
}

/* Page by page: what follows the text may not be mapped, and need not be read. */
ssize_t call_read_str(struct call *call, uint64_t addr, char *ret_text, size_t size)
{
	size_t used = 0;
	ssize_t r = -ENAMETOOLONG;
	while (used < size) {
		uint64_t at = addr + used;
		size_t part = 4096 - (size_t)(at & 4095);
		part = part < size - used ? part : size - used;
		if (at < addr) {
			r = -EFAULT;
			break;
		}
		/* Most texts are short: the first look takes a piece only. */
		if (used == 0 && part > 256)
			part = 256;
		r = transfer(call, FROM_TASK, at, ret_text + used, part);
		if (r == 0)
			r = -EFAULT;
		if (r < 0)
			break;
		const char *end = memchr(ret_text + used, '\0', (size_t)r);
		if (end) {
			r = end - ret_text;
			break;
		}
		used += (size_t)r;
		r = -ENAMETOOLONG;
	}
	if (!call_is_alive(call))
		r = -ESRCH;
	if (r < 0 && size)
		ret_text[0] = '\0';
	return r;
}

/*
 * Where the call's task may be kept: by the loop's thread only. A task that is gone shows by ESRCH;
 * its number cannot have been given to the caller before.
 */
static struct task *place_of(struct call *call)
{
	struct task *tasks = call->on_worker ? NULL : call->box->tasks;
	return tasks ? &tasks[(unsigned int)call->tid % TASKS_KEPT] : NULL;
}

static void keep_task(struct call *call)
{
	struct task *task = place_of(call);
	if (!task)
		return;
	util_close(task->pidfd);
	task->tid = call->tid;
	task->pidfd = call->pidfd;
	call->pidfd_kept = true;
}

static bool forget_task(struct call *call)
{
	struct task *task = place_of(call);
	if (!call->pidfd_kept || !task)
		return false;
	task->pidfd = util_close(task->pidfd);
	call->pidfd = -1;
	call->pidfd_kept = false;
	return true;
}

int call_pidfd(struct call *call)
{
	struct task *task = place_of(call);
	if (call->pidfd >= 0)
		return call->pidfd;
	if (task && task->pidfd >= 0 && task->tid == call->tid) {
		call->pidfd_kept = true;
		call->pidfd = task->pidfd;
		return call->pidfd;
	}
	auto_close int fd = (int)syscall(SYS_pidfd_open, call->tid, PIDFD_THREAD);
	bool exact = fd >= 0;
	if (fd < 0 && errno == EINVAL) {
		/* Kernels before 6.9 have no pidfd of a thread. */
		pid_t group = proc_group(call->tid);
		fd = group > 0 ? (int)syscall(SYS_pidfd_open, group, 0) : -1;
	}
	if (fd < 0)
		return errno == ENOENT ? -ESRCH : -errno;
	if (!call_is_alive(call))
		return -ESRCH;
	call->pidfd = take_fd(&fd);
	if (exact)
		keep_task(call);
	return call->pidfd;
}

int call_fd_take(struct call *call, int fd)
{
	if (fd < 0)
		return -EBADF;
	int pidfd = call_pidfd(call);
	if (pidfd < 0)
		return pidfd;
	int copy = (int)syscall(SYS_pidfd_getfd, pidfd, fd, 0);
	if (copy < 0 && errno == ESRCH && forget_task(call)) {
		pidfd = call_pidfd(call);
		if (pidfd < 0)
			return pidfd;
		copy = (int)syscall(SYS_pidfd_getfd, pidfd, fd, 0);
	}
	return copy < 0 ? -errno : copy;
}

int call_fd(struct call *call, int fd)
{
	if (call->n_fds == ARRAY_SIZE(call->fds))
		return -EMFILE;
	int copy = call_fd_take(call, fd);
	if (copy >= 0)
		call->fds[call->n_fds++] = copy;
	return copy;
}

int call_fd_path(struct call *call, int fd)
{
	char path[48];
	if (fd < 0 && fd != AT_FDCWD)
		return -EBADF;
	if (fd == AT_FDCWD)
		snprintf(path, sizeof(path), "/proc/%d/cwd", call->tid);
	else
		snprintf(path, sizeof(path), "/proc/%d/fd/%d", call->tid, fd);
	auto_close int copy = at_open(AT_FDCWD, path, 0, 0);
	if (copy == -ENOENT)
		return fd == AT_FDCWD ? -ENOENT : -EBADF;
	if (copy < 0)
		return copy == -EPERM ? -EACCES : copy;
	if (!call_is_alive(call))
		return -ESRCH;
	return take_fd(&copy);
}
