/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The path resolver against the kernel: another process, the task, opens a path by itself, the
 * resolver finds it for that process, and both must have come to the same object or the same errno.
 * As root the task is somebody else, and the resolver acts with that one's rights.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/util.h"
#include "supervise/act.h"
#include "supervise/box.h"
#include "supervise/resolve.h"

enum { OTHER_ID = 65534, FIRST_FD = 100 };

/* What of task.c the resolver uses: here nobody waits for an answer. */
static bool stale;

bool call_is_alive(const struct call *call)
{
	return !stale;
}

ssize_t call_read_str(struct call *call, uint64_t addr, char *ret_text, size_t size)
{
	struct iovec local = {ret_text, size};
	struct iovec remote = {(void *)(uintptr_t)addr, size};
	ssize_t n = process_vm_readv(call->tid, &local, 1, &remote, 1, 0);
	return n < 0 ? -errno : (ssize_t)strnlen(ret_text, size);
}

int call_fd_path(struct call *call, int fd)
{
	char path[48];
	if (fd == AT_FDCWD)
		snprintf(path, sizeof(path), "/proc/%d/cwd", call->tid);
	else
		snprintf(path, sizeof(path), "/proc/%d/fd/%d", call->tid, fd);
	int copy = open(path, O_PATH | O_CLOEXEC);
	return copy >= 0 ? copy : errno == ENOENT && fd != AT_FDCWD ? -EBADF : -errno;
}

/* ---- The task ---- */

struct request {
	int dirfd;
	int flags; /* of openat */
	char path[PATH_MAX + 8];
};

struct reply {
	int error;
	uint64_t dev, ino;
	char name[PATH_MAX];
};

struct world {
	char top[PATH_MAX];
	int sock;
	pid_t task, other;
	struct box box;
	struct call call;
};

static void must(bool ok)
{
	if (!ok) {
		perror("test-resolve");
		_exit(99);
	}
}

/* In the directory TOP, with descriptors of many kinds at fixed numbers. */
static void make_tree(void)
{
	char text[64];
	char name[NAME_MAX + 1];
	must(mkdir("d", 0755) == 0 && mkdir("d/e", 0755) == 0 && mkdir("closed", 0755) == 0);
	must(close(open("d/f", O_CREAT | O_WRONLY, 0644)) == 0);
	must(close(open("closed/f", O_CREAT | O_WRONLY, 0644)) == 0);
	must(chmod("closed", 0) == 0);
	static const char *const links[][2] = {
		{"d/f", "lf"},
		{"d", "ld"},
		{"ld", "lld"},
		{"..", "up"},
		{"nowhere", "dang"},
		{"loop", "loop"},
		{"pong", "ping"},
		{"ping", "pong"},
		{"d/", "lslash"},
		{"d/f/", "lfslash"},
		{"/", "lroot"},
		{".", "ldot"},
		{"../d/e", "d/side"},
		{"/proc/self", "me"},
		{"closed", "lc"},
		{"d/../lf", "ldd"},
		{"/proc/self/fd", "fds"},
		{"/proc/thread-self/cwd", "mycwd"},
		{"/dev/fd", "devfd"},
	};
	for (size_t i = 0; i < ARRAY_SIZE(links); i++)
		must(symlink(links[i][0], links[i][1]) == 0);
	must(symlink("d", "chain0") == 0);
	for (int i = 1; i <= 41; i++) {
		snprintf(text, sizeof(text), "chain%d", i - 1);
		snprintf(name, sizeof(name), "chain%d", i);
		must(symlink(text, name) == 0);
	}
	memset(name, 'n', sizeof(name));
	name[NAME_MAX] = '\0';
	must(close(open(name, O_CREAT | O_WRONLY, 0644)) == 0);
	must(close(open("real (deleted)", O_CREAT | O_WRONLY, 0644)) == 0);
}

static void open_descriptors(void)
{
	int fds[2];
	must(pipe(fds) == 0 && dup2(fds[0], FIRST_FD) >= 0);
	must(dup2(open("d", O_RDONLY | O_DIRECTORY), FIRST_FD + 1) >= 0);
	must(dup2(open("d/f", O_RDONLY), FIRST_FD + 2) >= 0);
	must(dup2(open("gone", O_CREAT | O_RDWR, 0644), FIRST_FD + 3) >= 0);
	must(unlink("gone") == 0);
	must(dup2((int)syscall(SYS_memfd_create, "x", 0), FIRST_FD + 4) >= 0);
	must(dup2(open("lf", O_PATH | O_NOFOLLOW), FIRST_FD + 5) >= 0);
	must(mkdir("gonedir", 0755) == 0);
	must(dup2(open("gonedir", O_PATH | O_DIRECTORY), FIRST_FD + 6) >= 0);
	must(rmdir("gonedir") == 0);
	must(dup2(open("/", O_PATH | O_DIRECTORY), FIRST_FD + 7) >= 0);
}

static void answer(int sock, const struct request *q)
{
	struct reply a = {0};
	struct stat st;
	char link[32];
	int fd = openat(q->dirfd, q->path, O_PATH | q->flags);
	if (fd < 0) {
		a.error = errno;
	} else {
		must(fstat(fd, &st) == 0);
		a.dev = st.st_dev;
		a.ino = st.st_ino;
		snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
		must(readlink(link, a.name, sizeof(a.name) - 1) > 0);
		close(fd);
	}
	must(write(sock, &a, sizeof(a)) == sizeof(a));
}

static _Noreturn void be_task(int sock, const char *top)
{
	struct request q;
	must(chdir(top) == 0);
	if (getuid() == 0) {
		must(chown(".", OTHER_ID, OTHER_ID) == 0);
		must(syscall(SYS_setgroups, 0, NULL) == 0 && setgid(OTHER_ID) == 0);
		must(setuid(OTHER_ID) == 0);
	}
	/* Changing ids has made it undumpable, as an exec in a sandbox would not leave it. */
	must(syscall(SYS_prctl, 4 /* PR_SET_DUMPABLE */, 1, 0, 0, 0) == 0);
	make_tree();
	open_descriptors();
	must(write(sock, "r", 1) == 1);
	while (read(sock, &q, sizeof(q)) == sizeof(q))
		answer(sock, &q);
	_exit(0);
}

static int setup(void **state)
{
	struct world *w = xnew(struct world);
	int socks[2];
	char ready;
	snprintf(w->top, sizeof(w->top), "/tmp/resolve-XXXXXX");
	assert_non_null(mkdtemp(w->top));
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, socks), 0);
	w->task = fork();
	if (w->task == 0) {
		close(socks[0]);
		be_task(socks[1], w->top);
	}
	close(socks[1]);
	w->other = fork();
	if (w->other == 0) {
		pause();
		_exit(0);
	}
	w->sock = socks[0];
	assert_int_equal(read(w->sock, &ready, 1), 1);
	w->box.as_root = getuid() == 0;
	w->box.host_uid = w->box.as_root ? OTHER_ID : getuid();
	w->box.host_gid = w->box.as_root ? OTHER_ID : getgid();
	w->box.guardian_pid = w->task;
	w->call = (struct call){.box = &w->box, .tid = w->task, .pidfd = -1, .on_worker = true};
	*state = w;
	return 0;
}

static int teardown(void **state)
{
	struct world *w = *state;
	char *const argv[] = {(char *)(uintptr_t) "rm", (char *)(uintptr_t) "-rf", w->top, NULL};
	kill(w->task, SIGKILL);
	kill(w->other, SIGKILL);
	while (wait(NULL) > 0) {
	}
	pid_t pid = fork();
	if (pid == 0) {
		char closed[PATH_MAX + 16];
		snprintf(closed, sizeof(closed), "%s/closed", w->top);
		chmod(closed, 0755);
		execvp(argv[0], argv);
		_exit(1);
	}
	waitpid(pid, NULL, 0);
	close(w->sock);
	util_close(w->box.root_plus_one - 1);
	free(w);
	return 0;
}

static int resolve(struct world *w, int dirfd, const char *path, unsigned int flags,
		   struct resolved *ret)
{
	struct act act;
	assert_int_equal(act_begin(&w->box, &act), 0);
	int r = resolve_path(&w->call, dirfd, path, flags, ret);
	act_end(&act);
	return r;
}

static struct reply ask(struct world *w, int dirfd, const char *path, bool nofollow)
{
	struct request q = {.dirfd = dirfd, .flags = nofollow ? O_NOFOLLOW : 0};
	struct reply a;
	snprintf(q.path, sizeof(q.path), "%s", path);
	assert_int_equal(write(w->sock, &q, sizeof(q)), sizeof(q));
	assert_int_equal(read(w->sock, &a, sizeof(a)), sizeof(a));
	return a;
}

/* Both ways; with and without following the last link. */
static void compare(struct world *w, int dirfd, const char *path)
{
	for (int nofollow = 0; nofollow < 2; nofollow++) {
		AUTO(resolved_done) struct resolved r = RESOLVED_INIT;
		struct reply a = ask(w, dirfd, path, nofollow);
		w->call.on_worker = true;
		int e = resolve(w, dirfd, path, nofollow ? RESOLVE_NOFOLLOW : 0, &r);
		if (-e != a.error || (e == 0 && (r.dev != a.dev || r.ino != a.ino)))
			fail_msg("%d:%s nofollow %d: %d %lu %s, kernel %d %lu %s", dirfd, path,
				 nofollow, -e, (unsigned long)r.ino, r.path, a.error,
				 (unsigned long)a.ino, a.name);
		if (e == 0 && !r.deleted)
			assert_string_equal(r.path, a.name);
		resolved_done(&r);
		w->call.on_worker = false;
		e = resolve(w, dirfd, path, nofollow ? RESOLVE_NOFOLLOW : 0, &r);
		if (e != -EAGAIN)
			assert_int_equal(-e, a.error);
		w->call.on_worker = true;
	}
}

static void test_table(void **state)
{
	static const char *const rows[] = {
		"d",
		"d/f",
		"d/f/",
		"d/f/.",
		"d/f/..",
		"d/f/x",
		"d/",
		"d/.",
		"d/..",
		"d//e///",
		"nope",
		"nope/x",
		"lf",
		"lf/",
		"ld",
		"ld/",
		"ld/f",
		"lld/e",
		"lld/e/..",
		"dang",
		"dang/",
		"dang/x",
		"loop",
		"loop/",
		"ping",
		"ping/x",
		"lslash",
		"lslash/f",
		"lfslash",
		"lroot",
		"lroot/tmp",
		"lroot/..",
		"ldot",
		"ldot/ldot/d",
		"d/side",
		"d/side/../f",
		"ldd",
		"closed",
		"closed/f",
		"closed/..",
		"closed/.",
		"lc/f",
		"lc/",
		"chain0",
		"chain39/f",
		"chain39",
		"chain40",
		"chain40/f",
		"chain41",
		"../../../../../../..",
		"../../../../../../../etc",
		"up",
		"up/up",
		"lroot/../../tmp/..",
		".",
		"./",
		"..",
		"/",
		"//",
		"/.",
		"/..",
		"/../..//tmp",
		"/tmp/..",
		"/proc/self",
		"/proc/self/",
		"/proc/self/cwd",
		"/proc/self/cwd/d",
		"/proc/self/cwd/",
		"/proc/self/root",
		"/proc/self/root/tmp",
		"/proc/self/exe",
		"/proc/self/exe/",
		"/proc/self/status",
		"/proc/thread-self",
		"/proc/thread-self/cwd",
		"/proc/thread-self/status",
		"/proc/self/fd/100",
		"/proc/self/fd/100/",
		"/proc/self/fd/101",
		"/proc/self/fd/101/f",
		"/proc/self/fd/101/..",
		"/proc/self/fd/102",
		"/proc/self/fd/102/",
		"/proc/self/fd/102/x",
		"/proc/self/fd/103",
		"/proc/self/fd/104",
		"/proc/self/fd/105",
		"/proc/self/fd/106",
		"/proc/self/fd/106/x",
		"/proc/self/fd/106/..",
		"/proc/self/fd/107",
		"/proc/self/fd/999",
		"/proc/self/fd/x",
		"/proc/self/ns/mnt",
		"/proc/self/ns/mnt/",
		"/proc/mounts",
		"/proc/net/tcp",
		"/proc/net",
		"/proc/self/task/../cwd",
		"me",
		"me/",
		"me/cwd",
		"me/fd/101",
		"fds/102",
		"fds/105",
		"mycwd",
		"mycwd/d",
		"devfd",
		"devfd/102",
		"devfd/101/e/..",
		"/dev/stdin",
		"/dev/fd/102",
		"/dev/fd/105",
		"real (deleted)",
		"d/../closed/../d",
	};
	struct world *w = *state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		compare(w, AT_FDCWD, rows[i]);
	for (int fd = FIRST_FD - 1; fd <= FIRST_FD + 8; fd++) {
		compare(w, fd, "f");
		compare(w, fd, "..");
		compare(w, fd, ".");
		compare(w, fd, "/tmp");
		compare(w, fd, "side");
		compare(w, fd, "side/../../ld/f");
	}
	compare(w, -1, "f");
	compare(w, -1000, "f");
	compare(w, INT_MIN, "/tmp");
}

static void test_lengths(void **state)
{
	struct world *w = *state;
	char path[PATH_MAX + 2];
	for (size_t n = NAME_MAX - 1; n <= NAME_MAX + 2; n++) {
		memset(path, 'n', n);
		path[n] = '\0';
		compare(w, AT_FDCWD, path);
		snprintf(path + n, sizeof(path) - n, "/x");
		compare(w, AT_FDCWD, path);
	}
	for (size_t n = PATH_MAX - 2; n <= PATH_MAX + 1; n++) {
		memset(path, '/', n);
		memcpy(path, "./ld", 4);
		path[n] = '\0';
		compare(w, AT_FDCWD, path);
		memcpy(path + n - 1, "f", 1);
		compare(w, AT_FDCWD, path);
	}
}

/* Words put together by chance, the same in each run. */
static void test_random(void **state)
{
	static const char *const words[] = {
		"d",	"f",	       "e",	"lf",	"ld",	"lld",	  "up",	    "dang",
		"loop", "lslash",      "lroot", "ldot", "side", "me",	  "closed", "lc",
		"fds",	"mycwd",       "devfd", "..",	"..",	".",	  "",	    "fd",
		"cwd",	"root",	       "101",	"102",	"103",	"105",	  "107",    "proc",
		"self", "thread-self", "task",	"tmp",	"ldd",	"chain5",
	};
	static const char *const starts[] = {
		"", "", "", "/", "/proc/self/", "/proc/thread-self/", "/proc/self/fd/"};
	struct world *w = *state;
	uint64_t x = 88172645463325252ULL;
	char path[512];
	for (int i = 0; i < 6000; i++) {
		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
		uint64_t y = x;
		int n = snprintf(path, sizeof(path), "%s", starts[y % ARRAY_SIZE(starts)]);
		y /= ARRAY_SIZE(starts);
		for (size_t parts = 1 + y % 6; parts > 0; parts--) {
			y = y / 7 + (x >> 5) * parts;
			n += snprintf(path + n, sizeof(path) - (size_t)n, "%s%s",
				      words[y % ARRAY_SIZE(words)],
				      parts > 1 || y / 64 % 4 == 0 ? "/" : "");
		}
		if (path[0])
			compare(w, x % 3 ? AT_FDCWD : FIRST_FD + (int)(x / 3 % 8), path);
	}
}

static void check_parent(struct world *w, const char *path, unsigned int flags, int error,
			 const char *parent, const char *last)
{
	AUTO(resolved_done) struct resolved r = RESOLVED_INIT;
	char expected[2 * PATH_MAX];
	int e = resolve(w, AT_FDCWD, path, flags, &r);
	if (-e != error)
		fail_msg("%s: %d, expected %d", path, -e, error);
	if (e < 0)
		return;
	snprintf(expected, sizeof(expected), "%s%s", *parent == '/' ? "" : w->top, parent);
	if (*parent == '=')
		snprintf(expected, sizeof(expected), "%s", w->top);
	else if (*parent != '/')
		snprintf(expected, sizeof(expected), "%s/%s", w->top, parent);
	assert_string_equal(r.path, expected);
	assert_string_equal(r.last, last);
}

static void test_parent(void **state)
{
	struct world *w = *state;
	const unsigned int p = RESOLVE_PARENT;
	const unsigned int c = RESOLVE_CREATE;
	check_parent(w, "new", p, 0, "=", "new");
	check_parent(w, "new/", p, 0, "=", "new/");
	check_parent(w, "new//", p, 0, "=", "new/");
	check_parent(w, "d/f", p, 0, "d", "f");
	check_parent(w, "lf", p, 0, "=", "lf");
	check_parent(w, "ld/f", p, 0, "d", "f");
	check_parent(w, "ld/e/", p, 0, "d", "e/");
	check_parent(w, "ld/e/..", p, 0, "d", "");
	check_parent(w, "d/.", p, 0, "d", "");
	check_parent(w, ".", p, 0, "=", "");
	check_parent(w, "/", p, 0, "/", "");
	check_parent(w, "/new", p, 0, "/", "new");
	check_parent(w, "nope/new", p, ENOENT, "", "");
	check_parent(w, "d/f/new", p, ENOTDIR, "", "");
	check_parent(w, "lf/new", p, ENOTDIR, "", "");
	check_parent(w, "loop/new", p, ELOOP, "", "");
	check_parent(w, "/proc/self/fd/100/x", p, ENOTDIR, "", "");
	check_parent(w, "/proc/self/cwd/x", p, 0, "=", "x");
	check_parent(w, "new", c, 0, "=", "new");
	check_parent(w, "d/f", c, 0, "d", "f");
	check_parent(w, "lf", c, 0, "d", "f");
	check_parent(w, "ld", c, 0, "=", "d");
	check_parent(w, "dang", c, 0, "=", "nowhere");
	check_parent(w, "ldd", c, 0, "d", "f");
	check_parent(w, "loop", c, ELOOP, "", "");
	check_parent(w, "ldot", c, 0, "=", "");
}

static void test_empty(void **state)
{
	struct world *w = *state;
	AUTO(resolved_done) struct resolved r = RESOLVED_INIT;
	assert_int_equal(resolve(w, AT_FDCWD, "", 0, &r), -ENOENT);
	assert_int_equal(resolve(w, AT_FDCWD, "", RESOLVE_EMPTY, &r), 0);
	assert_string_equal(r.path, w->top);
	resolved_done(&r);
	assert_int_equal(resolve(w, FIRST_FD + 5, "", RESOLVE_EMPTY, &r), 0);
	assert_true(S_ISLNK(r.mode));
	resolved_done(&r);
	assert_int_equal(resolve(w, 999, "", RESOLVE_EMPTY, &r), -EBADF);
}

static void test_what_has_no_name(void **state)
{
	struct world *w = *state;
	static const struct {
		int fd;
		bool deleted, anonymous;
	} rows[] = {
		{0, false, true}, {1, false, false}, {2, false, false}, {3, true, false},
		{4, true, true},  {5, false, false}, {6, true, false},
	};
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		AUTO(resolved_done) struct resolved r = RESOLVED_INIT;
		assert_int_equal(resolve(w, FIRST_FD + rows[i].fd, "", RESOLVE_EMPTY, &r), 0);
		assert_int_equal(r.deleted, rows[i].deleted);
		assert_int_equal(r.anonymous, rows[i].anonymous);
	}
	AUTO(resolved_done) struct resolved real = RESOLVED_INIT;
	assert_int_equal(resolve(w, AT_FDCWD, "real (deleted)", 0, &real), 0);
	assert_false(real.deleted);
	AUTO(resolved_done) struct resolved ns = RESOLVED_INIT;
	assert_int_equal(resolve(w, AT_FDCWD, "/proc/self/ns/mnt", 0, &ns), 0);
	assert_false(ns.anonymous);
}

/* This process could follow the links of processes that the task may not. */
static void test_links_of_others(void **state)
{
	struct world *w = *state;
	AUTO(resolved_done) struct resolved r = RESOLVED_INIT;
	char path[64];
	static const char *const links[] = {"cwd", "exe", "root", "fd/0", "ns/mnt"};
	const pid_t pids[] = {getpid(), w->other, 1};
	for (size_t i = 0; i < ARRAY_SIZE(links) * ARRAY_SIZE(pids); i++) {
		snprintf(path, sizeof(path), "/proc/%d/%s", pids[i / ARRAY_SIZE(links)],
			 links[i % ARRAY_SIZE(links)]);
		int e = resolve(w, AT_FDCWD, path, 0, &r);
		if (e != -EACCES)
			fail_msg("%s: %d", path, e);
	}
	if (w->box.as_root)
		return; /* the other process is root's: not the task's to look into */
	/* One that descends from the same guardian is the sandbox's. */
	w->box.guardian_pid = getpid();
	snprintf(path, sizeof(path), "/proc/%d/cwd", w->other);
	assert_int_equal(resolve(w, AT_FDCWD, path, 0, &r), 0);
	w->box.guardian_pid = w->task;
}

static void test_gone(void **state)
{
	struct world *w = *state;
	AUTO(resolved_done) struct resolved r = RESOLVED_INIT;
	stale = true;
	w->box.root_plus_one = 0;
	assert_int_equal(resolve(w, AT_FDCWD, "/tmp", 0, &r), -ESRCH);
	stale = false;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_table),  cmocka_unit_test(test_lengths),
		cmocka_unit_test(test_random), cmocka_unit_test(test_parent),
		cmocka_unit_test(test_empty),  cmocka_unit_test(test_what_has_no_name),
		cmocka_unit_test(test_gone),   cmocka_unit_test(test_links_of_others),
	};
	return cmocka_run_group_tests(tests, setup, teardown);
}
