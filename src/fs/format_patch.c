/* SPDX-License-Identifier: Apache-2.0 */
/* Changes as a patch that git and patch(1) apply; what it cannot express stands in comments. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/util.h"
#include "fs/format.h"
#include "sys/at.h"

enum { TEXT_MAX = 4 * 1024 * 1024, PATCH_MAX = 64 * 1024 * 1024 };

/* One side's text: NULL with LEN 0 where there is none. */
struct side_text {
	char *text;
	size_t len;
	bool is_large;
	bool is_hidden; /* unreadable */
};

static void side_text_done_cleanup(struct side_text *t)
{
	free(t->text);
}

static int read_side(struct format *f, const struct change *c, bool after, struct side_text *ret)
{
	AUTO(buf_done) struct buf path = BUF_INIT(CHANGES_PATH_MAX);
	const struct change_side *s = after ? &c->after : &c->before;
	int root = after ? f->layer->upper : f->layer->lower;
	if (s->kind != NODE_FILE && s->kind != NODE_SYMLINK)
		return 0;
	int r = change_path(c->parent, &path);
	auto_close int dir = r < 0 ? r : fs_open_dir(root, buf_text(&path), O_PATH);
	if (dir < 0)
		return dir;
	if (s->kind == NODE_SYMLINK) {
		ret->text = xzalloc(4097);
		ssize_t n = at_read_link_of(dir, c->name, ret->text, 4097);
		ret->len = n < 0 ? 0 : (size_t)n;
		return n < 0 ? (int)n : 0;
	}
	ret->is_large = s->size > TEXT_MAX;
	if (ret->is_large)
		return 0;
	auto_close int fd = after ? layer_open_file(f->layer, dir, c->name)
				  : fs_open_file(dir, c->name, O_RDONLY);
	if (fd == -EACCES)
		ret->is_hidden = true;
	if (fd < 0)
		return ret->is_hidden ? 0 : fd;
	ret->text = xzalloc((size_t)s->size + 1);
	while (ret->len < s->size) {
		ssize_t n = fs_read(fd, ret->text + ret->len, (size_t)s->size - ret->len, ret->len);
		if (n <= 0)
			return (int)n;
		ret->len += (size_t)n;
	}
	return 0;
}

static bool is_binary(const struct side_text *t)
{
	size_t n = t->len < 8000 ? t->len : 8000;
	return n && memchr(t->text, '\0', n);
}

/* As git does: in double quotes, bytes in octal, where a name is not plain. */
static void add_name(struct buf *out, const char *prefix, const char *path, size_t len)
{
	bool plain = true;
	for (size_t i = 0; i < len; i++) {
		unsigned char c = (unsigned char)path[i];
		plain = plain && c >= 32 && c < 127 && c != '"' && c != '\\';
	}
	if (!plain)
		buf_add_char(out, '"');
	buf_add_str(out, prefix);
	for (size_t i = 0; i < len; i++) {
		unsigned char c = (unsigned char)path[i];
		if (c == '"' || c == '\\')
			buf_printf(out, "\\%c", c);
		else if (c < 32 || c >= 127)
			buf_printf(out, "\\%03o", c);
		else
			buf_add_char(out, (char)c);
	}
	if (!plain)
		buf_add_char(out, '"');
}

/* git knows three kinds of file. */
static const char *git_mode(const struct change_side *s)
{
	if (s->kind == NODE_SYMLINK)
		return "120000";
	return s->mode & 0100 ? "100755" : "100644";
}

static bool has_text(const struct change_side *s)
{
	return s->kind == NODE_FILE || s->kind == NODE_SYMLINK;
}

static void add_comment(struct buf *out, const struct change *c, const char *path, size_t len)
{
	static const char *const verbs[] = {"unchanged", "new", "changed", "deleted"};
	const struct change_side *s = c->kind == CHANGE_DELETED ? &c->before : &c->after;
	buf_printf(out, "# %s %s: ", verbs[c->kind], node_kind_name(s->kind));
	buf_add_terminal(out, path, len);
	if (c->what & CHANGE_MODE)
		buf_printf(out, ", mode %04o to %04o", (unsigned int)c->before.mode,
			   (unsigned int)c->after.mode);
	if (c->what & CHANGE_OWNER)
		buf_add_str(out, ", owner");
	if (c->what & CHANGE_XATTR)
		buf_add_str(out, ", attributes");
	if (c->what & CHANGE_TIME)
		buf_add_str(out, ", time");
	buf_add_char(out, '\n');
}

static int add_texts(struct buf *out, const struct side_text *a, const struct side_text *b,
		     const char *old_name, const char *new_name)
{
	if (a->is_large || b->is_large || a->is_hidden || b->is_hidden)
		return buf_printf(out, "Files %s and %s differ\n", old_name, new_name);
	if (is_binary(a) || is_binary(b))
		return buf_printf(out, "Binary files %s and %s differ\n", old_name, new_name);
	if (a->len == b->len && (a->len == 0 || memcmp(a->text, b->text, a->len) == 0))
		return 0;
	buf_printf(out, "--- %s\n+++ %s\n", old_name, new_name);
	return diff_unified(a->text, a->len, b->text, b->len, out);
}

/* One file's patch; OLD_SIDE or NEW_SIDE may be taken as absent, for changes of kind. */
static int add_file(struct format *f, const struct change *c, bool with_old, bool with_new,
		    const char *path, struct buf *out)
{
	AUTO(side_text_done) struct side_text a = {0};
	AUTO(side_text_done) struct side_text b = {0};
	AUTO(buf_done) struct buf old_name = BUF_INIT(CHANGES_PATH_MAX * 8);
	AUTO(buf_done) struct buf new_name = BUF_INIT(CHANGES_PATH_MAX * 8);
	add_name(&old_name, "a/", path, strlen(path));
	add_name(&new_name, "b/", path, strlen(path));
	int r = with_old ? read_side(f, c, false, &a) : 0;
	if (r >= 0 && with_new)
		r = read_side(f, c, true, &b);
	if (r < 0)
		return r;
	buf_printf(out, "diff --git %s %s\n", buf_text(&old_name), buf_text(&new_name));
	if (!with_old)
		buf_printf(out, "new file mode %s\n", git_mode(&c->after));
	else if (!with_new)
		buf_printf(out, "deleted file mode %s\n", git_mode(&c->before));
	else if (!str_eq(git_mode(&c->before), git_mode(&c->after)))
		buf_printf(out, "old mode %s\nnew mode %s\n", git_mode(&c->before),
			   git_mode(&c->after));
	return add_texts(out, &a, &b, with_old ? buf_text(&old_name) : "/dev/null",
			 with_new ? buf_text(&new_name) : "/dev/null");
}

int format_patch_change(struct format *f, const struct change *c)
{
	AUTO(buf_done) struct buf path = BUF_INIT(CHANGES_PATH_MAX * 2);
	AUTO(buf_done) struct buf out = BUF_INIT(PATCH_MAX);
	bool old_text = has_text(&c->before);
	bool new_text = has_text(&c->after);
	int r = format_path(f, c, &path);
	if (r < 0)
		return r;
	const char *name = buf_text(&path);
	name += *name == '/';
	size_t len = strlen(name);
	bool one = old_text && new_text && !(c->what & CHANGE_TYPE);
	if (c->what & ~(CHANGE_CONTENT | CHANGE_TYPE) || (!old_text && !new_text))
		add_comment(&out, c, name, len);
	if (one && c->what & (CHANGE_CONTENT | CHANGE_MODE))
		r = add_file(f, c, true, true, name, &out);
	else if (!one) {
		if (old_text)
			r = add_file(f, c, true, false, name, &out);
		if (r >= 0 && new_text)
			r = add_file(f, c, false, true, name, &out);
	}
	if (r < 0 || out.error)
		return r < 0 ? r : out.error;
	return out.len ? f->out(f->data, out.data, out.len) : 0;
}
