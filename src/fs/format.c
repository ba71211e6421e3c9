/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of changes: text, JSON, counts. */
#include "fs/format.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/sha256.h"
#include "base/util.h"
#include "sys/at.h"

static const char *const kind_texts[FORMAT_COUNT] = {
	[FORMAT_TEXT] = "text",
	[FORMAT_JSON] = "json",
	[FORMAT_PATCH] = "patch",
	[FORMAT_STAT] = "stat",
};

int format_kind_parse(const char *name, enum format_kind *ret)
{
	for (size_t i = 0; i < FORMAT_COUNT; i++) {
		if (!str_eq(name, kind_texts[i]))
			continue;
		*ret = (enum format_kind)i;
		return 0;
	}
	return -EINVAL;
}

static char letter(const struct change *c)
{
	return c->kind == CHANGE_ADDED ? 'A' : c->kind == CHANGE_DELETED ? 'D' : 'M';
}

int format_path(const struct format *f, const struct change *c, struct buf *out)
{
	AUTO(buf_done) struct buf path = BUF_INIT(CHANGES_PATH_MAX);
	int r = change_path(c, &path);
	buf_clear(out);
	if (r < 0)
		return r;
	if (f->prefix) {
		buf_add_str(out, str_eq(f->prefix, "/") ? "" : f->prefix);
		if (path.len || str_eq(f->prefix, "/"))
			buf_add_char(out, '/');
		return buf_add(out, buf_text(&path), path.len);
	}
	return path.len ? buf_add(out, buf_text(&path), path.len) : buf_add_str(out, ".");
}

static int put_text(struct format *f, const struct change *c)
{
	AUTO(buf_done) struct buf path = BUF_INIT(CHANGES_PATH_MAX * 2);
	AUTO(buf_done) struct buf line = BUF_INIT(CHANGES_PATH_MAX * 16);
	int r = format_path(f, c, &path);
	if (r < 0)
		return r;
	buf_printf(&line, "%c  ", letter(c));
	buf_add_terminal(&line, buf_text(&path), path.len);
	buf_add_char(&line, '\n');
	return line.error ? line.error : f->out(f->data, line.data, line.len);
}

/* --- JSON --------------------------------------------------------------------------------- */

static int digest(struct format *f, const struct change *c, bool after, struct buf *out)
{
	AUTO(buf_done) struct buf path = BUF_INIT(CHANGES_PATH_MAX);
	struct sha256 sum;
	uint8_t bytes[SHA256_SIZE];
	char text[SHA256_TEXT_SIZE];
	int r = change_path(c->parent, &path);
	int root = after ? f->layer->upper : f->layer->lower;
	auto_close int dir = r < 0 ? r : fs_open_dir(root, buf_text(&path), O_PATH);
	if (dir < 0)
		return dir;
	auto_close int fd = after ? layer_open_file(f->layer, dir, c->name)
				  : fs_open_file(dir, c->name, O_RDONLY);
	if (fd < 0)
		return fd == -EACCES ? buf_add_str(out, ", \"sha256\": null") : fd;
	auto_free char *block = xzalloc(65536);
	uint64_t at = 0;
	sha256_init(&sum);
	for (;;) {
		ssize_t n = fs_read(fd, block, 65536, at);
		if (n < 0)
			return (int)n;
		if (n == 0)
			break;
		sha256_add(&sum, block, (size_t)n);
		at += (uint64_t)n;
	}
	sha256_end(&sum, bytes);
	return buf_printf(out, ", \"sha256\": \"%s\"", sha256_text(bytes, text));
}

static int target(struct format *f, const struct change *c, bool after, struct buf *out)
{
	AUTO(buf_done) struct buf path = BUF_INIT(CHANGES_PATH_MAX);
	char text[4097];
	int r = change_path(c->parent, &path);
	int root = after ? f->layer->upper : f->layer->lower;
	auto_close int dir = r < 0 ? r : fs_open_dir(root, buf_text(&path), O_PATH);
	if (dir < 0)
		return dir;
	ssize_t n = at_read_link_of(dir, c->name, text, sizeof(text));
	if (n < 0)
		return (int)n;
	buf_add_str(out, ", \"target\": ");
	return buf_add_json(out, text, (size_t)n);
}

static int put_side(struct format *f, const struct change *c, bool after, struct buf *out)
{
	const struct change_side *s = after ? &c->after : &c->before;
	if (s->kind == NODE_ABSENT)
		return buf_add_str(out, "null");
	buf_printf(out, "{\"kind\": \"%s\", \"mode\": \"%04o\"", node_kind_name(s->kind),
		   (unsigned int)s->mode);
	int r = 0;
	if (s->kind == NODE_FILE) {
		buf_printf(out, ", \"size\": %llu", (unsigned long long)s->size);
		r = digest(f, c, after, out);
	} else if (s->kind == NODE_SYMLINK) {
		r = target(f, c, after, out);
	}
	buf_add_char(out, '}');
	return r < 0 ? r : out->error;
}

static void put_what(const struct change *c, struct buf *out)
{
	static const char *const names[] = {"content",	  "mode", "owner",
					    "attributes", "time", "type"};
	bool any = false;
	buf_add_str(out, ", \"what\": [");
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		if (!(c->what & (1u << i)))
			continue;
		buf_printf(out, "%s\"%s\"", any ? ", " : "", names[i]);
		any = true;
	}
	buf_add_char(out, ']');
}

static int put_json(struct format *f, const struct change *c)
{
	AUTO(buf_done) struct buf path = BUF_INIT(CHANGES_PATH_MAX * 2);
	AUTO(buf_done) struct buf line = BUF_INIT(CHANGES_PATH_MAX * 16);
	int r = format_path(f, c, &path);
	if (r < 0)
		return r;
	buf_printf(&line, "%s\n  {\"kind\": \"%c\", \"path\": ", f->n ? "," : "", letter(c));
	buf_add_json(&line, buf_text(&path), path.len);
	if (c->kind == CHANGE_MODIFIED)
		put_what(c, &line);
	buf_add_str(&line, ", \"before\": ");
	r = put_side(f, c, false, &line);
	if (r >= 0) {
		buf_add_str(&line, ", \"after\": ");
		r = put_side(f, c, true, &line);
	}
	if (c->conflict != CONFLICT_NONE)
		buf_printf(&line, ", \"conflict\": \"%s\"",
			   c->conflict == CONFLICT_REMOVED ? "removed" : "changed");
	buf_add_char(&line, '}');
	if (r < 0 || line.error)
		return r < 0 ? r : line.error;
	return f->out(f->data, line.data, line.len);
}

/* --- Counts ------------------------------------------------------------------------------- */

struct counts {
	size_t added;
	size_t modified;
	size_t deleted;
	uint64_t bytes_before;
	uint64_t bytes_after;
};

static int put_stat(struct format *f, const struct change *c, struct counts *counts)
{
	AUTO(buf_done) struct buf path = BUF_INIT(CHANGES_PATH_MAX * 2);
	AUTO(buf_done) struct buf line = BUF_INIT(CHANGES_PATH_MAX * 16);
	uint64_t before = c->before.kind == NODE_FILE ? c->before.size : 0;
	uint64_t after = c->after.kind == NODE_FILE ? c->after.size : 0;
	int r = format_path(f, c, &path);
	if (r < 0)
		return r;
	counts->added += c->kind == CHANGE_ADDED;
	counts->modified += c->kind == CHANGE_MODIFIED;
	counts->deleted += c->kind == CHANGE_DELETED;
	counts->bytes_before += before;
	counts->bytes_after += after;
	buf_printf(&line, "%c  %llu -> %llu  ", letter(c), (unsigned long long)before,
		   (unsigned long long)after);
	buf_add_terminal(&line, buf_text(&path), path.len);
	buf_add_char(&line, '\n');
	return line.error ? line.error : f->out(f->data, line.data, line.len);
}

static int put_counts(struct format *f, const struct counts *c)
{
	AUTO(buf_done) struct buf line = BUF_INIT(1024);
	buf_printf(&line, "%zu added, %zu modified, %zu deleted, %llu -> %llu bytes\n", c->added,
		   c->modified, c->deleted, (unsigned long long)c->bytes_before,
		   (unsigned long long)c->bytes_after);
	return f->out(f->data, line.data, line.len);
}

static int put_one(enum format_kind kind, struct format *f, const struct change *c,
		   struct counts *counts)
{
	switch (kind) {
	case FORMAT_TEXT:
		return put_text(f, c);
	case FORMAT_JSON:
		return put_json(f, c);
	case FORMAT_PATCH:
		return format_patch_change(f, c);
	case FORMAT_STAT:
		return put_stat(f, c, counts);
	case FORMAT_COUNT:
		break;
	}
	return -EINVAL;
}

int format_changes(enum format_kind kind, struct set_changes *sc, const struct set_info *info,
		   format_out out, void *data, struct err *err)
{
	struct format f = {.out = out, .data = data};
	struct counts counts = {0};
	int r = kind == FORMAT_JSON ? out(data, "[", 1) : 0;
	for (size_t i = 0; r >= 0 && i < sc->n; i++) {
		f.layer = &sc->layers[i];
		f.prefix = sc->n > 1 ? info->workdirs[i].path : NULL;
		for (struct change *c = sc->changes[i].root; r >= 0 && c; c = change_next(c)) {
			if (c->kind == CHANGE_NONE || !c->is_chosen)
				continue;
			r = put_one(kind, &f, c, &counts);
			f.n++;
		}
	}
	if (r >= 0 && kind == FORMAT_JSON)
		r = out(data, f.n ? "\n]\n" : "]\n", f.n ? 3 : 2);
	if (r >= 0 && kind == FORMAT_STAT)
		r = put_counts(&f, &counts);
	return r < 0 ? err_sys(err, -r, "the changes cannot be written out") : 0;
}
