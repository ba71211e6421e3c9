/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is read back from the storage: a journal whose sum is right (made so here), and the info of
 * a change set. What is accepted is written again as the same bytes, and its paths stay in the
 * workdir.
 */
#include <assert.h>
#include <string.h>

#include "base/buf.h"
#include "base/sha256.h"
#include "base/util.h"
#include "fs/journal.h"
#include "fs/store.h"
#include "fuzz.h"

static void try_journal(const uint8_t *data, size_t size)
{
	AUTO(journal_done) struct journal j = {0};
	AUTO(buf_done) struct buf text = BUF_INIT(JOURNAL_MAX);
	AUTO(buf_done) struct buf again = BUF_INIT(JOURNAL_MAX);
	struct sha256 sum;
	uint8_t digest[SHA256_SIZE];
	sha256_init(&sum);
	sha256_add(&sum, data, size);
	sha256_end(&sum, digest);
	buf_add(&text, (const char *)data, size);
	buf_add(&text, (const char *)digest, sizeof(digest));
	if (journal_decode(text.data, text.len, &j) < 0)
		return;
	for (size_t i = 0; i < j.n; i++)
		assert(journal_path_is_sane(j.ops[i].path) && j.ops[i].path[0] != '/');
	assert(journal_encode(&j, &again) == 0);
	AUTO(journal_done) struct journal back = {0};
	assert(journal_decode(again.data, again.len, &back) == 0 && back.n == j.n);
}

static void try_info(const uint8_t *data, size_t size)
{
	AUTO(set_info_done) struct set_info info = {0};
	AUTO(set_info_done) struct set_info back = {0};
	AUTO(buf_done) struct buf text = BUF_INIT((size_t)64 * 1024 * 1024);
	if (set_info_decode((const char *)data, size, &info) < 0)
		return;
	for (size_t i = 0; i < info.n_workdirs; i++)
		assert(info.workdirs[i].path[0] == '/');
	assert(set_info_encode(&info, &text) == 0);
	assert(set_info_decode(text.data, text.len, &back) == 0);
	assert(back.n_workdirs == info.n_workdirs && back.command.n == info.command.n);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	try_journal(data, size);
	try_info(data, size);
	return 0;
}
