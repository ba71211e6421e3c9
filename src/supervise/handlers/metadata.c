/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Modes, owners and times. A table says where each call of the family, oldest to newest, has its
 * arguments; all end in the same three changes of a descriptor.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "base/util.h"
#include "supervise/box.h"
#include "supervise/handlers/handlers.h"
#include "supervise/handlers/object.h"
#include "sys/at.h"

enum what {
	WHAT_MODE,
	WHAT_OWNER,
	WHAT_TIMES,
};

/* How the times are written in the task's memory. */
enum time_form {
	FORM_NONE,
	FORM_SECONDS,  /* struct utimbuf */
	FORM_TIMEVAL,  /* two */
	FORM_TIMESPEC, /* two */
};

/* Where the arguments are; -1: the call has none such. */
struct form {
	int nr;
	enum what what;
	int8_t dirfd, path, fd, value, flags;
	bool nofollow;
	enum time_form times;
};

/* clang-format off */
static const struct form forms[] = {
	{ SYS_fchmod,     WHAT_MODE,  -1, -1,  0,  1, -1 },
	{ SYS_fchmodat,   WHAT_MODE,   0,  1, -1,  2, -1 },
	{ __NR_fchmodat2, WHAT_MODE,   0,  1, -1,  2,  3 },
	{ SYS_fchown,     WHAT_OWNER, -1, -1,  0,  1, -1 },
	{ SYS_fchownat,   WHAT_OWNER,  0,  1, -1,  2,  4 },
	{ SYS_utimensat,  WHAT_TIMES,  0,  1, -1,  2,  3, .times = FORM_TIMESPEC },
#ifdef SYS_chmod
	{ SYS_chmod,      WHAT_MODE,  -1,  0, -1,  1, -1 },
	{ SYS_chown,      WHAT_OWNER, -1,  0, -1,  1, -1 },
	{ SYS_lchown,     WHAT_OWNER, -1,  0, -1,  1, -1, .nofollow = true },
	{ SYS_utime,      WHAT_TIMES, -1,  0, -1,  1, -1, .times = FORM_SECONDS },
	{ SYS_utimes,     WHAT_TIMES, -1,  0, -1,  1, -1, .times = FORM_TIMEVAL },
	{ SYS_futimesat,  WHAT_TIMES,  0,  1, -1,  2, -1, .times = FORM_TIMEVAL },
#endif
};
/* clang-format on */

struct change {
	enum what what;
	mode_t mode;
	uid_t uid;
	gid_t gid;
	bool now; /* no times were given */
	struct timespec times[2];
};

static int apply(const struct object *o, const void *how)
{
	const struct change *c = how;
	switch (c->what) {
	case WHAT_MODE:
		/* Older kernels change what is only a symbolic link's own, on some file systems. */
		if (o->is_path && S_ISLNK(o->at.mode))
			return -EOPNOTSUPP;
		return at_set_mode(o->at.fd, o->is_path, c->mode);
	case WHAT_OWNER:
		return at_set_owner(o->at.fd, o->is_path, c->uid, c->gid);
	case WHAT_TIMES:
		return at_set_times(o->at.fd, o->is_path, c->now ? NULL : c->times);
	}
	return -EPERM;
}

static int read_seconds(struct call *call, uint64_t addr, struct change *c)
{
	int64_t raw[2];
	int r = call_read(call, addr, raw, sizeof(raw));
	for (size_t i = 0; i < 2 && r == 0; i++)
		c->times[i] = (struct timespec){.tv_sec = raw[i]};
	return r;
}

static int read_timevals(struct call *call, uint64_t addr, struct change *c)
{
	int64_t raw[4];
	int r = call_read(call, addr, raw, sizeof(raw));
	for (size_t i = 0; i < 2 && r == 0; i++) {
		int64_t us = raw[2 * i + 1];
		if (us < 0 || us >= 1000000)
			return -EINVAL;
		c->times[i] = (struct timespec){.tv_sec = raw[2 * i], .tv_nsec = us * 1000};
	}
	return r;
}

static int read_times(struct call *call, const struct form *form, struct change *c)
{
	uint64_t addr = call_arg(call, (unsigned int)form->value);
	c->now = addr == 0;
	if (c->now)
		return 0;
	switch (form->times) {
	case FORM_SECONDS:
		return read_seconds(call, addr, c);
	case FORM_TIMEVAL:
		return read_timevals(call, addr, c);
	case FORM_TIMESPEC:
		return call_read(call, addr, c->times, sizeof(c->times));
	case FORM_NONE:
		break;
	}
	return -EINVAL;
}

/* What the sandbox calls by its own id is that of the host; all others mean what they say. */
static int read_owner(struct call *call, const struct form *form, struct change *c)
{
	const struct box *box = call->box;
	c->uid = (uid_t)call_int(call, (unsigned int)form->value);
	c->gid = (gid_t)call_int(call, (unsigned int)form->value + 1);
	if (!box->id_map)
		return 0;
	if (!box->trap_chown && ((c->uid != (uid_t)-1 && c->uid != box->uid) ||
				 (c->gid != (gid_t)-1 && c->gid != box->gid)))
		return -EINVAL;
	if (c->uid == box->uid)
		c->uid = box->host_uid;
	if (c->gid == box->gid)
		c->gid = box->host_gid;
	return 0;
}

static int read_change(struct call *call, const struct form *form, struct change *c)
{
	c->what = form->what;
	switch (form->what) {
	case WHAT_MODE:
		c->mode = (mode_t)call_int(call, (unsigned int)form->value) & 07777;
		return 0;
	case WHAT_OWNER:
		return read_owner(call, form, c);
	case WHAT_TIMES:
		return read_times(call, form, c);
	}
	return -EINVAL;
}

static bool changes_nothing(const struct form *form, const struct change *c)
{
	return form->times == FORM_TIMESPEC && !c->now && c->times[0].tv_nsec == UTIME_OMIT &&
	       c->times[1].tv_nsec == UTIME_OMIT;
}

static int read_object(struct call *call, const struct form *form, unsigned int *flags,
		       struct object *o)
{
	int at = form->flags >= 0 ? call_int(call, (unsigned int)form->flags) : 0;
	if (form->fd >= 0)
		return object_take_fd(call, call_int(call, (unsigned int)form->fd), o);
	int dirfd = form->dirfd >= 0 ? call_int(call, (unsigned int)form->dirfd) : AT_FDCWD;
	uint64_t path = call_arg(call, (unsigned int)form->path);
	/* Times of a descriptor: no path, which only the calls with a descriptor take. */
	if (form->what == WHAT_TIMES && path == 0 && form->dirfd >= 0 && dirfd != AT_FDCWD)
		return at ? -EINVAL : object_take_fd(call, dirfd, o);
	if (at & ~(AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH))
		return -EINVAL;
	if (form->nofollow || (at & AT_SYMLINK_NOFOLLOW))
		*flags |= RESOLVE_NOFOLLOW;
	if (at & AT_EMPTY_PATH)
		*flags |= RESOLVE_EMPTY;
	return object_read_path(call, dirfd, path, o);
}

static struct verdict run(struct call *call, const struct form *form)
{
	AUTO(object_done) struct object o = OBJECT_INIT;
	struct change change = {0};
	unsigned int flags = 0;
	int r = read_change(call, form, &change);
	if (r == 0 && changes_nothing(form, &change))
		return verdict_value(0);
	if (r == 0)
		r = read_object(call, form, &flags, &o);
	if (r < 0)
		return judge_failed(r);
	return object_handle(call, &o, flags, call->row->name, apply, &change);
}

struct verdict handle_metadata(struct call *call)
{
	for (size_t i = 0; i < ARRAY_SIZE(forms); i++)
		if (forms[i].nr == call->data.nr)
			return run(call, &forms[i]);
	/* file_setattr: its attributes (immutable, project id) are no business of a sandbox. */
	return call_refuse(call, &(struct refusal){.op = call->row->name,
						   .object = "file attributes",
						   .rule = "they cannot be changed in a sandbox",
						   .error = EPERM});
}
