/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the check finds out about the place itself: a directory for trials, our own cgroup, and the
 * settings of the machine that explain other rows. Nothing is changed but what is removed again.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/util.h"
#include "confine/job.h"
#include "confine/raw_util.h"
#include "lib/check.h"

#define SETTINGS "Settings"

/* The first line of a file without its end, owned; NULL if it cannot be read. */
static char *read_line(const char *path)
{
	char line[512];
	FILE *f = fopen(path, "re");
	if (!f)
		return NULL;
	bool got = fgets(line, sizeof(line), f) != NULL;
	fclose(f);
	if (!got)
		return xstrdup("");
	line[strcspn(line, "\n")] = '\0';
	return xstrdup(line);
}

/* --- Our own cgroup -----------------------------------------------------------------------------
 */

/* The path behind "0::" in /proc/self/cgroup, owned, or NULL. */
static char *own_cgroup_name(void)
{
	char line[4096];
	char *found = NULL;
	FILE *f = fopen("/proc/self/cgroup", "re");
	while (f && !found && fgets(line, sizeof(line), f)) {
		line[strcspn(line, "\n")] = '\0';
		if (str_starts(line, "0::/"))
			found = xstrdup(line + strlen("0::"));
	}
	if (f)
		fclose(f);
	return found;
}

/* Where the cgroup v2 hierarchy is mounted, and which part of it; both owned. False if nowhere. */
static bool cgroup_mount(char **ret_root, char **ret_point)
{
	char line[8192];
	bool found = false;
	FILE *f = fopen("/proc/self/mountinfo", "re");
	while (f && !found && fgets(line, sizeof(line), f)) {
		/* id parent major:minor ROOT POINT options [fields] - TYPE source options */
		char root[4096];
		char point[4096];
		const char *type = strstr(line, " - ");
		if (!type || !str_starts(type, " - cgroup2 ") ||
		    sscanf(line, "%*u %*u %*s %4095s %4095s", root, point) != 2)
			continue;
		*ret_root = xstrdup(root);
		*ret_point = xstrdup(point);
		found = true;
	}
	if (f)
		fclose(f);
	return found;
}

static char *find_own_cgroup(void)
{
	auto_free char *name = own_cgroup_name();
	auto_free char *root = NULL;
	auto_free char *point = NULL;
	if (!name || !cgroup_mount(&root, &point))
		return NULL;
	const char *below = name;
	size_t n = strlen(root);
	if (!str_eq(root, "/") && strncmp(name, root, n) == 0)
		below = name + n;
	return xasprintf("%s%s", point, str_eq(below, "/") ? "" : below);
}

static int probe_cgroup(const struct check_env *env, struct probe_result *res, int arg)
{
	if (!env->cgroup)
		return probe_say(res, CHECK_MISSING, "no cgroup v2 hierarchy is mounted");
	long r = raw_syscall3(SYS_mkdirat, AT_FDCWD, env->cgroup, 0755);
	if (r < 0)
		return probe_error(res, "making a cgroup below our own", r);
	int dir = raw_openat(AT_FDCWD, env->cgroup, O_PATH | O_DIRECTORY | O_CLOEXEC, 0);
	long pid = dir < 0 ? probe_error(res, "openat", dir) : probe_fork(res, 0);
	if (pid == 0) {
		int fd = raw_openat(dir, "cgroup.procs", O_WRONLY | O_CLOEXEC, 0);
		r = fd < 0 ? fd : raw_write(fd, "0", 1);
		if (r < 0)
			probe_error(res, "moving a process into it", r);
		raw_exit(r < 0 ? 1 : 0);
	}
	if (pid > 0)
		probe_wait(res, pid);
	raw_syscall3(SYS_unlinkat, AT_FDCWD, env->cgroup, AT_REMOVEDIR);
	return res->status == CHECK_PENDING ? 0 : -1;
}

/* clang-format off */
static const struct probe probes[] = {
	{"cgroup-delegation", "make a cgroup below our own and enter it",
	 "limits are then kept without cgroups; to have them, run from a delegated cgroup (systemd-run --user --scope -p Delegate=yes)",
	 KERNEL(4, 5), false, NULL, false, 0, probe_cgroup},
};
/* clang-format on */

const struct probe_group check_cgroup_group = {"Cgroups", probes, ARRAY_SIZE(probes)};

/* --- Place --------------------------------------------------------------------------------------
 */

static char *make_work_dir(void)
{
	static const char *const places[] = {"/tmp", "/var/tmp", "/dev/shm"};
	for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
		char *path = xasprintf("%s/sandlock-check-XXXXXX", places[i]);
		if (mkdtemp(path))
			return path;
		free(path);
	}
	return NULL;
}

void check_env_init(struct check_report *report)
{
	struct check_env *env = &report->env;
	call_place_init(&env->place);
	env->root = geteuid() == 0;
	snprintf(report->uid_map, sizeof(report->uid_map), "%u %u 1\n", geteuid(), geteuid());
	snprintf(report->gid_map, sizeof(report->gid_map), "%u %u 1\n", getegid(), getegid());
	env->uid_map = report->uid_map;
	env->gid_map = report->gid_map;
	env->overlay = "lowerdir=lower,upperdir=upper,workdir=overlay,userxattr";
	report->dir = make_work_dir();
	env->work = report->dir;
	env->work_fd = report->dir ? open(report->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
	if (env->work_fd < 0)
		env->work = NULL;
	report->own_cgroup = find_own_cgroup();
	if (report->own_cgroup)
		report->cgroup = xasprintf("%s/sandlock-check-%d", report->own_cgroup, getpid());
	env->cgroup = report->cgroup;
}

void check_env_done(struct check_report *report)
{
	if (report->cgroup)
		rmdir(report->cgroup);
	util_close(report->env.work_fd);
	if (report->dir)
		raw_remove_tree(AT_FDCWD, report->dir);
	free(report->dir);
	free(report->own_cgroup);
	free(report->cgroup);
}

/* --- Controllers --------------------------------------------------------------------------------
 */

static bool has_word(const char *list, const char *word)
{
	size_t n = strlen(word);
	for (const char *p = list; *p; p += strspn(p, " ")) {
		size_t len = strcspn(p, " ");
		if (len == n && strncmp(p, word, n) == 0)
			return true;
		p += len;
	}
	return false;
}

void check_controllers(struct check_report *report, struct check_row *row)
{
	if (row->status != CHECK_OK)
		return;
	auto_free char *path = xasprintf("%s/cgroup.controllers", report->own_cgroup);
	auto_free char *list = read_line(path);
	free(row->detail);
	row->detail = xasprintf("controllers: %s", list && *list ? list : "none");
	if (list && has_word(list, "memory") && has_word(list, "pids"))
		return;
	row->status = CHECK_DEGRADED;
	row->remedy = xstrdup("limits of memory and processes are kept without cgroups where these "
			      "controllers are not delegated");
}

/* --- Settings -----------------------------------------------------------------------------------
 */

static void add_setting(struct check_report *report, const char *id, const char *tried, char *text)
{
	struct check_row *row = check_add(report, SETTINGS, id, tried);
	row->status = CHECK_INFO;
	row->detail = text;
}

static void add_file(struct check_report *report, const char *id, const char *path)
{
	char *text = read_line(path);
	add_setting(report, id, path, text ? text : xstrdup("not there"));
}

void check_settings(struct check_report *report)
{
	add_file(report, "ptrace-scope", "/proc/sys/kernel/yama/ptrace_scope");
	add_file(report, "apparmor-userns",
		 "/proc/sys/kernel/apparmor_restrict_unprivileged_userns");
	add_file(report, "userns-clone", "/proc/sys/kernel/unprivileged_userns_clone");
	add_file(report, "userns-limit", "/proc/sys/user/max_user_namespaces");
	add_setting(report, "outer-filter", "seccomp filter around this process",
		    xstrdup(report->env.place.outer_filter ? "yes" : "no"));
}
