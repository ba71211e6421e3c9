/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Probes of namespaces and of each mount of the base, one by one, in fresh namespaces, and of
 * overlayfs. The flags and calls are those of src/confine, so that a refusal here is a refusal
 * there. Raw system calls only (see check.h).
 */
#include <errno.h>
#include <linux/mount.h>
#include <linux/prctl.h>
#include <sys/mount.h>
#include <sys/utsname.h>

#include "base/util.h"
#include "confine/raw_util.h"
#include "lib/check.h"

#ifndef AT_RECURSIVE
#define AT_RECURSIVE 0x8000
#endif

#define BASE_FLAGS (CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWUTS)

static int write_text(struct probe_result *res, const char *path, const char *text)
{
	int fd = raw_openat(AT_FDCWD, path, O_WRONLY | O_CLOEXEC, 0);
	if (fd < 0)
		return fd == -ENOENT ? fd : probe_error(res, path, fd);
	long r = raw_write(fd, text, raw_strlen(text));
	raw_close(fd);
	return r < 0 ? probe_error(res, path, r) : 0;
}

static int map_ids(const struct check_env *env, struct probe_result *res)
{
	/* Kernels before 3.19 have no setgroups file. */
	if (write_text(res, "/proc/self/setgroups", "deny") == -1)
		return -1;
	int r = write_text(res, "/proc/self/uid_map", env->uid_map);
	if (r == 0)
		r = write_text(res, "/proc/self/gid_map", env->gid_map);
	return r == -ENOENT ? probe_error(res, "/proc/self/uid_map", r) : r;
}

typedef int (*inside_fn)(const struct check_env *env, struct probe_result *res);

/* Runs FN in fresh namespaces, with a user namespace around them unless this is root. */
static int run_inside(const struct check_env *env, struct probe_result *res, unsigned long flags,
		      inside_fn fn)
{
	if (!env->root)
		flags |= CLONE_NEWUSER;
	long pid = raw_syscall5(SYS_clone, flags | SIGCHLD, 0, 0, 0, 0);
	if (pid < 0)
		return probe_error(res, "clone with namespaces", pid);
	if (pid > 0)
		return probe_wait(res, pid);
	raw_syscall5(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
	int r = flags & CLONE_NEWUSER ? map_ids(env, res) : 0;
	if (r == 0)
		r = fn(env, res);
	raw_exit(r == 0 ? 0 : 1);
}

/* --- Namespaces ------------------------------------------------------------------------------- */

static int inside_user(const struct check_env *env, struct probe_result *res)
{
	/* A capability that only the new namespace can have given. */
	long r = raw_syscall1(SYS_unshare, CLONE_NEWNS);
	return r < 0 ? probe_error(res, "unshare(CLONE_NEWNS) in the user namespace", r) : 0;
}

static int probe_user(const struct check_env *env, struct probe_result *res, int arg)
{
	return run_inside(env, res, CLONE_NEWUSER, inside_user);
}

static int inside_pid(const struct check_env *env, struct probe_result *res)
{
	return raw_syscall0(SYS_getpid) == 1
		       ? 0
		       : probe_say(res, CHECK_FAILED, "the first process is not number 1");
}

static int probe_base(const struct check_env *env, struct probe_result *res, int arg)
{
	return run_inside(env, res, BASE_FLAGS, inside_pid);
}

static int inside_uts(const struct check_env *env, struct probe_result *res)
{
	static const char name[] = "sandlock-check";
	struct utsname now = {0};
	long r = raw_syscall2(SYS_sethostname, name, sizeof(name) - 1);
	if (r < 0)
		return probe_error(res, "sethostname", r);
	r = raw_syscall1(SYS_uname, &now);
	if (r < 0)
		return probe_error(res, "uname", r);
	for (size_t i = 0; i < sizeof(name); i++) {
		if (now.nodename[i] != name[i])
			return probe_say(res, CHECK_FAILED, "the host name was not changed");
	}
	return 0;
}

static int probe_uts(const struct check_env *env, struct probe_result *res, int arg)
{
	return run_inside(env, res, CLONE_NEWUTS, inside_uts);
}

/* A segment made in a fresh IPC namespace is the first one in it. */
static int inside_ipc(const struct check_env *env, struct probe_result *res)
{
	long id = raw_syscall3(SYS_shmget, 0 /* IPC_PRIVATE */, 4096, 0600);
	if (id < 0)
		return probe_error(res, "shmget", id);
	raw_syscall3(SYS_shmctl, id, 0 /* IPC_RMID */, NULL);
	return id == 0 ? 0 : probe_say(res, CHECK_FAILED, "the namespace holds others' objects");
}

static int probe_ipc(const struct check_env *env, struct probe_result *res, int arg)
{
	return run_inside(env, res, CLONE_NEWIPC, inside_ipc);
}

/* --- Mounts -------------------------------------------------------------------------------------
 */

static long set_tree(unsigned int attr, uint64_t propagation)
{
	struct mount_attr ma = {.attr_set = attr, .propagation = propagation};
	return raw_syscall5(SYS_mount_setattr, AT_FDCWD, "/", AT_RECURSIVE, &ma, sizeof(ma));
}

static int make_private(struct probe_result *res)
{
	long r = set_tree(0, MS_PRIVATE);
	return r < 0 ? probe_error(res, "mount_setattr(MS_PRIVATE)", r) : 0;
}

static int make_read_only(struct probe_result *res)
{
	long r = set_tree(MOUNT_ATTR_RDONLY, 0);
	return r < 0 ? probe_error(res, "mount_setattr(MOUNT_ATTR_RDONLY)", r) : 0;
}

/* The directory for trials as this mount namespace has it: ENV's descriptor is the caller's. */
static int open_work(const struct check_env *env, struct probe_result *res)
{
	int fd = raw_openat(AT_FDCWD, env->work, O_PATH | O_DIRECTORY | O_CLOEXEC, 0);
	return fd < 0 ? probe_error(res, "openat", fd) : fd;
}

static int clone_work(struct probe_result *res, int work)
{
	long fd = raw_syscall3(SYS_open_tree, work, "",
			       OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_EMPTY_PATH | AT_RECURSIVE);
	return fd < 0 ? probe_error(res, "open_tree(OPEN_TREE_CLONE)", fd) : (int)fd;
}

static int create(int dir, const char *name)
{
	int fd = raw_openat(dir, name, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	if (fd >= 0)
		raw_close(fd);
	return fd < 0 ? fd : 0;
}

static int inside_private(const struct check_env *env, struct probe_result *res)
{
	return make_private(res);
}

static int inside_clone(const struct check_env *env, struct probe_result *res)
{
	if (make_private(res) < 0)
		return -1;
	int work = open_work(env, res);
	int fd = work < 0 ? -1 : clone_work(res, work);
	if (fd < 0)
		return -1;
	int r = create(fd, "in-clone");
	return r < 0 ? probe_error(res, "making a file in the clone", r) : 0;
}

static int inside_read_only(const struct check_env *env, struct probe_result *res)
{
	if (make_private(res) < 0 || make_read_only(res) < 0)
		return -1;
	int work = open_work(env, res);
	if (work < 0)
		return -1;
	return probe_expect(res, "making a file on a read-only mount", create(work, "read-only"),
			    -EROFS);
}

static int inside_attach(const struct check_env *env, struct probe_result *res)
{
	if (make_private(res) < 0)
		return -1;
	int work = open_work(env, res);
	int fd = work < 0 ? -1 : clone_work(res, work);
	if (fd < 0 || make_read_only(res) < 0)
		return -1;
	long r = raw_syscall5(SYS_move_mount, fd, "", work, "",
			      MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH);
	if (r < 0)
		return probe_error(res, "move_mount", r);
	int dir = open_work(env, res);
	if (dir < 0)
		return -1;
	r = create(dir, "in-attached");
	return r < 0 ? probe_error(res, "making a file in the attached mount", r) : 0;
}

static int inside_proc(const struct check_env *env, struct probe_result *res)
{
	char self[8] = {0};
	if (make_private(res) < 0)
		return -1;
	long r = raw_syscall5(SYS_mount, "proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC,
			      "hidepid=4");
	if (r < 0)
		return probe_error(res, "mount of proc", r);
	r = raw_syscall4(SYS_readlinkat, AT_FDCWD, "/proc/self", self, sizeof(self));
	if (r < 0)
		return probe_error(res, "readlinkat", r);
	return r == 1 && self[0] == '1'
		       ? 0
		       : probe_say(res, CHECK_FAILED, "the new /proc shows other processes");
}

/* As for the sandbox itself, a directory that this machine lacks is no failure. */
static int there_is_none(struct probe_result *res)
{
	probe_say(res, CHECK_OK, "it is not there; a sandbox goes without it");
	return 0;
}

static int inside_devpts(const struct check_env *env, struct probe_result *res)
{
	if (make_private(res) < 0)
		return -1;
	long r = raw_syscall5(SYS_mount, "devpts", "/dev/pts", "devpts", MS_NOSUID | MS_NOEXEC,
			      "newinstance,ptmxmode=0666,mode=0620");
	if (r == -ENOENT)
		return there_is_none(res);
	if (r < 0)
		return probe_error(res, "mount of devpts", r);
	int fd = raw_openat(AT_FDCWD, "/dev/pts/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC, 0);
	return fd < 0 ? probe_error(res, "opening /dev/pts/ptmx", fd) : 0;
}

static int inside_shm(const struct check_env *env, struct probe_result *res)
{
	if (make_private(res) < 0)
		return -1;
	long r = raw_syscall5(SYS_mount, "tmpfs", "/dev/shm", "tmpfs", MS_NOSUID | MS_NODEV,
			      "mode=1777");
	if (r == -ENOENT)
		return there_is_none(res);
	if (r < 0)
		return probe_error(res, "mount of tmpfs", r);
	r = create(AT_FDCWD, "/dev/shm/sandlock-check");
	return r < 0 ? probe_error(res, "making a file in the tmpfs", r) : 0;
}

static int inside_mqueue(const struct check_env *env, struct probe_result *res)
{
	if (make_private(res) < 0)
		return -1;
	long r = raw_syscall5(SYS_mount, "mqueue", "/dev/mqueue", "mqueue",
			      MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL);
	if (r == -ENOENT || r == -ENODEV)
		return there_is_none(res);
	return r < 0 ? probe_error(res, "mount of mqueue", r) : 0;
}

/* --- Overlayfs ----------------------------------------------------------------------------------
 */

/* Changes into the directory for trials and makes a lower layer with two files there. */
static int make_layers(const struct check_env *env, struct probe_result *res)
{
	static const char *const dirs[] = {"lower", "upper", "overlay", "merged"};
	long r = raw_syscall1(SYS_chdir, env->work);
	if (r < 0)
		return probe_error(res, "chdir", r);
	for (size_t i = 0; i < ARRAY_SIZE(dirs); i++) {
		r = raw_syscall3(SYS_mkdirat, AT_FDCWD, dirs[i], 0700);
		if (r < 0)
			return probe_error(res, "mkdirat", r);
	}
	r = create(AT_FDCWD, "lower/kept");
	if (r == 0)
		r = create(AT_FDCWD, "lower/removed");
	return r < 0 ? probe_error(res, "openat", r) : 0;
}

static int must_exist(struct probe_result *res, const char *name)
{
	long r = raw_syscall3(SYS_faccessat, AT_FDCWD, name, 0);
	return r < 0 ? probe_say(res, CHECK_FAILED,
				 "a change in the overlay did not land in its upper layer")
		     : 0;
}

/* Changes, makes and removes files in the overlay: the lower layer must stay as it was. */
static int inside_overlay(const struct check_env *env, struct probe_result *res)
{
	if (make_private(res) < 0 || make_layers(env, res) < 0)
		return -1;
	long r = raw_syscall5(SYS_mount, "overlay", "merged", "overlay", 0, env->overlay);
	if (r < 0)
		return probe_error(res, "mount of overlay", r);
	r = create(AT_FDCWD, "merged/new");
	if (r == 0)
		r = create(AT_FDCWD, "merged/kept");
	if (r < 0)
		return probe_error(res, "opening a file in the overlay", r);
	r = raw_syscall3(SYS_unlinkat, AT_FDCWD, "merged/removed", 0);
	if (r < 0)
		return probe_error(res, "removing a file in the overlay", r);
	int fd = raw_openat(AT_FDCWD, "merged/removed", O_RDONLY | O_CLOEXEC, 0);
	if (probe_expect(res, "opening a removed file", fd, -ENOENT) < 0 ||
	    must_exist(res, "upper/new") < 0 || must_exist(res, "upper/kept") < 0)
		return -1;
	return must_exist(res, "lower/removed");
}

enum mount_kind {
	MOUNT_PRIVATE,
	MOUNT_CLONE,
	MOUNT_READ_ONLY,
	MOUNT_ATTACH,
	MOUNT_PROC,
	MOUNT_DEVPTS,
	MOUNT_SHM,
	MOUNT_MQUEUE,
	MOUNT_OVERLAY,
	MOUNT_KINDS,
};

static int probe_mount(const struct check_env *env, struct probe_result *res, int arg)
{
	static const inside_fn fns[MOUNT_KINDS] = {
		[MOUNT_PRIVATE] = inside_private,
		[MOUNT_CLONE] = inside_clone,
		[MOUNT_READ_ONLY] = inside_read_only,
		[MOUNT_ATTACH] = inside_attach,
		[MOUNT_PROC] = inside_proc,
		[MOUNT_DEVPTS] = inside_devpts,
		[MOUNT_SHM] = inside_shm,
		[MOUNT_MQUEUE] = inside_mqueue,
		[MOUNT_OVERLAY] = inside_overlay,
	};
	return run_inside(env, res, BASE_FLAGS, fns[arg]);
}

/* clang-format off */
#define ALLOW_NS "without namespaces a sandbox still starts (--view auto or notify); to have them: "
#define MOUNTS   "without it a sandbox still starts without namespaces (--view auto or notify); lift the outer filter's rule on mounts"
static const struct probe probes[] = {
	{"user-namespace", "make, map and use a user namespace",
	 ALLOW_NS "kernel.apparmor_restrict_unprivileged_userns=0 (Ubuntu), kernel.unprivileged_userns_clone=1 (Debian), user.max_user_namespaces above 0, or an outer filter that allows clone with CLONE_NEWUSER",
	 KERNEL(3, 8), false, NULL, false, 0, probe_user},
	{"base-namespaces", "make mount, PID, IPC and UTS namespaces together with it",
	 ALLOW_NS "see user-namespace", KERNEL(3, 8), false, NULL, false, 0, probe_base},
	{"uts-namespace", "set a host name of its own", "see user-namespace",
	 KERNEL(3, 8), false, "base-namespaces", false, 0, probe_uts},
	{"ipc-namespace", "find System V IPC empty", "see user-namespace",
	 KERNEL(3, 8), false, "base-namespaces", false, 0, probe_ipc},
	{"mount-private", "make all mounts private", MOUNTS " (mount_setattr)",
	 KERNEL(5, 12), false, "base-namespaces", false, MOUNT_PRIVATE, probe_mount},
	{"mount-clone", "clone a directory's mount and write to it", MOUNTS " (open_tree)",
	 KERNEL(5, 2), false, "mount-private", true, MOUNT_CLONE, probe_mount},
	{"mount-read-only", "make all mounts read-only and write (must be refused)", MOUNTS " (mount_setattr)",
	 KERNEL(5, 12), false, "mount-private", true, MOUNT_READ_ONLY, probe_mount},
	{"mount-attach", "put a writable mount over a read-only one", MOUNTS " (move_mount)",
	 KERNEL(5, 2), false, "mount-clone", true, MOUNT_ATTACH, probe_mount},
	{"mount-proc", "mount a private /proc with hidepid=4", "a container that covers parts of /proc forbids it (Docker: --security-opt systempaths=unconfined); without it a sandbox still starts without namespaces",
	 KERNEL(5, 8), false, "mount-private", false, MOUNT_PROC, probe_mount},
	{"mount-devpts", "mount private terminals and open one", MOUNTS " (mount)",
	 0, false, "mount-private", false, MOUNT_DEVPTS, probe_mount},
	{"mount-shm", "mount a private /dev/shm", MOUNTS " (mount)",
	 0, false, "mount-private", false, MOUNT_SHM, probe_mount},
	{"mount-mqueue", "mount a private /dev/mqueue", MOUNTS " (mount)",
	 0, false, "mount-private", false, MOUNT_MQUEUE, probe_mount},
	{"overlayfs", "mount an overlay with userxattr and change it", "use Linux 5.11 or later, load the overlay module, and keep the state on a file system with user attributes; without it workspaces are served by the supervisor",
	 KERNEL(5, 11), false, "mount-private", true, MOUNT_OVERLAY, probe_mount},
};
/* clang-format on */

const struct probe_group check_namespace_group = {"Namespaces", probes, ARRAY_SIZE(probes)};
