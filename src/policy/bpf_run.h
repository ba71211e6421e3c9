/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs a filter program that bpf.h has made, on the registers of one call: so the supervisor knows
 * what the filter would have answered. Pure and bounded: jumps go forward only, and what no program
 * of ours holds is a refusal.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct seccomp_data;
struct sock_filter;

/* The answer (SECCOMP_RET_…); EPERM's for a program that is not sound (bpf_check). */
uint32_t bpf_run(const struct sock_filter *insns, size_t n, const struct seccomp_data *data);
