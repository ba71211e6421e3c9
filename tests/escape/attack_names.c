/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Attacks that make, move, link or remove names outside the grants, or carry an object across the
 * edge of a grant.
 *
 * Invariant: the outside name comes first, so that a row of the table reads as "what is attacked,
 * with what help".
 */
#include "attack.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

static int mkdir_path(char *const *arg)
{
	return outcome(mkdir(arg[0], 0755));
}

static int rmdir_path(char *const *arg)
{
	return outcome(rmdir(arg[0]));
}

static int unlink_path(char *const *arg)
{
	return outcome(unlink(arg[0]));
}

static int unlinkat_dir(char *const *arg)
{
	return outcome(unlinkat(AT_FDCWD, arg[0], AT_REMOVEDIR));
}

static int mknod_fifo(char *const *arg)
{
	return outcome(mknod(arg[0], S_IFIFO | 0644, 0));
}

static int mknod_socket(char *const *arg)
{
	return outcome(mknod(arg[0], S_IFSOCK | 0644, 0));
}

static int mknod_regular(char *const *arg)
{
	return outcome(mknod(arg[0], S_IFREG | 0644, 0));
}

/* A block device of the host, made wherever the caller may make names. */
static int mknod_block(char *const *arg)
{
	return outcome(mknod(arg[0], S_IFBLK | 0666, makedev(254, 0)));
}

static int mknod_char(char *const *arg)
{
	return outcome(mknod(arg[0], S_IFCHR | 0666, makedev(1, 1)));
}

static int symlink_path(char *const *arg)
{
	return outcome(symlink("/nowhere", arg[0]));
}

/* FROM, TO */
static int rename_path(char *const *arg)
{
	return outcome(rename(arg[0], arg[1]));
}

static int rename_noreplace(char *const *arg)
{
	return outcome(
		syscall(SYS_renameat2, AT_FDCWD, arg[0], AT_FDCWD, arg[1], RENAME_NOREPLACE));
}

static int rename_exchange(char *const *arg)
{
	return outcome(syscall(SYS_renameat2, AT_FDCWD, arg[0], AT_FDCWD, arg[1], RENAME_EXCHANGE));
}

static int rename_whiteout(char *const *arg)
{
	return outcome(syscall(SYS_renameat2, AT_FDCWD, arg[0], AT_FDCWD, arg[1], RENAME_WHITEOUT));
}

static int link_path(char *const *arg)
{
	return outcome(link(arg[0], arg[1]));
}

/* A hard link to a file outside, read by its new name. SECRET, NEW */
static int link_then_read(char *const *arg)
{
	int fd;

	if (link(arg[0], arg[1]) < 0)
		return errno;
	fd = open(arg[1], O_RDONLY);
	return fd < 0 ? errno : read_some(fd);
}

static int linkat_procfd(char *const *arg)
{
	char proc[64];
	int fd = open(arg[0], O_PATH);

	if (fd < 0)
		return errno;
	snprintf(proc, sizeof(proc), "/proc/self/fd/%d", fd);
	return outcome(linkat(AT_FDCWD, proc, AT_FDCWD, arg[1], AT_SYMLINK_FOLLOW));
}

static int linkat_empty(char *const *arg)
{
	int fd = open(arg[0], O_PATH);

	if (fd < 0)
		return errno;
	return outcome(linkat(fd, "", AT_FDCWD, arg[1], AT_EMPTY_PATH));
}

/* A directory moved into the grant takes what is below it along. OUTDIR, NEW, NAME */
static int rename_dir_in(char *const *arg)
{
	int fd;

	if (rename(arg[0], arg[1]) < 0)
		return errno;
	fd = open(join(arg[1], arg[2]), O_RDONLY);
	return fd < 0 ? errno : read_some(fd);
}

const struct attack attacks_names[] = {
	{"mkdir", 1, mkdir_path},
	{"rmdir", 1, rmdir_path},
	{"unlink", 1, unlink_path},
	{"unlinkat_dir", 1, unlinkat_dir},
	{"mknod_fifo", 1, mknod_fifo},
	{"mknod_socket", 1, mknod_socket},
	{"mknod_regular", 1, mknod_regular},
	{"mknod_block", 1, mknod_block},
	{"mknod_char", 1, mknod_char},
	{"symlink", 1, symlink_path},
	{"rename", 2, rename_path},
	{"rename_noreplace", 2, rename_noreplace},
	{"rename_exchange", 2, rename_exchange},
	{"rename_whiteout", 2, rename_whiteout},
	{"rename_dir_in", 3, rename_dir_in},
	{"link", 2, link_path},
	{"link_then_read", 2, link_then_read},
	{"linkat_procfd", 2, linkat_procfd},
	{"linkat_empty", 2, linkat_empty},
	{0},
};
