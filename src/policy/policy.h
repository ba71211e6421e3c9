/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The policy object: everything that a user can say about one sandbox, checked and immutable once
 * finished. Built from the option table (options.h) by flags, TOML, JSON or the API; no system call
 * is made here.
 *
 * Unset and empty stay different: policy_is_set tells whether an option was given at all.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/strv.h"

struct err;

/* Landlock-backed protections that can be waived one by one (decisions 12). */
enum protection {
	PROT_FS_REFER,
	PROT_FS_TRUNCATE,
	PROT_NET_TCP,
	PROT_FS_IOCTL_DEV,
	PROT_SIGNAL_SCOPE,
	PROT_ABSTRACT_UNIX_SOCKET_SCOPE,
	PROT_COUNT,
};

enum protection_state {
	PROT_STRICT,	 /* missing on this kernel: the start is refused */
	PROT_DEGRADABLE, /* used where the kernel has it, warned about where not */
	PROT_DISABLED,	 /* not used */
};

enum policy_view { VIEW_AUTO, VIEW_NAMESPACE, VIEW_NOTIFY };

/* What becomes of a workspace's layer. DEFER: its owner says so later. */
enum policy_action { ACTION_COMMIT, ACTION_ABORT, ACTION_KEEP, ACTION_DEFER };

/* What a commit does about what was changed underneath meanwhile. */
enum policy_conflict { ON_CONFLICT_ABORT, ON_CONFLICT_THEIRS, ON_CONFLICT_OURS };

/* Which loopback listeners can be reached beyond what the rules say (decisions 25). */
enum policy_loopback { LOOPBACK_NONE, LOOPBACK_OWN, LOOPBACK_ALL };

enum net_proto { NET_TCP = 1 << 0, NET_UDP = 1 << 1, NET_ICMP = 1 << 2 };

enum net_target {
	NET_TARGET_ANY,
	NET_TARGET_CIDR4,
	NET_TARGET_CIDR6,
	NET_TARGET_NAME,
	NET_TARGET_WILDCARD
};

struct port_range {
	uint16_t lo;
	uint16_t hi; /* inclusive */
};

struct port_set {
	bool any;
	struct port_range *v;
	size_t n;
};

struct net_rule {
	unsigned int protos; /* enum net_proto bits */
	bool scheme_given;
	enum net_target target;
	uint8_t addr[16]; /* network order; 4 bytes used for CIDR4 */
	uint8_t prefix_len;
	char *name; /* owned; NAME: host, WILDCARD: what follows "*." */
	struct port_set ports;
	char *text; /* owned; as the user wrote it, for messages */
};

struct net_rules {
	struct net_rule *v;
	size_t n;
};

enum { NET_RATES_MAX = 32 };

/* --net-rate: all connections that RULE matches share it. */
struct net_rate {
	struct net_rule rule;
	uint64_t per_second; /* bytes, both ways */
};

struct policy {
	unsigned int refs;
	uint64_t set[4]; /* bit per enum option_id */

	/*
	 * [filesystem]: absolute, lexically normalised paths. A missing fs_read path warns, a
	 * missing fs_read_if_exists path is passed over, a missing fs_write path is an error; where
	 * policy_path_is_glob says so of a missing one, the error says that grants are literal.
	 */
	struct strv fs_read;
	struct strv fs_read_if_exists;
	struct strv fs_write;

	/* The workspace: below these, writes go into a layer (decisions 13 to 15). */
	struct strv workdirs;
	char *fs_storage; /* NULL: the state directory */
	enum policy_action on_exit;
	enum policy_action on_error;
	enum policy_conflict on_conflict;
	bool dry_run; /* nothing is ever committed or kept */

	/* [program] */
	char *exec; /* profile's program, NULL if none */
	struct strv args;
	char *cwd;
	struct strv env; /* KEY=VALUE, last one wins */
	bool clean_env;
	bool has_user;
	uint32_t uid;
	uint32_t gid;
	bool no_supervisor;
	char *name;
	bool no_huge_pages;
	bool no_coredump;

	/* [limits] */
	uint64_t timeout_ms;	 /* 0: none */
	uint64_t max_open_files; /* 0: inherit */
	uint32_t *cpu_cores;
	size_t n_cpu_cores;

	/* [determinism] */
	bool no_randomize_memory;

	/* [network] */
	/*
	 * What they mean together: net_table.h. A deny list alone has an allow rule for everything
	 * else; LOOPBACK_ALL has its rules among them.
	 */
	bool lazy_dns;		 /* look names up at their first use */
	bool net_ask;		 /* ask about destinations that no rule knows, */
	uint64_t ask_timeout_ms; /* for so long; */
	char *ask_save;		 /* answers for the run go there as well; NULL: nowhere */
	struct net_rules net_allow;
	struct net_rules net_deny;
	struct port_set bind_allow; /* sorted, without overlap; may hold port 0 */
	struct port_set bind_deny;
	enum policy_loopback loopback;
	struct net_rate *net_rates;
	size_t n_net_rates;
	uint64_t net_max_bytes; /* 0: no limit */
	bool port_remap;	/* a bound port may have another number outside */
	bool unix_allow_all;	/* --unix-allow '*' */
	struct strv unix_allow; /* sockets, and directories of such: absolute, normal paths */

	/* [syscalls] */
	struct strv extra_deny;
	struct strv extra_allow;

	/* [protections] */
	enum protection_state prot[PROT_COUNT];
	bool allow_metadata;

	/* [config] */
	enum policy_view view;
	bool explain; /* tell of the kernel's own refusals as well */

	/* Warnings that building produced, one line each (duplicate-free, in order). */
	struct strv warnings;
};

/* The variables that clean_env passes on, NULL-terminated. */
extern const char *const policy_clean_env_keep[];

/* Whether OPTION (enum option_id) was given, be it as empty. */
bool policy_is_set(const struct policy *p, unsigned int option);
/* Whether PATH looks like a pattern (holds * or ?): grants are literal (decisions 18). */
bool policy_path_is_glob(const char *path);

/* References may be taken and dropped in several threads. */
struct policy *policy_ref(struct policy *p);
void policy_unref(struct policy *p);
void policy_unref_cleanup(struct policy **p);
const char *protection_name(enum protection p);
