/* SPDX-License-Identifier: Apache-2.0 */
/* Journals as bytes: numbers are little-endian, texts have their length in front. */
#include "fs/journal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/sha256.h"
#include "base/util.h"

static const char magic[8] = {'S', 'L', 'J', 'R', 'N', 'L', '0', '1'};

struct op *journal_add(struct journal *j)
{
	/* Doubling: as long as N is a power of two there is no room left. */
	if ((j->n & (j->n - 1)) == 0)
		j->ops = xrealloc(j->ops, j->n ? j->n * 2 : 1, sizeof(*j->ops));
	struct op *op = &j->ops[j->n++];
	*op = (struct op){0};
	return op;
}

void journal_done(struct journal *j)
{
	for (size_t i = 0; i < j->n; i++)
		free(j->ops[i].path);
	free(j->ops);
	*j = (struct journal){0};
}

void journal_done_cleanup(struct journal *j)
{
	journal_done(j);
}

bool journal_path_is_sane(const char *path)
{
	if (!*path)
		return true;
	for (;;) {
		size_t n = strcspn(path, "/");
		if (n == 0 || (n == 1 && path[0] == '.') ||
		    (n == 2 && path[0] == '.' && path[1] == '.'))
			return false;
		if (!path[n])
			return true;
		path += n + 1;
	}
}

static void put(struct buf *out, uint64_t value, size_t size)
{
	char bytes[8];
	for (size_t i = 0; i < size; i++)
		bytes[i] = (char)(value >> (8 * i));
	buf_add(out, bytes, size);
}

static void put_time(struct buf *out, const struct timespec *t)
{
	put(out, (uint64_t)t->tv_sec, 8);
	put(out, (uint64_t)t->tv_nsec, 4);
}

static void put_side(struct buf *out, const struct op_side *s)
{
	put(out, s->exists, 1);
	put(out, s->mode, 4);
	put(out, s->size, 8);
	put_time(out, &s->mtime);
	put(out, s->id.ino, 8);
	put(out, s->id.born, 8);
}

int journal_encode(const struct journal *j, struct buf *out)
{
	struct sha256 sum;
	uint8_t digest[SHA256_SIZE];
	buf_clear(out);
	buf_add(out, magic, sizeof(magic));
	put(out, j->n, 4);
	for (size_t i = 0; i < j->n; i++) {
		const struct op *op = &j->ops[i];
		put(out, op->kind, 1);
		put(out,
		    (op->is_far ? 1u : 0) | (op->is_new ? 2u : 0) | (op->is_dir ? 4u : 0) |
			    (op->has_owner ? 8u : 0),
		    1);
		put(out, op->layer, 4);
		put(out, op->slot, 4);
		put_side(out, &op->before);
		put_side(out, &op->after);
		put_time(out, &op->seen);
		size_t len = strlen(op->path);
		put(out, len, 4);
		buf_add(out, op->path, len);
	}
	if (out->error)
		return out->error;
	sha256_init(&sum);
	sha256_add(&sum, out->data, out->len);
	sha256_end(&sum, digest);
	return buf_add(out, (const char *)digest, sizeof(digest));
}

struct reader {
	const uint8_t *at;
	size_t left;
	bool is_short;
};

static uint64_t get(struct reader *r, size_t size)
{
	uint64_t value = 0;
	if (r->left < size) {
		r->is_short = true;
		return 0;
	}
	for (size_t i = 0; i < size; i++)
		value |= (uint64_t)r->at[i] << (8 * i);
	r->at += size;
	r->left -= size;
	return value;
}

static struct timespec get_time(struct reader *r)
{
	struct timespec t;
	t.tv_sec = (time_t)get(r, 8);
	t.tv_nsec = (long)get(r, 4);
	if (t.tv_nsec >= 1000000000)
		r->is_short = true;
	return t;
}

static struct op_side get_side(struct reader *r)
{
	struct op_side s;
	s.exists = get(r, 1) != 0;
	s.mode = (uint32_t)get(r, 4);
	s.size = get(r, 8);
	s.mtime = get_time(r);
	s.id.ino = get(r, 8);
	s.id.born = get(r, 8);
	return s;
}

static char *get_path(struct reader *r)
{
	size_t len = (size_t)get(r, 4);
	if (r->left < len || memchr(r->at, '\0', len)) {
		r->is_short = true;
		return xstrdup("");
	}
	char *path = xstrndup((const char *)r->at, len);
	r->at += len;
	r->left -= len;
	return path;
}

static bool get_op(struct reader *r, struct op *op)
{
	unsigned int kind = (unsigned int)get(r, 1);
	unsigned int flags = (unsigned int)get(r, 1);
	op->kind = kind < OP_KIND_COUNT ? (enum op_kind)kind : OP_SWAP;
	op->is_far = flags & 1;
	op->is_new = flags & 2;
	op->is_dir = flags & 4;
	op->has_owner = flags & 8;
	op->layer = (uint32_t)get(r, 4);
	op->slot = (uint32_t)get(r, 4);
	op->before = get_side(r);
	op->after = get_side(r);
	op->seen = get_time(r);
	op->path = get_path(r);
	bool is_top = !*op->path;
	return !r->is_short && kind < OP_KIND_COUNT && journal_path_is_sane(op->path) &&
	       (op->before.exists || op->after.exists) && !(is_top && op->kind != OP_META);
}

int journal_decode(const void *data, size_t len, struct journal *ret)
{
	AUTO(journal_done) struct journal j = {0};
	struct sha256 sum;
	uint8_t digest[SHA256_SIZE];
	if (len < sizeof(magic) + 4 + SHA256_SIZE || memcmp(data, magic, sizeof(magic)) != 0)
		return -EINVAL;
	const uint8_t *bytes = data;
	size_t body = len - SHA256_SIZE;
	sha256_init(&sum);
	sha256_add(&sum, bytes, body);
	sha256_end(&sum, digest);
	if (memcmp(digest, bytes + body, SHA256_SIZE) != 0)
		return -EINVAL;
	struct reader r = {.at = bytes + sizeof(magic), .left = body - sizeof(magic)};
	size_t n = (size_t)get(&r, 4);
	for (size_t i = 0; i < n; i++)
		if (!get_op(&r, journal_add(&j)))
			return -EINVAL;
	if (r.left)
		return -EINVAL;
	*ret = j;
	j = (struct journal){0};
	return 0;
}
