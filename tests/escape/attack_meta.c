/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Attacks on metadata: mode, owner, times, extended attributes, inode flags, leases, locks and
 * watches of a file that may at most be read. By path, and by a descriptor opened for reading.
 *
 * Invariant: owner calls keep the owner and group that the file has, so that they succeed outside
 * for an ordinary user and fail inside for the sandbox's reason only.
 */
#include "attack.h"

#include <fcntl.h>
#include <linux/fs.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/xattr.h>
#include <unistd.h>
#include <utime.h>

/* Newer than the headers of Debian 12. */
#define NR_FCHMODAT2	 452
#define NR_SETXATTRAT	 463
#define NR_REMOVEXATTRAT 466
#define NR_FILE_SETATTR	 469

struct xattr_args_v0 {
	uint64_t value;
	uint32_t size;
	uint32_t flags;
};

struct file_attr_v0 {
	uint64_t xflags;
	uint32_t extsize;
	uint32_t nextents;
	uint32_t projid;
	uint32_t cowextsize;
};

static int open_ro(const char *path)
{
	return open(path, O_RDONLY);
}

static int chmod_path(char *const *arg)
{
	return outcome(chmod(arg[0], 0600));
}

static int fchmod_fd(char *const *arg)
{
	int fd = open_ro(arg[0]);

	return fd < 0 ? ATTACK_NA : outcome(fchmod(fd, 0600));
}

static int fchmodat_path(char *const *arg)
{
	return outcome(syscall(SYS_fchmodat, AT_FDCWD, arg[0], 0600));
}

static int fchmodat2_path(char *const *arg)
{
	return outcome(syscall(NR_FCHMODAT2, AT_FDCWD, arg[0], 0600, 0));
}

static int fchmodat2_empty(char *const *arg)
{
	int fd = open(arg[0], O_PATH);

	return fd < 0 ? errno : outcome(syscall(NR_FCHMODAT2, fd, "", 0600, AT_EMPTY_PATH));
}

static int chmod_procfd(char *const *arg)
{
	char proc[64];
	int fd = open(arg[0], O_PATH);

	if (fd < 0)
		return errno;
	snprintf(proc, sizeof(proc), "/proc/self/fd/%d", fd);
	return outcome(chmod(proc, 0600));
}

/* The file that the sandbox was given as standard input. */
static int chmod_stdin(char *const *arg)
{
	return outcome(chmod("/proc/self/fd/0", 0600));
}

static int fchmod_stdin(char *const *arg)
{
	return outcome(fchmod(0, 0600));
}

static int chown_path(char *const *arg)
{
	return outcome(syscall(SYS_chown, arg[0], getuid(), getgid()));
}

static int lchown_path(char *const *arg)
{
	return outcome(syscall(SYS_lchown, arg[0], getuid(), getgid()));
}

static int fchown_fd(char *const *arg)
{
	int fd = open_ro(arg[0]);

	return fd < 0 ? ATTACK_NA : outcome(fchown(fd, getuid(), getgid()));
}

static int fchownat_path(char *const *arg)
{
	return outcome(fchownat(AT_FDCWD, arg[0], getuid(), getgid(), 0));
}

static int fchownat_empty(char *const *arg)
{
	int fd = open(arg[0], O_PATH);

	return fd < 0 ? errno : outcome(fchownat(fd, "", getuid(), getgid(), AT_EMPTY_PATH));
}

static int utime_path(char *const *arg)
{
	struct utimbuf t = {1, 1};

	return outcome(syscall(SYS_utime, arg[0], &t));
}

static int utimes_path(char *const *arg)
{
	struct timeval t[2] = {{1, 0}, {1, 0}};

	return outcome(syscall(SYS_utimes, arg[0], t));
}

static int futimesat_path(char *const *arg)
{
	struct timeval t[2] = {{1, 0}, {1, 0}};

	return outcome(syscall(SYS_futimesat, AT_FDCWD, arg[0], t));
}

static int utimensat_path(char *const *arg)
{
	struct timespec t[2] = {{1, 0}, {1, 0}};

	return outcome(syscall(SYS_utimensat, AT_FDCWD, arg[0], t, 0));
}

static int futimens_fd(char *const *arg)
{
	struct timespec t[2] = {{1, 0}, {1, 0}};
	int fd = open_ro(arg[0]);

	return fd < 0 ? ATTACK_NA : outcome(syscall(SYS_utimensat, fd, NULL, t, 0));
}

static int setxattr_path(char *const *arg)
{
	return outcome(setxattr(arg[0], "user.attack", "x", 1, 0));
}

static int lsetxattr_path(char *const *arg)
{
	return outcome(lsetxattr(arg[0], "user.attack", "x", 1, 0));
}

static int fsetxattr_fd(char *const *arg)
{
	int fd = open_ro(arg[0]);

	return fd < 0 ? ATTACK_NA : outcome(fsetxattr(fd, "user.attack", "x", 1, 0));
}

static int setxattrat_path(char *const *arg)
{
	struct xattr_args_v0 x = {.value = (uintptr_t) "x", .size = 1};

	return outcome(syscall(NR_SETXATTRAT, AT_FDCWD, arg[0], 0, "user.attack", &x, sizeof(x)));
}

static int setxattr_acl(char *const *arg)
{
	/* version 2; user::rw-, group::r--, other::r-- */
	static const uint8_t acl[] = {2, 0,   0,   0,	1,   0,	 6, 0, 255, 255, 255, 255, 4,  0, 4,
				      0, 255, 255, 255, 255, 32, 0, 4, 0,   255, 255, 255, 255};

	return outcome(setxattr(arg[0], "system.posix_acl_access", acl, sizeof(acl), 0));
}

/* The harness puts the attribute user.victim on the file. */
static int removexattr_path(char *const *arg)
{
	return outcome(removexattr(arg[0], "user.victim"));
}

static int lremovexattr_path(char *const *arg)
{
	return outcome(lremovexattr(arg[0], "user.victim"));
}

static int fremovexattr_fd(char *const *arg)
{
	int fd = open_ro(arg[0]);

	return fd < 0 ? ATTACK_NA : outcome(fremovexattr(fd, "user.victim"));
}

static int removexattrat_path(char *const *arg)
{
	return outcome(syscall(NR_REMOVEXATTRAT, AT_FDCWD, arg[0], 0, "user.victim"));
}

/* Adds one flag to those that the file has. */
static int set_flags(const char *path, unsigned long request)
{
	int flags = 0;
	int fd = open_ro(path);

	if (fd < 0 || ioctl(fd, FS_IOC_GETFLAGS, &flags) < 0)
		return ATTACK_NA;
	flags |= FS_NODUMP_FL;
	return outcome(syscall(SYS_ioctl, fd, request, &flags));
}

static int ioctl_setflags(char *const *arg)
{
	return set_flags(arg[0], FS_IOC_SETFLAGS);
}

/* The kernel reads 32 bits of the request; a filter that compares 64 would let this through. */
static int ioctl_setflags_high(char *const *arg)
{
	return set_flags(arg[0], FS_IOC_SETFLAGS | (1UL << 40));
}

static int ioctl_fssetxattr(char *const *arg)
{
	struct fsxattr x = {.fsx_xflags = FS_XFLAG_NODUMP};
	int fd = open_ro(arg[0]);

	return fd < 0 ? ATTACK_NA : outcome(ioctl(fd, FS_IOC_FSSETXATTR, &x));
}

static int file_setattr_path(char *const *arg)
{
	struct file_attr_v0 a = {.xflags = FS_XFLAG_NODUMP};

	return outcome(syscall(NR_FILE_SETATTR, AT_FDCWD, arg[0], &a, sizeof(a), 0));
}

static int lease_write(char *const *arg)
{
	int fd = open_ro(arg[0]);

	return fd < 0 ? ATTACK_NA : outcome(fcntl(fd, F_SETLEASE, F_RDLCK));
}

static int flock_exclusive(char *const *arg)
{
	int fd = open_ro(arg[0]);

	return fd < 0 ? ATTACK_NA : outcome(flock(fd, LOCK_EX | LOCK_NB));
}

static int inotify_outside(char *const *arg)
{
	int fd = inotify_init1(0);

	if (fd < 0)
		return errno;
	return outcome(inotify_add_watch(fd, arg[0], IN_ALL_EVENTS));
}

const struct attack attacks_meta[] = {
	{"chmod", 1, chmod_path},
	{"fchmod_fd", 1, fchmod_fd},
	{"fchmodat", 1, fchmodat_path},
	{"fchmodat2", 1, fchmodat2_path},
	{"fchmodat2_empty", 1, fchmodat2_empty},
	{"chmod_procfd", 1, chmod_procfd},
	{"chmod_stdin", 0, chmod_stdin},
	{"fchmod_stdin", 0, fchmod_stdin},
	{"chown", 1, chown_path},
	{"lchown", 1, lchown_path},
	{"fchown_fd", 1, fchown_fd},
	{"fchownat", 1, fchownat_path},
	{"fchownat_empty", 1, fchownat_empty},
	{"utime", 1, utime_path},
	{"utimes", 1, utimes_path},
	{"futimesat", 1, futimesat_path},
	{"utimensat", 1, utimensat_path},
	{"futimens_fd", 1, futimens_fd},
	{"setxattr", 1, setxattr_path},
	{"lsetxattr", 1, lsetxattr_path},
	{"fsetxattr_fd", 1, fsetxattr_fd},
	{"setxattrat", 1, setxattrat_path},
	{"setxattr_acl", 1, setxattr_acl},
	{"removexattr", 1, removexattr_path},
	{"lremovexattr", 1, lremovexattr_path},
	{"fremovexattr_fd", 1, fremovexattr_fd},
	{"removexattrat", 1, removexattrat_path},
	{"ioctl_setflags", 1, ioctl_setflags},
	{"ioctl_setflags_high", 1, ioctl_setflags_high},
	{"ioctl_fssetxattr", 1, ioctl_fssetxattr},
	{"file_setattr", 1, file_setattr_path},
	{"lease", 1, lease_write},
	{"flock_exclusive", 1, flock_exclusive},
	{"inotify_outside", 1, inotify_outside},
	{0},
};
