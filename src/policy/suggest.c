/* SPDX-License-Identifier: Apache-2.0 */
/*
 * "Did you mean": the nearest known flag, section or key for an unknown one. Pure and bounded:
 * words longer than WORD_MAX are near to nothing.
 */
#include <string.h>

#include "base/util.h"
#include "policy/options.h"

enum { WORD_MAX = 48 };

static size_t min3(size_t a, size_t b, size_t c)
{
	size_t ab = a < b ? a : b;

	return ab < c ? ab : c;
}

size_t option_distance(const char *a, const char *b, size_t limit)
{
	size_t la = strlen(a), lb = strlen(b);
	size_t rows[3][WORD_MAX + 1];

	if (la > WORD_MAX || lb > WORD_MAX)
		return limit + 1;
	for (size_t j = 0; j <= lb; j++)
		rows[0][j] = j;
	for (size_t i = 1; i <= la; i++) {
		size_t *row = rows[i % 3];
		const size_t *up = rows[(i + 2) % 3], *up2 = rows[(i + 1) % 3];

		row[0] = i;
		for (size_t j = 1; j <= lb; j++) {
			size_t cost = a[i - 1] == b[j - 1] ? 0 : 1;

			row[j] = min3(up[j] + 1, row[j - 1] + 1, up[j - 1] + cost);
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
				row[j] = min3(row[j], up2[j - 2] + 1, row[j]);
		}
	}
	size_t d = rows[la % 3][lb];

	return d > limit ? limit + 1 : d;
}

struct best {
	const char *word;
	size_t distance;
};

static void consider(struct best *best, const char *given, const char *known)
{
	size_t limit = strlen(given) / 3 + 1;
	size_t d = option_distance(given, known, limit);

	if (d <= limit && (!best->word || d < best->distance))
		*best = (struct best){.word = known, .distance = d};
}

const char *option_suggest_flag(const char *flag)
{
	struct best best = {0};

	for (size_t i = OPT_NONE + 1; i < OPT_COUNT; i++) {
		const char *known = option_get((enum option_id)i)->flag;

		if (known)
			consider(&best, flag, known);
	}
	return best.word;
}

const char *option_suggest_key(const char *section, const char *key)
{
	struct best best = {0};

	for (size_t i = OPT_NONE + 1; i < OPT_COUNT; i++) {
		const struct option *o = option_get((enum option_id)i);

		if (o->key && str_eq(o->section, section))
			consider(&best, key, o->key);
	}
	return best.word;
}

const char *option_suggest_section(const char *section)
{
	struct best best = {0};

	for (size_t i = 0; option_sections[i]; i++)
		consider(&best, section, option_sections[i]);
	return best.word;
}
