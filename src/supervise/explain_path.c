/* SPDX-License-Identifier: Apache-2.0 */
/*
 * File calls as Landlock and the base's mounts will judge them. What ends for another reason (no
 * such file, mode bits) is nothing to tell. Nothing here decides anything: a program that changes
 * names meanwhile only misleads what is told of itself.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/util.h"
#include "supervise/box.h"
#include "supervise/explain_path.h"
#include "sys/at.h"

enum { LAST_SIZE = sizeof(((struct resolved *)NULL)->last) };

int explain_read_path(struct call *call, unsigned int which, struct explain_path *ret)
{
	unsigned int seen = 0;
	for (unsigned int i = 0; i < ARRAY_SIZE(call->row->args); i++) {
		if (call->row->args[i] != ARG_PATH || seen++ != which)
			continue;
		bool at = i > 0 && call->row->args[i - 1] == ARG_DIRFD;
		ret->dirfd = at ? call_int(call, i - 1) : AT_FDCWD;
		ret->text[0] = '\0';
		if (!call_arg(call, i) && at)
			return 0; /* utimensat and its like: the descriptor itself */
		ssize_t n = call_read_str(call, call_arg(call, i), ret->text, sizeof(ret->text));
		return n < 0 ? (int)n : 0;
	}
	return -EINVAL;
}

int explain_at_flags(const struct call *call)
{
	for (unsigned int i = 0; i < ARRAY_SIZE(call->row->args); i++) {
		if (call->row->args[i] == ARG_FLAGS)
			return call_int(call, i);
	}
	return 0;
}

int explain_resolve(struct call *call, const struct explain_path *p, unsigned int flags,
		    struct resolved *ret)
{
	int r = resolve_path(call, p->dirfd, p->text, flags, ret);
	if (r == 0 && !judge_is_quick(call, ret))
		r = -EAGAIN;
	return r;
}

/* 1: a grant covers it; 0: none; -EAGAIN. */
static int is_covered(struct call *call, const struct resolved *r, unsigned int rights)
{
	const struct grant *grant = NULL;
	int e = judge_grant(call, r, rights, &grant);
	if (e == 0 && !grant && S_ISCHR(r->mode))
		e = judge_grant(call, r, GRANT_DEVICE, &grant);
	return e < 0 ? e : grant != NULL;
}

int explain_judge(struct call *call, const struct resolved *r, int mode, struct explained *ret)
{
	unsigned int rights = mode & W_OK ? GRANT_WRITE : GRANT_READ;
	if (r->anonymous || r->deleted || r->path[0] != '/')
		return 0;
	int access = at_access(r->fd, mode);
	if (access < 0 && access != -EROFS)
		return 0;
	int covered = is_covered(call, r, rights);
	if (covered != 0)
		return covered < 0 ? covered : 0;
	ret->write = mode & W_OK;
	ret->error = access < 0 ? EROFS : EACCES;
	snprintf(ret->where, sizeof(ret->where), "%s", r->path);
	snprintf(ret->resolved, sizeof(ret->resolved), "%s", r->path);
	return 1;
}

void explain_entry_name(const struct resolved *parent, char *ret_path, size_t size)
{
	const char *slash = str_eq(parent->path, "/") ? "" : "/";
	snprintf(ret_path, size, "%s%s%.*s", parent->path, slash, (int)strcspn(parent->last, "/"),
		 parent->last);
}

/* 1: the name is there, with what it is in INFO; 0: it is not. */
int explain_has_entry(const struct resolved *parent, struct at_info *ret_info)
{
	char name[LAST_SIZE];
	snprintf(name, sizeof(name), "%.*s", (int)strcspn(parent->last, "/"), parent->last);
	return name[0] && at_info_of(parent->fd, name, ret_info) == 0;
}

/* What changes a directory's names, judged on that directory. */
int explain_judge_entry(struct call *call, const struct resolved *parent, struct explained *ret)
{
	int r = explain_judge(call, parent, W_OK | X_OK, ret);
	if (r > 0)
		explain_entry_name(parent, ret->resolved, sizeof(ret->resolved));
	return r;
}

/* --- Telling ------------------------------------------------------------------------------ */

/* A process's directory has another name next time. */
static void add_flag(struct buf *out, const struct explained *e, const char *path)
{
	bool of_process = str_starts(path, "/proc/") && path[6] >= '0' && path[6] <= '9';
	buf_printf(out, "%s%s ", out->len ? " " : "", e->write ? "-w" : "-r");
	buf_add_shell(out, of_process ? "/proc" : path);
}

int explain_tell(struct call *call, const char *text, const struct explained *e)
{
	AUTO(buf_done) struct buf allow = BUF_INIT(8 * PATH_MAX + 16);
	add_flag(&allow, e, e->where);
	if (e->also[0])
		add_flag(&allow, e, e->also);
	struct refusal refusal = {
		.op = explain_op(call),
		.object = text[0] ? text : e->resolved,
		.resolved = text[0] ? e->resolved : NULL,
		.layer = e->error == EROFS || e->mount ? "mount" : "landlock",
		.rule = e->write ? "no write grant covers it" : "no grant covers it",
		.allow = allow.error ? NULL : buf_text(&allow),
		.error = e->error,
	};
	call_refuse(call, &refusal);
	return 0;
}

int explain_with(struct call *call, const struct explain_path *p, explain_judge_fn judge,
		 const void *how)
{
	struct explained found = {0};
	struct act act;
	int r = act_begin(call->box, &act);
	if (r < 0)
		return r;
	r = judge(call, p, how, &found);
	act_end(&act);
	return r > 0 ? explain_tell(call, p->text, &found) : r;
}

/* --- Opening ------------------------------------------------------------------------------ */

static int read_how(struct call *call, uint64_t *ret_flags)
{
	struct open_how how;
	if (call_arg(call, 3) < sizeof(how))
		return -EINVAL;
	int r = call_read(call, call_arg(call, 2), &how, sizeof(how));
	if (r < 0 || how.resolve) /* a walk with rules of its own */
		return r < 0 ? r : -EINVAL;
	*ret_flags = how.flags;
	return 0;
}

static int read_open_flags(struct call *call, uint64_t *ret_flags)
{
	const char *name = call->row->name;
	if (str_eq(name, "openat2"))
		return read_how(call, ret_flags);
	if (str_eq(name, "creat"))
		*ret_flags = O_CREAT | O_WRONLY | O_TRUNC;
	else if (str_eq(name, "open"))
		*ret_flags = (uint32_t)call_int(call, 1);
	else if (str_eq(name, "openat"))
		*ret_flags = (uint32_t)call_int(call, 2);
	else
		return -EINVAL;
	return 0;
}

static int open_mode(uint64_t flags)
{
	int access = (int)(flags & O_ACCMODE);
	int mode = access == O_RDONLY ? R_OK : access == O_WRONLY ? W_OK : R_OK | W_OK;
	return flags & O_TRUNC || (flags & O_TMPFILE) == O_TMPFILE ? mode | W_OK : mode;
}

/* What is there ends for a reason of its own. */
static bool is_no_match(const struct resolved *r, uint64_t flags, int mode)
{
	bool dir = S_ISDIR(r->mode);
	if ((flags & (O_CREAT | O_EXCL)) == (O_CREAT | O_EXCL) || S_ISLNK(r->mode) ||
	    S_ISSOCK(r->mode))
		return true;
	if ((flags & O_TMPFILE) == O_TMPFILE)
		return !dir;
	if (flags & O_DIRECTORY && !dir)
		return true;
	return dir && (mode & W_OK || flags & O_CREAT);
}

static int judge_new(struct call *call, const struct explain_path *p, struct explained *ret)
{
	AUTO(resolved_done) struct resolved parent = RESOLVED_INIT;
	int r = explain_resolve(call, p, RESOLVE_CREATE, &parent);
	if (r == 0 && parent.last[0])
		r = explain_judge_entry(call, &parent, ret);
	return r;
}

static int judge_open(struct call *call, const struct explain_path *p, const void *how,
		      struct explained *ret)
{
	uint64_t flags = *(const uint64_t *)how;
	int mode = open_mode(flags);
	AUTO(resolved_done) struct resolved r = RESOLVED_INIT;
	int e = explain_resolve(call, p, flags & O_NOFOLLOW ? RESOLVE_NOFOLLOW : 0, &r);
	if (e == -ENOENT && flags & O_CREAT)
		return judge_new(call, p, ret);
	if (e < 0 || is_no_match(&r, flags, mode))
		return e;
	if (at_access(r.fd, mode) == -EACCES)
		return 0;
	if (mode & W_OK)
		e = explain_judge(call, &r, W_OK, ret);
	if (e == 0 && mode & R_OK && !S_ISLNK(r.mode))
		e = explain_judge(call, &r, R_OK, ret);
	return e;
}

int explain_open(struct call *call)
{
	struct explain_path p;
	uint64_t flags = 0;
	int r = read_open_flags(call, &flags);
	if (r == 0 && flags & O_PATH)
		return 0;
	if (r == 0)
		r = explain_read_path(call, 0, &p);
	return r < 0 ? r : explain_with(call, &p, judge_open, &flags);
}

static int judge_truncate(struct call *call, const struct explain_path *p, const void *how,
			  struct explained *ret)
{
	AUTO(resolved_done) struct resolved r = RESOLVED_INIT;
	int e = explain_resolve(call, p, 0, &r);
	(void)how;
	return e < 0 || !S_ISREG(r.mode) ? e : explain_judge(call, &r, W_OK, ret);
}

int explain_truncate(struct call *call)
{
	struct explain_path p;
	int r = str_eq(call->row->name, "truncate") ? explain_read_path(call, 0, &p) : -EINVAL;
	return r < 0 ? r : explain_with(call, &p, judge_truncate, NULL);
}

/* --- Metadata in the base ----------------------------------------------------------------- */

/* Landlock leaves metadata alone: it is the mount that counts, once the owner would be let. */
static int judge_metadata(struct call *call, const struct explain_path *p, const void *how,
			  struct explained *ret)
{
	unsigned int flags = *(const unsigned int *)how;
	struct at_info info;
	uint32_t magic = 0;
	uint64_t mount = 0;
	AUTO(resolved_done) struct resolved r = RESOLVED_INIT;
	int e = explain_resolve(call, p, flags, &r);
	if (e < 0 || r.anonymous || r.deleted || r.path[0] != '/')
		return e;
	if (at_info(r.fd, &info) < 0 || info.uid != call->box->host_uid ||
	    at_file_system(r.fd, &magic, &mount) < 0 || !(mount & ST_RDONLY))
		return 0;
	e = is_covered(call, &r, GRANT_WRITE);
	if (e != 0)
		return e < 0 ? e : 0;
	ret->write = true;
	ret->error = EROFS;
	snprintf(ret->where, sizeof(ret->where), "%s", r.path);
	snprintf(ret->resolved, sizeof(ret->resolved), "%s", r.path);
	return 1;
}

int explain_metadata(struct call *call)
{
	const char *name = call->row->name;
	struct explain_path p = {.dirfd = call_int(call, 0)};
	unsigned int flags = RESOLVE_EMPTY;
	int r = call->row->args[0] == ARG_FD ? 0 : explain_read_path(call, 0, &p);
	if (name[0] == 'l' || explain_at_flags(call) & AT_SYMLINK_NOFOLLOW)
		flags |= RESOLVE_NOFOLLOW;
	return r < 0 ? r : explain_with(call, &p, judge_metadata, &flags);
}
