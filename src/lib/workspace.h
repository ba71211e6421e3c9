/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The workspace of one run: a change set with a layer over each workdir, made before the start, and
 * what becomes of it at the end.
 *
 * A workdir at or below another one is covered by that one's layer. The set is locked for as long
 * as the host or the guardian lives; what a killed host leaves is swept by the next run.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/strv.h"
#include "sandlock/sandlock.h"

struct job_request;
struct policy;
struct workspace;

struct workspace_root {
	const char *path; /* canonical */
	uint64_t dev, ino;
	char *store; /* owned: what holds its "upper" and "work", canonical */
	uint64_t store_dev, store_ino;
};

/* Makes it, or fails: then nothing may be started. NULL in RET where the policy has no workdir. */
int workspace_open(const struct policy *policy, char *const *argv, struct strv *warnings,
		   struct workspace **ret, struct sandlock_error *err);
/* Refuses descriptors that would lead round the layer. */
int workspace_check_stdio(const struct workspace *ws, const struct policy *policy, const int fds[3],
			  struct sandlock_error *err);

const char *workspace_cwd(const struct workspace *ws);
size_t workspace_roots(const struct workspace *ws, const struct workspace_root **ret);
/* Directories that the sandbox must not see. */
/* Where state directories of this user lie, as far as they exist; canonical. */
void workspace_find_states(struct strv *ret);
const struct strv *workspace_hidden(const struct workspace *ws);
int workspace_lock(const struct workspace *ws);
/* Whether PATH (canonical) lies in a workdir. WS may be NULL. */
bool workspace_covers(const struct workspace *ws, const char *path);
/* The canonical name of PATH (owned) if it lies in a workdir, else NULL. WS may be NULL. */
char *workspace_find(const struct workspace *ws, const char *path);

/*
 * Does what the policy says for a run that went well or did not. Negative code where a commit was
 * refused or failed: the set is kept then, and ERR says how it is tried again.
 */
int workspace_end(struct workspace *ws, bool well, struct sandlock_error *err);
/* Something was left half-way at the end: nothing is committed by itself. */
void workspace_is_torn(struct workspace *ws);
/* Whether there is still a layer to decide about. */
bool workspace_is_open(const struct workspace *ws);
int workspace_commit(struct workspace *ws, struct sandlock_error *err);
int workspace_abort(struct workspace *ws, struct sandlock_error *err);
int workspace_keep(struct workspace *ws, struct sandlock_error *err);
/* The changes in FORMAT (see sandlock_process_changes). */
int workspace_show(struct workspace *ws, const char *format,
		   int (*out)(void *data, const char *text, size_t len), void *data,
		   struct sandlock_error *err);
/* What is to be told about the end, or NULL past the last one. */
const char *workspace_note(const struct workspace *ws, size_t i);
/* STARTED: what is undecided is kept, never lost (but a dry run); else it is removed. */
void workspace_free(struct workspace *ws, bool started);
