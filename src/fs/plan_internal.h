/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of plan.h share. */
#pragma once

struct changes;
struct layer;
struct plan;

/* Makes staged names of files that stay below names of those files, on one file system. */
int plan_links(struct plan *plan, struct layer *layer, struct changes *changes);
