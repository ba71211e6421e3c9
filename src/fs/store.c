/* SPDX-License-Identifier: Apache-2.0 */
/* The state directory: opening, locking, forgetting. */
#include "fs/store.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/path.h"
#include "base/util.h"
#include "fs/tree.h"
#include "sys/at.h"

enum { POLL_MS = 10, SETS_MAX = 1000000 };

/* PATH and the directories above it that do not exist yet; a descriptor. */
static int make_dirs(const struct fs_io *io, const char *path)
{
	int fd = at_open(AT_FDCWD, path, O_DIRECTORY | O_NOFOLLOW, 0);
	if (fd != -ENOENT)
		return fd;
	auto_free char *partial = xstrdup(path);
	for (char *p = partial + 1;; p++) {
		if (*p && *p != '/')
			continue;
		bool last = !*p;
		*p = '\0';
		int r = fs_make_dir(io, AT_FDCWD, partial, 0700);
		if (r < 0 && r != -EEXIST)
			return r;
		if (last)
			break;
		*p = '/';
	}
	return at_open(AT_FDCWD, path, O_DIRECTORY | O_NOFOLLOW, 0);
}

static char *default_path(void)
{
	const char *state = getenv("XDG_STATE_HOME");
	const char *home = getenv("HOME");
	if (state && path_is_absolute(state))
		return path_join(state, "sandlock");
	auto_close int fd =
		home && path_is_absolute(home) ? at_open(AT_FDCWD, home, O_DIRECTORY, 0) : -1;
	if (fd >= 0 && at_access(fd, W_OK | X_OK) == 0)
		return path_join(home, ".local/state/sandlock");
	return xasprintf("/var/tmp/sandlock-%u", (unsigned int)geteuid());
}

static int check_dir(int fd, struct stat *st)
{
	int r = fs_stat(fd, "", st);
	if (r < 0)
		return r;
	return st->st_uid == geteuid() && (st->st_mode & 0077) == 0 ? 0 : -EPERM;
}

int store_open(const char *path, const struct fs_io *io, struct store *ret, struct err *err)
{
	char quoted[QUOTE_SIZE];
	struct stat st;
	auto_free char *wanted = path ? path_absolute("/", path) : default_path();
	auto_close int top = make_dirs(io, wanted);
	int r = top < 0 ? top : check_dir(top, &st);
	quote_str(wanted, quoted, sizeof(quoted));
	if (r == -EPERM)
		return err_set(err, EPERM,
			       "the state directory %s must be yours and have mode 0700", quoted);
	if (r >= 0) {
		r = fs_make_dir(io, top, "changes", 0700);
		r = r == -EEXIST ? 0 : r;
	}
	if (r >= 0) {
		r = fs_make_dir(io, top, "locks", 0700);
		r = r == -EEXIST ? 0 : r;
	}
	int dir = r < 0 ? r : fs_open_dir(top, "", O_RDONLY);
	if (dir < 0)
		return err_sys(err, -dir, "the state directory %s cannot be used", quoted);
	*ret = (struct store){.dir = dir, .path = take_ptr(wanted), .io = io};
	return 0;
}

void store_done(struct store *store)
{
	store->dir = util_close(store->dir);
	free(store->path);
	store->path = NULL;
}

void store_done_cleanup(struct store *store)
{
	store_done(store);
}

int store_list(const struct store *store, struct fs_names *ret)
{
	struct fs_names names = {0};
	auto_close int dir = fs_open_dir(store->dir, "changes", O_RDONLY);
	int r = dir < 0 ? dir : fs_list(dir, SETS_MAX, &names);
	if (r < 0)
		return r;
	size_t n = 0;
	for (size_t i = 0; i < names.n; i++) {
		if (names.v[i][0] == '.')
			free(names.v[i]);
		else
			names.v[n++] = names.v[i];
	}
	names.n = n;
	*ret = names;
	return 0;
}

/* --- Locks of workdirs -------------------------------------------------------------------- */

static int lock_one(const struct set *set, const struct stat *st, bool alone, unsigned int *wait_ms)
{
	char name[64];
	auto_close int dir = fs_open_dir(set->store->dir, "locks", O_PATH);
	if (dir < 0)
		return dir;
	snprintf(name, sizeof(name), "%u.%u-%llu", major(st->st_dev), minor(st->st_dev),
		 (unsigned long long)st->st_ino);
	auto_close int fd = fs_create(set->store->io, dir, name, 0600);
	if (fd == -EEXIST)
		fd = fs_open_file(dir, name, O_RDWR);
	if (fd < 0)
		return fd;
	while (flock(fd, (alone ? LOCK_EX : LOCK_SH) | LOCK_NB) < 0) {
		if (errno != EWOULDBLOCK && errno != EINTR)
			return -errno;
		if (*wait_ms == 0)
			return -EBUSY;
		unsigned int step = *wait_ms < POLL_MS ? *wait_ms : POLL_MS;
		(void)poll(NULL, 0, (int)step);
		*wait_ms -= step;
	}
	return take_fd(&fd);
}

/* A workdir that lies in another one of the set is covered by that one's lock. */
static bool is_covered(const struct set_info *info, size_t i)
{
	for (size_t k = 0; k < info->n_workdirs; k++) {
		const char *a = info->workdirs[i].path;
		const char *b = info->workdirs[k].path;
		if (k != i && path_is_beneath(a, b) && (!str_eq(a, b) || k < i))
			return true;
	}
	return false;
}

/* Each directory is locked once; from the top down, so that two sets cannot wait for each other
 * but for several workdirs, where the time limit ends it. */
static int lock_way(const struct set *set, const char *path, unsigned int *wait_ms, int **fds,
		    size_t *n)
{
	for (size_t len = 1;; len++) {
		if (path[len] && path[len] != '/')
			continue;
		bool last = !path[len] || (len == 1 && !path[1]);
		auto_free char *part = xstrndup(path, len);
		struct stat st;
		auto_close int fd = at_open(AT_FDCWD, part, O_DIRECTORY, 0);
		int r = fd < 0 ? fd : fs_stat(fd, "", &st);
		if (r >= 0)
			r = lock_one(set, &st, last, wait_ms);
		if (r < 0)
			return r;
		*fds = xrealloc(*fds, *n + 1, sizeof(int));
		(*fds)[(*n)++] = r;
		if (last)
			return 0;
	}
}

int store_lock_workdirs(const struct set *set, unsigned int wait_ms, int **ret_fds, size_t *ret_n,
			struct err *err)
{
	int *fds = NULL;
	size_t n = 0;
	char quoted[QUOTE_SIZE];
	for (size_t i = 0; i < set->info.n_workdirs; i++) {
		const char *path = set->info.workdirs[i].path;
		if (is_covered(&set->info, i))
			continue;
		int r = lock_way(set, path, &wait_ms, &fds, &n);
		if (r >= 0)
			continue;
		while (n)
			util_close(fds[--n]);
		free(fds);
		quote_str(path, quoted, sizeof(quoted));
		if (r == -EBUSY)
			return err_set(err, EBUSY, "%s is being changed by another commit of yours",
				       quoted);
		return err_sys(err, -r, "%s cannot be locked", quoted);
	}
	*ret_fds = fds;
	*ret_n = n;
	return 0;
}

/* --- Forgetting --------------------------------------------------------------------------- */

static uint64_t size_of_dir(int dir, const char *path, struct fs_names *below)
{
	AUTO(fs_names_done) struct fs_names names = {0};
	uint64_t bytes = 0;
	auto_close int fd = fs_open_dir(dir, path, O_RDONLY);
	if (fd < 0 || fs_list(fd, SETS_MAX, &names) < 0)
		return 0;
	for (size_t i = 0; i < names.n; i++) {
		struct stat st;
		if (fs_stat(fd, names.v[i], &st) < 0)
			continue;
		bytes += (uint64_t)st.st_blocks * 512;
		if (!S_ISDIR(st.st_mode) || below->n >= 100000)
			continue;
		below->v = xrealloc(below->v, below->n + 1, sizeof(char *));
		below->v[below->n++] = path_join(path, names.v[i]);
	}
	return bytes;
}

static uint64_t size_of(const struct set *set)
{
	AUTO(fs_names_done) struct fs_names below = {0};
	uint64_t bytes = size_of_dir(set->dir, "", &below);
	for (size_t i = 0; i < below.n; i++) {
		auto_free char *path = xstrdup(below.v[i][0] == '/' ? below.v[i] + 1 : below.v[i]);
		bytes += size_of_dir(set->dir, path, &below);
	}
	return bytes;
}

int store_retain(const struct store *store, const struct retention *limits)
{
	AUTO(fs_names_done) struct fs_names names = {0};
	struct timespec now;
	size_t seen = 0;
	uint64_t bytes = 0;
	int r = store_list(store, &names);
	clock_gettime(CLOCK_REALTIME, &now);
	for (size_t i = names.n; r >= 0 && i > 0; i--) {
		AUTO(set_done) struct set set = {.dir = -1, .lock = -1};
		if (set_open(store, names.v[i - 1], true, &set, NULL) < 0)
			continue;
		if (set.status != SET_COMMITTED && set.status != SET_UNDONE)
			continue;
		int64_t age = now.tv_sec - set.since.tv_sec;
		bytes += limits->max_bytes ? size_of(&set) : 0;
		seen++;
		if ((limits->max_sets && seen > limits->max_sets) ||
		    (limits->max_age_s && age > (int64_t)limits->max_age_s) ||
		    (limits->max_bytes && bytes > limits->max_bytes))
			r = set_remove(&set);
	}
	return r;
}
