/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Walks the syscall table and fails on a hole: a row without number, a number given twice, a class
 * that its columns contradict, a family without the argument that it is about. Whether every call
 * of the kernel has a row is tested by tools/syscall-list.py.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "policy/syscall.h"

static bool has_arg(const struct syscall_row *row, enum syscall_arg arg)
{
	for (size_t i = 0; i < ARRAY_SIZE(row->args); i++) {
		if (row->args[i] == arg)
			return true;
	}
	return false;
}

static void fail_row(const struct syscall_row *row, const char *reason)
{
	fail_msg("%s: %s", row->name, reason);
}

static void test_numbers(void **state)
{
	static const struct syscall_row *seen[FILTER_ARCH_COUNT][SYSCALL_NR_MAX + 1];

	for (size_t i = 0; i < syscall_table_n; i++) {
		const struct syscall_row *row = &syscall_table[i];
		bool any = false;
		for (size_t a = 0; a < FILTER_ARCH_COUNT; a++) {
			int nr = row->nr[a];
			assert_in_range(nr + 1, 0, SYSCALL_NR_MAX + 1);
			if (nr < 0)
				continue;
			any = true;
			if (seen[a][nr])
				fail_row(row, "another row has its number");
			seen[a][nr] = row;
			assert_ptr_equal(syscall_by_nr((enum filter_arch)a, (uint32_t)nr), row);
		}
		if (!any)
			fail_row(row, "no architecture has it");
	}
}

static void test_generic_numbers(void **state)
{
	for (size_t i = 0; i < syscall_table_n; i++) {
		const struct syscall_row *row = &syscall_table[i];
		int x86 = row->nr[FILTER_X86_64];
		int arm = row->nr[FILTER_AARCH64];
		int riscv = row->nr[FILTER_RISCV64];
		/* From 424 on there is one list for all. */
		if ((x86 >= 424 || arm >= 424 || riscv >= 424) && (x86 != arm || arm != riscv))
			fail_row(row, "a number from 424 on is the same everywhere");
		/* Below, aarch64 and riscv64 share the generic list where both have the call. */
		if (arm >= 0 && riscv >= 0 && arm != riscv)
			fail_row(row, "aarch64 and riscv64 differ");
	}
}

static void test_unknown_numbers(void **state)
{
	assert_null(syscall_by_nr(FILTER_X86_64, 337));
	assert_null(syscall_by_nr(FILTER_X86_64, 0x40000000));
	assert_null(syscall_by_nr(FILTER_X86_64, UINT32_MAX));
	assert_null(syscall_by_nr(FILTER_RISCV64, 38));
	assert_string_equal(syscall_by_nr(FILTER_AARCH64, 38)->name, "renameat");
	assert_string_equal(syscall_by_nr(FILTER_X86_64, 59)->name, "execve");
	assert_string_equal(syscall_by_nr(FILTER_RISCV64, 221)->name, "execve");
}

static void test_names(void **state)
{
	for (size_t i = 0; i < syscall_table_n; i++) {
		assert_non_null(syscall_table[i].name);
		for (size_t j = i + 1; j < syscall_table_n; j++) {
			if (str_eq(syscall_table[i].name, syscall_table[j].name))
				fail_row(&syscall_table[i], "it has two rows");
		}
		assert_ptr_equal(syscall_by_name(syscall_table[i].name), &syscall_table[i]);
	}
	assert_null(syscall_by_name(""));
	assert_null(syscall_by_name("READ"));
	assert_null(syscall_by_name("read "));
}

static void test_aliases(void **state)
{
	assert_string_equal(syscall_by_name("fstatat")->name, "newfstatat");
	assert_string_equal(syscall_by_name("fstatat64")->name, "newfstatat");
	assert_string_equal(syscall_by_name("newfstatat")->name, "newfstatat");
	assert_string_equal(syscall_by_name("umount")->name, "umount2");
	assert_string_equal(syscall_by_name("prlimit")->name, "prlimit64");
	assert_string_equal(syscall_by_name("sendfile64")->name, "sendfile");
}

static void test_columns(void **state)
{
	for (size_t i = 0; i < syscall_table_n; i++) {
		const struct syscall_row *row = &syscall_table[i];
		assert_in_range(row->class, 0, SYSCALL_CLASS_COUNT - 1);
		assert_in_range(row->check, 0, CHECK_COUNT - 1);
		assert_in_range(row->family, 0, FAMILY_COUNT - 1);
		bool checked = row->class == SYSCALL_ARGS || row->class == SYSCALL_TUNE;
		if (checked != (row->check != CHECK_NONE))
			fail_row(row, "a checked class needs a check, others have none");
		if ((row->class == SYSCALL_SYSV) != (row->groups == GROUP_SYSV_IPC))
			fail_row(row, "class and group sysv_ipc go together");
		if ((row->class == SYSCALL_POSIX_MQ) != (row->groups == GROUP_POSIX_MQ))
			fail_row(row, "class and group posix_mq go together");
		if ((row->class == SYSCALL_METADATA) != (row->groups == GROUP_METADATA))
			fail_row(row, "class and group metadata go together");
		if ((row->class == SYSCALL_TUNE) != (row->groups == GROUP_TUNE))
			fail_row(row, "class and group tune go together");
		if (row->class == SYSCALL_ENOSYS && !row->no_waiver)
			fail_row(row, "what is answered ENOSYS cannot be waived");
		if (row->class == SYSCALL_ALLOW && row->no_waiver)
			fail_row(row, "what is allowed needs no reason against a waiver");
	}
}

static void check_args(const struct syscall_row *row)
{
	for (size_t i = 0; i < ARRAY_SIZE(row->args); i++) {
		assert_in_range(row->args[i], 0, ARG_COUNT - 1);
		if (row->args[i] != ARG_DIRFD)
			continue;
		if (i + 1 == ARRAY_SIZE(row->args) || row->args[i + 1] != ARG_PATH)
			fail_row(row, "a directory descriptor belongs to the path behind it");
	}
	size_t len = strlen(row->name);
	bool at = len > 2 && (str_ends(row->name, "at") || str_ends(row->name, "at2"));
	/* Names that end so by chance, and calls that take no directory. */
	if (str_starts(row->name, "sh") || str_ends(row->name, "stat") ||
	    str_eq(row->name, "creat") || str_starts(row->name, "open_by_handle"))
		at = false;
	if (at && !has_arg(row, ARG_DIRFD))
		fail_row(row, "an ...at call has a directory descriptor");
}

static bool family_has_paths(enum syscall_family family)
{
	return family == FAMILY_CREATE || family == FAMILY_EXEC || family == FAMILY_LINK ||
	       family == FAMILY_REMOVE;
}

static bool family_has_address(enum syscall_family family)
{
	return family == FAMILY_CONNECT || family == FAMILY_ACCEPT || family == FAMILY_SOCKNAME;
}

static void test_arguments(void **state)
{
	for (size_t i = 0; i < syscall_table_n; i++) {
		const struct syscall_row *row = &syscall_table[i];
		check_args(row);
		if (family_has_paths(row->family) && !has_arg(row, ARG_PATH))
			fail_row(row, "its family works on paths");
		if (family_has_address(row->family) && !has_arg(row, ARG_SOCKADDR) &&
		    !has_arg(row, ARG_SOCKADDR_OUT))
			fail_row(row, "its family works on socket addresses");
		if (has_arg(row, ARG_PATH) && row->family == FAMILY_NONE)
			fail_row(row, "a call with a path has a family");
		if ((row->family == FAMILY_TUNE || row->family == FAMILY_SIGNAL) &&
		    !has_arg(row, ARG_PID) && !has_arg(row, ARG_FD))
			fail_row(row, "its family names a process");
	}
}

static void test_groups(void **state)
{
	uint16_t seen = 0;
	uint16_t bit = 0;

	for (size_t g = 0;; g++) {
		const char *name = syscall_group_name(g, &bit);
		if (!name)
			break;
		struct syscall_set set = {0};
		assert_true(syscall_set_add(&set, name));
		assert_false(seen & bit);
		seen |= bit;
		size_t members = 0;
		for (size_t i = 0; i < syscall_table_n; i++) {
			bool member = (syscall_table[i].groups & bit) != 0;
			assert_int_equal(member, syscall_set_has(&set, i));
			members += member;
		}
		assert_true(members > 0);
		/* A group that is called like a call contains it. */
		const struct syscall_row *row = syscall_by_name(name);
		if (row && !(row->groups & bit))
			fail_row(row, "the group of its name does not hold it");
	}
	for (size_t i = 0; i < syscall_table_n; i++)
		assert_int_equal(syscall_table[i].groups & ~seen, 0);
}

static void test_ptrace_group(void **state)
{
	struct syscall_set set = {0};
	size_t members = 0;

	assert_true(syscall_set_add(&set, "ptrace"));
	for (size_t i = 0; i < syscall_table_n; i++)
		members += syscall_set_has(&set, i);
	assert_int_equal(members, 3);
	assert_true(syscall_set_has(
		&set, (size_t)(syscall_by_name("process_vm_writev") - syscall_table)));
}

static void test_unknown_word(void **state)
{
	struct syscall_set set = {0};
	struct syscall_set empty = {0};

	assert_false(syscall_set_add(&set, "no_such_call"));
	assert_memory_equal(&set, &empty, sizeof(set));
}

/* decisions.md 11: these names are refused with a reason. */
static void test_never_waived(void **state)
{
	static const char *const names[] = {
		"io_uring_setup",
		"io_uring_enter",
		"io_uring_register",
		"unshare",
		"setns",
		"mount",
		"umount2",
		"pivot_root",
		"chroot",
		"open_tree",
		"open_tree_attr",
		"move_mount",
		"fsopen",
		"fsconfig",
		"fsmount",
		"fspick",
		"mount_setattr",
		"bpf",
		"open_by_handle_at",
		"seccomp",
		"init_module",
		"finit_module",
		"delete_module",
		"kexec_load",
		"kexec_file_load",
		"clone",
		"clone3",
		"socket",
		"ioctl",
		"prctl",
	};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		const struct syscall_row *row = syscall_by_name(names[i]);
		assert_non_null(row);
		if (!row->no_waiver)
			fail_row(row, "it must not be waived");
	}
}

static void test_nearest(void **state)
{
	assert_string_equal(syscall_nearest("shmgett"), "shmget");
	assert_string_equal(syscall_nearest("sysv-ipc"), "sysv_ipc");
	assert_string_equal(syscall_nearest("iouring"), "io_uring");
	assert_string_equal(syscall_nearest("fstatta"), "fstatat");
	assert_null(syscall_nearest("x"));
	assert_null(syscall_nearest(""));
	assert_null(syscall_nearest("completely_different"));
	assert_null(syscall_nearest("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
				    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_numbers),		cmocka_unit_test(test_generic_numbers),
		cmocka_unit_test(test_unknown_numbers), cmocka_unit_test(test_names),
		cmocka_unit_test(test_aliases),		cmocka_unit_test(test_columns),
		cmocka_unit_test(test_arguments),	cmocka_unit_test(test_groups),
		cmocka_unit_test(test_ptrace_group),	cmocka_unit_test(test_unknown_word),
		cmocka_unit_test(test_never_waived),	cmocka_unit_test(test_nearest),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
