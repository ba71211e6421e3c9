/* SPDX-License-Identifier: Apache-2.0 */
/* Small files of our own that are written whole or not at all. */
#pragma once

#include <stddef.h>

#include "sys/fs_call.h"

/* Puts NAME.tmp in place later: file_place. With SYNC it is durable first. */
int file_prepare(const struct fs_io *io, int dir, const char *name, const void *data, size_t len,
		 bool sync);
/* Renames NAME.tmp to NAME, durably. */
int file_place(const struct fs_io *io, int dir, const char *name);
/* Both. */
int file_write(const struct fs_io *io, int dir, const char *name, const void *data, size_t len);
/* All of NAME (owned, NUL-terminated). -E2BIG beyond MAX. */
int file_read(int dir, const char *name, size_t max, char **ret_data, size_t *ret_len);
