/* SPDX-License-Identifier: Apache-2.0 */
/* UTF-8; see the header. A byte sequence is accepted in its one well-formed spelling only. */
#include "base/utf8.h"

#include <assert.h>

#include "base/util.h"

bool utf8_is_scalar(uint32_t cp)
{
	return cp <= 0x10ffff && !(cp >= 0xd800 && cp <= 0xdfff);
}

/* The length that the first byte announces and the smallest character that may take it. */
static size_t lead_length(unsigned char lead, uint32_t *ret_min)
{
	if ((lead & 0xe0) == 0xc0) {
		*ret_min = 0x80;
		return 2;
	}
	if ((lead & 0xf0) == 0xe0) {
		*ret_min = 0x800;
		return 3;
	}
	if ((lead & 0xf8) == 0xf0) {
		*ret_min = 0x10000;
		return 4;
	}
	return 0;
}

size_t utf8_decode(const char *s, size_t len, uint32_t *ret_cp)
{
	if (len == 0)
		return 0;
	unsigned char lead = (unsigned char)s[0];
	if (lead < 0x80) {
		*ret_cp = lead;
		return 1;
	}
	uint32_t min = 0;
	size_t n = lead_length(lead, &min);
	if (n == 0 || n > len)
		return 0;
	uint32_t cp = lead & (0x7fU >> n);
	for (size_t i = 1; i < n; i++) {
		unsigned char c = (unsigned char)s[i];
		if ((c & 0xc0) != 0x80)
			return 0;
		cp = cp << 6 | (c & 0x3f);
	}
	if (cp < min || !utf8_is_scalar(cp))
		return 0;
	*ret_cp = cp;
	return n;
}

size_t utf8_put(uint32_t cp, char out[4])
{
	assert(utf8_is_scalar(cp));
	if (cp < 0x80) {
		out[0] = (char)cp;
		return 1;
	}
	size_t n = cp < 0x800 ? 2 : cp < 0x10000 ? 3 : 4;
	for (size_t i = n - 1; i > 0; i--) {
		out[i] = (char)(0x80 | (cp & 0x3f));
		cp >>= 6;
	}
	out[0] = (char)((0xf00U >> n & 0xff) | cp);
	return n;
}

bool utf8_is_unsafe(uint32_t cp)
{
	static const struct {
		uint32_t lo;
		uint32_t hi;
	} ranges[] = {
		{0x0000, 0x001f},   /* C0 */
		{0x007f, 0x009f},   /* DEL, C1 */
		{0x061c, 0x061c},   /* Arabic letter mark */
		{0x200e, 0x200f},   /* left-to-right and right-to-left mark */
		{0x2028, 0x202e},   /* line and paragraph separator; embeddings and overrides */
		{0x2066, 0x2069},   /* isolates */
		{0xfeff, 0xfeff},   /* byte order mark */
		{0xfff9, 0xfffb},   /* interlinear annotation */
		{0xe0000, 0xe007f}, /* tags */
	};
	for (size_t i = 0; i < ARRAY_SIZE(ranges); i++) {
		if (cp >= ranges[i].lo && cp <= ranges[i].hi)
			return true;
	}
	return false;
}
