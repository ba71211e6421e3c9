/* SPDX-License-Identifier: Apache-2.0 */
/* What the two halves of move.h share. */
#pragma once

#include <stdint.h>

#include "fs/move.h"

struct err;

/* Where an op works: a directory (O_PATH) and a name in it; "." for a workdir itself. */
struct place {
	int dir; /* -1: none yet */
	uint32_t layer;
	char *parent;	  /* owned */
	const char *name; /* borrowed from the op */
};

/* Brings P from where it is to the place of OP. */
int place_find(const struct move *m, const struct op *op, struct place *p);
void place_done(struct place *p);
void place_done_cleanup(struct place *p);

struct slot_name {
	char text[80];
};

struct slot_name slot_name(const struct op *op);
/* Of the temporary beside a far target. */
struct slot_name temp_name(const struct move *m, const struct op *op);
/* Makes directories that stay, and in which something changes, accessible while it does. */
int move_widen(struct move *m);
/* Gives directories that stay the metadata that they are to have: after all that is done in them.
 */
int move_dirs(struct move *m, bool after, struct err *err);
