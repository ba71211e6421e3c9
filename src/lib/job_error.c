/* SPDX-License-Identifier: Apache-2.0 */
/* A start's failure as one line: the step, the object, the errno, and what to do about it. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/util.h"
#include "confine/job.h"
#include "lib/call_reason.h"
#include "lib/launch.h"

static const struct {
	const char *what;   /* what failed, in words */
	const char *call;   /* the system call behind it, or NULL */
	unsigned int since; /* kernel that brought the call, 0: older than any that matters */
	const char *hint;   /* what helps, or NULL */
} steps[STEP_COUNT] = {
	/* clang-format off */
	[STEP_NAMESPACE]      = {"creating the sandbox's namespaces", "clone", KERNEL(3, 8),
	                         "AppArmor's user-namespace rule or user.max_user_namespaces can forbid it, too; use --view auto"},
	[STEP_ID_MAP]         = {"writing the user namespace's id maps", NULL, 0,
	                         "AppArmor (kernel.apparmor_restrict_unprivileged_userns) or a container forbids it; use --view auto, and no --user"},
	[STEP_MOUNT_PRIVATE]  = {"making the mounts private", "mount_setattr", KERNEL(5, 12), "use --view auto"},
	[STEP_RULE_OPEN]      = {"opening a granted path", NULL, 0, NULL},
	[STEP_RULE_TYPE]      = {"opening a granted path", NULL, 0, NULL},
	[STEP_MOUNT_CLONE]    = {"cloning the mount of a write grant", "open_tree", KERNEL(5, 2), "use --view auto"},
	[STEP_MOUNT_READONLY] = {"making the mounts read-only", "mount_setattr", KERNEL(5, 12), "use --view auto"},
	[STEP_MOUNT_WRITE]    = {"mounting a write grant", "move_mount", KERNEL(5, 2), "use --view auto"},
	[STEP_MOUNT_PROC]     = {"mounting a private /proc", "mount", 0,
	                         "a container that covers parts of /proc forbids it, too; use --view auto"},
	[STEP_MOUNT_DEVPTS]   = {"mounting a private /dev/pts", "mount", 0, "use --view auto"},
	[STEP_MOUNT_SHM]      = {"mounting a private /dev/shm", "mount", 0, "use --view auto"},
	[STEP_MOUNT_MQUEUE]   = {"mounting a private /dev/mqueue", "mount", 0, "use --view auto"},
	[STEP_LAYER]          = {"laying an overlay over a workdir", NULL, 0,
	                         "the storage must be on a file system with user attributes that is no overlay itself: name one with --fs-storage"},
	[STEP_HIDE]           = {"hiding the state directory", NULL, 0, NULL},
	[STEP_HOSTNAME]       = {"setting the host name", "sethostname", 0, "go without --name"},
	[STEP_GUARDIAN_EXEC]  = {"executing sandlock-guardian", "execve", 0, "install it beside libsandlock.so or in libexec/sandlock"},
	[STEP_GUARDIAN_SCOPE] = {"scoping the guardian's signals", "landlock_add_rule or landlock_restrict_self", KERNEL(6, 12), NULL},
	[STEP_GUARDIAN_HOST_REACHABLE] = {"proving that the guardian's signals stay inside the sandbox", NULL, 0, "use --no-supervisor"},
	[STEP_SUBREAPER]      = {"becoming a subreaper", "prctl", 0, NULL},
	[STEP_SIGNALFD]       = {"watching child processes", "signalfd4", 0, NULL},
	[STEP_WAIT]           = {"waiting for child processes", "waitid", 0, NULL},
	[STEP_POLL]           = {"waiting for what comes first", "ppoll", 0, NULL},
	[STEP_SIGNAL_MASK]    = {"setting the signal mask", "rt_sigprocmask", 0, NULL},
	[STEP_PTY]            = {"making a terminal for the command", NULL, 0, "go without --pty"},
	[STEP_EXEC_PIPE]      = {"making a pipe", "pipe2", 0, NULL},
	[STEP_CHILD_CLONE]    = {"creating the command's process", "clone", 0, NULL},
	[STEP_PROCESS_GROUP]  = {"making a process group", "setpgid", 0, NULL},
	[STEP_FOREGROUND]     = {"handing over the terminal (TIOCSPGRP)", "ioctl", 0, NULL},
	[STEP_STDIO]          = {"arranging the standard streams", "fcntl or dup3", 0, NULL},
	[STEP_CLOSE_FDS]      = {"closing inherited descriptors", "close_range", KERNEL(5, 9), NULL},
	[STEP_CORE_LIMIT]     = {"switching core dumps off", "prlimit64", 0, "go without --no-coredump"},
	[STEP_THP]            = {"switching huge pages off (PR_SET_THP_DISABLE)", "prctl", 0, "go without --no-huge-pages"},
	[STEP_PERSONALITY]    = {"switching address randomisation off", "personality", 0, "go without --no-randomize-memory"},
	[STEP_AFFINITY]       = {"setting the CPU affinity", "sched_setaffinity", 0, "name cores that this machine has with --cpu-cores"},
	[STEP_CWD]            = {"changing to the working directory", NULL, 0, NULL},
	[STEP_NO_NEW_PRIVS]   = {"setting no_new_privs", "prctl", 0, NULL},
	[STEP_LANDLOCK_RULESET]  = {"creating the Landlock ruleset", "landlock_create_ruleset", KERNEL(5, 13), NULL},
	[STEP_LANDLOCK_RULE]     = {"adding a Landlock rule", "landlock_add_rule", KERNEL(5, 13), NULL},
	[STEP_LANDLOCK_PORT]     = {"adding a Landlock port rule", "landlock_add_rule", KERNEL(5, 13), NULL},
	[STEP_LANDLOCK_RESTRICT] = {"entering the Landlock domain", "landlock_restrict_self", KERNEL(5, 13), NULL},
	[STEP_IDS]            = {"changing to the user of --user", "setresuid or setresgid", 0, NULL},
	[STEP_CAPABILITIES]   = {"dropping capabilities", "capget, capset or prctl", 0, NULL},
	[STEP_SECCOMP]        = {"installing the seccomp filter", "seccomp", KERNEL(3, 17), NULL},
	[STEP_OPEN_FILES]     = {"setting the open-file limit", "prlimit64", 0, "go without --max-open-files"},
	[STEP_EXEC]           = {"executing the command", NULL, 0, NULL},
	/* clang-format on */
};

const char *job_step_words(int step)
{
	if (step <= STEP_NONE || step >= STEP_COUNT)
		return "the start";
	return steps[step].call ? steps[step].call : steps[step].what;
}

static enum sandlock_code code_of(int code)
{
	switch (code) {
	case ENOENT:
	case ENOTDIR:
		return SANDLOCK_E_INVALID;
	case EACCES:
	case EPERM:
	case EROFS:
		return SANDLOCK_E_PERMISSION;
	case EAGAIN:
	case EMFILE:
	case ENFILE:
	case ENOMEM:
	case E2BIG:
	case ENOSPC:
		return SANDLOCK_E_LIMIT;
	case ENOSYS:
	case EOPNOTSUPP:
		return SANDLOCK_E_UNSUPPORTED;
	default:
		return SANDLOCK_E_INTERNAL;
	}
}

static int explain_rule(const struct job *job, int index, int code, struct sandlock_error *err)
{
	const struct job_rule *rule = &job->rules[index];
	if (policy_path_is_glob(rule->path) && code == ENOENT)
		return api_fail(
			err, SANDLOCK_E_INVALID, code,
			"Grant %s names nothing: grants are literal paths, patterns are for "
			"--fs-deny, --fs-hide and --fs-deny-except only",
			rule->path);
	if (code == ENOENT)
		return api_fail(
			err, SANDLOCK_E_INVALID, code,
			"Write grant %s does not exist: create it first, or grant its directory",
			rule->path);
	return api_fail(err, code_of(code), code, "Grant %s cannot be opened: %s", rule->path,
			strerror(code));
}

static int explain_exec(const struct job_request *req, const struct job *job,
			struct sandlock_error *err)
{
	char why[400];
	int code = job->state.step_errno;
	why[0] = '\0';
	bool found = exec_explain(req, job, why, sizeof(why));
	enum sandlock_code c = SANDLOCK_E_PERMISSION;
	if (!found) {
		/* A PATH directory that cannot be entered says EACCES and hides nothing. */
		c = SANDLOCK_E_NOT_FOUND;
		code = code == EACCES ? ENOENT : code;
	} else if (code == E2BIG || code == ENOMEM || code == EMFILE || code == ENFILE) {
		c = SANDLOCK_E_LIMIT;
	}
	return api_fail(err, c, code, "Cannot execute %s: %s%s%s", req->spawn->argv[0],
			strerror(code), why[0] ? ": " : "", why);
}

int call_fail(struct sandlock_error *err, const char *what, const char *call, unsigned int since,
	      int code)
{
	struct call_place place;
	call_place_init(&place);
	struct call_reason reason = call_judge(&place, call, since, code);
	enum sandlock_code c =
		reason.verdict == CALL_OTHER ? code_of(code) : SANDLOCK_E_UNSUPPORTED;
	return api_fail(err, c == SANDLOCK_E_INVALID ? SANDLOCK_E_INTERNAL : c, code,
			"%s (%s): %s%s%s%s", what, call, strerror(code), *reason.why ? ": " : "",
			reason.why, reason.by_filter ? ": allow it there" : "");
}

/* The call behind a step; a few steps make several, told apart by the index. */
static const char *call_of(const struct job_state *st)
{
	if (st->step == STEP_GUARDIAN_SCOPE && st->step_index == 0)
		return "landlock_create_ruleset";
	if (st->step == STEP_GUARDIAN_EXEC && st->step_index == 1)
		return "clone";
	return steps[st->step].call;
}

static int explain_step(const char *what, const struct job_state *st, struct sandlock_error *err)
{
	int step = st->step;
	int code = st->step_errno;
	enum sandlock_code c = code_of(code);
	const char *hint = steps[step].hint;
	const char *call = call_of(st);
	/* A shortage is no matter of what is forbidden here. */
	if (code == EAGAIN && (step == STEP_NAMESPACE || step == STEP_CHILD_CLONE))
		hint = "the user's limit of processes (ulimit -u) or that of the cgroup (pids.max) "
		       "is reached";
	else if (code == EMFILE || code == ENFILE || code == ENOMEM || code == EAGAIN)
		hint = NULL;
	struct sandlock_error e = {0};
	if (call)
		call_fail(&e, what, call, steps[step].since, code);
	else
		api_fail(&e, c == SANDLOCK_E_INVALID ? SANDLOCK_E_INTERNAL : c, code, "%s: %s",
			 what, strerror(code));
	return api_fail(err, (enum sandlock_code)e.code, code, "%s%s%s", e.msg, hint ? "; " : "",
			hint ? hint : "");
}

int job_explain(const struct job_request *req, const struct job *job, struct sandlock_error *err)
{
	const struct job_state *st = &job->state;
	int code = st->step_errno;
	switch (st->step) {
	case STEP_RULE_OPEN:
		return explain_rule(job, st->step_index, code, err);
	case STEP_CWD:
		return api_fail(err, code_of(code), code, "Working directory %s: %s", job->cwd,
				strerror(code));
	case STEP_EXEC:
		return explain_exec(req, job, err);
	case STEP_LANDLOCK_RESTRICT:
	case STEP_GUARDIAN_SCOPE:
		if (code == E2BIG)
			return api_fail(err, SANDLOCK_E_LIMIT, code,
					"Landlock's limit of %d layers is reached: this is nested "
					"too deep; "
					"sandlock uses one layer without a supervisor and at most "
					"three with one",
					UAPI_LANDLOCK_MAX_LAYERS);
		break;
	default:
		break;
	}
	const char *where = "";
	if ((st->step == STEP_MOUNT_CLONE || st->step == STEP_MOUNT_WRITE ||
	     st->step == STEP_LANDLOCK_RULE || st->step == STEP_LAYER) &&
	    (size_t)st->step_index < job->n_rules)
		where = job->rules[st->step_index].path;
	char what[300]; /* so that a long path leaves room for what comes behind it */
	snprintf(what, sizeof(what), "The start failed at %s%s%.200s", steps[st->step].what,
		 *where ? " for " : "", where);
	return explain_step(what, st, err);
}
