/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fake-kernel SPEC... -- COMMAND...: runs COMMAND under a seccomp filter that answers system calls
 * with an errno, as older kernels and the filters of container engines do. A SPEC is NUMBER=ERRNO
 * (both decimal), NUMBER:ARG:VALUE=ERRNO for one value of a register argument, or
 * NUMBER:ARG&MASK=ERRNO for any of the bits in MASK.
 *
 * Invariant: the filter is the outermost one and answers nothing but what was asked for.
 */
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { INSNS_MAX = 512, INSNS_PER_RULE = 5 };

static struct sock_filter insns[INSNS_MAX];
static unsigned short n;

static void emit(struct sock_filter insn)
{
	if (n == INSNS_MAX) {
		fprintf(stderr, "fake-kernel: too many rules\n");
		exit(125);
	}
	insns[n++] = insn;
}

static unsigned long field(char **text)
{
	char *end = *text;
	unsigned long value = strtoul(*text, &end, 0);

	if (end == *text) {
		fprintf(stderr, "fake-kernel: expected a number at '%s'\n", *text);
		exit(125);
	}
	*text = end;
	return value;
}

static void load(uint32_t offset)
{
	emit((struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offset));
}

static void add_rule(char *spec)
{
	uint32_t nr = (uint32_t)field(&spec);
	unsigned long arg = 0;
	unsigned long value = 0;
	char kind = '=';

	if (*spec == ':') {
		spec++;
		arg = field(&spec);
		kind = *spec++;
		value = field(&spec);
	}
	if (*spec++ != '=') {
		fprintf(stderr, "fake-kernel: expected '=' and an errno\n");
		exit(125);
	}
	unsigned long code = field(&spec);

	load(offsetof(struct seccomp_data, nr));
	emit((struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, nr, 0, kind == '=' ? 1 : 3));
	if (kind != '=') {
		load((uint32_t)(offsetof(struct seccomp_data, args) + 8 * arg));
		emit((struct sock_filter)BPF_JUMP(BPF_JMP | (kind == '&' ? BPF_JSET : BPF_JEQ) |
							  BPF_K,
						  (uint32_t)value, 0, 1));
	}
	emit((struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (uint32_t)code));
}

int main(int argc, char **argv)
{
	struct sock_fprog prog = {.filter = insns};
	int i = 1;

	for (; i < argc && strcmp(argv[i], "--") != 0; i++)
		add_rule(argv[i]);
	if (i + 1 >= argc) {
		fprintf(stderr, "usage: fake-kernel SPEC... -- COMMAND...\n");
		return 125;
	}
	emit((struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
	prog.len = n;
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
	    syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &prog) < 0) {
		perror("fake-kernel: seccomp");
		return 125;
	}
	execv(argv[i + 1], argv + i + 1);
	perror("fake-kernel: execv");
	return 125;
}
