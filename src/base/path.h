/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Paths as text. Nothing here looks at the disk, so `..` is taken back lexically: right for what a
 * user writes, never for deciding where a program's path leads (that is the resolver's work).
 *
 * A path is in normal form when it is absolute, has no empty, `.` or `..` component and no slash at
 * the end (but for "/" itself).
 */
#pragma once

#include <stdbool.h>

bool path_is_absolute(const char *path);
bool path_is_normal(const char *path);

/*
 * PATH in normal form (owned by the caller), taken from BASE where it is relative. BASE is
 * absolute.
 * `..` at the root stays at the root; an empty PATH is BASE.
 */
char *path_absolute(const char *base, const char *path);
/* The normal form of PATH, which is absolute. */
char *path_normalize(const char *path);
/* "DIR/NAME" with one slash between the two, whatever they end and begin with. */
char *path_join(const char *dir, const char *name);

/* Whether PATH is DIR itself or lies below it, both in normal form; compares whole components. */
bool path_is_beneath(const char *path, const char *dir);
/* What follows DIR in PATH ("" for DIR itself), borrowed; NULL where PATH is not beneath DIR. */
const char *path_relative_to(const char *path, const char *dir);

/* The last component, borrowed; "" for "/" or a path that ends in a slash. */
const char *path_basename(const char *path);
/* All before the last component (owned): "/" for "/a", "." for "a", "a" for "a/" and "a/b". */
char *path_dirname(const char *path);
