/* SPDX-License-Identifier: Apache-2.0 */
/* Small files of our own that are written whole or not at all. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include "sys/fs_call.h"

/* Puts NAME.tmp in place later: file_place. With SYNC it is durable first. */
int file_prepare(const struct fs_io *io, int dir, const char *name, const void *data, size_t len,
		 bool sync);
/* Renames NAME.tmp to NAME, durably. */
int file_place(const struct fs_io *io, int dir, const char *name);
/* Both. */
int file_write(const struct fs_io *io, int dir, const char *name, const void *data, size_t len);
/*
 * Reading them: a number of digits in BASE that the character END follows, behind which *AT then
 * is; and a time, written as seconds, a dot, and nine digits.
 */
bool file_number(const char **at, int base, char end, uint64_t *ret);
bool file_time(const char **at, char end, struct timespec *ret);
/* All of NAME (owned, NUL-terminated). -E2BIG beyond MAX. */
int file_read(int dir, const char *name, size_t max, char **ret_data, size_t *ret_len);
