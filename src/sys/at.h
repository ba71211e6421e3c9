/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Path calls relative to descriptors, as the supervisor needs them: thin, without policy, negative
 * errno instead of -1. Objects are held as O_PATH descriptors, and what is done to one is done to
 * the descriptor, never to a name again.
 */
#pragma once

#include <dirent.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

struct at_info {
	uint32_t mode;
	uint32_t nlink;
	uint32_t uid;
	uint64_t dev;
	uint64_t ino;
	uint64_t mnt; /* id of the mount that it was reached by */
};

/* openat2 with O_PATH and O_CLOEXEC besides FLAGS. A descriptor, owned by the caller. */
int at_open(int dir, const char *path, uint64_t flags, uint64_t resolve);
/* What is known of the object of FD, or of NAME in DIR (a link there is not followed), without
 * asking a server for it. */
int at_info(int fd, struct at_info *ret);
int at_info_of(int dir, const char *name, struct at_info *ret);
/* The text of the link that FD is, NUL-terminated; its length. -ENAMETOOLONG if it does not fit. */
ssize_t at_read_link(int fd, char *ret_text, size_t size);
/* The name that the kernel has for the object of FD, as above. */
ssize_t at_name(int fd, char *ret_text, size_t size);
/* File system type (its magic number) and ST_ flags of FD's mount. May ask a server. */
int at_file_system(int fd, uint32_t *ret_magic, uint64_t *ret_flags);
/* Whether the file system may keep a caller waiting for a server or another process. */
bool at_is_slow(int fd);
/* A small file of procfs (DIR AT_FDCWD: PATH is absolute), NUL-terminated; its length. */
ssize_t at_read_file(int dir, const char *path, char *ret_text, size_t size);

/* What access(2) says of the object of FD, with the effective ids: 0 or a negative errno. */
int at_access(int fd, int mode);

/* Done to the object of FD. IS_PATH: it is an O_PATH descriptor. */
int at_set_mode(int fd, bool is_path, mode_t mode);
int at_set_owner(int fd, bool is_path, uid_t uid, gid_t gid);
int at_set_times(int fd, bool is_path, const struct timespec *times);
int at_set_xattr(int fd, bool is_path, const char *name, const void *value, size_t size, int flags);
int at_remove_xattr(int fd, bool is_path, const char *name);
/* A watch of the inotify descriptor on the object of FD; the watch descriptor. */
int at_watch(int inotify, int fd, uint32_t mask);

/* The object of the O_PATH descriptor FD, opened with FLAGS and O_CLOEXEC. */
int at_reopen(int fd, int flags);
/* An entry of DIR opened for reading or made; a link there is not followed. */
int at_open_entry(int dir, const char *name, int flags, mode_t mode);
/* Its entries (PATH may be absolute); NULL with errno set. The caller's (at_dir_done). */
DIR *at_dir(int dir, const char *path);
void at_dir_done_cleanup(DIR **dir);
/* The text of the link NAME in DIR, as at_read_link. */
ssize_t at_read_link_of(int dir, const char *name, char *ret_text, size_t size);
int at_make_dir(int dir, const char *name, mode_t mode);
int at_make_link(int dir, const char *name, const char *text);
int at_unlink(int dir, const char *name, int flags);

int at_rename(int from_dir, const char *from, int to_dir, const char *to, unsigned int flags);
/* A second name for FROM in FROM_DIR, which is not followed if it is a link. */
int at_hard_link(int from_dir, const char *from, int to_dir, const char *to);
