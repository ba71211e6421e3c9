/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Attacks through the terminal: input pushed into the user's shell, the console's selection, and
 * terminals of other sessions.
 *
 * Invariant: descriptor 0 is a terminal that the harness made and that nobody else uses.
 */
#include "attack.h"

#include <fcntl.h>
#include <linux/tiocl.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <termios.h>
#include <unistd.h>

static int sti(int fd, unsigned long request)
{
	return outcome(syscall(SYS_ioctl, fd, request, "x"));
}

static int tiocsti(char *const *arg)
{
	return sti(0, TIOCSTI);
}

/* The kernel takes the low 32 bits of the request. */
static int tiocsti_high(char *const *arg)
{
	return sti(0, TIOCSTI | (unsigned long)number(arg[0]) << 32);
}

static int tiocsti_dev_tty(char *const *arg)
{
	int fd = open("/dev/tty", O_RDWR);

	return fd < 0 ? errno : sti(fd, TIOCSTI);
}

/* A pseudo-terminal answers ENOTTY: the request has then reached it. */
static int tioclinux(char *const *arg)
{
	char sub = TIOCL_PASTESEL;

	return outcome_reached(syscall(SYS_ioctl, 0, TIOCLINUX, &sub), ENOTTY);
}

static int tioclinux_high(char *const *arg)
{
	char sub = TIOCL_PASTESEL;
	unsigned long request = TIOCLINUX | (unsigned long)number(arg[0]) << 32;

	return outcome_reached(syscall(SYS_ioctl, 0, request, &sub), ENOTTY);
}

static int tioccons(char *const *arg)
{
	return outcome_reached(ioctl(0, TIOCCONS), EBUSY);
}

/* REQUEST with a zero behind the pointer; a pseudo-terminal refuses the console's with ENOTTY. */
static int terminal_ioctl(char *const *arg)
{
	long zero[8] = {0};

	return outcome_reached(syscall(SYS_ioctl, 0, (unsigned long)number(arg[0]), zero), ENOTTY);
}

/* Another terminal of the same user. PATH */
static int other_terminal(char *const *arg)
{
	return outcome(open(arg[0], O_RDWR | O_NOCTTY | O_NONBLOCK));
}

/* By the descriptor table of the process that owns it. PID, FD */
static int other_terminal_fd(char *const *arg)
{
	char *path = join(join(join("/proc", arg[0]), "fd"), arg[1]);

	return outcome(open(path, O_RDWR | O_NOCTTY | O_NONBLOCK));
}

const struct attack attacks_terminal[] = {
	{"tiocsti", 0, tiocsti},
	{"tiocsti_high", 1, tiocsti_high},
	{"tiocsti_dev_tty", 0, tiocsti_dev_tty},
	{"tioclinux", 0, tioclinux},
	{"tioclinux_high", 1, tioclinux_high},
	{"tioccons", 0, tioccons},
	{"terminal_ioctl", 1, terminal_ioctl},
	{"other_terminal", 1, other_terminal},
	{"other_terminal_fd", 2, other_terminal_fd},
	{0},
};
