/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs a filter program on given seccomp_data, as the kernel would, so that the filters of all
 * architectures are tested on one machine. Knows the instructions that our programs use and fails
 * on any other; a program that runs off its end or does not return fails as well.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct seccomp_data;
struct sock_filter;

/* 0 and the program's answer (SECCOMP_RET_…) and number of steps, or -1 with *RET_FAULT set. */
int sim_run(const struct sock_filter *insns, size_t n, const struct seccomp_data *data,
	    uint32_t *ret_answer, size_t *ret_steps, const char **ret_fault);
