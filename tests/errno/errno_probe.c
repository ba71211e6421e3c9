/* SPDX-License-Identifier: Apache-2.0 */
/*
 * errno-probe DIR: makes some two hundred system calls in DIR, a fresh empty directory, half of
 * which must fail, and prints `name ok|fail errno` for each. The test compares the lines from
 * inside a sandbox that grants DIR with those from outside.
 *
 * Invariant: nothing printed depends on time, process ids, descriptor numbers or what else runs.
 */
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

static const char *prefix;

static void report(const char *name, long r)
{
	int e = errno;
	const char *text = r < 0 ? strerrorname_np(e) : "0";

	printf("%s.%s %s %s\n", prefix, name, r < 0 ? "fail" : "ok", text ? text : "?");
}

#define T(name, expr)                                                                              \
	do {                                                                                       \
		errno = 0;                                                                         \
		report(name, (long)(expr));                                                        \
	} while (0)

static int put(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);

	if (fd < 0)
		return -1;
	if (write(fd, text, strlen(text)) < 0)
		return -1;
	return close(fd);
}

static char *long_name(size_t len)
{
	char *s = malloc(len + 1);

	if (!s)
		abort();
	memset(s, 'n', len);
	s[len] = '\0';
	return s;
}

/* Files that the other groups use. */
static void prepare(void)
{
	prefix = "prepare";
	T("file", put("file", "some text\n"));
	T("dir", mkdir("dir", 0755));
	T("full", mkdir("full", 0755));
	T("full/f", put("full/f", "f"));
	T("empty", mkdir("empty", 0755));
	T("closed", mkdir("closed", 0000));
	T("secret", put("secret", "s"));
	T("link", symlink("file", "link"));
	T("dangling", symlink("nowhere", "dangling"));
	T("loop-a", symlink("loop-b", "loop-a"));
	T("loop-b", symlink("loop-a", "loop-b"));
	T("dirlink", symlink("dir", "dirlink"));
	T("fifo", mkfifo("fifo", 0644));
	T("script", put("script", "not a program"));
	T("chmod-script", chmod("script", 0755));
	T("chmod-secret", chmod("secret", 0000));
	T("readonly", put("readonly", "r"));
	T("chmod-readonly", chmod("readonly", 0444));
}

static void opens(void)
{
	char *long_text = long_name(300);
	char *too_long = long_name(5000);

	prefix = "open";
	T("read", open("file", O_RDONLY));
	T("write", open("file", O_WRONLY));
	T("append", open("file", O_RDWR | O_APPEND));
	T("missing", open("nothing", O_RDONLY));
	T("missing-parent", open("nothing/below", O_RDONLY | O_CREAT, 0644));
	T("not-a-directory", open("file/below", O_RDONLY));
	T("directory-write", open("dir", O_WRONLY));
	T("directory-read", open("dir", O_RDONLY));
	T("directory-creat", open("dir", O_RDONLY | O_CREAT, 0644));
	T("directory-flag", open("file", O_RDONLY | O_DIRECTORY));
	T("nofollow", open("link", O_RDONLY | O_NOFOLLOW));
	T("link", open("link", O_RDONLY));
	T("dangling", open("dangling", O_RDONLY));
	T("loop", open("loop-a", O_RDONLY));
	T("excl-existing", open("file", O_WRONLY | O_CREAT | O_EXCL, 0644));
	T("excl-dangling", open("dangling", O_WRONLY | O_CREAT | O_EXCL, 0644));
	T("excl-new", open("new-excl", O_WRONLY | O_CREAT | O_EXCL, 0644));
	T("creat", creat("new-creat", 0600));
	T("name-too-long", open(long_text, O_RDONLY));
	T("path-too-long", open(too_long, O_RDONLY));
	T("empty-name", open("", O_RDONLY));
	T("null-name", syscall(SYS_openat, AT_FDCWD, NULL, O_RDONLY));
	T("bad-dirfd", openat(-1, "file", O_RDONLY));
	T("no-permission", open("secret", O_RDONLY));
	T("closed-directory", open("closed/x", O_RDONLY));
	T("readonly-write", open("readonly", O_WRONLY));
	T("tmpfile", open(".", O_TMPFILE | O_RDWR, 0600));
	T("tmpfile-on-file", open("file", O_TMPFILE | O_RDWR, 0600));
	T("tmpfile-readonly", open(".", O_TMPFILE | O_RDONLY, 0600));
	T("fifo-write-nonblock", open("fifo", O_WRONLY | O_NONBLOCK));
	T("fifo-read-nonblock", open("fifo", O_RDONLY | O_NONBLOCK));
	T("path", open("secret", O_PATH));
	T("path-link", open("dangling", O_PATH | O_NOFOLLOW));
	T("trunc", open("file", O_WRONLY | O_TRUNC));
	T("dev-null", open("/dev/null", O_RDWR));
	T("dev-zero", open("/dev/zero", O_RDONLY));
	T("dev-full", open("/dev/full", O_WRONLY));
	T("access-usr-bin-env", access("/usr/bin/env", X_OK));
	free(long_text);
	free(too_long);
}

static void openat2s(void)
{
	struct open_how how = {.flags = O_RDONLY};
	struct open_how beneath = {.flags = O_RDONLY, .resolve = RESOLVE_BENEATH};
	struct open_how nolinks = {.flags = O_RDONLY, .resolve = RESOLVE_NO_SYMLINKS};
	struct open_how inroot = {.flags = O_RDONLY, .resolve = RESOLVE_IN_ROOT};
	struct open_how bad = {.flags = O_RDONLY, .resolve = 1U << 30};
	struct open_how mode = {.flags = O_RDONLY, .mode = 0644};
	int dir = open(".", O_PATH | O_DIRECTORY);

	prefix = "openat2";
	T("read", syscall(SYS_openat2, dir, "file", &how, sizeof(how)));
	T("missing", syscall(SYS_openat2, dir, "nothing", &how, sizeof(how)));
	T("beneath", syscall(SYS_openat2, dir, "dir/../file", &beneath, sizeof(how)));
	T("beneath-escape", syscall(SYS_openat2, dir, "../file", &beneath, sizeof(how)));
	T("beneath-absolute", syscall(SYS_openat2, dir, "/file", &beneath, sizeof(how)));
	T("no-symlinks", syscall(SYS_openat2, dir, "link", &nolinks, sizeof(how)));
	T("in-root", syscall(SYS_openat2, dir, "/file", &inroot, sizeof(how)));
	T("bad-resolve", syscall(SYS_openat2, dir, "file", &bad, sizeof(how)));
	T("mode-without-creat", syscall(SYS_openat2, dir, "file", &mode, sizeof(how)));
	T("short-struct", syscall(SYS_openat2, dir, "file", &how, (size_t)4));
	T("bad-address", syscall(SYS_openat2, dir, "file", NULL, sizeof(how)));
	close(dir);
}

static void names(void)
{
	prefix = "name";
	T("mkdir", mkdir("made", 0755));
	T("mkdir-existing", mkdir("made", 0755));
	T("mkdir-on-file", mkdir("file", 0755));
	T("mkdir-missing-parent", mkdir("nothing/below", 0755));
	T("mkdir-below-file", mkdir("file/below", 0755));
	T("mkdir-dot", mkdir(".", 0755));
	T("rmdir", rmdir("made"));
	T("rmdir-missing", rmdir("made"));
	T("rmdir-full", rmdir("full"));
	T("rmdir-file", rmdir("file"));
	T("rmdir-dot", rmdir("empty/."));
	T("rmdir-link", rmdir("dirlink"));
	T("unlink", unlink("new-creat"));
	T("unlink-missing", unlink("new-creat"));
	T("unlink-directory", unlink("dir"));
	T("unlink-slash", unlink("file/"));
	T("unlinkat-bad-flag", unlinkat(AT_FDCWD, "file", 0x8000));
	T("symlink-existing", symlink("x", "file"));
	T("symlink-empty", symlink("", "void"));
	T("link", link("file", "hard"));
	T("link-existing", link("file", "hard"));
	T("link-directory", link("dir", "hard-dir"));
	T("link-missing", link("nothing", "hard-2"));
	T("link-across", link("file", "dir/hard"));
	T("linkat-bad-flag", linkat(AT_FDCWD, "file", AT_FDCWD, "h3", 0x8000));
	T("rename", rename("hard", "hard-2"));
	T("rename-missing", rename("hard", "x"));
	T("rename-file-on-dir", rename("hard-2", "dir"));
	T("rename-dir-on-file", rename("empty", "file"));
	T("rename-dir-on-full", rename("empty", "full"));
	T("rename-into-itself", rename("dir", "dir/below"));
	T("rename-across", rename("hard-2", "dir/moved"));
	T("rename-dir-across", rename("empty", "dir/empty"));
	T("rename-noreplace", syscall(SYS_renameat2, AT_FDCWD, "file", AT_FDCWD, "dir/moved", 1));
	T("rename-exchange", syscall(SYS_renameat2, AT_FDCWD, "file", AT_FDCWD, "dir/moved", 2));
	T("rename-exchange-missing", syscall(SYS_renameat2, AT_FDCWD, "file", AT_FDCWD, "no", 2));
	T("rename-both-flags", syscall(SYS_renameat2, AT_FDCWD, "file", AT_FDCWD, "no", 3));
	T("mknod-fifo", mknod("fifo-2", S_IFIFO | 0644, 0));
	T("mknod-existing", mknod("fifo-2", S_IFIFO | 0644, 0));
	T("mknod-file", mknod("made-file", S_IFREG | 0644, 0));
	T("mknod-directory", mknod("made-dir", S_IFDIR | 0755, 0));
	T("mknod-device", mknod("made-device", S_IFCHR | 0644, 0x103));
}

static void looks(void)
{
	struct stat st;
	struct statx sx;
	struct statfs sf;
	char buf[4096];

	prefix = "look";
	T("stat", stat("file", &st));
	T("stat-missing", stat("nothing", &st));
	T("stat-dangling", stat("dangling", &st));
	T("lstat-dangling", lstat("dangling", &st));
	T("stat-loop", stat("loop-a", &st));
	T("stat-closed", stat("closed/x", &st));
	T("stat-bad-address", syscall(SYS_newfstatat, AT_FDCWD, "file", NULL, 0));
	T("fstat-bad", fstat(-1, &st));
	T("fstatat-empty", fstatat(AT_FDCWD, "", &st, AT_EMPTY_PATH));
	T("statx", statx(AT_FDCWD, "file", 0, STATX_BASIC_STATS, &sx));
	T("statx-bad-mask", statx(AT_FDCWD, "file", 0, 0x80000000U, &sx));
	T("statx-bad-flag", statx(AT_FDCWD, "file", 0x8000, STATX_BASIC_STATS, &sx));
	T("statfs", statfs(".", &sf));
	T("statfs-missing", statfs("nothing", &sf));
	T("access", access("file", R_OK | W_OK));
	T("access-exec", access("file", X_OK));
	T("access-readonly", access("readonly", W_OK));
	T("access-secret", access("secret", R_OK));
	T("access-missing", access("nothing", F_OK));
	T("access-bad-mode", access("file", 8));
	T("access-directory", access(".", R_OK | W_OK | X_OK));
	T("faccessat2", syscall(SYS_faccessat2, AT_FDCWD, "file", R_OK, AT_EACCESS));
	T("faccessat2-bad-flag", syscall(SYS_faccessat2, AT_FDCWD, "file", R_OK, 0x8000));
	T("readlink", readlink("link", buf, sizeof(buf)));
	T("readlink-file", readlink("file", buf, sizeof(buf)));
	T("readlink-missing", readlink("nothing", buf, sizeof(buf)));
	T("readlink-zero", readlink("link", buf, 0));
	T("getcwd-small", syscall(SYS_getcwd, buf, 1UL));
	T("chdir", chdir("dir"));
	T("chdir-back", chdir(".."));
	T("chdir-file", chdir("file"));
	T("chdir-closed", chdir("closed"));
	T("chdir-missing", chdir("nothing"));
	T("fchdir-bad", fchdir(-1));
	T("getdents-file", syscall(SYS_getdents64, open("file", O_RDONLY), buf, sizeof(buf)));
	T("getdents-small", syscall(SYS_getdents64, open(".", O_RDONLY), buf, 1UL));
	T("getdents", syscall(SYS_getdents64, open(".", O_RDONLY), buf, sizeof(buf)));
}

static void contents(void)
{
	char buf[64];
	int fd = open("file", O_RDWR);
	int ro = open("file", O_RDONLY);
	int wo = open("file", O_WRONLY);
	int path = open("file", O_PATH);
	struct iovec v = {buf, sizeof(buf)};

	prefix = "content";
	T("write", write(fd, "hello\n", 6));
	T("pread", pread(fd, buf, 4, 0));
	T("pread-negative", pread(fd, buf, 4, -1));
	T("read-write-only", read(wo, buf, 4));
	T("write-read-only", write(ro, "x", 1));
	T("read-path", read(path, buf, 4));
	T("read-bad", read(-1, buf, 4));
	T("read-directory", read(open(".", O_RDONLY), buf, 4));
	T("read-bad-address", syscall(SYS_read, ro, 8, 4UL));
	T("write-bad-address", syscall(SYS_write, fd, 8, 4UL));
	T("readv", readv(ro, &v, 1));
	T("readv-negative", syscall(SYS_readv, ro, &v, -1L));
	T("lseek", lseek(fd, 0, SEEK_END));
	T("lseek-negative", lseek(fd, -1, SEEK_SET));
	T("lseek-bad-whence", lseek(fd, 0, 99));
	T("lseek-fifo", lseek(open("fifo", O_RDWR), 0, SEEK_SET));
	T("ftruncate", ftruncate(fd, 3));
	T("ftruncate-read-only", ftruncate(ro, 3));
	T("ftruncate-negative", ftruncate(fd, -1));
	T("truncate", truncate("file", 5));
	T("truncate-missing", truncate("nothing", 5));
	T("truncate-directory", truncate("dir", 5));
	T("truncate-secret", truncate("secret", 5));
	T("truncate-readonly", truncate("readonly", 0));
	T("fallocate", fallocate(fd, 0, 0, 4096));
	T("fallocate-read-only", fallocate(ro, 0, 0, 4096));
	T("fallocate-zero", fallocate(fd, 0, 0, 0));
	T("fsync", fsync(fd));
	T("fsync-bad", fsync(-1));
	T("dev-full", write(open("/dev/full", O_WRONLY), "x", 1));
	T("sendfile", sendfile(fd, open("readonly", O_RDONLY), NULL, 1));
	T("copy-range", copy_file_range(open("readonly", O_RDONLY), NULL, fd, NULL, 1, 0));
	T("copy-range-read-only", copy_file_range(fd, NULL, ro, NULL, 1, 0));
	T("mmap", mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, ro, 0) == MAP_FAILED ? -1 : 0);
	T("mmap-shared-write",
	  mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, ro, 0) == MAP_FAILED ? -1 : 0);
	T("mmap-zero", mmap(NULL, 0, PROT_READ, MAP_PRIVATE, ro, 0) == MAP_FAILED ? -1 : 0);
	T("mmap-directory",
	  mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, open(".", O_RDONLY), 0) == MAP_FAILED ? -1 : 0);
}

static void metadata(void)
{
	struct timespec t[2] = {{1, 0}, {2, 0}};
	struct timespec bad[2] = {{1, 2000000000L}, {2, 0}};
	char buf[64];
	int fd = open("file", O_RDONLY);
	int path = open("file", O_PATH);

	prefix = "metadata";
	T("chmod", chmod("file", 0640));
	T("chmod-missing", chmod("nothing", 0640));
	T("chmod-dangling", chmod("dangling", 0640));
	T("fchmod", fchmod(fd, 0644));
	T("fchmod-path", fchmod(path, 0644));
	T("fchmod-bad", fchmod(-1, 0644));
	T("fchmodat2-nofollow", syscall(452, AT_FDCWD, "link", 0600, AT_SYMLINK_NOFOLLOW));
	T("chown-same", chown("file", (uid_t)-1, (gid_t)-1));
	T("chown-own", chown("file", getuid(), getgid()));
	T("chown-missing", chown("nothing", (uid_t)-1, (gid_t)-1));
	T("fchown-bad", fchown(-1, (uid_t)-1, (gid_t)-1));
	T("fchown-path", fchown(path, (uid_t)-1, (gid_t)-1));
	T("fchownat-bad-flag", fchownat(AT_FDCWD, "file", 1, 1, 0x8000));
	T("utimensat", utimensat(AT_FDCWD, "file", t, 0));
	T("utimensat-bad", utimensat(AT_FDCWD, "file", bad, 0));
	T("utimensat-missing", utimensat(AT_FDCWD, "nothing", t, 0));
	T("futimens", futimens(fd, t));
	T("setxattr", setxattr("file", "user.a", "1", 1, 0));
	T("setxattr-create", setxattr("file", "user.a", "1", 1, XATTR_CREATE));
	T("setxattr-replace", setxattr("file", "user.b", "1", 1, XATTR_REPLACE));
	T("setxattr-namespace", setxattr("file", "nonsense.a", "1", 1, 0));
	T("setxattr-link", lsetxattr("link", "user.a", "1", 1, 0));
	T("getxattr", getxattr("file", "user.a", buf, sizeof(buf)));
	T("getxattr-small", getxattr("file", "user.a", buf, 0));
	T("getxattr-missing", getxattr("file", "user.none", buf, sizeof(buf)));
	T("listxattr", listxattr("file", buf, sizeof(buf)) < 0 ? -1 : 0);
	T("removexattr", removexattr("file", "user.a"));
	T("removexattr-missing", removexattr("file", "user.a"));
	T("umask", umask(022) == 0777 ? -1 : 0);
}

static void descriptors(void)
{
	int p[2];
	struct pollfd pfd = {.fd = -1};
	struct flock lock = {.l_type = F_WRLCK};
	int fd = open("file", O_RDWR);
	int ep = epoll_create1(0);
	struct epoll_event ev = {.events = EPOLLIN};

	prefix = "descriptor";
	T("dup", dup(fd));
	T("dup-bad", dup(-1));
	T("dup3-same", dup3(fd, fd, 0));
	T("close-bad", close(-1));
	T("fcntl-getfl", fcntl(fd, F_GETFL) < 0 ? -1 : 0);
	T("fcntl-bad", fcntl(fd, 9999));
	T("fcntl-dupfd-negative", fcntl(fd, F_DUPFD, -1));
	T("fcntl-lock", fcntl(fd, F_SETLK, &lock));
	T("flock", flock(fd, LOCK_EX | LOCK_NB));
	T("flock-other", flock(open("file", O_RDWR), LOCK_EX | LOCK_NB));
	T("pipe", pipe(p));
	T("pipe2-bad", pipe2(p, 0x1));
	T("write-no-reader", (close(p[0]), signal(SIGPIPE, SIG_IGN), write(p[1], "x", 1)));
	T("poll", poll(&pfd, 1, 0));
	T("epoll-add-file", epoll_ctl(ep, EPOLL_CTL_ADD, fd, &ev));
	T("epoll-add-bad", epoll_ctl(ep, EPOLL_CTL_ADD, -1, &ev));
	T("epoll-self", epoll_ctl(ep, EPOLL_CTL_ADD, ep, &ev));
	T("eventfd", eventfd(0, 0));
	T("eventfd-bad", eventfd(0, 0x8));
	T("timerfd", timerfd_create(CLOCK_MONOTONIC, 0));
	T("timerfd-bad", timerfd_create(99, 0));
	T("inotify", inotify_add_watch(inotify_init1(0), ".", IN_CREATE));
	T("inotify-missing", inotify_add_watch(inotify_init1(0), "nothing", IN_CREATE));
	T("inotify-no-mask", inotify_add_watch(inotify_init1(0), ".", 0));
	T("memfd", memfd_create("m", MFD_CLOEXEC));
	T("memfd-bad", memfd_create("m", 0x8000));
	T("ioctl-file", ioctl(fd, TIOCGWINSZ, &lock));
	T("ioctl-fionread", ioctl(fd, FIONREAD, &lock));
	T("ioctl-bad", ioctl(-1, FIONREAD, &lock));
	T("close-range-bad", syscall(SYS_close_range, 10U, 5U, 0));
}

static int child_status(int code)
{
	int status = 0;
	pid_t pid = fork();

	if (pid == 0)
		_exit(code);
	if (waitpid(pid, &status, 0) < 0)
		return -1;
	return WEXITSTATUS(status) == code ? 0 : -1;
}

static void processes(void)
{
	struct rlimit limit;
	cpu_set_t cpus;
	char *const argv[] = {(char[]){"x"}, NULL};

	prefix = "process";
	T("fork-wait", child_status(7));
	T("wait-none", waitpid(-1, NULL, 0));
	T("wait-bad-option", waitpid(-1, NULL, 0x40));
	T("kill-self", kill(getpid(), 0));
	T("kill-bad-signal", kill(getpid(), 99));
	T("sigaction-kill", signal(SIGKILL, SIG_IGN) == SIG_ERR ? -1 : 0);
	T("execve-missing", execve("nothing", argv, argv + 1));
	T("execve-not-executable", execve("file", argv, argv + 1));
	T("execve-format", execve("./script", argv, argv + 1));
	T("execve-directory", execve("dir", argv, argv + 1));
	T("execve-below-file", execve("file/x", argv, argv + 1));
	T("execve-loop", execve("loop-a", argv, argv + 1));
	T("getrlimit", getrlimit(RLIMIT_NOFILE, &limit));
	T("getrlimit-bad", syscall(SYS_getrlimit, 99, &limit));
	T("setrlimit-same", (getrlimit(RLIMIT_CORE, &limit), setrlimit(RLIMIT_CORE, &limit)));
	limit = (struct rlimit){10, 5};
	T("setrlimit-inverted", setrlimit(RLIMIT_NPROC, &limit));
	T("nice", setpriority(PRIO_PROCESS, 0, getpriority(PRIO_PROCESS, 0)));
	T("affinity", sched_getaffinity(0, sizeof(cpus), &cpus));
	T("affinity-set", sched_setaffinity(0, sizeof(cpus), &cpus));
	CPU_ZERO(&cpus);
	T("affinity-empty", sched_setaffinity(0, sizeof(cpus), &cpus));
	T("yield", sched_yield());
	T("prctl-name", prctl(PR_SET_NAME, "probe"));
	T("setpgid-negative", setpgid(0, -1));
	T("getpgid", getpgid(0));
	T("getsid", getsid(0) < 0 ? -1 : 0);
	T("setuid-own", setuid(getuid()));
	T("setgid-own", setgid(getgid()));
	T("nanosleep-bad", nanosleep(&(struct timespec){0, 2000000000L}, NULL));
	T("clock-bad", clock_gettime(99, &(struct timespec){0, 0}));
	T("clock", clock_gettime(CLOCK_REALTIME, &(struct timespec){0, 0}));
	T("getrandom", syscall(SYS_getrandom, &limit, 8UL, 0));
	T("getrandom-bad", syscall(SYS_getrandom, &limit, 8UL, 0xff));
	T("mprotect-bad", mprotect((void *)1, 4096, PROT_READ));
	T("munmap-bad", munmap((void *)1, 4096));
	T("madvise-bad", madvise(NULL, 4096, 9999));
	T("unknown-number", syscall(600));
}

static int tcp(const char *address, uint16_t port)
{
	struct sockaddr_in sa = {.sin_family = AF_INET, .sin_port = htons(port)};
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	inet_pton(AF_INET, address, &sa.sin_addr);
	return connect(fd, (struct sockaddr *)&sa, sizeof(sa));
}

/* PORT is granted for connecting and for binding; nobody listens on it. */
static void sockets(uint16_t port)
{
	int sv[2];
	int one = 1;
	char buf[16];
	struct sockaddr_in sa = {.sin_family = AF_INET, .sin_port = htons(port)};
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	int second = socket(AF_INET, SOCK_STREAM, 0);

	prefix = "socket";
	T("tcp-refused", tcp("127.0.0.1", port));
	T("connect-bad-fd", connect(-1, (struct sockaddr *)&sa, sizeof(sa)));
	T("connect-file", connect(open("file", O_RDONLY), (struct sockaddr *)&sa, sizeof(sa)));
	T("connect-short", connect(fd, (struct sockaddr *)&sa, 1));
	T("recv-unconnected", recv(fd, buf, sizeof(buf), MSG_DONTWAIT));
	T("send-unconnected", send(fd, buf, 1, MSG_NOSIGNAL));
	T("accept-not-listening", accept(fd, NULL, NULL));
	T("reuse", setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)));
	T("option-bad", setsockopt(fd, SOL_SOCKET, 9999, &one, sizeof(one)));
	T("bind", bind(fd, (struct sockaddr *)&sa, sizeof(sa)));
	T("bind-again", bind(fd, (struct sockaddr *)&sa, sizeof(sa)));
	T("listen", listen(fd, 1));
	T("bind-in-use", bind(second, (struct sockaddr *)&sa, sizeof(sa)));
	T("bind-bad-family",
	  bind(second, (struct sockaddr *)&(struct sockaddr){99, ""}, sizeof(struct sockaddr)));
	T("accept-would-block", accept4(fd, NULL, NULL, SOCK_NONBLOCK | 0x4));
	T("tcp-connected", tcp("127.0.0.1", port));
	T("shutdown-unconnected", shutdown(second, SHUT_RDWR));
	T("pair", socketpair(AF_UNIX, SOCK_STREAM, 0, sv));
	T("pair-send", send(sv[0], "x", 1, 0));
	T("pair-recv", recv(sv[1], buf, sizeof(buf), 0));
	T("pair-empty", recv(sv[1], buf, sizeof(buf), MSG_DONTWAIT));
	T("pair-closed", (close(sv[0]), send(sv[1], "x", 1, MSG_NOSIGNAL)));
	T("pair-inet", socketpair(AF_INET, SOCK_STREAM, 0, sv));
	T("getsockname-file", getsockname(open("file", O_RDONLY), NULL, NULL));
}

int main(int argc, char **argv)
{
	if (argc != 3 || chdir(argv[1]) < 0) {
		fprintf(stderr, "usage: errno-probe DIR PORT\n");
		return 2;
	}
	setvbuf(stdout, NULL, _IOLBF, 0);
	prepare();
	opens();
	openat2s();
	names();
	looks();
	contents();
	metadata();
	descriptors();
	processes();
	sockets((uint16_t)strtoul(argv[2], NULL, 10));
	return 0;
}
