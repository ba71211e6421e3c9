/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The layers of a workspace: an overlay over each workdir, made by the guardian while the storage
 * is still writable, and attached when all else is read-only. What it lies over and where it writes
 * are the objects that the host has looked at, told by their inodes.
 */
#include <errno.h>
#include <linux/openat2.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statfs.h>

#include "confine/job.h"
#include "confine/layers.h"
#include "confine/raw_util.h"

#ifndef ST_NOEXEC
#define ST_NOEXEC 8
#endif

/* "/proc/self/fd/N": what the sandbox reads of it in its list of mounts names no place outside. */
struct fd_path {
	char text[32];
};

static struct fd_path fd_path(int fd)
{
	struct fd_path p = {"/proc/self/fd/"};
	size_t n = sizeof("/proc/self/fd/") - 1;
	char digits[12];
	size_t k = 0;
	do {
		digits[k++] = (char)('0' + fd % 10);
		fd /= 10;
	} while (fd > 0);
	while (k > 0)
		p.text[n++] = digits[--k];
	p.text[n] = '\0';
	return p;
}

/* PATH, which holds no link, if it is the directory DEV, INO. */
static int open_known(const char *path, uint64_t dev, uint64_t ino)
{
	struct open_how how = {.flags = O_PATH | O_DIRECTORY | O_CLOEXEC,
			       .resolve = RESOLVE_NO_SYMLINKS};
	struct stat st = {0};
	int fd = (int)raw_syscall4(SYS_openat2, AT_FDCWD, path, &how, sizeof(how));
	if (fd < 0)
		return fd;
	long r = raw_syscall4(SYS_newfstatat, fd, "", &st, AT_EMPTY_PATH);
	if (r == 0 && st.st_dev == dev && st.st_ino == ino)
		return fd;
	raw_close(fd);
	return r < 0 ? (int)r : -ESTALE;
}

static int set_dir(int fs, const char *key, int dir)
{
	struct fd_path path = fd_path(dir);
	return (int)raw_syscall5(SYS_fsconfig, fs, FSCONFIG_SET_STRING, key, path.text, 0);
}

/*
 * Nothing is written out for programs that ask for it: a commit does that, and what a power failure
 * leaves of the layer is no part of the workdir. Kernels before 5.10 do so nevertheless.
 */
static int set_flags(int fs)
{
	(void)raw_syscall5(SYS_fsconfig, fs, FSCONFIG_SET_FLAG, "volatile", NULL, 0);
	return (int)raw_syscall5(SYS_fsconfig, fs, FSCONFIG_SET_FLAG, "userxattr", NULL, 0);
}

static int create(int lower, int upper, int work)
{
	struct statfs sf = {0};
	int fs = (int)raw_syscall2(SYS_fsopen, "overlay", FSOPEN_CLOEXEC);
	if (fs < 0)
		return fs;
	long r = set_flags(fs);
	if (r >= 0)
		r = set_dir(fs, "lowerdir", lower);
	if (r >= 0)
		r = set_dir(fs, "upperdir", upper);
	if (r >= 0)
		r = set_dir(fs, "workdir", work);
	if (r >= 0)
		r = raw_syscall5(SYS_fsconfig, fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0);
	if (r >= 0)
		r = raw_syscall2(SYS_fstatfs, lower, &sf);
	/* Devices would lead round the layer. */
	unsigned int attr = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV;
	if (sf.f_flags & ST_NOEXEC)
		attr |= MOUNT_ATTR_NOEXEC;
	if (r >= 0)
		r = raw_syscall3(SYS_fsmount, fs, FSMOUNT_CLOEXEC, attr);
	raw_close(fs);
	return (int)r;
}

/* The overlay of one layer, not attached yet; its root is what the rule will be about. */
static int make_layer(struct job *job, const struct job_layer *layer)
{
	struct job_rule *rule = &job->rules[layer->rule];
	struct stat st = {0};
	int upper = -1;
	int work = -1;
	int lower = open_known(layer->path, layer->dev, layer->ino);
	int store =
		lower < 0 ? lower : open_known(layer->store, layer->store_dev, layer->store_ino);
	int r = store;
	if (r >= 0)
		r = upper = raw_openat(store, "upper",
				       O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
	if (r >= 0)
		r = work =
			raw_openat(store, "work", O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
	if (r >= 0)
		r = create(lower, upper, work);
	int *fds[] = {&lower, &store, &upper, &work};
	for (size_t i = 0; i < sizeof(fds) / sizeof(fds[0]); i++)
		if (*fds[i] >= 0)
			raw_close(*fds[i]);
	if (r < 0)
		return r;
	job->clones[layer->rule] = r;
	rule->is_dir = 1;
	r = (int)raw_syscall4(SYS_newfstatat, r, "", &st, AT_EMPTY_PATH);
	rule->dev = st.st_dev;
	rule->ino = st.st_ino;
	rule->mounted = 1;
	return r;
}

int layers_make(struct job *job)
{
	for (size_t i = 0; i < job->n_layers; i++) {
		int r = make_layer(job, &job->layers[i]);
		if (r < 0)
			return job_fail(job, STEP_LAYER, -r, (int)job->layers[i].rule);
	}
	return 0;
}

/* By name, since a write grant may lie over what the name was before; and the same object again. */
int layers_attach(struct job *job)
{
	for (size_t i = 0; i < job->n_layers; i++) {
		const struct job_layer *layer = &job->layers[i];
		if (job->rules[layer->rule].into_shm)
			continue;
		int place = open_known(layer->path, layer->dev, layer->ino);
		long r = place;
		if (r >= 0)
			r = raw_syscall5(SYS_move_mount, job->clones[layer->rule], "", place, "",
					 MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH);
		if (place >= 0)
			raw_close(place);
		if (r < 0)
			return job_fail(job, STEP_LAYER, (int)-r, (int)layer->rule);
	}
	return 0;
}

static int make_empty(void)
{
	int fs = (int)raw_syscall2(SYS_fsopen, "tmpfs", FSOPEN_CLOEXEC);
	if (fs < 0)
		return fs;
	long r = raw_syscall5(SYS_fsconfig, fs, FSCONFIG_SET_STRING, "mode", "0555", 0);
	if (r >= 0)
		r = raw_syscall5(SYS_fsconfig, fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0);
	if (r >= 0)
		r = raw_syscall3(SYS_fsmount, fs, FSMOUNT_CLOEXEC,
				 MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV |
					 MOUNT_ATTR_NOEXEC);
	raw_close(fs);
	return (int)r;
}

/*
 * What lies in the storage could be changed before it lands, so that nothing of it is shown. A
 * mount can be neither removed nor renamed, and so are the directories above it kept.
 */
int layers_hide(struct job *job)
{
	struct open_how how = {.flags = O_PATH | O_DIRECTORY | O_CLOEXEC,
			       .resolve = RESOLVE_NO_SYMLINKS};
	for (size_t i = 0; i < job->n_hidden; i++) {
		long place = raw_syscall4(SYS_openat2, AT_FDCWD, job->hidden[i], &how, sizeof(how));
		if (place == -ENOENT)
			continue; /* under another private mount */
		long empty = place < 0 ? place : make_empty();
		long r = empty;
		if (r >= 0)
			r = raw_syscall5(SYS_move_mount, empty, "", place, "",
					 MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH);
		if (empty >= 0)
			raw_close((int)empty);
		if (place >= 0)
			raw_close((int)place);
		if (r < 0)
			return job_fail(job, STEP_HIDE, (int)-r, (int)i);
	}
	return 0;
}
