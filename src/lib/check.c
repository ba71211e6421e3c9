/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sandlock_check: goes through the tables of probes, then starts real sandboxes. The answer is 0
 * only if the strict default was started and no row that it needs is known to be bad.
 */
#include "lib/check.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/util.h"
#include "lib/launch.h"
#include "sandlock/sandlock.h"

static const struct probe_group *const groups[] = {
	&check_landlock_group,	&check_seccomp_group, &check_process_group,
	&check_namespace_group, &check_cgroup_group,
};

struct check_row *check_add(struct check_report *report, const char *group, const char *id,
			    const char *tried)
{
	report->rows = xrealloc(report->rows, report->n + 1, sizeof(*report->rows));
	struct check_row *row = &report->rows[report->n++];
	*row = (struct check_row){
		.id = id, .group = group, .tried = tried, .status = CHECK_UNTRIED};
	return row;
}

const struct check_row *check_row_find(const struct check_report *report, const char *id)
{
	for (size_t i = 0; i < report->n; i++) {
		if (str_eq(report->rows[i].id, id))
			return &report->rows[i];
	}
	return NULL;
}

bool check_row_works(const struct check_report *report, const char *id)
{
	const struct check_row *row = check_row_find(report, id);
	return row && (row->status == CHECK_OK || row->status == CHECK_DEGRADED);
}

static void add_probe(struct check_report *report, const char *group, const struct probe *p,
		      struct probe_result *res)
{
	bool wanting = p->needs && !check_row_works(report, p->needs);
	struct check_row *row = check_add(report, group, p->id, p->tried);
	row->required = p->required;
	if (wanting) {
		row->detail = xasprintf("it needs %s", p->needs);
		return;
	}
	if (p->needs_work && !report->env.work) {
		row->detail = xstrdup(
			"no directory for trials could be made in /tmp, /var/tmp or /dev/shm");
		return;
	}
	probe_run(p, &report->env, res);
	check_judge(&report->env, p, res, row);
	if (str_eq(p->id, "landlock") && row->status == CHECK_OK)
		report->landlock_abi = (int)res->value;
	if (str_eq(p->id, "cgroup-delegation"))
		check_controllers(report, row);
}

/* A signal that would end the caller; the trials' directory must go first. */
static bool is_interrupted(void)
{
	static const int ending[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
	sigset_t pending;
	sigpending(&pending);
	for (size_t i = 0; i < ARRAY_SIZE(ending); i++) {
		if (sigismember(&pending, ending[i]) == 1)
			return true;
	}
	return false;
}

static bool known_bad(const struct check_row *row)
{
	return row->required && row->status != CHECK_OK && row->status != CHECK_DEGRADED &&
	       row->status != CHECK_UNTRIED;
}

static void conclude(struct check_report *report)
{
	report->starts = check_row_works(report, "self-test-default");
	/* Where nothing can be written, a write could not be tried; the rows above must do. */
	const struct check_row *last = check_row_find(report, "self-test-default");
	if (last && last->status == CHECK_UNTRIED)
		report->starts = true;
	for (size_t i = 0; i < report->n; i++) {
		if (known_bad(&report->rows[i]) ||
		    (report->rows[i].required && report->rows[i].status == CHECK_UNTRIED &&
		     !check_row_works(report, "landlock")))
			report->starts = false;
	}
}

static int run_all(struct check_report *report, struct probe_result *res)
{
	for (size_t i = 0; i < ARRAY_SIZE(groups); i++) {
		for (size_t k = 0; k < groups[i]->n; k++) {
			if (is_interrupted())
				return -EINTR;
			add_probe(report, groups[i]->name, &groups[i]->probes[k], res);
		}
	}
	check_settings(report);
	if (is_interrupted())
		return -EINTR;
	check_self_tests(report);
	conclude(report);
	return 0;
}

static void report_done(struct check_report *report)
{
	for (size_t i = 0; i < report->n; i++) {
		free(report->rows[i].detail);
		free(report->rows[i].remedy);
	}
	free(report->rows);
}

int sandlock_check(int json, char **ret_text, struct sandlock_error *err)
{
	struct check_report report = {0};
	struct probe_result *res =
		mmap(NULL, sizeof(*res), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (res == MAP_FAILED)
		return api_fail(err, SANDLOCK_E_LIMIT, errno, "Cannot map memory for the check: %s",
				strerror(errno));
	sigset_t all;
	sigset_t old;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	check_env_init(&report);
	int r = run_all(&report, res);
	check_env_done(&report);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	munmap(res, sizeof(*res));
	if (r == 0)
		*ret_text = json ? check_json(&report) : check_text(&report);
	bool starts = report.starts;
	report_done(&report);
	if (r < 0)
		return api_fail(err, SANDLOCK_E_STATE, EINTR,
				"The check was interrupted by a signal");
	return starts ? 0 : 1;
}
