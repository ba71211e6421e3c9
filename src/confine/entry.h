/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sandbox's entry in the registry of live sandboxes, as guardian and keeper see it. One with a
 * name is there before the guardian; the others are made by the guardian, so that no moment exists
 * in which a killed host leaves one behind.
 */
#pragma once

#include <stdbool.h>

/* Room behind "sandbox-PID-" for the number and its end. */
#define ENTRY_DIGITS 11

/* Part of the job. */
struct job_entry {
	int top_fd; /* what holds the runtime directory; -1: no entry at all */
	const char *top_name;
	char *name;   /* in the job's memory, so that the host sees the number; "": none */
	char *digits; /* behind the last "-" of NAME, with ENTRY_DIGITS bytes; NULL: it is there */
	int error;    /* out: why none could be made */
};

/*
 * Makes the runtime directory if need be, and in it a directory under the first number that is
 * free. Returns it, locked: the lock lasts as long as the descriptor. Or a negative errno, which
 * ERROR holds as well.
 */
int entry_make(struct job_entry *e);
/* Removes the entry, and the runtime directory if it is empty then. */
void entry_remove(const struct job_entry *e);
