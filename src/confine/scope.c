/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What keeper and guardian share without namespaces: signals that reach their own Landlock domain
 * only, a descriptor table without the host's, and the removal of what was made for the run.
 */
#include <errno.h>
#include <linux/prctl.h>

#include "confine/job.h"
#include "confine/raw_util.h"

/*
 * A layer that does not speak of renames and links across directories denies them (landlock(7),
 * LANDLOCK_ACCESS_FS_REFER): this one lets them be judged by the command's own layer.
 */
static long allow_refer(int ruleset)
{
	int root = raw_openat(AT_FDCWD, "/", O_PATH | O_CLOEXEC, 0);
	if (root < 0)
		return root;
	struct landlock_path_beneath_attr rule = {.allowed_access = LANDLOCK_ACCESS_FS_REFER,
						  .parent_fd = root};
	long r = raw_syscall4(SYS_landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH, &rule, 0);
	raw_close(root);
	return r;
}

int job_scope_signals(struct job *job)
{
	struct uapi_landlock_ruleset_attr attr = {.handled_access_fs = LANDLOCK_ACCESS_FS_REFER,
						  .scoped = job->guardian_scope};
	int fd = (int)raw_syscall3(SYS_landlock_create_ruleset, &attr, sizeof(attr), 0);
	if (fd < 0)
		return job_fail(job, STEP_GUARDIAN_SCOPE, -fd, 0);
	long r = allow_refer(fd);
	if (r == 0)
		r = raw_syscall5(SYS_prctl, PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	if (r == 0)
		r = raw_syscall2(SYS_landlock_restrict_self, fd, 0);
	raw_close(fd);
	if (r < 0)
		return job_fail(job, STEP_GUARDIAN_SCOPE, (int)-r, 1);
	r = raw_syscall2(SYS_kill, job->host_pid, 0);
	if (r != -EPERM && r != -ESRCH)
		return job_fail(job, STEP_GUARDIAN_HOST_REACHABLE, EPERM, 0);
	return 0;
}

void job_close_except(const int *keep, size_t n)
{
	unsigned int from = 0;
	for (;;) {
		unsigned int next = ~0U;
		for (size_t i = 0; i < n; i++) {
			if (keep[i] >= 0 && (unsigned int)keep[i] >= from &&
			    (unsigned int)keep[i] < next)
				next = (unsigned int)keep[i];
		}
		if (next > from)
			raw_syscall3(SYS_close_range, from, next == ~0U ? ~0U : next - 1, 0);
		if (next == ~0U)
			return;
		from = next + 1;
	}
}

void job_cleanup(struct job *job)
{
	if (job->tmp_fd >= 0 && job->tmp_name)
		raw_remove_tree(job->tmp_fd, job->tmp_name);
	if (job->place_fd >= 0 && job->place_name) {
		/* Most are empty: two calls do, also where a filter refuses to list directories. */
		const int dir = 0x200; /* AT_REMOVEDIR */
		raw_syscall3(SYS_unlinkat, job->place_fd, job->place_shm, dir);
		if (raw_syscall3(SYS_unlinkat, job->place_fd, job->place_name, dir) < 0)
			raw_remove_tree(job->place_fd, job->place_name);
	}
	entry_remove(&job->entry);
}
