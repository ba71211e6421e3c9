/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From the settings to the immutable policy: the checks that look at more than one value, and the
 * refusal of what cannot be enforced, by this version or in the mode that was asked for. What comes
 * out is enforced whole or the start fails; nothing is dropped on the way.
 */
#include <errno.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/number.h"
#include "base/util.h"
#include "policy/builder.h"
#include "policy/filter.h"
#include "policy/net_limits.h"
#include "policy/net_rule.h"
#include "policy/net_table.h"
#include "policy/policy.h"

/* How long a question waits for its answer. */
#define ASK_TIMEOUT_MS 30000

/* Whether ID was given in a way that asks for something: no false switch, no empty list. */
static bool asks(const struct builder *b, enum option_id id)
{
	const struct setting *s = &b->settings[id];
	const struct option *o = option_get(id);

	if (!s->set)
		return false;
	if (o->type == OPTION_BOOL)
		return builder_is_true(b, id);
	/* An empty allow list of HTTP rules would mean: no request at all. */
	return s->n > 0 || id == OPT_HTTP_ALLOW;
}

/* --- Refusals ----------------------------------------------------------------------------- */

/* Rules for given TCP ports of any address: what Landlock enforces by itself. */
static bool is_port_rule(const struct net_rule *r)
{
	return (r->protos & NET_TCP) && r->target == NET_TARGET_ANY && !r->ports.any;
}

static bool is_port_rule_text(const char *text)
{
	struct net_rule rule;

	if (net_rule_parse(text, &rule, NULL) < 0)
		return false;
	bool is = is_port_rule(&rule);

	net_rule_done(&rule);
	return is;
}

static void list_place(struct buf *list, const char *where, const char *value)
{
	char q[QUOTE_SIZE];

	buf_printf(list, "%s%s", list->len ? ", " : "", where);
	if (value)
		buf_printf(list, " %s", quote_str(value, q, sizeof(q)));
}

/* Values that this option has and the mode without a supervisor cannot enforce. */
static void list_unsupervisable(const struct builder *b, const struct option *o, struct buf *list)
{
	const struct setting *s = &b->settings[o->id];

	if (o->flags & OPTION_SUPERVISED) {
		list_place(list, builder_where(b, o->id), NULL);
		return;
	}
	for (size_t i = 0; i < s->n; i++) {
		const char *text = s->v[i].text;

		if ((o->id == OPT_NET_ALLOW && !is_port_rule_text(text)) ||
		    (o->id == OPT_UNIX_ALLOW && !str_eq(text, "*")) ||
		    (o->id == OPT_VIEW && str_eq(text, "namespace")))
			list_place(list, s->v[i].where, text);
	}
}

static int check_unsupervised(const struct builder *b, struct err *err)
{
	AUTO(buf_done) struct buf list = BUF_INIT(1 << 16);

	if (!builder_is_true(b, OPT_NO_SUPERVISOR))
		return 0;
	for (size_t i = OPT_NONE + 1; i < OPT_COUNT; i++)
		if (asks(b, (enum option_id)i))
			list_unsupervisable(b, option_get((enum option_id)i), &list);
	if (!list.len)
		return 0;
	return err_set(err, EINVAL,
		       "--no-supervisor is incompatible with: %s; remove them or run supervised",
		       buf_text(&list));
}

static int check_later(const struct builder *b, struct err *err)
{
	for (size_t i = OPT_NONE + 1; i < OPT_COUNT; i++) {
		const struct option *o = option_get((enum option_id)i);

		if (o->later != LATER_NOTHING && asks(b, o->id))
			return err_set(err, EOPNOTSUPP,
				       "%s is not available in this version: %s; remove it",
				       builder_where(b, o->id), option_later_text(o->later));
	}
	return 0;
}

/* --- Contradictions ----------------------------------------------------------------------- */

static int check_needs(const struct builder *b, const struct option *o, struct err *err)
{
	AUTO(buf_done) struct buf list = BUF_INIT(1024);

	for (size_t i = 0; i < ARRAY_SIZE(o->needs) && o->needs[i] != OPT_NONE; i++) {
		if (asks(b, o->needs[i]))
			return 0;
		buf_printf(&list, "%s%s", i ? " or " : "", option_label(option_get(o->needs[i])));
	}
	if (!list.len)
		return 0;
	return err_set(err, EINVAL, "%s needs %s as well", builder_where(b, o->id),
		       buf_text(&list));
}

static int check_pairs(const struct builder *b, struct err *err)
{
	for (size_t i = OPT_NONE + 1; i < OPT_COUNT; i++) {
		const struct option *o = option_get((enum option_id)i);

		if (!asks(b, o->id))
			continue;
		for (size_t c = 0; c < ARRAY_SIZE(o->conflicts); c++)
			if (o->conflicts[c] != OPT_NONE && asks(b, o->conflicts[c]))
				return err_set(err, EINVAL,
					       "%s and %s contradict each other; give one of them",
					       builder_where(b, o->id),
					       builder_where(b, o->conflicts[c]));
		int r = check_needs(b, o, err);

		if (r < 0)
			return r;
	}
	return 0;
}

/* "*" (or "all") says everything: beside it other values would mislead. */
static int check_everything(const struct builder *b, enum option_id id, const char *word,
			    struct err *err)
{
	const struct setting *s = &b->settings[id];

	for (size_t i = 0; s->n > 1 && i < s->n; i++)
		if (str_eq(s->v[i].text, word))
			return err_set(
				err, EINVAL, "%s: %s cannot be mixed with single values (%s: %s)",
				s->v[i].where, word, s->v[i ? 0 : 1].where, s->v[i ? 0 : 1].text);
	return 0;
}

static int check_protections(const struct builder *b, struct err *err)
{
	const struct setting *off = &b->settings[OPT_DISABLE];
	const struct setting *weak = &b->settings[OPT_ALLOW_DEGRADED];

	for (size_t i = 0; i < off->n; i++) {
		if (str_eq(off->v[i].text, protection_name(PROT_FS_REFER)))
			return err_set(err, EINVAL,
				       "%s: fs-refer cannot be disabled: without it the kernel "
				       "refuses every rename and link across directories",
				       off->v[i].where);
		for (size_t j = 0; j < weak->n; j++)
			if (str_eq(off->v[i].text, weak->v[j].text))
				return err_set(
					err, EINVAL,
					"%s and %s contradict each other for %s; give one of them",
					off->v[i].where, weak->v[j].where, off->v[i].text);
	}
	return 0;
}

/* --- The result --------------------------------------------------------------------------- */

static void copy_list(const struct builder *b, enum option_id id, struct strv *to)
{
	const struct setting *s = &b->settings[id];

	for (size_t i = 0; i < s->n; i++)
		strv_add(to, s->v[i].text);
}

static char *copy_text(const struct builder *b, enum option_id id)
{
	const char *text = builder_text(b, id);

	return text ? xstrdup(text) : NULL;
}

/* Numbers were checked when they were set. */
static uint64_t number_of(const struct builder *b, enum option_id id)
{
	const char *text = builder_text(b, id);

	return text ? strtoull(text, NULL, 10) : 0;
}

static void fill_program(struct builder *b, struct policy *p)
{
	p->exec = copy_text(b, OPT_EXEC);
	copy_list(b, OPT_ARGS, &p->args);
	p->cwd = copy_text(b, OPT_CWD);
	copy_list(b, OPT_ENV, &p->env);
	p->clean_env = builder_is_true(b, OPT_CLEAN_ENV);
	p->has_user = builder_is_set(b, OPT_UID);
	p->uid = (uint32_t)number_of(b, OPT_UID);
	p->gid = (uint32_t)number_of(b, OPT_GID);
	p->no_supervisor = builder_is_true(b, OPT_NO_SUPERVISOR);
	p->name = copy_text(b, OPT_NAME);
	p->no_huge_pages = builder_is_true(b, OPT_NO_HUGE_PAGES);
	p->no_coredump = builder_is_true(b, OPT_NO_COREDUMP);
	p->no_randomize_memory = builder_is_true(b, OPT_NO_RANDOMIZE_MEMORY);
}

static void fill_limits(struct builder *b, struct policy *p)
{
	const struct setting *cores = &b->settings[OPT_CPU_CORES];
	const char *timeout = builder_text(b, OPT_TIMEOUT);

	if (timeout)
		number_parse_duration(timeout, &p->timeout_ms, NULL);
	p->max_open_files = number_of(b, OPT_MAX_OPEN_FILES);
	if (!cores->n)
		return;
	p->cpu_cores = xcalloc(cores->n, sizeof(*p->cpu_cores));
	for (size_t i = 0; i < cores->n; i++)
		p->cpu_cores[p->n_cpu_cores++] = (uint32_t)strtoul(cores->v[i].text, NULL, 10);
}

static char *tcp_only_warning(const char *rules)
{
	return xasprintf("rules without a protocol (%s) grant TCP only with --no-supervisor; write "
			 "tcp:// in front to say so",
			 rules);
}

static int add_rule(struct net_rules *to, const char *text, struct err *err)
{
	to->v = xrealloc(to->v, to->n + 1, sizeof(*to->v));

	int r = net_rule_parse(text, &to->v[to->n], err);

	if (r == 0)
		to->n++;
	return r;
}

static int fill_rules(const struct builder *b, enum option_id id, struct net_rules *to,
		      struct err *err)
{
	const struct setting *rules = &b->settings[id];

	for (size_t i = 0; i < rules->n; i++) {
		int r = add_rule(to, rules->v[i].text, err);

		if (r < 0)
			return r;
	}
	return 0;
}

static int fill_ports(const struct builder *b, enum option_id id, struct port_set *to,
		      struct err *err)
{
	const struct setting *ports = &b->settings[id];

	for (size_t i = 0; i < ports->n; i++) {
		struct port_set set = {0};
		int r = port_set_parse(ports->v[i].text, 0, &set, err);

		if (r < 0)
			return r;
		port_set_merge(to, &set);
		port_set_done(&set);
	}
	return 0;
}

/* Landlock knows TCP ports only. */
static void keep_tcp(struct policy *p)
{
	AUTO(buf_done) struct buf bare = BUF_INIT(1 << 16);

	for (size_t i = 0; i < p->net_allow.n; i++) {
		struct net_rule *rule = &p->net_allow.v[i];

		rule->protos = NET_TCP;
		if (!rule->scheme_given)
			buf_printf(&bare, "%s%s", bare.len ? ", " : "", rule->text);
	}
	if (bare.len)
		strv_add_take(&p->warnings, tcp_only_warning(buf_text(&bare)));
}

static enum policy_loopback loopback_of(const struct builder *b, const struct policy *p)
{
	const char *text = builder_text(b, OPT_NET_ALLOW_LOOPBACK);

	if (!text)
		return net_policy_has_bind(p) && !p->no_supervisor ? LOOPBACK_OWN : LOOPBACK_NONE;
	if (str_eq(text, "all"))
		return LOOPBACK_ALL;
	return str_eq(text, "own") ? LOOPBACK_OWN : LOOPBACK_NONE;
}

/* What follows from what was given: a list of exceptions alone means all the rest. */
static int fill_implied(const struct builder *b, struct policy *p, struct err *err)
{
	int r = 0;

	if (p->net_deny.n && !builder_is_set(b, OPT_NET_ALLOW))
		r = add_rule(&p->net_allow, "*", err);
	if ((p->bind_deny.n || p->bind_deny.any) && !builder_is_set(b, OPT_NET_ALLOW_BIND))
		p->bind_allow.any = true;
	p->loopback = loopback_of(b, p);
	p->port_remap = builder_is_true(b, OPT_PORT_REMAP);
	if (r == 0 && p->loopback == LOOPBACK_ALL)
		r = add_rule(&p->net_allow, "127.0.0.0/8", err);
	if (r == 0 && p->loopback == LOOPBACK_ALL)
		r = add_rule(&p->net_allow, "::1", err);
	return r;
}

static void fill_ask(const struct builder *b, struct policy *p)
{
	const char *timeout = builder_text(b, OPT_ASK_TIMEOUT);

	p->net_ask = builder_is_true(b, OPT_NET_ASK);
	p->ask_save = copy_text(b, OPT_ASK_SAVE);
	p->ask_timeout_ms = ASK_TIMEOUT_MS;
	if (timeout)
		number_parse_duration(timeout, &p->ask_timeout_ms, NULL);
}

static int fill_network(struct builder *b, struct policy *p, struct err *err)
{
	int r = fill_rules(b, OPT_NET_ALLOW, &p->net_allow, err);

	if (r == 0)
		r = fill_rules(b, OPT_NET_DENY, &p->net_deny, err);
	if (r == 0)
		r = fill_ports(b, OPT_NET_ALLOW_BIND, &p->bind_allow, err);
	if (r == 0)
		r = fill_ports(b, OPT_NET_DENY_BIND, &p->bind_deny, err);
	if (r == 0)
		r = fill_implied(b, p, err);
	if (r == 0)
		r = net_limits_fill(b, p, err);
	if (r < 0)
		return r;
	p->lazy_dns = builder_is_true(b, OPT_NET_LAZY_DNS);
	fill_ask(b, p);
	if (p->no_supervisor)
		keep_tcp(p);
	for (size_t i = 0; i < b->settings[OPT_UNIX_ALLOW].n; i++) {
		const char *text = b->settings[OPT_UNIX_ALLOW].v[i].text;

		if (str_eq(text, "*"))
			p->unix_allow_all = true;
		else
			strv_add(&p->unix_allow, text);
	}
	return 0;
}

static void fill_protections(struct builder *b, struct policy *p)
{
	const struct setting *off = &b->settings[OPT_DISABLE];
	const struct setting *weak = &b->settings[OPT_ALLOW_DEGRADED];

	for (size_t prot = 0; prot < PROT_COUNT; prot++) {
		const char *name = protection_name((enum protection)prot);

		for (size_t i = 0; i < weak->n; i++)
			if (str_eq(weak->v[i].text, name))
				p->prot[prot] = PROT_DEGRADABLE;
		for (size_t i = 0; i < off->n; i++)
			if (str_eq(off->v[i].text, name))
				p->prot[prot] = PROT_DISABLED;
	}
	p->allow_metadata = builder_is_true(b, OPT_ALLOW_METADATA);
	p->explain = builder_is_true(b, OPT_EXPLAIN);
	copy_list(b, OPT_EXTRA_DENY_SYSCALL, &p->extra_deny);
	copy_list(b, OPT_EXTRA_ALLOW_SYSCALL, &p->extra_allow);
}

static enum policy_view view_of(const struct builder *b)
{
	const char *text = builder_text(b, OPT_VIEW);

	if (text && str_eq(text, "namespace"))
		return VIEW_NAMESPACE;
	if (text && str_eq(text, "notify"))
		return VIEW_NOTIFY;
	return VIEW_AUTO;
}

static enum policy_action action_of(const struct builder *b, enum option_id id,
				    enum policy_action unset)
{
	static const char *const words[] = {
		[ACTION_COMMIT] = "commit",
		[ACTION_ABORT] = "abort",
		[ACTION_KEEP] = "keep",
		[ACTION_DEFER] = "defer",
	};
	const char *text = builder_text(b, id);

	for (size_t i = 0; text && i < ARRAY_SIZE(words); i++)
		if (str_eq(text, words[i]))
			return (enum policy_action)i;
	return unset;
}

static void fill_workspace(struct builder *b, struct policy *p)
{
	const char *conflict = builder_text(b, OPT_ON_CONFLICT);

	copy_list(b, OPT_WORKDIR, &p->workdirs);
	p->fs_storage = copy_text(b, OPT_FS_STORAGE);
	p->on_exit = action_of(b, OPT_ON_EXIT, ACTION_COMMIT);
	p->on_error = action_of(b, OPT_ON_ERROR, ACTION_ABORT);
	p->dry_run = builder_is_true(b, OPT_DRY_RUN);
	if (conflict && str_eq(conflict, "theirs"))
		p->on_conflict = ON_CONFLICT_THEIRS;
	else if (conflict && str_eq(conflict, "ours"))
		p->on_conflict = ON_CONFLICT_OURS;
}

static int fill(struct builder *b, struct policy *p, struct err *err)
{
	for (size_t i = OPT_NONE + 1; i < OPT_COUNT; i++)
		if (b->settings[i].set)
			p->set[i / 64] |= (uint64_t)1 << (i % 64);
	copy_list(b, OPT_FS_READ, &p->fs_read);
	copy_list(b, OPT_FS_READ_IF_EXISTS, &p->fs_read_if_exists);
	copy_list(b, OPT_FS_WRITE, &p->fs_write);
	fill_workspace(b, p);
	fill_program(b, p);
	fill_limits(b, p);
	fill_protections(b, p);
	p->view = view_of(b);

	int r = fill_network(b, p, err);

	if (r < 0)
		return r;
	/* Whether there is an IPC namespace in view auto is known at the start, which checks again.
	 */
	return filter_check_names(&p->extra_allow, &p->extra_deny,
				  !p->no_supervisor && p->view != VIEW_NOTIFY, err);
}

/* The supervisor does not serve workspaces yet. */
static int check_workdir(const struct builder *b, struct err *err)
{
	const char *view = builder_text(b, OPT_VIEW);

	if (!asks(b, OPT_WORKDIR) || !view || !str_eq(view, "notify"))
		return 0;
	return err_set(err, EOPNOTSUPP,
		       "%s needs private namespaces in this version, and %s notify goes without: "
		       "use --view auto or --view namespace",
		       builder_where(b, OPT_WORKDIR), builder_where(b, OPT_VIEW));
}

static int check_all(const struct builder *b, struct err *err)
{
	int r = check_unsupervised(b, err);

	if (r == 0)
		r = check_later(b, err);
	if (r == 0)
		r = check_pairs(b, err);
	if (r == 0)
		r = check_workdir(b, err);
	if (r == 0)
		r = check_everything(b, OPT_NET_ALLOW_BIND, "*", err);
	if (r == 0)
		r = check_everything(b, OPT_NET_DENY_BIND, "*", err);
	if (r == 0)
		r = check_everything(b, OPT_GPU, "all", err);
	if (r == 0)
		r = check_everything(b, OPT_UNIX_ALLOW, "*", err);
	if (r == 0)
		r = check_protections(b, err);
	return r;
}

int builder_finish(struct builder *b, struct policy **ret_policy, struct err *err)
{
	int r = check_all(b, err);

	if (r < 0)
		return r;

	AUTO(policy_unref) struct policy *p = xnew(struct policy);

	p->refs = 1;
	strv_copy(&p->warnings, &b->warnings);
	r = fill(b, p, err);
	if (r < 0)
		return r;
	*ret_policy = take_ptr(p);
	return 0;
}
