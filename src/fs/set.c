/* SPDX-License-Identifier: Apache-2.0 */
/* One change set in the state directory. */
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/sha256.h"
#include "base/util.h"
#include "fs/file.h"
#include "fs/store.h"
#include "fs/tree.h"
#include "sys/at.h"

static const char *const status_names[SET_STATUS_COUNT] = {
	[SET_RUNNING] = "running",     [SET_KEPT] = "kept",	  [SET_COMMITTING] = "committing",
	[SET_COMMITTED] = "committed", [SET_UNDOING] = "undoing", [SET_UNDONE] = "undone",
	[SET_REDOING] = "redoing",
};

const char *set_status_name(enum set_status status)
{
	return status_names[status];
}

void set_done(struct set *set)
{
	set->dir = util_close(set->dir);
	set->lock = util_close(set->lock);
	set_info_done(&set->info);
}

void set_done_cleanup(struct set *set)
{
	set_done(set);
}

int set_prepare_status(struct set *set, enum set_status status, const struct timespec *since,
		       bool sync)
{
	char text[80];
	struct timespec now;
	clock_gettime(CLOCK_REALTIME, &now);
	set->status = status;
	set->since = since ? *since : now;
	int n = snprintf(text, sizeof(text), "%s %lld.%09ld\n", status_names[status],
			 (long long)set->since.tv_sec, set->since.tv_nsec);
	return file_prepare(set->store->io, set->dir, "status", text, (size_t)n, sync);
}

int set_place_status(struct set *set)
{
	return file_place(set->store->io, set->dir, "status");
}

int set_change_status(struct set *set, enum set_status status, const struct timespec *since)
{
	int r = set_prepare_status(set, status, since, true);
	return r < 0 ? r : set_place_status(set);
}

static int read_status(struct set *set)
{
	auto_free char *text = NULL;
	size_t len = 0;
	int r = file_read(set->dir, "status", 256, &text, &len);
	if (r < 0)
		return r;
	char *blank = strchr(text, ' ');
	if (!blank)
		return -EINVAL;
	*blank = '\0';
	const char *at = blank + 1;
	struct timespec since;
	if (!file_time(&at, '\n', &since) || *at)
		return -EINVAL;
	for (size_t i = 0; i < SET_STATUS_COUNT; i++) {
		if (!str_eq(text, status_names[i]))
			continue;
		set->status = (enum set_status)i;
		set->since = since;
		return 0;
	}
	return -EINVAL;
}

/* `landed`: the time of the status that it belongs to, the prints, and a sum over both. */
static void sum_landed(const struct set *set, const uint64_t *prints, size_t n,
		       uint8_t ret_digest[SHA256_SIZE])
{
	const int64_t since[2] = {set->since.tv_sec, set->since.tv_nsec};
	struct sha256 sum;
	sha256_init(&sum);
	sha256_add(&sum, since, sizeof(since));
	sha256_add(&sum, prints, n * sizeof(*prints));
	sha256_end(&sum, ret_digest);
}

bool set_read_landed(const struct set *set, size_t n, uint64_t **ret_prints)
{
	auto_free char *data = NULL;
	size_t len = 0;
	uint8_t digest[SHA256_SIZE];
	size_t size = n * sizeof(uint64_t);
	if (file_read(set->dir, "landed", size + SHA256_SIZE, &data, &len) < 0 ||
	    len != size + SHA256_SIZE)
		return false;
	uint64_t *prints = xcalloc(n + 1, sizeof(uint64_t));
	memcpy(prints, data, size);
	sum_landed(set, prints, n, digest);
	if (memcmp(digest, data + size, SHA256_SIZE) != 0) {
		free(prints);
		return false;
	}
	*ret_prints = prints;
	return true;
}

int set_note_landed(struct set *set, const uint64_t *prints, size_t n)
{
	AUTO(buf_done) struct buf text = BUF_INIT(SIZE_MAX / 4);
	uint8_t digest[SHA256_SIZE];
	sum_landed(set, prints, n, digest);
	buf_add(&text, (const char *)prints, n * sizeof(*prints));
	buf_add(&text, (const char *)digest, sizeof(digest));
	if (text.error)
		return text.error;
	/* It need not survive a power failure: without it the time of the status decides. */
	int r = file_prepare(set->store->io, set->dir, "landed", text.data, text.len, false);
	return r < 0 ? r : fs_rename(set->store->io, set->dir, "landed.tmp", set->dir, "landed", 0);
}

static int lock_set(struct set *set)
{
	auto_close int fd = fs_open_file(set->dir, "lock", O_RDWR);
	if (fd < 0)
		return fd;
	if (flock(fd, LOCK_EX | LOCK_NB) < 0)
		return errno == EWOULDBLOCK ? -EBUSY : -errno;
	set->lock = take_fd(&fd);
	return 0;
}

static void make_id(char *out, size_t size)
{
	struct timespec now;
	struct tm tm;
	unsigned int random = 0;
	clock_gettime(CLOCK_REALTIME, &now);
	if (getrandom(&random, sizeof(random), GRND_NONBLOCK) < 0)
		random = (unsigned int)now.tv_nsec ^ (unsigned int)getpid();
	gmtime_r(&now.tv_sec, &tm);
	char day[24];
	strftime(day, sizeof(day), "%Y%m%d-%H%M%S", &tm);
	/* The milliseconds keep the order of sets that are made in one second. */
	snprintf(out, size, "%s.%03ld-%04x", day, now.tv_nsec / 1000000 % 1000, random & 0xffff);
}

static int fill_new(struct set *set)
{
	AUTO(buf_done) struct buf text = BUF_INIT((size_t)16 * 1024 * 1024);
	const struct fs_io *io = set->store->io;
	int r = set_info_encode(&set->info, &text);
	int fd = r < 0 ? r : fs_create(io, set->dir, "lock", 0600);
	if (fd < 0)
		return fd;
	set->lock = fd;
	if (flock(fd, LOCK_EX | LOCK_NB) < 0)
		return -errno;
	r = file_prepare(io, set->dir, "info", text.data, text.len, false);
	if (r >= 0)
		r = fs_rename(io, set->dir, "info.tmp", set->dir, "info", 0);
	/* Nothing of this need be durable: what a power failure leaves of it is a dead run. */
	if (r >= 0)
		r = set_prepare_status(set, SET_RUNNING, NULL, false);
	return r < 0 ? r : fs_rename(io, set->dir, "status.tmp", set->dir, "status", 0);
}

static void copy_info(struct set_info *to, const struct set_info *from)
{
	*to = (struct set_info){.began = from->began, .keep_on_death = from->keep_on_death};
	strv_copy(&to->command, &from->command);
	to->workdirs = xcalloc(from->n_workdirs + 1, sizeof(struct set_workdir));
	to->n_workdirs = from->n_workdirs;
	for (size_t i = 0; i < from->n_workdirs; i++)
		to->workdirs[i] = (struct set_workdir){.path = xstrdup(from->workdirs[i].path),
						       .id = from->workdirs[i].id};
}

int set_create(const struct store *store, const struct set_info *info, struct set *ret,
	       struct err *err)
{
	struct set set = {.store = store, .dir = -1, .lock = -1};
	char hidden[64];
	auto_close int all = fs_open_dir(store->dir, "changes", O_PATH);
	int r = all < 0 ? all : -EEXIST;
	/* Nobody sees it before it is locked and whole. */
	for (int i = 0; r == -EEXIST && i < 100; i++) {
		make_id(set.id, sizeof(set.id));
		snprintf(hidden, sizeof(hidden), ".new-%s", set.id);
		r = fs_make_dir(store->io, all, hidden, 0700);
	}
	if (r >= 0) {
		copy_info(&set.info, info);
		set.dir = fs_open_dir(all, hidden, O_RDONLY);
		r = set.dir < 0 ? set.dir : fill_new(&set);
		if (r >= 0)
			r = fs_rename(store->io, all, hidden, all, set.id, RENAME_NOREPLACE);
		if (r < 0)
			(void)tree_remove(store->io, all, hidden);
	}
	if (r < 0) {
		set_done(&set);
		return err_sys(err, -r, "no change set can be made in %s", store->path);
	}
	*ret = set;
	return 0;
}

int set_open_layer(const struct set *set, size_t n)
{
	char path[32];
	snprintf(path, sizeof(path), "layers/%zu", n);
	return fs_open_dir(set->dir, path, O_RDONLY);
}

/* The merged root shows what the upper one has: mode, attributes and time of the workdir. */
static int make_upper(const struct fs_io *io, int dir, const char *workdir)
{
	struct stat st;
	auto_close int from = at_open(AT_FDCWD, workdir, O_DIRECTORY, 0);
	int r = from < 0 ? from : fs_stat(from, "", &st);
	if (r >= 0)
		r = fs_make_dir(io, dir, "upper", 0700);
	if (r >= 0)
		r = fs_make_dir(io, dir, "work", 0700);
	auto_close int to = r < 0 ? r : fs_open_dir(dir, "upper", O_PATH);
	return to < 0 ? to : tree_copy_metadata(io, from, to, st.st_mode, true);
}

int set_make_layer(struct set *set, size_t n, struct err *err)
{
	char name[16];
	char quoted[QUOTE_SIZE];
	const struct fs_io *io = set->store->io;
	int r = fs_make_dir(io, set->dir, "layers", 0700);
	auto_close int layers = r < 0 && r != -EEXIST ? r : fs_open_dir(set->dir, "layers", O_PATH);
	snprintf(name, sizeof(name), "%zu", n);
	r = layers < 0 ? layers : fs_make_dir(io, layers, name, 0700);
	auto_close int dir = r < 0 ? r : fs_open_dir(layers, name, O_PATH);
	r = dir < 0 ? dir : make_upper(io, dir, set->info.workdirs[n].path);
	if (r < 0)
		return err_sys(err, -r, "no layer can be made over %s",
			       quote_str(set->info.workdirs[n].path, quoted, sizeof(quoted)));
	return 0;
}

static int find_newest(const struct store *store, char *id, size_t size)
{
	AUTO(fs_names_done) struct fs_names names = {0};
	int r = store_list(store, &names);
	if (r < 0 || names.n == 0)
		return r < 0 ? r : -ENOENT;
	snprintf(id, size, "%s", names.v[names.n - 1]);
	return 0;
}

static int load(struct set *set, const char *id, bool lock)
{
	auto_free char *text = NULL;
	size_t len = 0;
	int r = 0;
	if (id && *id)
		snprintf(set->id, sizeof(set->id), "%s", id);
	else
		r = find_newest(set->store, set->id, sizeof(set->id));
	if (r < 0 || strchr(set->id, '/') || set->id[0] == '.')
		return r < 0 ? r : -ENOENT;
	auto_close int all = fs_open_dir(set->store->dir, "changes", O_PATH);
	set->dir = all < 0 ? all : fs_open_dir(all, set->id, O_RDONLY);
	if (set->dir < 0)
		return set->dir;
	r = lock ? lock_set(set) : 0;
	if (r >= 0)
		r = file_read(set->dir, "info", (size_t)16 * 1024 * 1024, &text, &len);
	if (r >= 0)
		r = set_info_decode(text, len, &set->info);
	return r < 0 ? r : read_status(set);
}

int set_open(const struct store *store, const char *id, bool lock, struct set *ret, struct err *err)
{
	char quoted[QUOTE_SIZE];
	struct set set = {.store = store, .dir = -1, .lock = -1};
	int r = load(&set, id, lock);
	if (r >= 0) {
		*ret = set;
		return 0;
	}
	set_done(&set);
	quote_str(id && *id ? id : "", quoted, sizeof(quoted));
	if (r == -ENOENT)
		return err_set(err, ENOENT,
			       "there is no change set %s; `sandlock changes` lists them", quoted);
	if (r == -EBUSY)
		return err_set(err, EBUSY, "change set %s is in use", quoted);
	return err_sys(err, -r, "change set %s cannot be read", quoted);
}

int set_remove_layers(struct set *set)
{
	return tree_remove(set->store->io, set->dir, "layers");
}

/* Out of sight at once; what a killed process leaves of it the next sweep finds by its dot. */
int set_remove(struct set *set)
{
	char gone[64];
	const struct fs_io *io = set->store->io;
	auto_close int all = fs_open_dir(set->store->dir, "changes", O_PATH);
	if (all < 0)
		return all;
	snprintf(gone, sizeof(gone), ".gone-%s", set->id);
	int r = fs_rename(io, all, set->id, all, gone, RENAME_NOREPLACE);
	return r < 0 ? r : tree_remove(io, all, gone);
}
