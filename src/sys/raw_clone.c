/* SPDX-License-Identifier: Apache-2.0 */
/*
 * clone(2) onto a new stack, per architecture. The child never returns through the caller's frame:
 * it calls its function and leaves by the exit system call.
 */
#include "sys/raw.h"

#if defined(__x86_64__)
long raw_clone(unsigned long flags, void *stack_top, int *pidfd, int (*fn)(void *), void *arg)
{
	long ret;
	void **sp = stack_top;
	*--sp = arg;
	*--sp = (void *)fn;
	register long r10 __asm__("r10") = 0;
	register long r8 __asm__("r8") = 0;
	__asm__ volatile("syscall\n\t"
			 "test %%rax, %%rax\n\t"
			 "jnz 1f\n\t"
			 "xor %%ebp, %%ebp\n\t"
			 "pop %%rax\n\t"
			 "pop %%rdi\n\t"
			 "call *%%rax\n\t"
			 "mov %%eax, %%edi\n\t"
			 "mov %[exit], %%eax\n\t"
			 "syscall\n\t"
			 "hlt\n"
			 "1:"
			 : "=a"(ret)
			 : "a"(SYS_clone), "D"(flags), "S"(sp), "d"(pidfd), "r"(r10),
			   "r"(r8), [exit] "i"(SYS_exit)
			 : "rcx", "r11", "memory");
	return ret;
}
#elif defined(__aarch64__)
long raw_clone(unsigned long flags, void *stack_top, int *pidfd, int (*fn)(void *), void *arg)
{
	register long x8 __asm__("x8") = SYS_clone;
	register long x0 __asm__("x0") = (long)flags;
	register long x1 __asm__("x1") = (long)stack_top;
	register long x2 __asm__("x2") = (long)pidfd;
	register long x3 __asm__("x3") = 0;
	register long x4 __asm__("x4") = 0;
	register long x5 __asm__("x5") = (long)fn;
	register long x6 __asm__("x6") = (long)arg;
	__asm__ volatile("svc 0\n\t"
			 "cbnz x0, 1f\n\t"
			 "mov x29, xzr\n\t"
			 "mov x0, x6\n\t"
			 "blr x5\n\t"
			 "mov x8, %[exit]\n\t"
			 "svc 0\n\t"
			 "brk 1\n"
			 "1:"
			 : "+r"(x0)
			 : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5),
			   "r"(x6), [exit] "i"(SYS_exit)
			 : "memory", "x30");
	return x0;
}
#elif defined(__riscv)
long raw_clone(unsigned long flags, void *stack_top, int *pidfd, int (*fn)(void *), void *arg)
{
	register long a7 __asm__("a7") = SYS_clone;
	register long a0 __asm__("a0") = (long)flags;
	register long a1 __asm__("a1") = (long)stack_top;
	register long a2 __asm__("a2") = (long)pidfd;
	register long a3 __asm__("a3") = 0;
	register long a4 __asm__("a4") = 0;
	register long a5 __asm__("a5") = (long)fn;
	register long a6 __asm__("a6") = (long)arg;
	__asm__ volatile("ecall\n\t"
			 "bnez a0, 1f\n\t"
			 "mv s0, zero\n\t"
			 "mv a0, a6\n\t"
			 "jalr a5\n\t"
			 "li a7, %[exit]\n\t"
			 "ecall\n\t"
			 "ebreak\n"
			 "1:"
			 : "+r"(a0)
			 : "r"(a7), "r"(a1), "r"(a2), "r"(a3), "r"(a4), "r"(a5),
			   "r"(a6), [exit] "i"(SYS_exit)
			 : "memory", "ra");
	return a0;
}
#endif
