/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The BPF simulator (see sim.h). It shares no code with the assembler, so that a mistake there is
 * not repeated here.
 */
#include <string.h>

#include <linux/filter.h>
#include <linux/seccomp.h>

#include "sim.h"

struct machine {
	uint32_t a;
	size_t pc;
	const char *fault;
};

static void load(struct machine *m, uint32_t k, const struct seccomp_data *data)
{
	if (k % 4 != 0 || k > sizeof(*data) - 4)
		m->fault = "a load outside seccomp_data";
	else
		memcpy(&m->a, (const char *)data + k, 4);
}

static void branch(struct machine *m, const struct sock_filter *insn, int taken)
{
	m->pc += taken ? insn->jt : insn->jf;
}

static void step(struct machine *m, const struct sock_filter *insn, const struct seccomp_data *data)
{
	switch (insn->code) {
	case BPF_LD | BPF_W | BPF_ABS:
		load(m, insn->k, data);
		return;
	case BPF_ALU | BPF_AND | BPF_K:
		m->a &= insn->k;
		return;
	case BPF_JMP | BPF_JA:
		m->pc += insn->k;
		return;
	case BPF_JMP | BPF_JEQ | BPF_K:
		branch(m, insn, m->a == insn->k);
		return;
	case BPF_JMP | BPF_JGT | BPF_K:
		branch(m, insn, m->a > insn->k);
		return;
	case BPF_JMP | BPF_JGE | BPF_K:
		branch(m, insn, m->a >= insn->k);
		return;
	case BPF_JMP | BPF_JSET | BPF_K:
		branch(m, insn, (m->a & insn->k) != 0);
		return;
	default:
		m->fault = "an instruction that no filter of ours has";
	}
}

int sim_run(const struct sock_filter *insns, size_t n, const struct seccomp_data *data,
	    uint32_t *ret_answer, size_t *ret_steps, const char **ret_fault)
{
	struct machine m = {0};
	size_t steps = 0;

	/* Jumps go forward only, so that a program ends after at most N steps. */
	while (!m.fault && m.pc < n) {
		const struct sock_filter *insn = &insns[m.pc++];
		steps++;
		if (insn->code == (BPF_RET | BPF_K)) {
			*ret_answer = insn->k;
			*ret_steps = steps;
			return 0;
		}
		step(&m, insn, data);
	}
	*ret_fault = m.fault ? m.fault : "the program runs off its end";
	return -1;
}
