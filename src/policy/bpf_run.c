/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The interpreter (see bpf_run.h). Every load and every jump is checked again here, so that it
 * needs no trust in the program that it is given.
 */
#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include <linux/filter.h>
#include <linux/seccomp.h>

#include "policy/bpf_run.h"

#define REFUSED (SECCOMP_RET_ERRNO | EPERM)

struct state {
	uint32_t a;
	size_t pc;
	const struct seccomp_data *data;
};

static void jump(struct state *s, const struct sock_filter *insn, bool taken)
{
	s->pc += taken ? insn->jt : insn->jf;
}

/* False: no instruction that this assembler makes. */
static bool step(struct state *s, const struct sock_filter *insn)
{
	switch (insn->code) {
	case BPF_LD | BPF_W | BPF_ABS:
		if (insn->k % 4 || insn->k > sizeof(*s->data) - 4)
			return false;
		memcpy(&s->a, (const char *)s->data + insn->k, 4);
		return true;
	case BPF_ALU | BPF_AND | BPF_K:
		s->a &= insn->k;
		return true;
	case BPF_JMP | BPF_JA:
		s->pc += insn->k;
		return true;
	case BPF_JMP | BPF_JEQ | BPF_K:
		jump(s, insn, s->a == insn->k);
		return true;
	case BPF_JMP | BPF_JGE | BPF_K:
		jump(s, insn, s->a >= insn->k);
		return true;
	case BPF_JMP | BPF_JGT | BPF_K:
		jump(s, insn, s->a > insn->k);
		return true;
	case BPF_JMP | BPF_JSET | BPF_K:
		jump(s, insn, s->a & insn->k);
		return true;
	default:
		return false;
	}
}

uint32_t bpf_run(const struct sock_filter *insns, size_t n, const struct seccomp_data *data)
{
	struct state s = {.data = data};

	while (s.pc < n) {
		const struct sock_filter *insn = &insns[s.pc++];
		if (insn->code == (BPF_RET | BPF_K))
			return insn->k;
		if (!step(&s, insn))
			return REFUSED;
	}
	return REFUSED;
}
