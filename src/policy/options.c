/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The option table and the look-ups over it. Everything that is said about an option is said here,
 * once; tests/unit/test-options.c walks the table and fails on a hole.
 */
#include "policy/options.h"

#include <string.h>

#include "base/util.h"

#define FLAG(name) .flag = "--" name
#define KEY(s, k)  .section = s, .key = k, .path = s "." k

const char *const option_sections[] = {
	"config", "program",  "filesystem",  "network",	    "http",
	"limits", "syscalls", "determinism", "protections", NULL,
};

static const char *const words_view[] = {"auto", "namespace", "notify", NULL};
static const char *const words_action[] = {"commit", "abort", "keep", "defer", NULL};
static const char *const words_conflict[] = {"abort", "theirs", "ours", NULL};
static const char *const words_diff_format[] = {"json", "patch", "stat", NULL};
static const char *const words_print[] = {"toml", "json", NULL};
static const char *const words_loopback[] = {"none", "own", "all", NULL};
static const char *const words_oom[] = {"kill", "tree", "deny", NULL};
static const char *const words_protection[] = {
	"fs-refer",	"fs-truncate",	"net-tcp",
	"fs-ioctl-dev", "signal-scope", "abstract-unix-socket-scope",
	NULL,
};

/* clang-format off */
static const struct option table[OPT_COUNT] = {
	/* --- filesystem ------------------------------------------------------------------- */
	[OPT_FS_READ] = {
		.id = OPT_FS_READ,
		FLAG("fs-read"), .letter = 'r', KEY("filesystem", "read"), .api = "fs_readable",
		.type = OPTION_PATHS, .metavar = "PATH", .default_text = "nothing",
		.help = "let the command read, list and execute PATH and all below it",
		.detail = "A path that does not exist causes a warning.",
	},
	[OPT_FS_READ_IF_EXISTS] = {
		.id = OPT_FS_READ_IF_EXISTS,
		FLAG("fs-read-if-exists"), KEY("filesystem", "read_if_exists"),
		.api = "fs_readable_if_exists",
		.type = OPTION_PATHS, .metavar = "PATH", .default_text = "nothing",
		.help = "as --fs-read, without a warning where PATH does not exist",
	},
	[OPT_FS_WRITE] = {
		.id = OPT_FS_WRITE,
		FLAG("fs-write"), .letter = 'w', KEY("filesystem", "write"), .api = "fs_writable",
		.type = OPTION_PATHS, .metavar = "PATH", .default_text = "nothing",
		.help = "let the command read, execute, write, create and remove at and below PATH",
		.detail = "A path that does not exist is an error.",
	},
	[OPT_FS_DENY] = {
		.id = OPT_FS_DENY,
		FLAG("fs-deny"), KEY("filesystem", "deny"), .api = "fs_denied",
		.type = OPTION_PATTERNS, .metavar = "PATTERN", .default_text = "nothing",
		.flags = OPTION_SUPERVISED, .later = LATER_VIEW,
		.help = "refuse PATTERN although a grant covers it",
		.detail = "A value with *, ? or [ is a pattern unless it begins with \"path:\".",
	},
	[OPT_FS_DENY_EXCEPT] = {
		.id = OPT_FS_DENY_EXCEPT,
		FLAG("fs-deny-except"), KEY("filesystem", "deny_except"), .api = "fs_deny_except",
		.type = OPTION_PATTERNS, .metavar = "PATTERN", .default_text = "nothing",
		.flags = OPTION_SUPERVISED, .later = LATER_VIEW, .needs = { OPT_FS_DENY, OPT_FS_HIDE },
		.help = "an exception from --fs-deny and --fs-hide",
	},
	[OPT_FS_HIDE] = {
		.id = OPT_FS_HIDE,
		FLAG("fs-hide"), KEY("filesystem", "hide"), .api = "fs_hidden",
		.type = OPTION_PATTERNS, .metavar = "PATTERN", .default_text = "nothing",
		.flags = OPTION_SUPERVISED, .later = LATER_VIEW,
		.help = "make PATTERN look as if it did not exist",
	},
	[OPT_FS_MOUNT] = {
		.id = OPT_FS_MOUNT,
		FLAG("fs-mount"), KEY("filesystem", "mount"), .api = "fs_mount",
		.type = OPTION_MOUNTS, .metavar = "VIRTUAL:HOST[:ro|:rw]", .default_text = "nothing",
		.flags = OPTION_SUPERVISED, .later = LATER_VIEW,
		.help = "show the directory HOST of this machine at VIRTUAL",
	},
	[OPT_CHROOT] = {
		.id = OPT_CHROOT,
		FLAG("chroot"), KEY("filesystem", "chroot"), .api = "chroot",
		.type = OPTION_PATH, .metavar = "PATH", .default_text = "the machine's own root",
		.flags = OPTION_SUPERVISED, .later = LATER_VIEW, .conflicts = { OPT_IMAGE },
		.help = "use PATH as the root directory",
	},
	[OPT_IMAGE] = {
		.id = OPT_IMAGE,
		FLAG("image"), KEY("filesystem", "image"), .api = "image",
		.type = OPTION_STRING, .metavar = "REF", .default_text = "none",
		.flags = OPTION_SUPERVISED, .later = LATER_VIEW,
		.help = "use the container image REF as the root directory",
	},
	[OPT_WORKDIR] = {
		.id = OPT_WORKDIR,
		FLAG("workdir"), KEY("config", "workdir"), .api = "workdir",
		.type = OPTION_PATHS, .metavar = "PATH", .default_text = "none",
		.flags = OPTION_SUPERVISED,
		.help = "keep writes below PATH in a layer of their own until they are committed",
	},
	[OPT_FS_STORAGE] = {
		.id = OPT_FS_STORAGE,
		FLAG("fs-storage"), KEY("config", "fs_storage"), .api = "fs_storage",
		.type = OPTION_PATH, .metavar = "PATH", .default_text = "the state directory",
		.flags = OPTION_SUPERVISED, .needs = { OPT_WORKDIR },
		.help = "where the layers of --workdir are stored",
	},
	[OPT_ON_EXIT] = {
		.id = OPT_ON_EXIT,
		FLAG("on-exit"), KEY("filesystem", "on_exit"), .api = "on_exit",
		.type = OPTION_ENUM, .words = words_action, .metavar = "ACTION", .default_text = "commit",
		.flags = OPTION_SUPERVISED,
		.help = "what becomes of the layer when the command ends with 0",
	},
	[OPT_ON_ERROR] = {
		.id = OPT_ON_ERROR,
		FLAG("on-error"), KEY("filesystem", "on_error"), .api = "on_error",
		.type = OPTION_ENUM, .words = words_action, .metavar = "ACTION", .default_text = "abort",
		.flags = OPTION_SUPERVISED,
		.help = "what becomes of the layer when the command ends otherwise",
	},
	[OPT_ON_CONFLICT] = {
		.id = OPT_ON_CONFLICT,
		FLAG("on-conflict"), KEY("filesystem", "on_conflict"), .api = "on_conflict",
		.type = OPTION_ENUM, .words = words_conflict, .metavar = "ACTION", .default_text = "abort",
		.flags = OPTION_SUPERVISED,
		.help = "what a commit does about files that changed underneath meanwhile",
	},
	[OPT_SESSION] = {
		.id = OPT_SESSION,
		FLAG("session"), .type = OPTION_NAME, .metavar = "NAME", .default_text = "none",
		.flags = OPTION_SUPERVISED | OPTION_CLI_ONLY, .later = LATER_WORKSPACE,
		.help = "add the run as a step to the session NAME, which commits nothing by itself",
	},
	[OPT_DRY_RUN] = {
		.id = OPT_DRY_RUN,
		FLAG("dry-run"), .type = OPTION_BOOL, .default_text = "false",
		.flags = OPTION_SUPERVISED | OPTION_CLI_ONLY,
		.needs = { OPT_WORKDIR, OPT_IMAGE },
		.help = "print what the command would change, and change nothing",
	},
	[OPT_FORMAT] = {
		.id = OPT_FORMAT,
		FLAG("format"), .type = OPTION_ENUM, .words = words_diff_format, .metavar = "FORMAT",
		.default_text = "a line for each change",
		.flags = OPTION_SUPERVISED | OPTION_CLI_ONLY,
		.needs = { OPT_DRY_RUN },
		.help = "form in which --dry-run prints changes",
	},
	[OPT_DIFF_OUTPUT] = {
		.id = OPT_DIFF_OUTPUT,
		FLAG("diff-output"), .type = OPTION_FILE, .metavar = "FILE",
		.default_text = "standard error",
		.flags = OPTION_SUPERVISED | OPTION_CLI_ONLY,
		.needs = { OPT_DRY_RUN },
		.help = "where --dry-run prints changes",
	},

	/* --- program ---------------------------------------------------------------------- */
	[OPT_EXEC] = {
		.id = OPT_EXEC,
		KEY("program", "exec"), .api = "exec",
		.type = OPTION_EXEC, .metavar = "PROGRAM", .default_text = "none",
		.help = "the program to run when the command line names none",
	},
	[OPT_ARGS] = {
		.id = OPT_ARGS,
		KEY("program", "args"), .api = "args",
		.type = OPTION_STRINGS, .metavar = "ARG", .default_text = "none",
		.needs = { OPT_EXEC },
		.help = "arguments of program.exec",
		.detail = "Taken literally: ${VAR} is not expanded here.",
	},
	[OPT_EXEC_SHELL] = {
		.id = OPT_EXEC_SHELL,
		FLAG("exec-shell"), .letter = 'e', .type = OPTION_STRING, .metavar = "CMD",
		.default_text = "none", .flags = OPTION_CLI_ONLY,
		.help = "run /bin/sh -c CMD, whatever other command is given",
	},
	[OPT_CWD] = {
		.id = OPT_CWD,
		FLAG("cwd"), KEY("program", "cwd"), .api = "cwd",
		.type = OPTION_PATH, .metavar = "PATH", .default_text = "the caller's",
		.help = "directory that the command starts in",
	},
	[OPT_ENV] = {
		.id = OPT_ENV,
		FLAG("env"), KEY("program", "env"), .api = "env",
		.type = OPTION_ENV, .metavar = "KEY=VALUE", .default_text = "nothing",
		.help = "set an environment variable",
	},
	[OPT_CLEAN_ENV] = {
		.id = OPT_CLEAN_ENV,
		FLAG("clean-env"), KEY("program", "clean_env"), .api = "clean_env",
		.type = OPTION_BOOL, .default_text = "false",
		.help = "pass on only PATH, HOME, USER, TERM and LANG of the environment",
		.detail = "Variables that --env sets are added to these.",
	},
	[OPT_USER] = {
		.id = OPT_USER,
		FLAG("user"), .api = "user",
		.type = OPTION_USER, .metavar = "UID:GID", .default_text = "the caller's",
		.help = "user and group ids that the command sees itself run as",
		.detail = "Both numbers are needed. As root the ids are changed for real; as an "
			  "ordinary user they are the caller's own, shown under these numbers in a "
			  "user namespace.",
	},
	[OPT_UID] = {
		.id = OPT_UID,
		KEY("program", "uid"), .api = "uid",
		.type = OPTION_UINT, .min = 0, .max = 4294967294, .metavar = "UID",
		.default_text = "the caller's", .needs = { OPT_GID },
		.help = "first half of --user",
	},
	[OPT_GID] = {
		.id = OPT_GID,
		KEY("program", "gid"), .api = "gid",
		.type = OPTION_UINT, .min = 0, .max = 4294967294, .metavar = "GID",
		.default_text = "the caller's", .needs = { OPT_UID },
		.help = "second half of --user",
	},
	[OPT_NAME] = {
		.id = OPT_NAME,
		FLAG("name"), KEY("program", "name"), .api = "name",
		.type = OPTION_NAME, .metavar = "NAME", .default_text = "sandbox-PID-N",
		.flags = OPTION_SUPERVISED,
		.help = "name of the sandbox, unique among your live ones, and its host name",
		.detail = "1 to 64 bytes without slash, blanks and control characters.",
	},
	[OPT_NO_SUPERVISOR] = {
		.id = OPT_NO_SUPERVISOR,
		FLAG("no-supervisor"), KEY("program", "no_supervisor"), .api = "no_supervisor",
		.type = OPTION_BOOL, .default_text = "false",
		.help = "confine and execute the command in this process; nothing stays behind",
		.detail = "For a sandbox within a sandbox. Settings that need a process which stays "
			  "are refused.",
	},
	[OPT_NO_HUGE_PAGES] = {
		.id = OPT_NO_HUGE_PAGES,
		FLAG("no-huge-pages"), KEY("program", "no_huge_pages"), .api = "no_huge_pages",
		.type = OPTION_BOOL, .default_text = "false",
		.help = "switch transparent huge pages off",
	},
	[OPT_NO_COREDUMP] = {
		.id = OPT_NO_COREDUMP,
		FLAG("no-coredump"), KEY("program", "no_coredump"), .api = "no_coredump",
		.type = OPTION_BOOL, .default_text = "false",
		.help = "write no core dumps",
	},
	[OPT_PTY] = {
		.id = OPT_PTY,
		FLAG("pty"), .type = OPTION_BOOL, .default_text = "false",
		.flags = OPTION_CLI_ONLY | OPTION_SUPERVISED,
		.help = "give the command a terminal of its own and relay it",
	},
	[OPT_INTERACTIVE] = {
		.id = OPT_INTERACTIVE,
		FLAG("interactive"), .letter = 'i', .type = OPTION_BOOL, .default_text = "false",
		.flags = OPTION_CLI_ONLY,
		.help = "accepted for compatibility; changes nothing",
	},

	/* --- network ---------------------------------------------------------------------- */
	[OPT_NET_ALLOW] = {
		.id = OPT_NET_ALLOW,
		FLAG("net-allow"), KEY("network", "allow"), .api = "net_allow",
		.type = OPTION_NET_RULES, .metavar = "RULE", .default_text = "nothing",
		.help = "let the command connect where RULE says: [PROTO://]TARGET[:PORTS]",
		.detail = "PROTO is tcp, udp or icmp; without it TCP and UDP are meant. TARGET is *, an "
			  "IPv4 or IPv6 address or network, a host name or *.DOMAIN; IPv6 with ports is "
			  "written [ADDRESS]:PORTS. PORTS is *, or ports and ranges with commas. *.DOMAIN "
			  "is every name below DOMAIN, not DOMAIN itself. A rule without an "
			  "address (:443, *) includes the loopback addresses. With "
			  "--no-supervisor there are only rules for TCP ports (tcp://:443, :443).",
	},
	[OPT_NET_DENY] = {
		.id = OPT_NET_DENY,
		FLAG("net-deny"), KEY("network", "deny"), .api = "net_deny",
		.type = OPTION_NET_RULES, .metavar = "RULE", .default_text = "nothing",
		.flags = OPTION_SUPERVISED,
		.help = "refuse destinations although --net-allow covers them",
		.detail = "Rules are written as for --net-allow, and win over those. Without any "
			  "--net-allow everything else can be reached by TCP and UDP.",
	},
	[OPT_NET_ALLOW_BIND] = {
		.id = OPT_NET_ALLOW_BIND,
		FLAG("net-allow-bind"), KEY("network", "allow_bind"), .api = "net_allow_bind",
		.type = OPTION_PORTS, .metavar = "PORTS", .default_text = "nothing",
		.help = "let the command bind to and listen on ports: 8080, 9000-9005, or *",
		.detail = "For TCP, and for UDP where a rule of --net-allow grants UDP. Port 0 stands for "
			  "binding without naming a port, which UDP sockets may always do.",
	},
	[OPT_NET_DENY_BIND] = {
		.id = OPT_NET_DENY_BIND,
		FLAG("net-deny-bind"), KEY("network", "deny_bind"), .api = "net_deny_bind",
		.type = OPTION_PORTS, .metavar = "PORTS", .default_text = "nothing",
		.flags = OPTION_SUPERVISED,
		.help = "refuse ports although --net-allow-bind covers them",
		.detail = "Without --net-allow-bind all other ports can be bound.",
	},
	[OPT_NET_ALLOW_LOOPBACK] = {
		.id = OPT_NET_ALLOW_LOOPBACK,
		FLAG("net-allow-loopback"), KEY("network", "allow_loopback"),
		.api = "net_allow_loopback",
		.type = OPTION_ENUM, .words = words_loopback, .metavar = "WHAT",
		.default_text = "own with a bind rule, else none",
		.flags = OPTION_SUPERVISED,
		.help = "which listeners on the loopback addresses can be reached: none, own or all",
		.detail = "This adds to what --net-allow says. own is what the sandbox itself listens "
			  "on; all is a rule for 127.0.0.0/8 and one for ::1.",
	},
	[OPT_NET_LAZY_DNS] = {
		.id = OPT_NET_LAZY_DNS,
		FLAG("net-lazy-dns"), KEY("network", "lazy_dns"), .api = "net_lazy_dns",
		.type = OPTION_BOOL, .default_text = "false",
		.flags = OPTION_SUPERVISED,
		.help = "look names of rules up when they are first used instead of at the start",
	},
	[OPT_NET_ASK] = {
		.id = OPT_NET_ASK,
		FLAG("net-ask"), KEY("network", "ask"), .api = "net_ask",
		.type = OPTION_BOOL, .default_text = "false",
		.flags = OPTION_SUPERVISED, .conflicts = { OPT_NET_RATE, OPT_NET_MAX_BYTES },
		.help = "ask before the command reaches a destination that no rule knows",
		.detail = "sandlock answer NAME shows the question. So does the terminal if the command "
			  "does not share it: with --pty, or where its standard streams are none. The "
			  "call waits meanwhile; without an answer it is refused.",
	},
	[OPT_ASK_TIMEOUT] = {
		.id = OPT_ASK_TIMEOUT,
		FLAG("ask-timeout"), KEY("network", "ask_timeout"), .api = "ask_timeout",
		.type = OPTION_DURATION, .metavar = "SECS", .default_text = "30",
		.flags = OPTION_SUPERVISED, .needs = { OPT_NET_ASK },
		.help = "how long a question of --net-ask waits for its answer",
	},
	[OPT_ASK_SAVE] = {
		.id = OPT_ASK_SAVE,
		FLAG("ask-save"), KEY("network", "ask_save"), .api = "ask_save",
		.type = OPTION_PATH, .metavar = "FILE", .default_text = "not saved",
		.flags = OPTION_SUPERVISED, .needs = { OPT_NET_ASK },
		.help = "save what answers to --net-ask allow for the run as rules in FILE",
		.detail = "FILE is a profile in TOML, to be used with --profile-file, and is made where "
			  "it does not exist; comments in it are lost. It must lie outside of what "
			  "--fs-write names.",
	},
	[OPT_NET_RATE] = {
		.id = OPT_NET_RATE,
		FLAG("net-rate"), KEY("network", "rate"), .api = "net_rate",
		.type = OPTION_WORDS, .metavar = "RULE=SIZE/s", .default_text = "no limit",
		.flags = OPTION_SUPERVISED,
		.conflicts = { OPT_NET_ALLOW_BIND, OPT_NET_DENY_BIND, OPT_PORT_REMAP },
		.help = "limit the data rate of connections that match RULE",
		.detail = "RULE is written as for --net-allow and stands for TCP connections that the "
			  "command makes; all of them together share SIZE, both ways. They go through "
			  "sandlock, so that a sender that is too fast is held up. Rules of --net-allow "
			  "that name no protocol then grant TCP only, unless RULE begins with tcp://. "
			  "A host name as RULE holds only where --net-allow has names alone.",
	},
	[OPT_NET_MAX_BYTES] = {
		.id = OPT_NET_MAX_BYTES,
		FLAG("net-max-bytes"), KEY("network", "max_bytes"), .api = "net_max_bytes",
		.type = OPTION_SIZE, .metavar = "SIZE", .default_text = "no limit",
		.flags = OPTION_SUPERVISED,
		.conflicts = { OPT_NET_ALLOW_BIND, OPT_NET_DENY_BIND, OPT_PORT_REMAP },
		.help = "limit what the sandbox sends and receives altogether",
		.detail = "What its TCP connections carry, both ways, and its look-ups of names. When it "
			  "is used up the connections are reset, and new ones fail with EDQUOT. Not "
			  "another byte is passed on; the kernel may have taken up to 256 KiB more from "
			  "each peer, which the command never sees. Rules of --net-allow that name no "
			  "protocol then grant TCP only. What the command is handed already connected is "
			  "not counted.",
	},
	[OPT_PORT_REMAP] = {
		.id = OPT_PORT_REMAP,
		FLAG("port-remap"), KEY("network", "port_remap"), .api = "port_remap",
		.type = OPTION_BOOL, .default_text = "false",
		.flags = OPTION_SUPERVISED,
		.help = "give the sandbox port numbers of its own",
		.detail = "A port that the command binds and that is taken on this machine gets another "
			  "number outside, which sandlock ps shows; the command sees its own. Which "
			  "ports may be bound, --net-allow-bind says.",
	},
	[OPT_UNIX_ALLOW] = {
		.id = OPT_UNIX_ALLOW,
		FLAG("unix-allow"), KEY("network", "unix_allow"), .api = "unix_allow",
		.type = OPTION_SOCKETS, .metavar = "PATH", .default_text = "nothing",
		.help = "let the command connect to the Unix socket PATH, or to any with *",
		.detail = "A directory stands for all sockets below it. Sockets in what --fs-write "
			  "names are open without this. With * every Unix socket that the user can "
			  "reach is open to the command, such as that of Docker or of an ssh agent. "
			  "With --no-supervisor only * can be enforced.",
	},

	/* --- http ------------------------------------------------------------------------- */
	[OPT_HTTP_ALLOW] = {
		.id = OPT_HTTP_ALLOW,
		FLAG("http-allow"), KEY("http", "allow"), .api = "http_allow",
		.type = OPTION_WORDS, .metavar = "\"METHOD HOST[/PATH]\"", .default_text = "nothing",
		.flags = OPTION_SUPERVISED, .later = LATER_HTTP,
		.help = "allow HTTP requests that match",
	},
	[OPT_HTTP_DENY] = {
		.id = OPT_HTTP_DENY,
		FLAG("http-deny"), KEY("http", "deny"), .api = "http_deny",
		.type = OPTION_WORDS, .metavar = "\"METHOD HOST[/PATH]\"", .default_text = "nothing",
		.flags = OPTION_SUPERVISED, .later = LATER_HTTP,
		.help = "refuse HTTP requests that match",
	},
	[OPT_HTTP_PORT] = {
		.id = OPT_HTTP_PORT,
		FLAG("http-port"), KEY("http", "ports"), .api = "http_ports",
		.type = OPTION_PORT_NUMBERS, .metavar = "PORT",
		.default_text = "80, and 443 with a certificate authority",
		.flags = OPTION_SUPERVISED, .later = LATER_HTTP,
		.needs = { OPT_HTTP_ALLOW, OPT_HTTP_DENY, OPT_HTTP_AUTH },
		.help = "ports whose connections are read as HTTP",
	},
	[OPT_HTTP_CA] = {
		.id = OPT_HTTP_CA,
		FLAG("http-ca"), KEY("config", "http_ca"), .api = "http_ca",
		.type = OPTION_PATH, .metavar = "PATH", .default_text = "none",
		.flags = OPTION_SUPERVISED, .later = LATER_HTTP, .needs = { OPT_HTTP_KEY },
		.help = "certificate authority that signs for intercepted hosts",
	},
	[OPT_HTTP_KEY] = {
		.id = OPT_HTTP_KEY,
		FLAG("http-key"), KEY("config", "http_key"), .api = "http_key",
		.type = OPTION_PATH, .metavar = "PATH", .default_text = "none",
		.flags = OPTION_SUPERVISED, .later = LATER_HTTP, .needs = { OPT_HTTP_CA },
		.help = "private key of --http-ca",
	},
	[OPT_HTTP_INJECT_CA] = {
		.id = OPT_HTTP_INJECT_CA,
		FLAG("http-inject-ca"), KEY("config", "http_inject_ca"), .api = "http_inject_ca",
		.type = OPTION_PATHS, .metavar = "PATH", .default_text = "nothing",
		.flags = OPTION_SUPERVISED, .later = LATER_HTTP,
		.needs = { OPT_HTTP_ALLOW, OPT_HTTP_DENY, OPT_HTTP_AUTH },
		.help = "trust bundle that shows the certificate authority inside the sandbox",
	},
	[OPT_HTTP_CA_OUT] = {
		.id = OPT_HTTP_CA_OUT,
		FLAG("http-ca-out"), KEY("config", "http_ca_out"), .api = "http_ca_out",
		.type = OPTION_PATH, .metavar = "PATH", .default_text = "not written",
		.flags = OPTION_SUPERVISED, .later = LATER_HTTP,
		.needs = { OPT_HTTP_CA, OPT_HTTP_INJECT_CA },
		.help = "write the certificate of the authority to PATH",
	},
	[OPT_CREDENTIAL] = {
		.id = OPT_CREDENTIAL,
		FLAG("credential"), KEY("http", "credential"), .api = "credential",
		.type = OPTION_WORDS, .metavar = "NAME=SOURCE", .default_text = "nothing",
		.flags = OPTION_SUPERVISED | OPTION_SENSITIVE, .later = LATER_HTTP,
		.help = "a secret for --http-auth; SOURCE is env:VAR, file:PATH or fd:N",
	},
	[OPT_HTTP_AUTH] = {
		.id = OPT_HTTP_AUTH,
		FLAG("http-auth"), KEY("http", "auth"), .api = "http_auth",
		.type = OPTION_WORDS, .metavar = "\"METHOD HOST/PATH AUTH CRED [MODE]\"",
		.default_text = "nothing", .flags = OPTION_SUPERVISED, .later = LATER_HTTP,
		.needs = { OPT_CREDENTIAL },
		.help = "attach a credential to matching requests outside the sandbox",
	},

	/* --- limits ----------------------------------------------------------------------- */
	[OPT_TIMEOUT] = {
		.id = OPT_TIMEOUT,
		FLAG("timeout"), .letter = 't', KEY("limits", "timeout"), .api = "timeout",
		.type = OPTION_DURATION, .metavar = "SECS", .default_text = "no limit",
		.flags = OPTION_SUPERVISED,
		.help = "end the whole sandbox after SECS seconds; fractions are allowed",
		.detail = "sandlock then exits with 124.",
	},
	[OPT_MAX_OPEN_FILES] = {
		.id = OPT_MAX_OPEN_FILES,
		FLAG("max-open-files"), KEY("limits", "open_files"), .api = "max_open_files",
		.type = OPTION_UINT, .min = 1, .max = 4294967295, .metavar = "N",
		.default_text = "inherited",
		.help = "limit of open files of each process; never above the inherited one",
	},
	[OPT_CPU_CORES] = {
		.id = OPT_CPU_CORES,
		FLAG("cpu-cores"), KEY("limits", "cpu_cores"), .api = "cpu_cores",
		.type = OPTION_CORES, .min = 0, .max = 1023, .metavar = "N,N-M",
		.default_text = "all that the caller may use",
		.help = "run on these CPUs only",
	},
	[OPT_MAX_MEMORY] = {
		.id = OPT_MAX_MEMORY,
		FLAG("max-memory"), .letter = 'm', KEY("limits", "memory"), .api = "max_memory",
		.type = OPTION_SIZE, .metavar = "SIZE", .default_text = "no limit",
		.flags = OPTION_SUPERVISED, .later = LATER_LIMITS,
		.help = "limit of memory of all processes together",
	},
	[OPT_OOM] = {
		.id = OPT_OOM,
		FLAG("oom"), KEY("limits", "oom"), .api = "oom",
		.type = OPTION_ENUM, .words = words_oom, .metavar = "ACTION", .default_text = "kill",
		.flags = OPTION_SUPERVISED, .later = LATER_LIMITS, .needs = { OPT_MAX_MEMORY },
		.help = "what happens at --max-memory: end the largest process or the tree, or deny",
	},
	[OPT_MAX_PROCESSES] = {
		.id = OPT_MAX_PROCESSES,
		FLAG("max-processes"), .letter = 'P', KEY("limits", "processes"),
		.api = "max_processes",
		.type = OPTION_UINT, .min = 0, .max = 4194304, .metavar = "N",
		.default_text = "no limit",
		.flags = OPTION_SUPERVISED, .later = LATER_LIMITS,
		.help = "limit of processes that live at the same time",
	},
	[OPT_CPU] = {
		.id = OPT_CPU,
		FLAG("cpu"), .letter = 'c', KEY("limits", "cpu"), .api = "max_cpu",
		.type = OPTION_UINT, .min = 1, .max = 100, .metavar = "PCT",
		.default_text = "no limit",
		.flags = OPTION_SUPERVISED, .later = LATER_LIMITS,
		.help = "share of CPU time in per cent",
	},
	[OPT_NUM_CPUS] = {
		.id = OPT_NUM_CPUS,
		FLAG("num-cpus"), KEY("limits", "num_cpus"), .api = "num_cpus",
		.type = OPTION_UINT, .min = 1, .max = 1024, .metavar = "N",
		.default_text = "the machine's",
		.flags = OPTION_SUPERVISED, .later = LATER_DETERMINISM,
		.help = "number of CPUs that the command sees",
	},
	[OPT_MAX_DISK] = {
		.id = OPT_MAX_DISK,
		FLAG("max-disk"), KEY("limits", "disk"), .api = "max_disk",
		.type = OPTION_SIZE, .metavar = "SIZE", .default_text = "no limit",
		.flags = OPTION_SUPERVISED, .later = LATER_WORKSPACE, .needs = { OPT_WORKDIR, OPT_IMAGE },
		.help = "limit of what the layers of --workdir may hold",
	},
	[OPT_GPU] = {
		.id = OPT_GPU,
		FLAG("gpu"), KEY("limits", "gpu_devices"), .api = "gpu_devices",
		.type = OPTION_GPUS, .min = 0, .max = 255, .metavar = "all|N,N", .default_text = "none",
		.flags = OPTION_SUPERVISED, .later = LATER_LIMITS,
		.help = "GPUs that the command may use",
		.detail = "In profiles an empty list means all.",
	},

	/* --- determinism ------------------------------------------------------------------ */
	[OPT_NO_RANDOMIZE_MEMORY] = {
		.id = OPT_NO_RANDOMIZE_MEMORY,
		FLAG("no-randomize-memory"), KEY("determinism", "no_randomize_memory"),
		.api = "no_randomize_memory",
		.type = OPTION_BOOL, .default_text = "false",
		.help = "switch address space layout randomisation off",
	},
	[OPT_RANDOM_SEED] = {
		.id = OPT_RANDOM_SEED,
		FLAG("random-seed"), KEY("determinism", "random_seed"), .api = "random_seed",
		.type = OPTION_UINT, .min = 0, .max = UINT64_MAX, .metavar = "N",
		.default_text = "true randomness",
		.flags = OPTION_SUPERVISED, .later = LATER_DETERMINISM,
		.help = "make random numbers follow from N",
	},
	[OPT_TIME_START] = {
		.id = OPT_TIME_START,
		FLAG("time-start"), KEY("determinism", "time_start"), .api = "time_start",
		.type = OPTION_TIME, .metavar = "TIME", .default_text = "now",
		.flags = OPTION_SUPERVISED, .later = LATER_DETERMINISM,
		.help = "let clocks begin at TIME (RFC 3339, or seconds since 1970)",
	},
	[OPT_TIME_RATE] = {
		.id = OPT_TIME_RATE,
		FLAG("time-rate"), KEY("determinism", "time_rate"), .api = "time_rate",
		.type = OPTION_FACTOR, .metavar = "FACTOR", .default_text = "1",
		.flags = OPTION_SUPERVISED, .later = LATER_DETERMINISM,
		.help = "let clocks run FACTOR times as fast",
	},
	[OPT_DETERMINISTIC_DIRS] = {
		.id = OPT_DETERMINISTIC_DIRS,
		FLAG("deterministic-dirs"), KEY("determinism", "deterministic_dirs"),
		.api = "deterministic_dirs",
		.type = OPTION_BOOL, .default_text = "false",
		.flags = OPTION_SUPERVISED, .later = LATER_DETERMINISM,
		.help = "list directories in sorted order",
	},
	[OPT_DETERMINISTIC] = {
		.id = OPT_DETERMINISTIC,
		FLAG("deterministic"), KEY("determinism", "deterministic"), .api = "deterministic",
		.type = OPTION_BOOL, .default_text = "false",
		.flags = OPTION_SUPERVISED, .later = LATER_DETERMINISM,
		.help = "all settings that make two runs alike",
	},

	/* --- syscalls --------------------------------------------------------------------- */
	[OPT_EXTRA_DENY_SYSCALL] = {
		.id = OPT_EXTRA_DENY_SYSCALL,
		FLAG("extra-deny-syscall"), KEY("syscalls", "extra_deny"),
		.api = "extra_deny_syscalls",
		.type = OPTION_WORDS, .metavar = "NAME", .default_text = "nothing",
		.help = "refuse a system call, or a group of them, that is allowed by default",
	},
	[OPT_EXTRA_ALLOW_SYSCALL] = {
		.id = OPT_EXTRA_ALLOW_SYSCALL,
		FLAG("extra-allow-syscall"), KEY("syscalls", "extra_allow"),
		.api = "extra_allow_syscalls",
		.type = OPTION_WORDS, .metavar = "NAME", .default_text = "nothing",
		.help = "allow a system call, or a group, that is refused by default: ptrace, sysv_ipc",
		.detail = "Calls that would break the boundary cannot be allowed.",
	},

	/* --- protections ------------------------------------------------------------------ */
	[OPT_ALLOW_DEGRADED] = {
		.id = OPT_ALLOW_DEGRADED,
		FLAG("allow-degraded"), KEY("protections", "allow_degraded"), .api = "allow_degraded",
		.type = OPTION_PROTECTIONS, .words = words_protection, .metavar = "PROTECTION",
		.default_text = "nothing",
		.help = "start, with a warning, also where the kernel lacks PROTECTION",
	},
	[OPT_DISABLE] = {
		.id = OPT_DISABLE,
		FLAG("disable"), KEY("protections", "disable"), .api = "disable",
		.type = OPTION_PROTECTIONS, .words = words_protection, .metavar = "PROTECTION",
		.default_text = "nothing",
		.help = "do without PROTECTION; fs-refer cannot be disabled",
	},
	[OPT_ALLOW_METADATA] = {
		.id = OPT_ALLOW_METADATA,
		FLAG("allow-metadata"), KEY("protections", "allow_metadata"), .api = "allow_metadata",
		.type = OPTION_BOOL, .default_text = "false",
		.help = "allow chmod, chown and the like where they can be kept to write grants only "
			"by refusing all of them",
		.detail = "Without namespaces the kernel does not bound these calls by the grants, so "
			  "they are refused as a class; with this flag the command can change the "
			  "metadata of any file that the user owns.",
	},

	/* --- config and the command line itself ------------------------------------------- */
	[OPT_VIEW] = {
		.id = OPT_VIEW,
		FLAG("view"), KEY("config", "view"), .api = "view",
		.type = OPTION_ENUM, .words = words_view, .metavar = "VIEW", .default_text = "auto",
		.help = "how the file view is built: auto, namespace, or notify (no namespaces)",
		.detail = "namespace fails where namespaces are not to be had; auto then does without.",
	},
	[OPT_INCLUDE] = {
		.id = OPT_INCLUDE,
		.section = "", .key = "include", .path = "include",
		.type = OPTION_WORDS, .metavar = "PROFILE", .default_text = "nothing",
		.help = "profiles that are applied before this one, in order",
		.detail = "A name (also builtin:NAME), or a path with a slash, which starts at the "
			  "directory of the including file. At most 16 deep.",
	},
	[OPT_PROFILE] = {
		.id = OPT_PROFILE,
		FLAG("profile"), .letter = 'p', .type = OPTION_STRING, .metavar = "NAME",
		.default_text = "none", .flags = OPTION_CLI_ONLY, .conflicts = { OPT_PROFILE_FILE },
		.help = "start from the profile NAME; builtin:NAME forces a built-in one",
		.detail = "Looked for in $XDG_CONFIG_HOME/sandlock/profiles, then in "
			  "~/.config/sandlock/profiles, then among the built-in ones.",
	},
	[OPT_PROFILE_FILE] = {
		.id = OPT_PROFILE_FILE,
		FLAG("profile-file"), .type = OPTION_FILE, .metavar = "FILE", .default_text = "none",
		.flags = OPTION_CLI_ONLY, .conflicts = { OPT_PROFILE },
		.help = "start from the profile in FILE; - is standard input",
		.detail = "A FILE that ends in .json is read as JSON, standard input if it begins with {.",
	},
	[OPT_PRINT_POLICY] = {
		.id = OPT_PRINT_POLICY,
		FLAG("print-policy"), .type = OPTION_ENUM, .words = words_print, .metavar = "FORMAT",
		.default_text = "not printed", .flags = OPTION_CLI_ONLY,
		.help = "print the effective policy and run nothing",
	},
	[OPT_STATUS_FD] = {
		.id = OPT_STATUS_FD,
		FLAG("status-fd"), .type = OPTION_UINT, .min = 0, .max = 1048575, .metavar = "FD",
		.default_text = "none", .flags = OPTION_CLI_ONLY | OPTION_SUPERVISED,
		.help = "write one line of JSON about the end of the run to descriptor FD",
	},
	[OPT_EVENTS] = {
		.id = OPT_EVENTS,
		FLAG("events"), .type = OPTION_FILE, .metavar = "FILE", .default_text = "none",
		.flags = OPTION_CLI_ONLY | OPTION_SUPERVISED,
		.help = "append a line of JSON for each refusal to FILE",
	},
	[OPT_EXPLAIN] = {
		.id = OPT_EXPLAIN,
		FLAG("explain"), KEY("config", "explain"), .api = "explain",
		.type = OPTION_BOOL, .default_text = "false",
		.flags = OPTION_SUPERVISED,
		.help = "also report what the kernel refuses by itself",
		.detail = "File, port and system call rules are enforced by the kernel, which tells "
			  "nobody. With this each call that it may refuse is judged by sandlock as "
			  "well, and what will be refused is listed, in --events and at the end of a "
			  "failed run, with the option that would allow it. The program runs more "
			  "slowly; what it may do stays the same.",
	},
	[OPT_QUIET] = {
		.id = OPT_QUIET,
		FLAG("quiet"), .letter = 'q', .type = OPTION_BOOL, .default_text = "false",
		.flags = OPTION_CLI_ONLY,
		.help = "do not list refusals at the end of a failed run",
	},
	[OPT_HELP] = {
		.id = OPT_HELP,
		FLAG("help"), .letter = 'h', .type = OPTION_BOOL, .default_text = "false",
		.flags = OPTION_CLI_ONLY,
		.help = "print this help",
	},
	[OPT_VERSION] = {
		.id = OPT_VERSION,
		FLAG("version"), .letter = 'V', .type = OPTION_BOOL, .default_text = "false",
		.flags = OPTION_CLI_ONLY,
		.help = "print the version",
	},
};
/* clang-format on */

static const char *const later_texts[LATER_COUNT] = {
	[LATER_NOTHING] = "",
	[LATER_SUPERVISOR] = "it arrives with the supervisor work",
	[LATER_NETWORK] = "it arrives with the network work",
	[LATER_WORKSPACE] = "copy-on-write arrives with the workspace work",
	[LATER_VIEW] = "it arrives with the work on deny rules, mounts and images",
	[LATER_HTTP] = "it arrives with the HTTP work",
	[LATER_LIMITS] = "it arrives with the limits work",
	[LATER_DETERMINISM] = "it arrives with the determinism work",
};

const struct option *option_get(enum option_id id)
{
	return &table[id];
}

const char *option_later_text(enum option_later later)
{
	return later_texts[later];
}

const char *option_label(const struct option *o)
{
	return o->flag ? o->flag : o->path;
}

const struct option *option_find_flag(const char *flag, size_t len)
{
	for (size_t i = OPT_NONE + 1; i < OPT_COUNT; i++) {
		const char *name = table[i].flag;

		if (name && strlen(name + 2) == len && memcmp(name + 2, flag, len) == 0)
			return &table[i];
	}
	return NULL;
}

const struct option *option_find_letter(char letter)
{
	for (size_t i = OPT_NONE + 1; letter && i < OPT_COUNT; i++)
		if (table[i].letter == letter)
			return &table[i];
	return NULL;
}

const struct option *option_find_key(const char *section, const char *key)
{
	for (size_t i = OPT_NONE + 1; i < OPT_COUNT; i++)
		if (table[i].key && str_eq(table[i].section, section) && str_eq(table[i].key, key))
			return &table[i];
	return NULL;
}

const struct option *option_find(const char *name)
{
	const struct option *by_flag = option_find_flag(name, strlen(name));

	if (by_flag)
		return by_flag;
	for (size_t i = OPT_NONE + 1; i < OPT_COUNT; i++) {
		if (table[i].path && str_eq(table[i].path, name))
			return &table[i];
		if (table[i].api && str_eq(table[i].api, name))
			return &table[i];
	}
	return NULL;
}

bool option_is_list(const struct option *o)
{
	switch (o->type) {
	case OPTION_STRINGS:
	case OPTION_WORDS:
	case OPTION_PATHS:
	case OPTION_SOCKETS:
	case OPTION_PATTERNS:
	case OPTION_MOUNTS:
	case OPTION_ENV:
	case OPTION_PORTS:
	case OPTION_PORT_NUMBERS:
	case OPTION_NET_RULES:
	case OPTION_PROTECTIONS:
	case OPTION_CORES:
	case OPTION_GPUS:
		return true;
	case OPTION_BOOL:
	case OPTION_STRING:
	case OPTION_PATH:
	case OPTION_FILE:
	case OPTION_EXEC:
	case OPTION_UINT:
	case OPTION_SIZE:
	case OPTION_DURATION:
	case OPTION_ENUM:
	case OPTION_NAME:
	case OPTION_USER:
	case OPTION_TIME:
	case OPTION_FACTOR:
	case OPTION_TYPE_COUNT:
		return false;
	}
	return false;
}

bool option_is_switch(const struct option *o)
{
	return o->type == OPTION_BOOL;
}
