/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The job: all that the guardian and the confined child need, laid out before either exists, in one
 * mapping that holds their stacks as well. The host writes it, the guardian and the child only read
 * it, but for the state at its end, which they write and the host reads once they are gone (or,
 * for the start's failure and missing rules, once REPORT_STARTED has come).
 *
 * Pointers are valid in every process that uses the job: they share the host's memory, or (a
 * guardian with an address space of its own) map the same memfd at the same address.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "confine/entry.h"
#include "sys/uapi.h"

struct job_layer;
struct sock_filter;

/* Where a start can fail; names are in job_step_name. */
enum job_step {
	STEP_NONE,
	STEP_NAMESPACE, /* clone with namespaces */
	STEP_ID_MAP,	/* uid_map, gid_map, setgroups */
	STEP_MOUNT_PRIVATE,
	STEP_RULE_OPEN,	  /* index: rule */
	STEP_RULE_TYPE,	  /* index: rule: a directory or file was expected */
	STEP_MOUNT_CLONE, /* index: rule */
	STEP_MOUNT_READONLY,
	STEP_MOUNT_WRITE, /* index: rule */
	STEP_MOUNT_PROC,
	STEP_MOUNT_DEVPTS,
	STEP_MOUNT_SHM,
	STEP_MOUNT_MQUEUE,
	STEP_LAYER, /* index: rule */
	STEP_HIDE,  /* index: directory of HIDDEN */
	STEP_HOSTNAME,
	STEP_GUARDIAN_EXEC,
	STEP_GUARDIAN_SCOPE,
	STEP_GUARDIAN_HOST_REACHABLE, /* kill(host, 0) was not refused */
	STEP_SUBREAPER,
	STEP_SIGNALFD,
	STEP_WAIT,
	STEP_POLL,
	STEP_SIGNAL_MASK,
	STEP_PTY,
	STEP_EXEC_PIPE,
	STEP_CHILD_CLONE,
	STEP_PROCESS_GROUP,
	STEP_FOREGROUND,
	STEP_STDIO,
	STEP_CLOSE_FDS,
	STEP_CORE_LIMIT,
	STEP_THP,
	STEP_PERSONALITY,
	STEP_AFFINITY,
	STEP_CWD,
	STEP_NO_NEW_PRIVS,
	STEP_LANDLOCK_RULESET,
	STEP_LANDLOCK_RULE, /* index: rule */
	STEP_LANDLOCK_PORT,
	STEP_LANDLOCK_RESTRICT,
	STEP_IDS,
	STEP_CAPABILITIES,
	STEP_SECCOMP,
	STEP_OPEN_FILES,
	STEP_EXEC, /* index: candidate that decided the errno */
	STEP_COUNT,
};

/* One path that the sandbox may use. */
struct job_rule {
	const char *path;
	uint64_t access;  /* Landlock rights for a directory; masked for other files */
	uint8_t late;	  /* open after the mounts of the base: it lies in a private mount */
	uint8_t optional; /* missing: skipped, with WARN_MISSING set unless QUIET */
	uint8_t quiet;
	uint8_t pattern;  /* looks like a pattern: missing is an error in any case */
	uint8_t writable; /* in the base: mounted writable */
	uint8_t into_shm; /* lies below /dev/shm: carried over into the private one */
	uint8_t full;	  /* every right: a write grant */
	uint8_t device;	  /* a device to read and write, with what lies beside it to list */
	uint8_t layer;	  /* the workdir of a layer: see layers.c */
	uint8_t own_only; /* skip where it is no character device (standard devices) */
	/* Written by the child side: */
	uint8_t missing;
	int fd;		   /* the child's, -1 until opened */
	uint64_t rule_dev; /* what the Landlock rule is about */
	uint64_t rule_ino;
	/* Written by the guardian: what it has mounted for this rule. */
	uint8_t mounted, is_dir;
	int mount_fd;
	uint64_t dev;
	uint64_t ino;
};

/* A file of a directory that the base covers with a copy of its own. */
struct job_copy {
	const char *name;
	const char *link; /* a symbolic link with this text; NULL: a file */
	const void *data;
	size_t size;
	unsigned int mode;
};

enum job_end {
	END_NONE,
	END_MAIN, /* the command ended by itself: WAIT_STATUS */
	END_TIMEOUT,
	END_KILLED, /* asked for by the host */
	END_HOST,   /* the host is gone */
};

/* The child waits for the base's mounts: values of job_state.gate. */
enum job_gate { GATE_SHUT, GATE_OPEN, GATE_ABORT };

struct job_state {
	int gate; /* futex */

	/* First failure of the start; STEP_NONE while none. FAILED is claimed first. */
	int failed;
	int step;
	int step_errno;
	int step_index;
	/* In force, as the start found out. */
	uint64_t base_active;
	/* How the run ended. */
	int end;
	int wait_code;	  /* CLD_EXITED, CLD_KILLED, CLD_DUMPED */
	int wait_status;  /* exit code or signal */
	int64_t start_ns; /* CLOCK_MONOTONIC */
	int64_t end_ns;
	int64_t max_rss_kib;
	int tmp_errno; /* why there is no private TMPDIR */
	int listener;  /* the child's seccomp listener, in the table shared with the guardian */
};

struct job {
	size_t size; /* of the whole mapping */
	int memfd;   /* -1: anonymous */

	/* What to run */
	const char *const *candidates; /* paths to execute, tried in order; NULL-terminated */
	char *const *argv;
	char *const *envp;
	const char *cwd;   /* NULL: leave it */
	bool cwd_optional; /* a cwd that cannot be reached by name is left alone */
	const char *shell; /* for ENOEXEC, as execvp does */
	char **shell_argv; /* argv with room for "sh" and the script in front */

	/* How */
	bool supervised; /* a guardian exists */
	bool base;
	bool as_root;	  /* no user namespace is needed for the base */
	bool map_ids;	  /* write id maps: new user namespace */
	bool in_place;	  /* the calling process itself becomes the command */
	bool separate_vm; /* the child must not share memory with the caller */
	bool foreground;
	bool new_session; /* without a terminal */
	bool pty;
	bool report_stops;
	bool set_ids; /* started as root with --user */
	bool no_core;
	bool no_thp;
	bool no_aslr;
	uint32_t uid;
	uint32_t gid;
	const char *uid_map; /* text to write */
	const char *gid_map;
	const char *hostname;	 /* NULL: leave it */
	uint64_t max_open_files; /* 0: leave it */
	const unsigned long *cpu_mask;
	size_t cpu_mask_bytes;
	int64_t timeout_ns; /* 0: none */
	uint16_t pty_rows;
	uint16_t pty_cols;

	/* Landlock */
	struct uapi_landlock_ruleset_attr ruleset;
	struct job_rule *rules;
	size_t n_rules;
	bool proc_writable; /* a write grant reaches /proc: keep /proc/sys and its like read-only */
	bool own_mqueue;    /* cover /dev/mqueue with the base's own */
	bool root_writable; /* "/" is a write grant: nothing is made read-only */
	const char *copies_dir; /* covered with COPIES; NULL: none */
	struct job_copy *copies;
	size_t n_copies;
	struct job_layer *layers;
	size_t n_layers;
	const char *const *hidden; /* directories that an empty one lies over */
	size_t n_hidden;
	int *clones; /* room for N_RULES descriptors */
	const struct uapi_landlock_net_port_attr *ports;
	size_t n_ports;
	uint64_t file_rights;	 /* rights that a rule on a non-directory may have */
	uint64_t guardian_scope; /* LANDLOCK_SCOPE_SIGNAL, or 0 */

	/* seccomp */
	struct sock_filter *filter;
	uint16_t n_filter;
	/*
	 * The filter has a listener. Until it is installed, child and guardian share their
	 * descriptor table, so that the guardian can hand the listener to the host by a call that
	 * no filter traps, and the child need not wait for that: should the filter trap what it
	 * does until its exec, or the exec itself, the host serves it already.
	 */
	bool notify;
	uint64_t
		soft_open_files; /* the limit to go back to before the exec; 0: it was not raised */

	/* Descriptors, as numbered in the host (and kept through the guardian's exec) */
	int stdio[3]; /* -1: open /dev/null */
	int null_fd;
	int ctl; /* guardian's end of the control socket */
	int host_pidfd;
	int layer_lock;		/* likewise: says that the layers are in use; -1: none */
	int lock_fd;		/* held open for as long as the guardian lives; -1: none */
	struct job_entry entry; /* in the registry of live sandboxes */
	int tmp_fd;		/* directory that holds TMP_NAME; -1: none */
	const char *tmp_name;	/* private TMPDIR to be made there */
	char **tmp_env;		/* the variable's place, the last one, in ENVP */
	int tmp_rule;		/* its rule */
	int place_fd;		/* directory that holds PLACE_NAME; -1: none */
	const char *place_name; /* what stands for /proc and its like, to be made there */
	const char *place_shm;	/* "shm" below that */
	int exec_pipe;		/* the child's end, closed by a successful exec; -1: none */
	int32_t host_pid;

	const char *guardian_path; /* program for a guardian with its own address space */
	char *const *guardian_argv;

	/* Stacks: address of the end, 16-byte aligned */
	void *keeper_stack;
	void *guardian_stack;
	void *child_stack;

	struct job_state state;
};

/* Commands on the control socket, host to guardian. */
enum job_command { JOB_KILL = 'K', JOB_SIGNAL = 'S' };
/* Reports on the control socket, guardian (and once the child) to host. */
enum job_report {
	REPORT_CHILD = 'P',    /* sent by the child itself: its credentials carry the pid */
	REPORT_PTY = 'T',      /* carries the master side */
	REPORT_LISTENER = 'l', /* carries the child's listener, before it executes anything */
	REPORT_STARTED = 'x',  /* the command is executing */
	REPORT_STOPPED = 's',  /* value: signal */
	REPORT_CONTINUED = 'c',
};

struct job_msg {
	int32_t kind;
	int32_t value;
};

/* The guardian: sets up the base, starts the child, watches, kills. Returns its exit status. */
int guardian_main(void *arg);
/*
 * The keeper: the host's child where another program must be executed below it, since an exec makes
 * a process visible to its parent's SIGCHLD and wait. It shares the host's memory, starts the
 * guardian program (or, unsupervised, the command itself), waits for its end and leaves.
 */
int keeper_main(void *arg);
/* The confined child: confines itself and executes the command. Returns only when that failed. */
int child_main(void *arg);
/* The same in the calling process: returns a negative errno when it failed, half confined. */
int child_run(struct job *job);
/* Opens the rules (all but late ones when LATE is false) in the child. Negative errno. */
int job_open_rules(struct job *job, bool late);
/* Writes the id maps of a fresh user namespace. */
int job_map_ids(struct job *job);
/* The base's mounts, made by the guardian. Negative errno after job_fail. */
int base_mount(struct job *job);
/*
 * Signals of the caller from now on reach its own Landlock domain only; proved on the host itself.
 * Negative errno after job_fail.
 */
int job_scope_signals(struct job *job);
/* Closes all descriptors but the N in KEEP (negative ones are passed over). */
void job_close_except(const int *keep, size_t n);
/* Removes the private TMPDIR and the runtime directory's entry. */
void job_cleanup(struct job *job);
/* Removes NAME below DIR_FD with all it holds, without following links or leaving DIR_FD. */
void raw_remove_tree(int dir_fd, const char *name);

/* Records the first failure; guardian and child may both try. Returns -CODE (positive errno). */
static inline int job_fail(struct job *job, enum job_step step, int code, int index)
{
	if (!__atomic_exchange_n(&job->state.failed, 1, __ATOMIC_ACQ_REL)) {
		job->state.step_errno = code;
		job->state.step_index = index;
		__atomic_store_n(&job->state.step, (int)step, __ATOMIC_RELEASE);
	}
	return -code;
}
