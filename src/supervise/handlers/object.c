/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The object of a call that changes metadata. Without the base the grants are judged here. In the
 * base the mounts judge, which every descriptor carries with it; but an inherited descriptor came
 * by a mount of the host, so its object is refused by identity, whatever name leads to it.
 */
#include "supervise/handlers/object.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "supervise/box.h"
#include "sys/at.h"

void object_done_cleanup(struct object *o)
{
	resolved_done(&o->at);
}

int object_read_path(struct call *call, int dirfd, uint64_t addr, struct object *ret)
{
	ret->dirfd = dirfd;
	ret->is_path = true;
	ssize_t n = call_read_str(call, addr, ret->text, sizeof(ret->text));
	return n < 0 ? (int)n : 0;
}

/* Without pidfd_getfd the object is reached by name, where a descriptor opened with O_PATH, which
 * these calls do not take, looks like any other. */
static int take_by_name(struct call *call, int fd, struct object *ret)
{
	char path[48];
	char text[1024];
	snprintf(path, sizeof(path), "/proc/%d/fdinfo/%d", call->tid, fd);
	ssize_t n = at_read_file(AT_FDCWD, path, text, sizeof(text));
	const char *flags = n > 0 ? strstr(text, "flags:") : NULL;
	if (!flags)
		return -EBADF;
	if (strtoul(flags + strlen("flags:"), NULL, 8) & O_PATH)
		return -EBADF;
	ret->is_path = true;
	ret->at.fd = call_fd_path(call, fd);
	return ret->at.fd < 0 ? ret->at.fd : 0;
}

int object_take_fd(struct call *call, int fd, struct object *ret)
{
	ret->dirfd = fd;
	ret->is_path = false;
	ret->at.fd = call_fd_take(call, fd);
	return ret->at.fd == -EPERM ? take_by_name(call, fd, ret) : ret->at.fd < 0 ? ret->at.fd : 0;
}

static int find(struct call *call, struct object *o, unsigned int flags)
{
	if (o->at.fd >= 0)
		return resolved_describe(call, &o->at);
	return resolve_path(call, o->dirfd, o->text, flags, &o->at);
}

static bool is_inherited(const struct box *box, const struct resolved *r)
{
	for (size_t i = 0; i < box->n_inherited; i++)
		if (box->inherited[i].dev == r->dev && box->inherited[i].ino == r->ino)
			return true;
	return false;
}

/* 0: go on; a positive errno: refused; a negative one: no judgement. */
static int judge(struct call *call, const struct object *o)
{
	if (!judge_is_quick(call, &o->at))
		return -EAGAIN;
	if (call->box->base)
		return is_inherited(call->box, &o->at) ? EPERM : 0;
	int r = judge_write(call, &o->at);
	return r < 0 ? r : r > 0 ? 0 : EPERM;
}

struct verdict object_handle(struct call *call, struct object *o, unsigned int flags,
			     const char *op, object_change change, const void *how)
{
	struct act act;
	int r = act_begin(call->box, &act);
	if (r < 0)
		return verdict_errno(EPERM);
	int refused = 0;
	r = find(call, o, flags);
	if (r == 0) {
		r = judge(call, o);
		refused = r > 0 ? r : 0;
	}
	if (r == 0) {
		r = change(o, how);
		/* EAGAIN of a change is an answer, not a wish for a worker. */
		if (r == -EAGAIN)
			r = -EIO;
		/* What the base's mounts refuse is worth a word too. */
		refused = r == -EROFS && call->box->base ? EROFS : 0;
	}
	act_end(&act);
	if (refused)
		return judge_refuse(call, op, o->text, &o->at, "-w", refused);
	return r < 0 ? judge_failed(r) : verdict_value(0);
}
