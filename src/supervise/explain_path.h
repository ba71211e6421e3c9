/* SPDX-License-Identifier: Apache-2.0 */
/* What the files that explain path calls share: explain_path.c, explain_names.c, explain_exec.c. */
#pragma once

#include <limits.h>

#include "supervise/explain.h"
#include "supervise/judge.h"

struct at_info;

/* A path that the task gave; TEXT "": the descriptor DIRFD itself. */
struct explain_path {
	int dirfd;
	char text[PATH_MAX];
};

/* A refusal that was found. */
struct explained {
	int error;
	bool write;	      /* a write grant is missing, else one to read */
	bool mount;	      /* EXDEV: it is the base's mounts that part the two names */
	char where[PATH_MAX]; /* what has to be granted */
	char also[PATH_MAX];  /* and this, unless empty */
	char resolved[PATH_MAX + NAME_MAX + 2];
};

/* Reads path number WHICH (0, 1) of the call. 0 or a negative errno. */
int explain_read_path(struct call *call, unsigned int which, struct explain_path *ret);
/* The call's AT_ flags. */
int explain_at_flags(const struct call *call);
/* As resolve_path; -EAGAIN also where what was found may keep a caller waiting. */
int explain_resolve(struct call *call, const struct explain_path *p, unsigned int flags,
		    struct resolved *ret);
/*
 * 1: MODE (R_OK, W_OK, X_OK) will be refused for want of a grant, RET says how; 0: it will not, or
 * for another reason; -EAGAIN.
 */
int explain_judge(struct call *call, const struct resolved *r, int mode, struct explained *ret);
/* The same for a change of the names in PARENT, of which LAST is one. */
int explain_judge_entry(struct call *call, const struct resolved *parent, struct explained *ret);
/* Whether LAST is there, with what it is in RET_INFO. */
int explain_has_entry(const struct resolved *parent, struct at_info *ret_info);
void explain_entry_name(const struct resolved *parent, char *ret_path, size_t size);

/* Tells E of what the task called TEXT. Returns 0. */
int explain_tell(struct call *call, const char *text, const struct explained *e);

/* Judges, between act_begin and act_end: 1 with RET filled, 0, or a negative errno. */
typedef int (*explain_judge_fn)(struct call *call, const struct explain_path *p, const void *how,
				struct explained *ret);
/* One such: the path is of a name that is to be made. */
int explain_judge_new(struct call *call, const struct explain_path *p, const void *how,
		      struct explained *ret);
int explain_with(struct call *call, const struct explain_path *p, explain_judge_fn judge,
		 const void *how);
