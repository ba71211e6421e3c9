/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `sandlock check`: every mechanism is tried for real, one probe per row. A probe runs in a process
 * of its own that has a time limit, is no child that the caller could see by wait(-1), makes raw
 * system calls only (the caller may have threads), and leaves its answer in memory shared with it.
 *
 * A row never claims more than was tried: what could not be tried is "untried", not "ok".
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "lib/call_reason.h"

struct strv;
struct sandlock_error;
struct value;

enum check_status {
	CHECK_PENDING, /* only while a probe runs */
	CHECK_OK,
	CHECK_MISSING,	/* this kernel does not have it */
	CHECK_BLOCKED,	/* something on this machine forbids it */
	CHECK_DEGRADED, /* works in part */
	CHECK_FAILED,	/* wrong outcome, crash or time-out */
	CHECK_UNTRIED,	/* something that it needs is not there */
	CHECK_INFO,	/* a setting, neither good nor bad */
	CHECK_STATUS_COUNT,
};

/* What a probe leaves in shared memory. Strings are literals: valid in every copy of the process.
 */
struct probe_result {
	int status;	  /* enum check_status */
	int error;	  /* positive errno, 0: none */
	const char *call; /* the call that ERROR came from */
	const char *note; /* further words, or NULL */
	long value;	  /* what VALUE_LABEL says, or the signal that killed the probe */
};

/* What the probes know about the place, read-only. */
struct check_env {
	const char *work; /* directory for trials, NULL: none could be made */
	int work_fd;
	bool root; /* no user namespace is needed, as in the start itself */
	const char *uid_map;
	const char *gid_map;
	const char *overlay; /* options of the overlay to mount */
	const char *cgroup;  /* directory to make below our own cgroup, NULL: no cgroup v2 */
	struct call_place place;
};

struct probe {
	const char *id;
	const char *tried;  /* as a request: "truncate a file (must be refused)" */
	const char *remedy; /* what helps where it is not */
	unsigned int since; /* kernel that brought it, 0: older than any that matters */
	bool required;	    /* the strict default cannot start without it */
	const char *needs;  /* id of a row without which this one is not tried, or NULL */
	bool needs_work;    /* not tried without a directory for trials */
	int arg;
	/* Returns 0 for "ok"; anything else with RES filled. */
	int (*fn)(const struct check_env *env, struct probe_result *res, int arg);
	const char *value_label; /* what the result's VALUE is, or NULL */
};

struct probe_group {
	const char *name;
	const struct probe *probes;
	size_t n;
};

extern const struct probe_group check_landlock_group;
extern const struct probe_group check_seccomp_group;
extern const struct probe_group check_process_group;
extern const struct probe_group check_namespace_group;
extern const struct probe_group check_cgroup_group;

/* One line of the report; owned by the report. */
struct check_row {
	const char *id;
	const char *group;
	const char *tried;
	enum check_status status;
	bool required;
	char *detail; /* NULL: nothing to add */
	char *remedy; /* NULL: none needed */
};

struct check_report {
	struct check_env env;
	struct check_row *rows;
	size_t n;
	int landlock_abi; /* 0: none */
	bool starts;
	bool in_namespaces; /* how the default started */
	char *dir;	    /* what check_env's strings point to */
	char *own_cgroup;   /* directory, NULL: none */
	char *cgroup;
	char uid_map[48];
	char gid_map[48];
};

/* --- Inside a probe (check_run.c): raw system calls only -------------------------------------- */

/* All four fill RES unless it was filled before, and return -1. E is a negative errno. */
int probe_error(struct probe_result *res, const char *call, long e);
int probe_say(struct probe_result *res, enum check_status status, const char *note);
/* R must be WANT (negative errno); else "was not refused" or the errno is told. 0 if it is. */
int probe_expect(struct probe_result *res, const char *call, long r, long want);
/* A copy of this process (FLAGS: namespaces); it dies with its parent. 0 in the copy. */
long probe_fork(struct probe_result *res, unsigned long flags);
/* Waits for the copy: 0 if it left with 0, else -1 with RES filled. */
int probe_wait(struct probe_result *res, long pid);

/* --- In the caller ---------------------------------------------------------------------------- */

/* Runs one probe in its own process. RES is shared memory. */
void probe_run(const struct probe *p, const struct check_env *env, struct probe_result *res);

/* Adds a row; borrowed until the next one. The three strings are literals. */
struct check_row *check_add(struct check_report *report, const char *group, const char *id,
			    const char *tried);
/* Whether the row with ID is ok or degraded. */
bool check_row_works(const struct check_report *report, const char *id);
const struct check_row *check_row_find(const struct check_report *report, const char *id);

/* Fills ROW from what probe P left. */
void check_judge(const struct check_env *env, const struct probe *p, const struct probe_result *res,
		 struct check_row *row);
/* Directory, release, maps, own cgroup. */
void check_env_init(struct check_report *report);
void check_env_done(struct check_report *report);
/* Adds to the cgroup's row which controllers it has: without memory and pids it is degraded. */
void check_controllers(struct check_report *report, struct check_row *row);
/* Settings that explain other rows. */
void check_settings(struct check_report *report);
/* Starts real sandboxes whose command tries a forbidden and a granted write. */
void check_self_tests(struct check_report *report);

const char *check_status_name(enum check_status status);
char *check_text(const struct check_report *report);
char *check_json(const struct check_report *report);
