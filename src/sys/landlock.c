/* SPDX-License-Identifier: Apache-2.0 */
/* Landlock probing; see the header. */
#include "sys/landlock.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "sys/uapi.h"

struct rights {
	int abi;
	uint64_t fs, net, scopes;
};

static const struct rights steps[] = {
	/* clang-format off */
	{1, LANDLOCK_FS_ABI1, 0, 0},
	{2, LANDLOCK_ACCESS_FS_REFER, 0, 0},
	{3, LANDLOCK_ACCESS_FS_TRUNCATE, 0, 0},
	{4, 0, LANDLOCK_ACCESS_NET_BIND_TCP | LANDLOCK_ACCESS_NET_CONNECT_TCP, 0},
	{5, LANDLOCK_ACCESS_FS_IOCTL_DEV, 0, 0},
	{6, 0, 0, LANDLOCK_SCOPE_SIGNAL},
	{6, 0, 0, LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET},
	{9, LANDLOCK_ACCESS_FS_RESOLVE_UNIX, 0, 0},
	/* clang-format on */
};

/* 1 if the kernel takes a ruleset of RIGHTS, 0 if it says that it does not know them, or -errno. */
static int ruleset_works(const struct rights *rights)
{
	struct uapi_landlock_ruleset_attr attr = {rights->fs, rights->net, rights->scopes};
	size_t size = rights->scopes ? sizeof(attr) : rights->net ? 16 : 8;
	long fd = syscall(SYS_landlock_create_ruleset, &attr, size, 0);
	if (fd >= 0) {
		close((int)fd);
		return 1;
	}
	return errno == EINVAL || errno == E2BIG || errno == ENOMSG ? 0 : -errno;
}

static int probe_steps(struct landlock_caps *caps)
{
	struct rights all = {0};
	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
		if (caps->abi < steps[i].abi)
			continue;
		all.fs |= steps[i].fs;
		all.net |= steps[i].net;
		all.scopes |= steps[i].scopes;
	}
	int r = ruleset_works(&all);
	for (size_t i = 0; r >= 0 && i < sizeof(steps) / sizeof(steps[0]); i++) {
		int one = 1;
		if (caps->abi < steps[i].abi)
			continue;
		if (r == 0)
			one = ruleset_works(&steps[i]);
		if (one < 0)
			return one;
		caps->fs |= one ? steps[i].fs : 0;
		caps->net |= one ? steps[i].net : 0;
		caps->scopes |= one ? steps[i].scopes : 0;
	}
	return r < 0 ? r : 0;
}

int landlock_probe(struct landlock_caps *ret_caps)
{
	struct landlock_caps caps = {0};
	long abi = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
	if (abi < 1) {
		caps.error = abi < 0 ? errno : EOPNOTSUPP;
		*ret_caps = caps;
		return 0;
	}
	caps.abi = (int)abi;
	int r = probe_steps(&caps);
	if (r < 0)
		return r;
	*ret_caps = caps;
	return 0;
}
