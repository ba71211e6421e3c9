/* SPDX-License-Identifier: Apache-2.0 */
/* What differs between an upper object and the one of its kind below. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "fs/changes.h"
#include "fs/layer.h"
#include "sys/at.h"
#include "sys/fs_call.h"

enum { BLOCK = 65536 };

static ssize_t read_block(int fd, char *out, uint64_t at, uint64_t size)
{
	size_t wanted = size - at < BLOCK ? (size_t)(size - at) : BLOCK;
	size_t used = 0;
	while (used < wanted) {
		ssize_t n = fs_read(fd, out + used, wanted - used, at + used);
		if (n < 0)
			return n;
		if (n == 0)
			break;
		used += (size_t)n;
	}
	return (ssize_t)used;
}

/* Holes of both are skipped, so that a large file without data costs nothing. */
static int compare_data(int a, int b, uint64_t size)
{
	auto_free char *left = xzalloc(BLOCK);
	auto_free char *right = xzalloc(BLOCK);
	uint64_t at = 0;
	while (at < size) {
		uint64_t next_a = fs_next_data(a, at, size);
		uint64_t next_b = fs_next_data(b, at, size);
		at = next_a < next_b ? next_a : next_b;
		if (at >= size)
			break;
		ssize_t n = read_block(a, left, at, size);
		ssize_t m = read_block(b, right, at, size);
		if (n < 0 || m < 0)
			return n < 0 ? (int)n : (int)m;
		if (n != m || memcmp(left, right, (size_t)n) != 0)
			return CHANGE_CONTENT;
		if (n == 0)
			break;
		at += (uint64_t)n;
	}
	return 0;
}

static int compare_files(struct layer *layer, int up, int low, const struct change *c)
{
	if (c->before.size != c->after.size)
		return CHANGE_CONTENT;
	auto_close int a = layer_open_file(layer, up, c->name);
	if (a < 0)
		return a;
	auto_close int b = fs_open_file(low, c->name, O_RDONLY);
	if (b == -EACCES)
		return CHANGE_CONTENT; /* it could not be copied either: this is another one */
	if (b < 0)
		return b;
	return compare_data(a, b, c->before.size);
}

static int compare_links(int up, int low, const char *name)
{
	char a[4097];
	char b[4097];
	ssize_t n = at_read_link_of(up, name, a, sizeof(a));
	ssize_t m = at_read_link_of(low, name, b, sizeof(b));
	if (n < 0 || m < 0)
		return n < 0 ? (int)n : (int)m;
	return str_eq(a, b) ? 0 : CHANGE_CONTENT;
}

/* Whether each carried attribute of A is on B with the same value; *RET_N: how many there are. */
static int attributes_within(int a, int b, size_t *ret_n)
{
	auto_free char *names = NULL;
	size_t len = 0;
	*ret_n = 0;
	int r = fs_xattr_names(a, &names, &len);
	if (r < 0)
		return r == -ENOTSUP || r == -EPERM ? 1 : r;
	for (const char *name = names; name < names + len; name += strlen(name) + 1) {
		if (!layer_is_carried(name))
			continue;
		auto_free void *left = NULL;
		auto_free void *right = NULL;
		ssize_t n = fs_xattr(a, name, &left);
		if (n == -EACCES)
			return 0;
		if (n < 0)
			return (int)n;
		ssize_t m = fs_xattr(b, name, &right);
		/* What may not be read below is taken as another. */
		if (m < 0 && m != -ENODATA && m != -ENOTSUP && m != -EACCES)
			return (int)m;
		if (n != m || memcmp(left, right, (size_t)n) != 0)
			return 0;
		++*ret_n;
	}
	return 1;
}

/* Whether NAME in DIR has attributes that are carried; the common case is answered by one call. */
static int has_attributes(int dir, const char *name)
{
	auto_free char *names = NULL;
	size_t len = 0;
	int r = fs_xattr_names_of(dir, name, &names, &len);
	if (r < 0)
		return r == -ENOTSUP || r == -EPERM ? 0 : r;
	for (const char *x = names; x < names + len; x += strlen(x) + 1)
		if (layer_is_carried(x))
			return 1;
	return 0;
}

static int compare_attributes(struct layer *layer, int up, int low, const char *name)
{
	int any_up = has_attributes(up, name);
	int any_low = has_attributes(low, name);
	char none[1];
	if (any_up < 0 || any_low < 0)
		return any_up < 0 ? any_up : any_low;
	if (!any_up && !any_low)
		return 0;
	auto_close int a = fs_open_any(up, name);
	auto_close int b = fs_open_any(low, name);
	if (a < 0 || b < 0)
		return a < 0 ? a : b;
	/* Makes what may not be read readable. */
	(void)layer_xattr(layer, up, a, "user.overlay.", none, sizeof(none));
	size_t n = 0;
	size_t m = 0;
	int r = attributes_within(a, b, &n);
	if (r <= 0)
		return r < 0 ? r : (int)CHANGE_XATTR;
	r = attributes_within(b, a, &m);
	if (r < 0)
		return r;
	return r == 0 || n != m ? CHANGE_XATTR : 0;
}

/*
 * In the one-id namespace of an ordinary user everything is made as ours, also what belongs to
 * another group below; so ours is no statement, and any other id was set on purpose.
 */
static bool owner_differs(const struct layer *layer, const struct change *c)
{
	bool uid = c->before.uid != c->after.uid;
	bool gid = c->before.gid != c->after.gid;
	if (layer->uid == 0)
		return uid || gid;
	return gid && c->after.gid != layer->gid;
}

int changes_compare(struct layer *layer, int up, int low, const struct change *c)
{
	const char *name = c->parent ? c->name : ".";
	int what = 0;
	if (c->after.kind == NODE_FILE)
		what = compare_files(layer, up, low, c);
	else if (c->after.kind == NODE_SYMLINK)
		what = compare_links(up, low, name);
	if (what < 0)
		return what;
	if (c->after.kind != NODE_SYMLINK) {
		int r = compare_attributes(layer, up, low, name);
		if (r < 0)
			return r;
		what |= r;
		if (c->before.mode != c->after.mode)
			what |= (int)CHANGE_MODE;
	}
	if (owner_differs(layer, c))
		what |= CHANGE_OWNER;
	if (c->before.mtime.tv_sec != c->after.mtime.tv_sec ||
	    c->before.mtime.tv_nsec != c->after.mtime.tv_nsec)
		what |= CHANGE_TIME;
	return what;
}
