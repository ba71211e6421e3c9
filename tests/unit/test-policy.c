/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The builder: setting by flag and from files, expansion, the command line, the checks over the
 * whole, and the finished policy. Every message is compared in full.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/err.h"
#include "base/path.h"
#include "base/util.h"
#include "base/value.h"
#include "policy/args.h"
#include "policy/builder.h"
#include "policy/builder_internal.h"
#include "policy/net_table.h"
#include "policy/policy.h"

static const char *test_env(void *data, const char *name)
{
	(void)data;
	if (str_eq(name, "HOME"))
		return "/home/u";
	if (str_eq(name, "EMPTY"))
		return "";
	if (str_eq(name, "VAR"))
		return "v$a{l}~";
	return NULL;
}

static struct builder *new_builder(void)
{
	struct builder *b = builder_new();

	b->host.cwd = xstrdup("/work");
	b->host.env = test_env;
	return b;
}

static int apply_words(struct builder *b, const char *const *words, size_t n, struct err *err)
{
	struct origin from = {.kind = ORIGIN_FLAG};
	AUTO(args_done) struct args args = {0};
	struct strv copy = {0};

	for (size_t i = 0; i < n; i++)
		strv_add(&copy, words[i]);

	int r = args_parse((int)n, copy.v, &args, err);

	for (size_t i = 0; r == 0 && i < args.n; i++)
		r = builder_set(b, args.v[i].option, args.v[i].value, &from, err);
	strv_done(&copy);
	return r;
}

#define WORDS(...)                                                                                 \
	((const char *const[]){__VA_ARGS__}), ARRAY_SIZE(((const char *const[]){__VA_ARGS__}))

static struct policy *finish_words(const char *const *words, size_t n)
{
	AUTO(builder_free) struct builder *b = new_builder();
	struct policy *p = NULL;
	struct err err = {0};

	apply_words(b, words, n, &err);
	assert_string_equal(err.msg, "");
	builder_finish(b, &p, &err);
	assert_string_equal(err.msg, "");
	return p;
}

static void assert_refused(const char *const *words, size_t n, const char *message)
{
	AUTO(builder_free) struct builder *b = new_builder();
	struct policy *p = NULL;
	struct err err = {0};

	if (apply_words(b, words, n, &err) == 0)
		builder_finish(b, &p, &err);
	assert_string_equal(err.msg, message);
	assert_null(p);
}

static int apply_toml(struct builder *b, const char *text, struct err *err)
{
	struct origin from = {.kind = ORIGIN_FILE, .source = "web.toml", .dir = "/etc/p"};
	struct value *root = NULL;
	int r = toml_parse(text, strlen(text), "web.toml", &root, err);

	if (r == 0)
		r = builder_apply_tree(b, root, &from, err);
	value_free(root);
	return r;
}

static void assert_toml_refused(const char *text, const char *message)
{
	AUTO(builder_free) struct builder *b = new_builder();
	struct policy *p = NULL;
	struct err err = {0};

	if (apply_toml(b, text, &err) == 0)
		builder_finish(b, &p, &err);
	assert_string_equal(err.msg, message);
	assert_null(p);
}

/* --- Finished policies -------------------------------------------------------------------- */

static void test_fields(void **state)
{
	struct policy *p = finish_words(WORDS(
		"-r", "/usr", "-w.", "--fs-read=a//b/../c", "--cwd", "sub", "--env", "A=1", "--env",
		"B=2", "--env", "A=3", "--clean-env", "--user", "5:6", "--name", "api", "-t", "1.5",
		"--max-open-files", "64", "--cpu-cores", "3,0-1,3", "--net-allow", "tcp://:443,80",
		"--net-allow-bind", "0,8080,8081", "--extra-deny-syscall", "ptrace", "--view",
		"notify", "--disable", "Signal-Scope", "--allow-degraded", "net-tcp",
		"--no-coredump", "--no-huge-pages", "--no-randomize-memory", "--allow-metadata",
		"--fs-read-if-exists", "/opt", "--unix-allow", "*"));

	(void)state;
	assert_string_equal(p->fs_read.v[0], "/usr");
	assert_string_equal(p->fs_read.v[1], "/work/a/c");
	assert_int_equal(p->fs_read.n, 2);
	assert_string_equal(p->fs_read_if_exists.v[0], "/opt");
	assert_string_equal(p->fs_write.v[0], "/work");
	assert_string_equal(p->cwd, "/work/sub");
	assert_int_equal(p->env.n, 2);
	assert_string_equal(p->env.v[0], "A=3");
	assert_string_equal(p->env.v[1], "B=2");
	assert_true(p->clean_env && p->has_user && p->no_coredump && p->no_huge_pages);
	assert_true(p->no_randomize_memory && p->allow_metadata && p->unix_allow_all);
	assert_int_equal(p->uid, 5);
	assert_int_equal(p->gid, 6);
	assert_string_equal(p->name, "api");
	assert_int_equal(p->timeout_ms, 1500);
	assert_int_equal(p->max_open_files, 64);
	assert_int_equal(p->n_cpu_cores, 3);
	assert_int_equal(p->cpu_cores[0], 3);
	assert_int_equal(p->cpu_cores[1], 0);
	assert_int_equal(p->cpu_cores[2], 1);
	assert_int_equal(p->net_allow.n, 1);
	assert_int_equal(p->net_allow.v[0].ports.n, 2);
	assert_int_equal(p->net_allow.v[0].ports.v[0].lo, 80);
	assert_int_equal(p->bind_allow.n, 2);
	assert_int_equal(p->bind_allow.v[1].lo, 8080);
	assert_int_equal(p->bind_allow.v[1].hi, 8081);
	assert_string_equal(p->extra_deny.v[0], "ptrace");
	assert_int_equal(p->view, VIEW_NOTIFY);
	assert_int_equal(p->prot[PROT_SIGNAL_SCOPE], PROT_DISABLED);
	assert_int_equal(p->prot[PROT_NET_TCP], PROT_DEGRADABLE);
	assert_int_equal(p->prot[PROT_FS_REFER], PROT_STRICT);
	assert_int_equal(p->warnings.n, 0);
	assert_true(policy_is_set(p, OPT_FS_READ));
	assert_false(policy_is_set(p, OPT_QUIET));
	policy_unref(p);
}

static void test_tcp_only_warning(void **state)
{
	struct policy *p =
		finish_words(WORDS("--no-supervisor", "--net-allow", ":443", "--net-allow", ":443",
				   "--net-allow", ":80", "--net-allow", "tcp://:81"));

	(void)state;
	assert_int_equal(p->warnings.n, 1);
	assert_string_equal(p->warnings.v[0],
			    "rules without a protocol (:443, :80) grant TCP only with "
			    "--no-supervisor; write tcp:// in front to say so");
	assert_false(net_policy_has(p, NET_UDP));
	policy_unref(p);
	p = finish_words(WORDS("--net-allow", ":443"));
	assert_int_equal(p->warnings.n, 0);
	assert_true(net_policy_has(p, NET_UDP));
	policy_unref(p);
}

/* What a list of exceptions alone means, and the loopback setting. */
static void test_network_implied(void **state)
{
	struct policy *p = finish_words(WORDS("--net-deny", "10.0.0.0/8", "--net-deny-bind", "22"));

	(void)state;
	assert_int_equal(p->net_allow.n, 1);
	assert_string_equal(p->net_allow.v[0].text, "*");
	assert_true(p->bind_allow.any);
	assert_true(net_policy_may_bind(p, 23));
	assert_false(net_policy_may_bind(p, 22));
	assert_int_equal(p->loopback, LOOPBACK_OWN);
	policy_unref(p);
	p = finish_words(WORDS("--net-deny", "10.0.0.0/8", "--net-allow", "tcp://10.0.0.1:80",
			       "--net-deny-bind", "22", "--net-allow-bind", "20-22",
			       "--net-allow-loopback", "none"));
	assert_int_equal(p->net_allow.n, 1);
	assert_false(p->bind_allow.any);
	assert_int_equal(p->loopback, LOOPBACK_NONE);
	policy_unref(p);
	p = finish_words(WORDS("--net-allow-loopback", "all"));
	assert_int_equal(p->net_allow.n, 2);
	assert_string_equal(p->net_allow.v[0].text, "127.0.0.0/8");
	assert_string_equal(p->net_allow.v[1].text, "::1");
	policy_unref(p);
	p = finish_words(WORDS("--net-allow-bind", "80", "--net-deny-bind", "80"));
	assert_int_equal(p->loopback, LOOPBACK_NONE);
	policy_unref(p);
}

static void test_switch_off(void **state)
{
	static const char *const offs[] = {"--no-clean-env", "--clean-env=false"};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(offs); i++) {
		AUTO(builder_free) struct builder *b = new_builder();
		struct policy *p = NULL;

		assert_int_equal(apply_toml(b, "[program]\nclean_env = true\n", NULL), 0);
		assert_true(builder_is_true(b, OPT_CLEAN_ENV));
		assert_int_equal(apply_words(b, &offs[i], 1, NULL), 0);
		assert_int_equal(builder_finish(b, &p, NULL), 0);
		assert_false(p->clean_env);
		policy_unref(p);
	}
	AUTO(builder_free) struct builder *b = new_builder();

	assert_int_equal(apply_words(b, WORDS("--no-coredump", "--no-no-coredump"), NULL), 0);
	assert_false(builder_is_true(b, OPT_NO_COREDUMP));
}

/* Lists append and scalars override, profile first. */
static void test_merge(void **state)
{
	AUTO(builder_free) struct builder *b = new_builder();
	struct policy *p = NULL;

	(void)state;
	assert_int_equal(
		apply_toml(b,
			   "[filesystem]\nread = ['/a', '/b']\n"
			   "[limits]\ntimeout = 9\n[program]\nenv = { X = '1', Y = '2' }\n",
			   NULL),
		0);
	assert_int_equal(
		apply_words(b, WORDS("-r", "/c", "-r/a", "-t2", "--env", "X=9", "--pty"), NULL), 0);
	assert_int_equal(builder_finish(b, &p, NULL), 0);
	assert_int_equal(p->fs_read.n, 3);
	assert_string_equal(p->fs_read.v[2], "/c");
	assert_int_equal(p->timeout_ms, 2000);
	assert_string_equal(p->env.v[0], "X=9");
	assert_string_equal(p->env.v[1], "Y=2");
	policy_unref(p);
}

static void test_toml_kinds(void **state)
{
	AUTO(builder_free) struct builder *b = new_builder();
	struct err err = {0};
	struct policy *p = NULL;

	(void)state;
	apply_toml(b,
		   "[program]\nexec = '${HOME}/bin/x'\nargs = ['$$', '']\nuid = 1\ngid = 2\n"
		   "[network]\nallow_bind = [80, '90-91', '100,101']\n"
		   "[limits]\ntimeout = 0.25\ncpu_cores = [1, '3-4']\n",
		   &err);
	assert_string_equal(err.msg, "");
	assert_int_equal(builder_finish(b, &p, NULL), 0);
	assert_string_equal(p->exec, "/home/u/bin/x");
	assert_string_equal(p->args.v[0], "$$");
	assert_string_equal(p->args.v[1], "");
	assert_int_equal(p->bind_allow.n, 3);
	assert_int_equal(p->bind_allow.v[1].hi, 91);
	assert_int_equal(p->timeout_ms, 250);
	assert_int_equal(p->n_cpu_cores, 3);
	policy_unref(p);
}

/* --- Expansion ---------------------------------------------------------------------------- */

static const struct {
	const char *text;
	const char *result; /* NULL: refused */
	const char *message;
} expansions[] = {
	/* clang-format off */
	{ "plain", "plain", "" },
	{ "", "", "" },
	{ "~", "/home/u", "" },
	{ "~/x", "/home/u/x", "" },
	{ "a~/x", "a~/x", "" },
	{ "${HOME}/x${HOME}", "/home/u/x/home/u", "" },
	{ "${VAR}", "v$a{l}~", "" },
	{ "${NOPE:-d/e}", "d/e", "" },
	{ "${NOPE:-}", "", "" },
	{ "${EMPTY:-d}", "d", "" },
	{ "${EMPTY}", "", "" },
	{ "${HOME:-d}", "/home/u", "" },
	{ "$$x$~y$$", "$x~y$", "" },
	{ "${NOPE}", NULL, "the environment variable NOPE is not set; set it or write ${NOPE:-default}" },
	{ "${home}", NULL, "the environment variable home is not set; set it or write ${home:-default}" },
	{ "${", NULL, "\"${\" is not closed with \"}\"" },
	{ "${HOME", NULL, "\"${\" is not closed with \"}\"" },
	{ "${}", NULL, "\"${\" is not followed by the name of a variable" },
	{ "${1X}", NULL, "\"${\" is not followed by the name of a variable" },
	{ "${HOME-x}", NULL, "\"${HOME-x}\" is not of the form ${VAR} or ${VAR:-default}" },
	{ "${NOPE:-$x}", NULL, "the default of ${NOPE:-…} cannot hold a dollar sign" },
	{ "$HOME", NULL, "a dollar sign stands alone; write ${VAR} for a variable, $$ for a dollar sign" },
	{ "a$", NULL, "a dollar sign stands alone; write ${VAR} for a variable, $$ for a dollar sign" },
	{ "~root/x", NULL, "~ stands for your own home directory only; write $~ for a tilde" },
	/* clang-format on */
};

static void test_expansion(void **state)
{
	AUTO(builder_free) struct builder *b = new_builder();

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(expansions); i++) {
		auto_free char *out = NULL;
		struct err err = {0};
		int r = expand_text(expansions[i].text, &b->host, &out, &err);

		assert_string_equal(err.msg, expansions[i].message);
		assert_int_equal(r < 0, !expansions[i].result);
		if (r == 0)
			assert_string_equal(out, expansions[i].result);
		/* Quoting is the inverse for any text. */
		auto_free char *quoted = expand_quote(expansions[i].text);
		auto_free char *back = NULL;

		assert_int_equal(expand_text(quoted, &b->host, &back, NULL), 0);
		assert_string_equal(back, expansions[i].text);
	}
}

/* Flags are taken as they are: the shell has expanded them. */
static void test_flags_not_expanded(void **state)
{
	struct policy *p = finish_words(WORDS("-r", "/a$b/${c}", "-r", "~/x", "--env", "K=$V"));

	(void)state;
	assert_string_equal(p->fs_read.v[0], "/a$b/${c}");
	assert_string_equal(p->fs_read.v[1], "/work/~/x");
	assert_string_equal(p->env.v[0], "K=$V");
	policy_unref(p);
}

/* --- Refusals ----------------------------------------------------------------------------- */

static void test_bad_flags(void **state)
{
	(void)state;
	assert_refused(WORDS("--nonsense"),
		       "unknown option \"--nonsense\"; sandlock run --help lists what there is");
	assert_refused(WORDS("--fs-raed", "/x"),
		       "unknown option \"--fs-raed\"; did you mean --fs-read?");
	assert_refused(WORDS("--fs-raed=/x"),
		       "unknown option \"--fs-raed\"; did you mean --fs-read?");
	assert_refused(WORDS("-iZ"),
		       "unknown option -Z in \"-iZ\"; sandlock run --help lists what there is");
	assert_refused(WORDS("-r"), "--fs-read needs a value: --fs-read PATH");
	assert_refused(WORDS("-r", "--", "x"), "--fs-read needs a value: --fs-read PATH");
	assert_refused(WORDS("-r", "-w", "x"), "--fs-read needs a value, but \"-w\" follows; write "
					       "--fs-read=VALUE if the value begins with a dash");
	assert_refused(WORDS("--clean-env=yes"), "--clean-env: \"yes\" is neither true nor false");
	assert_refused(WORDS("--no-fs-read"),
		       "unknown option \"--no-fs-read\"; did you mean --fs-read?");
	assert_refused(WORDS("-r", ""),
		       "--fs-read: the path is empty; write . for the working directory");
	assert_refused(WORDS("-r", "a\nb"),
		       "--fs-read: \"a\\x0ab\" holds a line break; such a path cannot be named");
}

static void test_bad_values(void **state)
{
	(void)state;
	assert_refused(WORDS("--user", "5"),
		       "--user: \"5\" is not of the form UID:GID; both numbers are needed");
	assert_refused(WORDS("--user", "5:"),
		       "--user: \"5:\" is not of the form UID:GID; both numbers are needed");
	assert_refused(
		WORDS("--user", "5:4294967295"),
		"--user: \"4294967295\" is out of range; give a number from 0 to 4294967294");
	assert_refused(WORDS("--env", "X"), "--env: \"X\" is not of the form KEY=VALUE");
	assert_refused(WORDS("--env", "=X"),
		       "--env: \"=X\" has no name in front of the equals sign");
	assert_refused(WORDS("--name", ""), "--name: the name is empty");
	assert_refused(WORDS("--name", "a/b"),
		       "--name: \"a/b\" holds a slash, which a name cannot");
	assert_refused(WORDS("--name", ".."), "--name: \"..\" is not a name");
	assert_refused(WORDS("--name", "a b"),
		       "--name: \"a b\" holds a blank or a control character, which a name cannot");
	assert_refused(WORDS("--view", "fast"),
		       "--view: \"fast\" is not one of auto, namespace, notify");
	assert_refused(WORDS("--disable", "fs-refer"),
		       "--disable: fs-refer cannot be disabled: without it the kernel refuses "
		       "every rename and link across directories");
	assert_refused(WORDS("--cpu-cores", "3-1"), "--cpu-cores: \"3-1\" ends below its start");
	assert_refused(WORDS("--cpu-cores", "1024"),
		       "--cpu-cores: \"1024\" is out of range; give a number from 0 to 1023");
	assert_refused(
		WORDS("--net-allow", "tcp://:0"),
		"--net-allow: \"tcp://:0\": character 8: the port is not within 1 and 65535");
	assert_refused(WORDS("--net-allow-bind", "80-70"),
		       "--net-allow-bind: \"80-70\": character 1: the range ends below its start");
}

static void test_contradictions(void **state)
{
	(void)state;
	assert_refused(
		WORDS("--net-allow-bind", "*,80"),
		"--net-allow-bind: * cannot be mixed with single values (--net-allow-bind: 80)");
	assert_refused(WORDS("--disable", "net-tcp", "--allow-degraded", "net-tcp"),
		       "--disable and --allow-degraded contradict each other for net-tcp; give one "
		       "of them");
	assert_toml_refused("[program]\nuid = 1\n",
			    "web.toml:2: program.uid needs program.gid as well");
	assert_toml_refused("[program]\nargs = ['x']\n",
			    "web.toml:2: program.args needs program.exec as well");
}

static void test_not_available(void **state)
{
	(void)state;
	assert_refused(
		WORDS("--workdir", ".", "--max-disk", "1G"),
		"--max-disk is not available in this version: copy-on-write arrives with the "
		"workspace work; remove it");
	assert_refused(WORDS("--workdir", ".", "--view", "notify"),
		       "--workdir needs private namespaces in this version, and --view notify goes "
		       "without: use --view auto or --view namespace");
	assert_refused(WORDS("-m", "1G"), "--max-memory is not available in this version: it "
					  "arrives with the limits work; remove it");
	assert_toml_refused("[limits]\n\nmemory = 1024\n",
			    "web.toml:3: limits.memory is not available in this version: it "
			    "arrives with the limits work; remove it");
	assert_refused(WORDS("--no-supervisor", "--unix-allow", "/run/x"),
		       "--no-supervisor is incompatible with: --unix-allow \"/run/x\"; remove them "
		       "or run supervised");
	assert_refused(WORDS("--no-supervisor", "-t", "5", "--name", "x", "--net-allow", "udp://:5",
			     "--view", "namespace"),
		       "--no-supervisor is incompatible with: --name, --net-allow \"udp://:5\", "
		       "--timeout, --view \"namespace\"; remove them or run supervised");
}

static void test_unix_allow(void **state)
{
	struct policy *p =
		finish_words(WORDS("--unix-allow", "/run//x/../y.sock", "--unix-allow", "rel"));

	(void)state;
	assert_false(p->unix_allow_all);
	assert_int_equal(p->unix_allow.n, 2);
	assert_string_equal(p->unix_allow.v[0], "/run/y.sock");
	assert_true(path_is_normal(p->unix_allow.v[1]));
	policy_unref(p);
	assert_refused(WORDS("--unix-allow", "*", "--unix-allow", "/run/x"),
		       "--unix-allow: * cannot be mixed with single values (--unix-allow: /run/x)");
}

/* What works without a supervisor. */
static void test_unsupervised(void **state)
{
	struct policy *p = finish_words(WORDS(
		"--no-supervisor", "-r", "/usr", "-w", "/tmp", "--cwd", "/", "--env", "A=B",
		"--user", "1:1", "--max-open-files", "9", "--no-coredump", "--no-huge-pages",
		"--no-randomize-memory", "--cpu-cores", "0", "--net-allow-bind", "80",
		"--net-allow", "tcp://:80", "--net-allow", ":81", "--unix-allow", "*",
		"--allow-metadata", "--quiet", "--print-policy", "toml", "-i", "--view", "auto"));

	(void)state;
	assert_true(p->no_supervisor);
	assert_int_equal(p->warnings.n, 1);
	policy_unref(p);
}

static void test_bad_toml(void **state)
{
	(void)state;
	assert_toml_refused(
		"[filesytem]\nread = []\n",
		"web.toml:1: unknown section \"filesytem\"; did you mean \"filesystem\"?");
	assert_toml_refused(
		"[filesystem]\n\nraed = []\n",
		"web.toml:3: unknown key \"raed\" in section [filesystem]; did you mean \"read\"?");
	assert_toml_refused(
		"[qqqqqq]\n",
		"web.toml:1: unknown section \"qqqqqq\"; sandlock-policy(5) lists what there is");
	assert_toml_refused("fs_readable = ['/x']\n",
			    "web.toml:1: unknown key \"fs_readable\" outside a section; did you "
			    "mean \"filesystem.read\"?");
	assert_toml_refused("limits = 3\n",
			    "web.toml:1: limits: expected a section, found integer");
	assert_toml_refused(
		"[filesystem]\nread = '/x'\n",
		"web.toml:2: filesystem.read: expected a list in brackets, found string");
	assert_toml_refused("[filesystem]\nread = ['/x',\n 3]\n",
			    "web.toml:3: filesystem.read: expected a string, found integer");
	assert_toml_refused("[program]\nclean_env = 1\n",
			    "web.toml:2: program.clean_env: expected true or false, found integer");
	assert_toml_refused("[limits]\nopen_files = '5'\n",
			    "web.toml:2: limits.open_files: expected an integer, found string");
	assert_toml_refused("[limits]\nopen_files = -5\n",
			    "web.toml:2: limits.open_files: \"-5\" is not a whole number; give one "
			    "from 1 to 4294967295");
	assert_toml_refused(
		"[limits]\nmemory = 1.5\n",
		"web.toml:2: limits.memory: expected a number or a string, found float");
	assert_toml_refused("[limits]\ntimeout = inf\n",
			    "web.toml:2: limits.timeout: the number is out of range");
	assert_toml_refused("[program]\nenv = ['A=B']\n",
			    "web.toml:2: program.env: expected a table, found array");
	assert_toml_refused("[program]\nenv = { A = 1 }\n",
			    "web.toml:2: program.env: \"A\": expected a string, found integer");
	assert_toml_refused("[program]\nenv = { 'A=B' = '1' }\n",
			    "web.toml:2: program.env: \"A=B\" is not the name of a variable");
	assert_toml_refused("[program]\ncwd = \"a\\u0000b\"\n",
			    "web.toml:2: program.cwd: the string holds a NUL character");
	assert_toml_refused("[filesystem]\nread = ['${NOPE}/x']\n",
			    "web.toml:2: filesystem.read: the environment variable NOPE is not "
			    "set; set it or write ${NOPE:-default}");
}

/* --- The command line --------------------------------------------------------------------- */

static void test_args(void **state)
{
	static const char *const words[] = {
		"-ir", "/x",	     "--view=auto", "-t5", "-t=6", "--quiet", "--profile-file",
		"-",   "--env=A=-1", "--",	    "cmd", "-x"};
	AUTO(args_done) struct args args = {0};
	struct strv copy = {0};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		strv_add(&copy, words[i]);
	assert_int_equal(args_parse((int)copy.n, copy.v, &args, NULL), 0);
	assert_int_equal(args.used, 10);
	assert_int_equal(args.n, 8);
	assert_int_equal(args.v[0].option->id, OPT_INTERACTIVE);
	assert_string_equal(args.v[0].value, "true");
	assert_int_equal(args.v[1].option->id, OPT_FS_READ);
	assert_string_equal(args.v[1].value, "/x");
	assert_string_equal(args.v[2].value, "auto");
	assert_string_equal(args.v[3].value, "5");
	assert_string_equal(args.v[4].value, "6");
	assert_int_equal(args.v[6].option->id, OPT_PROFILE_FILE);
	assert_string_equal(args.v[6].value, "-");
	assert_string_equal(args.v[7].value, "A=-1");
	strv_done(&copy);
}

/* Flags end at the first word that is none, and --help ends everything. */
static void test_args_end(void **state)
{
	static char words_text[4][8] = {"-r", "/x", "cmd", "--bad"};
	static char help_text[2][8] = {"--help", "--bad"};
	char *words[] = {words_text[0], words_text[1], words_text[2], words_text[3]};
	char *help[] = {help_text[0], help_text[1]};
	AUTO(args_done) struct args args = {0}, more = {0};

	(void)state;
	assert_int_equal(args_parse(4, words, &args, NULL), 0);
	assert_int_equal(args.used, 2);
	assert_int_equal(args_parse(2, help, &more, NULL), 0);
	assert_int_equal(more.used, 1);
}

static void test_patterns(void **state)
{
	AUTO(builder_free) struct builder *b = new_builder();
	const struct setting *deny = &b->settings[OPT_FS_DENY];

	(void)state;
	assert_int_equal(apply_toml(b,
				    "[filesystem]\ndeny = ['x', '*.key', './a?', '**/.env', "
				    "'path:/a*b', '/abs/*']\n",
				    NULL),
			 0);
	assert_int_equal(apply_words(b, WORDS("--fs-deny", "k/*"), NULL), 0);
	assert_int_equal(deny->n, 7);
	assert_string_equal(deny->v[0].text, "/etc/p/x");
	assert_string_equal(deny->v[1].text, "/etc/p/*.key");
	assert_string_equal(deny->v[2].text, "/etc/p/a?");
	assert_string_equal(deny->v[3].text, "**/.env");
	assert_string_equal(deny->v[4].text, "path:/a*b");
	assert_string_equal(deny->v[5].text, "/abs/*");
	assert_string_equal(deny->v[6].text, "/work/k/*");
}

/* Times of both versions of the reference: epoch seconds, offsets, none with a warning. */
static void test_times(void **state)
{
	AUTO(builder_free) struct builder *b = new_builder();
	struct err err = {0};

	(void)state;
	assert_int_equal(apply_words(b, WORDS("--time-start", "946684800"), NULL), 0);
	assert_int_equal(apply_words(b, WORDS("--time-start=-1.5"), NULL), 0);
	assert_int_equal(apply_words(b, WORDS("--time-start", "2000-01-01T00:00:00+02:00"), NULL),
			 0);
	assert_int_equal(b->warnings.n, 0);
	assert_int_equal(apply_toml(b, "[determinism]\ntime_start = 2000-01-01T00:00:00\n", &err),
			 0);
	assert_string_equal(err.msg, "");
	assert_int_equal(b->warnings.n, 1);
	assert_string_equal(
		b->warnings.v[0],
		"web.toml:2: determinism.time_start: 2000-01-01T00:00:00 names no offset "
		"from UTC and is taken as UTC");
	assert_string_equal(builder_text(b, OPT_TIME_START), "2000-01-01T00:00:00");
	assert_true(apply_words(b, WORDS("--time-start", "2000-13-01T00:00:00Z"), &err) < 0);
	assert_true(apply_words(b, WORDS("--time-start", "yesterday"), &err) < 0);
}

static void test_not_utf8(void **state)
{
	AUTO(builder_free) struct builder *b = new_builder();
	struct value *root = NULL;
	struct err err = {0};

	(void)state;
	assert_int_equal(apply_words(b, WORDS("-r", "/a\xff"), NULL), 0);
	assert_int_equal(builder_to_tree(b, &root, &err), -EINVAL);
	assert_string_equal(err.msg,
			    "--fs-read: \"/a\\xff\" is not UTF-8, which a policy file cannot hold");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_fields),		cmocka_unit_test(test_tcp_only_warning),
		cmocka_unit_test(test_network_implied), cmocka_unit_test(test_switch_off),
		cmocka_unit_test(test_merge),		cmocka_unit_test(test_toml_kinds),
		cmocka_unit_test(test_expansion),	cmocka_unit_test(test_flags_not_expanded),
		cmocka_unit_test(test_bad_flags),	cmocka_unit_test(test_bad_values),
		cmocka_unit_test(test_contradictions),	cmocka_unit_test(test_not_available),
		cmocka_unit_test(test_unix_allow),	cmocka_unit_test(test_unsupervised),
		cmocka_unit_test(test_bad_toml),	cmocka_unit_test(test_args),
		cmocka_unit_test(test_args_end),	cmocka_unit_test(test_patterns),
		cmocka_unit_test(test_times),		cmocka_unit_test(test_not_utf8),
	};

	return cmocka_run_group_tests_name("policy", tests, NULL, NULL);
}
