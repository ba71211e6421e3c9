/* SPDX-License-Identifier: Apache-2.0 */
/* The layers of a workspace, in the base. */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct job;

/* An overlay over a workdir. Paths are canonical. */
struct job_layer {
	const char *path;
	uint64_t dev;
	uint64_t ino;
	const char *store; /* what holds the directories "upper" and "work" */
	uint64_t store_dev;
	uint64_t store_ino;
	size_t rule;
};

/* Made, attached, and what is to be hidden covered. As base_mount: negative after job_fail. */
int layers_make(struct job *job);
int layers_attach(struct job *job);
int layers_hide(struct job *job);
