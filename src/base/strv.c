/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of owned strings; see the header. */
#include "base/strv.h"

#include <stdlib.h>

#include "base/util.h"

void strv_done(struct strv *s)
{
	for (size_t i = 0; i < s->n; i++)
		free(s->v[i]);
	free(s->v);
	s->v = NULL;
	s->n = 0;
}

void strv_add_take(struct strv *s, char *str)
{
	s->v = xrealloc(s->v, s->n + 2, sizeof(*s->v));
	s->v[s->n++] = str;
	s->v[s->n] = NULL;
}

void strv_add(struct strv *s, const char *str)
{
	strv_add_take(s, xstrdup(str));
}

void strv_copy(struct strv *dst, const struct strv *src)
{
	for (size_t i = 0; i < src->n; i++)
		strv_add(dst, src->v[i]);
}

bool strv_has(const struct strv *s, const char *str)
{
	for (size_t i = 0; i < s->n; i++) {
		if (str_eq(s->v[i], str))
			return true;
	}
	return false;
}
