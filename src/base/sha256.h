/* SPDX-License-Identifier: Apache-2.0 */
/*
 * SHA-256 (FIPS 180-4), for naming contents and for finding a damaged file, not for secrets.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define SHA256_SIZE	 32
#define SHA256_TEXT_SIZE 65 /* hexadecimal, with the NUL */

struct sha256 {
	uint32_t state[8];
	uint64_t len; /* bytes added so far */
	uint8_t block[64];
};

void sha256_init(struct sha256 *s);
void sha256_add(struct sha256 *s, const void *data, size_t len);
/* The digest of what was added; S is used up. */
void sha256_end(struct sha256 *s, uint8_t ret_digest[SHA256_SIZE]);
/* Writes the digest in lower-case hexadecimal and returns OUT. */
const char *sha256_text(const uint8_t digest[SHA256_SIZE], char out[SHA256_TEXT_SIZE]);
