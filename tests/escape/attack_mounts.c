/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Attacks that change the view of the system: mounts by the old and the new interface, roots, and
 * namespaces by unshare, setns, clone and clone3.
 *
 * Invariant: what succeeds as root outside leaves no mount behind: each attack works on a name that
 * is no mount point, or on a detached mount that ends with the process.
 */
#include "attack.h"

#include <fcntl.h>
#include <linux/mount.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define NR_OPEN_TREE	 428
#define NR_MOVE_MOUNT	 429
#define NR_FSOPEN	 430
#define NR_FSCONFIG	 431
#define NR_FSMOUNT	 432
#define NR_FSPICK	 433
#define NR_MOUNT_SETATTR 442

struct clone_args_v0 {
	uint64_t flags;
	uint64_t pidfd;
	uint64_t child_tid;
	uint64_t parent_tid;
	uint64_t exit_signal;
	uint64_t stack;
	uint64_t stack_size;
	uint64_t tls;
};

/* The kernel looks for the file system type after the permission check: ENODEV means let in. */
static int mount_fs(char *const *arg)
{
	return outcome_reached(mount("none", arg[0], "no-such-fs", 0, NULL), ENODEV);
}

static int mount_bind(char *const *arg)
{
	return outcome_reached(mount(arg[0], "/proc/self/no-such-place", NULL, MS_BIND, NULL),
			       ENOENT);
}

/* Makes a mount writable again; EINVAL means let in, since WORK is no mount point outside. */
static int mount_remount(char *const *arg)
{
	return outcome_reached(mount("none", arg[0], NULL, MS_REMOUNT | MS_BIND, NULL), EINVAL);
}

static int umount_path(char *const *arg)
{
	return outcome_reached(umount2(arg[0], MNT_DETACH), EINVAL);
}

static int pivot(char *const *arg)
{
	long r = syscall(SYS_pivot_root, arg[0], arg[0]);

	/* Both say that WORK is no mount point; which one depends on where it lies. */
	return r < 0 && errno == EBUSY ? ATTACK_WORKED : outcome_reached(r, EINVAL);
}

static int chroot_path(char *const *arg)
{
	return outcome(chroot(arg[0]));
}

static int open_tree_plain(char *const *arg)
{
	return outcome(syscall(NR_OPEN_TREE, AT_FDCWD, arg[0], O_CLOEXEC));
}

static int open_tree_clone(char *const *arg)
{
	return outcome(syscall(NR_OPEN_TREE, AT_FDCWD, arg[0], O_CLOEXEC | 1));
}

static int move_mount_path(char *const *arg)
{
	return outcome_reached(syscall(NR_MOVE_MOUNT, AT_FDCWD, arg[0], AT_FDCWD, arg[0], 0),
			       EINVAL);
}

static int fsopen_tmpfs(char *const *arg)
{
	return outcome(syscall(NR_FSOPEN, "tmpfs", 0));
}

static int fspick_path(char *const *arg)
{
	return outcome_reached(syscall(NR_FSPICK, AT_FDCWD, arg[0], 0), EINVAL);
}

static int fsconfig_none(char *const *arg)
{
	return outcome_reached(syscall(NR_FSCONFIG, -1, 6, NULL, NULL, 0), EINVAL);
}

static int fsmount_none(char *const *arg)
{
	return outcome_reached(syscall(NR_FSMOUNT, -1, 0, 0), EBADF);
}

static int mount_setattr_path(char *const *arg)
{
	uint64_t attr[4] = {0, MOUNT_ATTR_RDONLY, 0, 0};

	return outcome_reached(syscall(NR_MOUNT_SETATTR, AT_FDCWD, arg[0], 0, attr, sizeof(attr)),
			       EINVAL);
}

/* FLAGS as a number */
static int unshare_flags(char *const *arg)
{
	return outcome(unshare((int)number(arg[0])));
}

/* NSFILE, TYPE */
static int setns_file(char *const *arg)
{
	int fd = open(arg[0], O_RDONLY);

	if (fd < 0)
		return errno;
	return outcome(setns(fd, (int)number(arg[1])));
}

/* setns by the caller's own pidfd: the call is refused as such. TYPE */
static int setns_pidfd(char *const *arg)
{
	int fd = (int)syscall(SYS_pidfd_open, getpid(), 0);

	if (fd < 0)
		return errno;
	return outcome(setns(fd, (int)number(arg[0])));
}

static int clone_raw(unsigned long flags)
{
	long pid = syscall(SYS_clone, flags | SIGCHLD, 0, 0, 0, 0);

	if (pid < 0)
		return errno;
	if (pid == 0)
		_exit(0);
	reap((pid_t)pid);
	return ATTACK_WORKED;
}

static int clone_flags(char *const *arg)
{
	return clone_raw((unsigned long)number(arg[0]));
}

/* A sibling instead of a child: it would arrive in the wait of whoever started the sandbox. */
static int clone_parent(char *const *arg)
{
	pid_t pid = fork();
	int status;
	long r;

	if (pid < 0)
		return errno;
	if (pid == 0) {
		r = syscall(SYS_clone, CLONE_PARENT | SIGCHLD, 0, 0, 0, 0);
		_exit(r < 0 ? errno : 0);
	}
	status = reap(pid);
	while (waitpid(-1, NULL, 0) > 0)
		continue;
	return status;
}

static int clone3_flags(char *const *arg)
{
	struct clone_args_v0 args = {
		.flags = (uint64_t)number(arg[0]),
		.exit_signal = SIGCHLD,
	};
	long pid = syscall(SYS_clone3, &args, sizeof(args));

	if (pid < 0)
		return errno;
	if (pid == 0)
		_exit(0);
	reap((pid_t)pid);
	return ATTACK_WORKED;
}

const struct attack attacks_mounts[] = {
	{"mount_fs", 1, mount_fs},
	{"mount_bind", 1, mount_bind},
	{"mount_remount", 1, mount_remount},
	{"umount2", 1, umount_path},
	{"pivot_root", 1, pivot},
	{"chroot", 1, chroot_path},
	{"open_tree", 1, open_tree_plain},
	{"open_tree_clone", 1, open_tree_clone},
	{"move_mount", 1, move_mount_path},
	{"fsopen", 0, fsopen_tmpfs},
	{"fspick", 1, fspick_path},
	{"fsconfig", 0, fsconfig_none},
	{"fsmount", 0, fsmount_none},
	{"mount_setattr", 1, mount_setattr_path},
	{"unshare", 1, unshare_flags},
	{"setns", 2, setns_file},
	{"setns_pidfd", 1, setns_pidfd},
	{"clone", 1, clone_flags},
	{"clone_parent", 0, clone_parent},
	{"clone3", 1, clone3_flags},
	{0},
};
