/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a layer would change in the directory below it: a tree of the names that the run touched, in
 * the order of their bytes.
 *
 * Nothing is a change that leaves contents, kind, mode, owner, attributes and time of modification
 * as they are. The time alone makes a file or a link modified (make and its kin work by it); of a
 * directory it follows from what was done in it, so it is carried and not listed (CHANGE_TIME of
 * kind CHANGE_NONE). A renamed object is one deleted and one added.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

#include "base/buf.h"

struct err;
struct layer;

enum node_kind {
	NODE_ABSENT,
	NODE_FILE,
	NODE_DIR,
	NODE_SYMLINK,
	NODE_FIFO,
	NODE_SOCKET,
	NODE_DEVICE,
	NODE_KIND_COUNT,
};

enum change_kind { CHANGE_NONE, CHANGE_ADDED, CHANGE_MODIFIED, CHANGE_DELETED };

/* What differs between two objects of one kind. */
#define CHANGE_CONTENT (1u << 0) /* bytes of a file, text of a link */
#define CHANGE_MODE    (1u << 1)
#define CHANGE_OWNER   (1u << 2)
#define CHANGE_XATTR   (1u << 3)
#define CHANGE_TIME    (1u << 4)
#define CHANGE_TYPE    (1u << 5)

struct change_side {
	enum node_kind kind;
	mode_t mode; /* permission bits */
	uid_t uid;
	gid_t gid;
	uint64_t size;
	uint64_t ino;
	uint64_t nlink;
	struct timespec mtime;
	struct timespec ctime;
};

enum change_conflict {
	CONFLICT_NONE,
	CONFLICT_CHANGED, /* it was changed below since the run began */
	CONFLICT_REMOVED, /* it was removed below */
	CONFLICT_COUNT,
};

struct change {
	struct change *parent; /* NULL: this is the workdir itself */
	struct change *children;
	struct change *next;
	char *name;
	enum change_kind kind;
	unsigned int what;
	enum change_conflict conflict;
	bool is_opaque;	  /* an upper directory that hides all below it */
	bool is_copy;	  /* an upper object that began as the one below */
	bool is_chosen;	  /* of a partial commit: see changes_choose */
	bool is_touched;  /* a directory that stays, in which names are put or removed */
	bool is_whole;	  /* chosen with all that lies in it */
	size_t op_number; /* 1 + the op that it became, 0: none (plan.h) */
	struct change_side before;
	struct change_side after;
};

struct changes {
	struct change *root;
	size_t n_nodes;
	size_t n_listed; /* that are not CHANGE_NONE */
	size_t n_conflicts;
};

/* Limits that the hostile side cannot pass. */
#define CHANGES_MAX	 ((size_t)2 * 1024 * 1024)
#define CHANGES_PATH_MAX ((size_t)2 * 1024 * 1024)

/*
 * Compares LAYER with what is below. Fails as a whole where something cannot be read: -EACCES,
 * -E2BIG, -ENOTSUP for a layer of a form that we do not make.
 */
int changes_scan(struct layer *layer, struct changes *ret, struct err *err);
void changes_done(struct changes *changes);
void changes_done_cleanup(struct changes *changes);

/* The node after C in order, NULL at the end. */
struct change *change_next(const struct change *c);
/* The node after C and all below it. */
struct change *change_skip(const struct change *c);
/* Puts the path of C from the workdir ("" for itself) into B; -E2BIG if it is too long. */
int change_path(const struct change *c, struct buf *b);
const char *node_kind_name(enum node_kind kind);

/*
 * Marks what a commit takes: all where GLOB is NULL, else what GLOB matches, with the directories
 * that it lies in and all that lies in it. Returns how many listed changes that are.
 */
size_t changes_choose(struct changes *changes, const char *glob);

/* --- Comparing (changes_compare.c) -------------------------------------------------------- */

/* CHANGE_ bits between upper NAME in UP and lower NAME in LOW, of one kind; negative errno. */
int changes_compare(struct layer *layer, int up, int low, const struct change *c);
