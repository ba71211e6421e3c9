/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libsandlock: run a program that nobody should trust, confined by the kernel.
 *
 * Build a policy (options by name, profiles, JSON), spawn a command under it, wait for the end.
 * The library keeps no global state but the abort hook, prints nothing, installs no signal handler,
 * never shows a sandbox to the host's wait(-1) or SIGCHLD, and may be used from several threads, a
 * single object by one thread at a time (sandlock_kill may be called from any thread).
 *
 * Functions that can fail return 0 or a positive outcome, or a negative code from enum
 * sandlock_code; where they take a struct sandlock_error, it is filled on failure only and holds
 * one line that names the value, the place and the remedy.
 */
#ifndef SANDLOCK_SANDLOCK_H
#define SANDLOCK_SANDLOCK_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

#define SANDLOCK_API __attribute__((visibility("default")))

struct sandlock_policy;
struct sandlock_process;

/* The closed list of what a function can fail with, returned as its negative. */
enum sandlock_code {
	SANDLOCK_OK = 0,
	SANDLOCK_E_INVALID = 1,	    /* a malformed or contradictory value; nothing was done */
	SANDLOCK_E_NOT_FOUND = 2,   /* no such profile, option or command */
	SANDLOCK_E_PERMISSION = 3,  /* the system refused; or the command is not executable */
	SANDLOCK_E_UNSUPPORTED = 4, /* this kernel or this place cannot enforce the policy */
	SANDLOCK_E_EXISTS = 5,	    /* a live sandbox has that name */
	SANDLOCK_E_LIMIT = 6,	    /* out of processes, descriptors, memory or Landlock layers */
	SANDLOCK_E_STATE = 7,	    /* not in this state of the object */
	SANDLOCK_E_TIMEOUT = 8,	    /* the wait's own time is up; the sandbox goes on */
	SANDLOCK_E_INTERNAL = 9,    /* everything else */
};

struct sandlock_error {
	int code;      /* enum sandlock_code */
	int sys_errno; /* errno behind it, or 0 */
	char msg[512]; /* one line, NUL-terminated */
};

SANDLOCK_API const char *sandlock_version(void);

/*
 * HOOK is called with a one-line reason when memory is gone or an internal invariant is broken; it
 * must not return (the library calls abort() if it does). NULL restores the default.
 */
SANDLOCK_API void sandlock_set_abort_hook(void (*hook)(const char *reason));

/* --- Policy ------------------------------------------------------------------------------- */

SANDLOCK_API struct sandlock_policy *sandlock_policy_new(void);
SANDLOCK_API void sandlock_policy_free(struct sandlock_policy *policy);

/*
 * Sets one option by its long flag without dashes ("fs-read") or its profile key
 * ("filesystem.read"). VALUE is what a user would write after the flag; NULL or "true" / "false"
 * for switches. Lists append, scalars override. Relative paths are taken from the working
 * directory.
 *
 * A change that fails (this function and those below) spoils the policy: sandlock_policy_check and
 * sandlock_spawn repeat the failure, so that a caller who overlooks it does not run with less of a
 * policy than was written. Only a profile or file that cannot be read leaves it as it was.
 */
SANDLOCK_API int sandlock_policy_set(struct sandlock_policy *policy, const char *option,
				     const char *value, struct sandlock_error *err);
/* Loads profile NAME ("web", "builtin:python"), applying its includes first. */
SANDLOCK_API int sandlock_policy_load_profile(struct sandlock_policy *policy, const char *name,
					      struct sandlock_error *err);
/* Loads a profile file: JSON where PATH ends in .json, else TOML; "-" is standard input. */
SANDLOCK_API int sandlock_policy_load_file(struct sandlock_policy *policy, const char *path,
					   struct sandlock_error *err);
/* Loads a policy in JSON (the same nesting and keys as TOML) from LEN bytes at TEXT. */
SANDLOCK_API int sandlock_policy_load_json(struct sandlock_policy *policy, const char *text,
					   size_t len, struct sandlock_error *err);
/*
 * Reads the flags of `sandlock run` from argv[0..argc) into POLICY up to "--" or the first word
 * that is not a flag; -p and --profile-file are loaded where they stand first. Flags that belong to
 * the command line and not to the policy (see sandlock_cli) go to CLI, which may be NULL to refuse
 * them. *RET_USED is the number of words taken, the "--" included.
 *
 * On failure CLI is filled as far as the words were read, and its status_fd is right wherever that
 * flag stands, so that a refused command line can be reported there.
 */
struct sandlock_cli {
	size_t struct_size; /* sizeof(struct sandlock_cli), set by the caller */
	int status_fd;	    /* -1: none */
	int print_policy;   /* 0: no, 1: TOML, 2: JSON */
	int pty;
	int quiet;
	int help;
	int version;
	const char *exec_shell; /* borrowed from argv */
	const char *profile;	/* borrowed from argv: the -p or --profile-file value, or NULL */
	const char *events;	/* borrowed from argv */
	int dry_run;
	const char *format;	 /* of what a dry run prints; borrowed from argv, or NULL */
	const char *diff_output; /* where it prints that; borrowed from argv, or NULL */
};
SANDLOCK_API int sandlock_policy_parse_args(struct sandlock_policy *policy, int argc,
					    char *const *argv, struct sandlock_cli *cli,
					    int *ret_used, struct sandlock_error *err);
/* Checks ranges, contradictions and settings that cannot be enforced yet; spawn does it too. */
SANDLOCK_API int sandlock_policy_check(struct sandlock_policy *policy, struct sandlock_error *err);
/* The effective policy as text, owned by the caller (sandlock_free). FORMAT: "toml" or "json". */
SANDLOCK_API int sandlock_policy_print(struct sandlock_policy *policy, const char *format,
				       char **ret_text, struct sandlock_error *err);
/* Warning I of building the policy (and, after a spawn, of that spawn), or NULL past the last. */
SANDLOCK_API const char *sandlock_policy_warning(const struct sandlock_policy *policy, size_t i);
/* The profile's own command line (program.exec, program.args), NULL-terminated, borrowed; or NULL.
 */
SANDLOCK_API char *const *sandlock_policy_command(const struct sandlock_policy *policy);

/* 1 if the policy says no-supervisor, 0 if not, or a negative code if it does not hold together. */
SANDLOCK_API int sandlock_policy_no_supervisor(struct sandlock_policy *policy);
/* 1 if the kernel's own refusals are told as well (explain), 0 if not, or a negative code. */
SANDLOCK_API int sandlock_policy_explains(struct sandlock_policy *policy);

SANDLOCK_API void sandlock_free(void *p);

/* --- Profiles ----------------------------------------------------------------------------- */

/* Newline-separated names ("builtin:c-build" for built-in ones), owned by the caller. */
SANDLOCK_API int sandlock_profile_list(char **ret_text, struct sandlock_error *err);
/* The profile's text; FORMAT "toml" gives the file as it is, "json" its content as JSON. */
SANDLOCK_API int sandlock_profile_show(const char *name, const char *format, char **ret_text,
				       struct sandlock_error *err);
SANDLOCK_API int sandlock_profile_delete(const char *name, struct sandlock_error *err);
/* The directory that profiles are read from, owned by the caller. */
SANDLOCK_API int sandlock_profile_dir(char **ret_path, struct sandlock_error *err);

/*
 * Texts made from the option table, owned by the caller: "help" (of run), "man-run", "man-policy"
 * (scdoc sources), "bash", "zsh", "fish" (completions), "schema" (JSON Schema of policy files),
 * "reference" (Markdown table). Unknown NAME: -SANDLOCK_E_NOT_FOUND.
 */
SANDLOCK_API int sandlock_text(const char *name, char **ret_text);

/* --- Running ------------------------------------------------------------------------------ */

enum sandlock_reason {
	SANDLOCK_EXITED,
	SANDLOCK_SIGNALED,
	SANDLOCK_TIMED_OUT,
	SANDLOCK_KILLED, /* by sandlock_kill, or because the host went away */
	SANDLOCK_LIMIT,
	SANDLOCK_START_FAILED,
	SANDLOCK_COMMIT_FAILED, /* the run ended, its changes were not committed, but kept */
};

struct sandlock_result {
	size_t struct_size;
	enum sandlock_reason reason;
	int exit_code; /* -1 when a signal ended it */
	int signal;    /* 0: none */
	uint64_t run_ms;
	uint64_t peak_rss_bytes;
	int peak_is_tree; /* 0: PEAK_RSS_BYTES is that of the largest process */
};

/* Flags of struct sandlock_spawn. */
enum {
	/* Make the command's process group (always a new one) the foreground group of the terminal
	   on descriptor 0. */
	SANDLOCK_SPAWN_FOREGROUND = 1 << 0,
	/* A terminal of its own as descriptors 0 to 2; its master side is RET_PTY. */
	SANDLOCK_SPAWN_PTY = 1 << 1,
	/* Report stops and continues of the command by sandlock_wait (SANDLOCK_STOPPED …). */
	SANDLOCK_SPAWN_REPORT_STOPS = 1 << 2,
	/*
	 * The caller serves the sandbox itself, without the library's thread: it calls
	 * sandlock_wait (with any time, 0 included) whenever sandlock_process_fd is readable, and
	 * after sandlock_process_timeout. While it does not, calls that need the supervisor wait.
	 */
	SANDLOCK_SPAWN_CALLER_LOOP = 1 << 3,
};

struct sandlock_spawn {
	size_t struct_size;
	char *const *argv; /* NULL-terminated; argv[0] is looked up on the sandbox's PATH */
	char *const *envp; /* base environment before clean-env and env; NULL: the caller's */
	int fds[3];	   /* to become 0, 1, 2; -1: /dev/null. Borrowed. */
	unsigned int flags;
	unsigned short pty_rows; /* initial size with SANDLOCK_SPAWN_PTY; 0: unset */
	unsigned short pty_cols;
	int ret_pty; /* out: pty master, owned by the caller, or -1 */
	/* sandlock_exec only, which does not return: told each warning before confining; may be
	 * NULL. */
	void (*on_warning)(void *data, const char *text);
	void *on_warning_data;
};

/*
 * Starts the command. Returns when it has been executed, or failed to be: then
 * -SANDLOCK_E_NOT_FOUND (no such command) or -SANDLOCK_E_PERMISSION (found, but not executable or
 * not permitted) with a message that says which path lacked what.
 */
SANDLOCK_API int sandlock_spawn(struct sandlock_policy *policy, struct sandlock_spawn *spawn,
				struct sandlock_process **ret_process, struct sandlock_error *err);
/*
 * With no_supervisor only: confines and executes the command in the calling process, which must
 * have one thread. Returns on failure only.
 */
SANDLOCK_API int sandlock_exec(struct sandlock_policy *policy, struct sandlock_spawn *spawn,
			       struct sandlock_error *err);

enum sandlock_wait_outcome {
	SANDLOCK_ENDED = 0,
	SANDLOCK_STOPPED = 1, /* the command is stopped (RET_RESULT->signal says by what) */
	SANDLOCK_CONTINUED = 2,
};

/*
 * Waits until the whole tree has ended, or TIMEOUT_MS has passed (-1: without end), and fills
 * RET_RESULT. After the end every further call gives the same result at once.
 */
SANDLOCK_API int sandlock_wait(struct sandlock_process *process, int timeout_ms,
			       struct sandlock_result *ret_result, struct sandlock_error *err);
/* Readable when sandlock_wait would not block; borrowed. Or a negative code. */
SANDLOCK_API int sandlock_process_fd(struct sandlock_process *process);
/*
 * With SANDLOCK_SPAWN_CALLER_LOOP: the time in ms after which sandlock_wait wants to be called
 * though the descriptor is not readable, or -1.
 */
SANDLOCK_API int sandlock_process_timeout(const struct sandlock_process *process);
/*
 * The refusals so far as text, at most 10 distinct lines, each with what would allow it; "" if
 * there were none. Safe for a terminal; owned by the caller (sandlock_free).
 */
SANDLOCK_API int sandlock_process_refusals(struct sandlock_process *process, char **ret_text);
/* Pid of the command as the host sees it, 0 once it has ended. */
SANDLOCK_API pid_t sandlock_process_pid(const struct sandlock_process *process);
/* Kills the whole tree. Idempotent; any thread. */
SANDLOCK_API int sandlock_kill(struct sandlock_process *process);
/* Sends SIG to the command's process group (unsupervised: to the command alone). */
SANDLOCK_API int sandlock_signal(struct sandlock_process *process, int sig);
/*
 * Kills what is left, waits for its end, releases everything. NULL is fine. A sandbox belongs to
 * the process that started it: in a fork of that process this does nothing, and sandlock_wait
 * fails.
 */
SANDLOCK_API void sandlock_process_free(struct sandlock_process *process);
/* The rungs in use as one JSON object: base, view, protections, waivers. Owned by the caller. */
SANDLOCK_API int sandlock_process_rungs(const struct sandlock_process *process, char **ret_json);

/*
 * The same for a policy, found out by starting it up to the exec and no further: nothing is run.
 * Fails as sandlock_spawn would.
 */
SANDLOCK_API int sandlock_policy_rungs(struct sandlock_policy *policy, char **ret_json,
				       struct sandlock_error *err);

/* --- Workspaces --------------------------------------------------------------------------- */

/*
 * A policy with workdirs gives each run a layer of its own over them. When the whole tree has
 * ended, sandlock_wait does with it what on-exit and on-error say, and for that time does not
 * return; SANDLOCK_COMMIT_FAILED is the reason where a commit was refused. With "defer", and in a
 * dry run, the layer stays with the handle until one of these is called after the end. A handle
 * that is freed before keeps a deferred layer, and removes that of a dry run.
 */

/*
 * The changes as text, given to FN in pieces; it returns 0, or a negative errno to stop. FORMAT:
 * NULL or "text", "json", "patch", "stat".
 */
SANDLOCK_API int sandlock_process_changes(struct sandlock_process *process, const char *format,
					  int (*fn)(void *data, const char *text, size_t len),
					  void *data, struct sandlock_error *err);
/* ACTION: "commit", "abort" or "keep". After a commit that failed the changes are kept. */
SANDLOCK_API int sandlock_process_land(struct sandlock_process *process, const char *action,
				       struct sandlock_error *err);
/* Why a commit at the end failed: fills ERR and returns its negative code; 0 if none did. */
SANDLOCK_API int sandlock_process_landing(const struct sandlock_process *process,
					  struct sandlock_error *err);
/* Line I of what is to be told of the layer (where it was kept), or NULL past the last. */
SANDLOCK_API const char *sandlock_process_note(const struct sandlock_process *process, size_t i);

/* --- Live sandboxes ----------------------------------------------------------------------- */

/*
 * The sandboxes of the calling user that have a supervisor, by name, whichever process started
 * them. What they hold of text is theirs: escape it before it is shown. Entries that dead ones left
 * are removed on the way. None of these functions waits for longer than it says.
 */

/*
 * A JSON array (owned by the caller) of objects with name, pid (of the command), supervisor_pid,
 * guardian_pid, uptime_ms, status, ports and command. A supervisor that has not answered in a
 * second has the status "no-answer" and null for ports.
 */
SANDLOCK_API int sandlock_list(char **ret_json, struct sandlock_error *err);
/*
 * The effective policy of NAME as text, owned by the caller. FORMAT: "json" and "toml" give what
 * sandlock_policy_print gave in that process, TOML with comments in front that say who the sandbox
 * is and what holds it together; "full" is the JSON with all that as a further key "sandbox".
 * Waits a second for the answer.
 */
SANDLOCK_API int sandlock_inspect(const char *name, const char *format, char **ret_text,
				  struct sandlock_error *err);
/*
 * Ends NAME and returns when its whole tree is dead, after 13 seconds at most. The process that
 * started it is asked to do so and not harmed. RET_PID (the command's) and RET_SUPERVISOR may be
 * NULL.
 */
SANDLOCK_API int sandlock_kill_name(const char *name, pid_t *ret_pid, pid_t *ret_supervisor,
				    struct sandlock_error *err);

/*
 * The open questions of NAME, which was started with net_ask: a JSON array (owned by the caller) of
 * objects with id, sandbox, op, protocol ("tcp", "udp"), host (null: no name is known), address,
 * port, pid, program and left_ms. The call that is asked about waits. Waits a second for the reply.
 */
SANDLOCK_API int sandlock_questions(const char *name, char **ret_json, struct sandlock_error *err);
/*
 * Answers question ID: "once" (the calls that wait), "run" (these and later ones to the same
 * destination) or "no" (none of these). -SANDLOCK_E_INTERNAL with what the sandbox says if it is
 * not open any more.
 */
SANDLOCK_API int sandlock_answer(const char *name, int id, const char *answer,
				 struct sandlock_error *err);
/* The same for a sandbox of this process's own. Any thread, until sandlock_process_free. */
SANDLOCK_API int sandlock_process_questions(struct sandlock_process *process, char **ret_json);
SANDLOCK_API int sandlock_process_answer(struct sandlock_process *process, int id,
					 const char *answer, struct sandlock_error *err);
/*
 * The number of open questions; -SANDLOCK_E_STATE without net_ask. Unlike looking at them this is
 * no sign that somebody may answer: after a question that nobody answered, none is asked until
 * somebody looks.
 */
SANDLOCK_API int sandlock_process_asks(const struct sandlock_process *process);

/* --- Events ------------------------------------------------------------------------------- */

/*
 * FN is called for each event with one JSON line (without newline), from the thread that calls
 * sandlock_spawn, sandlock_wait or sandlock_process_free. NULL: no events.
 */
SANDLOCK_API void sandlock_policy_on_event(struct sandlock_policy *policy,
					   void (*fn)(void *data, const char *json), void *data);

/* --- Change sets -------------------------------------------------------------------------- */

/*
 * What runs in a workspace have left or committed. STORAGE is the state directory, NULL the user's
 * own. Each call first recovers what killed processes left. ID NULL: the newest one that it fits.
 */

/* A JSON array (owned by the caller) of objects with id, status, began, workdirs and command. */
SANDLOCK_API int sandlock_changes_list(const char *storage, char **ret_json,
				       struct sandlock_error *err);
/* Writes to FD what a kept set changes, as text, json, patch or stat (NULL: text); of a committed
 * one as text what it changed. */
SANDLOCK_API int sandlock_changes_show(const char *storage, const char *id, const char *format,
				       int fd, struct sandlock_error *err);
/*
 * Puts a kept set into its workdirs, whole or not at all; with ONLY what that glob matches. What
 * was changed there meanwhile is a failure (ON_CONFLICT NULL or "abort"), stays ("theirs") or is
 * replaced
 * ("ours"). RET_ID (may be NULL; owned): the set that undo takes, "" where there was nothing to do.
 */
SANDLOCK_API int sandlock_changes_apply(const char *storage, const char *id, const char *only,
					const char *on_conflict, char **ret_id,
					struct sandlock_error *err);
/* Take a committed set back, and that again. ON_CONFLICT: abort (NULL) or ours. */
SANDLOCK_API int sandlock_changes_undo(const char *storage, const char *id, const char *on_conflict,
				       struct sandlock_error *err);
SANDLOCK_API int sandlock_changes_redo(const char *storage, const char *id, const char *on_conflict,
				       struct sandlock_error *err);
/* Forgets a set: kept changes are lost, committed ones can no longer be undone. */
SANDLOCK_API int sandlock_changes_discard(const char *storage, const char *id,
					  struct sandlock_error *err);
/* Only recovers; fails where that fails. */
SANDLOCK_API int sandlock_changes_recover(const char *storage, struct sandlock_error *err);

/* --- What this machine can do ------------------------------------------------------------- */

/*
 * Tries every mechanism for real and returns the report: text lines, or one JSON object with JSON
 * set. Returns 0 if the strict default would start, 1 if not.
 */
SANDLOCK_API int sandlock_check(int json, char **ret_text, struct sandlock_error *err);
/* The kernel's Landlock ABI, -1 if there is none. */
SANDLOCK_API int sandlock_landlock_abi(void);

#ifdef __cplusplus
}
#endif

#endif
