/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The paths of a job: the policy's grants, the standard devices, and what the base mounts
 * privately. Paths are opened by the guardian or the child, once, in the mount namespace in which
 * they count.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/util.h"
#include "confine/job.h"
#include "lib/launch.h"
#include "lib/workspace.h"

#define RIGHTS_READ                                                                                \
	(LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR)
#define RIGHTS_ALL (~0ULL)
#define RIGHTS_DEVICE                                                                              \
	(LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_WRITE_FILE |                            \
	 LANDLOCK_ACCESS_FS_TRUNCATE | LANDLOCK_ACCESS_FS_IOCTL_DEV)

struct rule_list {
	struct job *job;
	size_t room;
	int failed;
	const struct workspace *workspace;
	struct job_rule spare; /* taken when there is no room */
};

static bool at_or_below(const char *path, const char *dir)
{
	size_t n = strlen(dir);
	return strncmp(path, dir, n) == 0 && (path[n] == '\0' || path[n] == '/');
}

static struct job_rule *add_rule(struct rule_list *list, const char *path, uint64_t access)
{
	struct job *job = list->job;
	if (job->n_rules == list->room) {
		list->failed = -E2BIG;
		return &list->spare;
	}
	struct job_rule *rule = &job->rules[job->n_rules++];
	auto_free char *inside = workspace_find(list->workspace, path);
	rule->path = job_strdup(job, inside ? inside : path);
	if (!rule->path)
		list->failed = -E2BIG;
	rule->access = access;
	rule->full = access == RIGHTS_ALL;
	rule->device = (access & RIGHTS_DEVICE) == RIGHTS_DEVICE && !rule->full;
	rule->fd = -1;
	/* What is granted of a workdir is granted of its layer. */
	if (inside || (job->base && ((job->copies_dir && at_or_below(path, job->copies_dir)) ||
				     at_or_below(path, "/proc") || at_or_below(path, "/dev/pts") ||
				     at_or_below(path, "/dev/mqueue") || str_eq(path, "/dev/shm") ||
				     str_eq(path, "/dev/ptmx"))))
		rule->late = 1;
	else if (job->base && at_or_below(path, "/dev/shm"))
		rule->into_shm = 1;
	return rule;
}

static void add_device(struct rule_list *list, const char *path, bool early)
{
	struct job_rule *rule = add_rule(list, path, RIGHTS_DEVICE);
	rule->optional = 1;
	rule->quiet = 1;
	rule->own_only = 1;
	if (early)
		rule->late = 0;
}

/*
 * The command's own terminal, by its descriptor: the object that is there already is what counts,
 * and no name finds it once the base has a /dev/pts of its own.
 */
static void add_own_terminal(struct rule_list *list, const struct job *job)
{
	for (int i = 0; i < 3; i++) {
		char link[64];
		if (job->stdio[i] < 0 || !isatty(job->stdio[i]))
			continue;
		snprintf(link, sizeof(link), "/proc/self/fd/%d", job->stdio[i]);
		add_device(list, link, true);
	}
}

/*
 * A new terminal harms nobody. Which of those that there are may be opened, and all else that the
 * base would make private, is the supervisor's to judge.
 */
static void add_plain(const struct job_request *req, struct rule_list *list)
{
	if (req->rung != RUNG_PLAIN)
		return;
	add_device(list, "/dev/ptmx", false);
	if (!req->place_name)
		return;
	auto_free char *path = xasprintf("%s/%s/shm", req->place_top, req->place_name);
	struct job_rule *rule = add_rule(list, path, RIGHTS_ALL);
	rule->optional = 1;
	rule->quiet = 1;
}

static void add_standard(const struct job_request *req, struct rule_list *list)
{
	static const char *const devices[] = {"/dev/null",   "/dev/zero",    "/dev/full",
					      "/dev/random", "/dev/urandom", "/dev/tty"};
	for (size_t i = 0; i < ARRAY_SIZE(devices); i++)
		add_device(list, devices[i], false);
	add_own_terminal(list, list->job);
	if (!list->job->base)
		return add_plain(req, list);
	static const struct {
		const char *path;
		uint64_t access;
	} mounts[] = {
		{"/proc", RIGHTS_READ & ~LANDLOCK_ACCESS_FS_EXECUTE},
		{"/dev/pts", RIGHTS_DEVICE | LANDLOCK_ACCESS_FS_READ_DIR},
		{"/dev/ptmx", RIGHTS_DEVICE},
		{"/dev/shm", RIGHTS_ALL},
	};
	for (size_t i = 0; i < ARRAY_SIZE(mounts); i++) {
		struct job_rule *rule = add_rule(list, mounts[i].path, mounts[i].access);
		rule->optional = 1;
		rule->quiet = 1;
	}
}

/* A root-owned place that decides what other programs of the machine do. */
static bool is_system_path(const char *path)
{
	static const char *const places[] = {"/bin",   "/boot",	 "/dev", "/etc",  "/lib",
					     "/lib32", "/lib64", "/opt", "/proc", "/root",
					     "/run",   "/sbin",	 "/sys", "/usr",  "/var"};
	struct stat st;
	if (str_eq(path, "/"))
		return true;
	for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
		if (at_or_below(path, places[i]) && !at_or_below(path, "/var/tmp") &&
		    !at_or_below(path, "/dev/shm") && !at_or_below(path, "/dev/pts"))
			return stat(path, &st) == 0 && st.st_uid == 0;
	}
	return false;
}

/* Whether a grant reaches the host's message queues, which the base then covers with its own. */
static bool reaches_mqueue(const struct strv *grants)
{
	for (size_t i = 0; i < grants->n; i++) {
		if (str_eq(grants->v[i], "/") || str_eq(grants->v[i], "/dev") ||
		    at_or_below(grants->v[i], "/dev/mqueue"))
			return true;
	}
	return false;
}

/*
 * Without the base nothing is laid over these: a grant that covers them opens the user's other
 * terminals, shared objects and processes, which Landlock cannot subtract again.
 */
static void warn_shared(struct job_request *req, const struct strv *grants)
{
	for (size_t i = 0; i < grants->n && req->rung != RUNG_BASE; i++) {
		const char *path = grants->v[i];
		if (str_eq(path, "/") || str_eq(path, "/dev") || str_eq(path, "/proc") ||
		    str_eq(path, "/dev/pts") || str_eq(path, "/dev/shm"))
			warn_add(req->warnings,
				 "grant %s opens what the base would hide (your other terminals, "
				 "shared "
				 "memory or processes), and there is no base here: name what is "
				 "needed "
				 "instead",
				 path);
	}
}

static void add_workdirs(const struct job_request *req, struct rule_list *list)
{
	const struct workspace_root *roots = NULL;
	size_t n = workspace_roots(req->workspace, &roots);
	for (size_t i = 0; i < n; i++) {
		struct job_rule *rule = add_rule(list, roots[i].path, RIGHTS_ALL);
		rule->late = 1;
		rule->layer = 1;
		rule->into_shm = at_or_below(roots[i].path, "/dev/shm");
	}
}

static void add_grants(struct job_request *req, struct rule_list *list)
{
	const struct policy *p = req->policy;
	warn_shared(req, &p->fs_read);
	warn_shared(req, &p->fs_write);
	for (size_t i = 0; i < p->fs_read.n; i++) {
		struct job_rule *rule = add_rule(list, p->fs_read.v[i], RIGHTS_READ);
		rule->optional = 1;
		rule->pattern = policy_path_is_glob(p->fs_read.v[i]);
	}
	for (size_t i = 0; i < p->fs_read_if_exists.n; i++) {
		struct job_rule *rule = add_rule(list, p->fs_read_if_exists.v[i], RIGHTS_READ);
		rule->optional = 1;
		rule->quiet = 1;
	}
	for (size_t i = 0; i < p->fs_write.n; i++) {
		struct job_rule *rule = add_rule(list, p->fs_write.v[i], RIGHTS_ALL);
		rule->writable = !rule->late;
		if (str_eq(p->fs_write.v[i], "/"))
			list->job->root_writable = true;
		if (str_eq(p->fs_write.v[i], "/") || at_or_below(p->fs_write.v[i], "/proc"))
			list->job->proc_writable = true;
		if (geteuid() == 0 && !p->has_user && is_system_path(p->fs_write.v[i]))
			warn_add(req->warnings,
				 "started as root, and %s is a root-owned system path: the command "
				 "can "
				 "change it for the whole machine; use --user UID:GID",
				 p->fs_write.v[i]);
	}
	add_workdirs(req, list);
	list->job->own_mqueue = reaches_mqueue(&p->fs_read) || reaches_mqueue(&p->fs_write) ||
				reaches_mqueue(&p->fs_read_if_exists);
	if (req->tmp_name) {
		auto_free char *path = xasprintf("/tmp/%s", req->tmp_name);
		list->job->tmp_rule = (int)list->job->n_rules;
		struct job_rule *rule = add_rule(list, path, RIGHTS_ALL);
		rule->optional = 1;
		rule->quiet = 1;
	}
}

/*
 * Child and guardian share a descriptor table, in which each rule takes one to three numbers: where
 * the soft limit is too low for them, the hard one holds until the exec.
 */
static void plan_open_files(struct job *job)
{
	struct rlimit lim;
	if (getrlimit(RLIMIT_NOFILE, &lim) == 0 && lim.rlim_cur < lim.rlim_max &&
	    3 * job->n_rules + 128 > lim.rlim_cur)
		job->soft_open_files = lim.rlim_cur;
}

int job_plan_rules(struct job_request *req, struct job *job, struct sandlock_error *err)
{
	const struct policy *p = req->policy;
	struct rule_list list = {.job = job,
				 .room = p->fs_read.n + p->fs_read_if_exists.n + p->fs_write.n +
					 p->workdirs.n + 16,
				 .workspace = req->workspace};
	job->rules = job_alloc(job, list.room * sizeof(*job->rules));
	job->clones = job_alloc(job, list.room * sizeof(*job->clones));
	if (job->rules && job->clones) {
		add_grants(req, &list);
		add_standard(req, &list);
		plan_open_files(job);
		if (!list.failed)
			list.failed = job_plan_layers(req, job);
	} else {
		list.failed = -E2BIG;
	}
	return list.failed ? api_fail(err, SANDLOCK_E_LIMIT, E2BIG, "The policy has too many paths")
			   : 0;
}
