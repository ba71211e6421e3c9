/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The questions of --net-ask on the terminal of the user, where the command does not share it, so
 * that it can neither write a question nor read an answer. While one is shown, what the command
 * prints on a terminal of its own is held back, so that nothing is drawn over it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <termios.h>

struct buf;
struct pollfd;
struct relay;
struct sandlock_process;
struct value;

/* Adds what question Q (of sandlock_questions) asks: one line without its end, safe to print. */
void ask_add_text(const struct value *q, struct buf *out);

struct ask_terminal {
	int fd;	     /* the terminal, -1: questions are not shown there */
	int shown;   /* number of the question on it; 0: none */
	bool hinted; /* it was said where else they can be answered */
	bool quiet;
	int deferred;	     /* so often */
	struct relay *relay; /* borrowed; NULL: the command has no terminal */
	struct termios before;
	char line[64];
	size_t len;
};

/* SHARED: the command has the terminal as well. RELAY: of --pty, or NULL. */
void ask_terminal_init(struct ask_terminal *t, bool shared, struct relay *relay, bool quiet);
/* Shows, or takes back, what has come or gone. */
void ask_terminal_update(struct ask_terminal *t, struct sandlock_process *process);
void ask_terminal_poll(const struct ask_terminal *t, struct pollfd *pfd);
/* Reads what was typed. */
void ask_terminal_step(struct ask_terminal *t, const struct pollfd *pfd,
		       struct sandlock_process *process);
void ask_terminal_done(struct ask_terminal *t);
