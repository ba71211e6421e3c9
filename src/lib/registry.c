/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Claiming, finding and removing entries of live sandboxes (registry.h). An entry is claimed by
 * making its directory and locking it; between the two somebody who tidies up may remove it, and so
 * each claim looks whether what it has locked is still there, and begins again if not.
 */
#include "lib/registry.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/util.h"
#include "confine/job.h"

/* Younger entries are left to whoever may still be setting them up: this only saves them work. */
#define YOUNG_SEC 2
/* How often a claim begins again, and from when on it sleeps a millisecond in between. */
#define CLAIM_TRIES 60
#define CLAIM_FAST  10

/* --- The runtime directory ------------------------------------------------------------------ */

static bool is_private(int fd)
{
	struct stat st;
	return fstat(fd, &st) == 0 && S_ISDIR(st.st_mode) && st.st_uid == geteuid() &&
	       !(st.st_mode & 077);
}

/* Opens NAME in TOP, made if need be and MAKE is set, if it is ours alone; else -errno. */
static int open_private_dir(int top, const char *name, bool make)
{
	const int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
	auto_close int fd = openat(top, name, flags);
	if (fd < 0 && errno == ENOENT && make) {
		if (mkdirat(top, name, 0700) < 0 && errno != EEXIST)
			return -errno;
		fd = openat(top, name, flags);
	}
	if (fd < 0)
		return -errno;
	return is_private(fd) ? take_fd(&fd) : -EPERM;
}

/* What holds the runtime directory at PLACE: $XDG_RUNTIME_DIR if it is ours, then /dev/shm. */
static int open_top(int place)
{
	const char *path = place == 0 ? getenv("XDG_RUNTIME_DIR") : "/dev/shm";
	struct stat st;
	if (!path || path[0] != '/')
		return -ENOENT;
	auto_close int fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (place == 0 && (fstat(fd, &st) < 0 || st.st_uid != geteuid()))
		return -EPERM;
	return take_fd(&fd);
}

static char *place_name(int place)
{
	return place == 0 ? xstrdup("sandlock") : xasprintf("sandlock-%u", geteuid());
}

int registry_open_place(int place)
{
	auto_close int top = open_top(place);
	auto_free char *name = place_name(place);
	return top < 0 ? top : open_private_dir(top, name, false);
}

void registry_tidy(int place)
{
	auto_close int top = open_top(place);
	auto_free char *name = place_name(place);
	if (top >= 0)
		unlinkat(top, name, AT_REMOVEDIR);
}

/* A moment's shortage says nothing about a place. */
static bool is_shortage(int code)
{
	return code == EMFILE || code == ENFILE || code == ENOMEM;
}

/* The first place that can be had, with what holds it. 0 or a negative errno. */
static int open_runtime_dir(struct registry_entry *entry)
{
	int r = -ENOENT;
	for (int place = 0; place < REGISTRY_PLACES; place++) {
		auto_close int top = open_top(place);
		auto_free char *name = place_name(place);
		int fd = top < 0 ? top : open_private_dir(top, name, true);
		if (fd >= 0) {
			entry->dir_fd = fd;
			entry->top_fd = take_fd(&top);
			entry->top_name = take_ptr(name);
			return 0;
		}
		r = fd;
		if (is_shortage(-r))
			break;
	}
	return r;
}

/*
 * Where the guardian will make the entry of a sandbox without a name. Nothing is made here. 1 or a
 * negative errno.
 */
static int choose_place(struct registry_entry *entry)
{
	int r = -ENOENT;
	for (int place = 0; place < REGISTRY_PLACES; place++) {
		auto_close int top = open_top(place);
		if (top >= 0 && faccessat(top, ".", W_OK | X_OK, 0) == 0) {
			entry->top_fd = take_fd(&top);
			entry->top_name = place_name(place);
			entry->name = xasprintf("sandbox-%d-", getpid());
			return 1;
		}
		r = top < 0 ? top : -errno;
		if (is_shortage(-r))
			break;
	}
	return r;
}

/* --- Entries -------------------------------------------------------------------------------- */

static int open_entry(int dir_fd, const char *name)
{
	auto_close int fd = openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	return is_private(fd) ? take_fd(&fd) : -EPERM;
}

/* Whether NAME still is the directory that FD is. */
static bool is_in_place(int dir_fd, const char *name, int fd)
{
	struct stat mine;
	struct stat now;
	return fstat(fd, &mine) == 0 && fstatat(dir_fd, name, &now, AT_SYMLINK_NOFOLLOW) == 0 &&
	       mine.st_ino == now.st_ino && mine.st_dev == now.st_dev;
}

bool registry_is_locked(int entry_fd)
{
	if (flock(entry_fd, LOCK_SH | LOCK_NB) < 0)
		return errno == EWOULDBLOCK;
	flock(entry_fd, LOCK_UN);
	return false;
}

/*
 * Whether the entry's guardian is known and gone: a process that the host forked in the middle of a
 * start may hold the lock for longer than the sandbox lives.
 */
static bool is_orphan(int fd)
{
	struct registry_pids pids;
	int code = errno;
	bool orphan = registry_read_pids(fd, &pids) == 0 && pids.v[ROLE_GUARDIAN].start &&
		      !process_is_alive(&pids.v[ROLE_GUARDIAN]);
	errno = code;
	return orphan;
}

/* Removes NAME if its sandbox is dead. 1 if it is gone, or a negative errno: -EEXIST if not dead.
 */
static int remove_dead(int dir_fd, const char *name)
{
	auto_close int fd = open_entry(dir_fd, name);
	if (fd < 0)
		return fd == -ENOENT ? 1 : fd;
	if (flock(fd, LOCK_EX | LOCK_NB) < 0 && !is_orphan(fd))
		return errno == EWOULDBLOCK ? -EEXIST : -errno;
	if (is_in_place(dir_fd, name, fd))
		raw_remove_tree(dir_fd, name);
	return 1;
}

void registry_prune(int dir_fd, const char *name)
{
	remove_dead(dir_fd, name);
}

/* A time ahead of the clock is no youth: the clock was set back. */
static bool is_young(int fd)
{
	struct stat st;
	if (fstat(fd, &st) < 0)
		return true;
	time_t age = time(NULL) - st.st_mtime;
	return age >= -YOUNG_SEC && age < YOUNG_SEC;
}

enum registry_state registry_look(int dir_fd, const char *name, int *ret_entry,
				  struct registry_pids *ret_pids)
{
	auto_close int fd = open_entry(dir_fd, name);
	if (fd < 0)
		return ENTRY_NONE;
	bool known = registry_read_pids(fd, ret_pids) == 0;
	enum registry_state state = ENTRY_STARTING;
	/* The lock of one that is being set up is left alone: trying it could take it away. */
	if (known || !is_young(fd)) {
		bool locked = registry_is_locked(fd) && !(known && is_orphan(fd));
		if (locked && known)
			state = ENTRY_LIVE;
		else if (!locked)
			state = ENTRY_DEAD;
	}
	*ret_entry = take_fd(&fd);
	return state;
}

/* --- Claiming ------------------------------------------------------------------------------- */

/* Whether NAME's lock is held by a sandbox, and not for a moment by somebody who tidies up. */
static bool is_taken(int dir_fd, const char *name)
{
	struct registry_pids pids;
	auto_close int fd = open_entry(dir_fd, name);
	return fd >= 0 && registry_read_pids(fd, &pids) == 0 &&
	       process_is_alive(&pids.v[ROLE_GUARDIAN]);
}

/* Locks the directory NAME just made. 1, 0 to begin again, or a negative errno. */
static int lock_new(struct registry_entry *entry, const char *name)
{
	auto_close int fd = open_entry(entry->dir_fd, name);
	if (fd < 0)
		return fd == -ENOENT ? 0 : fd;
	if (flock(fd, LOCK_EX | LOCK_NB) < 0)
		return errno == EWOULDBLOCK ? 0 : -errno;
	if (!is_in_place(entry->dir_fd, name, fd))
		return 0;
	entry->lock_fd = take_fd(&fd);
	entry->name = xstrdup(name);
	return 1;
}

/* One try: 1 with everything in ENTRY, 0 to begin again, or -errno: -EEXIST if it is taken. */
static int claim_name(const char *name, struct registry_entry *entry)
{
	if (mkdirat(entry->dir_fd, name, 0700) == 0)
		return lock_new(entry, name);
	/* Another run's end may have removed the runtime directory, empty as it was. */
	if (errno == ENOENT)
		return 0;
	if (errno != EEXIST)
		return -errno;
	int r = remove_dead(entry->dir_fd, name);
	if (r == -EEXIST)
		return is_taken(entry->dir_fd, name) ? r : 0;
	return r == 1 ? 0 : r;
}

static int claim(const char *name, struct registry_entry *entry)
{
	int r = 0;
	for (unsigned int i = 0; r == 0 && i < CLAIM_TRIES; i++) {
		registry_done(entry);
		if (i >= CLAIM_FAST)
			nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
		r = open_runtime_dir(entry);
		if (r == 0)
			r = claim_name(name, entry);
	}
	/* Held all the time by a sandbox that is only starting. */
	return r == 0 ? -EEXIST : r;
}

static int claim_failed(int r, bool no_directory, const char *name, struct strv *warnings,
			struct sandlock_error *err)
{
	if (is_shortage(-r))
		return api_fail(err, SANDLOCK_E_LIMIT, -r,
				"Cannot enter the sandbox in the runtime directory: %s",
				strerror(-r));
	if (no_directory) {
		registry_warn(warnings, -r, name);
		return 0;
	}
	if (r == -EEXIST)
		return api_fail(
			err, SANDLOCK_E_EXISTS, EEXIST,
			"A sandbox named %s is already running: choose another --name, or end "
			"that one first",
			name);
	return api_fail(err, SANDLOCK_E_PERMISSION, -r,
			"Cannot claim the name %s in the runtime directory: %s", name,
			strerror(-r));
}

void registry_warn(struct strv *warnings, int code, const char *name)
{
	warn_add(warnings,
		 "no runtime directory (%s): ps, inspect and kill do not see this sandbox%s",
		 strerror(code), name ? ", and its name is not checked against others" : "");
}

int registry_claim(const char *name, struct registry_entry *ret_entry, struct strv *warnings,
		   struct sandlock_error *err)
{
	int r = name ? claim(name, ret_entry) : choose_place(ret_entry);
	if (r == 1)
		return 0;
	bool no_directory = ret_entry->dir_fd < 0;
	registry_done(ret_entry);
	return claim_failed(r, no_directory, name, warnings, err);
}

int registry_open_entry(int top_fd, const char *top_name, const char *name)
{
	auto_close int dir = open_private_dir(top_fd, top_name, false);
	return dir < 0 ? dir : open_entry(dir, name);
}

void registry_done(struct registry_entry *entry)
{
	entry->dir_fd = util_close(entry->dir_fd);
	entry->lock_fd = util_close(entry->lock_fd);
	entry->top_fd = util_close(entry->top_fd);
	free(take_ptr(entry->top_name));
	free(take_ptr(entry->name));
}

void registry_forget(const char *name)
{
	for (int place = 0; place < REGISTRY_PLACES; place++) {
		auto_close int fd = registry_open_place(place);
		if (fd >= 0 && remove_dead(fd, name) == 1)
			registry_tidy(place);
	}
}
