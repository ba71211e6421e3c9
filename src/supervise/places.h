/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The places that the base would make private, where there is no base: /proc, /dev/pts and
 * /dev/shm. Landlock grants nothing of them; what the sandbox sees of them comes from here. The
 * sandbox has a directory of its own (the guardian makes and removes it) with a "shm" in it that
 * stands for /dev/shm, and with stand-ins for the listings of the other two, of which a real
 * descriptor would show what belongs to others.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct at_info;
struct box;
struct places;

enum place { PLACE_NONE, PLACE_PROC, PLACE_PTS, PLACE_SHM, PLACE_COUNT };

/* DIR: the sandbox's own directory; it exists. Absent places are never found. */
struct places *places_new(const char *dir);
void places_free(struct places *p);

/* Which place an object lies in: by its file system. /dev/shm counts itself only. */
enum place places_find(const struct places *p, const struct at_info *info);
/*
 * Where the object of FD (INFO) is a stand-in or lies in one: the name in RET_PATH (SIZE bytes)
 * that it stands for. False if it is none.
 */
bool places_real_name(const struct places *p, int fd, const struct at_info *info, char *ret_path,
		      size_t size);
/*
 * A descriptor for reading of a listing of PLACE (PLACE_PROC, PLACE_PTS) that holds what is the
 * sandbox's own. Negative errno. With this process's own rights, not between act_begin and act_end.
 */
int places_list(struct places *p, const struct box *box, enum place place);
/* The directory that stands for /dev/shm, as an O_PATH descriptor of the caller's. */
int places_shm(const struct places *p);
