/* SPDX-License-Identifier: Apache-2.0 */
/* A hash table that only grows. */
#include "fs/inode_map.h"

#include <stdlib.h>

#include "base/util.h"

struct inode_slot {
	uint64_t ino;
	uint64_t value;
};

void inode_map_done(struct inode_map *map)
{
	free(map->slots);
	*map = (struct inode_map){0};
}

/* Where INO is, or would be. */
static struct inode_slot *place(const struct inode_map *map, uint64_t ino)
{
	size_t i = (size_t)((ino * 0x9e3779b97f4a7c15u) >> 32) & (map->room - 1);
	while (map->slots[i].ino && map->slots[i].ino != ino)
		i = (i + 1) & (map->room - 1);
	return &map->slots[i];
}

static void grow(struct inode_map *map)
{
	struct inode_map larger = {.room = map->room ? map->room * 2 : 64, .n = map->n};
	larger.slots = xcalloc(larger.room, sizeof(struct inode_slot));
	for (size_t i = 0; i < map->room; i++)
		if (map->slots[i].ino)
			*place(&larger, map->slots[i].ino) = map->slots[i];
	free(map->slots);
	*map = larger;
}

void inode_map_add(struct inode_map *map, uint64_t ino, uint64_t value)
{
	if (map->n * 2 >= map->room)
		grow(map);
	struct inode_slot *slot = place(map, ino);
	if (!ino || slot->ino)
		return;
	*slot = (struct inode_slot){.ino = ino, .value = value};
	map->n++;
}

bool inode_map_find(const struct inode_map *map, uint64_t ino, uint64_t *ret_value)
{
	if (!map->room || !ino)
		return false;
	const struct inode_slot *slot = place(map, ino);
	if (!slot->ino)
		return false;
	*ret_value = slot->value;
	return true;
}
