/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Landlock's part of a job: which rights, scopes and ports the ruleset handles on this kernel. Each
 * protection is strict unless waived: missing means a start error that names it.
 */
#include <errno.h>
#include <string.h>

#include "base/buf.h"
#include "base/util.h"
#include "confine/job.h"
#include "lib/call_reason.h"
#include "lib/launch.h"
#include "policy/net_table.h"

static const struct {
	int abi;
	uint64_t fs;
	uint64_t net;
	uint64_t scope;
} prot_rights[PROT_COUNT] = {
	/* clang-format off */
	[PROT_FS_REFER]                   = {2, LANDLOCK_ACCESS_FS_REFER, 0, 0},
	[PROT_FS_TRUNCATE]                = {3, LANDLOCK_ACCESS_FS_TRUNCATE, 0, 0},
	[PROT_NET_TCP]                    = {4, 0, LANDLOCK_ACCESS_NET_BIND_TCP |
	                                           LANDLOCK_ACCESS_NET_CONNECT_TCP, 0},
	[PROT_FS_IOCTL_DEV]               = {5, LANDLOCK_ACCESS_FS_IOCTL_DEV, 0, 0},
	[PROT_SIGNAL_SCOPE]               = {6, 0, 0, LANDLOCK_SCOPE_SIGNAL},
	[PROT_ABSTRACT_UNIX_SOCKET_SCOPE] = {6, 0, 0, LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET},
	/* clang-format on */
};

static int no_landlock(const struct landlock_caps *caps, struct sandlock_error *err)
{
	struct call_place place;
	call_place_init(&place);
	struct call_reason reason = call_judge_landlock(&place, caps->error);
	return api_fail(err, SANDLOCK_E_UNSUPPORTED, caps->error,
			"Landlock is not available here: %s: %s; nothing was started",
			strerror(caps->error), reason.why);
}

static bool kernel_has(const struct landlock_caps *caps, enum protection p)
{
	return (caps->fs & prot_rights[p].fs) == prot_rights[p].fs &&
	       (caps->net & prot_rights[p].net) == prot_rights[p].net &&
	       (caps->scopes & prot_rights[p].scope) == prot_rights[p].scope;
}

/* Names the first one that is missing, and all the waivers that this kernel would need. */
static int refuse_protection(const struct job_request *req, enum protection p,
			     struct sandlock_error *err)
{
	const struct landlock_caps *caps = req->caps;
	AUTO(buf_done) struct buf waivers = BUF_INIT(1024);
	size_t n = 0;
	for (size_t i = 0; i < PROT_COUNT; i++) {
		if (req->policy->prot[i] != PROT_STRICT || kernel_has(caps, (enum protection)i))
			continue;
		buf_printf(&waivers, " --allow-degraded %s", protection_name((enum protection)i));
		n++;
	}
	return api_fail(err, SANDLOCK_E_UNSUPPORTED, EOPNOTSUPP,
			"Protection %s needs Landlock ABI %d, and this kernel %s %d: "
			"use a newer kernel, or go without %s by%s",
			protection_name(p), prot_rights[p].abi,
			caps->abi >= prot_rights[p].abi ? "refuses it in spite of ABI" : "has ABI",
			caps->abi, n > 1 ? "all that is missing" : "it", buf_text(&waivers));
}

static int plan_protection(struct job_request *req, struct job *job, enum protection p,
			   struct sandlock_error *err)
{
	const struct landlock_caps *caps = req->caps;
	enum protection_state state = req->policy->prot[p];
	if (state == PROT_DISABLED)
		return 0;
	if (kernel_has(caps, p)) {
		job->ruleset.handled_access_fs |= prot_rights[p].fs;
		job->ruleset.handled_access_net |= prot_rights[p].net;
		job->ruleset.scoped |= prot_rights[p].scope;
		return 0;
	}
	if (state == PROT_STRICT)
		return refuse_protection(req, p, err);
	warn_add(req->warnings,
		 "protection %s is not available on this kernel (Landlock ABI %d, needs %d): "
		 "running without it, as --allow-degraded allows",
		 protection_name(p), caps->abi, prot_rights[p].abi);
	return 0;
}

static int add_port(struct job *job, size_t *n, uint64_t access, uint64_t port)
{
	struct uapi_landlock_net_port_attr *a = job_alloc(job, sizeof(*a));
	if (!a)
		return -E2BIG;
	a->allowed_access = access;
	a->port = port;
	if (!job->ports)
		job->ports = a;
	(*n)++;
	return 0;
}

/* Ports of SET that are not of EXCEPT. */
static int add_set(struct job *job, size_t *n, uint64_t access, const struct port_set *set,
		   const struct port_set *except)
{
	for (size_t i = 0; i < set->n && !set->any; i++) {
		for (uint32_t port = set->v[i].lo; port <= set->v[i].hi; port++) {
			if (port_set_has(except, (uint16_t)port))
				continue;
			int r = add_port(job, n, access, port);
			if (r < 0)
				return r;
		}
	}
	return 0;
}

/* Consecutive allocations of one size make an array: sizes are multiples of the alignment. */
_Static_assert(sizeof(struct uapi_landlock_net_port_attr) == 16, "ports are laid out as an array");

/*
 * Where ports alone decide about connections; else the supervisor makes them, and there is nothing
 * that the kernel may let through by itself.
 */
static int plan_connect(const struct policy *p, struct job *job, size_t *n)
{
	static const struct port_set none = {0};
	int r = 0;
	for (size_t i = 0; r == 0 && net_policy_tcp_by_port(p) && i < p->net_allow.n; i++) {
		const struct net_rule *rule = &p->net_allow.v[i];
		if (!(rule->protos & NET_TCP))
			continue;
		if (rule->ports.any)
			job->ruleset.handled_access_net &= ~LANDLOCK_ACCESS_NET_CONNECT_TCP;
		r = add_set(job, n, LANDLOCK_ACCESS_NET_CONNECT_TCP, &rule->ports, &none);
	}
	return r;
}

static int plan_ports(struct job_request *req, struct job *job)
{
	const struct policy *p = req->policy;
	size_t n = 0;
	if (net_policy_bind_open(p))
		job->ruleset.handled_access_net &= ~LANDLOCK_ACCESS_NET_BIND_TCP;
	int r = add_set(job, &n, LANDLOCK_ACCESS_NET_BIND_TCP, &p->bind_allow, &p->bind_deny);
	if (r == 0)
		r = plan_connect(p, job, &n);
	job->n_ports = n;
	return r;
}

int job_plan_landlock(struct job_request *req, struct job *job, struct sandlock_error *err)
{
	const struct landlock_caps *caps = req->caps;
	if (!caps->abi)
		return no_landlock(caps, err);
	if ((caps->fs & LANDLOCK_FS_ABI1) != LANDLOCK_FS_ABI1)
		return api_fail(
			err, SANDLOCK_E_UNSUPPORTED, EOPNOTSUPP,
			"This kernel reports Landlock ABI %d, but refuses its file rights: nothing "
			"was started",
			caps->abi);
	uint64_t waivable = 0;
	for (size_t i = 0; i < PROT_COUNT; i++)
		waivable |= prot_rights[i].fs;
	job->ruleset.handled_access_fs = caps->fs & ~waivable;
	for (size_t i = 0; i < PROT_COUNT; i++) {
		int r = plan_protection(req, job, (enum protection)i, err);
		if (r < 0)
			return r;
	}
	job->file_rights = LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_WRITE_FILE |
			   LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_TRUNCATE |
			   LANDLOCK_ACCESS_FS_IOCTL_DEV | LANDLOCK_ACCESS_FS_RESOLVE_UNIX;
	if (req->rung == RUNG_PLAIN) {
		if (!(job->ruleset.scoped & LANDLOCK_SCOPE_SIGNAL))
			return api_fail(err, SANDLOCK_E_UNSUPPORTED, EOPNOTSUPP,
					"Without namespaces the whole process tree can only be "
					"ended through "
					"Landlock's signal scope (ABI 6; here: %d), which is "
					"missing or waived: "
					"allow user namespaces, or use --no-supervisor",
					caps->abi);
		job->guardian_scope = LANDLOCK_SCOPE_SIGNAL;
	}
	if (plan_ports(req, job) < 0)
		return api_fail(err, SANDLOCK_E_LIMIT, E2BIG,
				"The policy's port rules are too many");
	return 0;
}
