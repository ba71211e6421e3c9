/* SPDX-License-Identifier: Apache-2.0 */
/*
 * /dev/shm without the base: names in it mean names in a directory of the sandbox's own. What is
 * done there is done here, below that directory and never out of it: its links are the sandbox's.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/util.h"
#include "supervise/act.h"
#include "supervise/box.h"
#include "supervise/grants.h"
#include "supervise/handlers/handlers.h"
#include "supervise/handlers/special.h"
#include "supervise/places.h"
#include "supervise/walk.h"
#include "sys/at.h"

#define BELOW (RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS)

enum { TRIES = 16 };

/* --- Which names ------------------------------------------------------------------------------ */

static const char *skip_slashes(const char *text)
{
	return text + strspn(text, "/");
}

/* What follows DIR in TEXT, which may have more slashes than it needs. */
static const char *rest_of(const char *text, const char *dir)
{
	size_t n = strlen(dir);
	if (text[0] != '/')
		return NULL;
	text = skip_slashes(text) - 1;
	if (strncmp(text, dir, n) != 0 || (text[n] && text[n] != '/'))
		return NULL;
	return skip_slashes(text + n);
}

static bool is_shm_dir(struct call *call, int dirfd)
{
	struct at_info info;
	auto_close int fd = call_fd_path(call, dirfd);
	return fd >= 0 && at_info(fd, &info) == 0 &&
	       places_find(call->box->places, &info) == PLACE_SHM;
}

const char *shm_rest(const char *text, bool from_shm)
{
	const char *rest = rest_of(text, "/dev/shm");
	if (!rest)
		rest = rest_of(text, "/run/shm");
	if (!rest && text[0] && text[0] != '/' && from_shm)
		rest = text;
	if (!rest)
		return NULL;
	for (const char *p = strstr(rest, ".."); p; p = strstr(p + 1, "..")) {
		if ((p == rest || p[-1] == '/') && (p[2] == '/' || !p[2]))
			return NULL;
	}
	return rest;
}

bool shm_is_granted(const struct call *call, const char *rest)
{
	auto_free char *path = xasprintf("/dev/shm%s%s", *rest ? "/" : "", rest);
	return grants_find(&call->box->grants, path, GRANT_READ);
}

/* --- Opening ---------------------------------------------------------------------------------- */

/* The task's umask; our own is our process's. */
static mode_t umask_of(struct call *call)
{
	char path[40];
	char text[4096];
	snprintf(path, sizeof(path), "/proc/%d/status", call->tid);
	ssize_t n = at_read_file(AT_FDCWD, path, text, sizeof(text));
	const char *line = n > 0 ? strstr(text, "\nUmask:") : NULL;
	return line && call_is_alive(call) ? (mode_t)strtoul(line + 7, NULL, 8) & 0777 : 077;
}

static struct verdict take(const struct open_request *req, int fd)
{
	if (fd < 0)
		return verdict_errno(-fd);
	if (!(req->flags & O_NONBLOCK)) {
		int flags = fcntl(fd, F_GETFL);
		fcntl(fd, F_SETFL, flags & ~O_NONBLOCK);
	}
	return verdict_fd(fd, req->flags & O_CLOEXEC);
}

static int open_flags(const struct open_request *req)
{
	const uint64_t taken =
		O_ACCMODE | O_APPEND | O_DIRECTORY | O_NOATIME | O_SYNC | O_DSYNC | O_TRUNC;
	/* Never blocks: a lease on it may be held, and a FIFO is not opened at all. */
	return (int)(req->flags & taken) | O_NONBLOCK | O_CLOEXEC | O_NOCTTY;
}

static struct verdict open_found(const struct open_request *req, int found)
{
	struct at_info info;
	int r = at_info(found, &info);
	if (r < 0)
		return verdict_errno(-r);
	if ((req->flags & O_CREAT) && (req->flags & O_EXCL))
		return verdict_errno(EEXIST);
	if (S_ISLNK(info.mode))
		return verdict_errno(req->flags & O_NOFOLLOW ? ELOOP : EACCES);
	if (S_ISDIR(info.mode) && (req->flags & O_CREAT))
		return verdict_errno(EISDIR);
	if (!S_ISREG(info.mode) && !S_ISDIR(info.mode))
		return verdict_errno(EACCES);
	return take(req, at_reopen(found, open_flags(req)));
}

static struct verdict open_new(struct call *call, const struct open_request *req, int dir,
			       const char *name)
{
	mode_t mode = req->mode & 07777 & ~umask_of(call);
	struct open_how how = {.flags = (uint64_t)open_flags(req) | O_CREAT | O_EXCL | O_NOFOLLOW,
			       .mode = mode,
			       .resolve = BELOW};
	int fd = (int)syscall(SYS_openat2, dir, name, &how, sizeof(how));
	if (fd < 0)
		return verdict_errno(errno);
	fchmod(fd, mode);
	return take(req, fd);
}

struct verdict shm_open_rest(struct call *call, const struct open_request *req, const char *rest)
{
	auto_close int dir = places_shm(call->box->places);
	if (dir < 0)
		return verdict_errno(EACCES);
	if (!*rest)
		rest = ".";
	for (int i = 0; i < TRIES; i++) {
		auto_close int found = at_open(dir, rest, O_NOFOLLOW, BELOW);
		if (found >= 0)
			return open_found(req, found);
		if (found != -ENOENT || !(req->flags & O_CREAT) || !call_is_alive(call))
			return verdict_errno(found == -ELOOP ? EACCES : -found);
		struct verdict verdict = open_new(call, req, dir, rest);
		if (verdict.answer != ANSWER_ERRNO || verdict.value != EEXIST ||
		    (req->flags & O_EXCL))
			return verdict;
	}
	return verdict_errno(EAGAIN);
}

/* --- Names ------------------------------------------------------------------------------------ */

/* Where the arguments are; -1: the call has none such. TO is the name that is made or removed. */
struct form {
	int nr;
	int8_t from_dir, from, to_dir, to;
	int8_t extra; /* flags or mode */
};

/* clang-format off */
static const struct form forms[] = {
	{ SYS_unlinkat,  -1, -1,  0, 1,  2 },
	{ SYS_mkdirat,   -1, -1,  0, 1,  2 },
	{ SYS_symlinkat, -1, -1,  1, 2, -1 }, /* its first argument is a text */
	{ SYS_linkat,     0,  1,  2, 3,  4 },
	{ SYS_renameat2,  0,  1,  2, 3,  4 },
#ifdef SYS_renameat
	{ SYS_renameat,   0,  1,  2, 3, -1 },
#endif
#ifdef SYS_unlink
	{ SYS_unlink,    -1, -1, -1, 0, -1 },
	{ SYS_rmdir,     -1, -1, -1, 0, -1 },
	{ SYS_mkdir,     -1, -1, -1, 0,  1 },
	{ SYS_symlink,   -1, -1, -1, 1, -1 },
	{ SYS_link,      -1,  0, -1, 1, -1 },
	{ SYS_rename,    -1,  0, -1, 1, -1 },
#endif
};
/* clang-format on */

/* A name of the task's: below our directory, or elsewhere. */
struct name {
	char text[PATH_MAX];
	const char *rest; /* NULL: elsewhere */
	int dir;	  /* owned: the directory it lies in, -1: not opened */
	char last[NAME_MAX + 2];
};

static void name_done_cleanup(struct name *name)
{
	util_close(name->dir);
}

static int read_name(struct call *call, int dir_arg, int arg, struct name *ret)
{
	ret->dir = -1;
	ret->rest = NULL;
	if (arg < 0)
		return 0;
	ssize_t n = call_read_str(call, call_arg(call, (unsigned int)arg), ret->text,
				  sizeof(ret->text));
	if (n < 0)
		return (int)n;
	int dirfd = dir_arg < 0 ? AT_FDCWD : call_int(call, (unsigned int)dir_arg);
	bool relative = ret->text[0] != '/';
	ret->rest = shm_rest(ret->text, relative && is_shm_dir(call, dirfd));
	if (ret->rest && shm_is_granted(call, ret->rest))
		ret->rest = NULL;
	return 0;
}

static int open_parent(const struct places *places, struct name *name)
{
	char parent[PATH_MAX];
	walk_split(name->rest, parent, name->last);
	if (!name->last[0])
		return -EBUSY; /* the directory itself */
	auto_close int top = places_shm(places);
	if (top < 0)
		return -EACCES;
	name->dir = at_open(top, parent, O_DIRECTORY, BELOW);
	return name->dir == -ELOOP ? -EACCES : name->dir < 0 ? name->dir : 0;
}

static struct verdict make_link(const struct name *name, const char *text)
{
	int r = at_make_link(name->dir, name->last, text);
	return verdict_result(r, -r);
}

static struct verdict make_dir(struct call *call, const struct name *name, mode_t mode)
{
	mode &= 01777 & ~umask_of(call);
	int r = at_make_dir(name->dir, name->last, mode);
	return verdict_result(r, -r);
}

static struct verdict do_one(struct call *call, const struct form *form, const struct name *from,
			     const struct name *to)
{
	const char *what = call->row->name;
	int extra = form->extra < 0 ? 0 : call_int(call, (unsigned int)form->extra);
	if (str_starts(what, "symlink"))
		return make_link(to, from->text);
	if (str_starts(what, "mkdir"))
		return make_dir(call, to, (mode_t)extra);
	if (extra & ~AT_REMOVEDIR)
		return verdict_errno(EINVAL);
	int flags = str_eq(what, "rmdir") ? AT_REMOVEDIR : extra;
	int r = at_unlink(to->dir, to->last, flags);
	return verdict_result(r, -r);
}

static struct verdict do_two(struct call *call, const struct form *form, const struct name *from,
			     const struct name *to)
{
	unsigned int flags =
		form->extra < 0 ? 0 : (unsigned int)call_int(call, (unsigned int)form->extra);
	int r;
	if (str_starts(call->row->name, "rename"))
		r = at_rename(from->dir, from->last, to->dir, to->last, flags);
	else if (flags & ~(unsigned int)AT_SYMLINK_FOLLOW)
		r = -EINVAL;
	else
		r = at_hard_link(from->dir, from->last, to->dir, to->last);
	return r < 0 ? verdict_errno(-r) : verdict_value(0);
}

static struct verdict act_on(struct call *call, const struct form *form, struct name *from,
			     struct name *to)
{
	AUTO(act_end) struct act act;
	int r = act_begin(call->box, &act);
	if (r == 0 && form->from >= 0)
		r = open_parent(call->box->places, from);
	if (r == 0)
		r = open_parent(call->box->places, to);
	if (r == 0 && !call_is_alive(call))
		return (struct verdict){.answer = ANSWER_GONE};
	if (r < 0)
		return verdict_errno(-r);
	return form->from >= 0 ? do_two(call, form, from, to) : do_one(call, form, from, to);
}

struct verdict handle_names(struct call *call)
{
	const struct form *form = NULL;
	AUTO(name_done) struct name from = {.dir = -1};
	AUTO(name_done) struct name to = {.dir = -1};
	for (size_t i = 0; i < ARRAY_SIZE(forms); i++) {
		if (forms[i].nr == call->data.nr)
			form = &forms[i];
	}
	/* The kernel's own checks are the guard of everything else. */
	if (!form || !call->box->places || read_name(call, form->from_dir, form->from, &from) < 0 ||
	    read_name(call, form->to_dir, form->to, &to) < 0 || (!from.rest && !to.rest))
		return verdict_continue();
	if (form->from >= 0 && (!from.rest || !to.rest))
		return verdict_errno(EXDEV);
	/* With the task's rights its memory may be out of reach. */
	if (str_starts(call->row->name, "symlink") &&
	    call_read_str(call, call_arg(call, 0), from.text, sizeof(from.text)) < 0)
		return verdict_errno(EFAULT);
	return act_on(call, form, &from, &to);
}
