/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The last word of the check: real sandboxes, started as any other, whose command writes to a
 * granted file and to one that is not granted. Both files are looked at from outside, so that
 * neither the command nor a configuration is taken at its word.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/util.h"
#include "base/value.h"
#include "lib/check.h"
#include "sandlock/sandlock.h"

#define GROUP	"Self-tests"
#define WAIT_MS 5000

/* $1 is granted, $2 is not. echo is no special built-in: a failing redirection does not end sh. */
static const char script_text[] = "echo inside 2>/dev/null >\"$2\" && exit 33\n"
				  "echo inside >\"$1\" || exit 34\n"
				  "exit 0\n";

struct self_test {
	const char *id;
	const char *tried;
	const char *option;
	const char *value;
	bool required;
};

/* clang-format off */
static const struct self_test tests[] = {
	{"self-test-default", "start a sandbox as run does without flags; a forbidden write must fail", NULL, NULL, true},
	{"self-test-namespace", "start one in namespaces; a forbidden write must fail", "view", "namespace", false},
	{"self-test-notify", "start one without namespaces; a forbidden write must fail", "view", "notify", false},
	{"self-test-no-supervisor", "start one without a supervisor; a forbidden write must fail", "no-supervisor", NULL, false},
};
/* clang-format on */

static int write_file(const char *path, const char *text)
{
	auto_close int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	size_t n = strlen(text);
	if (fd < 0)
		return -errno;
	return write(fd, text, n) == (ssize_t)n ? 0 : -EIO;
}

static bool file_is(const char *path, const char *text)
{
	char found[64] = {0};
	auto_close int fd = open(path, O_RDONLY | O_CLOEXEC);
	return fd >= 0 && read(fd, found, sizeof(found) - 1) >= 0 && strcmp(found, text) == 0;
}

/* The words of a failure, owned, or NULL if all went as it should. */
static char *judge(const struct sandlock_result *res, const char *granted, const char *forbidden)
{
	if (!file_is(forbidden, "outside\n"))
		return xstrdup("A FORBIDDEN WRITE WENT THROUGH: do not rely on sandlock here");
	if (res->reason != SANDLOCK_EXITED)
		return xasprintf("the command was ended by signal %d", res->signal);
	if (res->exit_code != 0)
		return xasprintf("the command ended with status %d", res->exit_code);
	if (!file_is(granted, "inside\n"))
		return xstrdup("the command could not write to a file that was granted to it");
	return NULL;
}

static int make_policy(const struct self_test *t, const char *granted,
		       struct sandlock_policy **ret_policy, struct sandlock_error *err)
{
	struct sandlock_policy *policy = sandlock_policy_new();
	int r = sandlock_policy_load_profile(policy, "builtin:system", err);
	if (r == 0)
		r = sandlock_policy_set(policy, "fs-write", granted, err);
	if (r == 0 && t->option)
		r = sandlock_policy_set(policy, t->option, t->value, err);
	if (r < 0) {
		sandlock_policy_free(policy);
		return r;
	}
	*ret_policy = policy;
	return 0;
}

static bool has_base(const struct sandlock_process *process)
{
	auto_free char *json = NULL;
	return sandlock_process_rungs(process, &json) == 0 && json && strstr(json, "\"base\":true");
}

/* Starts the command and waits; the words of a failure, owned, or NULL. */
static char *run_test(const struct self_test *t, char *granted, char *forbidden, bool *ret_base)
{
	struct sandlock_error err = {0};
	struct sandlock_policy *policy = NULL;
	struct sandlock_process *process = NULL;
	char tmpdir[] = "TMPDIR=/nonexistent"; /* so that no private one is made */
	char path[] = "PATH=/usr/bin:/bin";
	char script[sizeof(script_text)];
	memcpy(script, script_text, sizeof(script));
	char *const argv[] = {(char[]){"/bin/sh"},
			      (char[]){"-c"},
			      script,
			      (char[]){"sh"},
			      granted,
			      forbidden,
			      NULL};
	char *const envp[] = {path, tmpdir, NULL};
	struct sandlock_spawn spawn = {
		.struct_size = sizeof(spawn), .argv = argv, .envp = envp, .fds = {-1, -1, -1}};
	struct sandlock_result res = {.struct_size = sizeof(res)};
	if (make_policy(t, granted, &policy, &err) < 0)
		return xstrdup(err.msg);
	int r = sandlock_spawn(policy, &spawn, &process, &err);
	if (r == 0) {
		*ret_base = has_base(process);
		r = sandlock_wait(process, WAIT_MS, &res, &err);
	}
	sandlock_process_free(process);
	sandlock_policy_free(policy);
	return r < 0 ? xstrdup(err.msg) : judge(&res, granted, forbidden);
}

/* A start makes the calls that the probes made, in this very process. */
static const struct check_row *find_killed(const struct check_report *report)
{
	for (size_t i = 0; i < report->n; i++) {
		const struct check_row *row = &report->rows[i];
		if (row->status == CHECK_FAILED && row->detail &&
		    strstr(row->detail, "killed by signal"))
			return row;
	}
	return NULL;
}

static void add_test(struct check_report *report, const struct self_test *t)
{
	const struct check_row *killed = find_killed(report);
	auto_free char *id = killed ? xstrdup(killed->id) : NULL;
	struct check_row *row = check_add(report, GROUP, t->id, t->tried);
	row->required = t->required;
	if (id) {
		row->status = CHECK_BLOCKED;
		row->detail = xasprintf("what kills the probe %s would kill this process", id);
		return;
	}
	if (!report->env.work) {
		row->status = CHECK_UNTRIED;
		row->detail = xstrdup(
			"no directory for trials could be made in /tmp, /var/tmp or /dev/shm");
		return;
	}
	auto_free char *granted = xasprintf("%s/granted", report->env.work);
	auto_free char *forbidden = xasprintf("%s/forbidden", report->env.work);
	bool base = false;
	if (write_file(granted, "") < 0 || write_file(forbidden, "outside\n") < 0) {
		row->status = CHECK_UNTRIED;
		row->detail = xstrdup("the directory for trials cannot be written to");
		return;
	}
	row->detail = run_test(t, granted, forbidden, &base);
	row->status = row->detail ? CHECK_FAILED : CHECK_OK;
	if (!row->detail && t->required) {
		report->in_namespaces = base;
		row->detail = xstrdup(base ? "in namespaces" : "without namespaces");
	}
}

void check_self_tests(struct check_report *report)
{
	for (size_t i = 0; i < ARRAY_SIZE(tests); i++)
		add_test(report, &tests[i]);
}
