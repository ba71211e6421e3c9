/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Look-ups in the syscall table: by number, by name, by alias and by group. A word means the same
 * rows for allowing and for denying.
 */
#include <string.h>

#include "base/util.h"
#include "policy/options.h"
#include "policy/syscall.h"

struct alias {
	const char *name;
	const char *row;
};

struct group {
	const char *name;
	uint16_t bit;
};

/* clang-format off */

/* Names that libcs, other architectures and other tools' lists have for a row. */
static const struct alias aliases[] = {
	{ "_llseek", "lseek" },
	{ "fadvise64_64", "fadvise64" },
	{ "fcntl64", "fcntl" },
	{ "fstat64", "fstat" },
	{ "fstatat", "newfstatat" },
	{ "fstatat64", "newfstatat" },
	{ "fstatfs64", "fstatfs" },
	{ "ftruncate64", "ftruncate" },
	{ "lstat64", "lstat" },
	{ "mmap2", "mmap" },
	{ "posix_fadvise", "fadvise64" },
	{ "pread", "pread64" },
	{ "prlimit", "prlimit64" },
	{ "pwrite", "pwrite64" },
	{ "sendfile64", "sendfile" },
	{ "stat64", "stat" },
	{ "statfs64", "statfs" },
	{ "truncate64", "truncate" },
	{ "umount", "umount2" },
};

static const struct group groups[] = {
	{ "clock",     GROUP_CLOCK },
	{ "fanotify",  GROUP_FANOTIFY },
	{ "io_uring",  GROUP_IO_URING },
	{ "kexec",     GROUP_KEXEC },
	{ "keyring",   GROUP_KEYRING },
	{ "metadata",  GROUP_METADATA },
	{ "module",    GROUP_MODULE },
	{ "mount",     GROUP_MOUNT },
	{ "namespace", GROUP_NAMESPACE },
	{ "posix_mq",  GROUP_POSIX_MQ },
	{ "ptrace",    GROUP_PTRACE },
	{ "swap",      GROUP_SWAP },
	{ "sysv_ipc",  GROUP_SYSV_IPC },
	{ "tune",      GROUP_TUNE },
};

/* clang-format on */

bool syscall_set_has(const struct syscall_set *set, size_t row)
{
	return (set->bits[row / 64] >> (row % 64)) & 1;
}

static void set_row(struct syscall_set *set, size_t row)
{
	set->bits[row / 64] |= UINT64_C(1) << (row % 64);
}

const struct syscall_row *syscall_by_nr(enum filter_arch arch, uint32_t nr)
{
	if (nr > SYSCALL_NR_MAX)
		return NULL;
	for (size_t i = 0; i < syscall_table_n; i++) {
		if (syscall_table[i].nr[arch] == (int)nr)
			return &syscall_table[i];
	}
	return NULL;
}

const struct syscall_row *syscall_by_name(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(aliases); i++) {
		if (str_eq(aliases[i].name, name)) {
			name = aliases[i].row;
			break;
		}
	}
	for (size_t i = 0; i < syscall_table_n; i++) {
		if (str_eq(syscall_table[i].name, name))
			return &syscall_table[i];
	}
	return NULL;
}

bool syscall_set_add(struct syscall_set *set, const char *word)
{
	for (size_t g = 0; g < ARRAY_SIZE(groups); g++) {
		if (!str_eq(groups[g].name, word))
			continue;
		for (size_t i = 0; i < syscall_table_n; i++) {
			if (syscall_table[i].groups & groups[g].bit)
				set_row(set, i);
		}
		return true;
	}

	const struct syscall_row *row = syscall_by_name(word);
	if (!row)
		return false;
	set_row(set, (size_t)(row - syscall_table));
	return true;
}

const char *syscall_group_name(size_t i, uint16_t *ret_bit)
{
	if (i >= ARRAY_SIZE(groups))
		return NULL;
	*ret_bit = groups[i].bit;
	return groups[i].name;
}

/* The best name so far; a name must be strictly nearer to take its place. */
static void consider(const char *word, const char *name, const char **best, size_t *limit)
{
	size_t distance = option_distance(word, name, *limit);

	if (distance <= *limit) {
		*best = name;
		*limit = distance - 1;
	}
}

const char *syscall_nearest(const char *word)
{
	const char *best = NULL;
	/* A third of the letters may differ, and at least one. */
	size_t limit = strlen(word) / 3 + 1;

	for (size_t i = 0; i < syscall_table_n && limit > 0; i++)
		consider(word, syscall_table[i].name, &best, &limit);
	for (size_t i = 0; i < ARRAY_SIZE(groups) && limit > 0; i++)
		consider(word, groups[i].name, &best, &limit);
	for (size_t i = 0; i < ARRAY_SIZE(aliases) && limit > 0; i++)
		consider(word, aliases[i].name, &best, &limit);
	return best;
}
