/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Power loss: every change that a commit, an undo or a redo makes is recorded at src/sys, and for
 * each moment the disk is made up again as a power failure may leave it: what a sync has covered is
 * there, of the rest any part (each operation whole, those of one directory in order or not). Then
 * recovery runs, and the workdir must be the old one or the new one.
 *
 * Inode numbers differ on the made-up disk, so the hook gives each object the identity that it had.
 * The disks lie in a directory of this run's own, whose name nobody can guess or meet again, and in
 * memory where that can be: what counts as written is the model's business, not the kernel's.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/util.h"
#include "fs/commit.h"
#include "fs/tree.h"
#include "sys/at.h"

enum { OPS_MAX = 2000, OBJECTS_MAX = 4000, DISKS_MAX = 20000, TREE_MAX = 1024 * 1024 };

/* One change, by the inodes that it had when it was recorded. */
struct record {
	enum fs_op op;
	struct fs_id id; /* of the object, or of DIR */
	struct fs_id id2;
	struct fs_id made; /* identity of what was made */
	char *name;
	char *name2;
	char *data;
	size_t len;
	uint64_t value;
	struct timespec mtime;
};

struct identity {
	uint64_t here; /* inode now */
	struct fs_id was;
};

struct world {
	char home[64]; /* all disks are in it */
	int home_dir;
	char top[80]; /* the one in use */
	bool is_recording;
	struct record records[OPS_MAX];
	size_t n_records;
	struct identity ids[OBJECTS_MAX]; /* of the made-up disk */
	size_t n_ids;
	uint64_t tried[DISKS_MAX]; /* a number for each disk that was made up in this step */
	size_t n_tried;
};

static const char disk[] = "disk";
static const char base[] = "base"; /* as it was before the step */
static const char done[] = "done"; /* the disk that the step ran on */

static struct fs_id id_of(int fd)
{
	char link[40];
	struct statx sx;
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	assert_int_equal(statx(AT_FDCWD, link, 0, STATX_INO | STATX_BTIME, &sx), 0);
	return (struct fs_id){.ino = sx.stx_ino,
			      .born = (uint64_t)sx.stx_btime.tv_sec * 1000000000u +
				      sx.stx_btime.tv_nsec};
}

static void record(struct world *w, const struct fs_call *c)
{
	assert_true(w->n_records < OPS_MAX);
	struct record *r = &w->records[w->n_records++];
	bool by_fd = c->op >= FS_WRITE;
	*r = (struct record){.op = c->op, .value = c->value, .len = c->len};
	r->id = id_of(by_fd ? c->fd : c->dir);
	if (c->op == FS_LINK || c->op == FS_RENAME)
		r->id2 = id_of(c->dir2);
	r->name = c->name ? xstrdup(c->name) : NULL;
	r->name2 = c->name2 ? xstrdup(c->name2) : NULL;
	if (c->op == FS_SYMLINK)
		r->len = strlen(c->data) + 1;
	if (c->data) {
		r->data = xzalloc(r->len + 1);
		memcpy(r->data, c->data, r->len);
	}
	if (c->times)
		r->mtime = c->times[1];
	if (c->op == FS_MKDIR || c->op == FS_CREATE || c->op == FS_SYMLINK || c->op == FS_MKNOD)
		assert_int_equal(fs_identify(NULL, c->dir, c->name, &r->made), 0);
}

static int on_call(void *data, const struct fs_call *c)
{
	struct world *w = data;
	if (c->op == FS_IDENTIFY) {
		for (size_t i = 0; i < w->n_ids; i++)
			if (w->ids[i].here == c->id->ino)
				*c->id = w->ids[i].was;
		return 0;
	}
	if (c->op == FS_CLONE && !c->after)
		return -EOPNOTSUPP; /* its data would have to be recorded */
	if (c->after && w->is_recording)
		record(w, c);
	return 0;
}

/* --- Trees as texts ----------------------------------------------------------------------- */

static void add_tree(struct buf *out, int dir, const char *name, const char *way)
{
	struct stat st;
	char text[4097] = "";
	auto_free char *path = xasprintf("%s%s", way, name);
	assert_int_equal(fs_stat(dir, name, &st), 0);
	if (S_ISLNK(st.st_mode)) {
		assert_true(at_read_link_of(dir, name, text, sizeof(text)) >= 0);
	} else if (S_ISREG(st.st_mode)) {
		auto_close int fd = fs_open_file(dir, name, O_RDONLY);
		assert_int_equal(fs_read(fd, text, sizeof(text) - 1, 0), st.st_size);
	}
	buf_printf(out, "%s %o %lld %lld.%09ld ", path, st.st_mode,
		   S_ISDIR(st.st_mode) ? 0LL : (long long)st.st_size, (long long)st.st_mtim.tv_sec,
		   st.st_mtim.tv_nsec);
	/* In hexadecimal, as part of a file may be zeros. */
	for (long long i = 0; !S_ISDIR(st.st_mode) && i < st.st_size; i++)
		buf_printf(out, "%02x", (unsigned char)text[i]);
	buf_printf(out, "\n");
	if (!S_ISDIR(st.st_mode))
		return;
	AUTO(fs_names_done) struct fs_names names = {0};
	auto_close int fd = fs_open_dir(dir, name, O_RDONLY);
	auto_free char *below = xasprintf("%s/", path);
	assert_int_equal(fs_list(fd, 1000, &names), 0);
	for (size_t i = 0; i < names.n; i++)
		add_tree(out, fd, names.v[i], below);
}

static void read_work(const struct world *w, struct buf *out)
{
	auto_close int top = fs_open_dir(w->home_dir, disk, O_PATH);
	buf_clear(out);
	add_tree(out, top, "work", "");
	assert_int_equal(out->error, 0);
}

/* With cp, since the whiteouts are devices, which tree_copy does not make. */
static void copy_disk(const struct world *w, const char *from_name, const char *to_name)
{
	auto_free char *from = xasprintf("%s/%s", w->home, from_name);
	auto_free char *to = xasprintf("%s/%s", w->home, to_name);
	pid_t pid = fork();
	if (pid == 0) {
		execl("/bin/cp", "cp", "-a", from, to, (char *)NULL);
		_exit(127);
	}
	int status = 0;
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

/* --- The scene ---------------------------------------------------------------------------- */

static void put(int dir, const char *name, const char *text, mode_t mode)
{
	auto_close int fd = fs_create(NULL, dir, name, mode);
	assert_true(fd >= 0);
	assert_int_equal(fs_write(NULL, fd, text, strlen(text), 0), 0);
}

static void white(int dir, const char *name)
{
	assert_int_equal(mknodat(dir, name, S_IFCHR, makedev(0, 0)), 0);
}

static int sub(int dir, const char *name)
{
	assert_int_equal(fs_make_dir(NULL, dir, name, 0755), 0);
	int fd = fs_open_dir(dir, name, O_PATH);
	assert_true(fd >= 0);
	return fd;
}

static void make_work(const struct world *w)
{
	auto_close int top = fs_open_dir(w->home_dir, disk, O_PATH);
	auto_close int work = sub(top, "work");
	auto_close int d = sub(work, "d");
	auto_close int gone = sub(work, "gone");
	put(work, "a", "old a", 0644);
	put(work, "one", "linked", 0644);
	assert_int_equal(fs_hard_link(NULL, work, "one", work, "two"), 0);
	put(work, "mode", "m", 0600);
	put(d, "x", "x", 0644);
	put(gone, "g", "g", 0644);
	assert_int_equal(fs_make_link(NULL, work, "s", "a"), 0);
}

static void make_upper(struct set *set)
{
	auto_close int layer = set_open_layer(set, 0);
	auto_close int up = fs_open_dir(layer, "upper", O_PATH);
	auto_close int d = sub(up, "d");
	auto_close int n = sub(up, "new");
	put(up, "a", "new a, longer", 0755);
	put(up, "one", "linked, changed", 0644);
	put(up, "mode", "m", 0640);
	white(up, "gone");
	white(d, "x");
	put(d, "y", "y", 0644);
	put(n, "f", "f", 0600);
	assert_int_equal(fs_make_link(NULL, n, "l", "../a"), 0);
	put(up, "s", "a file now", 0644);
}

static void begin(struct world *w, const struct fs_io *io, struct store *store, struct set *set)
{
	AUTO(set_info_done) struct set_info info = {0};
	struct err err = {0};
	bool in_memory = access("/dev/shm", W_OK) == 0;
	snprintf(w->home, sizeof(w->home), "%s/sandlock-power-XXXXXX",
		 in_memory ? "/dev/shm" : "/tmp");
	assert_non_null(mkdtemp(w->home));
	w->home_dir = at_open(AT_FDCWD, w->home, O_DIRECTORY, 0);
	assert_true(w->home_dir >= 0);
	snprintf(w->top, sizeof(w->top), "%s/%s", w->home, disk);
	assert_int_equal(fs_make_dir(NULL, w->home_dir, disk, 0700), 0);
	make_work(w);
	auto_free char *state = xasprintf("%s/state", w->top);
	auto_free char *work = xasprintf("%s/work", w->top);
	assert_int_equal(store_open(state, io, store, &err), 0);
	info.workdirs = xcalloc(1, sizeof(struct set_workdir));
	info.n_workdirs = 1;
	info.workdirs[0].path = xstrdup(work);
	assert_int_equal(fs_identify(NULL, AT_FDCWD, work, &info.workdirs[0].id), 0);
	clock_gettime(CLOCK_REALTIME, &info.began);
	assert_int_equal(set_create(store, &info, set, &err), 0);
	assert_int_equal(set_make_layer(set, 0, &err), 0);
	make_upper(set);
	assert_int_equal(set_change_status(set, SET_KEPT, &info.began), 0);
}

/* --- Making a disk up --------------------------------------------------------------------- */

static void add_id(struct world *w, uint64_t here, const struct fs_id *was)
{
	for (size_t i = 0; i < w->n_ids; i++) {
		if (w->ids[i].here != here)
			continue;
		w->ids[i].was = *was; /* the number is used anew */
		return;
	}
	assert_true(w->n_ids < OBJECTS_MAX);
	w->ids[w->n_ids++] = (struct identity){.here = here, .was = *was};
}

/* The objects of the copy HERE get the identities of those of the original WAS. */
static void map_tree(struct world *w, int here, int was, const char *name)
{
	struct stat st;
	struct fs_id id;
	assert_int_equal(fs_stat(here, name, &st), 0);
	assert_int_equal(fs_identify(NULL, was, name, &id), 0);
	add_id(w, st.st_ino, &id);
	if (!S_ISDIR(st.st_mode))
		return;
	AUTO(fs_names_done) struct fs_names names = {0};
	auto_close int a = fs_open_dir(here, name, O_RDONLY);
	auto_close int b = fs_open_dir(was, name, O_PATH);
	assert_int_equal(fs_list(a, 1000, &names), 0);
	for (size_t i = 0; i < names.n; i++)
		map_tree(w, a, b, names.v[i]);
}

/* The object that was INO, as O_PATH: found by a walk over the made-up disk. */
static int find(const struct world *w, int dir, const char *name, uint64_t here)
{
	struct stat st;
	if (fs_stat(dir, name, &st) < 0)
		return -1;
	if (st.st_ino == here)
		return fs_open_any(dir, name);
	if (!S_ISDIR(st.st_mode))
		return -1;
	AUTO(fs_names_done) struct fs_names names = {0};
	auto_close int fd = fs_open_dir(dir, name, O_RDONLY);
	if (fd < 0 || fs_list(fd, 1000, &names) < 0)
		return -1;
	for (size_t i = 0; i < names.n; i++) {
		int r = find(w, fd, names.v[i], here);
		if (r >= 0)
			return r;
	}
	return -1;
}

static int object(const struct world *w, const struct fs_id *was)
{
	for (size_t i = 0; i < w->n_ids; i++)
		if (fs_id_same(&w->ids[i].was, was))
			return find(w, w->home_dir, disk, w->ids[i].here);
	return -1;
}

static int write_at(int held, const struct record *r)
{
	auto_close int fd = at_reopen(held, O_WRONLY);
	if (fd < 0)
		return fd;
	return r->op == FS_WRITE ? fs_write(NULL, fd, r->data, r->len, r->value)
				 : fs_truncate(NULL, fd, r->value);
}

static int repeat(const struct record *r, int fd, int fd2)
{
	switch (r->op) {
	case FS_MKDIR:
		return fs_make_dir(NULL, fd, r->name, (mode_t)r->value);
	case FS_CREATE: {
		int made = fs_create(NULL, fd, r->name, (mode_t)r->value);
		return made < 0 ? made : (util_close(made), 0);
	}
	case FS_SYMLINK:
		return fs_make_link(NULL, fd, r->name, r->data);
	case FS_MKNOD:
		return fs_make_node(NULL, fd, r->name, (mode_t)r->value);
	case FS_LINK:
		return fs_hard_link(NULL, fd, r->name, fd2, r->name2);
	case FS_RENAME:
		return fs_rename(NULL, fd, r->name, fd2, r->name2, (unsigned int)r->value);
	case FS_UNLINK:
		return fs_unlink(NULL, fd, r->name, (int)r->value);
	case FS_WRITE:
	case FS_TRUNCATE:
		return write_at(fd, r);
	case FS_SET_MODE:
		return fs_set_mode(NULL, fd, (mode_t)r->value);
	case FS_SET_TIMES:
		return fs_set_mtime(NULL, fd, &r->mtime);
	case FS_SET_XATTR:
		return fs_set_xattr(NULL, fd, r->name, r->data, r->len);
	case FS_REMOVE_XATTR:
		return fs_remove_xattr(NULL, fd, r->name);
	case FS_CLONE:
	case FS_SET_OWNER:
	case FS_SYNC:
	case FS_SYNC_ALL:
	case FS_IDENTIFY:
	case FS_OP_COUNT:
		break;
	}
	return 0;
}

/*
 * What cannot be done, because something that it needs is missing or in its way, did not reach the
 * disk; where ALL is done nothing can be missing. Any other failure is one of the test.
 */
static void replay(struct world *w, const struct record *r, bool all)
{
	struct stat st;
	auto_close int fd = object(w, &r->id);
	auto_close int fd2 = r->id2.ino ? object(w, &r->id2) : -1;
	bool is_there = fd >= 0 && (!r->id2.ino || fd2 >= 0);
	assert_true(is_there || !all);
	if (!is_there)
		return;
	int done_now = repeat(r, fd, fd2);
	bool is_missing = done_now == -ENOENT || done_now == -EEXIST || done_now == -ENOTEMPTY;
	if (done_now < 0 && (all || !is_missing))
		fail_msg("change %d of %s: %s", (int)r->op, r->name ? r->name : "a file",
			 strerror(-done_now));
	if (done_now == 0 && r->made.ino && fs_stat(fd, r->name, &st) == 0)
		add_id(w, st.st_ino, &r->made);
}

/* Whether record I is on the disk for sure at moment K. */
static bool is_durable(const struct world *w, size_t i, size_t k)
{
	const struct record *r = &w->records[i];
	for (size_t j = i + 1; j < k; j++) {
		const struct record *s = &w->records[j];
		if (s->op == FS_SYNC_ALL)
			return true;
		if (s->op == FS_SYNC &&
		    (fs_id_same(&s->id, &r->id) || (r->id2.ino && fs_id_same(&s->id, &r->id2))))
			return true;
	}
	return false;
}

enum part { PART_ALL, PART_NONE, PART_NAMES, PART_RANDOM, PART_COUNT };

static bool is_chosen(const struct world *w, size_t i, enum part part, unsigned int *seed)
{
	switch (part) {
	case PART_ALL:
		return true;
	case PART_NONE:
		return false;
	case PART_NAMES: /* names reach the disk before what they lead to */
		return w->records[i].op < FS_WRITE;
	case PART_RANDOM:
	case PART_COUNT:
		break;
	}
	*seed = *seed * 1103515245u + 12345u;
	return *seed >> 30 & 1;
}

/* Which of the first K records are on the disk; false: that disk was tried already. */
static bool choose(struct world *w, size_t k, enum part part, unsigned int seed,
		   bool chosen[OPS_MAX])
{
	uint64_t print = 14695981039346656037u;
	for (size_t i = 0; i < k; i++) {
		bool is_sync = w->records[i].op == FS_SYNC || w->records[i].op == FS_SYNC_ALL;
		chosen[i] = !is_sync && (is_durable(w, i, k) || is_chosen(w, i, part, &seed));
		if (chosen[i])
			print = (print ^ (i + 1)) * 1099511628211u;
	}
	for (size_t i = 0; i < w->n_tried; i++)
		if (w->tried[i] == print)
			return false;
	assert_true(w->n_tried < DISKS_MAX);
	w->tried[w->n_tried++] = print;
	return true;
}

/* A new disk: the one before the first record, and of the K that followed those CHOSEN. */
static void make_up(struct world *w, const struct world *before, size_t k,
		    const bool chosen[OPS_MAX], bool all)
{
	copy_disk(w, base, disk);
	w->n_ids = 0;
	auto_close int here = fs_open_dir(w->home_dir, disk, O_PATH);
	auto_close int was = fs_open_dir(w->home_dir, base, O_PATH);
	map_tree(w, here, was, "work");
	map_tree(w, here, was, "state");
	/* BASE is a copy itself: the identities are those of what it was copied from. */
	for (size_t i = 0; i < w->n_ids; i++)
		for (size_t j = 0; j < before->n_ids; j++)
			if (before->ids[j].here == w->ids[i].was.ino) {
				w->ids[i].was = before->ids[j].was;
				break;
			}
	for (size_t i = 0; i < k; i++)
		if (chosen[i])
			replay(w, &w->records[i], all);
}

/* --- The test ----------------------------------------------------------------------------- */

struct step {
	const char *name;
	int (*run)(struct set *set, struct err *err);
};

static int run_apply(struct set *set, struct err *err)
{
	struct commit_options options = {.wait_ms = 1000};
	struct commit_result result = {0};
	return commit_apply(set, &options, &result, err);
}

static int run_undo(struct set *set, struct err *err)
{
	return commit_undo(set, false, 1000, err);
}

static int run_redo(struct set *set, struct err *err)
{
	return commit_redo(set, false, 1000, err);
}

static void recover_and_check(struct world *w, const struct fs_io *io, struct buf *old_tree,
			      struct buf *new_tree, const char *what)
{
	AUTO(store_done) struct store store = {.dir = -1};
	AUTO(buf_done) struct buf now = BUF_INIT(TREE_MAX);
	struct err err = {0};
	auto_free char *state = xasprintf("%s/state", w->top);
	assert_int_equal(store_open(state, io, &store, &err), 0);
	int r = commit_sweep(&store, &err);
	if (r < 0)
		fail_msg("%s: %s (kept in %s)", what, err.msg, w->home);
	read_work(w, &now);
	if (str_eq(buf_text(&now), buf_text(old_tree)) ||
	    str_eq(buf_text(&now), buf_text(new_tree)))
		return;
	print_error("old:\n%snew:\n%sfound:\n%s", buf_text(old_tree), buf_text(new_tree),
		    buf_text(&now));
	fail_msg("%s: the tree is neither the old nor the new one (kept in %s)", what, w->home);
}

static void forget_records(struct world *w)
{
	for (size_t i = 0; i < w->n_records; i++) {
		free(w->records[i].name);
		free(w->records[i].name2);
		free(w->records[i].data);
	}
	w->n_records = 0;
}

/* Every disk that the records may have left. */
static void try_disks(struct world *w, const struct world *before, const struct fs_io *io,
		      struct buf *old_tree, struct buf *new_tree, const char *step)
{
	static const size_t n_parts = PART_COUNT + 2; /* three random ones */
	bool chosen[OPS_MAX];
	w->n_tried = 0;
	for (size_t k = 0; k <= w->n_records; k++) {
		for (size_t i = 0; i < n_parts; i++) {
			char what[80];
			enum part part = i < PART_COUNT ? (enum part)i : PART_RANDOM;
			if (!choose(w, k, part, (unsigned int)(k * 7 + i), chosen))
				continue;
			snprintf(what, sizeof(what), "%s, %zu of %zu, part %zu", step, k,
				 w->n_records, i);
			make_up(w, before, k, chosen, part == PART_ALL);
			recover_and_check(w, io, old_tree, new_tree, what);
			assert_int_equal(tree_remove(NULL, w->home_dir, disk), 0);
		}
	}
}

/* Runs STEP on the disk as it is and then tries every moment of it. */
static void try_step(struct world *w, const struct fs_io *io, struct set *set,
		     const struct step *step)
{
	AUTO(buf_done) struct buf old_tree = BUF_INIT(TREE_MAX);
	AUTO(buf_done) struct buf new_tree = BUF_INIT(TREE_MAX);
	struct err err = {0};
	/* The original inodes stay with the disk that the step runs on, which moves aside. */
	read_work(w, &old_tree);
	copy_disk(w, disk, base);
	struct world *before = xnew(struct world);
	auto_close int here = fs_open_dir(w->home_dir, base, O_PATH);
	auto_close int was = fs_open_dir(w->home_dir, disk, O_PATH);
	map_tree(before, here, was, "work");
	map_tree(before, here, was, "state");
	w->n_ids = 0;
	w->is_recording = true;
	int r = step->run(set, &err);
	w->is_recording = false;
	if (r < 0)
		fail_msg("%s: %s", step->name, err.msg);
	read_work(w, &new_tree);
	assert_string_not_equal(buf_text(&old_tree), buf_text(&new_tree));
	assert_int_equal(fs_rename(NULL, w->home_dir, disk, w->home_dir, done, 0), 0);
	try_disks(w, before, io, &old_tree, &new_tree, step->name);
	w->n_ids = 0;
	forget_records(w);
	free(before);
	assert_int_equal(tree_remove(NULL, w->home_dir, base), 0);
	assert_int_equal(fs_rename(NULL, w->home_dir, done, w->home_dir, disk, 0), 0);
}

static void test_power(void **state)
{
	static const struct step steps[] = {
		{"apply", run_apply}, {"undo", run_undo}, {"redo", run_redo}};
	(void)state;
	struct world *w = xnew(struct world);
	struct fs_io io = {.hook = on_call, .data = w};
	AUTO(store_done) struct store store = {.dir = -1};
	AUTO(set_done) struct set set = {.dir = -1, .lock = -1};
	begin(w, &io, &store, &set);
	for (size_t i = 0; i < ARRAY_SIZE(steps); i++)
		try_step(w, &io, &set, &steps[i]);
	assert_int_equal(tree_remove(NULL, w->home_dir, disk), 0);
	util_close(w->home_dir);
	assert_int_equal(rmdir(w->home), 0);
	free(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_power),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
