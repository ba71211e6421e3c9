/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The shape of one attack of the escape corpus, and what the families of attacks share.
 *
 * Invariant: an attack reports what the kernel said and nothing else. It returns ATTACK_WORKED when
 * it reached what it must not reach, the errno of the refusal when it was stopped, and ATTACK_NA
 * when the machine lacks what it needs, so that a control run outside tells a real refusal from an
 * attack that could never work.
 */
#pragma once

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#define ATTACK_WORKED 0
#define ATTACK_NA     (-1)

struct attack {
	const char *name;
	int n_args;
	int (*run)(char *const *arg);
};

/* Each table ends with a row without a name. */
extern const struct attack attacks_files[];
extern const struct attack attacks_names[];
extern const struct attack attacks_meta[];
extern const struct attack attacks_mounts[];
extern const struct attack attacks_process[];
extern const struct attack attacks_outlive[];
extern const struct attack attacks_terminal[];
extern const struct attack attacks_ipc[];
extern const struct attack attacks_net[];
extern const struct attack attacks_syscalls[];
extern const struct attack attacks_privilege[];

/* Words for the line that the attack prints. */
void detail(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* ATTACK_WORKED where R (a system call's result) is not negative, else errno. */
int outcome(long r);
/* The same where the kernel answers REACHED once it has let the caller through. */
int outcome_reached(long r, int reached);
/* A decimal, hexadecimal or octal number; the program ends with 3 where it is none. */
long number(const char *text);
/* Reads from FD and tells in the detail how much came; errno where nothing can be read. */
int read_some(int fd);
/* DIR/NAME in memory that lives as long as the program. */
char *join(const char *dir, const char *name);
/* Waits for PID and returns its exit status, 128 + n for signal n. */
int reap(pid_t pid);
