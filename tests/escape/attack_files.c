/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Attacks that open, create, execute or list what no grant covers: by every member of the open
 * family, and by every detour to the same object (links, "..", /proc, O_PATH, inherited
 * descriptors, the loader).
 *
 * Invariant: each takes the outside object as its first argument and changes no more than that.
 */
#include "attack.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static int open_then_read(const char *path)
{
	int fd = open(path, O_RDONLY | O_NONBLOCK);

	return fd < 0 ? errno : read_some(fd);
}

static int open_read(char *const *arg)
{
	return open_then_read(arg[0]);
}

static int open_write(char *const *arg)
{
	return outcome(open(arg[0], O_WRONLY | O_NOCTTY | O_NONBLOCK));
}

static int open_rdwr(char *const *arg)
{
	return outcome(open(arg[0], O_RDWR | O_NOCTTY | O_NONBLOCK));
}

static int open_trunc(char *const *arg)
{
	return outcome(open(arg[0], O_WRONLY | O_TRUNC));
}

static int open_read_trunc(char *const *arg)
{
	return outcome(open(arg[0], O_RDONLY | O_TRUNC));
}

static int open_append(char *const *arg)
{
	return outcome(open(arg[0], O_WRONLY | O_APPEND));
}

static int open_creat(char *const *arg)
{
	return outcome(open(arg[0], O_WRONLY | O_CREAT, 0644));
}

static int open_creat_excl(char *const *arg)
{
	return outcome(open(arg[0], O_WRONLY | O_CREAT | O_EXCL, 0644));
}

static int open_creat_read(char *const *arg)
{
	return outcome(open(arg[0], O_RDONLY | O_CREAT, 0644));
}

static int open_legacy(char *const *arg)
{
	return outcome(syscall(SYS_open, arg[0], O_RDWR, 0));
}

static int creat_legacy(char *const *arg)
{
	return outcome(syscall(SYS_creat, arg[0], 0644));
}

static int openat2_how(const char *path, int flags, int resolve)
{
	struct open_how how = {.flags = (unsigned int)flags, .resolve = (unsigned int)resolve};

	return outcome(syscall(SYS_openat2, AT_FDCWD, path, &how, sizeof(how)));
}

static int openat2_read(char *const *arg)
{
	return openat2_how(arg[0], O_RDONLY, 0);
}

static int openat2_write(char *const *arg)
{
	return openat2_how(arg[0], O_RDWR, RESOLVE_NO_SYMLINKS);
}

static int list_dir(char *const *arg)
{
	DIR *d = opendir(arg[0]);

	if (!d)
		return errno;
	return readdir(d) ? ATTACK_WORKED : errno;
}

static int truncate_path(char *const *arg)
{
	return outcome(truncate(arg[0], 0));
}

static int tmpfile_outside(char *const *arg)
{
	return outcome(open(arg[0], O_TMPFILE | O_RDWR, 0600));
}

/* An unnamed file made inside and given a name outside. WORK, NEW */
static int tmpfile_link_out(char *const *arg)
{
	char proc[64];
	int fd = open(arg[0], O_TMPFILE | O_RDWR, 0600);

	if (fd < 0)
		return errno;
	snprintf(proc, sizeof(proc), "/proc/self/fd/%d", fd);
	return outcome(linkat(AT_FDCWD, proc, AT_FDCWD, arg[1], AT_SYMLINK_FOLLOW));
}

/* --- Detours ------------------------------------------------------------------------------- */

/* A symbolic link inside the grant that leads out. SECRET, WORK */
static int symlink_read(char *const *arg)
{
	char *link = join(arg[1], "link-read");

	if (symlink(arg[0], link) < 0)
		return ATTACK_NA;
	return open_then_read(link);
}

static int symlink_write(char *const *arg)
{
	char *link = join(arg[1], "link-write");

	if (symlink(arg[0], link) < 0)
		return ATTACK_NA;
	return outcome(open(link, O_WRONLY | O_CREAT, 0644));
}

/* A link to a directory, and a new name below it. OUTDIR, WORK */
static int symlink_dir_creat(char *const *arg)
{
	char *link = join(arg[1], "link-dir");

	if (symlink(arg[0], link) < 0)
		return ATTACK_NA;
	return outcome(open(join(link, "new-by-link"), O_WRONLY | O_CREAT, 0644));
}

/* A chain of links, the last one relative. SECRET (a sibling of WORK's), WORK, RELATIVE */
static int symlink_chain(char *const *arg)
{
	char *first = join(arg[1], "chain-a");
	char *second = join(arg[1], "chain-b");

	if (symlink("chain-b", first) < 0 || symlink(arg[2], second) < 0)
		return ATTACK_NA;
	return open_then_read(first);
}

/* WORK, RELATIVE */
static int dotdot_read(char *const *arg)
{
	return open_then_read(join(arg[0], arg[1]));
}

static int dirfd_dotdot(char *const *arg)
{
	int dir = open(arg[0], O_PATH | O_DIRECTORY);
	int fd;

	if (dir < 0)
		return ATTACK_NA;
	fd = openat(dir, arg[1], O_RDONLY);
	return fd < 0 ? errno : read_some(fd);
}

/* PREFIX is /proc/self/root or the like. PREFIX, SECRET */
static int proc_prefix_read(char *const *arg)
{
	return open_then_read(join(arg[0], arg[1]));
}

static int proc_prefix_write(char *const *arg)
{
	return outcome(open(join(arg[0], arg[1]), O_WRONLY));
}

/* WORK, RELATIVE */
static int proc_cwd_read(char *const *arg)
{
	if (chdir(arg[0]) < 0)
		return ATTACK_NA;
	return open_then_read(join("/proc/self/cwd", arg[1]));
}

static int opath_reopen(const char *path, int flags)
{
	char proc[64];
	int fd = open(path, O_PATH);

	if (fd < 0)
		return errno;
	snprintf(proc, sizeof(proc), "/proc/self/fd/%d", fd);
	return outcome(open(proc, flags));
}

static int opath_reopen_read(char *const *arg)
{
	return opath_reopen(arg[0], O_RDONLY);
}

static int opath_reopen_write(char *const *arg)
{
	return opath_reopen(arg[0], O_RDWR);
}

/* A descriptor that a grant allows for reading, opened again for writing. READABLE */
static int reopen_for_writing(char *const *arg)
{
	char proc[64];
	int fd = open(arg[0], O_RDONLY);

	if (fd < 0)
		return ATTACK_NA;
	snprintf(proc, sizeof(proc), "/proc/self/fd/%d", fd);
	return outcome(open(proc, O_WRONLY));
}

/* OUTDIR, NAME */
static int opath_fchdir(char *const *arg)
{
	int dir = open(arg[0], O_PATH | O_DIRECTORY);

	if (dir < 0 || fchdir(dir) < 0)
		return errno;
	return open_then_read(arg[1]);
}

static int opath_mmap_exec(char *const *arg)
{
	int fd = open(arg[0], O_RDONLY);
	void *p;

	if (fd < 0)
		return errno;
	p = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
	return p == MAP_FAILED ? errno : ATTACK_WORKED;
}

/* A descriptor that the parent of the sandbox left open. FD */
static int inherited_fd_read(char *const *arg)
{
	return read_some((int)number(arg[0]));
}

/* FD, NAME */
static int inherited_dirfd_read(char *const *arg)
{
	int fd = openat((int)number(arg[0]), arg[1], O_RDONLY);

	return fd < 0 ? errno : read_some(fd);
}

/* --- Execution ----------------------------------------------------------------------------- */

/* Runs ARGV by execve in a child and returns 0 if it ended with 0, else why not. */
static int spawn(const char *path, char *const *argv)
{
	int status;
	pid_t pid = fork();

	if (pid < 0)
		return errno;
	if (pid == 0) {
		execve(path, argv, (char *const[]){NULL});
		_exit(errno < 100 ? 100 + errno : 255);
	}
	status = reap(pid);
	detail("exit status %d", status);
	/* 127 is what the loader says of a program that it may not read. */
	if (status > 100 && status < 200 && status != 127)
		return status - 100;
	return status == 0 ? ATTACK_WORKED : EACCES;
}

static int exec_path(char *const *arg)
{
	return spawn(arg[0], (char *const[]){arg[0], NULL});
}

/* WORK, TOOL */
static int exec_symlink(char *const *arg)
{
	char *link = join(arg[0], "link-exec");

	if (symlink(arg[1], link) < 0)
		return ATTACK_NA;
	return spawn(link, (char *const[]){link, NULL});
}

/* The loader maps a program that may not be executed. LOADER, TOOL */
static int exec_by_loader(char *const *arg)
{
	return spawn(arg[0], (char *const[]){arg[0], arg[1], NULL});
}

/* A script inside the grant whose interpreter is outside. WORK, TOOL */
static int exec_interpreter(char *const *arg)
{
	char *path = join(arg[0], "script");
	int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0755);

	if (fd < 0)
		return ATTACK_NA;
	dprintf(fd, "#!%s\n", arg[1]);
	close(fd);
	return spawn(path, (char *const[]){path, NULL});
}

static int exec_opath(char *const *arg)
{
	char *const argv[] = {arg[0], NULL};
	int fd = open(arg[0], O_PATH);
	int status;
	pid_t pid;

	if (fd < 0)
		return errno;
	pid = fork();
	if (pid == 0) {
		syscall(SYS_execveat, fd, "", argv, argv + 1, AT_EMPTY_PATH);
		_exit(100 + errno);
	}
	status = reap(pid);
	return status == 0 ? ATTACK_WORKED : status > 100 ? status - 100 : EACCES;
}

const struct attack attacks_files[] = {
	{"open_read", 1, open_read},
	{"open_write", 1, open_write},
	{"open_rdwr", 1, open_rdwr},
	{"open_trunc", 1, open_trunc},
	{"open_read_trunc", 1, open_read_trunc},
	{"open_append", 1, open_append},
	{"open_creat", 1, open_creat},
	{"open_creat_excl", 1, open_creat_excl},
	{"open_creat_read", 1, open_creat_read},
	{"open_legacy", 1, open_legacy},
	{"creat_legacy", 1, creat_legacy},
	{"openat2_read", 1, openat2_read},
	{"openat2_write", 1, openat2_write},
	{"list_dir", 1, list_dir},
	{"truncate_path", 1, truncate_path},
	{"tmpfile_outside", 1, tmpfile_outside},
	{"tmpfile_link_out", 2, tmpfile_link_out},
	{"symlink_read", 2, symlink_read},
	{"symlink_write", 2, symlink_write},
	{"symlink_dir_creat", 2, symlink_dir_creat},
	{"symlink_chain", 3, symlink_chain},
	{"dotdot_read", 2, dotdot_read},
	{"dirfd_dotdot", 2, dirfd_dotdot},
	{"proc_prefix_read", 2, proc_prefix_read},
	{"proc_prefix_write", 2, proc_prefix_write},
	{"proc_cwd_read", 2, proc_cwd_read},
	{"opath_reopen_read", 1, opath_reopen_read},
	{"opath_reopen_write", 1, opath_reopen_write},
	{"reopen_for_writing", 1, reopen_for_writing},
	{"opath_fchdir", 2, opath_fchdir},
	{"mmap_exec", 1, opath_mmap_exec},
	{"inherited_fd_read", 1, inherited_fd_read},
	{"inherited_dirfd_read", 2, inherited_dirfd_read},
	{"exec_path", 1, exec_path},
	{"exec_symlink", 2, exec_symlink},
	{"exec_by_loader", 2, exec_by_loader},
	{"exec_interpreter", 2, exec_interpreter},
	{"exec_opath", 1, exec_opath},
	{0},
};
