/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files of the public API share: the policy handle, the way from an internal failure to
 * one of the closed list of codes, and where profiles come from.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "base/strv.h"
#include "lib/notify.h"
#include "sandlock/sandlock.h"
#include "sys/landlock.h"

struct builder;
struct policy;
struct value;

struct sandlock_policy {
	struct builder *builder;  /* never NULL */
	struct policy *policy;	  /* finished form; NULL until asked for and after each change */
	char **command;		  /* NULL-terminated copy of program.exec and args, or NULL */
	struct strv warnings;	  /* what sandlock_policy_warning shows */
	struct listener listener; /* of events */
	/* First change that failed half-way: checks and spawns repeat it. Code 0: none did. */
	struct sandlock_error broken;

	/* What the starts have found out about this machine (process.c). */
	bool caps_known;
	struct landlock_caps caps;
	bool base_impossible;
};

/*
 * The finished policy, borrowed until the next change of POLICY. Checks all; the warnings of
 * building become those of the handle. Returns 0 or a negative enum sandlock_code.
 */
int lib_policy_finish(struct sandlock_policy *policy, const struct policy **ret_policy,
		      struct sandlock_error *err);

/* The code for an errno: the closed list of what the API can return. */
enum sandlock_code lib_code(int errno_value);
/* Fills ERR (may be NULL) from E and returns the negative code. */
int lib_fail(struct sandlock_error *err, const struct err *e);

/* --- Profiles (profile.c, profile_load.c) ------------------------------------------------- */

/* One profile or policy file, read. */
struct profile_text {
	char *text; /* owned */
	size_t len;
	char *label; /* owned; as messages name it */
	char *dir;   /* owned; directory for relative includes, NULL: none */
	char *id;    /* owned; the same for the same file, to find loops */
	bool json;
};

void profile_text_done(struct profile_text *t);
/* By name: own ones, then built-in ones; "builtin:NAME" the latter only. */
int profile_read_name(const char *name, struct profile_text *ret, struct err *err);
/* By path; "-" is standard input. FROM_DIR: where a relative path starts, NULL: the cwd. */
int profile_read_path(const char *path, const char *from_dir, struct profile_text *ret,
		      struct err *err);
int profile_parse(const struct profile_text *t, struct value **ret_root, struct err *err);
/* Applies TEXT, which it takes, after its includes. */
int profile_apply_take(struct builder *b, struct profile_text *text, struct err *err);
