/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Probes of Landlock: for each right a domain that lacks it is entered, and the operation must be
 * refused in it that was possible before. A ruleset that the kernel takes proves nothing by itself.
 * Raw system calls only (see check.h).
 */
#include <errno.h>
#include <linux/prctl.h>
#include <linux/random.h>
#include <netinet/in.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "base/util.h"
#include "confine/raw_util.h"
#include "lib/check.h"
#include "sys/uapi.h"

#define FS_ABI1	 ((LANDLOCK_ACCESS_FS_MAKE_SYM << 1) - 1)
#define FS_WRITE (FS_ABI1 & ~(LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_READ_DIR))

struct rights {
	uint64_t fs;
	uint64_t net;
	uint64_t scope;
};

static int make_ruleset(struct probe_result *res, struct rights rights)
{
	struct uapi_landlock_ruleset_attr attr = {rights.fs, rights.net, rights.scope};
	size_t size = rights.scope ? 24 : rights.net ? 16 : 8;
	long fd = raw_syscall3(SYS_landlock_create_ruleset, &attr, size, 0);
	return fd < 0 ? probe_error(res, "landlock_create_ruleset", fd) : (int)fd;
}

/* Grants ACCESS below NAME in the trial directory, or to NAME if that is absolute. */
static int grant(const struct check_env *env, struct probe_result *res, int ruleset,
		 const char *name, uint64_t access)
{
	int fd = raw_openat(env->work_fd, name, O_PATH | O_CLOEXEC, 0);
	if (fd < 0)
		return probe_error(res, "openat", fd);
	struct landlock_path_beneath_attr rule = {.allowed_access = access, .parent_fd = fd};
	long r = raw_syscall4(SYS_landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH, &rule, 0);
	raw_close(fd);
	return r < 0 ? probe_error(res, "landlock_add_rule", r) : 0;
}

static int enter(struct probe_result *res, int ruleset)
{
	long r = raw_syscall5(SYS_prctl, PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	if (r < 0)
		return probe_error(res, "prctl(PR_SET_NO_NEW_PRIVS)", r);
	r = raw_syscall2(SYS_landlock_restrict_self, ruleset, 0);
	raw_close(ruleset);
	return r < 0 ? probe_error(res, "landlock_restrict_self", r) : 0;
}

static int enter_without(struct probe_result *res, struct rights rights)
{
	int ruleset = make_ruleset(res, rights);
	return ruleset < 0 ? -1 : enter(res, ruleset);
}

/* Opens and closes; a negative errno if that is refused. */
static int try_open(int dir, const char *name, int flags)
{
	int fd = raw_openat(dir, name, flags | O_CLOEXEC, 0600);
	if (fd >= 0)
		raw_close(fd);
	return fd < 0 ? fd : 0;
}

static int must_open(const struct check_env *env, struct probe_result *res, const char *name,
		     int flags)
{
	int r = try_open(env->work_fd, name, flags);
	return r < 0 ? probe_error(res, "openat", r) : 0;
}

static int must_make_dir(const struct check_env *env, struct probe_result *res, const char *name)
{
	long r = raw_syscall3(SYS_mkdirat, env->work_fd, name, 0700);
	return r < 0 ? probe_error(res, "mkdirat", r) : 0;
}

static int probe_version(const struct check_env *env, struct probe_result *res, int arg)
{
	long abi =
		raw_syscall3(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
	if (abi < 0)
		return probe_error(res, "landlock_create_ruleset", abi);
	res->value = abi;
	return enter_without(res, (struct rights){FS_ABI1, 0, 0});
}

static int probe_write(const struct check_env *env, struct probe_result *res, int arg)
{
	if (must_make_dir(env, res, "write-inside") < 0 ||
	    must_open(env, res, "write-outside", O_WRONLY | O_CREAT) < 0)
		return -1;
	int ruleset = make_ruleset(res, (struct rights){FS_WRITE, 0, 0});
	if (ruleset < 0 || grant(env, res, ruleset, "write-inside", FS_WRITE) < 0 ||
	    enter(res, ruleset) < 0)
		return -1;
	int dir = env->work_fd;
	if (probe_expect(res, "opening a file for writing",
			 try_open(dir, "write-outside", O_WRONLY), -EACCES) < 0 ||
	    probe_expect(res, "opening a file for reading",
			 try_open(dir, "write-outside", O_RDONLY), -EACCES) < 0 ||
	    probe_expect(res, "making a file", try_open(dir, "write-new", O_WRONLY | O_CREAT),
			 -EACCES) < 0)
		return -1;
	return must_open(env, res, "write-inside/new", O_WRONLY | O_CREAT);
}

static int probe_refer(const struct check_env *env, struct probe_result *res, int arg)
{
	uint64_t all = FS_ABI1 | LANDLOCK_ACCESS_FS_REFER;
	if (must_make_dir(env, res, "refer-a") < 0 || must_make_dir(env, res, "refer-b") < 0 ||
	    must_open(env, res, "refer-a/file", O_WRONLY | O_CREAT) < 0)
		return -1;
	for (int layer = 0; layer < 2; layer++) {
		uint64_t access = layer == 0 ? all : FS_ABI1;
		int ruleset = make_ruleset(res, (struct rights){all, 0, 0});
		if (ruleset < 0 || grant(env, res, ruleset, "refer-a", access) < 0 ||
		    grant(env, res, ruleset, "refer-b", access) < 0 || enter(res, ruleset) < 0)
			return -1;
		const char *from = layer == 0 ? "refer-a/file" : "refer-b/file";
		const char *to = layer == 0 ? "refer-b/file" : "refer-a/file";
		long r = raw_syscall5(SYS_renameat2, env->work_fd, from, env->work_fd, to, 0);
		if (layer == 0 && r < 0)
			return probe_error(res, "renameat2", r);
		if (layer == 1)
			return probe_expect(res, "renaming across directories", r, -EXDEV);
	}
	return 0;
}

static int probe_truncate(const struct check_env *env, struct probe_result *res, int arg)
{
	uint64_t handled = LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_TRUNCATE;
	if (must_open(env, res, "truncate", O_WRONLY | O_CREAT | O_TRUNC) < 0)
		return -1;
	int ruleset = make_ruleset(res, (struct rights){handled, 0, 0});
	if (ruleset < 0 ||
	    grant(env, res, ruleset, "truncate", LANDLOCK_ACCESS_FS_WRITE_FILE) < 0 ||
	    enter(res, ruleset) < 0 || must_open(env, res, "truncate", O_WRONLY) < 0)
		return -1;
	return probe_expect(res, "truncating a file",
			    try_open(env->work_fd, "truncate", O_WRONLY | O_TRUNC), -EACCES);
}

static int probe_ioctl(const struct check_env *env, struct probe_result *res, int arg)
{
	static const char device[] = "/dev/urandom";
	uint64_t handled = LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_IOCTL_DEV;
	int bits = 0;
	for (int confined = 0; confined < 2; confined++) {
		if (confined) {
			int ruleset = make_ruleset(res, (struct rights){handled, 0, 0});
			if (ruleset < 0 ||
			    grant(env, res, ruleset, device, LANDLOCK_ACCESS_FS_READ_FILE) < 0 ||
			    enter(res, ruleset) < 0)
				return -1;
		}
		int fd = raw_openat(AT_FDCWD, device, O_RDONLY | O_CLOEXEC, 0);
		if (fd < 0)
			return probe_error(res, "openat(/dev/urandom)", fd);
		long r = raw_syscall3(SYS_ioctl, fd, RNDGETENTCNT, &bits);
		raw_close(fd);
		if (confined)
			return probe_expect(res, "an ioctl on a device", r, -EACCES);
		if (r < 0)
			return probe_error(res, "ioctl(RNDGETENTCNT)", r);
	}
	return 0;
}

/* A socket of FAMILY that listens on ADDR; the address that it got is left there. */
static int listening(struct probe_result *res, int family, void *addr, unsigned int *len)
{
	int fd = (int)raw_syscall3(SYS_socket, family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return probe_error(res, "socket", fd);
	long r = raw_syscall3(SYS_bind, fd, addr, *len);
	if (r < 0)
		return probe_error(res, "bind", r);
	r = raw_syscall2(SYS_listen, fd, 4);
	if (r < 0)
		return probe_error(res, "listen", r);
	*len = family == AF_UNIX ? sizeof(struct sockaddr_un) : sizeof(struct sockaddr_in);
	r = raw_syscall3(SYS_getsockname, fd, addr, len);
	return r < 0 ? probe_error(res, "getsockname", r) : fd;
}

static long try_connect(int family, const void *addr, unsigned int len)
{
	int fd = (int)raw_syscall3(SYS_socket, family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return fd;
	long r = raw_syscall3(SYS_connect, fd, addr, len);
	raw_close(fd);
	return r;
}

/*
 * The parent listens, its child connects, enters a domain without RIGHTS, and connects again, which
 * must give WANT.
 */
static int connect_twice(struct probe_result *res, int family, void *addr, unsigned int len,
			 struct rights rights, long want)
{
	int fd = listening(res, family, addr, &len);
	if (fd < 0)
		return -1;
	long pid = probe_fork(res, 0);
	if (pid < 0)
		return -1;
	if (pid > 0) {
		int r = probe_wait(res, pid);
		raw_close(fd);
		return r;
	}
	raw_close(fd);
	long r = try_connect(family, addr, len);
	if (r < 0)
		probe_error(res, "connect before the domain", r);
	else if (enter_without(res, rights) == 0)
		probe_expect(res, "connecting", try_connect(family, addr, len), want);
	raw_exit(res->status == CHECK_PENDING ? 0 : 1);
}

static int probe_tcp(const struct check_env *env, struct probe_result *res, int arg)
{
	struct sockaddr_in addr = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
	struct rights rights = {0, LANDLOCK_ACCESS_NET_BIND_TCP | LANDLOCK_ACCESS_NET_CONNECT_TCP,
				0};
	if (connect_twice(res, AF_INET, &addr, sizeof(addr), rights, -EACCES) < 0)
		return -1;
	int fd = (int)raw_syscall3(SYS_socket, AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return probe_error(res, "socket", fd);
	if (enter_without(res, rights) < 0)
		return -1;
	addr.sin_port = 0;
	return probe_expect(res, "binding a port", raw_syscall3(SYS_bind, fd, &addr, sizeof(addr)),
			    -EACCES);
}

static int probe_abstract(const struct check_env *env, struct probe_result *res, int arg)
{
	/* Bound by its family alone, a socket gets a free abstract name from the kernel. */
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	return connect_twice(res, AF_UNIX, &addr, sizeof(addr.sun_family),
			     (struct rights){0, 0, LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET}, -EPERM);
}

static int probe_named(const struct check_env *env, struct probe_result *res, int arg)
{
	struct uapi_landlock_ruleset_attr attr = {LANDLOCK_ACCESS_FS_RESOLVE_UNIX, 0, 0};
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	long r = raw_syscall3(SYS_landlock_create_ruleset, &attr, 8, 0);
	if (r == -EINVAL)
		return probe_say(res, CHECK_MISSING, "Landlock ABI 9 is needed");
	raw_close((int)r);
	r = raw_syscall1(SYS_fchdir, env->work_fd);
	if (r < 0)
		return probe_error(res, "fchdir", r);
	addr.sun_path[0] = 's';
	return connect_twice(res, AF_UNIX, &addr, sizeof(addr.sun_family) + 2,
			     (struct rights){LANDLOCK_ACCESS_FS_RESOLVE_UNIX, 0, 0}, -EACCES);
}

static int probe_signal(const struct check_env *env, struct probe_result *res, int arg)
{
	long parent = raw_syscall0(SYS_getpid);
	long pid = probe_fork(res, 0);
	if (pid != 0)
		return pid < 0 ? -1 : probe_wait(res, pid);
	long r = raw_syscall2(SYS_kill, parent, 0);
	if (r < 0)
		probe_error(res, "kill before the domain", r);
	else if (enter_without(res, (struct rights){0, 0, LANDLOCK_SCOPE_SIGNAL}) == 0)
		probe_expect(res, "signalling the parent", raw_syscall2(SYS_kill, parent, 0),
			     -EPERM);
	raw_exit(res->status == CHECK_PENDING ? 0 : 1);
}

/* A sandbox takes two layers with a supervisor and without namespaces, else one. */
static int probe_layers(const struct check_env *env, struct probe_result *res, int arg)
{
	struct rights rights = {LANDLOCK_ACCESS_FS_MAKE_SOCK, 0, 0};
	long layers = 0;
	for (; layers < 64; layers++) {
		int ruleset = make_ruleset(res, rights);
		if (ruleset < 0)
			return -1;
		long r = raw_syscall5(SYS_prctl, PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
		if (r == 0)
			r = raw_syscall2(SYS_landlock_restrict_self, ruleset, 0);
		raw_close(ruleset);
		if (r == -E2BIG)
			break;
		if (r < 0)
			return probe_error(res, "landlock_restrict_self", r);
	}
	res->value = layers;
	if (layers == 0)
		return probe_error(res, "landlock_restrict_self", -E2BIG);
	return layers >= 2 ? 0 : probe_say(res, CHECK_DEGRADED, "one layer is left");
}

/* clang-format off */
#define OTHER_KERNEL "use a newer kernel, or go without it: --allow-degraded "
static const struct probe probes[] = {
	{"landlock", "enter a Landlock domain", "boot a kernel of 5.13 or later that has Landlock on (lsm=...,landlock), or lift the outer filter",
	 KERNEL(5, 13), true, NULL, false, 0, probe_version, "ABI"},
	{"landlock-write", "read, write and make files outside the grants (must be refused)", NULL,
	 KERNEL(5, 13), true, "landlock", true, 0, probe_write},
	{"landlock-fs-refer", "rename across directories (must work with the right only)", OTHER_KERNEL "fs-refer",
	 KERNEL(5, 19), true, "landlock", true, 0, probe_refer},
	{"landlock-fs-truncate", "truncate a file (must be refused)", OTHER_KERNEL "fs-truncate",
	 KERNEL(6, 2), true, "landlock", true, 0, probe_truncate},
	{"landlock-net-tcp", "connect to and bind a TCP port (must be refused)", OTHER_KERNEL "net-tcp",
	 KERNEL(6, 7), true, "landlock", false, 0, probe_tcp},
	{"landlock-fs-ioctl-dev", "do an ioctl on a device (must be refused)", OTHER_KERNEL "fs-ioctl-dev",
	 KERNEL(6, 10), true, "landlock", false, 0, probe_ioctl},
	{"landlock-signal-scope", "signal the parent (must be refused)", OTHER_KERNEL "signal-scope",
	 KERNEL(6, 12), true, "landlock", false, 0, probe_signal},
	{"landlock-abstract-unix-socket-scope", "connect to the parent's abstract socket (must be refused)", OTHER_KERNEL "abstract-unix-socket-scope",
	 KERNEL(6, 12), true, "landlock", false, 0, probe_abstract},
	{"landlock-unix-path", "connect to a named Unix socket (must be refused)", "nothing needs it: named sockets are closed by the seccomp filter",
	 0, false, "landlock", true, 0, probe_named},
	{"landlock-layers", "stack domains up to the limit of the kernel", "this is nested too deep: start fewer sandboxes inside each other",
	 KERNEL(5, 13), true, "landlock", false, 0, probe_layers, "layers left:"},
};
/* clang-format on */

const struct probe_group check_landlock_group = {"Landlock", probes, ARRAY_SIZE(probes)};
