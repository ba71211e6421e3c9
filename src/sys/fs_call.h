/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The calls by which a commit reads and changes trees. Each change passes one place, where a hook
 * may see it before and after: tests stop there, make it fail, or record it.
 *
 * No name is followed if it is a link. Nothing here opens a FIFO or a device. Negative errno.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <time.h>

enum fs_op {
	FS_MKDIR,
	FS_CREATE,  /* NAME in DIR, a new regular file; AFTER: FD */
	FS_SYMLINK, /* NAME in DIR, text DATA */
	FS_MKNOD,   /* a FIFO or a socket */
	FS_LINK,    /* NAME2 in DIR2 becomes a second name of NAME in DIR */
	FS_RENAME,  /* VALUE: RENAME_ flags */
	FS_UNLINK,  /* VALUE: AT_REMOVEDIR or 0 */
	FS_WRITE,   /* DATA, LEN at VALUE of FD */
	FS_TRUNCATE,
	FS_CLONE,     /* contents of DIR (a descriptor) become those of FD */
	FS_SET_MODE,  /* of FD, which may be O_PATH */
	FS_SET_OWNER, /* VALUE: uid << 32 | gid */
	FS_SET_TIMES,
	FS_SET_XATTR,	 /* NAME of FD becomes DATA */
	FS_REMOVE_XATTR, /* NAME of FD */
	FS_SYNC,	 /* FD */
	FS_SYNC_ALL,	 /* the file system of FD */
	FS_IDENTIFY,	 /* no change: the hook may put another identity into ID */
	FS_OP_COUNT,
};

/* What tells an object from all others of its file system, also after a crash. */
struct fs_id {
	uint64_t ino;
	uint64_t born; /* nanoseconds since the epoch; 0: the file system does not tell */
};

struct fs_call {
	enum fs_op op;
	bool after; /* it was done, without failure */
	int fd;
	int dir;
	int dir2;
	const char *name;
	const char *name2;
	const void *data;
	size_t len;
	uint64_t value;
	const struct timespec *times;
	struct fs_id *id;
};

/* What HOOK returns below zero before a call is that call's failure. */
struct fs_io {
	int (*hook)(void *data, const struct fs_call *call); /* NULL: none */
	void *data;
};

int fs_make_dir(const struct fs_io *io, int dir, const char *name, mode_t mode);
/* A descriptor for reading and writing. */
int fs_create(const struct fs_io *io, int dir, const char *name, mode_t mode);
int fs_make_link(const struct fs_io *io, int dir, const char *name, const char *text);
int fs_make_node(const struct fs_io *io, int dir, const char *name, mode_t mode);
int fs_hard_link(const struct fs_io *io, int dir, const char *name, int dir2, const char *name2);
int fs_rename(const struct fs_io *io, int dir, const char *name, int dir2, const char *name2,
	      unsigned int flags);
int fs_unlink(const struct fs_io *io, int dir, const char *name, int flags);
int fs_write(const struct fs_io *io, int fd, const void *data, size_t len, uint64_t offset);
int fs_truncate(const struct fs_io *io, int fd, uint64_t size);
/* Shares the blocks of FROM (reflink); fails where that cannot be. */
int fs_clone(const struct fs_io *io, int from, int to);
int fs_set_mode(const struct fs_io *io, int fd, mode_t mode);
int fs_set_owner(const struct fs_io *io, int fd, uid_t uid, gid_t gid);
/* The modification time only. */
int fs_set_mtime(const struct fs_io *io, int fd, const struct timespec *mtime);
int fs_set_xattr(const struct fs_io *io, int fd, const char *name, const void *value, size_t len);
int fs_remove_xattr(const struct fs_io *io, int fd, const char *name);
int fs_sync(const struct fs_io *io, int fd);
int fs_sync_all(const struct fs_io *io, int fd);

/* -ENOENT where there is no such name. */
int fs_identify(const struct fs_io *io, int dir, const char *name, struct fs_id *ret);
bool fs_id_same(const struct fs_id *a, const struct fs_id *b);

/* What stat says of NAME in DIR, or of DIR itself where NAME is "". */
int fs_stat(int dir, const char *name, struct stat *ret);
/* A number for the mount that FD was reached by. */
int fs_mount_id(int fd, uint64_t *ret);
/*
 * The directory PATH ("" for ROOT itself) beneath ROOT, however long PATH is, without crossing
 * links or mounts. FLAGS: O_PATH or O_RDONLY.
 */
int fs_open_dir(int root, const char *path, int flags);
/* NAME in DIR, checked to be a regular file; FLAGS: O_RDONLY or O_WRONLY. */
int fs_open_file(int dir, const char *name, int flags);
/* NAME in DIR of whatever kind, as O_PATH. */
int fs_open_any(int dir, const char *name);

struct fs_names {
	char **v;
	size_t n;
};

/* The names in the directory FD (opened for reading), sorted by bytes. -E2BIG beyond MAX. */
int fs_list(int fd, size_t max, struct fs_names *ret);
void fs_names_done(struct fs_names *names);
void fs_names_done_cleanup(struct fs_names *names);

/* The names of the attributes of FD (may be O_PATH), each ended by NUL; owned. -ENOTSUP: none. */
int fs_xattr_names(int fd, char **ret_names, size_t *ret_len);
/* The same of NAME in DIR, not followed, without opening it. */
int fs_xattr_names_of(int dir, const char *name, char **ret_names, size_t *ret_len);
/* The value (owned) and its length. */
ssize_t fs_xattr(int fd, const char *name, void **ret_value);
/* A short value into OUT; its length. */
ssize_t fs_xattr_into(int fd, const char *name, void *out, size_t size);
/* Where the next data begin at or after OFFSET: SIZE where there are none. */
uint64_t fs_next_data(int fd, uint64_t offset, uint64_t size);
/* Where the data that begin at OFFSET end. */
uint64_t fs_next_hole(int fd, uint64_t offset, uint64_t size);
ssize_t fs_read(int fd, void *buffer, size_t size, uint64_t offset);
