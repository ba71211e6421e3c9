/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Change sets as text: the dry run's list, JSON with both sides of every entry, counts, and a
 * unified diff. Names come from the sandbox and are escaped for terminals in all of them (a patch
 * quotes them as git does). What is written goes to a function in pieces, so no form grows in
 * memory.
 */
#pragma once

#include <stddef.h>

#include "fs/commit.h"

struct err;

/* Takes a piece of text; negative errno stops the writer, which returns it. */
typedef int (*format_out)(void *data, const char *text, size_t len);

enum format_kind { FORMAT_TEXT, FORMAT_JSON, FORMAT_PATCH, FORMAT_STAT, FORMAT_COUNT };

/* The listed changes that are chosen, all workdirs together: paths are relative where it is one. */
int format_changes(enum format_kind kind, struct set_changes *sc, const struct set_info *info,
		   format_out out, void *data, struct err *err);
/* "text", "json", "patch", "stat"; -EINVAL for another. */
int format_kind_parse(const char *name, enum format_kind *ret);

/* --- Between the files of this module ------------------------------------------------------ */

struct format {
	format_out out;
	void *data;
	const char *prefix; /* of absolute paths; NULL: relative */
	struct layer *layer;
	size_t n; /* entries written so far */
};

/* One text of two: what a change set's file was and is. Outputs hunks (format_patch.c). */
int format_patch_change(struct format *f, const struct change *c);
/* The path as it is printed, raw. */
int format_path(const struct format *f, const struct change *c, struct buf *out);

/* Lines of two texts as a unified diff without headers (diff.c): 0 where there is no difference. */
int diff_unified(const char *old_text, size_t old_len, const char *new_text, size_t new_len,
		 struct buf *out);
/* How many lines came and went, for `stat`. */
int diff_count(const char *old_text, size_t old_len, const char *new_text, size_t new_len,
	       size_t *ret_added, size_t *ret_removed);
