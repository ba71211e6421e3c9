/* SPDX-License-Identifier: Apache-2.0 */
/* SHA-256, straight from the standard. */
#include "base/sha256.h"

#include <string.h>

/* clang-format off */
static const uint32_t round_constants[64] = {
	0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
	0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
	0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
	0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
	0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
	0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
	0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
	0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};
/* clang-format on */

static uint32_t rotate(uint32_t x, int n)
{
	return (x >> n) | (x << (32 - n));
}

static void schedule(const uint8_t *block, uint32_t w[64])
{
	for (size_t i = 0; i < 16; i++)
		w[i] = (uint32_t)block[i * 4] << 24 | (uint32_t)block[i * 4 + 1] << 16 |
		       (uint32_t)block[i * 4 + 2] << 8 | block[i * 4 + 3];
	for (size_t i = 16; i < 64; i++) {
		uint32_t a = w[i - 15];
		uint32_t b = w[i - 2];
		uint32_t s0 = rotate(a, 7) ^ rotate(a, 18) ^ (a >> 3);
		uint32_t s1 = rotate(b, 17) ^ rotate(b, 19) ^ (b >> 10);
		w[i] = w[i - 16] + s0 + w[i - 7] + s1;
	}
}

static void compress(uint32_t state[8], const uint8_t *block)
{
	uint32_t w[64];
	uint32_t v[8];
	schedule(block, w);
	memcpy(v, state, sizeof(v));
	for (size_t i = 0; i < 64; i++) {
		uint32_t s1 = rotate(v[4], 6) ^ rotate(v[4], 11) ^ rotate(v[4], 25);
		uint32_t choice = (v[4] & v[5]) ^ (~v[4] & v[6]);
		uint32_t t1 = v[7] + s1 + choice + round_constants[i] + w[i];
		uint32_t s0 = rotate(v[0], 2) ^ rotate(v[0], 13) ^ rotate(v[0], 22);
		uint32_t majority = (v[0] & v[1]) ^ (v[0] & v[2]) ^ (v[1] & v[2]);
		memmove(v + 1, v, 7 * sizeof(v[0]));
		v[4] += t1;
		v[0] = t1 + s0 + majority;
	}
	for (size_t i = 0; i < 8; i++)
		state[i] += v[i];
}

void sha256_init(struct sha256 *s)
{
	*s = (struct sha256){.state = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f,
				       0x9b05688c, 0x1f83d9ab, 0x5be0cd19}};
}

void sha256_add(struct sha256 *s, const void *data, size_t len)
{
	const uint8_t *p = data;
	size_t used = s->len % sizeof(s->block);
	s->len += len;
	while (len > 0) {
		if (used == 0 && len >= sizeof(s->block)) {
			compress(s->state, p);
			p += sizeof(s->block);
			len -= sizeof(s->block);
			continue;
		}
		size_t n = sizeof(s->block) - used < len ? sizeof(s->block) - used : len;
		memcpy(s->block + used, p, n);
		p += n;
		len -= n;
		used += n;
		if (used == sizeof(s->block)) {
			compress(s->state, s->block);
			used = 0;
		}
	}
}

void sha256_end(struct sha256 *s, uint8_t ret_digest[SHA256_SIZE])
{
	uint64_t bits = s->len * 8;
	uint8_t tail[72] = {0x80};
	size_t used = s->len % sizeof(s->block);
	size_t pad = (used < 56 ? 56 : 120) - used;
	for (size_t i = 0; i < 8; i++)
		tail[pad + i] = (uint8_t)(bits >> (56 - 8 * i));
	sha256_add(s, tail, pad + 8);
	for (size_t i = 0; i < SHA256_SIZE; i++)
		ret_digest[i] = (uint8_t)(s->state[i / 4] >> (24 - 8 * (i % 4)));
}

const char *sha256_text(const uint8_t digest[SHA256_SIZE], char out[SHA256_TEXT_SIZE])
{
	static const char digits[] = "0123456789abcdef";
	for (size_t i = 0; i < SHA256_SIZE; i++) {
		out[2 * i] = digits[digest[i] >> 4];
		out[2 * i + 1] = digits[digest[i] & 15];
	}
	out[SHA256_TEXT_SIZE - 1] = '\0';
	return out;
}
