/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a filter should answer, worked out the plain way: look the number up in the table, then
 * judge the arguments in C. The program that filter_build makes is compared with it, call by call.
 */
#pragma once

#include <stdint.h>

struct filter_sets;
struct filter_spec;
struct seccomp_data;

/* SETS is what filter_make_sets made of the lists in SPEC. */
uint32_t model_answer(const struct filter_spec *spec, const struct filter_sets *sets,
		      const struct seccomp_data *data);
