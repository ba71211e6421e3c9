/* SPDX-License-Identifier: Apache-2.0 */
/* The forms on disk (journal, info), SHA-256 by the standard's vectors, and the line diff. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/sha256.h"
#include "base/util.h"
#include "fs/format.h"
#include "fs/journal.h"
#include "fs/store.h"

static void check_sha(const char *text, size_t times, const char *expected)
{
	struct sha256 sum;
	uint8_t digest[SHA256_SIZE];
	char out[SHA256_TEXT_SIZE];
	sha256_init(&sum);
	for (size_t i = 0; i < times; i++)
		sha256_add(&sum, text, strlen(text));
	sha256_end(&sum, digest);
	assert_string_equal(sha256_text(digest, out), expected);
}

static void test_sha256(void **state)
{
	(void)state;
	check_sha("", 1, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
	check_sha("abc", 1, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
	check_sha("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", 1,
		  "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
	check_sha("a", 1000000, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

static void fill(struct journal *j)
{
	for (uint32_t i = 0; i < 5; i++) {
		struct op *op = journal_add(j);
		op->kind = (enum op_kind)(i % OP_KIND_COUNT);
		op->slot = i;
		op->is_far = i & 1;
		op->has_owner = i & 2;
		op->is_dir = i == 2;
		op->before = (struct op_side){.exists = true,
					      .mode = 0100644,
					      .size = UINT64_MAX - i,
					      .mtime = {.tv_sec = -5, .tv_nsec = 999999999},
					      .id = {.ino = 7 + i, .born = 1}};
		op->after.exists = i != 3;
		op->path = xasprintf("d/\xff\n%u", i);
	}
}

static void test_journal_round(void **state)
{
	(void)state;
	AUTO(journal_done) struct journal j = {0};
	AUTO(journal_done) struct journal back = {0};
	AUTO(buf_done) struct buf text = BUF_INIT(JOURNAL_MAX);
	AUTO(buf_done) struct buf again = BUF_INIT(JOURNAL_MAX);
	fill(&j);
	assert_int_equal(journal_encode(&j, &text), 0);
	assert_int_equal(journal_decode(text.data, text.len, &back), 0);
	assert_int_equal(back.n, 5);
	assert_string_equal(back.ops[4].path, "d/\xff\n4");
	assert_int_equal(back.ops[1].before.mtime.tv_sec, -5);
	assert_int_equal(journal_encode(&back, &again), 0);
	assert_int_equal(text.len, again.len);
	assert_memory_equal(text.data, again.data, text.len);
	/* Cut or changed anywhere, it is none. */
	struct journal none = {0};
	for (size_t i = 0; i < text.len; i++) {
		assert_int_equal(journal_decode(text.data, i, &none), -EINVAL);
		text.data[i] ^= 1;
		assert_int_equal(journal_decode(text.data, text.len, &none), -EINVAL);
		text.data[i] ^= 1;
	}
}

static void test_journal_paths(void **state)
{
	(void)state;
	static const char *const bad[] = {"/",	  "/a",	  "a/",	   "a//b",   ".",  "..",
					  "a/..", "../a", "a/./b", "a/../b", "./a"};
	static const char *const good[] = {"", "a", "a/b", "...", "..a", "a/.b", "-"};
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_false(journal_path_is_sane(bad[i]));
	for (size_t i = 0; i < ARRAY_SIZE(good); i++)
		assert_true(journal_path_is_sane(good[i]));
	/* A journal of such a path is not read, whatever its sum says. */
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		AUTO(journal_done) struct journal j = {0};
		AUTO(buf_done) struct buf text = BUF_INIT(JOURNAL_MAX);
		struct journal none = {0};
		struct op *op = journal_add(&j);
		op->kind = OP_META;
		op->before.exists = true;
		op->path = xstrdup(bad[i]);
		assert_int_equal(journal_encode(&j, &text), 0);
		assert_int_equal(journal_decode(text.data, text.len, &none), -EINVAL);
	}
}

static void test_info(void **state)
{
	(void)state;
	AUTO(set_info_done)
	struct set_info info = {.began = {.tv_sec = 12, .tv_nsec = 34}, .keep_on_death = true};
	AUTO(set_info_done) struct set_info back = {0};
	AUTO(buf_done) struct buf text = BUF_INIT(65536);
	info.workdirs = xcalloc(2, sizeof(struct set_workdir));
	info.n_workdirs = 2;
	info.workdirs[0] = (struct set_workdir){.path = xstrdup("/a b\n%\xff"), .id = {1, 2}};
	info.workdirs[1] = (struct set_workdir){.path = xstrdup("/"), .id = {3, 4}};
	strv_add(&info.command, "sh");
	strv_add(&info.command, "");
	strv_add(&info.command, "end\n");
	assert_int_equal(set_info_encode(&info, &text), 0);
	assert_int_equal(set_info_decode(text.data, text.len, &back), 0);
	assert_string_equal(back.workdirs[0].path, "/a b\n%\xff");
	assert_int_equal(back.workdirs[1].id.born, 4);
	assert_int_equal(back.command.n, 3);
	assert_string_equal(back.command.v[1], "");
	assert_string_equal(back.command.v[2], "end\n");
	assert_true(back.keep_on_death);
	assert_int_equal(back.began.tv_nsec, 34);
	struct set_info none = {0};
	for (size_t i = 0; i < text.len; i++)
		assert_int_equal(set_info_decode(text.data, i, &none), -EINVAL);
}

static void check_diff(const char *a, const char *b, const char *expected)
{
	AUTO(buf_done) struct buf out = BUF_INIT(65536);
	assert_int_equal(diff_unified(a, strlen(a), b, strlen(b), &out), 0);
	assert_string_equal(buf_text(&out), expected);
}

static void test_diff(void **state)
{
	(void)state;
	check_diff("", "", "");
	check_diff("a\n", "a\n", "");
	check_diff("", "a\n", "@@ -0,0 +1 @@\n+a\n");
	check_diff("a\n", "", "@@ -1 +0,0 @@\n-a\n");
	check_diff("a", "a\n", "@@ -1 +1 @@\n-a\n\\ No newline at end of file\n+a\n");
	check_diff("1\n2\n3\n4\n5\n6\n7\n8\n9\n", "1\n2\n3\n4\nx\n6\n7\n8\n9\n",
		   "@@ -2,7 +2,7 @@\n 2\n 3\n 4\n-5\n+x\n 6\n 7\n 8\n");
	check_diff("a\nb\nc\n", "b\nc\nd\n", "@@ -1,3 +1,3 @@\n-a\n b\n c\n+d\n");
}

/* Applies what the hunks say and compares with the new text. */
static void apply_back(const char *a, size_t a_len, const char *patch, struct buf *out)
{
	const char *at = a;
	size_t line = 0;
	while (*patch) {
		size_t start = 0;
		assert_int_equal(sscanf(patch, "@@ -%zu", &start), 1);
		const char *comma = strchr(patch, ' ') + 1;
		bool empty = strncmp(strchr(comma, ' ') - 2, ",0", 2) == 0;
		for (size_t to = empty ? start : start - 1; line < to; line++) {
			const char *end = (const char *)memchr(at, '\n', a_len) + 1;
			buf_add(out, at, (size_t)(end - at));
			at = end;
		}
		patch = strchr(patch, '\n') + 1;
		while (*patch && *patch != '@') {
			const char *end = strchr(patch, '\n') + 1;
			if (*patch != '-')
				buf_add(out, patch + 1, (size_t)(end - patch - 1));
			if (*patch != '+') {
				assert_memory_equal(at, patch + 1, (size_t)(end - patch - 1));
				at += end - patch - 1;
				line++;
			}
			patch = end;
		}
	}
	buf_add_str(out, at);
}

static void make_text(unsigned int *seed, size_t lines, struct buf *out)
{
	for (size_t i = 0; i < lines; i++) {
		*seed = *seed * 1103515245u + 12345u;
		buf_printf(out, "%c\n", 'a' + (int)(*seed >> 16) % 6);
	}
}

static void test_diff_random(void **state)
{
	(void)state;
	unsigned int seed = 1;
	for (size_t i = 0; i < 2000; i++) {
		AUTO(buf_done) struct buf a = BUF_INIT(65536);
		AUTO(buf_done) struct buf b = BUF_INIT(65536);
		AUTO(buf_done) struct buf patch = BUF_INIT(1024 * 1024);
		AUTO(buf_done) struct buf back = BUF_INIT(1024 * 1024);
		make_text(&seed, i % 40, &a);
		make_text(&seed, (i * 7) % 45, &b);
		assert_int_equal(diff_unified(buf_text(&a), a.len, buf_text(&b), b.len, &patch), 0);
		apply_back(buf_text(&a), a.len, buf_text(&patch), &back);
		assert_string_equal(buf_text(&back), buf_text(&b));
	}
}

/* Two long texts with nothing in common: bounded work, and still right. */
static void test_diff_large(void **state)
{
	(void)state;
	AUTO(buf_done) struct buf a = BUF_INIT((size_t)8 * 1024 * 1024);
	AUTO(buf_done) struct buf b = BUF_INIT((size_t)8 * 1024 * 1024);
	size_t added = 0;
	size_t removed = 0;
	for (int i = 0; i < 50000; i++) {
		buf_printf(&a, "a%d\n", i);
		buf_printf(&b, "b%d\n", i);
	}
	assert_int_equal(diff_count(a.data, a.len, b.data, b.len, &added, &removed), 0);
	assert_int_equal(added, 50000);
	assert_int_equal(removed, 50000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sha256),	      cmocka_unit_test(test_journal_round),
		cmocka_unit_test(test_journal_paths), cmocka_unit_test(test_info),
		cmocka_unit_test(test_diff),	      cmocka_unit_test(test_diff_random),
		cmocka_unit_test(test_diff_large),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
