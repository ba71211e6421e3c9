/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From a policy and a place to what is mediated there, and from a started sandbox to a box in a
 * loop. What an outer filter takes away from the supervisor is found out before anything is
 * started, by calls that fail one way where they are barred and another where they are not.
 */
#include "lib/supervision.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/util.h"
#include "confine/job.h"
#include "lib/call_reason.h"
#include "lib/loop_thread.h"
#include "lib/name_service.h"
#include "lib/relay_service.h"
#include "lib/workspace.h"
#include "net/ports.h"
#include "policy/filter.h"
#include "policy/net_table.h"
#include "supervise/ask.h"
#include "supervise/grants.h"
#include "supervise/places.h"
#include "supervise/sock.h"
#include "supervise/supervisor.h"
#include "sys/at.h"
#include "sys/uapi.h"

#define DRAIN_MS   5000 /* for what is being done for tasks that are dead */
#define UNTOLD_MAX 256	/* distinct events between two waits of the host */

/* --- What is mediated ------------------------------------------------------------------------- */

static bool have_getfd(void)
{
	return syscall(SYS_pidfd_getfd, -1, -1, 0) < 0 && errno == EBADF;
}

static bool have_vm_read(void)
{
	char from = 1;
	char to = 0;
	struct iovec local = {&to, 1};
	struct iovec remote = {&from, 1};
	return process_vm_readv(getpid(), &local, 1, &remote, 1, 0) == 1;
}

static bool have_mem_file(void)
{
	auto_close int fd = open("/proc/self/mem", O_RDONLY | O_CLOEXEC);
	return fd >= 0;
}

/* A call that was received must also be answered. What injects descriptors is younger (5.9). */
static bool have_receive(void)
{
	static const unsigned long requests[] = {SECCOMP_IOCTL_NOTIF_RECV, SECCOMP_IOCTL_NOTIF_SEND,
						 SECCOMP_IOCTL_NOTIF_ID_VALID};
	for (size_t i = 0; i < ARRAY_SIZE(requests); i++) {
		if (ioctl(-1, requests[i], NULL) >= 0 || errno != EBADF)
			return false;
	}
	return true;
}

static bool have_wait(void)
{
	struct epoll_event event;
	return epoll_wait(-1, &event, 1, 0) < 0 && errno == EBADF;
}

/* What the supervisor cannot do without, asked for before anything is started. */
static int check_place(struct mediation *m, struct sandlock_error *err)
{
	m->have_getfd = have_getfd();
	m->have_vm_read = have_vm_read();
	if (!have_receive())
		return api_fail(err, SANDLOCK_E_UNSUPPORTED, EPERM,
				"An outer filter refuses an ioctl by which a supervisor receives "
				"and answers calls: allow it there, or use --no-supervisor");
	if (!have_wait())
		return api_fail(
			err, SANDLOCK_E_UNSUPPORTED, EPERM,
			"An outer filter refuses epoll_wait, on which a supervisor waits for "
			"calls: allow it there, or use --no-supervisor");
	if (!m->have_vm_read && !have_mem_file())
		return api_fail(err, SANDLOCK_E_UNSUPPORTED, EPERM,
				"A supervisor must read what its sandbox passes to calls, and both "
				"process_vm_readv and /proc/PID/mem are refused here: allow one of "
				"them, or use --no-supervisor");
	return 0;
}

static bool has_other_groups(void)
{
	gid_t groups[64];
	int n = getgroups(ARRAY_SIZE(groups), groups);
	if (n < 0)
		return true; /* more than fit */
	for (int i = 0; i < n; i++) {
		if (groups[i] != getegid())
			return true;
	}
	return false;
}

static bool below(const char *path, const char *dir)
{
	size_t n = strlen(dir);
	if (n == 1)
		return true;
	return strncmp(path, dir, n) == 0 && (path[n] == '\0' || path[n] == '/');
}

/* A file of a workdir that was inherited is the host's own, past the layer. */
static bool in_write_grant(const struct job_request *req, const char *path)
{
	const struct policy *p = req->policy;
	if (workspace_covers(req->workspace, path))
		return false;
	for (size_t i = 0; i < p->fs_write.n; i++) {
		auto_free char *real = realpath(p->fs_write.v[i], NULL);
		if (real && below(path, real))
			return true;
	}
	return false;
}

/* Regular files as standard streams lie on the host's mounts, which are writable. */
static void find_inherited(const struct job_request *req, struct mediation *m)
{
	if (req->spawn->flags & SANDLOCK_SPAWN_PTY)
		return;
	for (int i = 0; i < 3; i++) {
		char link[40];
		char path[PATH_MAX];
		struct stat st;
		int fd = req->spawn->fds[i];
		if (fd < 0 || fstat(fd, &st) < 0 || S_ISFIFO(st.st_mode) || S_ISSOCK(st.st_mode) ||
		    S_ISCHR(st.st_mode))
			continue;
		snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
		ssize_t n = readlink(link, path, sizeof(path) - 1);
		if (n > 0) {
			path[n] = '\0';
			if (in_write_grant(req, path))
				continue;
		}
		m->inherited[m->n_inherited].dev = st.st_dev;
		m->inherited[m->n_inherited].ino = st.st_ino;
		m->n_inherited++;
	}
}

/*
 * ping asks a UDP socket for its source address: so a rule for ICMP opens these as well, which then
 * reach nothing.
 */
static void plan_network(struct job_request *req)
{
	const struct policy *p = req->policy;
	struct mediation *m = &req->mediation;
	m->ping = net_policy_has(p, NET_ICMP);
	m->udp = net_policy_has(p, NET_UDP) || net_policy_has_names(p) || m->ping || p->net_ask;
	if (m->udp && !m->have_getfd) {
		warn_add(req->warnings,
			 "UDP and ping are refused here, although rules allow them: an "
			 "outer filter bars pidfd_getfd, which they need");
		m->udp = m->ping = false;
	}
	if (net_policy_has_names(p))
		m->notify |= FILTER_NOTIFY_RECV | FILTER_NOTIFY_OPEN;
	if ((m->udp || p->bind_allow.any) && !net_policy_bind_open(p))
		m->notify |= FILTER_NOTIFY_BIND;
	if (net_policy_limits(p))
		m->notify |= FILTER_NOTIFY_PEERNAME;
	if (p->port_remap)
		m->notify |= FILTER_NOTIFY_BIND | FILTER_NOTIFY_PEERNAME |
			     (m->udp ? FILTER_NOTIFY_RECV : 0);
}

int supervision_plan(struct job_request *req, struct sandlock_error *err)
{
	const struct policy *p = req->policy;
	struct mediation *m = &req->mediation;
	bool base = req->rung == RUNG_BASE;
	memset(m, 0, sizeof(*m));
	if (req->rung == RUNG_NONE)
		return 0;
	int r = check_place(m, err);
	if (r < 0)
		return r;
	m->notify = FILTER_NOTIFY_SOCKETS | FILTER_NOTIFY_LOCK | FILTER_NOTIFY_WATCH |
		    FILTER_NOTIFY_NETLINK;
	plan_network(req);
	if (!m->have_getfd)
		m->notify |= FILTER_NOTIFY_SOCKET_CREATE;
	if (base && !p->allow_metadata)
		find_inherited(req, m);
	if (!p->allow_metadata && (!base || m->n_inherited))
		m->notify |= FILTER_NOTIFY_METADATA;
	if (base && geteuid() != 0 && has_other_groups())
		m->notify |= FILTER_NOTIFY_CHOWN;
	/* readlink and stat stay the kernel's: they read no contents (SECURITY.md). */
	if (!base)
		m->notify |= FILTER_NOTIFY_OPEN | FILTER_NOTIFY_NAMES | FILTER_NOTIFY_TUNE;
	if (base && (p->fs_write.n > 1 || req->workspace))
		m->notify |= FILTER_NOTIFY_LINK;
	return 0;
}

/* --- Grants ----------------------------------------------------------------------------------- */

static unsigned int rights_of(const struct job_rule *rule)
{
	if (rule->own_only)
		return GRANT_DEVICE;
	if (rule->full)
		return GRANT_READ | GRANT_WRITE;
	return GRANT_READ | (rule->device ? GRANT_DEVICE : 0);
}

/*
 * Opens PATH as the rule does, and says whether its text is already the object's own name: no link
 * lies in it.
 */
static int open_rule_path(const char *path, bool *ret_direct)
{
	int fd = at_open(AT_FDCWD, path, 0, RESOLVE_NO_SYMLINKS);
	*ret_direct = fd >= 0;
	return fd >= 0 || fd == -ENOENT ? fd : at_open(AT_FDCWD, path, 0, 0);
}

/* Whether the file system of FOUND[N] answers at once; most grants lie on one that is known. */
static bool is_quick(const struct grant *found, size_t n, int fd)
{
	for (size_t i = 0; i < n; i++) {
		if (found[i].mnt && found[i].mnt == found[n].mnt)
			return found[i].quick;
	}
	return !at_is_slow(fd);
}

/* The rule's object and canonical name, as they are in this process's view. */
static void find_grant(const struct job_rule *rule, struct grant *found, size_t n)
{
	struct grant *ret = &found[n];
	char path[PATH_MAX];
	struct at_info info;
	bool direct = false;
	ret->rights = rights_of(rule);
	ret->fd = -1;
	/* Of a private mount, where nothing can be looked at from here, or a standard device. */
	bool device = rule->own_only && !str_starts(rule->path, "/proc/");
	if (rule->late || rule->into_shm || device) {
		ret->path = xstrdup(rule->path);
		ret->is_dir = !device;
		return;
	}
	auto_close int fd = open_rule_path(rule->path, &direct);
	if (fd < 0 || at_info(fd, &info) < 0)
		return;
	if (!direct && (at_name(fd, path, sizeof(path)) <= 0 || path[0] != '/'))
		return;
	ret->path = xstrdup(direct ? rule->path : path);
	ret->is_dir = S_ISDIR(info.mode);
	ret->dev = info.dev;
	ret->ino = info.ino;
	ret->mnt = info.mnt;
	ret->quick = is_quick(found, n, fd);
	if (ret->rights & GRANT_WRITE)
		ret->fd = take_fd(&fd);
}

void supervision_prepare(struct job_request *req, struct sandlock_process *p)
{
	const struct job *job = p->job;
	if (!req->mediation.notify)
		return;
	p->found = xcalloc(job->n_rules + 1, sizeof(*p->found));
	p->n_found = job->n_rules;
	p->socks = sock_table_new(req->policy);
	for (size_t i = 0; i < job->n_rules; i++)
		find_grant(&job->rules[i], p->found, i);
}

/* What the child made its rule of must be what was found here, or it counts for nothing here. */
static void add_grants(const struct job *job, struct sandlock_process *p, struct box *box)
{
	for (size_t i = 0; i < p->n_found; i++) {
		struct grant *found = &p->found[i];
		const struct job_rule *rule = &job->rules[i];
		bool same = !found->ino ||
			    (found->ino == rule->rule_ino && found->dev == rule->rule_dev);
		if (found->path && same && !rule->missing)
			grants_add_take(&box->grants, found);
	}
}

static void free_found(struct sandlock_process *p)
{
	for (size_t i = 0; i < p->n_found; i++) {
		free(p->found[i].path);
		util_close(p->found[i].fd);
	}
	free(p->found);
	p->found = NULL;
	p->n_found = 0;
	sock_table_free(take_ptr(p->socks));
}

/* --- Serving ---------------------------------------------------------------------------------- */

static void on_box_event(void *data, const struct event *event)
{
	struct sandlock_process *p = data;
	struct event copy = *event;
	supervision_event(p, &copy, event->error != 0);
}

/* What the filter would be without --explain, and what else --allow-metadata would open. */
static void add_filters(const struct job_request *req, struct box *box)
{
	struct filter_spec spec = req->filter_spec;
	box->explain = spec.explain;
	if (!spec.explain)
		return;
	/* Where one of them cannot be made, it has no instructions and so allows nothing. */
	spec.explain = false;
	filter_build(&spec, &box->plain_filter, NULL);
	spec.allow_metadata = true;
	if (!req->filter_spec.allow_metadata)
		filter_build(&spec, &box->open_filter, NULL);
}

static struct box *make_box(struct job_request *req, struct sandlock_process *p, int listener)
{
	const struct mediation *m = &req->mediation;
	const struct job *job = p->job;
	struct box *box = box_new();
	box->policy = policy_ref((struct policy *)(uintptr_t)req->policy);
	box->listener = listener;
	box->base = req->rung == RUNG_BASE;
	box->as_root = job->as_root;
	box->have_getfd = m->have_getfd;
	box->have_vm_read = m->have_vm_read;
	box->guardian_pid = p->guardian_pid;
	box->main_pid = p->child_pid;
	box->uid = job->uid;
	box->gid = job->gid;
	box->host_uid = job->set_ids ? job->uid : geteuid();
	box->host_gid = job->set_ids ? job->gid : getegid();
	box->id_map = job->map_ids;
	box->notify = m->notify;
	name_service_hand_over(req, box);
	box->trap_link = m->notify & FILTER_NOTIFY_LINK;
	const struct workspace_root *roots = NULL;
	size_t n_roots = workspace_roots(req->workspace, &roots);
	for (size_t i = 0; i < n_roots; i++)
		strv_add(&box->layers, roots[i].path);
	box->trap_chown = m->notify & FILTER_NOTIFY_CHOWN;
	for (size_t i = 0; i < m->n_inherited; i++) {
		box->inherited[i].dev = m->inherited[i].dev;
		box->inherited[i].ino = m->inherited[i].ino;
	}
	box->n_inherited = m->n_inherited;
	if (job->tmp_name)
		box->tmpdir = xasprintf("/tmp/%s", job->tmp_name);
	if (job->place_name) {
		auto_free char *dir = xasprintf("%s/%s", req->place_top, req->place_name);
		box->places = places_new(dir);
	}
	add_grants(job, p, box);
	add_filters(req, box);
	box->socks = take_ptr(p->socks);
	if (m->udp && (m->notify & FILTER_NOTIFY_BIND))
		box->guard = sock_guard_new(box->policy);
	if (box->policy->port_remap)
		box->ports = ports_new();
	if (box->policy->net_ask)
		box->ask = ask_new(box->policy->ask_timeout_ms);
	return box;
}

/* The other things that a caller who steps the loop waits for. */
static int on_other(void *data, bool ready)
{
	struct sandlock_process *p = data;
	p->other_ready |= ready;
	return -1;
}

static bool join_loop(struct sandlock_process *p, bool own)
{
	p->sup = own ? supervisor_new() : loop_thread_get();
	p->own_loop = own && p->sup;
	if (!p->own_loop)
		return p->sup;
	p->guests[0] = supervisor_attach(p->sup, p->keeper_pidfd, on_other, p);
	p->guests[1] = supervisor_attach(p->sup, p->ctl, on_other, p);
	return p->guests[0] && p->guests[1];
}

int supervision_start(struct job_request *req, struct sandlock_process *p, int listener,
		      struct sandlock_error *err)
{
	if (!req->mediation.notify) {
		util_close(listener);
		return 0;
	}
	if (listener < 0)
		return api_fail(err, SANDLOCK_E_LIMIT, EMFILE,
				"The supervisor's listener could not be taken over: raise the "
				"open-file limit (ulimit -n)");
	pthread_mutex_init(&p->report.lock, NULL);
	p->report.live = true;
	event_log_init(&p->report.all, EVENT_FOOTER_LINES);
	event_log_init(&p->report.untold, UNTOLD_MAX);
	if (!join_loop(p, req->spawn->flags & SANDLOCK_SPAWN_CALLER_LOOP)) {
		util_close(listener);
		return api_fail(err, SANDLOCK_E_LIMIT, errno,
				"The supervisor's loop cannot be started: %s", strerror(errno));
	}
	struct box *box = make_box(req, p, listener);
	p->ask = ask_ref(box->ask);
	free_found(p);
	box_on_event(box, on_box_event, p);
	int r = relay_service_make(box);
	if (r < 0) {
		box_free(box);
		return api_fail(err, SANDLOCK_E_LIMIT, -r,
				"The limits of the network cannot be enforced: %s", strerror(-r));
	}
	r = supervisor_add_take(p->sup, box);
	if (r < 0)
		return api_fail(err, SANDLOCK_E_LIMIT, -r, "The sandbox cannot be supervised: %s",
				strerror(-r));
	p->box = box;
	r = name_service_start(p, box);
	if (r == 0)
		r = relay_service_start(p, box);
	return r < 0 ? api_fail(err, SANDLOCK_E_LIMIT, -r,
				"The network services of the sandbox cannot be started: %s",
				strerror(-r))
		     : 0;
}

void supervision_stop(struct sandlock_process *p)
{
	for (size_t i = 0; i < ARRAY_SIZE(p->guests); i++) {
		supervisor_detach(p->sup, p->guests[i]);
		p->guests[i] = NULL;
	}
	name_service_stop(p);
	relay_service_stop(p);
	if (p->box && p->workspace) {
		bool idle = supervisor_drain(p->sup, p->box, DRAIN_MS);
		if (!idle || __atomic_load_n(&p->box->torn, __ATOMIC_RELAXED))
			workspace_is_torn(p->workspace);
	}
	if (p->box)
		supervisor_remove(p->sup, p->box);
	p->box = NULL;
}

/* --- Events ----------------------------------------------------------------------------------- */

void supervision_open(struct sandlock_process *p, const struct listener *listener)
{
	p->listener = *listener;
	if (!p->report.live)
		return;
	pthread_mutex_lock(&p->report.lock);
	/* What the sandbox did before its name was known. */
	if (p->listener.fn && !p->own_loop)
		p->report.wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	p->report.open = true;
	pthread_mutex_unlock(&p->report.lock);
}

int sandlock_process_refusals(struct sandlock_process *p, char **ret_text)
{
	AUTO(buf_done) struct buf text = BUF_INIT((size_t)256 * 1024);
	if (p->report.live) {
		pthread_mutex_lock(&p->report.lock);
		event_log_add_footer(&p->report.all, &text);
		pthread_mutex_unlock(&p->report.lock);
	}
	*ret_text = buf_take(&text);
	return 0;
}

void supervision_event(struct sandlock_process *p, struct event *event, bool refusal)
{
	uint64_t one = 1;
	event->time = timestamp_now();
	if (!p->report.live) {
		event->sandbox = p->name;
		notify_event(&p->listener, event);
		return;
	}
	pthread_mutex_lock(&p->report.lock);
	if (refusal)
		event_log_add(&p->report.all, event);
	if (p->listener.fn || !p->report.open) {
		event_log_add(&p->report.untold, event);
		if (p->report.wake_fd >= 0)
			(void)!write(p->report.wake_fd, &one, sizeof(one));
	}
	pthread_mutex_unlock(&p->report.lock);
}

void supervision_tell(struct sandlock_process *p)
{
	struct event_log log;
	uint64_t n = 0;
	if (!p->report.live || !p->listener.fn)
		return;
	pthread_mutex_lock(&p->report.lock);
	log = p->report.untold;
	event_log_init(&p->report.untold, UNTOLD_MAX);
	if (p->report.wake_fd >= 0)
		(void)!read(p->report.wake_fd, &n, sizeof(n));
	pthread_mutex_unlock(&p->report.lock);
	for (size_t i = 0; i < log.n; i++) {
		struct event copy = log.v[i];
		copy.sandbox = p->name;
		notify_event(&p->listener, &copy);
	}
	event_log_done(&log);
}

void supervision_done(struct sandlock_process *p)
{
	supervision_stop(p);
	if (p->own_loop)
		supervisor_free(p->sup);
	p->sup = NULL;
	free_found(p);
	ask_unref(take_ptr(p->ask));
	if (!p->report.live)
		return;
	event_log_done(&p->report.all);
	event_log_done(&p->report.untold);
	util_close(p->report.wake_fd);
	pthread_mutex_destroy(&p->report.lock);
	p->report.live = false;
}
