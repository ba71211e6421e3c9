/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From the syscall table to the filter program. First the architecture is checked, then a search
 * tree over the call numbers leads to a leaf: a constant answer, or a check of arguments
 * (filter_args.c). Everything that is not named by a row for this architecture (numbers newer than
 * the table, holes, negative numbers, x32 numbers with bit 30 set) is answered ENOSYS.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/err.h"
#include "base/util.h"
#include "policy/filter_internal.h"
#include "sys/uapi.h"

/* A run of numbers with one answer, from FIRST to the next run's FIRST. */
struct run {
	uint32_t first;
	unsigned int leaf;
};

/* Nodes 0 … n_runs-1 are the runs; each later one joins two neighbours. */
struct node {
	uint32_t first;
	uint32_t weight;
	int16_t left; /* -1 in a leaf */
	int16_t right;
	bpf_pos pos;
};

enum { RUNS_MAX = SYSCALL_NR_MAX + 2, NODES_MAX = 2 * RUNS_MAX };

struct tree {
	struct run runs[RUNS_MAX];
	size_t n_runs;
	struct node nodes[NODES_MAX];
	size_t n_nodes;
};

enum filter_arch filter_native_arch(void)
{
#if defined(__x86_64__)
	return FILTER_X86_64;
#elif defined(__aarch64__)
	return FILTER_AARCH64;
#elif defined(__riscv) && __riscv_xlen == 64
	return FILTER_RISCV64;
#else
#error "sandlock knows the system calls of x86_64, aarch64 and riscv64 only"
#endif
}

uint32_t filter_audit_arch(enum filter_arch arch)
{
	static const uint32_t audit[FILTER_ARCH_COUNT] = {
		[FILTER_X86_64] = AUDIT_ARCH_X86_64,
		[FILTER_AARCH64] = AUDIT_ARCH_AARCH64,
		[FILTER_RISCV64] = AUDIT_ARCH_RISCV64,
	};

	return audit[arch];
}

static unsigned int leaf_check(const struct filter_spec *spec, enum syscall_check check)
{
	/* The one check that looks at no register: a constant, which the kernel can cache. */
	if (check == CHECK_LISTEN)
		return spec->allow_listen ? LEAF_ALLOW : EACCES;
	return LEAF_CHECK + check;
}

/* Which bits of filter_notify send a family to the supervisor whatever its registers hold. */
static unsigned int notify_bit(const struct syscall_row *row)
{
	/* clang-format off */
	static const uint16_t bits[FAMILY_COUNT] = {
		[FAMILY_BIND]     = FILTER_NOTIFY_BIND,
		[FAMILY_CONNECT]  = FILTER_NOTIFY_SOCKETS,
		[FAMILY_CREATE]   = FILTER_NOTIFY_NAMES,
		[FAMILY_LINK]     = FILTER_NOTIFY_LINK | FILTER_NOTIFY_NAMES,
		[FAMILY_METADATA] = FILTER_NOTIFY_METADATA,
		[FAMILY_NARROW]   = FILTER_NOTIFY_SOCKETS,
		[FAMILY_OPEN]     = FILTER_NOTIFY_OPEN,
		[FAMILY_REMOVE]   = FILTER_NOTIFY_NAMES,
		[FAMILY_WATCH]    = FILTER_NOTIFY_WATCH,
		[FAMILY_XATTR]    = FILTER_NOTIFY_METADATA | FILTER_NOTIFY_CHOWN,
	};
	/* clang-format on */

	return row->check == CHECK_LISTEN ? FILTER_NOTIFY_SOCKETS : bits[row->family];
}

static bool is_readlink(const struct syscall_row *row)
{
	return str_starts(row->name, "readlink");
}

static bool is_chown(const struct syscall_row *row, unsigned int *ret_check)
{
	*ret_check = str_eq(row->name, "fchownat") ? CHECK_CHOWN_ARG2 : CHECK_CHOWN_ARG1;
	return str_eq(row->name, "fchownat") || str_ends(row->name, "chown");
}

/* Of the calls on a route netlink socket those that a Unix socket would answer otherwise. */
static unsigned int netlink_leaf(const struct syscall_row *row)
{
	if (row->family == FAMILY_BIND && str_eq(row->name, "bind"))
		return LEAF_CHECK + CHECK_BIND_NETLINK;
	if (row->family == FAMILY_RECV && str_eq(row->name, "recvfrom"))
		return LEAF_CHECK + CHECK_RECV_NETLINK;
	return row->family == FAMILY_SOCKNAME && str_eq(row->name, "getsockname") ? LEAF_NOTIFY
										  : LEAF_ALLOW;
}

/*
 * What the supervisor has to do with a call: LEAF_NOTIFY, a check that says when, or LEAF_ALLOW
 * where it has nothing to do with it. Reading attributes is of the xattr family and no mediated
 * call.
 */
static unsigned int notify_leaf(const struct filter_spec *spec, const struct syscall_row *row)
{
	unsigned int chown_check = 0;
	if (row->class == SYSCALL_EPERM || row->class == SYSCALL_ENOSYS)
		return LEAF_ALLOW;
	if ((row->family == FAMILY_XATTR || row->family == FAMILY_METADATA) &&
	    row->class != SYSCALL_METADATA)
		return LEAF_ALLOW;
	if (spec->notify & notify_bit(row))
		return LEAF_NOTIFY;
	if (row->family == FAMILY_METADATA && (spec->notify & FILTER_NOTIFY_CHOWN) &&
	    is_chown(row, &chown_check))
		return LEAF_CHECK + chown_check;
	if (row->family == FAMILY_LOCK && (spec->notify & FILTER_NOTIFY_LOCK))
		return LEAF_CHECK + (str_eq(row->name, "flock") ? CHECK_FLOCK : CHECK_FCNTL);
	if (row->family == FAMILY_STAT && (spec->notify & FILTER_NOTIFY_STAT) && is_readlink(row))
		return LEAF_NOTIFY;
	if (row->family == FAMILY_RECV && (spec->notify & FILTER_NOTIFY_RECV))
		return str_eq(row->name, "recvfrom") ? LEAF_CHECK + CHECK_RECV : LEAF_NOTIFY;
	if (row->family == FAMILY_SOCKNAME && (spec->notify & FILTER_NOTIFY_PEERNAME) &&
	    str_eq(row->name, "getpeername"))
		return LEAF_NOTIFY;
	if (spec->notify & FILTER_NOTIFY_NETLINK)
		return netlink_leaf(row);
	return LEAF_ALLOW;
}

/*
 * What a supervised sandbox inside an unsupervised one needs of its own tree: Landlock bounds these
 * calls to the caller's domain and those within it (its ptrace rule).
 */
static bool inner_supervisor(const struct filter_spec *spec, const struct syscall_row *row)
{
	return spec->allow_listener &&
	       (str_eq(row->name, "pidfd_getfd") || str_eq(row->name, "process_vm_readv") ||
		str_eq(row->name, "process_vm_writev"));
}

static unsigned int plain_leaf(const struct filter_spec *spec, const struct filter_sets *sets,
			       size_t i)
{
	const struct syscall_row *row = &syscall_table[i];
	unsigned int mediated = spec->notify ? notify_leaf(spec, row) : LEAF_ALLOW;

	/* Denying a call that is answered ENOSYS changes nothing: callers fall back on that. */
	if (syscall_set_has(&sets->deny, i) && row->class != SYSCALL_ENOSYS)
		return EPERM;
	if (mediated != LEAF_ALLOW)
		return mediated;
	if (syscall_set_has(&sets->allow, i))
		return LEAF_ALLOW;
	switch ((enum syscall_class)row->class) {
	case SYSCALL_ALLOW:
		return LEAF_ALLOW;
	case SYSCALL_ENOSYS:
		return ENOSYS;
	case SYSCALL_ARGS:
		return leaf_check(spec, row->check);
	case SYSCALL_METADATA:
		return spec->allow_metadata ? LEAF_ALLOW : EPERM;
	case SYSCALL_TUNE:
		if (spec->own_pid_namespace && row->check != CHECK_PID0)
			return LEAF_ALLOW;
		return leaf_check(spec, row->check);
	case SYSCALL_POSIX_MQ:
		return spec->own_ipc_namespace ? LEAF_ALLOW : EPERM;
	case SYSCALL_EPERM:
		return inner_supervisor(spec, row) ? LEAF_ALLOW : EPERM;
	case SYSCALL_SYSV:
	case SYSCALL_CLASS_COUNT:
		break;
	}
	return EPERM;
}

/*
 * Calls that Landlock, the base's mounts or the signal scope may refuse. Signals need no look in a
 * PID namespace, where nobody outside has a number; nor, where no mounts judge them, metadata
 * calls.
 */
static bool is_explained(const struct filter_spec *spec, const struct syscall_row *row)
{
	static const bool always[FAMILY_COUNT] = {
		[FAMILY_BIND] = true,	[FAMILY_CONNECT] = true, [FAMILY_CREATE] = true,
		[FAMILY_EXEC] = true,	[FAMILY_LINK] = true,	 [FAMILY_OPEN] = true,
		[FAMILY_REMOVE] = true,
	};

	if (always[row->family])
		return row->class != SYSCALL_EPERM;
	if (row->family == FAMILY_TRUNCATE)
		return str_eq(row->name, "truncate");
	if (row->family == FAMILY_SIGNAL)
		return !spec->own_pid_namespace;
	return row->class == SYSCALL_METADATA && spec->own_pid_namespace;
}

/*
 * The calls by which a start hands over its listener: nobody can answer them yet. Where the user
 * denies one, the start must fail, not wait.
 */
static bool is_of_start(const struct syscall_row *row)
{
	return str_eq(row->name, "close_range") || str_eq(row->name, "write");
}

unsigned int filter_leaf(const struct filter_spec *spec, const struct filter_sets *sets, size_t i)
{
	const struct syscall_row *row = &syscall_table[i];
	unsigned int leaf = plain_leaf(spec, sets, i);
	bool refused = leaf > LEAF_ALLOW && leaf < LEAF_NOTIFY;

	if (!spec->explain || leaf == ENOSYS)
		return leaf;
	if (refused)
		return is_of_start(row) ? leaf : LEAF_NOTIFY;
	return is_explained(spec, row) ? LEAF_NOTIFY : leaf;
}

/* Cuts the numbers into runs of equal answers. */
static void tree_init_runs(struct tree *t, const struct filter_spec *spec,
			   const struct filter_sets *sets)
{
	unsigned int leaves[SYSCALL_NR_MAX + 1];

	for (size_t nr = 0; nr < ARRAY_SIZE(leaves); nr++)
		leaves[nr] = ENOSYS;
	for (size_t i = 0; i < syscall_table_n; i++) {
		int nr = syscall_table[i].nr[spec->arch];
		if (nr >= 0 && nr < (int)ARRAY_SIZE(leaves))
			leaves[nr] = filter_leaf(spec, sets, i);
	}

	t->n_runs = 0;
	for (uint32_t nr = 0; nr < ARRAY_SIZE(leaves); nr++) {
		if (t->n_runs == 0 || t->runs[t->n_runs - 1].leaf != leaves[nr])
			t->runs[t->n_runs++] = (struct run){.first = nr, .leaf = leaves[nr]};
	}
	/* All that lies above, up to 2^32 - 1. */
	if (t->runs[t->n_runs - 1].leaf != ENOSYS)
		t->runs[t->n_runs++] = (struct run){.first = SYSCALL_NR_MAX + 1, .leaf = ENOSYS};
}

/*
 * How much a run is worth a short way. The kernel remembers, per number, calls that are allowed
 * whatever their arguments, and runs the program for the others only: checked calls count most.
 * When the filter is installed it walks the way of every number once: long runs count a little.
 */
static uint32_t run_weight(const struct tree *t, size_t i)
{
	uint32_t end = i + 1 < t->n_runs ? t->runs[i + 1].first : SYSCALL_NR_MAX + 1;
	uint32_t length = end > t->runs[i].first ? end - t->runs[i].first : 1;

	return 4 + length + (t->runs[i].leaf >= LEAF_CHECK ? 32 : 0);
}

/*
 * Joins neighbours, the two lightest first, until one node is left. A node's weight is the sum of
 * its children's, so the depth grows with the logarithm of the weight.
 */
static size_t tree_join(struct tree *t)
{
	int16_t line[RUNS_MAX] = {0};
	size_t n = t->n_runs;

	for (size_t i = 0; i < n; i++) {
		t->nodes[i] = (struct node){.first = t->runs[i].first,
					    .weight = run_weight(t, i),
					    .left = -1,
					    .right = -1};
		line[i] = (int16_t)i;
	}
	t->n_nodes = n;
	while (n > 1) {
		size_t best = 0;
		uint32_t best_weight = UINT32_MAX;
		for (size_t i = 0; i + 1 < n; i++) {
			uint32_t w = t->nodes[line[i]].weight + t->nodes[line[i + 1]].weight;
			if (w < best_weight) {
				best = i;
				best_weight = w;
			}
		}
		t->nodes[t->n_nodes] = (struct node){.first = t->nodes[line[best]].first,
						     .weight = best_weight,
						     .left = line[best],
						     .right = line[best + 1]};
		line[best] = (int16_t)t->n_nodes++;
		n--;
		for (size_t i = best + 1; i < n; i++)
			line[i] = line[i + 1];
	}
	return (size_t)line[0];
}

static bpf_pos emit_leaf(struct bpf_asm *a, unsigned int leaf, bpf_pos checks[CHECK_COUNT])
{
	if (leaf >= LEAF_CHECK)
		return checks[leaf - LEAF_CHECK];
	if (leaf == LEAF_NOTIFY)
		return bpf_ret(a, SECCOMP_RET_USER_NOTIF);
	return bpf_ret(a, leaf == LEAF_ALLOW ? SECCOMP_RET_ALLOW : SECCOMP_RET_ERRNO | leaf);
}

/* The right child lies behind the left one: it is reached if the number is not below it. */
static void emit_join(struct bpf_asm *a, struct tree *t, struct node *node)
{
	const struct node *left = &t->nodes[node->left];
	const struct node *right = &t->nodes[node->right];

	node->pos = bpf_if(a, BPF_JGE, right->first, right->pos, left->pos);
}

/*
 * Makes the code of the tree below ROOT, children before parents, by a stack of its own: a node is
 * pushed twice, the second time (stored as its complement) when its children are done.
 */
static bpf_pos tree_emit(struct bpf_asm *a, struct tree *t, size_t root,
			 bpf_pos checks[CHECK_COUNT])
{
	int16_t stack[2 * NODES_MAX];
	size_t n = 0;

	stack[n++] = (int16_t)root;
	while (n > 0) {
		int16_t top = stack[--n];
		struct node *node = &t->nodes[top < 0 ? ~top : top];
		if (top < 0) {
			emit_join(a, t, node);
		} else if (node->left < 0) {
			node->pos = emit_leaf(a, t->runs[top].leaf, checks);
		} else {
			stack[n++] = (int16_t)~top;
			stack[n++] = node->left;
			stack[n++] = node->right;
		}
	}
	return t->nodes[root].pos;
}

/* Makes the code of every check that a leaf of this tree asks for. */
static void emit_checks(struct bpf_asm *a, const struct tree *t, const struct filter_args_ctx *ctx,
			bpf_pos ret_checks[CHECK_COUNT])
{
	bool made[CHECK_COUNT] = {false};

	for (size_t i = 0; i < t->n_runs; i++) {
		if (t->runs[i].leaf < LEAF_CHECK)
			continue;
		enum syscall_check check = t->runs[i].leaf - LEAF_CHECK;
		if (made[check])
			continue;
		ret_checks[check] = filter_args_emit(a, check, ctx);
		made[check] = true;
	}
}

static bool ptrace_waived(const struct filter_sets *sets)
{
	const struct syscall_row *row = syscall_by_name("ptrace");

	return row && syscall_set_has(&sets->allow, (size_t)(row - syscall_table));
}

int filter_build(const struct filter_spec *spec, struct filter_program *ret_prog, struct err *err)
{
	struct filter_sets sets;

	if ((unsigned int)spec->arch >= FILTER_ARCH_COUNT)
		return err_set(err, EINVAL, "there is no architecture number %u",
			       (unsigned int)spec->arch);
	int r = filter_make_sets(spec->extra_allow, spec->extra_deny, spec->own_ipc_namespace,
				 &sets, err);
	if (r < 0)
		return r;

	auto_free struct tree *t = xnew(struct tree);
	AUTO(bpf_asm_done) struct bpf_asm a;
	bpf_asm_init(&a);
	bpf_pos checks[CHECK_COUNT] = {0};
	struct filter_args_ctx ctx = {.spec = spec, .ptrace_allowed = ptrace_waived(&sets)};

	tree_init_runs(t, spec, &sets);
	emit_checks(&a, t, &ctx, checks);
	bpf_pos start = tree_emit(&a, t, tree_join(t), checks);
	start = bpf_load(&a, (uint32_t)offsetof(struct seccomp_data, nr), start);
	start = bpf_if(&a, BPF_JEQ, filter_audit_arch(spec->arch), start,
		       bpf_ret(&a, SECCOMP_RET_ERRNO | ENOSYS));
	start = bpf_load(&a, (uint32_t)offsetof(struct seccomp_data, arch), start);

	struct filter_program prog = {0};
	r = bpf_asm_finish(&a, start, &prog.insns, &prog.n, err);
	if (r < 0)
		return r;
	*ret_prog = prog;
	return 0;
}

void filter_program_done(struct filter_program *prog)
{
	if (!prog)
		return;
	free(prog->insns);
	*prog = (struct filter_program){0};
}

void filter_program_done_cleanup(struct filter_program *prog)
{
	filter_program_done(prog);
}
