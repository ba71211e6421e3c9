/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ids that a peer sees. connect and listen record the effective ids of whoever calls them, and
 * a service behind a granted socket trusts them: where the host is root they must be the sandbox's,
 * which act.h, made for files, does not change. Raw calls: libc's change all threads. Real and
 * saved ids stay root's, so that the thread can go back and the sandbox cannot signal it.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/util.h"
#include "supervise/box.h"
#include "supervise/sock.h"

static bool set_caps(const struct __user_cap_data_struct *caps)
{
	struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
	return syscall(SYS_capset, &head, caps) == 0;
}

static bool save(struct sock_ids *ret)
{
	struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
	if (syscall(SYS_capget, &head, ret->caps) < 0)
		return false;
	ret->uid = (uint32_t)syscall(SYS_geteuid);
	ret->gid = (uint32_t)syscall(SYS_getegid);
	ret->n_groups = (int)syscall(SYS_getgroups, 0, NULL);
	if (ret->n_groups < 0)
		return false;
	ret->groups = xcalloc((size_t)ret->n_groups + 1, sizeof(*ret->groups));
	ret->n_groups = (int)syscall(SYS_getgroups, ret->n_groups, ret->groups);
	return ret->n_groups >= 0;
}

bool sock_ids_begin(const struct box *box, struct sock_ids *ret_saved)
{
	struct __user_cap_data_struct none[2];
	struct sock_ids ids = {0};
	*ret_saved = ids;
	if (!box->as_root)
		return true;
	if (!save(&ids)) {
		free(ids.groups);
		return false;
	}
	memcpy(none, ids.caps, sizeof(none));
	none[0].effective = none[1].effective = 0;
	ids.changed = true;
	*ret_saved = ids;
	if (syscall(SYS_setgroups, 0, NULL) == 0 &&
	    syscall(SYS_setresgid, -1, box->host_gid, -1) == 0 &&
	    syscall(SYS_setresuid, -1, box->host_uid, -1) == 0 && set_caps(none))
		return true;
	sock_ids_end(ret_saved);
	return false;
}

void sock_ids_end(struct sock_ids *saved)
{
	if (!saved->changed)
		return;
	saved->changed = false;
	/* The old effective id is the real or saved one; the capabilities are permitted still. */
	bool back = syscall(SYS_setresuid, -1, saved->uid, -1) == 0 && set_caps(saved->caps) &&
		    syscall(SYS_setresgid, -1, saved->gid, -1) == 0 &&
		    syscall(SYS_setgroups, saved->n_groups, saved->groups) == 0;
	free(take_ptr(saved->groups));
	if (!back)
		util_abort("a supervisor thread cannot take its ids back");
}
