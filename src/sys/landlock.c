/* SPDX-License-Identifier: Apache-2.0 */
/* Landlock probing; see the header. */
#include "sys/landlock.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "sys/uapi.h"

#define FS_ABI1 ((LANDLOCK_ACCESS_FS_MAKE_SYM << 1) - 1)

static bool ruleset_works(uint64_t fs, uint64_t net, uint64_t scopes)
{
	struct uapi_landlock_ruleset_attr attr = {fs, net, scopes};
	size_t size = scopes ? sizeof(attr) : net ? 16 : 8;
	long fd = syscall(SYS_landlock_create_ruleset, &attr, size, 0);
	if (fd < 0)
		return false;
	close((int)fd);
	return true;
}

void landlock_probe(struct landlock_caps *ret_caps)
{
	static const struct {
		int abi;
		uint64_t fs, net, scopes;
	} steps[] = {
		/* clang-format off */
		{1, FS_ABI1, 0, 0},
		{2, LANDLOCK_ACCESS_FS_REFER, 0, 0},
		{3, LANDLOCK_ACCESS_FS_TRUNCATE, 0, 0},
		{4, 0, LANDLOCK_ACCESS_NET_BIND_TCP | LANDLOCK_ACCESS_NET_CONNECT_TCP, 0},
		{5, LANDLOCK_ACCESS_FS_IOCTL_DEV, 0, 0},
		{6, 0, 0, LANDLOCK_SCOPE_SIGNAL},
		{6, 0, 0, LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET},
		{9, LANDLOCK_ACCESS_FS_RESOLVE_UNIX, 0, 0},
		/* clang-format on */
	};
	struct landlock_caps caps = {0};
	long abi = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
	if (abi < 1) {
		caps.error = abi < 0 ? errno : EOPNOTSUPP;
		*ret_caps = caps;
		return;
	}
	caps.abi = (int)abi;
	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
		if (caps.abi < steps[i].abi ||
		    !ruleset_works(steps[i].fs, steps[i].net, steps[i].scopes))
			continue;
		caps.fs |= steps[i].fs;
		caps.net |= steps[i].net;
		caps.scopes |= steps[i].scopes;
	}
	*ret_caps = caps;
}
