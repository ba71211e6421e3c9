/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Attacks by system calls that no sandboxed program needs: kernel interfaces with a large surface,
 * calls that change the machine, foreign architectures and numbers outside the table.
 *
 * Invariant: arguments are such that the call, let through and allowed, changes nothing: a bad
 * magic number, an invalid descriptor, the value that is already there. An attack that gets as far
 * as the kernel's check of its arguments counts as having worked.
 */
#include "attack.h"

#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/filter.h>
#include <linux/perf_event.h>
#include <linux/seccomp.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/timex.h>
#include <time.h>
#include <unistd.h>

static int io_uring_setup(char *const *arg)
{
	uint32_t params[32] = {0};

	return outcome(syscall(SYS_io_uring_setup, 1, params));
}

static int io_uring_enter(char *const *arg)
{
	return outcome_reached(syscall(SYS_io_uring_enter, -1, 0, 0, 0, NULL, 0), EBADF);
}

static int io_uring_register(char *const *arg)
{
	return outcome_reached(syscall(SYS_io_uring_register, -1, 0, NULL, 0), EINVAL);
}

static int bpf_map(char *const *arg)
{
	union bpf_attr attr = {
		.map_type = BPF_MAP_TYPE_ARRAY, .key_size = 4, .value_size = 4, .max_entries = 1};

	return outcome(syscall(SYS_bpf, BPF_MAP_CREATE, &attr, sizeof(attr)));
}

static int perf_event(char *const *arg)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_TASK_CLOCK,
		.exclude_kernel = 1,
		.exclude_hv = 1,
	};

	return outcome(syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0));
}

/* User faults only: this form needs no privilege. */
static int userfaultfd_open(char *const *arg)
{
	return outcome(syscall(SYS_userfaultfd, 1));
}

static int keyctl_session(char *const *arg)
{
	/* KEYCTL_GET_KEYRING_ID of the user's session keyring */
	return outcome(syscall(SYS_keyctl, 0, -3, 1));
}

static int add_key_user(char *const *arg)
{
	return outcome(syscall(SYS_add_key, "user", "sandlock-attack", "x", 1UL, -2));
}

static int request_key_user(char *const *arg)
{
	return outcome_reached(syscall(SYS_request_key, "user", "sandlock-none", NULL, 0), ENOKEY);
}

static int memfd_secret_open(char *const *arg)
{
	return outcome(syscall(SYS_memfd_secret, 0));
}

static int kexec_load_none(char *const *arg)
{
	return outcome_reached(syscall(SYS_kexec_load, 0, 1000000UL, NULL, 0), EINVAL);
}

static int kexec_file_none(char *const *arg)
{
	return outcome_reached(syscall(SYS_kexec_file_load, -1, -1, 0, "", ~0UL), EINVAL);
}

static int init_module_none(char *const *arg)
{
	return outcome_reached(syscall(SYS_init_module, NULL, 0, ""), ENOEXEC);
}

static int finit_module_none(char *const *arg)
{
	return outcome_reached(syscall(SYS_finit_module, -1, "", ~0), EINVAL);
}

static int delete_module_none(char *const *arg)
{
	return outcome_reached(syscall(SYS_delete_module, "no_such_module", O_NONBLOCK), ENOENT);
}

static int clock_set(char *const *arg)
{
	struct timespec bad = {0, 2000000000L};

	return outcome_reached(syscall(SYS_clock_settime, CLOCK_REALTIME, &bad), EINVAL);
}

static int settimeofday_none(char *const *arg)
{
	/* Neither time nor zone: the kernel checks the permission all the same. */
	return outcome(syscall(SYS_settimeofday, NULL, NULL));
}

static int adjtimex_tick(char *const *arg)
{
	struct timex t = {.modes = ADJ_TICK, .tick = 1};

	return outcome_reached(syscall(SYS_adjtimex, &t), EINVAL);
}

static int clock_adjtime_tick(char *const *arg)
{
	struct timex t = {.modes = ADJ_TICK, .tick = 1};

	return outcome_reached(syscall(SYS_clock_adjtime, CLOCK_REALTIME, &t), EINVAL);
}

static int syslog_size(char *const *arg)
{
	return outcome(syscall(SYS_syslog, 10, NULL, 0));
}

static int reboot_bad_magic(char *const *arg)
{
	return outcome_reached(syscall(SYS_reboot, 1, 2, 0, NULL), EINVAL);
}

static int swapon_none(char *const *arg)
{
	return outcome_reached(syscall(SYS_swapon, "/no/such/file", 0), ENOENT);
}

static int swapoff_none(char *const *arg)
{
	return outcome_reached(syscall(SYS_swapoff, "/no/such/file"), ENOENT);
}

static int acct_none(char *const *arg)
{
	return outcome_reached(syscall(SYS_acct, "/no/such/file"), ENOENT);
}

static int quotactl_sync(char *const *arg)
{
	/* Q_SYNC of all file systems needs no privilege. */
	return outcome(syscall(SYS_quotactl, 0x800001 << 8, NULL, 0, NULL));
}

static int iopl_3(char *const *arg)
{
	return outcome(syscall(SYS_iopl, 3));
}

static int ioperm_port(char *const *arg)
{
	return outcome(syscall(SYS_ioperm, 0x80, 1, 1));
}

static int vhangup_self(char *const *arg)
{
	return outcome(syscall(SYS_vhangup));
}

static int sethostname_same(char *const *arg)
{
	char name[65] = "";

	gethostname(name, sizeof(name) - 1);
	return outcome(sethostname(name, strlen(name)));
}

static int setdomainname_same(char *const *arg)
{
	return outcome(setdomainname("(none)", 6));
}

static int name_to_handle(char *const *arg)
{
	struct {
		struct file_handle handle;
		char bytes[128];
	} h = {.handle = {.handle_bytes = 128}};
	int mount_id;

	return outcome(name_to_handle_at(AT_FDCWD, arg[0], &h.handle, &mount_id, 0));
}

static int open_by_handle(char *const *arg)
{
	struct {
		struct file_handle handle;
		char bytes[8];
	} h = {.handle = {.handle_bytes = 8, .handle_type = 1}};
	int dir = open(arg[0], O_RDONLY | O_DIRECTORY);

	if (dir < 0)
		return ATTACK_NA;
	return outcome_reached(open_by_handle_at(dir, &h.handle, O_RDONLY), ESTALE);
}

static int fanotify(char *const *arg)
{
	/* FAN_CLASS_NOTIF | FAN_REPORT_FID: the form that ordinary users have. */
	return outcome(syscall(SYS_fanotify_init, 0x200, O_RDONLY));
}

static int lookup_dcookie(char *const *arg)
{
	return outcome(syscall(SYS_lookup_dcookie, 0UL, NULL, 0UL));
}

static int set_personality(char *const *arg)
{
	return outcome(personality((unsigned long)number(arg[0])));
}

static int seccomp_listener(char *const *arg)
{
	struct sock_filter allow[] = {BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
	struct sock_fprog prog = {1, allow};

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return ATTACK_NA;
	return outcome(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER,
			       SECCOMP_FILTER_FLAG_NEW_LISTENER, &prog));
}

static int set_securebits(char *const *arg)
{
	return outcome(prctl(PR_SET_SECUREBITS, 1, 0, 0, 0));
}

/* PR_SET_MM moves what /proc shows of the process. */
static int set_mm(char *const *arg)
{
	return outcome_reached(prctl(PR_SET_MM, PR_SET_MM_BRK, 0, 0, 0), EINVAL);
}

static int nr_raw(char *const *arg)
{
	long r = syscall(number(arg[0]), 0, 0, 0, 0, 0, 0);

	return outcome(r);
}

#ifdef __x86_64__
static long int80(long nr, long a, long b, long c)
{
	long r;

	__asm__ volatile("int $0x80" : "=a"(r) : "a"(nr), "b"(a), "c"(b), "d"(c) : "memory");
	return r;
}

/* The 32-bit entry: getpid is 20 there. */
static int int80_getpid(char *const *arg)
{
	long r = int80(20, 0, 0, 0);

	return r < 0 ? (int)-r : ATTACK_WORKED;
}

/* open is 5; the path must lie below 4 GiB. */
static int int80_open(char *const *arg)
{
	char *low = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
	long r;

	if (low == MAP_FAILED)
		return ATTACK_NA;
	snprintf(low, 4096, "%s", arg[0]);
	r = int80(5, (long)(uintptr_t)low, O_WRONLY, 0);
	return r < 0 ? (int)-r : ATTACK_WORKED;
}

/* socketcall(SYS_SOCKET) of a UDP socket. */
static int int80_socketcall(char *const *arg)
{
	uint32_t *low = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
	long r;

	if (low == MAP_FAILED)
		return ATTACK_NA;
	low[0] = 2;
	low[1] = 2;
	low[2] = 0;
	r = int80(102, 1, (long)(uintptr_t)low, 0);
	return r < 0 ? (int)-r : ATTACK_WORKED;
}
#else
static int int80_getpid(char *const *arg)
{
	return ATTACK_NA;
}

static int int80_open(char *const *arg)
{
	return ATTACK_NA;
}

static int int80_socketcall(char *const *arg)
{
	return ATTACK_NA;
}
#endif

const struct attack attacks_syscalls[] = {
	{"io_uring_setup", 0, io_uring_setup},
	{"io_uring_enter", 0, io_uring_enter},
	{"io_uring_register", 0, io_uring_register},
	{"bpf", 0, bpf_map},
	{"perf_event_open", 0, perf_event},
	{"userfaultfd", 0, userfaultfd_open},
	{"keyctl", 0, keyctl_session},
	{"add_key", 0, add_key_user},
	{"request_key", 0, request_key_user},
	{"memfd_secret", 0, memfd_secret_open},
	{"kexec_load", 0, kexec_load_none},
	{"kexec_file_load", 0, kexec_file_none},
	{"init_module", 0, init_module_none},
	{"finit_module", 0, finit_module_none},
	{"delete_module", 0, delete_module_none},
	{"clock_settime", 0, clock_set},
	{"settimeofday", 0, settimeofday_none},
	{"adjtimex", 0, adjtimex_tick},
	{"clock_adjtime", 0, clock_adjtime_tick},
	{"syslog", 0, syslog_size},
	{"reboot", 0, reboot_bad_magic},
	{"swapon", 0, swapon_none},
	{"swapoff", 0, swapoff_none},
	{"acct", 0, acct_none},
	{"quotactl", 0, quotactl_sync},
	{"iopl", 0, iopl_3},
	{"ioperm", 0, ioperm_port},
	{"vhangup", 0, vhangup_self},
	{"sethostname", 0, sethostname_same},
	{"setdomainname", 0, setdomainname_same},
	{"name_to_handle_at", 1, name_to_handle},
	{"open_by_handle_at", 1, open_by_handle},
	{"fanotify_init", 0, fanotify},
	{"lookup_dcookie", 0, lookup_dcookie},
	{"personality", 1, set_personality},
	{"seccomp_listener", 0, seccomp_listener},
	{"set_securebits", 0, set_securebits},
	{"set_mm", 0, set_mm},
	{"nr", 1, nr_raw},
	{"int80_getpid", 0, int80_getpid},
	{"int80_open", 1, int80_open},
	{"int80_socketcall", 0, int80_socketcall},
	{0},
};
