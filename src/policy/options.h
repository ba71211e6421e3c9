/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The one option table: a row for every setting that a user can give, by flag, by profile key or by
 * API name. The parser, --help, the manual pages, the shell completions, the JSON Schema and the
 * reference table are all made from it, so that they cannot drift apart.
 *
 * A setting whose enforcement arrives with later work has a row too, with LATER set: it is parsed
 * and checked like any other, and building the policy then refuses it by name.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum option_id {
	OPT_NONE, /* ends lists of ids */
	/* filesystem */
	OPT_FS_READ,
	OPT_FS_READ_IF_EXISTS,
	OPT_FS_WRITE,
	OPT_FS_DENY,
	OPT_FS_DENY_EXCEPT,
	OPT_FS_HIDE,
	OPT_FS_MOUNT,
	OPT_CHROOT,
	OPT_IMAGE,
	OPT_WORKDIR,
	OPT_FS_STORAGE,
	OPT_ON_EXIT,
	OPT_ON_ERROR,
	OPT_ON_CONFLICT,
	OPT_SESSION,
	OPT_DRY_RUN,
	OPT_FORMAT,
	OPT_DIFF_OUTPUT,
	/* program */
	OPT_EXEC,
	OPT_ARGS,
	OPT_EXEC_SHELL,
	OPT_CWD,
	OPT_ENV,
	OPT_CLEAN_ENV,
	OPT_USER,
	OPT_UID,
	OPT_GID,
	OPT_NAME,
	OPT_NO_SUPERVISOR,
	OPT_NO_HUGE_PAGES,
	OPT_NO_COREDUMP,
	OPT_PTY,
	OPT_INTERACTIVE,
	/* network */
	OPT_NET_ALLOW,
	OPT_NET_DENY,
	OPT_NET_ALLOW_BIND,
	OPT_NET_DENY_BIND,
	OPT_NET_ALLOW_LOOPBACK,
	OPT_NET_LAZY_DNS,
	OPT_NET_ASK,
	OPT_ASK_TIMEOUT,
	OPT_ASK_SAVE,
	OPT_NET_RATE,
	OPT_NET_MAX_BYTES,
	OPT_PORT_REMAP,
	OPT_UNIX_ALLOW,
	/* http */
	OPT_HTTP_ALLOW,
	OPT_HTTP_DENY,
	OPT_HTTP_PORT,
	OPT_HTTP_CA,
	OPT_HTTP_KEY,
	OPT_HTTP_INJECT_CA,
	OPT_HTTP_CA_OUT,
	OPT_CREDENTIAL,
	OPT_HTTP_AUTH,
	/* limits */
	OPT_TIMEOUT,
	OPT_MAX_OPEN_FILES,
	OPT_CPU_CORES,
	OPT_MAX_MEMORY,
	OPT_OOM,
	OPT_MAX_PROCESSES,
	OPT_CPU,
	OPT_NUM_CPUS,
	OPT_MAX_DISK,
	OPT_GPU,
	/* determinism */
	OPT_NO_RANDOMIZE_MEMORY,
	OPT_RANDOM_SEED,
	OPT_TIME_START,
	OPT_TIME_RATE,
	OPT_DETERMINISTIC_DIRS,
	OPT_DETERMINISTIC,
	/* syscalls */
	OPT_EXTRA_DENY_SYSCALL,
	OPT_EXTRA_ALLOW_SYSCALL,
	/* protections */
	OPT_ALLOW_DEGRADED,
	OPT_DISABLE,
	OPT_ALLOW_METADATA,
	/* config and the command line itself */
	OPT_VIEW,
	OPT_INCLUDE,
	OPT_PROFILE,
	OPT_PROFILE_FILE,
	OPT_PRINT_POLICY,
	OPT_STATUS_FD,
	OPT_EVENTS,
	OPT_EXPLAIN,
	OPT_QUIET,
	OPT_HELP,
	OPT_VERSION,
	OPT_COUNT,
};

/* What one value of the option is. List types append; the others override. */
enum option_type {
	OPTION_BOOL,
	OPTION_STRING,
	OPTION_STRINGS,	     /* list; taken literally */
	OPTION_WORDS,	     /* list of non-empty strings */
	OPTION_PATH,	     /* made absolute and normalised lexically */
	OPTION_PATHS,	     /* list */
	OPTION_SOCKETS,	     /* list of paths, made absolute; or "*" */
	OPTION_PATTERNS,     /* list of paths or globs; relative ones start at the profile */
	OPTION_FILE,	     /* a path that is kept as it is written */
	OPTION_EXEC,	     /* a program: with a slash a path, else looked up on PATH */
	OPTION_MOUNTS,	     /* list of VIRTUAL:HOST[:ro|:rw] */
	OPTION_ENV,	     /* KEY=VALUE, later ones replace earlier ones of the same key */
	OPTION_UINT,	     /* within MIN and MAX */
	OPTION_SIZE,	     /* decisions 3 */
	OPTION_DURATION,     /* seconds, fractions allowed */
	OPTION_ENUM,	     /* one of WORDS */
	OPTION_NAME,	     /* a sandbox name */
	OPTION_USER,	     /* UID:GID; sets two other options */
	OPTION_PORTS,	     /* list of ports and ranges, or "*" */
	OPTION_PORT_NUMBERS, /* list of single ports */
	OPTION_NET_RULES,    /* list */
	OPTION_PROTECTIONS,  /* list of WORDS, any case */
	OPTION_CORES,	     /* list of CPU numbers and ranges */
	OPTION_GPUS,	     /* list of indices, or "all", which an empty list means too */
	OPTION_TIME,	     /* RFC 3339, or seconds since 1970 */
	OPTION_FACTOR,	     /* a positive decimal number */
	OPTION_TYPE_COUNT,
};

enum {
	OPTION_CLI_ONLY = 1 << 0,   /* belongs to `sandlock run` itself, not to a policy */
	OPTION_SUPERVISED = 1 << 1, /* cannot be enforced with --no-supervisor */
	OPTION_SENSITIVE = 1 << 2,  /* values are not shown in messages */
};

/* The later work that a refused setting waits for. */
enum option_later {
	LATER_NOTHING, /* enforced now */
	LATER_SUPERVISOR,
	LATER_NETWORK,
	LATER_WORKSPACE,
	LATER_VIEW,
	LATER_HTTP,
	LATER_LIMITS,
	LATER_DETERMINISM,
	LATER_COUNT,
};

struct option {
	enum option_id id;
	const char *flag; /* "--fs-read"; NULL: profile key only */
	char letter;	  /* short flag, 0: none */
	const char *section;
	const char *key;  /* NULL: command line only; section "" is the top level */
	const char *path; /* "filesystem.read" */
	const char *api;  /* field name in Python and Go, NULL if it has none */
	enum option_type type;
	unsigned int flags;
	enum option_later later;
	uint64_t min; /* OPTION_UINT, OPTION_CORES: smallest and largest value */
	uint64_t max;
	const char *metavar;	     /* NULL for switches */
	const char *const *words;    /* OPTION_ENUM, OPTION_PROTECTIONS: NULL-terminated */
	const char *default_text;    /* what holds while it is unset */
	enum option_id conflicts[3]; /* may not be given together with these */
	enum option_id needs[4];     /* one of these must be given too */
	const char *help;	     /* one line, for --help and completion */
	const char *detail;	     /* the rest, for manual and reference; may be NULL */
};

/* Row of ID; never NULL for 0 < ID < OPT_COUNT. */
const struct option *option_get(enum option_id id);
/* By long flag, profile key ("filesystem.read") or API name; NULL if there is none. */
const struct option *option_find(const char *name);
const struct option *option_find_flag(const char *flag, size_t len);
const struct option *option_find_letter(char letter);
const struct option *option_find_key(const char *section, const char *key);
bool option_is_list(const struct option *o);
/* Whether `--X` stands alone (booleans), so that a value needs "=". */
bool option_is_switch(const struct option *o);
/* Profile sections in the order in which they are written, NULL-terminated. */
extern const char *const option_sections[];
/* "copy-on-write arrives with the workspace work" and the like. */
const char *option_later_text(enum option_later later);
/* The name that messages use: "--fs-read", or "program.exec" where there is no flag. */
const char *option_label(const struct option *o);
/* The nearest known long flag ("--fs-read") or key of SECTION, NULL if none is near. */
const char *option_suggest_flag(const char *flag);
const char *option_suggest_key(const char *section, const char *key);
const char *option_suggest_section(const char *section);
/* Edit distance (insert, delete, replace, swap of neighbours), at most LIMIT + 1. */
size_t option_distance(const char *a, const char *b, size_t limit);
