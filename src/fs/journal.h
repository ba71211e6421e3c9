/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The journal of one change set: what is to be done to which name, and by which inodes one sees
 * afterwards whether it was. It is written once, whole, before anything is touched, and ends in the
 * SHA-256 of all before; one that does not is none.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include "base/buf.h"
#include "sys/fs_call.h"

enum op_kind {
	OP_SWAP, /* the object at the name and the one in the slot change places */
	OP_DATA, /* the file stays, its contents and metadata become those of a copy */
	OP_META, /* the object stays, its metadata become those of a shell */
	OP_KIND_COUNT,
};

struct op_side {
	bool exists;
	uint32_t mode; /* with the type */
	uint64_t size;
	struct timespec mtime;
	struct fs_id id;
};

struct op {
	enum op_kind kind;
	bool is_far;	/* the target lies on another mount than the storage */
	bool is_new;	/* of the temporary ones of a far transaction: MOVER is the staged object */
	bool has_owner; /* in place: the owner is changed as well */
	bool is_dir;	/* OP_META of a directory that stays: done last, made writable first */
	uint32_t layer;
	uint32_t slot; /* its name in `new` and `old`, and of the temporary beside a far target */
	struct op_side before;
	struct op_side after;
	struct timespec seen; /* ctime below when the plan was made */
	char *path;	      /* owned; from the workdir; "" is that itself */
};

struct journal {
	struct op *ops;
	size_t n;
};

/* No larger journal is written or read. */
#define JOURNAL_MAX ((size_t)512 * 1024 * 1024)

/* Appends an empty op. */
struct op *journal_add(struct journal *j);
void journal_done(struct journal *j);
void journal_done_cleanup(struct journal *j);
int journal_encode(const struct journal *j, struct buf *out);
/* -EINVAL for anything that journal_encode cannot have written. */
int journal_decode(const void *data, size_t len, struct journal *ret);
/* Whether PATH is one below a workdir: relative, without empty, `.` and `..` components. */
bool journal_path_is_sane(const char *path);
