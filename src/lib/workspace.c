/* SPDX-License-Identifier: Apache-2.0 */
/* Making a workspace. */
#include "lib/workspace.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/path.h"
#include "base/util.h"
#include "fs/commit.h"
#include "lib/launch.h"
#include "lib/lib_internal.h"
#include "lib/workspace_internal.h"
#include "policy/policy.h"
#include "sys/at.h"

bool workspace_covers(const struct workspace *ws, const char *path)
{
	for (size_t i = 0; ws && i < ws->n_roots; i++)
		if (path_is_beneath(path, ws->roots[i].path))
			return true;
	return false;
}

char *workspace_find(const struct workspace *ws, const char *path)
{
	if (!ws)
		return NULL;
	auto_free char *real = realpath(path, NULL);
	return real && workspace_covers(ws, real) ? take_ptr(real) : NULL;
}

/* --- Workdirs ----------------------------------------------------------------------------- */

/* What the base makes its own, or the kernel's: nothing there can be changed by a commit. */
static bool is_unfit(const char *path)
{
	static const char *const places[] = {"/proc", "/sys", "/dev/pts", "/dev/mqueue"};
	for (size_t i = 0; i < ARRAY_SIZE(places); i++)
		if (path_is_beneath(path, places[i]) || path_is_beneath(places[i], path))
			return true;
	return str_eq(path, "/dev/shm");
}

static int find_root(const char *path, char **ret_real, struct sandlock_error *err)
{
	char quoted[QUOTE_SIZE];
	struct stat st;
	quote_str(path, quoted, sizeof(quoted));
	auto_free char *real = realpath(path, NULL);
	if (!real || stat(real, &st) < 0)
		return api_fail(err, SANDLOCK_E_INVALID, errno, "--workdir %s: %s", quoted,
				strerror(errno));
	if (!S_ISDIR(st.st_mode))
		return api_fail(err, SANDLOCK_E_INVALID, ENOTDIR, "--workdir %s is no directory",
				quoted);
	if (is_unfit(real) && !str_eq(real, "/"))
		return api_fail(err, SANDLOCK_E_INVALID, EINVAL,
				"--workdir %s: no layer can lie over what is private to a sandbox",
				quoted);
	*ret_real = take_ptr(real);
	return 0;
}

static bool is_covered(const struct strv *all, size_t i)
{
	for (size_t k = 0; k < all->n; k++)
		if (k != i && path_is_beneath(all->v[i], all->v[k]) &&
		    (k < i || !str_eq(all->v[i], all->v[k])))
			return true;
	return false;
}

/* Those that lie in another one are that one's. */
static int find_roots(struct workspace *ws, const struct policy *p, struct strv *ret,
		      struct sandlock_error *err)
{
	struct strv all = {0};
	int r = 0;
	for (size_t i = 0; r == 0 && i < p->workdirs.n; i++) {
		char *real = NULL;
		r = find_root(p->workdirs.v[i], &real, err);
		if (r == 0)
			strv_add_take(&all, real);
	}
	if (r == 0 && all.n > 0)
		ws->cwd = xstrdup(all.v[0]);
	for (size_t i = 0; r == 0 && i < all.n; i++) {
		if (is_covered(&all, i))
			continue;
		r = workspace_check_mounts(all.v[i], err);
		strv_add(ret, all.v[i]);
	}
	strv_done(&all);
	return r;
}

/* --- Storage ------------------------------------------------------------------------------ */

static void find_state(const char *dir, const char *name, struct strv *ret)
{
	auto_free char *path = dir && path_is_absolute(dir) ? path_join(dir, name) : NULL;
	auto_free char *real = path ? realpath(path, NULL) : NULL;
	if (real && !strv_has(ret, real))
		strv_add(ret, real);
}

void workspace_find_states(struct strv *ret)
{
	auto_free char *last = xasprintf("sandlock-%u", (unsigned int)geteuid());
	find_state(getenv("XDG_STATE_HOME"), "sandlock", ret);
	find_state(getenv("HOME"), ".local/state/sandlock", ret);
	find_state("/var/tmp", last, ret);
}

/* What recovery cannot mend is told, and in the way of commits to that directory only. */
static void sweep(struct workspace *ws, struct strv *warnings)
{
	struct err e = {0};
	if (commit_sweep(&ws->store, &e) < 0)
		warn_add(warnings, "an earlier change set needs a look: %s", e.msg);
}

static int open_store(struct workspace *ws, const struct policy *p, struct strv *warnings,
		      struct sandlock_error *err)
{
	char path[PATH_MAX];
	struct err e = {0};
	if (store_open(p->fs_storage, &ws->io, &ws->store, &e) < 0)
		return lib_fail(err, &e);
	int r = (int)at_name(ws->store.dir, path, sizeof(path));
	if (r <= 0 || path[0] != '/')
		return api_fail(err, SANDLOCK_E_INVALID, -r,
				"The state directory has no name that could be hidden");
	workspace_find_states(&ws->hidden);
	if (!strv_has(&ws->hidden, path))
		strv_add(&ws->hidden, path);
	sweep(ws, warnings);
	return 0;
}

static int fill_info(struct workspace *ws, const struct policy *p, const struct strv *roots,
		     char *const *argv, struct set_info *info, struct sandlock_error *err)
{
	info->workdirs = xcalloc(roots->n + 1, sizeof(*info->workdirs));
	for (size_t i = 0; i < roots->n; i++) {
		struct set_workdir *w = &info->workdirs[info->n_workdirs++];
		w->path = xstrdup(roots->v[i]);
		int r = fs_identify(&ws->io, AT_FDCWD, w->path, &w->id);
		if (r < 0)
			return api_fail(err, lib_code(-r), -r, "--workdir %s: %s", w->path,
					strerror(-r));
	}
	for (size_t i = 0; argv[i]; i++)
		strv_add(&info->command, argv[i]);
	clock_gettime(CLOCK_REALTIME, &info->began);
	info->keep_on_death = !p->dry_run && p->on_error != ACTION_ABORT;
	return 0;
}

static int make_root(struct workspace *ws, size_t i, struct sandlock_error *err)
{
	struct workspace_root *root = &ws->roots[i];
	char store[PATH_MAX];
	struct stat st;
	struct err e = {0};
	if (set_make_layer(&ws->set, i, &e) < 0)
		return lib_fail(err, &e);
	auto_close int dir = set_open_layer(&ws->set, i);
	root->path = ws->set.info.workdirs[i].path;
	int r = dir < 0 ? dir : (int)at_name(dir, store, sizeof(store));
	if (r >= 0)
		r = fs_stat(dir, "", &st);
	if (r >= 0) {
		root->store = xstrdup(store);
		root->store_dev = st.st_dev;
		root->store_ino = st.st_ino;
		r = stat(root->path, &st) < 0 ? -errno : 0;
		root->dev = st.st_dev;
		root->ino = st.st_ino;
	}
	if (r >= 0 && path_is_beneath(root->path, root->store))
		r = -EINVAL;
	return r < 0 ? api_fail(err, lib_code(-r), -r, "No layer can be made over %s: %s",
				root->path, strerror(-r))
		     : 0;
}

static int open_all(struct workspace *ws, const struct policy *p, char *const *argv,
		    struct strv *warnings, struct sandlock_error *err)
{
	AUTO(set_info_done) struct set_info info = {0};
	struct strv roots = {0};
	struct err e = {0};
	int r = find_roots(ws, p, &roots, err);
	if (r == 0)
		r = open_store(ws, p, warnings, err);
	if (r == 0)
		r = fill_info(ws, p, &roots, argv, &info, err);
	for (size_t i = 0; r == 0 && i < roots.n; i++)
		r = workspace_check_grants(roots.v[i], &p->fs_write, err);
	strv_done(&roots);
	if (r < 0)
		return r;
	if (set_create(&ws->store, &info, &ws->set, &e) < 0)
		return lib_fail(err, &e);
	ws->open = true;
	ws->n_roots = info.n_workdirs;
	ws->roots = xcalloc(ws->n_roots + 1, sizeof(*ws->roots));
	for (size_t i = 0; r == 0 && i < ws->n_roots; i++)
		r = make_root(ws, i, err);
	return r;
}

int workspace_open(const struct policy *p, char *const *argv, struct strv *warnings,
		   struct workspace **ret, struct sandlock_error *err)
{
	*ret = NULL;
	if (!p->workdirs.n)
		return 0;
	struct workspace *ws = xnew(struct workspace);
	ws->store.dir = ws->set.dir = ws->set.lock = -1;
	ws->on_exit = p->on_exit;
	ws->on_error = p->on_error;
	ws->on_conflict = p->on_conflict;
	ws->dry_run = p->dry_run;
	AUTO(buf_done) struct buf storage = BUF_INIT(4 * PATH_MAX + 32);
	if (p->fs_storage) {
		buf_add_str(&storage, " --fs-storage ");
		buf_add_shell(&storage, p->fs_storage);
	}
	ws->storage = xstrdup(buf_text(&storage));
	int r = open_all(ws, p, argv, warnings, err);
	if (r < 0) {
		workspace_free(ws, false);
		return r;
	}
	*ret = ws;
	return 0;
}

/* --- What a start asks -------------------------------------------------------------------- */

/*
 * A regular file of a workdir as a standard stream is the host's own, as a shell opens it. Where a
 * write grant holds the workdir, the sandbox could open that file again for writing.
 */
int workspace_check_stdio(const struct workspace *ws, const struct policy *p, const int fds[3],
			  struct sandlock_error *err)
{
	static const char *const names[] = {"input", "output", "error"};
	for (int i = 0; ws && i < 3; i++) {
		char path[PATH_MAX];
		struct stat st;
		if (fds[i] < 0 || fstat(fds[i], &st) < 0 || !S_ISREG(st.st_mode) ||
		    at_name(fds[i], path, sizeof(path)) <= 0 || !workspace_covers(ws, path))
			continue;
		for (size_t k = 0; k < p->fs_write.n; k++) {
			auto_free char *real = realpath(p->fs_write.v[k], NULL);
			if (!real || workspace_covers(ws, real) || !path_is_beneath(path, real))
				continue;
			return api_fail(err, SANDLOCK_E_INVALID, EINVAL,
					"Standard %s is a file of a workdir, and write grant %s "
					"would open it past the layer: use a pipe, or a narrower "
					"grant",
					names[i], p->fs_write.v[k]);
		}
	}
	return 0;
}

const char *workspace_cwd(const struct workspace *ws)
{
	return ws ? ws->cwd : NULL;
}

size_t workspace_roots(const struct workspace *ws, const struct workspace_root **ret)
{
	*ret = ws ? ws->roots : NULL;
	return ws ? ws->n_roots : 0;
}

const struct strv *workspace_hidden(const struct workspace *ws)
{
	return &ws->hidden;
}

int workspace_lock(const struct workspace *ws)
{
	return ws ? ws->set.lock : -1;
}
