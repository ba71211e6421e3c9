/* SPDX-License-Identifier: Apache-2.0 */
/* Between the files of the workspace. */
#pragma once

#include "fs/store.h"
#include "lib/workspace.h"
#include "policy/policy.h"

struct workspace {
	struct fs_io io;
	struct store store;
	struct set set;
	bool open; /* the set's layers are there, and undecided */
	char *cwd;
	struct workspace_root *roots; /* paths are the set's */
	size_t n_roots;
	struct strv hidden;
	struct strv notes;
	enum policy_action on_exit;
	enum policy_action on_error;
	enum policy_conflict on_conflict;
	bool dry_run;
	char *storage; /* " --fs-storage DIR" as a shell takes it, or "" */
	bool torn;
};

/* Refuses a workdir with a mount below it, which its layer would hide (workspace_mounts.c). */
int workspace_check_mounts(const char *root, struct sandlock_error *err);
/* Refuses write grants that reach the workdir by another mount of its file system. */
int workspace_check_grants(const char *root, const struct strv *grants, struct sandlock_error *err);
