/* SPDX-License-Identifier: Apache-2.0 */
/*
 * System calls without libc: for code that runs between clone and exec in a process that shares its
 * memory with the caller, and for the guardian program, which has no libc at all. Nothing here
 * touches errno or thread-local storage; every function returns the kernel's value (negative errno
 * on failure).
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>

#define RAW_INLINE static inline __attribute__((always_inline, unused))

#if defined(__x86_64__)
/* NOLINTNEXTLINE(readability-function-size): as many as the kernel takes */
RAW_INLINE long raw_syscall6(long nr, long a, long b, long c, long d, long e, long f)
{
	long ret;
	register long r10 __asm__("r10") = d;
	register long r8 __asm__("r8") = e;
	register long r9 __asm__("r9") = f;
	__asm__ volatile("syscall"
			 : "=a"(ret)
			 : "a"(nr), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
			 : "rcx", "r11", "memory");
	return ret;
}
#elif defined(__aarch64__)
/* NOLINTNEXTLINE(readability-function-size): as many as the kernel takes */
RAW_INLINE long raw_syscall6(long nr, long a, long b, long c, long d, long e, long f)
{
	register long x8 __asm__("x8") = nr;
	register long x0 __asm__("x0") = a;
	register long x1 __asm__("x1") = b;
	register long x2 __asm__("x2") = c;
	register long x3 __asm__("x3") = d;
	register long x4 __asm__("x4") = e;
	register long x5 __asm__("x5") = f;
	__asm__ volatile("svc 0"
			 : "+r"(x0)
			 : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5)
			 : "memory");
	return x0;
}
#elif defined(__riscv) && __riscv_xlen == 64
/* NOLINTNEXTLINE(readability-function-size): as many as the kernel takes */
RAW_INLINE long raw_syscall6(long nr, long a, long b, long c, long d, long e, long f)
{
	register long a7 __asm__("a7") = nr;
	register long a0 __asm__("a0") = a;
	register long a1 __asm__("a1") = b;
	register long a2 __asm__("a2") = c;
	register long a3 __asm__("a3") = d;
	register long a4 __asm__("a4") = e;
	register long a5 __asm__("a5") = f;
	__asm__ volatile("ecall"
			 : "+r"(a0)
			 : "r"(a7), "r"(a1), "r"(a2), "r"(a3), "r"(a4), "r"(a5)
			 : "memory");
	return a0;
}
#else
#error "this architecture is not supported"
#endif

#define RAW_ARG(x)		  ((long)(x))
#define raw_syscall0(nr)	  raw_syscall6(nr, 0, 0, 0, 0, 0, 0)
#define raw_syscall1(nr, a)	  raw_syscall6(nr, RAW_ARG(a), 0, 0, 0, 0, 0)
#define raw_syscall2(nr, a, b)	  raw_syscall6(nr, RAW_ARG(a), RAW_ARG(b), 0, 0, 0, 0)
#define raw_syscall3(nr, a, b, c) raw_syscall6(nr, RAW_ARG(a), RAW_ARG(b), RAW_ARG(c), 0, 0, 0)
#define raw_syscall4(nr, a, b, c, d)                                                               \
	raw_syscall6(nr, RAW_ARG(a), RAW_ARG(b), RAW_ARG(c), RAW_ARG(d), 0, 0)
#define raw_syscall5(nr, a, b, c, d, e)                                                            \
	raw_syscall6(nr, RAW_ARG(a), RAW_ARG(b), RAW_ARG(c), RAW_ARG(d), RAW_ARG(e), 0)

/*
 * clone(2) whose child runs FN(ARG) on the stack that ends at STACK_TOP (16-byte aligned) and
 * leaves with FN's value as exit status. Returns the child's pid, or a negative errno. *PIDFD is
 * written by the kernel when FLAGS has CLONE_PIDFD.
 */
long raw_clone(unsigned long flags, void *stack_top, int *pidfd, int (*fn)(void *), void *arg);
