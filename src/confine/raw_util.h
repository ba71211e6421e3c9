/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Small helpers for the code between clone and exec: raw system calls under their usual names. No
 * libc, no errno, no allocation.
 */
#pragma once

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>

#include "sys/raw.h"

/* The kernel's signal set: one word on all supported architectures. */
typedef uint64_t raw_sigset;

struct raw_sigaction {
	uintptr_t handler;
	unsigned long flags;
	uintptr_t restorer;
	raw_sigset mask;
};

RAW_INLINE int raw_openat(int dir, const char *path, int flags, int mode)
{
	return (int)raw_syscall4(SYS_openat, dir, path, flags, mode);
}

RAW_INLINE void raw_close(int fd)
{
	raw_syscall1(SYS_close, fd);
}

RAW_INLINE long raw_write(int fd, const void *data, size_t n)
{
	return raw_syscall3(SYS_write, fd, data, n);
}

RAW_INLINE size_t raw_strlen(const char *s)
{
	size_t n = 0;
	while (s[n]) {
		n++;
		__asm__ volatile(""); /* keeps this from becoming a call of strlen */
	}
	return n;
}

RAW_INLINE void raw_zero(void *p, size_t n)
{
	volatile unsigned char *c = p;
	for (size_t i = 0; i < n; i++)
		c[i] = 0;
}

RAW_INLINE long raw_sigmask(int how, raw_sigset set, raw_sigset *old)
{
	return raw_syscall4(SYS_rt_sigprocmask, how, &set, old, sizeof(set));
}

RAW_INLINE _Noreturn void raw_exit(int status)
{
	raw_syscall1(SYS_exit_group, status);
	raw_syscall1(SYS_exit, status);
	/* An outer filter refuses both: a fault ends the process as well. */
	__builtin_trap();
}

RAW_INLINE int64_t raw_monotonic_ns(void)
{
	int64_t ts[2] = {0, 0};
	raw_syscall2(SYS_clock_gettime, 1 /* CLOCK_MONOTONIC */, ts);
	return ts[0] * 1000000000 + ts[1];
}
