/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Assembles BPF from the end to the start (see bpf.h). Invariant: every instruction that has been
 * made is complete; nothing is patched later.
 */
#include <errno.h>
#include <stdlib.h>

#include <linux/filter.h>
#include <linux/seccomp.h>

#include "base/err.h"
#include "base/util.h"
#include "policy/bpf.h"

/*
 * A conditional jump reaches 255 instructions. Three are kept back: making one target reachable
 * may put an instruction between the jump and the other one, and a load may need one as well.
 */
enum { REACH = 252 };

void bpf_asm_init(struct bpf_asm *a)
{
	*a = (struct bpf_asm){.insns = xcalloc(BPF_ASM_MAX, sizeof(*a->insns))};
}

void bpf_asm_done(struct bpf_asm *a)
{
	free(a->insns);
	*a = (struct bpf_asm){0};
}

void bpf_asm_done_cleanup(struct bpf_asm *a)
{
	bpf_asm_done(a);
}

static bpf_pos emit(struct bpf_asm *a, struct sock_filter insn)
{
	if (a->n == BPF_ASM_MAX) {
		a->overflow = true;
		return 0;
	}
	a->insns[a->n] = insn;
	return a->n++;
}

/* Distance from the instruction that is made next to the one at POS, as the kernel counts. */
static uint32_t distance(const struct bpf_asm *a, bpf_pos pos)
{
	return a->n - pos - 1;
}

static bpf_pos emit_jump(struct bpf_asm *a, bpf_pos to)
{
	uint32_t k = distance(a, to);

	return emit(a, (struct sock_filter)BPF_STMT(BPF_JMP | BPF_JA, k));
}

/* The same place as POS, but within reach: a copy if it is a return, else by a long jump. */
static bpf_pos near_pos(struct bpf_asm *a, bpf_pos pos)
{
	if (a->overflow || distance(a, pos) <= REACH)
		return pos;
	if (a->insns[pos].code == (BPF_RET | BPF_K))
		return bpf_ret(a, a->insns[pos].k);
	return emit_jump(a, pos);
}

/* The same place as POS, but as the instruction that follows directly. */
static void make_next(struct bpf_asm *a, bpf_pos pos)
{
	if (!a->overflow && distance(a, pos) != 0)
		emit_jump(a, pos);
}

bpf_pos bpf_ret(struct bpf_asm *a, uint32_t value)
{
	uint32_t lowest = a->n > REACH / 2 ? a->n - REACH / 2 : 0;

	for (uint32_t i = a->n; i > lowest; i--) {
		const struct sock_filter *insn = &a->insns[i - 1];
		if (insn->code == (BPF_RET | BPF_K) && insn->k == value)
			return i - 1;
	}
	return emit(a, (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, value));
}

bpf_pos bpf_if(struct bpf_asm *a, uint16_t jump, uint32_t k, bpf_pos yes, bpf_pos no)
{
	yes = near_pos(a, yes);
	no = near_pos(a, no);
	if (a->overflow)
		return 0;
	return emit(a, (struct sock_filter)BPF_JUMP((uint16_t)(BPF_JMP | jump | BPF_K), k,
						    (uint8_t)distance(a, yes),
						    (uint8_t)distance(a, no)));
}

bpf_pos bpf_load(struct bpf_asm *a, uint32_t offset, bpf_pos next)
{
	make_next(a, next);
	return emit(a, (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offset));
}

bpf_pos bpf_and(struct bpf_asm *a, uint32_t k, bpf_pos next)
{
	make_next(a, next);
	return emit(a, (struct sock_filter)BPF_STMT(BPF_ALU | BPF_AND | BPF_K, k));
}

bpf_pos bpf_if_any(struct bpf_asm *a, const uint32_t *v, size_t n, bpf_pos yes, bpf_pos no)
{
	for (size_t i = n; i > 0; i--)
		no = bpf_if(a, BPF_JEQ, v[i - 1], yes, no);
	return no;
}

static bool insn_is_sound(const struct sock_filter *insn, size_t left)
{
	switch (insn->code) {
	case BPF_RET | BPF_K:
	case BPF_ALU | BPF_AND | BPF_K:
		return true;
	case BPF_LD | BPF_W | BPF_ABS:
		return insn->k % 4 == 0 && insn->k <= sizeof(struct seccomp_data) - 4;
	case BPF_JMP | BPF_JA:
		return insn->k < left;
	case BPF_JMP | BPF_JEQ | BPF_K:
	case BPF_JMP | BPF_JGE | BPF_K:
	case BPF_JMP | BPF_JGT | BPF_K:
	case BPF_JMP | BPF_JSET | BPF_K:
		return insn->jt < left && insn->jf < left;
	default:
		return false;
	}
}

int bpf_check(const struct sock_filter *insns, size_t n, struct err *err)
{
	if (n == 0 || n > BPF_ASM_MAX)
		return err_set(err, E2BIG, "a filter program of %zu instructions is not possible",
			       n);
	/* Jumps go forward only, so soundness of each instruction bounds every path. */
	for (size_t i = 0; i < n; i++) {
		if (!insn_is_sound(&insns[i], n - 1 - i))
			return err_set(err, EINVAL,
				       "instruction %zu of %zu of the filter program is not sound",
				       i, n);
	}
	if (insns[n - 1].code != (BPF_RET | BPF_K))
		return err_set(err, EINVAL, "the filter program does not end with a return");
	return 0;
}

int bpf_asm_finish(struct bpf_asm *a, bpf_pos start, struct sock_filter **ret_insns, size_t *ret_n,
		   struct err *err)
{
	if (a->overflow)
		return err_set(err, E2BIG,
			       "the system call filter needs more than the %d instructions "
			       "that the kernel takes",
			       BPF_ASM_MAX);

	size_t n = (size_t)start + 1;
	auto_free struct sock_filter *insns = xcalloc(n, sizeof(*insns));
	for (size_t i = 0; i < n; i++)
		insns[i] = a->insns[start - i];
	int r = bpf_check(insns, n, err);
	if (r < 0)
		return r;
	*ret_insns = take_ptr(insns);
	*ret_n = n;
	return 0;
}
