/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The terminal: who is in its foreground, and the relay of a terminal of the command's own (--pty).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/ioctl.h>
#include <sys/types.h>
#include <termios.h>

/* Standard input is a terminal whose foreground process group is ours (decisions 4). */
bool tty_is_interactive(void);
/* Makes PGRP the foreground group of the terminal; errors are ignored. */
void tty_give(pid_t pgrp);
/*
 * Takes the foreground back from the command whose process group is COMMAND, or from a group that
 * is gone; whoever else has it (the shell, after ^Z and bg) keeps it.
 */
void tty_take_back(pid_t command);
bool tty_is_ours(void);
/*
 * Stops this process group, as the kernel does with a background group that wants the terminal,
 * until it is continued, and not at all where it is in the foreground by then: the kernel decides,
 * so that no hand-over falls in between. False if nobody could ever continue it (an orphaned
 * group).
 */
bool tty_wait_for(void);

/* What a command can leave behind on a terminal that it shares with the user. */
struct tty_state {
	int flags[3]; /* file status flags of descriptors 0 to 2, -1: none */
	int fd;	      /* a terminal among them, -1: none */
	struct termios termios;
	struct winsize size;
};

void tty_save(struct tty_state *ret_state);
/*
 * Puts it right again: descriptor flags, stopped output and exclusive use always; modes and window
 * size only with MODES, where the command did not end by itself (it may have been asked for them).
 */
void tty_restore(const struct tty_state *state, bool modes);

struct relay_pipe {
	char buf[8192];
	size_t len;
	size_t sent;
	bool eof;
};

#define RELAY_HELD_MAX ((size_t)1024 * 1024)

struct relay {
	int master;
	bool holding; /* what the command prints is kept for later */
	bool broken;  /* standard output is gone */
	bool raw;     /* standard input is in raw mode and must be restored */
	struct termios saved;
	struct relay_pipe in;  /* standard input to the command */
	struct relay_pipe out; /* the command to standard output */
	char *held;	       /* what was kept, up to RELAY_HELD_MAX: behind that it waits */
	size_t held_len;
	size_t held_at; /* so much of it has gone on */
};

struct pollfd;

void relay_init(struct relay *r, int master);
/* Restores the terminal and closes the master side. */
void relay_done(struct relay *r);
/* Copies the size of standard input's terminal. */
void relay_resize(const struct relay *r);
/* Fills three entries: standard input, master, standard output. */
void relay_poll(const struct relay *r, struct pollfd *pfd);
/* With HOLD neither the command's output nor the user's input is passed on. */
void relay_hold(struct relay *r, bool hold);
/* Whether there is output of the command's that is not shown yet. */
bool relay_is_busy(const struct relay *r);
void relay_step(struct relay *r, const struct pollfd *pfd);
/* Writes out what the command has left behind; with PATIENT, waits for a slow reader. */
void relay_drain(struct relay *r, bool patient);
