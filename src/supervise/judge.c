/* SPDX-License-Identifier: Apache-2.0 */
/* Whether an object that was resolved lies in a grant. */
#include "supervise/judge.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/util.h"
#include "supervise/box.h"
#include "supervise/walk.h"
#include "sys/at.h"

/* 1: the name leads to the object from the task's root; 0: not (any more). */
static int leads_there(struct call *call, const struct resolved *r)
{
	struct at_info info;
	int root = walk_root(call);
	if (root < 0)
		return root;
	uint64_t how =
		RESOLVE_IN_ROOT | RESOLVE_NO_SYMLINKS | (call->on_worker ? 0 : RESOLVE_CACHED);
	auto_close int fd = at_open(root, r->path, O_NOFOLLOW, how);
	if (fd == -EAGAIN && !call->on_worker)
		return -EAGAIN;
	if (fd < 0)
		return 0;
	int e = at_info(fd, &info);
	return e < 0 ? e : info.dev == r->dev && info.ino == r->ino;
}

/*
 * 1: the grant's name still leads to the object that was granted, which the kernel's rules and
 * mounts go by; 0: that was moved away or removed, and its name may be another's now.
 */
static int is_in_place(struct call *call, const struct grant *grant)
{
	char path[PATH_MAX];
	struct at_info info;
	if (!grant->ino)
		return 1; /* of a mount that is the base's own */
	if (grant->fd >= 0)
		return at_name(grant->fd, path, sizeof(path)) >= 0 && str_eq(path, grant->path);
	int root = walk_root(call);
	if (root < 0)
		return root;
	uint64_t how =
		RESOLVE_IN_ROOT | RESOLVE_NO_SYMLINKS | (call->on_worker ? 0 : RESOLVE_CACHED);
	auto_close int fd = at_open(root, grant->path, O_NOFOLLOW, how);
	if (fd == -EAGAIN && !call->on_worker)
		return -EAGAIN;
	return fd >= 0 && at_info(fd, &info) == 0 && info.dev == grant->dev &&
	       info.ino == grant->ino;
}

/* Whether the name of R, which GRANT covers, is to be believed: 1 or 0. */
static int confirm(struct call *call, const struct grant *grant, const struct resolved *r)
{
	int e = is_in_place(call, grant);
	if (e <= 0)
		return e;
	if (!call->box->base && grant->fd >= 0 && r->mnt == grant->mnt)
		return 1;
	if (r->deleted)
		return grant->fd < 0 || r->dev == grant->dev;
	return leads_there(call, r);
}

int judge_grant(struct call *call, const struct resolved *r, unsigned int rights,
		const struct grant **ret)
{
	const struct grants *g = &call->box->grants;
	const struct grant *grant = NULL;
	*ret = NULL;
	if (r->path[0] == '/')
		grant = grants_find(g, r->path, rights);
	for (; grant; grant = grants_find_outer(g, r->path, rights, grant)) {
		int e = confirm(call, grant, r);
		if (e < 0)
			return e;
		if (e == 0)
			continue;
		*ret = grant;
		return 0;
	}
	return 0;
}

int judge_write(struct call *call, const struct resolved *r)
{
	const struct grant *grant;
	if (r->anonymous)
		return 1;
	int e = judge_grant(call, r, GRANT_WRITE, &grant);
	return e < 0 ? e : grant != NULL;
}

bool judge_is_quick(const struct call *call, const struct resolved *r)
{
	const struct grants *g = &call->box->grants;
	if (call->on_worker || r->anonymous)
		return true;
	for (size_t i = 0; i < g->n; i++)
		/* Files of an overlay may have another device than its directories. */
		if (g->v[i].quick && (g->v[i].dev == r->dev || g->v[i].mnt == r->mnt))
			return true;
	return false;
}

struct verdict judge_failed(int error)
{
	switch (error) {
	case -EAGAIN:
		return (struct verdict){.answer = ANSWER_WORKER};
	case -ESRCH:
		return (struct verdict){.answer = ANSWER_GONE};
	default:
		return verdict_errno(-error);
	}
}

struct verdict judge_refuse(struct call *call, const char *op, const char *text,
			    const struct resolved *r, const char *flag, int error)
{
	AUTO(buf_done) struct buf allow = BUF_INIT(4 * PATH_MAX + 16);
	const char *path = r->path;
	if (r->path[0] != '/' || r->deleted)
		flag = NULL;
	if (flag) {
		buf_printf(&allow, "%s ", flag);
		buf_add_shell(&allow, path);
	}
	struct refusal refusal = {
		.op = op,
		.object = *text ? text : path,
		.resolved = *text ? path : NULL,
		.rule = flag && str_eq(flag, "-r") ? "no grant covers it"
						   : "no write grant covers it",
		.allow = flag && !allow.error ? buf_text(&allow) : NULL,
		.error = error,
	};
	return call_refuse(call, &refusal);
}
