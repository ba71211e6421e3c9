/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Acting with the task's rights. Raw calls: libc's change all threads of the process. The
 * capabilities stay permitted, which is what makes the way back possible.
 */
#include "supervise/act.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/util.h"
#include "supervise/box.h"

static int set_caps(struct __user_cap_data_struct caps[2])
{
	struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
	return syscall(SYS_capset, &head, caps) < 0 ? -errno : 0;
}

static int set_ids(uid_t uid, gid_t gid)
{
	/* Both return the previous value and no error; an impossible id asks without changing. */
	syscall(SYS_setfsgid, gid);
	syscall(SYS_setfsuid, uid);
	if ((gid_t)syscall(SYS_setfsgid, -1) != gid || (uid_t)syscall(SYS_setfsuid, -1) != uid)
		return -EPERM;
	return 0;
}

static int save(struct act *ret)
{
	struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
	if (syscall(SYS_capget, &head, ret->caps) < 0)
		return -errno;
	ret->fsuid = (uid_t)syscall(SYS_setfsuid, -1);
	ret->fsgid = (gid_t)syscall(SYS_setfsgid, -1);
	ret->n_groups = (int)syscall(SYS_getgroups, 0, NULL);
	if (ret->n_groups < 0)
		return -errno;
	ret->groups = xcalloc((size_t)ret->n_groups + 1, sizeof(gid_t));
	ret->n_groups = (int)syscall(SYS_getgroups, ret->n_groups, ret->groups);
	return ret->n_groups < 0 ? -errno : 0;
}

int act_begin(const struct box *box, struct act *ret_saved)
{
	memset(ret_saved, 0, sizeof(*ret_saved));
	if (!box->as_root)
		return 0;
	struct act act = {0};
	int r = save(&act);
	if (r < 0) {
		free(act.groups);
		return r;
	}
	act.changed = true;
	struct __user_cap_data_struct none[2];
	memcpy(none, act.caps, sizeof(none));
	none[0].effective = none[1].effective = 0;
	/* As the child does it when it changes its ids: no supplementary group. */
	if (syscall(SYS_setgroups, 0, NULL) < 0)
		r = -errno;
	if (r == 0)
		r = set_ids(box->host_uid, box->host_gid);
	if (r == 0)
		r = set_caps(none);
	if (r < 0) {
		act_end(&act);
		return r;
	}
	*ret_saved = act;
	return 0;
}

void act_end(struct act *act)
{
	if (!act->changed)
		return;
	act->changed = false;
	int r = set_caps(act->caps);
	if (r == 0)
		r = set_ids(act->fsuid, act->fsgid);
	/* A change of the file system's user id changes the file capabilities with it. */
	if (r == 0)
		r = set_caps(act->caps);
	if (r == 0 && syscall(SYS_setgroups, act->n_groups, act->groups) < 0)
		r = -errno;
	free(take_ptr(act->groups));
	if (r < 0)
		util_abort("a supervisor thread cannot take its rights back");
}

void act_end_cleanup(struct act *act)
{
	act_end(act);
}
