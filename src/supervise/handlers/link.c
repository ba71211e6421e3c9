/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Renames and links between two write grants, which are two mounts in the base. Everything that the
 * kernel can judge is left to it. The rest is done where both are one file system: in the host's
 * view, on the same two directories, found again below their grants and compared.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "base/path.h"
#include "base/util.h"
#include "supervise/box.h"
#include "supervise/handlers/handlers.h"
#include "supervise/judge.h"
#include "supervise/pure_dir.h"
#include "sys/at.h"
#include "sys/fs_call.h"

enum { FLAG_READ_ONLY = 0x0001 /* ST_RDONLY */ };

/* Where the arguments are; -1: the call has none such. */
struct form {
	int nr;
	bool link;
	int8_t from_dir, from, to_dir, to, flags;
};

/* clang-format off */
static const struct form forms[] = {
	{ SYS_renameat2, false,  0, 1,  2, 3,  4 },
	{ SYS_linkat,    true,   0, 1,  2, 3,  4 },
#ifdef SYS_renameat
	{ SYS_renameat,  false,  0, 1,  2, 3, -1 },
#endif
#ifdef SYS_rename
	{ SYS_rename,    false, -1, 0, -1, 1, -1 },
	{ SYS_link,      true,  -1, 0, -1, 1, -1 },
#endif
};
/* clang-format on */

/* One of the two names. */
struct side {
	int dirfd;
	char text[PATH_MAX];
	struct resolved at; /* the parent, in the task's view */
	const struct grant *grant;
	int fd; /* the same directory in the host's view */
};

struct pair {
	const struct form *form;
	unsigned int flags;
	struct side from, to;
};

static void pair_done_cleanup(struct pair *p)
{
	resolved_done(&p->from.at);
	resolved_done(&p->to.at);
	util_close(p->from.fd);
	util_close(p->to.fd);
}

/* Outcomes of the steps below, besides 0 and negative errnos. */
enum { TO_KERNEL = 1 };

static int read_side(struct call *call, int dir_arg, int path_arg, struct side *s)
{
	s->dirfd = dir_arg < 0 ? AT_FDCWD : call_int(call, (unsigned int)dir_arg);
	ssize_t n = call_read_str(call, call_arg(call, (unsigned int)path_arg), s->text,
				  sizeof(s->text));
	return n < 0 ? (int)n : 0;
}

/* What is to get a second name: looked up before the new name is, as parent and name. */
static int find_source(struct call *call, struct side *s, bool follow)
{
	struct resolved *r = &s->at;
	int e = resolve_path(call, s->dirfd, s->text, follow ? 0 : RESOLVE_NOFOLLOW, r);
	if (e < 0 || S_ISDIR(r->mode))
		return e;
	/* No name to make a second one of: the kernel's to answer. */
	if (r->anonymous || r->deleted || r->path[0] != '/' || str_eq(r->path, "/"))
		return TO_KERNEL;
	struct resolved object = *r;
	*r = (struct resolved)RESOLVED_INIT;
	e = resolve_path(call, AT_FDCWD, object.path, RESOLVE_PARENT, r);
	struct at_info info;
	if (e == 0 && at_info_of(r->fd, r->last, &info) == 0 &&
	    (info.dev != object.dev || info.ino != object.ino))
		e = -ENOENT;
	resolved_done(&object);
	return e;
}

/* The side's directory below its grant in the host's view, if it is the same one there. */
static int find_outside(struct call *call, struct side *s)
{
	struct at_info info;
	uint32_t magic;
	uint64_t flags;
	const char *below = path_relative_to(s->at.path, s->grant->path);
	if (s->grant->fd < 0 || !below)
		return TO_KERNEL;
	below += strspn(below, "/");
	if (!judge_is_quick(call, &s->at))
		return -EAGAIN;
	/* What is read-only inside stays so. */
	int e = at_file_system(s->at.fd, &magic, &flags);
	if (e < 0 || (flags & FLAG_READ_ONLY))
		return e < 0 ? e : TO_KERNEL;
	s->fd = at_open(s->grant->fd, *below ? below : ".", O_DIRECTORY,
			RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS);
	if (s->fd < 0)
		return TO_KERNEL;
	e = at_info(s->fd, &info);
	if (e < 0)
		return e;
	return info.dev == s->at.dev && info.ino == s->at.ino ? 0 : TO_KERNEL;
}

/* A granted directory or file is a mount point in the base. */
static bool is_granted_root(const struct box *box, const struct side *s)
{
	struct at_info info;
	char name[NAME_MAX + 2];
	snprintf(name, sizeof(name), "%s", s->at.last);
	name[strcspn(name, "/")] = '\0';
	if (at_info_of(s->fd, name, &info) < 0)
		return false;
	for (size_t i = 0; i < box->grants.n; i++) {
		const struct grant *g = &box->grants.v[i];
		if ((g->rights & GRANT_WRITE) && g->fd >= 0 && g->dev == info.dev &&
		    g->ino == info.ino)
			return true;
	}
	return false;
}

static int do_rename(struct call *call, struct pair *p)
{
	if (!p->from.at.last[0] || !p->to.at.last[0])
		return p->from.at.last[0] && (p->flags & RENAME_NOREPLACE) ? -EEXIST : -EBUSY;
	if (p->flags & RENAME_WHITEOUT)
		return -EPERM;
	if (is_granted_root(call->box, &p->from) || is_granted_root(call->box, &p->to))
		return -EBUSY;
	return at_rename(p->from.fd, p->from.at.last, p->to.fd, p->to.at.last, p->flags);
}

static int do_link(struct pair *p)
{
	if (!p->to.at.last[0])
		return -EEXIST;
	/* A directory stands for itself; the kernel knows what is wrong with that. */
	const char *from = p->from.at.last[0] ? p->from.at.last : ".";
	return at_hard_link(p->from.fd, from, p->to.fd, p->to.at.last);
}

static int judge_pair(struct call *call, struct pair *p)
{
	/* One mount or none: the kernel and its mounts judge. */
	if (p->from.at.mnt == p->to.at.mnt)
		return TO_KERNEL;
	int r = judge_grant(call, &p->from.at, GRANT_WRITE, &p->from.grant);
	if (r == 0)
		r = judge_grant(call, &p->to.at, GRANT_WRITE, &p->to.grant);
	if (r < 0)
		return r;
	if (!p->from.grant || !p->to.grant || p->from.grant == p->to.grant)
		return TO_KERNEL;
	r = find_outside(call, &p->from);
	return r == 0 ? find_outside(call, &p->to) : r;
}

/* --- Directories of a workspace --------------------------------------------------------------- */

enum { LONG_MS = 600000 };

static bool goes_on(void *data, bool taking_back)
{
	struct call *call = data;
	if (__atomic_load_n(&call->box->closing, __ATOMIC_RELAXED))
		return false;
	return taking_back || call_is_alive(call);
}

static bool is_dir(const struct side *s)
{
	struct at_info info;
	char name[NAME_MAX + 2];
	snprintf(name, sizeof(name), "%s", s->at.last);
	name[strcspn(name, "/")] = '\0';
	return name[0] && at_info_of(s->at.fd, name, &info) == 0 && S_ISDIR(info.mode);
}

/* Both in one layer, by names that are to be believed. */
static int in_one_layer(struct call *call, struct pair *p)
{
	const struct strv *layers = &call->box->layers;
	for (size_t i = 0; i < layers->n; i++) {
		if (!path_is_beneath(p->from.at.path, layers->v[i]) ||
		    !path_is_beneath(p->to.at.path, layers->v[i]))
			continue;
		int r = judge_grant(call, &p->from.at, GRANT_WRITE, &p->from.grant);
		if (r == 0)
			r = judge_grant(call, &p->to.at, GRANT_WRITE, &p->to.grant);
		return r < 0 ? r : p->from.grant && p->to.grant;
	}
	return 0;
}

/* As a plain directory says it, where the overlay says EXDEV first. */
static bool is_full_dir(const struct side *s)
{
	AUTO(fs_names_done) struct fs_names names = {0};
	auto_close int fd = at_open_entry(s->at.fd, s->at.last, O_RDONLY | O_DIRECTORY, 0);
	return fd >= 0 && fs_list(fd, 1, &names) == -E2BIG ? true : names.n > 0;
}

static int make_pure(struct call *call, const struct side *s)
{
	struct pure_dir how = {.go_on = goes_on, .data = call};
	char name[NAME_MAX + 2];
	snprintf(name, sizeof(name), "%s", s->at.last);
	name[strcspn(name, "/")] = '\0';
	int r = pure_dir_make(&how, s->at.fd, name);
	if (how.torn)
		__atomic_store_n(&call->box->torn, true, __ATOMIC_RELAXED);
	return r;
}

/* The kernel's own rename is tried first, and once more on directories that it can rename. */
static int rename_in_layer(struct call *call, struct pair *p)
{
	bool swap = p->flags & RENAME_EXCHANGE;
	if (!is_dir(&p->from) && !(swap && is_dir(&p->to)))
		return TO_KERNEL;
	int r = in_one_layer(call, p);
	if (r <= 0)
		return r < 0 ? r : TO_KERNEL;
	if (!call->on_worker)
		return -EAGAIN;
	r = at_rename(p->from.at.fd, p->from.at.last, p->to.at.fd, p->to.at.last, p->flags);
	if (r != -EXDEV)
		return r;
	if (!swap && is_full_dir(&p->to))
		return -ENOTEMPTY;
	__atomic_store_n(&call->patience_ms, LONG_MS, __ATOMIC_RELAXED);
	r = is_dir(&p->from) ? make_pure(call, &p->from) : 0;
	if (r == 0 && swap && is_dir(&p->to))
		r = make_pure(call, &p->to);
	return r < 0 ? r
		     : at_rename(p->from.at.fd, p->from.at.last, p->to.at.fd, p->to.at.last,
				 p->flags);
}

static int run(struct call *call, struct pair *p)
{
	bool follow = p->form->link && (p->flags & AT_SYMLINK_FOLLOW);
	int r = p->form->link ? find_source(call, &p->from, follow)
			      : resolve_path(call, p->from.dirfd, p->from.text, RESOLVE_PARENT,
					     &p->from.at);
	if (r == 0)
		r = resolve_path(call, p->to.dirfd, p->to.text, RESOLVE_PARENT, &p->to.at);
	if (r == 0 && !p->form->link && call->box->layers.n && p->from.at.mnt == p->to.at.mnt)
		return rename_in_layer(call, p);
	if (r == 0)
		r = judge_pair(call, p);
	if (r == 0)
		r = p->form->link ? do_link(p) : do_rename(call, p);
	return r;
}

static struct verdict handle(struct call *call, const struct form *form)
{
	AUTO(pair_done)
	struct pair p = {.form = form,
			 .from.at = RESOLVED_INIT,
			 .to.at = RESOLVED_INIT,
			 .from.fd = -1,
			 .to.fd = -1};
	if (form->flags >= 0)
		p.flags = (unsigned int)call_int(call, (unsigned int)form->flags);
	unsigned int known = form->link ? AT_SYMLINK_FOLLOW
					: RENAME_NOREPLACE | RENAME_EXCHANGE | RENAME_WHITEOUT;
	/* Flags that the kernel refuses, or that only it can judge (AT_EMPTY_PATH). */
	bool clash = !form->link && (p.flags & RENAME_EXCHANGE) &&
		     (p.flags & (RENAME_NOREPLACE | RENAME_WHITEOUT));
	if (clash || (p.flags & ~known))
		return verdict_continue();
	int r = read_side(call, form->from_dir, form->from, &p.from);
	if (r == 0)
		r = read_side(call, form->to_dir, form->to, &p.to);
	if (r < 0)
		return judge_failed(r);
	AUTO(act_end) struct act act;
	if (act_begin(call->box, &act) < 0)
		return verdict_errno(EPERM);
	r = run(call, &p);
	act_end(&act);
	return r == TO_KERNEL ? verdict_continue() : r < 0 ? judge_failed(r) : verdict_value(0);
}

struct verdict handle_link(struct call *call)
{
	for (size_t i = 0; i < ARRAY_SIZE(forms); i++)
		if (forms[i].nr == call->data.nr)
			return handle(call, &forms[i]);
	return verdict_errno(EPERM);
}
