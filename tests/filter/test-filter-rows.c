/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs the rows of the *.tests files named on the command line: each says what the filter of one
 * policy answers to one call on one architecture. README.md in this folder describes the form. Each
 * row is one TAP result; a file that cannot be read as rows fails as a whole.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/util.h"
#include "policy/filter.h"
#include "policy/syscall.h"
#include "sim.h"
#include "sys/uapi.h"

enum { WORDS_MAX = 24, ARGS_MAX = 6, LINE_SIZE = 512 };

/* High half of a register argument written with +hi. */
#define GARBAGE UINT64_C(0xdeadbeef00000000)

struct constant {
	const char *name;
	uint64_t value;
};

/* clang-format off */
static const struct constant constants[] = {
	{ "AF_UNSPEC", 0 }, { "AF_UNIX", 1 }, { "AF_INET", 2 }, { "AF_INET6", 10 },
	{ "AF_NETLINK", 16 }, { "AF_PACKET", 17 }, { "AF_RDS", 21 }, { "AF_CAN", 29 },
	{ "AF_TIPC", 30 }, { "AF_BLUETOOTH", 31 }, { "AF_ALG", 38 }, { "AF_VSOCK", 40 },
	{ "AF_KCM", 41 }, { "AF_QIPCRTR", 42 }, { "AF_SMC", 43 }, { "AF_XDP", 44 },
	{ "SOCK_STREAM", 1 }, { "SOCK_DGRAM", 2 }, { "SOCK_RAW", 3 }, { "SOCK_RDM", 4 },
	{ "SOCK_SEQPACKET", 5 }, { "SOCK_DCCP", 6 }, { "SOCK_PACKET", 10 },
	{ "SOCK_NONBLOCK", 04000 }, { "SOCK_CLOEXEC", 02000000 },
	{ "IPPROTO_ICMP", 1 }, { "IPPROTO_TCP", 6 }, { "IPPROTO_UDP", 17 },
	{ "IPPROTO_DCCP", 33 }, { "IPPROTO_IPV6", 41 }, { "IPPROTO_ICMPV6", 58 },
	{ "IPPROTO_SCTP", 132 }, { "IPPROTO_UDPLITE", 136 }, { "IPPROTO_RAW", 255 },
	{ "IPPROTO_SMC", 256 }, { "IPPROTO_MPTCP", 262 },
	{ "SOL_SOCKET", 1 }, { "TCP_NODELAY", 1 }, { "TCP_FASTOPEN", 23 },
	{ "TCP_FASTOPEN_CONNECT", 30 }, { "TCP_ULP", 31 },
	{ "IPPROTO_IP", 0 }, { "IP_TOS", 1 }, { "IP_OPTIONS", 4 }, { "IP_PKTINFO", 8 },
	{ "IPV6_2292PKTOPTIONS", 6 }, { "IPV6_V6ONLY", 26 }, { "IPV6_FLOWLABEL_MGR", 32 },
	{ "IPV6_RTHDR", 57 },
	{ "MSG_DONTWAIT", 0x40 }, { "MSG_NOSIGNAL", 0x4000 }, { "MSG_FASTOPEN", 0x20000000 },
	{ "CLONE_VM", 0x100 }, { "CLONE_FS", 0x200 }, { "CLONE_FILES", 0x400 },
	{ "CLONE_SIGHAND", 0x800 }, { "CLONE_PIDFD", 0x1000 }, { "CLONE_PTRACE", 0x2000 },
	{ "CLONE_VFORK", 0x4000 }, { "CLONE_PARENT", 0x8000 }, { "CLONE_THREAD", 0x10000 },
	{ "CLONE_NEWNS", 0x20000 }, { "CLONE_SYSVSEM", 0x40000 }, { "CLONE_SETTLS", 0x80000 },
	{ "CLONE_PARENT_SETTID", 0x100000 }, { "CLONE_CHILD_CLEARTID", 0x200000 },
	{ "CLONE_UNTRACED", 0x800000 }, { "CLONE_CHILD_SETTID", 0x1000000 },
	{ "CLONE_NEWCGROUP", 0x2000000 }, { "CLONE_NEWUTS", 0x4000000 },
	{ "CLONE_NEWIPC", 0x8000000 }, { "CLONE_NEWUSER", 0x10000000 },
	{ "CLONE_NEWPID", 0x20000000 }, { "CLONE_NEWNET", 0x40000000 },
	{ "CLONE_IO", 0x80000000 }, { "CLONE_NEWTIME", 0x80 }, { "SIGCHLD", 17 },
	{ "TCGETS", 0x5401 }, { "TCSETS", 0x5402 }, { "TIOCSCTTY", 0x540e },
	{ "TIOCGPGRP", 0x540f }, { "TIOCSPGRP", 0x5410 }, { "TIOCOUTQ", 0x5411 },
	{ "TIOCSTI", 0x5412 }, { "TIOCGWINSZ", 0x5413 }, { "TIOCSWINSZ", 0x5414 },
	{ "FIONREAD", 0x541b }, { "TIOCLINUX", 0x541c }, { "FIONBIO", 0x5421 },
	{ "TIOCNOTTY", 0x5422 }, { "TIOCSETD", 0x5423 }, { "TIOCGPTPEER", 0x5441 },
	{ "FIOCLEX", 0x5451 }, { "FIOASYNC", 0x5452 },
	{ "FIOSETOWN", 0x8901 }, { "SIOCATMARK", 0x8905 }, { "SIOCADDRT", 0x890b },
	{ "SIOCGIFNAME", 0x8910 }, { "SIOCGIFCONF", 0x8912 }, { "SIOCGIFADDR", 0x8915 },
	{ "SIOCSIFADDR", 0x8916 }, { "SIOCGIFHWADDR", 0x8927 }, { "SIOCETHTOOL", 0x8946 },
	{ "SIOCOUTQNSD", 0x894b }, { "SIOCGSKNS", 0x894c }, { "SIOCDEVPRIVATE", 0x89f0 },
	{ "SIOCGIFINDEX", 0x8933 }, { "SIOCGIFMAP", 0x8970 }, { "SOL_NETLINK", 270 },
	{ "SIOCWANDEV", 0x894a }, { "SIOCGSTAMP_NEW", 0x80108906 },
	{ "FS_IOC_GETFLAGS", 0x80086601 }, { "FS_IOC_SETFLAGS", 0x40086602 },
	{ "FS_IOC32_SETFLAGS", 0x40046602 }, { "FS_IOC_FIEMAP", 0xc020660b },
	{ "FS_IOC_ENABLE_VERITY", 0x40806685 }, { "FS_IOC_FSGETXATTR", 0x801c581f },
	{ "FS_IOC_FSSETXATTR", 0x401c5820 }, { "FS_IOC_SETVERSION", 0x40087602 },
	{ "FS_IOC_ADD_ENCRYPTION_KEY", 0xc0506617 }, { "EXT4_IOC_SETVERSION", 0x40086604 },
	{ "FAT_IOCTL_SET_ATTRIBUTES", 0x40047211 }, { "FICLONE", 0x40049409 },
	{ "FICLONERANGE", 0x4020940d }, { "FIDEDUPERANGE", 0xc0189436 },
	{ "BTRFS_IOC_SNAP_CREATE_V2", 0x50009417 }, { "BTRFS_IOC_SNAP_DESTROY", 0x5000940f },
	{ "PR_SET_PDEATHSIG", 1 }, { "PR_GET_DUMPABLE", 3 }, { "PR_SET_DUMPABLE", 4 },
	{ "PR_SET_NAME", 15 }, { "PR_SET_SECCOMP", 22 }, { "PR_CAPBSET_DROP", 24 },
	{ "PR_GET_SECUREBITS", 27 }, { "PR_SET_SECUREBITS", 28 }, { "PR_SET_MM", 35 },
	{ "PR_SET_CHILD_SUBREAPER", 36 }, { "PR_SET_NO_NEW_PRIVS", 38 },
	{ "PR_SET_THP_DISABLE", 41 }, { "PR_CAP_AMBIENT", 47 }, { "PR_FUTEX_HASH", 78 },
	{ "PR_SET_VMA", 0x53564d41 }, { "PR_SET_PTRACER", 0x59616d61 },
	{ "PR_GET_AUXV", 0x41555856 },
	{ "SECCOMP_SET_MODE_STRICT", 0 }, { "SECCOMP_SET_MODE_FILTER", 1 },
	{ "SECCOMP_GET_ACTION_AVAIL", 2 }, { "SECCOMP_GET_NOTIF_SIZES", 3 },
	{ "FLAG_TSYNC", 1 }, { "FLAG_LOG", 2 }, { "FLAG_NEW_LISTENER", 8 },
	{ "PRIO_PROCESS", 0 }, { "PRIO_PGRP", 1 }, { "PRIO_USER", 2 },
	{ "IOPRIO_WHO_PROCESS", 1 }, { "IOPRIO_WHO_PGRP", 2 }, { "IOPRIO_WHO_USER", 3 },
	{ "PER_QUERY", 0xffffffff }, { "PER_LINUX", 0 }, { "PER_LINUX32", 8 },
	{ "LOCK_SH", 1 }, { "LOCK_EX", 2 }, { "LOCK_NB", 4 }, { "LOCK_UN", 8 },
	{ "F_DUPFD", 0 }, { "F_SETFL", 4 }, { "F_SETLK", 6 }, { "F_SETLKW", 7 },
	{ "F_OFD_SETLK", 37 }, { "F_SETLEASE", 1024 }, { "F_GETLEASE", 1025 },
	{ "F_NOTIFY", 1026 }, { "F_ADD_SEALS", 1033 }, { "F_GETDELEG", 1039 },
	{ "F_SETDELEG", 1040 },
	{ "ADDR_NO_RANDOMIZE", 0x40000 }, { "READ_IMPLIES_EXEC", 0x400000 },
};

static const struct constant errnos[] = {
	{ "EPERM", EPERM }, { "EBUSY", EBUSY }, { "EACCES", EACCES }, { "EINVAL", EINVAL }, { "ENOSYS", ENOSYS },
	{ "EPROTONOSUPPORT", EPROTONOSUPPORT }, { "EAFNOSUPPORT", EAFNOSUPPORT },
	{ "EOPNOTSUPP", EOPNOTSUPP },
};

/* Architectures of a call that are not the filter's: written FILTER:CALL, such as x86_64:i386. */
static const struct constant call_arches[] = {
	{ "x86_64", AUDIT_ARCH_X86_64 }, { "aarch64", AUDIT_ARCH_AARCH64 },
	{ "riscv64", AUDIT_ARCH_RISCV64 }, { "i386", AUDIT_ARCH_I386 },
	{ "arm", AUDIT_ARCH_ARM }, { "riscv32", AUDIT_ARCH_RISCV32 },
	{ "s390x", AUDIT_ARCH_S390X }, { "zero", 0 }, { "ones", 0xffffffff },
};

static const struct constant notify_bits[] = {
	{ "sockets", FILTER_NOTIFY_SOCKETS }, { "socket_create", FILTER_NOTIFY_SOCKET_CREATE },
	{ "metadata", FILTER_NOTIFY_METADATA }, { "chown", FILTER_NOTIFY_CHOWN },
	{ "link", FILTER_NOTIFY_LINK }, { "lock", FILTER_NOTIFY_LOCK },
	{ "watch", FILTER_NOTIFY_WATCH }, { "open", FILTER_NOTIFY_OPEN },
	{ "stat", FILTER_NOTIFY_STAT }, { "names", FILTER_NOTIFY_NAMES },
	{ "tune", FILTER_NOTIFY_TUNE }, { "bind", FILTER_NOTIFY_BIND },
	{ "netlink", FILTER_NOTIFY_NETLINK }, { "recv", FILTER_NOTIFY_RECV },
	{ "peername", FILTER_NOTIFY_PEERNAME },
};

static const char *const arch_names[FILTER_ARCH_COUNT] = {
	[FILTER_X86_64] = "x86_64", [FILTER_AARCH64] = "aarch64", [FILTER_RISCV64] = "riscv64",
};
/* clang-format on */

struct runner {
	const char *path;
	unsigned int line;
	unsigned int results;
	unsigned int failed;
	struct filter_spec spec;
	struct strv allow;
	struct strv deny;
	bool have_programs;
	struct filter_program programs[FILTER_ARCH_COUNT];
};

/* One row, read. */
struct row {
	const char *text;
	bool arch[FILTER_ARCH_COUNT]; /* whose filters are asked */
	bool every_arch;
	bool foreign;
	uint32_t audit_arch; /* if foreign */
	const char *call;
	uint64_t args[ARGS_MAX];
	uint32_t answer;
};

static bool find_constant(const struct constant *v, size_t n, const char *name, uint64_t *ret)
{
	for (size_t i = 0; i < n; i++) {
		if (str_eq(v[i].name, name)) {
			*ret = v[i].value;
			return true;
		}
	}
	return false;
}

static bool parse_number(const char *word, uint64_t *ret)
{
	char *end = NULL;

	errno = 0;
	*ret = word[0] == '-' ? (uint64_t)strtoll(word, &end, 0) : strtoull(word, &end, 0);
	return errno == 0 && end != word && *end == '\0';
}

/* WORD is numbers and constants joined by '|', with +hi at the end for garbage in the high half. */
static bool parse_value(const char *word, uint64_t *ret)
{
	uint64_t value = 0;

	for (;;) {
		size_t len = strcspn(word, "|+");
		auto_free char *part = xstrndup(word, len);
		uint64_t bits;
		if (!parse_number(part, &bits) &&
		    !find_constant(constants, ARRAY_SIZE(constants), part, &bits))
			return false;
		value |= bits;
		word += len;
		if (*word != '|')
			break;
		word++;
	}
	if (str_eq(word, "+hi"))
		value |= GARBAGE;
	else if (*word)
		return false;
	*ret = value;
	return true;
}

static bool parse_arch(const char *word, struct row *row)
{
	const char *colon = strchr(word, ':');
	auto_free char *name = colon ? xstrndup(word, (size_t)(colon - word)) : xstrdup(word);
	uint64_t audit;

	if (colon) {
		if (!find_constant(call_arches, ARRAY_SIZE(call_arches), colon + 1, &audit))
			return false;
		row->foreign = true;
		row->audit_arch = (uint32_t)audit;
	}
	row->every_arch = str_eq(name, "*");
	bool any = false;
	for (size_t i = 0; i < FILTER_ARCH_COUNT; i++) {
		row->arch[i] = row->every_arch || str_eq(name, arch_names[i]);
		any = any || row->arch[i];
	}
	return any;
}

static bool parse_answer(const char *word, uint32_t *ret)
{
	uint64_t errnum;

	if (str_eq(word, "allow")) {
		*ret = SECCOMP_RET_ALLOW;
		return true;
	}
	if (str_eq(word, "notify")) {
		*ret = SECCOMP_RET_USER_NOTIF;
		return true;
	}
	if (!find_constant(errnos, ARRAY_SIZE(errnos), word, &errnum))
		return false;
	*ret = SECCOMP_RET_ERRNO | (uint32_t)errnum;
	return true;
}

static const char *parse_row(char *const *words, size_t n, struct row *row)
{
	if (n < 3 || n > 3 + ARGS_MAX)
		return "a row is ARCH CALL [ARG]... ANSWER, with at most six arguments";
	if (!parse_arch(words[0], row))
		return "unknown architecture";
	row->call = words[1];
	/* Arguments that a row does not give must not matter: they are garbage. */
	for (size_t i = 0; i < ARGS_MAX; i++)
		row->args[i] = UINT64_C(0x5a5a5a5a5a5a5a5a);
	for (size_t i = 2; i + 1 < n; i++) {
		if (!parse_value(words[i], &row->args[i - 2]))
			return "unknown argument";
	}
	if (!parse_answer(words[n - 1], &row->answer))
		return "unknown answer";
	return NULL;
}

/* The number of the row's call on ARCH; false if that architecture does not have the call. */
static bool call_number(const struct row *row, enum filter_arch arch, uint32_t *ret_nr,
			const char **ret_fault)
{
	uint64_t value;

	if (parse_number(row->call, &value)) {
		*ret_nr = (uint32_t)value;
		return true;
	}
	const struct syscall_row *call = syscall_by_name(row->call);
	if (!call)
		*ret_fault = "unknown call";
	if (!call || call->nr[arch] < 0)
		return false;
	*ret_nr = (uint32_t)call->nr[arch];
	return true;
}

static const char *build_programs(struct runner *run)
{
	static struct err err;

	for (size_t i = 0; i < FILTER_ARCH_COUNT; i++)
		filter_program_done(&run->programs[i]);
	for (size_t i = 0; i < FILTER_ARCH_COUNT; i++) {
		run->spec.arch = (enum filter_arch)i;
		run->spec.extra_allow = &run->allow;
		run->spec.extra_deny = &run->deny;
		if (filter_build(&run->spec, &run->programs[i], &err) < 0)
			return err.msg;
	}
	run->have_programs = true;
	return NULL;
}

static const char *run_on(struct runner *run, const struct row *row, enum filter_arch arch,
			  uint32_t nr, char *wrong, size_t wrong_size)
{
	struct seccomp_data data = {
		.nr = (int)nr,
		.arch = row->foreign ? row->audit_arch : filter_audit_arch(arch),
	};
	const char *fault = NULL;
	uint32_t answer;
	size_t steps;

	for (size_t i = 0; i < ARGS_MAX; i++)
		data.args[i] = row->args[i];
	const struct filter_program *prog = &run->programs[arch];
	if (sim_run(prog->insns, prog->n, &data, &answer, &steps, &fault) < 0)
		return fault;
	if (answer == row->answer)
		return NULL;
	snprintf(wrong, wrong_size, "on %s the answer is 0x%08x, not 0x%08x", arch_names[arch],
		 answer, row->answer);
	return wrong;
}

static const char *run_row(struct runner *run, char *const *words, size_t n, char *wrong,
			   size_t wrong_size)
{
	struct row row = {0};
	const char *fault = parse_row(words, n, &row);
	bool ran = false;

	if (!fault && !run->have_programs)
		fault = build_programs(run);
	for (size_t i = 0; !fault && i < FILTER_ARCH_COUNT; i++) {
		uint32_t nr;
		if (!row.arch[i])
			continue;
		if (call_number(&row, (enum filter_arch)i, &nr, &fault)) {
			ran = true;
			fault = run_on(run, &row, (enum filter_arch)i, nr, wrong, wrong_size);
		} else if (!fault && !row.every_arch) {
			fault = "this architecture does not have the call";
		}
	}
	if (!fault && !ran)
		fault = "no architecture has the call";
	return fault;
}

/* KEY=VALUE: what the word of a spec line sets. */
static bool set_value(struct runner *run, const char *word)
{
	const char *equals = strchr(word, '=');
	uint64_t bit;

	if (!equals)
		return false;
	if (str_starts(word, "allow="))
		strv_add(&run->allow, equals + 1);
	else if (str_starts(word, "deny="))
		strv_add(&run->deny, equals + 1);
	else if (str_starts(word, "uid="))
		run->spec.own_uid = (uint32_t)strtoul(equals + 1, NULL, 10);
	else if (str_starts(word, "gid="))
		run->spec.own_gid = (uint32_t)strtoul(equals + 1, NULL, 10);
	else if (str_starts(word, "notify=") &&
		 find_constant(notify_bits, ARRAY_SIZE(notify_bits), equals + 1, &bit))
		run->spec.notify |= (unsigned int)bit;
	else
		return false;
	return true;
}

static bool set_word(struct runner *run, const char *word)
{
	struct filter_spec *spec = &run->spec;

	if (str_eq(word, "base"))
		spec->allow_metadata = spec->own_pid_namespace = spec->own_ipc_namespace = true;
	else if (str_eq(word, "metadata"))
		spec->allow_metadata = true;
	else if (str_eq(word, "pid_namespace"))
		spec->own_pid_namespace = true;
	else if (str_eq(word, "ipc_namespace"))
		spec->own_ipc_namespace = true;
	else if (str_eq(word, "unix"))
		spec->allow_unix_sockets = true;
	else if (str_eq(word, "listen"))
		spec->allow_listen = true;
	else if (str_eq(word, "udp"))
		spec->allow_udp = true;
	else if (str_eq(word, "ping"))
		spec->allow_ping = true;
	else if (str_eq(word, "listener"))
		spec->allow_listener = true;
	else if (str_eq(word, "explain"))
		spec->explain = true;
	else if (str_eq(word, "plain"))
		spec->notify |= FILTER_NOTIFY_SOCKETS | FILTER_NOTIFY_LOCK | FILTER_NOTIFY_WATCH |
				FILTER_NOTIFY_NETLINK;
	else
		return str_eq(word, "strict") || set_value(run, word);
	return true;
}

/* Words of a line "spec …": what differs from the strictest filter. */
static const char *set_spec(struct runner *run, char *const *words, size_t n)
{
	run->spec = (struct filter_spec){0};
	run->have_programs = false;
	strv_done(&run->allow);
	strv_done(&run->deny);
	for (size_t i = 1; i < n; i++) {
		if (!set_word(run, words[i]))
			return "unknown word of a spec line";
	}
	return NULL;
}

static size_t split(char *line, char **words)
{
	size_t n = 0;
	char *hash = strchr(line, '#');

	if (hash)
		*hash = '\0';
	for (char *p = line; n < WORDS_MAX;) {
		p += strspn(p, " \t\n");
		if (!*p)
			break;
		words[n++] = p;
		p += strcspn(p, " \t\n");
		if (*p)
			*p++ = '\0';
	}
	return n;
}

static void run_line(struct runner *run, char *line)
{
	char *words[WORDS_MAX];
	char wrong[128];
	auto_free char *text = xstrndup(line, strcspn(line, "#\n"));
	size_t n = split(line, words);

	if (n == 0)
		return;
	bool is_spec = str_eq(words[0], "spec");
	const char *fault =
		is_spec ? set_spec(run, words, n) : run_row(run, words, n, wrong, sizeof(wrong));
	if (is_spec && !fault)
		return;
	run->results++;
	run->failed += fault != NULL;
	/* '#' would begin a directive of TAP. */
	printf("%sok %u - %s:%u: %s\n", fault ? "not " : "", run->results, run->path, run->line,
	       text);
	if (fault)
		printf("# %s\n", fault);
}

static void run_file(struct runner *run, const char *path)
{
	char line[LINE_SIZE];
	FILE *file = fopen(path, "re");
	const char *slash = strrchr(path, '/');
	unsigned int before = run->results;

	run->path = slash ? slash + 1 : path;
	run->line = 0;
	while (file && fgets(line, sizeof(line), file)) {
		run->line++;
		run_line(run, line);
	}
	if (file)
		fclose(file);
	if (run->results == before) {
		run->failed++;
		printf("not ok %u - %s has rows\n", ++run->results, path);
	}
}

int main(int argc, char **argv)
{
	struct runner run = {0};

	for (int i = 1; i < argc; i++)
		run_file(&run, argv[i]);
	printf("1..%u\n", run.results);
	for (size_t i = 0; i < FILTER_ARCH_COUNT; i++)
		filter_program_done(&run.programs[i]);
	strv_done(&run.allow);
	strv_done(&run.deny);
	return run.results == 0 || run.failed > 0;
}
