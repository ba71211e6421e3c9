/* SPDX-License-Identifier: Apache-2.0 */
/* From inode numbers to numbers: for sets that a sandbox can make as large as it likes. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct inode_map {
	struct inode_slot *slots; /* open addressing; inode 0 is an empty one */
	size_t room;
	size_t n;
};

void inode_map_done(struct inode_map *map);
/* Does nothing if INO is there already. */
void inode_map_add(struct inode_map *map, uint64_t ino, uint64_t value);
bool inode_map_find(const struct inode_map *map, uint64_t ino, uint64_t *ret_value);
