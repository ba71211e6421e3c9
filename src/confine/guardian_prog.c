/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The guardian as a program of its own, for places without namespaces: no libc, no dynamic loading,
 * an address space of a few pages. Its arguments are the address and size of the job in hexadecimal
 * and the descriptor of the memfd that holds it.
 */
#include <sys/mman.h>

#include "confine/job.h"
#include "confine/raw_util.h"

_Noreturn void guardian_start(const long *stack);

/* The compiler may emit calls of these two; the names of the parameters are those of string.h. */
void *memset(void *__s, int __c, size_t __n)
{
	volatile unsigned char *p = __s;
	for (size_t i = 0; i < __n; i++)
		p[i] = (unsigned char)__c;
	return __s;
}

void *memcpy(void *restrict __dest, const void *restrict __src, size_t __n)
{
	volatile unsigned char *p = __dest;
	const unsigned char *q = __src;
	for (size_t i = 0; i < __n; i++)
		p[i] = q[i];
	return __dest;
}

#if defined(__x86_64__)
__asm__(".global _start\n_start:\n\txor %ebp, %ebp\n\tmov %rsp, %rdi\n\tand $-16, %rsp\n\t"
	"call guardian_start\n\thlt\n");
#elif defined(__aarch64__)
__asm__(".global _start\n_start:\n\tmov x29, xzr\n\tmov x0, sp\n\tbl guardian_start\n\tbrk 1\n");
#elif defined(__riscv)
__asm__(".global _start\n_start:\n\t.option push\n\t.option norelax\n\tlla gp, "
	"__global_pointer$\n\t"
	".option pop\n\tmv s0, zero\n\tmv a0, sp\n\tandi sp, sp, -16\n\tcall guardian_start\n\t"
	"ebreak\n");
#endif

/* Reads hexadecimal digits; anything else ends the number. */
static unsigned long parse_hex(const char *s)
{
	unsigned long v = 0;
	for (; *s; s++) {
		unsigned int d;
		if (*s >= '0' && *s <= '9')
			d = (unsigned int)(*s - '0');
		else if (*s >= 'a' && *s <= 'f')
			d = (unsigned int)(*s - 'a') + 10;
		else
			break;
		v = v * 16 + d;
	}
	return v;
}

_Noreturn void guardian_start(const long *stack)
{
	long argc = stack[0];
	char *const *argv = (char *const *)(uintptr_t)(stack + 1);
	if (argc != 4) {
		static const char usage[] = "sandlock-guardian: started by libsandlock only\n";
		raw_write(2, usage, sizeof(usage) - 1);
		raw_exit(125);
	}
	unsigned long addr = parse_hex(argv[1]);
	unsigned long size = parse_hex(argv[2]);
	long fd = (long)parse_hex(argv[3]);
	long at = raw_syscall6(SYS_mmap, (long)addr, (long)size, PROT_READ | PROT_WRITE,
			       MAP_SHARED | MAP_FIXED_NOREPLACE, fd, 0);
	if (!addr || (unsigned long)at != addr)
		raw_exit(124);
	struct job *job = (struct job *)addr; /* NOLINT(performance-no-int-to-ptr) */
	if (job->size != size || job->memfd != fd)
		raw_exit(123);
	raw_close((int)fd);
	raw_exit(guardian_main(job));
}
