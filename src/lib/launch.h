/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From a finished policy to a running sandbox: builds the job, starts keeper and guardian, and owns
 * what the host holds of one sandbox.
 */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/strv.h"
#include "lib/notify.h"
#include "policy/filter.h"
#include "policy/policy.h"
#include "sandlock/sandlock.h"
#include "sys/landlock.h"

struct ask;
struct ask_save;
struct box;
struct grant;
struct job;
struct live;
struct resolver;
struct supervisor;
struct supervisor_guest;
struct workspace;

/* Events of one sandbox between whoever finds them and the thread that tells them. */
struct report {
	pthread_mutex_t lock;
	bool live;		 /* the lock was made */
	bool open;		 /* it is known whether anybody listens */
	struct event_log all;	 /* for the footer */
	struct event_log untold; /* for the listener, told by sandlock_wait */
	int wake_fd;		 /* eventfd, readable while something is untold; -1: none */
};

/* How a sandbox is held together, best first. */
enum rung {
	RUNG_BASE,  /* guardian as pid 1 of its own namespaces */
	RUNG_PLAIN, /* guardian as a subreaper with scoped signals */
	RUNG_NONE,  /* no supervisor */
	RUNG_COUNT,
};

/* A runtime directory's entry that makes a name unique (registry.c). */
struct registry_entry {
	int dir_fd;  /* the runtime directory, -1: none */
	int lock_fd; /* flock held while the sandbox lives */
	int top_fd;  /* what holds the runtime directory */
	char *top_name;
	char *name;
};

/* What of a sandbox's calls the supervisor judges, and what it has for that here. */
struct mediation {
	unsigned int notify; /* enum filter_notify; 0: there is no supervisor */
	bool udp;	     /* UDP sockets can be made, */
	bool ping;	     /* and ping sockets */
	bool have_getfd;
	bool have_vm_read;
	struct {
		uint64_t dev, ino;
	} inherited[3]; /* regular files as standard streams, outside the write grants */
	size_t n_inherited;
};

/* Everything that one spawn prepares; job_request_done releases it. */
struct job_request {
	const struct policy *policy;
	const struct sandlock_spawn *spawn;
	const struct landlock_caps *caps;
	enum rung rung;
	bool in_place;
	struct mediation mediation;
	struct filter_spec filter_spec; /* out: what the installed filter was built from */
	struct registry_entry registry;
	int tmp_fd;
	char *tmp_name;
	int place_fd; /* what holds PLACE_NAME, as job.h has it */
	char *place_name;
	const char *place_top;	     /* the name of PLACE_FD */
	struct workspace *workspace; /* borrowed; NULL: none */
	struct resolver *resolver;   /* owned; NULL: no rule holds a name, or handed over */
	struct strv *warnings;	     /* appended to */
	int failed_step;	     /* out: enum job_step of a failed launch */
	int failed_errno;	     /* out: what it failed with */
};

struct sandlock_process {
	struct job *job;
	pid_t owner; /* who started it; in a fork of that process the handle does nothing */
	enum rung rung;
	pid_t keeper_pid; /* guardian or keeper: the host's child */
	int keeper_pidfd;
	int ctl;
	bool ctl_gone; /* the other side has closed it */
	int epoll_fd;
	pid_t child_pid;
	pid_t guardian_pid;
	int child_pidfd; /* unsupervised only */
	int pty_fd;
	bool ended;
	bool kill_sent;
	struct sandlock_result result;
	struct listener listener;
	uint64_t timeout_ms;
	struct landlock_caps caps;
	enum protection_state prot[PROT_COUNT];
	char *name;

	/* The supervisor (supervision.c) */
	struct supervisor *sup;
	bool own_loop; /* the caller steps it */
	bool other_ready;
	struct box *box; /* NULL: nothing is mediated */
	struct supervisor_guest *guests[3];
	struct resolver *resolver; /* the box's, NULL: none */
	struct supervisor_guest *resolver_guest;
	struct net_relay *relay; /* the box's, NULL: none */
	struct supervisor_guest *relay_guest;
	uint64_t net_max_bytes;
	struct grant *found; /* of each rule; PATH is NULL where nothing was found */
	size_t n_found;
	struct sock_table *socks; /* owned: paths of --unix-allow, found before the start */
	struct report report;
	struct workspace *workspace;   /* owned; NULL: none */
	struct sandlock_error landing; /* what became of it; code 0: nothing to tell */
	struct live *live;	       /* its entry and control socket; NULL: none */
	struct ask *ask;	       /* a reference to the box's; NULL: nobody is asked */
	struct ask_save *ask_save;     /* owned; NULL: answers are not saved */
};

/* Fills ERR (may be NULL) and returns -CODE. */
int api_fail(struct sandlock_error *err, enum sandlock_code code, int sys_errno, const char *fmt,
	     ...) __attribute__((format(printf, 4, 5)));

/* Adds a line unless it is there already. */
void warn_add(struct strv *warnings, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* The job in a mapping of its own, or a code < 0 with ERR filled. */
int job_build(struct job_request *req, struct job **ret_job, struct sandlock_error *err);
void job_free(struct job *job);

/* Landlock's part of the job (job_landlock.c): rights, scopes, ports, waivers. */
int job_plan_landlock(struct job_request *req, struct job *job, struct sandlock_error *err);
/* What is laid over directories of root's in the base (job_copies.c); before the paths. */
void job_plan_copies(const struct job_request *req, struct job *job);
/* The paths (job_rules.c). */
int job_plan_rules(struct job_request *req, struct job *job, struct sandlock_error *err);
/* The layers, and the rules of their workdirs (job_layers.c). */
int job_plan_layers(struct job_request *req, struct job *job);
/* Memory in the job's mapping, zeroed, 16-byte aligned; NULL when it is full. */
void *job_alloc(struct job *job, size_t size);
const char *job_strdup(struct job *job, const char *s);

/* The call that STEP (enum job_step) makes, or what it does, in words (job_error.c). */
const char *job_step_words(int step);
/* The start's failure as a message (job_error.c). */
int job_explain(const struct job_request *req, const struct job *job, struct sandlock_error *err);
/*
 * WHAT failed because CALL, which came with kernel SINCE (call_reason.h), gave the errno CODE:
 * fills ERR with the call, the reason and the remedy, and returns the negative code.
 */
int call_fail(struct sandlock_error *err, const char *what, const char *call, unsigned int since,
	      int code);
/*
 * What stands in the way of executing argv[0], in words (exec_explain.c). Returns whether a file of
 * that name was found at all.
 */
bool exec_explain(const struct job_request *req, const struct job *job, char *ret_text,
		  size_t size);

/* What holds a sandbox together, as one JSON object (rungs.c). */
char *rungs_json(enum rung rung, const struct landlock_caps *caps,
		 const enum protection_state prot[PROT_COUNT]);
/* Warns of read grants that named nothing. */
void warn_missing(const struct job_request *req, const struct job *job);
int launch(struct job_request *req, struct sandlock_process **ret_process,
	   struct sandlock_error *err);

/*
 * Claims NAME for this user among live sandboxes. -SANDLOCK_E_EXISTS if it is taken. Without a
 * runtime directory a warning is added and the entry stays empty.
 */
int registry_claim(const char *name, struct registry_entry *ret_entry, struct strv *warnings,
		   struct sandlock_error *err);
void registry_done(struct registry_entry *entry);
/*
 * After the end: removes what may have been written for NAME while the guardian was removing it,
 * unless another sandbox has the name by now.
 */
void registry_forget(const char *name);
