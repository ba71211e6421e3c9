/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any text as a path of this very process: the resolver, which trusts no link to the kernel, must
 * come to the same object or errno as the kernel. The first byte says with which flags and whether
 * as on a worker; the tree is whatever the machine has.
 */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/util.h"
#include "fuzz.h"
#include "supervise/box.h"
#include "supervise/resolve.h"

/* What of task.c the resolver uses: nobody waits for an answer here. */
bool call_is_alive(const struct call *call)
{
	return true;
}

ssize_t call_read_str(struct call *call, uint64_t addr, char *ret_text, size_t size)
{
	return -EFAULT;
}

int call_fd_path(struct call *call, int fd)
{
	int copy = open("/proc/self/cwd", O_PATH | O_CLOEXEC);
	return copy < 0 ? -errno : copy;
}

static void check_same(const char *path, unsigned int flags, struct call *call)
{
	AUTO(resolved_done) struct resolved r = RESOLVED_INIT;
	struct stat st;
	int e = resolve_path(call, AT_FDCWD, path, flags, &r);
	if (e == -EAGAIN)
		return; /* a worker's work */
	auto_close int fd =
		open(path, O_PATH | O_CLOEXEC | (flags & RESOLVE_NOFOLLOW ? O_NOFOLLOW : 0));
	int code = fd < 0 ? errno : 0;
	if (e == -EACCES)
		return; /* links of other processes are followed for nobody */
	assert(e == -code);
	if (e < 0 || strstr(r.path, "/proc/"))
		return; /* processes come and go */
	assert(fstat(fd, &st) == 0 && st.st_ino == r.ino && st.st_dev == r.dev);
	assert(r.deleted || r.path[0] != '/' || access(r.path, F_OK) == 0 || S_ISLNK(r.mode));
}

/* The parent and the last name of what can be found are found as well. */
static void check_parent(const char *path, unsigned int flags, struct call *call)
{
	AUTO(resolved_done) struct resolved r = RESOLVED_INIT;
	int e = resolve_path(call, AT_FDCWD, path, flags, &r);
	if (e < 0)
		return;
	size_t n = strlen(r.last);
	assert(n <= NAME_MAX + 1);
	assert(n == 0 || (S_ISDIR(r.mode) && r.last[0] != '/' && !str_eq(r.last, "..")));
	const char *slash = strchr(r.last, '/');
	assert(!slash || slash == r.last + n - 1);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct box box = {.host_uid = getuid(), .host_gid = getgid(), .guardian_pid = 1};
	if (size < 2)
		return 0;
	struct call call = {.box = &box, .tid = getpid(), .pidfd = -1, .on_worker = data[0] & 1};
	auto_free char *path = xstrndup((const char *)data + 1, size - 1);
	/* Other processes come and go, and so do the descriptors of this one. */
	const char *fd = strstr(path, "fd/");
	if ((strstr(path, "proc") && !str_starts(path, "/proc/self/")) || (fd && fd[3] != '0'))
		return 0;
	if (path[0])
		check_same(path, data[0] & 2 ? RESOLVE_NOFOLLOW : 0, &call);
	check_parent(path, data[0] & 2 ? RESOLVE_PARENT : RESOLVE_CREATE, &call);
	util_close(box.root_plus_one - 1);
	return 0;
}
