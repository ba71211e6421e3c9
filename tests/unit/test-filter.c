/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The filter builder: the words that users may give, the assembler's jumps and limits, the checker,
 * and whole programs compared with the plain model, every call number of every architecture under
 * many policies. Rows with single answers are in tests/filter/.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>

#include "../filter/model.h"
#include "../filter/sim.h"
#include "base/err.h"
#include "base/util.h"
#include "policy/bpf.h"
#include "policy/bpf_run.h"
#include "policy/filter_internal.h"

/* --- The user's lists --- */

#define GROUPS                                                                                     \
	"clock, fanotify, io_uring, kexec, keyring, metadata, module, mount, namespace, "          \
	"posix_mq, ptrace, swap, sysv_ipc, tune"

static int check_words(const char *allow, const char *deny, bool ipc_namespace, struct err *err)
{
	struct strv allow_list = {0};
	struct strv deny_list = {0};

	*err = (struct err){0};
	if (allow)
		strv_add(&allow_list, allow);
	if (deny)
		strv_add(&deny_list, deny);
	int r = filter_check_names(&allow_list, &deny_list, ipc_namespace, err);
	strv_done(&allow_list);
	strv_done(&deny_list);
	return r;
}

static void assert_refused(const char *allow, const char *deny, bool ipc_namespace,
			   const char *message)
{
	struct err err;

	assert_int_equal(check_words(allow, deny, ipc_namespace, &err), -EINVAL);
	assert_int_equal(err.code, EINVAL);
	assert_string_equal(err.msg, message);
}

static void assert_accepted(const char *allow, const char *deny, bool ipc_namespace)
{
	struct err err;

	assert_int_equal(check_words(allow, deny, ipc_namespace, &err), 0);
	assert_string_equal(err.msg, "");
}

static void test_words_accepted(void **state)
{
	assert_int_equal(filter_check_names(NULL, NULL, false, NULL), 0);
	assert_accepted("ptrace", NULL, false);
	assert_accepted("process_vm_readv", NULL, false);
	assert_accepted("perf_event_open", NULL, false);
	assert_accepted("personality", NULL, false);
	assert_accepted("clock", NULL, false);
	assert_accepted("read", NULL, false);
	assert_accepted("sysv_ipc", NULL, true);
	assert_accepted("shmget", NULL, true);
	assert_accepted("posix_mq", NULL, true);
	assert_accepted(NULL, "sysv_ipc", false);
	assert_accepted(NULL, "clone3", false);
	assert_accepted(NULL, "fstatat", false);
	assert_accepted(NULL, "umount", false);
	assert_accepted(NULL, "inotify_add_watch", false);
	/* A name that only another architecture has is known, and without effect here. */
	assert_accepted(NULL, "riscv_flush_icache", false);
}

static void test_words_unknown(void **state)
{
	assert_refused("shmgett", NULL, true,
		       "--extra-allow-syscall: \"shmgett\" is neither a system call nor a group; "
		       "did you mean \"shmget\"?");
	assert_refused(NULL, "sysv-ipc", true,
		       "--extra-deny-syscall: \"sysv-ipc\" is neither a system call nor a group; "
		       "did you mean \"sysv_ipc\"?");
	assert_refused(NULL, "nothing_like_it", true,
		       "--extra-deny-syscall: \"nothing_like_it\" is neither a system call nor a "
		       "group (the groups are " GROUPS ")");
	assert_refused("", NULL, true,
		       "--extra-allow-syscall: \"\" is neither a system call nor a group (the "
		       "groups are " GROUPS ")");
	/* What a terminal would obey is not repeated, and long words are cut. */
	assert_refused("re\033[31m\nad", NULL, true,
		       "--extra-allow-syscall: \"re\\x1b[31m\\x0aad\" is neither a system call nor "
		       "a group (the groups are " GROUPS ")");
	assert_refused("0123456789012345678901234567890123456789012345678901234567890123456789"
		       "0123456789012345678901234567890123456789",
		       NULL, true,
		       "--extra-allow-syscall: "
		       "\"0123456789012345678901234567890123456789012345678901234567890123456789"
		       "01234567890123456789...\" is neither a system call nor a group (the groups "
		       "are " GROUPS ")");
}

static void test_words_never_allowed(void **state)
{
	assert_refused("clone3", NULL, true,
		       "--extra-allow-syscall: \"clone3\" cannot be allowed: its flags lie in "
		       "memory, where the program can change them after the check");
	assert_refused("io_uring", NULL, true,
		       "--extra-allow-syscall: \"io_uring\" (io_uring_setup) cannot be allowed: "
		       "its requests run without passing the filter");
	assert_refused("umount", NULL, true,
		       "--extra-allow-syscall: \"umount\" (umount2) cannot be allowed: the file "
		       "rules rest on the mounts as they are");
	assert_refused("listen", NULL, true,
		       "--extra-allow-syscall: \"listen\" cannot be allowed: it binds a port by "
		       "itself; use --net-allow-bind");
	assert_refused("chmod", NULL, true,
		       "--extra-allow-syscall: \"chmod\" cannot be allowed: it reaches files "
		       "outside the grants; use --allow-metadata");
	assert_refused("sysv_ipc", NULL, false,
		       "--extra-allow-syscall: \"sysv_ipc\" (shmget) cannot be allowed: it "
		       "reaches the user's other programs, since this sandbox has no IPC "
		       "namespace of its own");
	assert_refused("mq_open", NULL, false,
		       "--extra-allow-syscall: \"mq_open\" cannot be allowed: it reaches the "
		       "user's other programs, since this sandbox has no IPC namespace of its "
		       "own");
}

static void test_words_never_denied(void **state)
{
	assert_refused(NULL, "execve", true,
		       "--extra-deny-syscall: \"execve\" cannot be denied: no program could start "
		       "or end without it");
	assert_refused(NULL, "exit_group", true,
		       "--extra-deny-syscall: \"exit_group\" cannot be denied: no program could "
		       "start or end without it");
}

static void test_words_in_both(void **state)
{
	assert_refused("ptrace", "ptrace", true,
		       "--extra-deny-syscall \"ptrace\" and --extra-allow-syscall \"ptrace\" both "
		       "name ptrace; remove it from one of them");
	assert_refused("sysv_ipc", "semop", true,
		       "--extra-deny-syscall \"semop\" and --extra-allow-syscall \"sysv_ipc\" "
		       "both name semop; remove it from one of them");
	assert_refused("newfstatat", "fstatat", true,
		       "--extra-deny-syscall \"fstatat\" and --extra-allow-syscall \"newfstatat\" "
		       "both name newfstatat; remove it from one of them");
	assert_accepted("ptrace", "semop", true);
}

/* A list that was not checked does not get past the builder. */
static void test_build_refuses_bad_lists(void **state)
{
	struct strv allow = {0};
	struct filter_program prog = {0};
	struct err err = {0};

	strv_add(&allow, "unshare");
	struct filter_spec spec = {.arch = FILTER_X86_64, .extra_allow = &allow};
	assert_int_equal(filter_build(&spec, &prog, &err), -EINVAL);
	assert_null(prog.insns);
	assert_string_equal(err.msg, "--extra-allow-syscall: \"unshare\" cannot be allowed: a new "
				     "namespace would give capabilities that the rules do not "
				     "reckon with");
	spec = (struct filter_spec){.arch = FILTER_ARCH_COUNT};
	assert_int_equal(filter_build(&spec, &prog, &err), -EINVAL);
	strv_done(&allow);
}

/* --- The assembler --- */

static uint32_t run(const struct sock_filter *insns, size_t n, const struct seccomp_data *data)
{
	uint32_t answer = 0;
	size_t steps;
	const char *fault = NULL;

	if (sim_run(insns, n, data, &answer, &steps, &fault) < 0)
		fail_msg("%s", fault);
	return answer;
}

/*
 * A chain of COUNT comparisons, each with answers of its own, under one head that jumps over all of
 * it: every distance from 0 to far beyond 255 occurs.
 */
static void check_chain(size_t count)
{
	AUTO(bpf_asm_done) struct bpf_asm a;
	auto_free struct sock_filter *insns = NULL;
	size_t n = 0;

	bpf_asm_init(&a);
	bpf_pos far = bpf_load(&a, 4, bpf_ret(&a, 77));
	bpf_pos chain = bpf_ret(&a, 99);
	for (size_t i = 0; i < count; i++)
		chain = bpf_if(&a, BPF_JEQ, (uint32_t)i, bpf_ret(&a, 1000 + (uint32_t)i), chain);
	bpf_pos start = bpf_if(&a, BPF_JGE, 0x10000, far, chain);
	start = bpf_load(&a, 0, start);
	assert_int_equal(bpf_asm_finish(&a, start, &insns, &n, NULL), 0);

	struct seccomp_data data = {.nr = 0x10000};
	assert_int_equal(run(insns, n, &data), 77);
	data.nr = 0xffff;
	assert_int_equal(run(insns, n, &data), 99);
	for (size_t i = 0; i < count; i++) {
		data.nr = (int)i;
		assert_int_equal(run(insns, n, &data), 1000 + i);
	}
}

static void test_far_jumps(void **state)
{
	for (size_t count = 0; count < 300; count++)
		check_chain(count);
	check_chain(1500);
}

static void test_too_long(void **state)
{
	AUTO(bpf_asm_done) struct bpf_asm a;
	struct sock_filter *insns = NULL;
	struct err err = {0};
	size_t n = 0;

	bpf_asm_init(&a);
	bpf_pos pos = bpf_ret(&a, 1);
	for (uint32_t i = 0; i < BPF_ASM_MAX - 1; i++)
		pos = bpf_and(&a, i, pos);
	assert_int_equal(bpf_asm_finish(&a, pos, &insns, &n, &err), 0);
	assert_int_equal(n, BPF_ASM_MAX);
	free(insns);
	insns = NULL;

	pos = bpf_load(&a, 0, pos);
	pos = bpf_if(&a, BPF_JSET, 1, pos, 0);
	assert_int_equal(bpf_asm_finish(&a, pos, &insns, &n, &err), -E2BIG);
	assert_string_equal(err.msg, "the system call filter needs more than the 4096 instructions "
				     "that the kernel takes");
	assert_null(insns);
}

static int check_program(const struct sock_filter *insns, size_t n)
{
	return bpf_check(insns, n, NULL);
}

/* What is no program of ours is a refusal. */
static void assert_no_answer(const struct sock_filter *insns, size_t n)
{
	struct seccomp_data data = {.nr = 1, .args = {1, 2, 3, 4, 5, 6}};

	assert_int_equal(bpf_run(insns, n, &data), SECCOMP_RET_ERRNO | EPERM);
}

static void test_checker(void **state)
{
	static const struct sock_filter ret[] = {BPF_STMT(BPF_RET | BPF_K, 1)};
	static const struct sock_filter no_ret[] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0)};
	static const struct sock_filter jump_out[] = {
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 1, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, 1),
	};
	static const struct sock_filter true_out[] = {
		BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, 1, 255, 0),
		BPF_STMT(BPF_RET | BPF_K, 1),
	};
	static const struct sock_filter long_out[] = {
		BPF_STMT(BPF_JMP | BPF_JA, 1),
		BPF_STMT(BPF_RET | BPF_K, 1),
	};
	static const struct sock_filter back[] = {
		BPF_STMT(BPF_JMP | BPF_JA, UINT32_MAX),
		BPF_STMT(BPF_RET | BPF_K, 1),
	};
	static const struct sock_filter odd_load[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 2),
		BPF_STMT(BPF_RET | BPF_K, 1),
	};
	static const struct sock_filter far_load[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 64),
		BPF_STMT(BPF_RET | BPF_K, 1),
	};
	static const struct sock_filter other[] = {
		BPF_STMT(BPF_LDX | BPF_IMM, 2),
		BPF_STMT(BPF_RET | BPF_K, 1),
	};

	assert_int_equal(check_program(ret, 1), 0);
	assert_int_equal(check_program(ret, 0), -E2BIG);
	assert_no_answer(ret, 0);
	assert_int_equal(check_program(no_ret, 1), -EINVAL);
	assert_int_equal(check_program(jump_out, 2), -EINVAL);
	assert_int_equal(check_program(true_out, 2), -EINVAL);
	assert_int_equal(check_program(long_out, 2), -EINVAL);
	assert_int_equal(check_program(back, 2), -EINVAL);
	assert_int_equal(check_program(odd_load, 2), -EINVAL);
	assert_int_equal(check_program(far_load, 2), -EINVAL);
	assert_int_equal(check_program(other, 2), -EINVAL);

	static const struct seccomp_data data = {.nr = 1};
	assert_int_equal(bpf_run(ret, 1, &data), 1);
	assert_no_answer(no_ret, 1);
	assert_no_answer(jump_out, 2);
	assert_no_answer(long_out, 2);
	assert_no_answer(back, 2);
	assert_no_answer(odd_load, 2);
	assert_no_answer(far_load, 2);
	assert_no_answer(other, 2);
}

/* --- Whole programs against the model --- */

struct random {
	uint64_t state;
};

static uint32_t random_next(struct random *r)
{
	r->state = r->state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (uint32_t)(r->state >> 32);
}

/* For the specs that know the sandbox's own ids. */
enum { OWN_UID = 1000, OWN_GID = 100 };

/* Values at which a check may turn: constants of the checks, and their neighbours. */
static const uint32_t edges[] = {
	0,	    1,		2,	    3,		5,	    6,		8,
	10,	    17,		28,	    30,		31,	    35,		41,
	79,	    80,		0x80,	    0x5412,	0x541c,	    0x5423,	0x8000,
	0x8907,	    0x8908,	0x894b,	    0x89ff,	0x8a00,	    0x6600,	0x9400,
	0x20000000, 0x40086602, 0x80086601, 0xc020660b, 0x401c5820, 0x40049409, 0x50009417,
	1024,	    1040,	OWN_UID,    OWN_GID,	4,	    0x10000000, 0x59616d61,
	0x53564d41, 0x41555856, 0xffffffff, 0x7fffffff, 0x80000000,
};

static uint64_t random_arg(struct random *r)
{
	uint32_t kind = random_next(r) % 8;
	uint64_t value = edges[random_next(r) % ARRAY_SIZE(edges)];

	if (kind == 0)
		value = random_next(r);
	else if (kind == 1)
		value += 1;
	else if (kind == 2)
		value |= edges[random_next(r) % ARRAY_SIZE(edges)];
	if (random_next(r) % 4 == 0)
		value |= (uint64_t)random_next(r) << 32;
	return value;
}

struct variant {
	struct filter_spec spec;
	struct filter_sets sets;
	struct filter_program prog;
};

static void compare(const struct variant *v, const struct seccomp_data *data)
{
	uint32_t expected = model_answer(&v->spec, &v->sets, data);
	uint32_t answer = run(v->prog.insns, v->prog.n, data);

	assert_int_equal(bpf_run(v->prog.insns, v->prog.n, data), answer);
	if (answer != expected)
		fail_msg("arch %d nr %d args %llx %llx %llx %llx: 0x%08x, not 0x%08x",
			 (int)v->spec.arch, data->nr, (unsigned long long)data->args[0],
			 (unsigned long long)data->args[1], (unsigned long long)data->args[2],
			 (unsigned long long)data->args[3], answer, expected);
}

static void compare_number(const struct variant *v, struct random *r, uint32_t nr)
{
	struct seccomp_data data = {.nr = (int)nr, .arch = filter_audit_arch(v->spec.arch)};
	const struct syscall_row *row = syscall_by_nr(v->spec.arch, nr);
	bool by_args = row && (row->check != CHECK_NONE || row->family == FAMILY_LOCK ||
			       ((row->family == FAMILY_METADATA || row->family == FAMILY_OPEN) &&
				v->spec.notify) ||
			       v->spec.explain);
	size_t tries = by_args ? 300 : 2;

	for (size_t i = 0; i < tries; i++) {
		for (size_t j = 0; j < ARRAY_SIZE(data.args); j++)
			data.args[j] = random_arg(r);
		compare(v, &data);
	}
	data.arch ^= 1u << (random_next(r) % 32);
	compare(v, &data);
}

static void compare_all(struct filter_spec spec, struct random *r)
{
	static const uint32_t odd[] = {0x40000000, 0x40000001, 0x7fffffff, 0x80000000,
				       0xc0000001, 0xfffffffe, 0xffffffff};
	struct variant v = {.spec = spec};

	assert_int_equal(filter_make_sets(spec.extra_allow, spec.extra_deny, spec.own_ipc_namespace,
					  &v.sets, NULL),
			 0);
	assert_int_equal(filter_build(&spec, &v.prog, NULL), 0);
	assert_in_range(v.prog.n, 1, BPF_ASM_MAX);
	for (uint32_t nr = 0; nr < 600; nr++)
		compare_number(&v, r, nr);
	for (size_t i = 0; i < ARRAY_SIZE(odd); i++)
		compare_number(&v, r, odd[i]);
	filter_program_done(&v.prog);
}

enum { NOTIFY_BITS = 12, NOTIFY_ALL = (1 << NOTIFY_BITS) - 1, EXPLAIN = 64 << NOTIFY_BITS };

static struct filter_spec spec_from_bits(enum filter_arch arch, unsigned int bits)
{
	return (struct filter_spec){
		.arch = arch,
		.notify = bits >> 6 & NOTIFY_ALL,
		.explain = (bits >> (6 + NOTIFY_BITS) & 1) != 0,
		.own_uid = OWN_UID,
		.own_gid = OWN_GID,
		.allow_metadata = (bits & 1) != 0,
		.own_pid_namespace = (bits & 2) != 0,
		.allow_unix_sockets = (bits & 4) != 0,
		.allow_listen = (bits & 8) != 0,
		.own_ipc_namespace = (bits & 16) != 0,
		.allow_listener = (bits & 32) != 0,
	};
}

static void test_model_every_spec(void **state)
{
	struct random r = {.state = 1};

	for (unsigned int arch = 0; arch < FILTER_ARCH_COUNT; arch++) {
		for (unsigned int bits = 0; bits < 64; bits += 3)
			compare_all(spec_from_bits((enum filter_arch)arch, bits), &r);
	}
}

/* Each bit by itself, all, and mixtures, over every other bit of a spec. */
static void test_model_notify(void **state)
{
	struct random r = {.state = 3};

	for (unsigned int arch = 0; arch < FILTER_ARCH_COUNT; arch++) {
		for (unsigned int bit = 0; bit < NOTIFY_BITS; bit++)
			compare_all(spec_from_bits((enum filter_arch)arch,
						   (1u << bit) << 6 | random_next(&r) % 64),
				    &r);
		compare_all(spec_from_bits((enum filter_arch)arch, NOTIFY_ALL << 6), &r);
		for (unsigned int bits = 0; bits < 64; bits += 7)
			compare_all(spec_from_bits((enum filter_arch)arch, EXPLAIN | bits), &r);
		for (unsigned int i = 0; i < 16; i++)
			compare_all(spec_from_bits((enum filter_arch)arch, random_next(&r)), &r);
	}
}

/* Random lists of names that may stand in them; every second row denied makes the most runs. */
static void test_model_lists(void **state)
{
	struct random r = {.state = 2};

	for (unsigned int round = 0; round < 12; round++) {
		struct strv allow = {0};
		struct strv deny = {0};
		struct filter_spec spec =
			spec_from_bits(round % FILTER_ARCH_COUNT, random_next(&r));
		for (size_t i = 0; i < syscall_table_n; i++) {
			const char *name = syscall_table[i].name;
			struct strv one = {0};
			strv_add(&one, name);
			bool to_deny = round < 3 ? i % 2 : random_next(&r) % 3 == 0;
			/* The word for the group would meet its members in the other list. */
			bool group = str_eq(name, "ptrace");
			if (!group && to_deny && filter_check_names(NULL, &one, true, NULL) == 0)
				strv_add(&deny, name);
			else if (!group && random_next(&r) % 2 && !str_starts(name, "process_vm") &&
				 filter_check_names(&one, NULL, spec.own_ipc_namespace, NULL) == 0)
				strv_add(&allow, name);
			strv_done(&one);
		}
		spec.extra_allow = &allow;
		spec.extra_deny = &deny;
		compare_all(spec, &r);
		strv_done(&allow);
		strv_done(&deny);
	}
}

/* The tree is shallow: no call takes a long way to its answer. */
static void test_depth(void **state)
{
	for (unsigned int arch = 0; arch < FILTER_ARCH_COUNT; arch++) {
		struct filter_spec spec = spec_from_bits((enum filter_arch)arch, 0);
		struct filter_program prog = {0};
		assert_int_equal(filter_build(&spec, &prog, NULL), 0);
		assert_in_range(prog.n, 50, 300);
		for (int nr = -1; nr < 600; nr++) {
			struct seccomp_data data = {.nr = nr, .arch = filter_audit_arch(arch)};
			uint32_t answer;
			size_t steps = 0;
			const char *fault;
			assert_int_equal(
				sim_run(prog.insns, prog.n, &data, &answer, &steps, &fault), 0);
			assert_in_range(steps, 1, 40);
		}
		filter_program_done(&prog);
	}
}

static void check_answers(const struct filter_spec *spec)
{
	struct filter_program prog = {0};

	assert_int_equal(filter_build(spec, &prog, NULL), 0);
	for (size_t i = 0; i < prog.n; i++) {
		if (prog.insns[i].code != (BPF_RET | BPF_K))
			continue;
		uint32_t k = prog.insns[i].k;
		if (k != SECCOMP_RET_ALLOW &&
		    (k != SECCOMP_RET_USER_NOTIF || !(spec->notify || spec->explain)))
			assert_int_equal(k & 0xffff0000, SECCOMP_RET_ERRNO);
	}
	filter_program_done(&prog);
}

/* No path answers with a signal or a trace, nor with a notification where there is no supervisor.
 */
static void test_answers(void **state)
{
	for (unsigned int arch = 0; arch < FILTER_ARCH_COUNT; arch++) {
		struct filter_spec spec = spec_from_bits((enum filter_arch)arch, 0);
		check_answers(&spec);
		spec = spec_from_bits((enum filter_arch)arch, NOTIFY_ALL << 6);
		check_answers(&spec);
	}
}

static void test_done(void **state)
{
	struct filter_program prog = {0};

	filter_program_done(NULL);
	filter_program_done(&prog);
	assert_in_range(filter_native_arch(), 0, FILTER_ARCH_COUNT - 1);
	assert_int_equal(filter_audit_arch(FILTER_X86_64), 0xc000003e);
	assert_int_equal(filter_audit_arch(FILTER_AARCH64), 0xc00000b7);
	assert_int_equal(filter_audit_arch(FILTER_RISCV64), 0xc00000f3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_words_accepted),
		cmocka_unit_test(test_words_unknown),
		cmocka_unit_test(test_words_never_allowed),
		cmocka_unit_test(test_words_never_denied),
		cmocka_unit_test(test_words_in_both),
		cmocka_unit_test(test_build_refuses_bad_lists),
		cmocka_unit_test(test_far_jumps),
		cmocka_unit_test(test_too_long),
		cmocka_unit_test(test_checker),
		cmocka_unit_test(test_model_every_spec),
		cmocka_unit_test(test_model_notify),
		cmocka_unit_test(test_model_lists),
		cmocka_unit_test(test_depth),
		cmocka_unit_test(test_answers),
		cmocka_unit_test(test_done),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
