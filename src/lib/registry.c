/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of live sandboxes: one directory per sandbox below the user's runtime directory, with a
 * lock file that the guardian holds for as long as anything lives, and a pid file. A directory
 * whose lock is free belongs to a dead sandbox and is taken over; the lock, not the directory,
 * decides.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/util.h"
#include "confine/job.h"
#include "lib/launch.h"

/* Opens NAME in TOP, made if need be, if it is a directory of ours with mode 0700; else -errno. */
static int open_private_dir(int top, const char *name)
{
	if (mkdirat(top, name, 0700) < 0 && errno != EEXIST)
		return -errno;
	auto_close int fd = openat(top, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	struct stat st;
	if (fstat(fd, &st) < 0)
		return -errno;
	if (st.st_uid != geteuid() || (st.st_mode & 077))
		return -EPERM;
	return take_fd(&fd);
}

/* The runtime directory (decisions 16), with what holds it, for its removal once it is empty. */
static int open_runtime_dir(struct registry_entry *entry)
{
	const char *xdg = getenv("XDG_RUNTIME_DIR");
	struct stat st;
	if (xdg && xdg[0] == '/' && stat(xdg, &st) == 0 && st.st_uid == geteuid()) {
		auto_close int top = open(xdg, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		int fd = top >= 0 ? open_private_dir(top, "sandlock") : -errno;
		if (fd >= 0) {
			entry->top_fd = take_fd(&top);
			entry->top_name = xstrdup("sandlock");
			return fd;
		}
	}
	auto_close int top = open("/dev/shm", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (top < 0)
		return -errno;
	auto_free char *name = xasprintf("sandlock-%u", geteuid());
	int fd = open_private_dir(top, name);
	if (fd >= 0) {
		entry->top_fd = take_fd(&top);
		entry->top_name = take_ptr(name);
	}
	return fd;
}

/* Locks NAME/lock. 1 with the lock held, 0 to try again (it was removed meanwhile), or -errno. */
static int lock_name(int dir_fd, const char *name, int *ret_lock)
{
	if (mkdirat(dir_fd, name, 0700) < 0 && errno != EEXIST)
		return -errno;
	auto_close int dir = openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (dir < 0)
		return errno == ENOENT ? 0 : -errno;
	auto_close int lock = openat(dir, "lock", O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (lock < 0)
		return errno == ENOENT ? 0 : -errno;
	if (flock(lock, LOCK_EX | LOCK_NB) < 0)
		return errno == EWOULDBLOCK ? -EEXIST : -errno;
	/* The directory may have been removed between opening and locking. */
	struct stat mine;
	struct stat now;
	auto_free char *path = xasprintf("%s/lock", name);
	if (fstat(lock, &mine) < 0)
		return -errno;
	if (fstatat(dir_fd, path, &now, AT_SYMLINK_NOFOLLOW) < 0 || mine.st_ino != now.st_ino ||
	    mine.st_dev != now.st_dev)
		return 0;
	*ret_lock = take_fd(&lock);
	return 1;
}

/* One try: 1 with everything in ENTRY, 0 to try again, or -errno. */
static int claim_once(const char *name, struct registry_entry *entry)
{
	int dir_fd = open_runtime_dir(entry);
	if (dir_fd < 0)
		return dir_fd;
	entry->dir_fd = dir_fd;
	int r = lock_name(dir_fd, name, &entry->lock_fd);
	/* Another run's end may have removed the directory, empty as it was, under our feet. */
	return r == -ENOENT ? 0 : r;
}

int registry_claim(const char *name, struct registry_entry *ret_entry, struct strv *warnings,
		   struct sandlock_error *err)
{
	int r = 0;
	for (int i = 0; r == 0 && i < 100; i++) {
		registry_done(ret_entry);
		r = claim_once(name, ret_entry);
	}
	if (r == 1) {
		ret_entry->name = xstrdup(name);
		return 0;
	}
	bool no_directory = ret_entry->dir_fd < 0;
	registry_done(ret_entry);
	if (no_directory) {
		warn_add(warnings,
			 "no runtime directory (%s): the name %s is not checked against other "
			 "sandboxes",
			 strerror(-r), name);
		return 0;
	}
	if (r == -EEXIST)
		return api_fail(
			err, SANDLOCK_E_EXISTS, EEXIST,
			"A sandbox named %s is already running: choose another --name, or end "
			"that one first",
			name);
	return api_fail(err, SANDLOCK_E_PERMISSION, r ? -r : EAGAIN,
			"Cannot claim the name %s in the runtime directory: %s", name,
			strerror(r ? -r : EAGAIN));
}

void registry_started(const struct registry_entry *entry, pid_t child, pid_t supervisor)
{
	if (entry->dir_fd < 0)
		return;
	auto_free char *tmp = xasprintf("%s/.pid", entry->name);
	auto_free char *path = xasprintf("%s/pid", entry->name);
	auto_close int fd = openat(entry->dir_fd, tmp,
				   O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return;
	if (dprintf(fd, "%d\n%d\n", child, supervisor) > 0)
		renameat(entry->dir_fd, tmp, entry->dir_fd, path);
}

void registry_done(struct registry_entry *entry)
{
	entry->dir_fd = util_close(entry->dir_fd);
	entry->lock_fd = util_close(entry->lock_fd);
	entry->top_fd = util_close(entry->top_fd);
	free(entry->top_name);
	entry->top_name = NULL;
	free(entry->name);
	entry->name = NULL;
}

void registry_forget(const char *name)
{
	struct registry_entry entry = {.dir_fd = -1, .lock_fd = -1, .top_fd = -1};
	if (claim_once(name, &entry) == 1 && entry.top_name) {
		raw_remove_tree(entry.dir_fd, name);
		unlinkat(entry.top_fd, entry.top_name, AT_REMOVEDIR);
	}
	registry_done(&entry);
}
