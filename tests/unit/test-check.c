/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cell that a probe of `sandlock check` runs in, with probes that hang, crash, and leave
 * processes behind; and the reasons of failing calls, kernel by kernel.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "confine/raw_util.h"
#include "lib/check.h"

/* Shared with the probes, as in the check itself. */
static struct probe_result *shared;
static volatile long *shared_pid;

static int set_up(void **state)
{
	shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (shared == MAP_FAILED)
		return -1;
	shared_pid = (volatile long *)(void *)((char *)shared + 2048);
	return 0;
}

static int tear_down(void **state)
{
	return munmap(shared, 4096);
}

static int probe_fine(const struct check_env *env, struct probe_result *res, int arg)
{
	res->value = arg;
	return 0;
}

static int probe_refused(const struct check_env *env, struct probe_result *res, int arg)
{
	return probe_error(res, "mount", -EPERM);
}

static int probe_first_wins(const struct check_env *env, struct probe_result *res, int arg)
{
	probe_say(res, CHECK_DEGRADED, "first");
	return probe_error(res, "second", -EPERM);
}

static int probe_hangs(const struct check_env *env, struct probe_result *res, int arg)
{
	/* Its child must go with it. */
	long pid = probe_fork(res, 0);
	if (pid > 0)
		*shared_pid = pid;
	while (pid >= 0)
		raw_syscall5(SYS_ppoll, NULL, 0, NULL, NULL, 0);
	return -1;
}

static int probe_crashes(const struct check_env *env, struct probe_result *res, int arg)
{
	long page = raw_syscall6(SYS_mmap, 0, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	*(volatile char *)(uintptr_t)page = 1;
	return 0;
}

static int probe_child_crashes(const struct check_env *env, struct probe_result *res, int arg)
{
	long pid = probe_fork(res, 0);
	if (pid == 0) {
		raw_syscall2(SYS_kill, raw_syscall0(SYS_getpid), SIGKILL);
		raw_exit(0);
	}
	return probe_wait(res, pid);
}

static int probe_leaves_child(const struct check_env *env, struct probe_result *res, int arg)
{
	long pid = probe_fork(res, 0);
	while (pid == 0)
		raw_syscall5(SYS_ppoll, NULL, 0, NULL, NULL, 0);
	*shared_pid = pid;
	return 0;
}

static struct check_row run(int (*fn)(const struct check_env *, struct probe_result *, int))
{
	struct check_env env = {.work_fd = -1,
				.place = {.kernel = KERNEL(6, 1), .outer_filter = true}};
	struct probe p = {.id = "trial",
			  .tried = "try",
			  .fn = fn,
			  .arg = 7,
			  .value_label = "n",
			  .since = KERNEL(5, 0),
			  .remedy = "mend it"};
	struct check_row row = {.id = p.id};
	probe_run(&p, &env, shared);
	check_judge(&env, &p, shared, &row);
	/* The caller's wait sees nothing of all this. */
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
	assert_int_equal(errno, ECHILD);
	return row;
}

static void row_done(struct check_row *row)
{
	free(row->detail);
	free(row->remedy);
}

static void expect(int (*fn)(const struct check_env *, struct probe_result *, int),
		   enum check_status status, const char *detail)
{
	struct check_row row = run(fn);
	assert_int_equal(row.status, status);
	assert_string_equal(row.detail, detail);
	if (status == CHECK_OK)
		assert_null(row.remedy);
	else
		assert_string_equal(row.remedy, "mend it");
	row_done(&row);
}

static void test_outcomes(void **state)
{
	expect(probe_fine, CHECK_OK, "n 7");
	expect(probe_refused, CHECK_BLOCKED,
	       "mount: Operation not permitted (an outer seccomp filter or a security module "
	       "blocks "
	       "mount)");
	expect(probe_first_wins, CHECK_DEGRADED, "first");
}

static void test_crash_is_told(void **state)
{
	expect(probe_crashes, CHECK_FAILED,
	       "the process that tried it was killed by signal 11 (Segmentation fault)");
	expect(probe_child_crashes, CHECK_FAILED,
	       "the process that tried it was killed by signal 9 (Killed)");
}

static void assert_gone(long pid)
{
	assert_true(pid > 0);
	assert_int_equal(kill((pid_t)pid, 0), -1);
	assert_int_equal(errno, ESRCH);
}

static void test_hanging_probe_is_stopped(void **state)
{
	expect(probe_hangs, CHECK_FAILED, "it did not end within 2 s and was stopped");
	assert_gone(*shared_pid);
}

static void test_what_a_probe_leaves_is_collected(void **state)
{
	expect(probe_leaves_child, CHECK_OK, "n 0");
	assert_gone(*shared_pid);
}

/* A host that has handlers and blocked signals finds them as they were. */
static void test_signals_of_the_caller_stay(void **state)
{
	sigset_t before;
	sigset_t after;
	sigemptyset(&before);
	sigaddset(&before, SIGUSR1);
	assert_int_equal(sigprocmask(SIG_SETMASK, &before, NULL), 0);
	expect(probe_fine, CHECK_OK, "n 7");
	assert_int_equal(sigprocmask(SIG_SETMASK, NULL, &after), 0);
	assert_int_equal(sigismember(&after, SIGUSR1), 1);
	assert_int_equal(sigismember(&after, SIGTERM), 0);
	sigemptyset(&before);
	sigprocmask(SIG_SETMASK, &before, NULL);
}

/* clang-format off */
static const struct {
	unsigned int kernel;
	bool filter;
	unsigned int since;
	int code;
	enum call_verdict verdict;
	const char *why;
} reasons[] = {
	{KERNEL(5, 4), false, KERNEL(5, 9), ENOSYS, CALL_MISSING, "Linux 5.9 or later is needed, and this is X"},
	{KERNEL(5, 4), true,  KERNEL(5, 9), ENOSYS, CALL_MISSING, "Linux 5.9 or later is needed, and this is X"},
	{KERNEL(6, 1), true,  KERNEL(5, 9), ENOSYS, CALL_BLOCKED, "an outer seccomp filter hides call"},
	{KERNEL(6, 1), false, KERNEL(5, 9), ENOSYS, CALL_MISSING, "the kernel was built without call"},
	{0,            false, KERNEL(5, 9), ENOSYS, CALL_MISSING, "the kernel was built without call"},
	{KERNEL(6, 1), true,  0,            EPERM,  CALL_BLOCKED, "an outer seccomp filter or a security module blocks call"},
	{KERNEL(6, 1), false, 0,            EPERM,  CALL_BLOCKED, "a security module or a setting of the kernel blocks call"},
	{KERNEL(5, 4), false, KERNEL(5, 9), EINVAL, CALL_MISSING, "Linux 5.9 or later is needed, and this is X"},
	{KERNEL(6, 1), false, KERNEL(5, 9), EINVAL, CALL_MISSING, "this kernel does not know it"},
	{KERNEL(6, 1), true,  KERNEL(5, 9), EINVAL, CALL_BLOCKED, "an outer seccomp filter refuses it"},
	{KERNEL(6, 1), true,  0,            EINVAL, CALL_OTHER,   ""},
	{KERNEL(6, 1), true,  0,            ENOSPC, CALL_BLOCKED, "a limit of the kernel is reached or set to zero"},
	{KERNEL(6, 1), true,  0,            EMFILE, CALL_OTHER,   ""},
	{KERNEL(6, 1), false, 0,            EACCES, CALL_BLOCKED, "this user may not, or a security module blocks it"},
};
/* clang-format on */

static void test_reasons(void **state)
{
	for (size_t i = 0; i < sizeof(reasons) / sizeof(reasons[0]); i++) {
		struct call_place place = {.kernel = reasons[i].kernel,
					   .outer_filter = reasons[i].filter,
					   .release = "X"};
		struct call_reason r =
			call_judge(&place, "call", reasons[i].since, reasons[i].code);
		assert_int_equal(r.verdict, reasons[i].verdict);
		assert_string_equal(r.why, reasons[i].why);
		assert_int_equal(r.by_filter,
				 r.verdict == CALL_BLOCKED && strstr(r.why, "filter") != NULL);
	}
}

static void expect_landlock(unsigned int kernel, bool filter, int code, const char *why)
{
	struct call_place place = {.kernel = kernel, .outer_filter = filter, .release = "X"};
	assert_string_equal(call_judge_landlock(&place, code).why, why);
}

static void test_landlock_reasons(void **state)
{
	expect_landlock(KERNEL(5, 10), false, ENOSYS,
			"this kernel (X) is too old: Linux 5.13 or later has Landlock");
	expect_landlock(KERNEL(6, 1), false, ENOSYS,
			"this kernel was built without it (CONFIG_SECURITY_LANDLOCK)");
	expect_landlock(KERNEL(6, 1), true, ENOSYS,
			"an outer seccomp filter hides landlock_create_ruleset: allow it there");
	expect_landlock(KERNEL(6, 1), false, EOPNOTSUPP,
			"it was not enabled at boot: add landlock to the lsm= boot parameter");
	expect_landlock(KERNEL(6, 1), true, EPERM,
			"an outer seccomp filter blocks landlock_create_ruleset: allow it there");
}

/* Every row has a name of its own, says what it tries, and needs only rows that come before it. */
static void test_tables(void **state)
{
	static const struct probe_group *const groups[] = {
		&check_landlock_group, &check_seccomp_group, &check_process_group,
		&check_namespace_group, &check_cgroup_group};
	const char *seen[128];
	size_t n = 0;
	for (size_t g = 0; g < 5; g++) {
		for (size_t i = 0; i < groups[g]->n; i++) {
			const struct probe *p = &groups[g]->probes[i];
			bool found = p->needs == NULL;
			assert_non_null(p->tried);
			assert_non_null(p->fn);
			for (size_t k = 0; k < n; k++) {
				assert_string_not_equal(seen[k], p->id);
				found = found || strcmp(seen[k], p->needs) == 0;
			}
			assert_true(found);
			seen[n++] = p->id;
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_outcomes),
		cmocka_unit_test(test_crash_is_told),
		cmocka_unit_test(test_hanging_probe_is_stopped),
		cmocka_unit_test(test_what_a_probe_leaves_is_collected),
		cmocka_unit_test(test_signals_of_the_caller_stay),
		cmocka_unit_test(test_reasons),
		cmocka_unit_test(test_landlock_reasons),
		cmocka_unit_test(test_tables),
	};
	return cmocka_run_group_tests_name("check", tests, set_up, tear_down);
}
