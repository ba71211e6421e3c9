/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A small assembler for classic BPF programs that only jump forward. It builds a program from its
 * end to its start, so that the target of every jump is known when the jump is made: a distance
 * that does not fit the 8 bits of a conditional jump gets a long jump in between, and no offset is
 * ever cut off. Positions count from the end of the program.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;
struct sock_filter;

enum { BPF_ASM_MAX = 4096 }; /* the kernel's limit on a filter program */

typedef uint32_t bpf_pos;

struct bpf_asm {
	struct sock_filter *insns; /* owned; the last instruction first */
	uint32_t n;
	bool overflow; /* more than BPF_ASM_MAX were asked for; bpf_asm_finish says so */
};

void bpf_asm_init(struct bpf_asm *a);
void bpf_asm_done(struct bpf_asm *a);
void bpf_asm_done_cleanup(struct bpf_asm *a);

/* Each makes an instruction (or finds one that does the same) and returns where it is. */
bpf_pos bpf_ret(struct bpf_asm *a, uint32_t value);
/* JUMP is BPF_JEQ, BPF_JGE, BPF_JGT or BPF_JSET: goes to YES if "accumulator JUMP k", else NO. */
bpf_pos bpf_if(struct bpf_asm *a, uint16_t jump, uint32_t k, bpf_pos yes, bpf_pos no);
/* Loads the 32-bit word at OFFSET of struct seccomp_data, then goes on at NEXT. */
bpf_pos bpf_load(struct bpf_asm *a, uint32_t offset, bpf_pos next);
/* Masks the accumulator with K, then goes on at NEXT. */
bpf_pos bpf_and(struct bpf_asm *a, uint32_t k, bpf_pos next);
/* Goes to YES if the accumulator is one of the N values V, else to NO. */
bpf_pos bpf_if_any(struct bpf_asm *a, const uint32_t *v, size_t n, bpf_pos yes, bpf_pos no);

/*
 * The program that begins at START, in the kernel's order, checked by bpf_check. -E2BIG if it is
 * longer than the kernel allows. *RET_INSNS is the caller's (free).
 */
int bpf_asm_finish(struct bpf_asm *a, bpf_pos start, struct sock_filter **ret_insns, size_t *ret_n,
		   struct err *err);
/*
 * Checks that a program holds only instructions that this assembler makes, that every jump lands
 * inside it, that no path runs off its end and that loads stay within struct seccomp_data.
 */
int bpf_check(const struct sock_filter *insns, size_t n, struct err *err);
