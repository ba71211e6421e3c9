/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Extended attributes: set and removed on the descriptor that was judged. In the base only access
 * control lists come here, unless a descriptor was inherited: the one-id map makes the kernel
 * refuse them.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/posix_acl.h>
#include <linux/posix_acl_xattr.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/xattr.h>

#include "base/util.h"
#include "supervise/box.h"
#include "supervise/handlers/handlers.h"
#include "supervise/handlers/object.h"
#include "sys/at.h"

enum { NAME_SIZE = 256, VALUE_MAX = 65536, ARGS_MAX = 4096 };

/* struct xattr_args of setxattrat. */
struct set_args {
	uint64_t value;
	uint32_t size;
	uint32_t flags;
};

struct change {
	bool set;
	char name[NAME_SIZE];
	char *value; /* owned */
	size_t size;
	int flags;
};

static void change_done_cleanup(struct change *c)
{
	free(c->value);
}

static int apply(const struct object *o, const void *how)
{
	const struct change *c = how;
	if (!c->set)
		return at_remove_xattr(o->at.fd, o->is_path, c->name);
	return at_set_xattr(o->at.fd, o->is_path, c->name, c->value, c->size, c->flags);
}

static int read_name(struct call *call, uint64_t addr, struct change *c)
{
	ssize_t n = call_read_str(call, addr, c->name, sizeof(c->name));
	if (n == 0 || n == -ENAMETOOLONG)
		return -ERANGE;
	return n < 0 ? (int)n : 0;
}

static int read_value(struct call *call, const struct set_args *args, struct change *c)
{
	if (args->size > VALUE_MAX)
		return -E2BIG;
	c->size = args->size;
	c->value = xzalloc(c->size + 1);
	return call_read(call, args->value, c->value, c->size);
}

/* A structure that newer kernels may know more of: what is behind ours must be zero. */
static int read_args(struct call *call, uint64_t addr, uint64_t size, struct set_args *ret)
{
	char text[ARGS_MAX];
	if (size < sizeof(*ret))
		return -EINVAL;
	if (size > sizeof(text))
		return -E2BIG;
	int r = call_read(call, addr, text, size);
	if (r < 0)
		return r;
	for (size_t i = sizeof(*ret); i < size; i++)
		if (text[i])
			return -E2BIG;
	memcpy(ret, text, sizeof(*ret));
	return 0;
}

static bool is_acl(const struct change *c)
{
	return str_eq(c->name, "system.posix_acl_access") ||
	       str_eq(c->name, "system.posix_acl_default");
}

/* The sandbox's own id in a list means that of the host. A list of another form is the kernel's to
 * refuse. */
static void translate_acl(const struct box *box, struct change *c)
{
	struct posix_acl_xattr_entry entry;
	if (!box->id_map || !is_acl(c) || c->size < sizeof(struct posix_acl_xattr_header))
		return;
	for (size_t at = sizeof(struct posix_acl_xattr_header); at + sizeof(entry) <= c->size;
	     at += sizeof(entry)) {
		memcpy(&entry, c->value + at, sizeof(entry));
		if (entry.e_tag == ACL_USER && entry.e_id == box->uid)
			entry.e_id = box->host_uid;
		else if (entry.e_tag == ACL_GROUP && entry.e_id == box->gid)
			entry.e_id = box->host_gid;
		memcpy(c->value + at, &entry, sizeof(entry));
	}
}

/* NAME_ARG is where the name stands, in calls that set followed by value, size and flags. */
static int read_change(struct call *call, unsigned int name_arg, bool set, bool in_struct,
		       struct change *c)
{
	struct set_args args = {0};
	int r = 0;
	c->set = set;
	if (set && in_struct) {
		r = read_args(call, call_arg(call, 4), call_arg(call, 5), &args);
	} else if (set) {
		args.value = call_arg(call, name_arg + 1);
		/* The size is a size_t, whose upper half counts. */
		uint64_t size = call_arg(call, name_arg + 2);
		args.size = size > VALUE_MAX ? UINT32_MAX : (uint32_t)size;
		args.flags = (uint32_t)call_int(call, name_arg + 3);
	}
	if (r == 0 && (args.flags & ~(uint32_t)(XATTR_CREATE | XATTR_REPLACE)))
		r = -EINVAL;
	if (r == 0)
		r = read_name(call, call_arg(call, name_arg), c);
	if (r == 0 && set)
		r = read_value(call, &args, c);
	c->flags = (int)args.flags;
	return r;
}

/* In the base, with lists trapped only for their ids, all other names are the kernel's to judge. */
static bool is_the_kernels(const struct box *box, const struct change *c)
{
	return box->base && box->n_inherited == 0 && !(c->set && is_acl(c));
}

struct form {
	int nr;
	bool set, fd, nofollow, at;
};

/* clang-format off */
static const struct form forms[] = {
	{ SYS_setxattr,        .set = true },
	{ SYS_lsetxattr,       .set = true, .nofollow = true },
	{ SYS_fsetxattr,       .set = true, .fd = true },
	{ __NR_setxattrat,     .set = true, .at = true },
	{ SYS_removexattr },
	{ SYS_lremovexattr,    .nofollow = true },
	{ SYS_fremovexattr,    .fd = true },
	{ __NR_removexattrat,  .at = true },
};
/* clang-format on */

static int read_object(struct call *call, const struct form *form, unsigned int *flags,
		       struct object *o)
{
	*flags = form->nofollow ? RESOLVE_NOFOLLOW : 0;
	if (form->fd)
		return object_take_fd(call, call_int(call, 0), o);
	if (!form->at)
		return object_read_path(call, AT_FDCWD, call_arg(call, 0), o);
	int at = call_int(call, 2);
	if (at & ~(AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH))
		return -EINVAL;
	if (at & AT_SYMLINK_NOFOLLOW)
		*flags = RESOLVE_NOFOLLOW;
	int dirfd = call_int(call, 0);
	int r = 0;
	if (call_arg(call, 1) != 0 || !(at & AT_EMPTY_PATH))
		r = object_read_path(call, dirfd, call_arg(call, 1), o);
	/* Without a path it is the descriptor itself, as for fsetxattr; the kernel takes the
	 * working directory for one in setxattrat only. */
	if (r == 0 && o->text[0] == '\0' && (at & AT_EMPTY_PATH) && (dirfd >= 0 || !form->set))
		return object_take_fd(call, dirfd, o);
	if (at & AT_EMPTY_PATH)
		*flags |= RESOLVE_EMPTY;
	o->is_path = true;
	o->dirfd = dirfd;
	return r;
}

static struct verdict run(struct call *call, const struct form *form)
{
	AUTO(object_done) struct object o = OBJECT_INIT;
	AUTO(change_done) struct change change = {0};
	unsigned int flags = 0;
	int r = read_change(call, form->at ? 3 : 1, form->set, form->at, &change);
	if (r == 0 && is_the_kernels(call->box, &change))
		return verdict_continue();
	if (r == 0)
		r = read_object(call, form, &flags, &o);
	if (r < 0)
		return judge_failed(r);
	translate_acl(call->box, &change);
	return object_handle(call, &o, flags, call->row->name, apply, &change);
}

struct verdict handle_xattr(struct call *call)
{
	for (size_t i = 0; i < ARRAY_SIZE(forms); i++)
		if (forms[i].nr == call->data.nr)
			return run(call, &forms[i]);
	return verdict_errno(EPERM);
}
