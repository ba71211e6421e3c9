/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ownership helpers and small allocation wrappers that every module uses.
 *
 * Locals that own something are declared with auto_free or auto_close and hand it over with
 * take_ptr or take_fd. Small allocations never return NULL: they end the process through the one
 * abort hook (style: errors). Sizes that come from outside go through struct buf instead.
 */
#pragma once

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

#define auto_free  __attribute__((cleanup(util_free_cleanup)))
#define auto_close __attribute__((cleanup(util_close_cleanup)))
/* AUTO(policy_unref) struct policy *p: calls policy_unref_cleanup(&p) at the end of scope. */
#define AUTO(fn) __attribute__((cleanup(fn##_cleanup)))

/* Hands over the pointer in P and leaves NULL behind. */
#define take_ptr(p)                                                                                \
	({                                                                                         \
		__typeof__(p) take_ptr_value_ = (p);                                               \
		(p) = NULL;                                                                        \
		take_ptr_value_;                                                                   \
	})

/* Called with a one-line reason when memory is gone or an invariant is broken; must not return. */
typedef void (*util_abort_fn)(const char *reason);

/* Sets the abort hook (NULL restores the default, which prints the reason and calls abort). */
void util_set_abort_hook(util_abort_fn fn);
_Noreturn void util_abort(const char *reason);

/* All return zeroed or copied memory owned by the caller (free); they never return NULL. */
void *xzalloc(size_t size);
void *xcalloc(size_t count, size_t size);
void *xrealloc(void *p, size_t count, size_t size);
char *xstrdup(const char *s);
char *xstrndup(const char *s, size_t n);
char *xasprintf(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
char *xvasprintf(const char *fmt, va_list ap) __attribute__((format(printf, 1, 0)));

#define xnew(type) ((type *)xzalloc(sizeof(type)))

void util_free_cleanup(void *p);
void util_close_cleanup(int *fd);
/* Closes FD if it is >= 0, keeping errno; returns -1 for assignment. */
int util_close(int fd);
/* Hands over the descriptor in *FD and leaves -1 behind. */
int take_fd(int *fd);

bool str_eq(const char *a, const char *b);
bool str_starts(const char *s, const char *prefix);
bool str_ends(const char *s, const char *suffix);
