/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The policy part of the public API: a handle over the builder, and the one place where internal
 * failures become codes of the closed list. A finished policy is never changed: a change drops it,
 * and the next use builds another.
 */
#include "lib/lib_internal.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/number.h"
#include "base/util.h"
#include "base/value.h"
#include "policy/args.h"
#include "policy/builder.h"
#include "policy/policy.h"
#include "policy/text.h"

const char *sandlock_version(void)
{
	return SANDLOCK_VERSION;
}

void sandlock_set_abort_hook(void (*hook)(const char *reason))
{
	util_set_abort_hook(hook);
}

void sandlock_free(void *p)
{
	free(p);
}

enum sandlock_code lib_code(int errno_value)
{
	switch (errno_value) {
	case EINVAL:
	case ERANGE:
	case E2BIG:
	case EILSEQ:
	case ELOOP:
	case ENAMETOOLONG:
	case ENOTDIR:
	case EISDIR:
	case EDOM:
		return SANDLOCK_E_INVALID;
	case ENOENT:
		return SANDLOCK_E_NOT_FOUND;
	case EACCES:
	case EPERM:
	case EROFS:
		return SANDLOCK_E_PERMISSION;
	case EOPNOTSUPP:
	case ENOSYS:
	case EPROTONOSUPPORT:
	case EAFNOSUPPORT:
		return SANDLOCK_E_UNSUPPORTED;
	case EEXIST:
		return SANDLOCK_E_EXISTS;
	case EMFILE:
	case ENFILE:
	case EAGAIN:
	case ENOMEM:
	case ENOSPC:
	case EDQUOT:
	case EUSERS:
		return SANDLOCK_E_LIMIT;
	case EBUSY:
		return SANDLOCK_E_STATE;
	case ETIMEDOUT:
		return SANDLOCK_E_TIMEOUT;
	default:
		return SANDLOCK_E_INTERNAL;
	}
}

int lib_fail(struct sandlock_error *err, const struct err *e)
{
	enum sandlock_code code = lib_code(e->code);

	if (err) {
		*err = (struct sandlock_error){.code = (int)code, .sys_errno = e->code};
		snprintf(err->msg, sizeof(err->msg), "%s", e->msg);
	}
	return -(int)code;
}

static int fail_with(struct sandlock_error *err, int errno_value, const char *msg)
{
	struct err e = {0};

	err_set(&e, errno_value, "%s", msg);
	return lib_fail(err, &e);
}

static const char *host_env(void *data, const char *name)
{
	(void)data;
	return getenv(name);
}

struct sandlock_policy *sandlock_policy_new(void)
{
	struct sandlock_policy *p = xnew(struct sandlock_policy);

	p->builder = builder_new();
	p->builder->host.env = host_env;
	return p;
}

/* Drops what was made from the settings: they are about to change. */
static void forget(struct sandlock_policy *p)
{
	policy_unref(p->policy);
	p->policy = NULL;
	free(p->command);
	p->command = NULL;
}

void sandlock_policy_free(struct sandlock_policy *policy)
{
	if (!policy)
		return;
	forget(policy);
	builder_free(policy->builder);
	strv_done(&policy->warnings);
	free(policy);
}

/* Every change begins here. Relative paths start at the directory of this moment. */
static void begin_change(struct sandlock_policy *p)
{
	char *cwd = getcwd(NULL, 0);

	forget(p);
	free(p->builder->host.cwd);
	/* The kernel says "(unreachable)…" for a directory outside the root: that is no base. */
	p->builder->host.cwd = cwd && cwd[0] == '/' ? cwd : NULL;
	if (!p->builder->host.cwd)
		free(cwd);
}

/* The command of the profile, for sandlock_policy_command; its words stay the builder's. */
static void end_change(struct sandlock_policy *p)
{
	const struct setting *args = &p->builder->settings[OPT_ARGS];
	const struct setting *exec = &p->builder->settings[OPT_EXEC];

	if (!exec->n)
		return;
	p->command = xcalloc(args->n + 2, sizeof(*p->command));
	p->command[0] = exec->v[0].text;
	for (size_t i = 0; i < args->n; i++)
		p->command[i + 1] = args->v[i].text;
}

/*
 * Ends a change. One that failed may have set a part, and a caller who does not look at results
 * would run with less of a policy than was written: so the policy cannot be used any more.
 */
static int settle(struct sandlock_policy *p, int r, const struct sandlock_error *failure,
		  struct sandlock_error *err)
{
	end_change(p);
	if (r == 0)
		return 0;
	if (p->broken.code == 0)
		p->broken = *failure;
	if (err)
		*err = *failure;
	return r;
}

static int set_option(struct sandlock_policy *policy, const char *option, const char *value,
		      struct sandlock_error *err)
{
	struct origin from = {.kind = ORIGIN_API};
	const struct option *o = option_find(option);
	struct err e = {0};

	if (!o || (o->flags & OPTION_CLI_ONLY) || o->id == OPT_INCLUDE) {
		err_set(&e, o ? EINVAL : ENOENT,
			o ? "%.64s belongs to the command line or to profile files, not to a policy"
			  : "there is no option %.64s",
			option);
		return lib_fail(err, &e);
	}
	if (!value && !option_is_switch(o)) {
		err_set(&e, EINVAL, "%.64s needs a value", option);
		return lib_fail(err, &e);
	}
	if (builder_set(policy->builder, o, value ? value : "true", &from, &e) < 0)
		return lib_fail(err, &e);
	return 0;
}

int sandlock_policy_set(struct sandlock_policy *policy, const char *option, const char *value,
			struct sandlock_error *err)
{
	struct sandlock_error failure = {0};

	begin_change(policy);
	return settle(policy, set_option(policy, option, value, &failure), &failure, err);
}

static int load(struct sandlock_policy *policy, struct profile_text *text,
		struct sandlock_error *err)
{
	struct sandlock_error failure = {0};
	struct err e = {0};

	begin_change(policy);

	int r = profile_apply_take(policy->builder, text, &e);

	if (r < 0)
		r = lib_fail(&failure, &e);
	return settle(policy, r, &failure, err);
}

int sandlock_policy_load_profile(struct sandlock_policy *policy, const char *name,
				 struct sandlock_error *err)
{
	struct profile_text text = {0};
	struct err e = {0};

	if (profile_read_name(name, &text, &e) < 0)
		return lib_fail(err, &e);
	return load(policy, &text, err);
}

int sandlock_policy_load_file(struct sandlock_policy *policy, const char *path,
			      struct sandlock_error *err)
{
	struct profile_text text = {0};
	struct err e = {0};

	if (profile_read_path(path, NULL, &text, &e) < 0)
		return lib_fail(err, &e);
	return load(policy, &text, err);
}

int sandlock_policy_load_json(struct sandlock_policy *policy, const char *text, size_t len,
			      struct sandlock_error *err)
{
	if (len > VALUE_TEXT_MAX)
		return fail_with(err, E2BIG, "the JSON policy is larger than 1 MiB");

	struct profile_text t = {
		.text = xzalloc(len + 1),
		.len = len,
		.label = xstrdup("JSON policy"),
		.id = xstrdup("JSON policy"),
		.json = true,
	};

	memcpy(t.text, text, len);
	return load(policy, &t, err);
}

/* --- Command line ------------------------------------------------------------------------- */

/* Loads -p or --profile-file, wherever among the flags it stands. */
static int load_profiles(struct sandlock_policy *policy, const struct args *args,
			 struct sandlock_error *err)
{
	const struct arg_item *found = NULL;

	for (size_t i = 0; i < args->n; i++) {
		const struct arg_item *item = &args->v[i];

		if (item->option->id != OPT_PROFILE && item->option->id != OPT_PROFILE_FILE)
			continue;
		if (found && found->option == item->option)
			return fail_with(
				err, EINVAL,
				"only one profile can be given; a profile file can include others");
		if (found)
			return fail_with(err, EINVAL,
					 "--profile and --profile-file contradict each other; give "
					 "one of them");
		found = item;
	}
	if (!found)
		return 0;
	return found->option->id == OPT_PROFILE
		       ? sandlock_policy_load_profile(policy, found->value, err)
		       : sandlock_policy_load_file(policy, found->value, err);
}

static void fill_cli(const struct builder *b, const struct arg_item *item, struct sandlock_cli *cli)
{
	bool on = str_eq(item->value, "true");

	switch ((int)item->option->id) {
	case OPT_STATUS_FD:
		cli->status_fd = (int)strtol(builder_text(b, OPT_STATUS_FD), NULL, 10);
		break;
	case OPT_PRINT_POLICY:
		cli->print_policy = str_eq(item->value, "toml") ? 1 : 2;
		break;
	case OPT_PTY:
		cli->pty = on;
		break;
	case OPT_QUIET:
		cli->quiet = on;
		break;
	case OPT_HELP:
		cli->help = on;
		break;
	case OPT_VERSION:
		cli->version = on;
		break;
	case OPT_EXEC_SHELL:
		cli->exec_shell = item->value;
		break;
	case OPT_PROFILE:
	case OPT_PROFILE_FILE:
		cli->profile = item->value;
		break;
	case OPT_EVENTS:
		cli->events = item->value;
		break;
	case OPT_DRY_RUN:
		cli->dry_run = on;
		break;
	case OPT_FORMAT:
		cli->format = item->value;
		break;
	case OPT_DIFF_OUTPUT:
		cli->diff_output = item->value;
		break;
	default:
		break;
	}
}

static int apply_args(struct sandlock_policy *policy, const struct args *args,
		      struct sandlock_cli *cli, struct sandlock_error *err)
{
	struct origin from = {.kind = ORIGIN_FLAG};
	struct err e = {0};

	for (size_t i = 0; i < args->n; i++) {
		const struct arg_item *item = &args->v[i];
		bool cli_only = item->option->flags & OPTION_CLI_ONLY;

		if (cli_only && !cli) {
			err_set(&e, EINVAL, "%s belongs to the command line, not to a policy",
				item->option->flag);
			return lib_fail(err, &e);
		}
		if (builder_set(policy->builder, item->option, item->value, &from, &e) < 0)
			return lib_fail(err, &e);
		if (cli_only)
			fill_cli(policy->builder, item, cli);
	}
	return 0;
}

/* Hands out as much of FROM as the caller's struct has room for. */
static void put_cli(struct sandlock_cli *to, struct sandlock_cli *from)
{
	size_t size = to->struct_size < sizeof(*from) ? to->struct_size : sizeof(*from);

	from->struct_size = to->struct_size;
	memcpy(to, from, size);
}

static bool is_descriptor(const char *text, int *ret_fd)
{
	const struct option *o = option_get(OPT_STATUS_FD);
	uint64_t fd = 0;

	if (number_parse_u64(text, o->min, o->max, &fd, NULL) < 0)
		return false;
	*ret_fd = (int)fd;
	return true;
}

/*
 * A command line that is refused is reported to --status-fd as well, wherever it stands: among the
 * words in front of the fault, or behind it, up to the command.
 */
static int find_status_fd(const struct args *args, int argc, char *const *argv)
{
	const char *flag = option_get(OPT_STATUS_FD)->flag;
	int fd = -1;

	for (size_t i = 0; i < args->n; i++)
		if (args->v[i].option->id == OPT_STATUS_FD)
			is_descriptor(args->v[i].value, &fd);
	for (int i = args->used; i < argc && !str_eq(argv[i], "--"); i++) {
		size_t len = strlen(flag);

		if (str_eq(argv[i], flag) && i + 1 < argc)
			is_descriptor(argv[i + 1], &fd);
		else if (str_starts(argv[i], flag) && argv[i][len] == '=')
			is_descriptor(argv[i] + len + 1, &fd);
	}
	return fd;
}

static int parse_args(struct sandlock_policy *policy, const struct args *args,
		      struct sandlock_cli *cli, struct sandlock_error *err)
{
	enum option_id last = args->n ? args->v[args->n - 1].option->id : OPT_NONE;

	if (cli && (last == OPT_HELP || last == OPT_VERSION)) {
		fill_cli(policy->builder, &args->v[args->n - 1], cli);
		return 0;
	}
	int r = load_profiles(policy, args, err);

	return r < 0 ? r : apply_args(policy, args, cli, err);
}

int sandlock_policy_parse_args(struct sandlock_policy *policy, int argc, char *const *argv,
			       struct sandlock_cli *cli, int *ret_used, struct sandlock_error *err)
{
	AUTO(args_done) struct args args = {0};
	struct sandlock_cli mine = {.status_fd = -1};
	struct sandlock_error failure = {0};
	struct err e = {0};
	bool parsed = args_parse(argc, argv, &args, &e) == 0;
	int r = 0;

	begin_change(policy);
	if (!parsed)
		r = lib_fail(&failure, &e);
	else
		r = parse_args(policy, &args, cli ? &mine : NULL, &failure);
	if (r < 0)
		mine.status_fd = find_status_fd(&args, parsed ? 0 : argc, argv);
	forget(policy);
	r = settle(policy, r, &failure, err);
	if (cli)
		put_cli(cli, &mine);
	if (r < 0)
		return r;
	*ret_used = args.used;
	return 0;
}

/* --- The whole ---------------------------------------------------------------------------- */

static int repeat_failure(const struct sandlock_policy *policy, struct sandlock_error *err)
{
	if (err)
		*err = policy->broken;
	return -policy->broken.code;
}

int lib_policy_finish(struct sandlock_policy *policy, const struct policy **ret_policy,
		      struct sandlock_error *err)
{
	struct err e = {0};

	if (policy->broken.code)
		return repeat_failure(policy, err);
	if (!policy->policy) {
		if (builder_finish(policy->builder, &policy->policy, &e) < 0)
			return lib_fail(err, &e);
		strv_done(&policy->warnings);
		strv_copy(&policy->warnings, &policy->policy->warnings);
	}
	*ret_policy = policy->policy;
	return 0;
}

int sandlock_policy_check(struct sandlock_policy *policy, struct sandlock_error *err)
{
	const struct policy *p = NULL;

	return lib_policy_finish(policy, &p, err);
}

int sandlock_policy_print(struct sandlock_policy *policy, const char *format, char **ret_text,
			  struct sandlock_error *err)
{
	struct value *root = NULL;
	struct err e = {0};

	if (!str_eq(format, "toml") && !str_eq(format, "json"))
		return fail_with(err, EINVAL, "the format of a policy is toml or json");
	if (policy->broken.code)
		return repeat_failure(policy, err);
	if (builder_to_tree(policy->builder, &root, &e) < 0)
		return lib_fail(err, &e);
	*ret_text = str_eq(format, "toml") ? toml_write(root) : json_write(root);
	value_free(root);
	return 0;
}

const char *sandlock_policy_warning(const struct sandlock_policy *policy, size_t i)
{
	return i < policy->warnings.n ? policy->warnings.v[i] : NULL;
}

char *const *sandlock_policy_command(const struct sandlock_policy *policy)
{
	return policy->command;
}

int sandlock_text(const char *name, char **ret_text)
{
	char *text = text_make(name);

	if (!text)
		return -SANDLOCK_E_NOT_FOUND;
	*ret_text = text;
	return 0;
}
