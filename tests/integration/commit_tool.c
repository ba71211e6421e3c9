/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Drives src/fs for test_30_commit.py: commit_tool STATE VERB [ARGS]. The hook that every change
 * passes is set by the environment: TOOL_KILL=N kills this process before its Nth change,
 * TOOL_FAIL=N makes that one fail with the errno TOOL_ERRNO, TOOL_COUNT prints how many there were.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/util.h"
#include "fs/commit.h"
#include "fs/format.h"

struct hook {
	long n;
	long kill_at;
	long fail_at;
	int error;
};

static long number_of(const char *name)
{
	const char *text = getenv(name);
	return text ? strtol(text, NULL, 10) : 0;
}

static int on_call(void *data, const struct fs_call *c)
{
	struct hook *h = data;
	if (c->op == FS_IDENTIFY || c->after)
		return 0;
	h->n++;
	if (h->n == h->kill_at)
		kill(getpid(), SIGKILL);
	return h->n == h->fail_at ? -h->error : 0;
}

static int say(void *data, const char *text, size_t len)
{
	(void)data;
	return fwrite(text, 1, len, stdout) == len ? 0 : -EIO;
}

static int fail(const struct err *err)
{
	fprintf(stderr, "%s\n", err->msg);
	return 1;
}

static int create(const struct store *store, int argc, char **argv, struct err *err)
{
	AUTO(set_info_done) struct set_info info = {0};
	AUTO(set_done) struct set set = {.dir = -1, .lock = -1};
	bool run = argc > 0 && str_eq(argv[0], "--running");
	argc -= run;
	argv += run;
	info.workdirs = xcalloc((size_t)argc + 1, sizeof(struct set_workdir));
	for (int i = 0; i < argc; i++) {
		struct set_workdir *w = &info.workdirs[info.n_workdirs++];
		w->path = xstrdup(argv[i]);
		int r = fs_identify(store->io, AT_FDCWD, argv[i], &w->id);
		if (r < 0)
			return err_sys(err, -r, "%s", argv[i]);
	}
	clock_gettime(CLOCK_REALTIME, &info.began);
	strv_add(&info.command, "test");
	int r = set_create(store, &info, &set, err);
	for (size_t i = 0; r >= 0 && i < info.n_workdirs; i++)
		r = set_make_layer(&set, i, err);
	if (r >= 0 && !run)
		r = set_change_status(&set, SET_KEPT, &info.began);
	if (r >= 0)
		puts(set.id);
	return r;
}

static int show(struct set *set, const char *kind_name, const char *only, struct err *err)
{
	AUTO(set_changes_done) struct set_changes sc = {0};
	enum format_kind kind = FORMAT_TEXT;
	int r = format_kind_parse(kind_name, &kind);
	if (r >= 0)
		r = set_changes_read(set, only, &sc, err);
	return r < 0 ? r : format_changes(kind, &sc, &set->info, say, NULL, err);
}

static int apply(struct set *set, int argc, char **argv, struct err *err)
{
	struct commit_options options = {.wait_ms = 5000};
	struct commit_result result = {0};
	for (int i = 0; i + 1 < argc; i += 2) {
		if (str_eq(argv[i], "--only"))
			options.only = argv[i + 1];
		else if (str_eq(argv[i + 1], "theirs"))
			options.conflicts = PLAN_THEIRS;
		else if (str_eq(argv[i + 1], "ours"))
			options.conflicts = PLAN_OURS;
	}
	int r = commit_apply(set, &options, &result, err);
	if (r >= 0)
		printf("%zu %zu %s\n", result.n_changes, result.n_skipped, result.id);
	return r;
}

static int on_set(const struct store *store, const char *verb, int argc, char **argv,
		  struct err *err)
{
	AUTO(set_done) struct set set = {.dir = -1, .lock = -1};
	const char *id = argc > 0 ? argv[0] : "";
	int r = set_open(store, id, true, &set, err);
	if (r < 0)
		return r;
	if (str_eq(verb, "status"))
		return puts(set_status_name(set.status)) < 0 ? -EIO : 0;
	if (str_eq(verb, "changes"))
		return show(&set, argc > 1 ? argv[1] : "text", argc > 2 ? argv[2] : NULL, err);
	if (str_eq(verb, "apply"))
		return apply(&set, argc - 1, argv + 1, err);
	bool force = argc > 1 && str_eq(argv[1], "--force");
	if (str_eq(verb, "undo"))
		return commit_undo(&set, force, 5000, err);
	if (str_eq(verb, "redo"))
		return commit_redo(&set, force, 5000, err);
	if (str_eq(verb, "recover"))
		return commit_recover(&set, err);
	if (str_eq(verb, "discard"))
		return set_remove(&set);
	return err_set(err, EINVAL, "no verb %s", verb);
}

static int list(const struct store *store)
{
	AUTO(fs_names_done) struct fs_names names = {0};
	int r = store_list(store, &names);
	for (size_t i = 0; r >= 0 && i < names.n; i++)
		puts(names.v[i]);
	return r;
}

int main(int argc, char **argv)
{
	struct hook hook = {.kill_at = number_of("TOOL_KILL"),
			    .fail_at = number_of("TOOL_FAIL"),
			    .error = (int)number_of("TOOL_ERRNO")};
	struct fs_io io = {.hook = on_call, .data = &hook};
	struct err err = {0};
	AUTO(store_done) struct store store = {.dir = -1};
	if (argc < 3)
		return 2;
	int r = store_open(argv[1], &io, &store, &err);
	hook.n = 0;
	if (r >= 0 && str_eq(argv[2], "create"))
		r = create(&store, argc - 3, argv + 3, &err);
	else if (r >= 0 && str_eq(argv[2], "list"))
		r = list(&store);
	else if (r >= 0 && str_eq(argv[2], "sweep"))
		r = commit_sweep(&store, &err);
	else if (r >= 0 && str_eq(argv[2], "retain"))
		r = store_retain(&store,
				 &(struct retention){.max_sets = (size_t)strtoul(
							     argc > 3 ? argv[3] : "0", NULL, 10)});
	else if (r >= 0)
		r = on_set(&store, argv[2], argc - 3, argv + 3, &err);
	if (getenv("TOOL_COUNT"))
		fprintf(stderr, "%ld\n", hook.n);
	return r < 0 ? fail(&err) : 0;
}
