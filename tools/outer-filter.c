/* SPDX-License-Identifier: Apache-2.0 */
/*
 * outer-filter RULE... -- COMMAND...: runs COMMAND under a seccomp filter that makes named system
 * calls fail, as the filters of container engines and older kernels do. For tests: an ordinary user
 * can play any such place with it.
 *
 * A RULE is CALL=ERRNO, CALL:ARG&MASK=ERRNO (any bit of MASK is set in the low half of argument
 * ARG, counted from 0), CALL:ARG==VALUE=ERRNO, or --docker for what Docker's default profile
 * refuses to a process without capabilities. ERRNO is a name, KILL, or SUCCESS for a call that does
 * nothing and returns 0. Masks and values are numbers or names of flags.
 *
 * Invariant: the filter answers what the rules name, the first that fits, and nothing else.
 */
#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/util.h"
#include "policy/filter.h"
#include "policy/syscall.h"
#include "sys/uapi.h"

enum { INSNS_MAX = 4000, FAILED = 125, ERRNO_LAST = 133 };

struct program {
	struct sock_filter insns[INSNS_MAX];
	unsigned short n;
};

struct rule {
	uint32_t nr;
	int arg; /* -1: whatever the arguments are */
	bool is_mask;
	uint32_t value;
	uint32_t action;
};

/* clang-format off */
static const struct {
	const char *name;
	uint32_t value;
} flags[] = {
	{"namespaces",                             UAPI_CLONE_NAMESPACES & ~CLONE_NEWTIME},
	{"CLONE_NEWUSER",                          CLONE_NEWUSER},
	{"CLONE_NEWNS",                            CLONE_NEWNS},
	{"CLONE_NEWPID",                           CLONE_NEWPID},
	{"SECCOMP_FILTER_FLAG_NEW_LISTENER",       SECCOMP_FILTER_FLAG_NEW_LISTENER},
	{"SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV", SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV},
	{"SECCOMP_IOCTL_NOTIF_ADDFD",              (uint32_t)SECCOMP_IOCTL_NOTIF_ADDFD},
	{"SECCOMP_IOCTL_NOTIF_SET_FLAGS",          (uint32_t)SECCOMP_IOCTL_NOTIF_SET_FLAGS},
};

/* What Docker's default profile answers with EPERM where no capability is given, and clone3. */
static const char *const docker[] = {
	"acct=EPERM", "add_key=EPERM", "bpf=EPERM", "clock_adjtime=EPERM", "clock_settime=EPERM",
	"clone:0&namespaces=EPERM", "clone3=ENOSYS", "delete_module=EPERM", "fanotify_init=EPERM",
	"finit_module=EPERM", "fsconfig=EPERM", "fsmount=EPERM", "fsopen=EPERM", "fspick=EPERM",
	"get_mempolicy=EPERM", "init_module=EPERM", "io_uring_enter=EPERM", "io_uring_register=EPERM",
	"io_uring_setup=EPERM", "kcmp=EPERM", "kexec_file_load=EPERM", "kexec_load=EPERM",
	"keyctl=EPERM", "lookup_dcookie=EPERM", "mbind=EPERM", "migrate_pages=EPERM", "mount=EPERM",
	"mount_setattr=EPERM", "move_mount=EPERM", "move_pages=EPERM", "name_to_handle_at=EPERM",
	"open_by_handle_at=EPERM", "open_tree=EPERM", "perf_event_open=EPERM", "pidfd_getfd=EPERM",
	"pivot_root=EPERM", "process_madvise=EPERM", "quotactl=EPERM", "quotactl_fd=EPERM",
	"reboot=EPERM", "request_key=EPERM", "set_mempolicy=EPERM", "setdomainname=EPERM",
	"sethostname=EPERM", "setns=EPERM", "settimeofday=EPERM", "socket:0==40=EPERM",
	"swapoff=EPERM", "swapon=EPERM", "syslog=EPERM", "umount2=EPERM",
	"unshare:0&namespaces=EPERM", "userfaultfd=EPERM", "vhangup=EPERM",
};
/* clang-format on */

static _Noreturn void fail(const char *reason, const char *value)
{
	fprintf(stderr, "outer-filter: %s: %s\n", reason, value);
	exit(FAILED);
}

static uint32_t parse_value(const char *text)
{
	for (size_t i = 0; i < ARRAY_SIZE(flags); i++) {
		if (str_eq(flags[i].name, text))
			return flags[i].value;
	}
	char *end = NULL;
	errno = 0;
	unsigned long v = strtoul(text, &end, 0);
	if (errno || end == text || *end || v > UINT32_MAX)
		fail("neither a number nor a known flag", text);
	return (uint32_t)v;
}

static uint32_t parse_action(const char *text)
{
	if (str_eq(text, "KILL"))
		return SECCOMP_RET_KILL_PROCESS;
	if (str_eq(text, "SUCCESS"))
		return SECCOMP_RET_ERRNO;
	for (int code = 1; code <= ERRNO_LAST; code++) {
		if (str_eq(strerrorname_np(code), text))
			return SECCOMP_RET_ERRNO | (uint32_t)code;
	}
	fail("not the name of an errno, KILL or SUCCESS", text);
}

/* ":ARG&MASK" or ":ARG==VALUE", without the colon. */
static void parse_condition(char *text, struct rule *rule)
{
	if (text[0] < '0' || text[0] > '5')
		fail("an argument is a digit from 0 to 5", text);
	rule->arg = text[0] - '0';
	rule->is_mask = text[1] == '&';
	if (!rule->is_mask && !str_starts(text + 1, "=="))
		fail("after the argument comes & or ==", text);
	rule->value = parse_value(text + (rule->is_mask ? 2 : 3));
}

static struct rule parse_rule(const char *text)
{
	auto_free char *copy = xstrdup(text);
	char *equals = strrchr(copy, '=');
	struct rule rule = {.arg = -1};
	if (!equals)
		fail("a rule ends in =ERRNO", text);
	*equals = '\0';
	rule.action = parse_action(equals + 1);
	char *colon = strchr(copy, ':');
	if (colon) {
		*colon = '\0';
		parse_condition(colon + 1, &rule);
	}
	const struct syscall_row *row = syscall_by_name(copy);
	if (!row || row->nr[filter_native_arch()] < 0)
		fail("no such system call here", copy);
	rule.nr = (uint32_t)row->nr[filter_native_arch()];
	return rule;
}

static void emit(struct program *prog, struct sock_filter insn)
{
	if (prog->n == INSNS_MAX)
		fail("too many rules", "");
	prog->insns[prog->n++] = insn;
}

static void add_rule(struct program *prog, const char *text)
{
	struct rule rule = parse_rule(text);
	uint8_t skip = rule.arg < 0 ? 1 : 3;
	emit(prog, (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
						offsetof(struct seccomp_data, nr)));
	emit(prog, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, rule.nr, 0, skip));
	if (rule.arg >= 0) {
		/* The low half comes first on all supported architectures. */
		uint32_t at =
			(uint32_t)(offsetof(struct seccomp_data, args) + 8 * (size_t)rule.arg);
		uint16_t test = rule.is_mask ? BPF_JSET : BPF_JEQ;
		emit(prog, (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, at));
		emit(prog, (struct sock_filter)BPF_JUMP(BPF_JMP | test | BPF_K, rule.value, 0, 1));
	}
	emit(prog, (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, rule.action));
}

static void install(const struct program *prog)
{
	struct {
		unsigned short len;
		const struct sock_filter *filter;
	} arg = {prog->n, prog->insns};
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		fail("prctl(PR_SET_NO_NEW_PRIVS)", strerror(errno));
	if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &arg) < 0)
		fail("seccomp", strerror(errno));
}

int main(int argc, char **argv)
{
	struct program prog = {.n = 0};
	int i = 1;
	for (; i < argc && !str_eq(argv[i], "--"); i++) {
		if (!str_eq(argv[i], "--docker")) {
			add_rule(&prog, argv[i]);
			continue;
		}
		for (size_t k = 0; k < ARRAY_SIZE(docker); k++)
			add_rule(&prog, docker[k]);
	}
	if (i + 1 >= argc) {
		fputs("Usage: outer-filter [--docker] CALL[:ARG&MASK|:ARG==VALUE]=ERRNO... -- "
		      "COMMAND "
		      "[ARG...]\n",
		      stderr);
		return FAILED;
	}
	emit(&prog, (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
	install(&prog);
	execv(argv[i + 1], argv + i + 1);
	fail(argv[i + 1], strerror(errno));
}
