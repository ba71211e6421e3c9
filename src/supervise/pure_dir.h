/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Overlayfs does not rename a directory that lies in the lower layer. Here such a directory is made
 * one of the upper layer alone, in its place and by the merged view only: its contents move into a
 * new directory, which then takes its name. Files are renamed one by one, so that those which are
 * open stay so and keep their inodes; a working directory in it is left behind, removed.
 */
#pragma once

#include <stdbool.h>

struct pure_dir {
	/* Asked now and then: whether to go on; also while what was done is taken back. */
	bool (*go_on)(void *data, bool taking_back);
	void *data;
	bool torn; /* out: neither done nor taken back */
};

/*
 * Makes the directory NAME in DIR (O_PATH) one of the upper layer. Negative errno: it is as it was,
 * but for TORN. -EBUSY where something is mounted in it or others keep writing there.
 */
int pure_dir_make(struct pure_dir *how, int dir, const char *name);
