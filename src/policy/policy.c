/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Life of the immutable policy object, and small questions about it. Built by finish.c only.
 */
#include "policy/policy.h"

#include <string.h>

#include "base/util.h"
#include "policy/net_rule.h"
#include "policy/options.h"

_Static_assert(OPT_COUNT <= 4 * 64, "struct policy has a bit for every option");

const char *const policy_clean_env_keep[] = {"PATH", "HOME", "USER", "TERM", "LANG", NULL};

static const char *const protection_names[PROT_COUNT] = {
	[PROT_FS_REFER] = "fs-refer",
	[PROT_FS_TRUNCATE] = "fs-truncate",
	[PROT_NET_TCP] = "net-tcp",
	[PROT_FS_IOCTL_DEV] = "fs-ioctl-dev",
	[PROT_SIGNAL_SCOPE] = "signal-scope",
	[PROT_ABSTRACT_UNIX_SOCKET_SCOPE] = "abstract-unix-socket-scope",
};

const char *protection_name(enum protection p)
{
	return p < PROT_COUNT ? protection_names[p] : "unknown";
}

bool policy_is_set(const struct policy *p, unsigned int option)
{
	return p->set[option / 64] & ((uint64_t)1 << (option % 64));
}

bool policy_path_is_glob(const char *path)
{
	return strpbrk(path, "*?") != NULL;
}

struct policy *policy_ref(struct policy *p)
{
	if (p)
		__atomic_add_fetch(&p->refs, 1, __ATOMIC_RELAXED);
	return p;
}

static void free_rules(struct net_rules *rules)
{
	for (size_t i = 0; i < rules->n; i++)
		net_rule_done(&rules->v[i]);
	free(rules->v);
}

void policy_unref(struct policy *p)
{
	if (!p || __atomic_sub_fetch(&p->refs, 1, __ATOMIC_ACQ_REL) > 0)
		return;
	strv_done(&p->fs_read);
	strv_done(&p->fs_read_if_exists);
	strv_done(&p->fs_write);
	strv_done(&p->workdirs);
	free(p->fs_storage);
	free(p->exec);
	strv_done(&p->args);
	free(p->cwd);
	strv_done(&p->env);
	free(p->name);
	free(p->ask_save);
	free(p->cpu_cores);
	free_rules(&p->net_allow);
	free_rules(&p->net_deny);
	for (size_t i = 0; i < p->n_net_rates; i++)
		net_rule_done(&p->net_rates[i].rule);
	free(p->net_rates);
	port_set_done(&p->bind_allow);
	port_set_done(&p->bind_deny);
	strv_done(&p->unix_allow);
	strv_done(&p->extra_deny);
	strv_done(&p->extra_allow);
	strv_done(&p->warnings);
	free(p);
}

void policy_unref_cleanup(struct policy **p)
{
	policy_unref(*p);
}
