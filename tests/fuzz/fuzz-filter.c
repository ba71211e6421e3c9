/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any policy and any calls: the program that filter_build makes answers as the plain model does
 * (tests/filter/model.h), and any words are either taken or refused with one printable line.
 *
 * Input: one byte for the architecture, one with the bits of the policy, two with the bits of what
 * goes to the supervisor, words up to a NUL byte
 * ("+word" allows, "-word" denies, blanks between), then calls of 21 bytes each: number (4), what
 * architecture the call is of (1), and two registers (8 each) that fill the six arguments in turn.
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <linux/filter.h>
#include <linux/seccomp.h>

#include "../filter/model.h"
#include "../filter/sim.h"
#include "base/err.h"
#include "base/util.h"
#include "fuzz.h"
#include "policy/bpf_run.h"
#include "policy/filter_internal.h"

enum { WORDS_AT = 4, CALL_SIZE = 21, ARCH_AT = 4, ARGS_AT = 5, ARGS = 6 };

struct policy_input {
	struct filter_spec spec;
	struct strv allow;
	struct strv deny;
};

static void check_message(const struct err *err)
{
	assert(err->code > 0 && err->msg[0]);
	for (const char *p = err->msg; *p; p++)
		assert(((unsigned char)*p >= 0x20 && *p != 0x7f));
}

/* Keeps a word only if the lists can be used with it. */
static void add_word(struct policy_input *in, const char *word)
{
	struct strv *list = word[0] == '+' ? &in->allow : &in->deny;
	struct err err = {0};

	strv_add(list, word + 1);
	if (filter_check_names(&in->allow, &in->deny, in->spec.own_ipc_namespace, &err) == 0)
		return;
	check_message(&err);
	free(list->v[--list->n]);
	list->v[list->n] = NULL;
}

static void add_words(struct policy_input *in, const char *text)
{
	for (const char *p = text; *p && in->allow.n + in->deny.n < 64;) {
		size_t n = strcspn(p, " ");
		auto_free char *word = xstrndup(p, n);
		if (word[0] == '+' || word[0] == '-')
			add_word(in, word);
		p += n;
		p += strspn(p, " ");
	}
}

static void check_call(const struct policy_input *in, const struct filter_sets *sets,
		       const struct filter_program *prog, const uint8_t *call)
{
	struct seccomp_data data = {.arch = filter_audit_arch(in->spec.arch)};
	uint64_t registers[2];
	uint32_t answer = 0;
	size_t steps = 0;
	const char *fault = NULL;

	memcpy(&data.nr, call, sizeof(data.nr));
	/* Mostly small numbers of the right architecture: there are the calls. */
	if (call[ARCH_AT] & 1)
		data.nr &= 0x1ff;
	if ((call[ARCH_AT] & 0xe) == 0xe)
		data.arch ^= 1u << (call[ARCH_AT] >> 4);
	memcpy(registers, call + ARGS_AT, sizeof(registers));
	for (size_t i = 0; i < ARGS; i++)
		data.args[i] = registers[i % 2];
	int r = sim_run(prog->insns, prog->n, &data, &answer, &steps, &fault);
	assert(r == 0);
	assert(bpf_run(prog->insns, prog->n, &data) == answer);
	assert(answer == model_answer(&in->spec, sets, &data));
}

/* Any bytes as a program: it ends, and where it is no sound program it refuses. */
static void run_anything(const uint8_t *bytes, size_t size)
{
	struct sock_filter insns[64];
	struct seccomp_data data = {.nr = 1, .arch = 2, .args = {3, 4, 5, 6, 7, 8}};
	size_t n = size / sizeof(*insns) < ARRAY_SIZE(insns) ? size / sizeof(*insns)
							     : ARRAY_SIZE(insns);
	uint32_t answer = 0;
	size_t steps = 0;
	const char *fault = NULL;

	memcpy(insns, bytes, n * sizeof(*insns));
	uint32_t ours = bpf_run(insns, n, &data);
	if (sim_run(insns, n, &data, &answer, &steps, &fault) < 0)
		answer = SECCOMP_RET_ERRNO | EPERM;
	assert(ours == answer);
}

static void check_policy(struct policy_input *in, const uint8_t *calls, size_t size)
{
	struct filter_sets sets;
	struct filter_program prog = {0};

	in->spec.extra_allow = &in->allow;
	in->spec.extra_deny = &in->deny;
	int r = filter_make_sets(&in->allow, &in->deny, in->spec.own_ipc_namespace, &sets, NULL);
	assert(r == 0);
	r = filter_build(&in->spec, &prog, NULL);
	assert(r == 0 && bpf_check(prog.insns, prog.n, NULL) == 0);
	run_anything(calls, size);
	for (; size >= CALL_SIZE; size -= CALL_SIZE, calls += CALL_SIZE)
		check_call(in, &sets, &prog, calls);
	filter_program_done(&prog);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size < WORDS_AT + 1)
		return 0;

	struct policy_input in = {
		.spec =
			{
				.arch = data[0] % FILTER_ARCH_COUNT,
				.allow_metadata = (data[1] & 1) != 0,
				.own_pid_namespace = (data[1] & 2) != 0,
				.allow_unix_sockets = (data[1] & 4) != 0,
				.allow_listen = (data[1] & 8) != 0,
				.own_ipc_namespace = (data[1] & 16) != 0,
				.allow_listener = (data[1] & 32) != 0,
				.notify = (unsigned int)data[2] | (unsigned int)data[3] << 8,
				.explain = (data[1] & 64) != 0,
				.own_uid = 1000,
				.own_gid = 100,
			},
	};
	const uint8_t *words = data + WORDS_AT;
	size_t left = size - WORDS_AT;
	size_t n = strnlen((const char *)words, left);
	auto_free char *text = xstrndup((const char *)words, n);
	add_words(&in, text);
	n += n < left;
	check_policy(&in, words + n, left - n);
	strv_done(&in.allow);
	strv_done(&in.deny);
	return 0;
}
