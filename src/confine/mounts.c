/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The base's mounts: everything read-only, recursively; each write grant writable over it; private
 * /proc, /dev/pts and /dev/shm. Made by the guardian in its own mount namespace, while the child
 * waits for them at its gate. What is cloned is what is mounted over: one descriptor. The child,
 * which has opened the same path for its Landlock rule meanwhile, checks that it got the same
 * object.
 */
#include <errno.h>
#include <linux/mount.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include "confine/job.h"
#include "confine/layers.h"
#include "confine/raw_util.h"

#ifndef AT_RECURSIVE
#define AT_RECURSIVE 0x8000
#endif

#define PROC_FLAGS (MS_NOSUID | MS_NODEV | MS_NOEXEC)

static long set_tree(int dir, const char *path, unsigned int flags, uint64_t attr,
		     uint64_t propagation)
{
	struct mount_attr ma = {.attr_set = attr, .propagation = propagation};
	return raw_syscall5(SYS_mount_setattr, dir, path, flags | AT_RECURSIVE, &ma, sizeof(ma));
}

/* The object of a grant that is to be mounted; -ENOENT and its like are left to the child to judge.
 */
static int open_grant(struct job *job, size_t i)
{
	struct job_rule *rule = &job->rules[i];
	rule->mount_fd = raw_openat(AT_FDCWD, rule->path, O_PATH | O_CLOEXEC, 0);
	if (rule->mount_fd < 0)
		return rule->optional ? 0 : job_fail(job, STEP_RULE_OPEN, -rule->mount_fd, (int)i);
	struct stat st = {0};
	long r = raw_syscall4(SYS_newfstatat, rule->mount_fd, "", &st, AT_EMPTY_PATH);
	if (r < 0)
		return job_fail(job, STEP_RULE_OPEN, (int)-r, (int)i);
	rule->is_dir = S_ISDIR(st.st_mode);
	rule->dev = st.st_dev;
	rule->ino = st.st_ino;
	rule->mounted = 1;
	return 0;
}

/* Clones one grant while it is still writable. */
static int clone_grant(struct job *job, size_t i)
{
	struct job_rule *rule = &job->rules[i];
	long fd = raw_syscall3(SYS_open_tree, rule->mount_fd, "",
			       OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_EMPTY_PATH | AT_RECURSIVE);
	if (fd < 0)
		return job_fail(job, STEP_MOUNT_CLONE, (int)-fd, (int)i);
	job->clones[i] = (int)fd;
	if (!rule->writable) {
		fd = set_tree((int)fd, "", AT_EMPTY_PATH, MOUNT_ATTR_RDONLY, 0);
		if (fd < 0)
			return job_fail(job, STEP_MOUNT_CLONE, (int)-fd, (int)i);
	}
	return 0;
}

static int clone_grants(struct job *job)
{
	for (size_t i = 0; i < job->n_rules; i++) {
		struct job_rule *rule = &job->rules[i];
		job->clones[i] = -1;
		if (rule->layer || ((!rule->writable || job->root_writable) && !rule->into_shm))
			continue;
		int r = open_grant(job, i);
		if (r == 0 && rule->mount_fd >= 0)
			r = clone_grant(job, i);
		if (r < 0)
			return r;
	}
	return 0;
}

/* Makes the place in the private /dev/shm that a clone is mounted on: directories, then PATH. */
static int make_place(const struct job_rule *rule)
{
	char path[4096];
	size_t n = raw_strlen(rule->path);
	if (n >= sizeof(path))
		return -ENAMETOOLONG;
	for (size_t i = 0; i <= n; i++) {
		path[i] = '\0';
		if (i > sizeof("/dev/shm") && rule->path[i] == '/')
			raw_syscall3(SYS_mkdirat, AT_FDCWD, path, 0755);
		path[i] = rule->path[i];
	}
	if (rule->is_dir)
		return (int)raw_syscall3(SYS_mkdirat, AT_FDCWD, path, 0755);
	int fd = raw_openat(AT_FDCWD, path, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0644);
	if (fd >= 0)
		raw_close(fd);
	return fd < 0 ? fd : 0;
}

static int attach_grants(struct job *job, bool shm)
{
	const int *clones = job->clones;
	for (size_t i = 0; i < job->n_rules; i++) {
		struct job_rule *rule = &job->rules[i];
		if (clones[i] < 0 || (bool)rule->into_shm != shm || (rule->layer && !shm))
			continue;
		long r;
		if (shm) {
			int e = make_place(rule);
			if (e < 0 && e != -EEXIST)
				return job_fail(job, STEP_MOUNT_WRITE, -e, (int)i);
			r = raw_syscall5(SYS_move_mount, clones[i], "", AT_FDCWD, rule->path,
					 MOVE_MOUNT_F_EMPTY_PATH);
		} else {
			r = raw_syscall5(SYS_move_mount, clones[i], "", rule->mount_fd, "",
					 MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH);
		}
		if (r < 0)
			return job_fail(job, STEP_MOUNT_WRITE, (int)-r, (int)i);
	}
	return 0;
}

/*
 * What of /proc steers the kernel rather than a process stays read-only whatever is granted: as
 * root its files need no capability, only the owner's id.
 */
static int protect_proc(struct job *job)
{
	static const char *const paths[] = {"/proc/sys", "/proc/sysrq-trigger", "/proc/irq",
					    "/proc/bus", "/proc/fs"};
	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		long fd = raw_syscall3(SYS_open_tree, AT_FDCWD, paths[i],
				       OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE);
		if (fd == -ENOENT)
			continue;
		long r = fd;
		if (fd >= 0)
			r = set_tree((int)fd, "", AT_EMPTY_PATH, MOUNT_ATTR_RDONLY, 0);
		if (r >= 0)
			r = raw_syscall5(SYS_move_mount, fd, "", AT_FDCWD, paths[i],
					 MOVE_MOUNT_F_EMPTY_PATH);
		if (fd >= 0)
			raw_close((int)fd);
		if (r < 0)
			return job_fail(job, STEP_MOUNT_PROC, (int)-r, 1);
	}
	return 0;
}

static int private_filesystems(struct job *job)
{
	/*
	 * hidepid=4 shows only processes that the reader may trace: the guardian, which lies
	 * outside the child's Landlock domain and may share the host's memory, stays unseen.
	 */
	long r = raw_syscall5(SYS_mount, "proc", "/proc", "proc", PROC_FLAGS, "hidepid=4");
	if (r < 0)
		return job_fail(job, STEP_MOUNT_PROC, (int)-r, 0);
	int e = job->proc_writable ? protect_proc(job) : 0;
	if (e < 0)
		return e;
	r = raw_syscall5(SYS_mount, "devpts", "/dev/pts", "devpts", MS_NOSUID | MS_NOEXEC,
			 "newinstance,ptmxmode=0666,mode=0620");
	if (r < 0 && r != -ENOENT)
		return job_fail(job, STEP_MOUNT_DEVPTS, (int)-r, 0);
	r = raw_syscall5(SYS_mount, "tmpfs", "/dev/shm", "tmpfs", MS_NOSUID | MS_NODEV,
			 "mode=1777");
	if (r < 0 && r != -ENOENT)
		return job_fail(job, STEP_MOUNT_SHM, (int)-r, 0);
	if (!job->own_mqueue)
		return 0;
	r = raw_syscall5(SYS_mount, "mqueue", "/dev/mqueue", "mqueue",
			 MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL);
	if (r < 0 && r != -ENOENT && r != -ENODEV)
		return job_fail(job, STEP_MOUNT_MQUEUE, (int)-r, 0);
	return 0;
}

static long make_copy(int dir, const struct job_copy *copy)
{
	if (copy->link)
		return raw_syscall3(SYS_symlinkat, copy->link, dir, copy->name);
	int fd = raw_openat(dir, copy->name, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);
	if (fd < 0)
		return fd;
	const char *data = copy->data;
	size_t done = 0;
	long r = 0;
	while (done < copy->size && (r = raw_write(fd, data + done, copy->size - done)) > 0)
		done += (size_t)r;
	if (r >= 0)
		r = raw_syscall2(SYS_fchmod, fd, copy->mode);
	raw_close(fd);
	return done < copy->size ? -EIO : r;
}

/*
 * Covers a directory of configuration with a copy that is the user's. Without it the run goes on,
 * with the real one.
 */
static void lay_copies(const struct job *job)
{
	const char *path = job->copies_dir;
	if (!path || raw_syscall5(SYS_mount, "tmpfs", path, "tmpfs",
				  MS_NOSUID | MS_NODEV | MS_NOEXEC, "mode=0755") < 0)
		return;
	int dir = raw_openat(AT_FDCWD, path, O_PATH | O_DIRECTORY | O_CLOEXEC, 0);
	long r = dir;
	for (size_t i = 0; i < job->n_copies && r >= 0; i++)
		r = make_copy(dir, &job->copies[i]);
	if (dir >= 0)
		raw_close(dir);
	if (r >= 0)
		r = set_tree(AT_FDCWD, path, 0, MOUNT_ATTR_RDONLY, 0);
	if (r < 0)
		raw_syscall2(SYS_umount2, path, MNT_DETACH);
}

int base_mount(struct job *job)
{
	long r = set_tree(AT_FDCWD, "/", 0, 0, MS_PRIVATE);
	if (r < 0)
		return job_fail(job, STEP_MOUNT_PRIVATE, (int)-r, 0);
	int e = clone_grants(job);
	if (e == 0)
		e = layers_make(job);
	if (e < 0)
		return e;
	r = job->root_writable ? 0 : set_tree(AT_FDCWD, "/", 0, MOUNT_ATTR_RDONLY, 0);
	if (r < 0)
		return job_fail(job, STEP_MOUNT_READONLY, (int)-r, 0);
	e = attach_grants(job, false);
	if (e == 0)
		e = layers_attach(job);
	if (e == 0)
		e = private_filesystems(job);
	if (e == 0)
		e = attach_grants(job, true);
	if (e == 0)
		e = layers_hide(job);
	if (e == 0)
		lay_copies(job);
	return e;
}
