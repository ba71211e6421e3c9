/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The lists that users give: extra system calls to allow and to deny, by name, alias or group.
 * A word that is not known, that both lists hold, or that would break the boundary is an error that
 * names it; nothing is ever left out in silence.
 */
#include <errno.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/util.h"
#include "policy/filter_internal.h"

/* Without these no program can start or end, so denying them could only break every run. */
static const char *const vital[] = {"execve", "exit", "exit_group", "rt_sigreturn"};

/* "clock, fanotify, …": all groups, for a message. */
static void list_groups(struct buf *b)
{
	uint16_t bit;

	for (size_t i = 0;; i++) {
		const char *name = syscall_group_name(i, &bit);
		if (!name || buf_printf(b, "%s%s", i ? ", " : "", name) < 0)
			return;
	}
}

static int unknown(const char *option, const char *word, struct err *err)
{
	const char *near = syscall_nearest(word);
	char shown[QUOTE_SIZE];

	quote_text(word, strlen(word), shown, sizeof(shown));
	if (near)
		return err_set(err, EINVAL,
			       "%s: %s is neither a system call nor a group; did you mean \"%s\"?",
			       option, shown, near);
	AUTO(buf_done) struct buf groups = BUF_INIT(256);
	list_groups(&groups);
	return err_set(err, EINVAL,
		       "%s: %s is neither a system call nor a group (the groups are %s)", option,
		       shown, buf_text(&groups));
}

static int check_allowed_row(const char *word, const struct syscall_row *row, bool ipc_namespace,
			     struct err *err)
{
	const char *reason = row->no_waiver;

	if (!reason && !ipc_namespace &&
	    (row->class == SYSCALL_SYSV || row->class == SYSCALL_POSIX_MQ))
		reason = "it reaches the user's other programs, since this sandbox has no IPC "
			 "namespace of its own";
	if (!reason)
		return 0;
	if (str_eq(word, row->name))
		return err_set(err, EINVAL, "--extra-allow-syscall: \"%s\" cannot be allowed: %s",
			       word, reason);
	return err_set(err, EINVAL, "--extra-allow-syscall: \"%s\" (%s) cannot be allowed: %s",
		       word, row->name, reason);
}

static int add_allow(struct syscall_set *set, const char *word, bool ipc_namespace, struct err *err)
{
	struct syscall_set own = {0};

	if (!syscall_set_add(&own, word))
		return unknown("--extra-allow-syscall", word, err);
	for (size_t i = 0; i < syscall_table_n; i++) {
		if (!syscall_set_has(&own, i))
			continue;
		int r = check_allowed_row(word, &syscall_table[i], ipc_namespace, err);
		if (r < 0)
			return r;
	}
	syscall_set_add(set, word);
	return 0;
}

static int check_denied_row(const char *word, const struct syscall_row *row,
			    const struct strv *extra_allow, struct err *err)
{
	for (size_t i = 0; i < ARRAY_SIZE(vital); i++) {
		if (str_eq(row->name, vital[i]))
			return err_set(err, EINVAL,
				       "--extra-deny-syscall: \"%s\" cannot be denied: no program "
				       "could start or end without it",
				       row->name);
	}
	for (size_t i = 0; extra_allow && i < extra_allow->n; i++) {
		struct syscall_set other = {0};
		if (!syscall_set_add(&other, extra_allow->v[i]) ||
		    !syscall_set_has(&other, (size_t)(row - syscall_table)))
			continue;
		return err_set(err, EINVAL,
			       "--extra-deny-syscall \"%s\" and --extra-allow-syscall \"%s\" both "
			       "name %s; remove it from one of them",
			       word, extra_allow->v[i], row->name);
	}
	return 0;
}

static int add_deny(struct syscall_set *set, const char *word, const struct strv *extra_allow,
		    struct err *err)
{
	struct syscall_set own = {0};

	if (!syscall_set_add(&own, word))
		return unknown("--extra-deny-syscall", word, err);
	for (size_t i = 0; i < syscall_table_n; i++) {
		if (!syscall_set_has(&own, i))
			continue;
		int r = check_denied_row(word, &syscall_table[i], extra_allow, err);
		if (r < 0)
			return r;
	}
	syscall_set_add(set, word);
	return 0;
}

int filter_make_sets(const struct strv *extra_allow, const struct strv *extra_deny,
		     bool ipc_namespace, struct filter_sets *ret_sets, struct err *err)
{
	struct filter_sets sets = {0};

	for (size_t i = 0; extra_allow && i < extra_allow->n; i++) {
		int r = add_allow(&sets.allow, extra_allow->v[i], ipc_namespace, err);
		if (r < 0)
			return r;
	}
	for (size_t i = 0; extra_deny && i < extra_deny->n; i++) {
		int r = add_deny(&sets.deny, extra_deny->v[i], extra_allow, err);
		if (r < 0)
			return r;
	}
	*ret_sets = sets;
	return 0;
}

int filter_check_names(const struct strv *extra_allow, const struct strv *extra_deny,
		       bool ipc_namespace, struct err *err)
{
	struct filter_sets sets;

	return filter_make_sets(extra_allow, extra_deny, ipc_namespace, &sets, err);
}
