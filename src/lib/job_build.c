/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lays out the job: everything that guardian and child will need, in one mapping, before either
 * exists. Nothing of it is changed by the host afterwards.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <netinet/in.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/err.h"
#include "base/util.h"
#include "confine/job.h"
#include "confine/layers.h"
#include "lib/call_reason.h"
#include "lib/launch.h"
#include "lib/workspace.h"
#include "policy/filter.h"
#include "policy/net_table.h"

#define STACK_SIZE   ((size_t)64 * 1024)
#define JOB_SIZE_MIN ((size_t)512 * 1024)

/* The job sits behind the stacks; what follows it is handed out by job_alloc. */
struct job_arena {
	struct job job;
	size_t used; /* from the start of the mapping */
};

static struct job_arena *arena_of(struct job *job)
{
	return (struct job_arena *)(void *)job;
}

void *job_alloc(struct job *job, size_t size)
{
	struct job_arena *arena = arena_of(job);
	size = (size + 15) & ~(size_t)15;
	if (size > job->size - arena->used)
		return NULL;
	void *p = (char *)job + arena->used;
	arena->used += size;
	return p;
}

const char *job_strdup(struct job *job, const char *s)
{
	size_t n = strlen(s) + 1;
	char *p = job_alloc(job, n);
	if (p)
		memcpy(p, s, n);
	return p;
}

void job_free(struct job *job)
{
	if (job)
		munmap(job, job->size);
}

static size_t strv_bytes(char *const *v)
{
	size_t bytes = 0;
	for (size_t i = 0; v && v[i]; i++)
		bytes += strlen(v[i]) + 64; /* the copy, its pointers and the rounding */
	return bytes;
}

static size_t port_count(const struct port_set *set)
{
	size_t n = 0;
	for (size_t i = 0; i < set->n; i++)
		n += (size_t)(set->v[i].hi - set->v[i].lo) + 1;
	return n;
}

/*
 * How much this job may need: stacks and filter, and all that is copied into it. Too little would
 * be refused, never overrun; too much costs a host that locks its memory.
 */
static size_t job_size(const struct job_request *req)
{
	const struct policy *p = req->policy;
	char *const *env = req->spawn->envp ? req->spawn->envp : environ;
	size_t bytes = JOB_SIZE_MIN + 2 * (strv_bytes(req->spawn->argv) + strv_bytes(env));
	bytes += 2 * (strv_bytes(p->env.v) + strv_bytes(p->fs_read.v) +
		      strv_bytes(p->fs_read_if_exists.v) + strv_bytes(p->fs_write.v));
	bytes += sizeof(struct job_rule) * (p->fs_read.n + p->fs_read_if_exists.n + p->fs_write.n);
	/* A layer has two paths, and a rule of its own. */
	bytes += p->workdirs.n * (2 * (size_t)PATH_MAX + sizeof(struct job_rule) +
				  sizeof(struct job_layer)) +
		 4 * (size_t)PATH_MAX;
	size_t ports = port_count(&p->bind_allow);
	for (size_t i = 0; i < p->net_allow.n; i++)
		ports += port_count(&p->net_allow.v[i].ports);
	bytes += ports * sizeof(struct uapi_landlock_net_port_attr);
	/* One candidate per directory of PATH, which is one of the variables counted above. */
	size_t dirs = 1;
	for (size_t i = 0; env && env[i]; i++) {
		for (const char *c = str_starts(env[i], "PATH=") ? env[i] : ""; *c; c++)
			dirs += *c == ':';
	}
	for (size_t i = 0; i < p->env.n; i++) {
		for (const char *c = str_starts(p->env.v[i], "PATH=") ? p->env.v[i] : ""; *c; c++)
			dirs += *c == ':';
	}
	bytes += dirs * (strlen(req->spawn->argv[0]) + 64);
	return (bytes + 4095) & ~(size_t)4095;
}

/*
 * A memfd for the job. The file-size limit counts for it (setrlimit(2)): it is kept to, since
 * passing it would raise SIGXFSZ in the caller.
 */
static int job_file(size_t *size)
{
	struct rlimit lim;
	if (getrlimit(RLIMIT_FSIZE, &lim) == 0 && lim.rlim_cur < *size)
		*size = (size_t)lim.rlim_cur & ~(size_t)4095;
	if (*size < JOB_SIZE_MIN)
		return -EFBIG;
	int fd = memfd_create("sandlock-job", MFD_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (ftruncate(fd, (off_t)*size) < 0) {
		int code = errno;
		close(fd);
		return -code;
	}
	return fd;
}

/*
 * The mapping begins with the job itself, so that its address is the mapping's. A guardian with its
 * own address space gets it through a memfd, mapped at the same address; the hint keeps that
 * address away from where the kernel puts stacks and libraries.
 */
static int job_new(bool shared_file, bool separate_vm, size_t size, struct job **ret_job)
{
	int memfd = shared_file ? job_file(&size) : -1;
	if (shared_file && memfd < 0)
		return memfd;
	uintptr_t hint = (uintptr_t)0x200000000000;
	void *p = mmap((void *)hint, size, PROT_READ | PROT_WRITE,
		       MAP_NORESERVE | (separate_vm || shared_file ? MAP_SHARED : MAP_PRIVATE) |
			       (shared_file ? 0 : MAP_ANONYMOUS),
		       memfd, 0);
	if (p == MAP_FAILED || !p) {
		int code = errno;
		util_close(memfd);
		return -code;
	}
	struct job_arena *arena = p;
	struct job *job = &arena->job;
	job->size = size;
	job->memfd = memfd;
	arena->used = (sizeof(*arena) + 4095) & ~(size_t)4095;
	char *stacks = (char *)p + arena->used;
	arena->used += STACK_SIZE * 3;
	job->keeper_stack = stacks + STACK_SIZE;
	job->guardian_stack = stacks + STACK_SIZE * 2;
	job->child_stack = stacks + STACK_SIZE * 3;
	for (int i = 0; i < 3; i++)
		job->stdio[i] = -1;
	job->null_fd = job->ctl = job->host_pidfd = job->lock_fd = job->tmp_fd = -1;
	job->layer_lock = -1;
	job->place_fd = -1;
	job->exec_pipe = job->entry.top_fd = job->state.listener = -1;
	*ret_job = job;
	return 0;
}

static char **job_strv(struct job *job, char *const *v, size_t n, size_t extra)
{
	char **copy = job_alloc(job, (n + extra + 1) * sizeof(char *));
	for (size_t i = 0; copy && i < n; i++) {
		const char *s = job_strdup(job, v[i]);
		if (!s)
			return NULL;
		copy[extra + i] = (char *)(uintptr_t)s;
	}
	return copy;
}

static size_t strv_len(char *const *v)
{
	size_t n = 0;
	while (v && v[n])
		n++;
	return n;
}

/* --- Environment ------------------------------------------------------------------------------ */

static void env_put(struct strv *env, const char *pair)
{
	size_t n = strcspn(pair, "=");
	for (size_t i = 0; i < env->n; i++) {
		if (strncmp(env->v[i], pair, n) == 0 && (env->v[i][n] == '=')) {
			free(env->v[i]);
			env->v[i] = xstrdup(pair);
			return;
		}
	}
	strv_add(env, pair);
}

static const char *env_get(const struct strv *env, const char *name)
{
	size_t n = strlen(name);
	for (size_t i = 0; i < env->n; i++) {
		if (strncmp(env->v[i], name, n) == 0 && env->v[i][n] == '=')
			return env->v[i] + n + 1;
	}
	return NULL;
}

static bool kept_when_clean(const char *pair)
{
	size_t n = strcspn(pair, "=");
	for (size_t i = 0; policy_clean_env_keep[i]; i++) {
		const char *name = policy_clean_env_keep[i];
		if (strlen(name) == n && strncmp(pair, name, n) == 0)
			return true;
	}
	return false;
}

static void make_env(const struct job_request *req, struct strv *env)
{
	char *const *base = req->spawn->envp ? req->spawn->envp : environ;
	for (size_t i = 0; base && base[i]; i++) {
		if (!req->policy->clean_env || kept_when_clean(base[i]))
			strv_add(env, base[i]);
	}
	if (req->policy->clean_env && !env_get(env, "PATH"))
		strv_add(env, "PATH=/usr/local/bin:/usr/bin:/bin");
	for (size_t i = 0; i < req->policy->env.n; i++)
		env_put(env, req->policy->env.v[i]);
	/* Last, so that the guardian can take it off again (drop_tmpdir). */
	if (req->tmp_name) {
		auto_free char *pair = xasprintf("TMPDIR=/tmp/%s", req->tmp_name);
		strv_add(env, pair);
	}
}

/* --- Command ---------------------------------------------------------------------------------- */

static int plan_candidates(struct job *job, const char *file, const char *path)
{
	struct strv list = {0};
	if (strchr(file, '/')) {
		strv_add(&list, file);
	} else {
		for (const char *p = path; *file; p++) {
			size_t n = strcspn(p, ":");
			strv_add_take(&list, n ? xasprintf("%.*s/%s", (int)n, p, file)
					       : xasprintf("./%s", file));
			p += n;
			if (!*p)
				break;
		}
	}
	job->candidates = (const char *const *)job_strv(job, list.v, list.n, 0);
	strv_done(&list);
	return job->candidates ? 0 : -E2BIG;
}

static int plan_command(struct job_request *req, struct job *job)
{
	size_t argc = strv_len(req->spawn->argv);
	struct strv env = {0};
	make_env(req, &env);
	const char *path = env_get(&env, "PATH");
	int r = plan_candidates(job, req->spawn->argv[0],
				path ? path : "/usr/local/bin:/usr/bin:/bin");
	job->argv = job_strv(job, req->spawn->argv, argc, 0);
	char **envp = job_strv(job, env.v, env.n, 0);
	job->envp = envp;
	if (envp && req->tmp_name)
		job->tmp_env = &envp[env.n - 1];
	/* "sh", script, then the arguments behind argv[0]. */
	job->shell_argv = job_strv(job, req->spawn->argv + 1, argc - 1, 2);
	job->shell = job_strdup(job, "/bin/sh");
	strv_done(&env);
	return r < 0 || !job->argv || !job->envp || !job->shell_argv || !job->shell ? -E2BIG : 0;
}

static int plan_cwd(struct job_request *req, struct job *job, struct sandlock_error *err)
{
	char buf[PATH_MAX];
	if (req->policy->cwd) {
		job->cwd = job_strdup(job, req->policy->cwd);
	} else if (req->workspace) {
		job->cwd = job_strdup(job, workspace_cwd(req->workspace));
	} else if (req->rung == RUNG_BASE) {
		bool named = getcwd(buf, sizeof(buf)) && buf[0] == '/';
		job->cwd = job_strdup(job, named ? buf : "/");
		job->cwd_optional = true;
	} else {
		return 0;
	}
	return job->cwd ? 0 : api_fail(err, SANDLOCK_E_LIMIT, E2BIG, "The policy is too large");
}

/* --- Descriptors ------------------------------------------------------------------------------ */

/*
 * A socket as a standard stream must be a connected stream of a protocol that cannot be pointed
 * elsewhere unseen: a datagram names its target on each call, an unconnected socket by connect, a
 * listener by accept, and MPTCP disconnects and connects past Landlock (tried).
 */
static bool is_safe_socket(int fd)
{
	int family = 0;
	int type = 0;
	int proto = 0;
	socklen_t size = sizeof(int);
	struct sockaddr_storage peer;
	socklen_t peer_size = sizeof(peer);
	if (getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &family, &size) < 0 ||
	    getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) < 0 ||
	    getsockopt(fd, SOL_SOCKET, SO_PROTOCOL, &proto, &size) < 0 ||
	    getpeername(fd, (struct sockaddr *)&peer, &peer_size) < 0)
		return false;
	if (family == AF_UNIX)
		return type == SOCK_STREAM || type == SOCK_SEQPACKET;
	return (family == AF_INET || family == AF_INET6) && type == SOCK_STREAM &&
	       proto == IPPROTO_TCP;
}

static int check_socket(int fd, const char *name, struct sandlock_error *err)
{
	if (is_safe_socket(fd))
		return 0;
	return api_fail(
		err, SANDLOCK_E_INVALID, ENOTCONN,
		"Standard %s is a socket that is no connected TCP or Unix stream, which could be "
		"sent or connected anywhere: pass a pipe or a connected stream socket",
		name);
}

static int plan_stdio(struct job_request *req, struct job *job, struct sandlock_error *err)
{
	static const char *const names[] = {"input", "output", "error"};
	bool need_null = false;
	for (int i = 0; i < 3; i++) {
		int fd = req->spawn->fds[i];
		struct stat st;
		if (fd < 0 || (req->spawn->flags & SANDLOCK_SPAWN_PTY)) {
			need_null = true;
			continue;
		}
		if (fstat(fd, &st) < 0)
			return api_fail(err, SANDLOCK_E_INVALID, errno,
					"Descriptor %d, meant as standard %s, is not open", fd,
					names[i]);
		if (S_ISDIR(st.st_mode))
			return api_fail(
				err, SANDLOCK_E_INVALID, ENOTDIR,
				"Standard %s is a directory, which would lead round every rule: "
				"redirect it elsewhere and grant the directory with -r or -w",
				names[i]);
		if (S_ISSOCK(st.st_mode)) {
			int r = check_socket(fd, names[i], err);
			if (r < 0)
				return r;
		}
		job->stdio[i] = fd;
	}
	if (need_null) {
		job->null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
		if (job->null_fd < 0)
			return api_fail(err, SANDLOCK_E_PERMISSION, errno,
					"Cannot open /dev/null for an unused standard stream: %s",
					strerror(errno));
	}
	return 0;
}

/* --- Process settings ------------------------------------------------------------------------- */

/* The CPUs that this process may use; a kernel of any size fits (sched_setaffinity(2)). */
static bool may_use_core(uint32_t core)
{
	unsigned long mask[1024] = {0};
	size_t bits = 8 * sizeof(unsigned long);
	long n = syscall(SYS_sched_getaffinity, 0, sizeof(mask), mask);
	return n > 0 && core < (size_t)n * 8 && (mask[core / bits] >> (core % bits) & 1);
}

static int plan_cores(const struct policy *p, struct job *job, struct sandlock_error *err)
{
	if (!p->n_cpu_cores)
		return 0;
	uint32_t top = 0;
	for (size_t i = 0; i < p->n_cpu_cores; i++) {
		if (!may_use_core(p->cpu_cores[i]))
			return api_fail(err, SANDLOCK_E_INVALID, EINVAL,
					"Core %u of --cpu-cores is none that this process may use: "
					"\"nproc\" counts them, /proc/self/status lists them as "
					"Cpus_allowed_list",
					p->cpu_cores[i]);
		top = p->cpu_cores[i] > top ? p->cpu_cores[i] : top;
	}
	size_t words = top / (8 * sizeof(unsigned long)) + 1;
	unsigned long *mask = job_alloc(job, words * sizeof(unsigned long));
	if (!mask)
		return api_fail(err, SANDLOCK_E_LIMIT, E2BIG, "The policy is too large");
	for (size_t i = 0; i < p->n_cpu_cores; i++)
		mask[p->cpu_cores[i] / (8 * sizeof(unsigned long))] |=
			1UL << (p->cpu_cores[i] % (8 * sizeof(unsigned long)));
	job->cpu_mask = mask;
	job->cpu_mask_bytes = words * sizeof(unsigned long);
	return 0;
}

static int plan_ids(struct job_request *req, struct job *job)
{
	const struct policy *p = req->policy;
	uid_t euid = geteuid();
	gid_t egid = getegid();
	job->as_root = euid == 0;
	job->uid = p->has_user ? p->uid : euid;
	job->gid = p->has_user ? p->gid : egid;
	job->set_ids = job->as_root && p->has_user;
	bool changed = job->uid != euid || job->gid != egid;
	job->map_ids = !job->as_root && (req->rung == RUNG_BASE || changed);
	if (!job->map_ids)
		return 0;
	char text[64];
	snprintf(text, sizeof(text), "%u %u 1\n", job->uid, euid);
	job->uid_map = job_strdup(job, text);
	snprintf(text, sizeof(text), "%u %u 1\n", job->gid, egid);
	job->gid_map = job_strdup(job, text);
	return job->uid_map && job->gid_map ? 0 : -E2BIG;
}

/*
 * Changing ids and PR_SET_THP_DISABLE change what memory shared with the host carries (prctl(2)):
 * a child that does either has memory of its own, and shares the job alone.
 */
static bool needs_separate_vm(const struct policy *p)
{
	return p->no_huge_pages || (p->has_user && geteuid() == 0);
}

/* Without one it gets no /dev/tty either: where sandlock asks, it must not forge or swallow. */
static bool has_terminal(const struct sandlock_spawn *sp)
{
	bool found = sp->flags & SANDLOCK_SPAWN_PTY;
	for (int i = 0; i < 3; i++)
		found |= sp->fds[i] >= 0 && isatty(sp->fds[i]);
	return found;
}

static int plan_process(struct job_request *req, struct job *job, struct sandlock_error *err)
{
	const struct policy *p = req->policy;
	const struct sandlock_spawn *sp = req->spawn;
	job->supervised = req->rung != RUNG_NONE;
	job->base = req->rung == RUNG_BASE;
	job->in_place = req->in_place;
	job->foreground = sp->flags & SANDLOCK_SPAWN_FOREGROUND;
	job->pty = sp->flags & SANDLOCK_SPAWN_PTY;
	job->report_stops = sp->flags & SANDLOCK_SPAWN_REPORT_STOPS;
	job->new_session = p->net_ask && req->rung != RUNG_NONE && !has_terminal(sp);
	job->pty_rows = sp->pty_rows;
	job->pty_cols = sp->pty_cols;
	job->no_core = p->no_coredump;
	job->no_thp = p->no_huge_pages;
	job->no_aslr = p->no_randomize_memory;
	job->max_open_files = p->max_open_files;
	job->timeout_ns = (int64_t)p->timeout_ms * 1000000;
	job->host_pid = getpid();
	int r = plan_ids(req, job);
	job->separate_vm = needs_separate_vm(p);
	if (r == 0 && p->name && job->base) {
		job->hostname = job_strdup(job, p->name);
		r = job->hostname ? 0 : -E2BIG;
	}
	if (r < 0)
		return api_fail(err, SANDLOCK_E_LIMIT, E2BIG, "The policy is too large");
	return plan_cores(p, job, err);
}

static int plan_filter(struct job_request *req, struct job *job, struct sandlock_error *err)
{
	const struct policy *p = req->policy;
	bool base = req->rung == RUNG_BASE;
	struct filter_spec spec = {
		.arch = filter_native_arch(),
		.notify = req->mediation.notify,
		.own_uid = job->uid,
		.own_gid = job->gid,
		.allow_metadata = base || p->allow_metadata,
		.own_pid_namespace = base,
		.allow_unix_sockets = p->unix_allow_all,
		.allow_listen = net_policy_has_bind(p),
		.allow_udp = req->mediation.udp,
		.allow_ping = req->mediation.ping,
		.own_ipc_namespace = base,
		.allow_listener = req->rung == RUNG_NONE,
		.extra_deny = &p->extra_deny,
		.extra_allow = &p->extra_allow,
		.explain = p->explain,
	};
	struct filter_program prog = {0};
	struct err e = {0};
	if (filter_check_names(&p->extra_allow, &p->extra_deny, base, &e) < 0 ||
	    filter_build(&spec, &prog, &e) < 0)
		return api_fail(err, SANDLOCK_E_INVALID, e.code, "%s", e.msg);
	size_t bytes = prog.n * sizeof(*prog.insns);
	job->filter = job_alloc(job, bytes);
	if (job->filter)
		memcpy(job->filter, prog.insns, bytes);
	job->n_filter = (uint16_t)prog.n;
	job->notify = req->mediation.notify != 0;
	req->filter_spec = spec;
	filter_program_done(&prog);
	return job->filter ? 0 : api_fail(err, SANDLOCK_E_LIMIT, E2BIG, "The policy is too large");
}

/* The name is the host's, or the beginning of one that the guardian ends with a number. */
static void plan_entry(const struct registry_entry *from, struct job *job)
{
	size_t n = strlen(from->name);
	job->entry.top_name = job_strdup(job, from->top_name);
	job->entry.name = job_alloc(job, n + ENTRY_DIGITS);
	if (!job->entry.name || !job->entry.top_name)
		return;
	job->entry.top_fd = from->top_fd;
	memcpy(job->entry.name, from->name, n);
	if (from->lock_fd < 0)
		job->entry.digits = job->entry.name + n;
}

int job_build(struct job_request *req, struct job **ret_job, struct sandlock_error *err)
{
	struct job *job = NULL;
	int r = job_new(req->rung == RUNG_PLAIN, needs_separate_vm(req->policy), job_size(req),
			&job);
	if (r < 0 || !job)
		return call_fail(err, "Cannot map memory for the sandbox",
				 req->rung == RUNG_PLAIN ? "memfd_create or mmap" : "mmap", 0, -r);
	r = plan_stdio(req, job, err);
	if (r == 0)
		r = plan_process(req, job, err);
	if (r == 0 && plan_command(req, job) < 0)
		r = api_fail(err, SANDLOCK_E_LIMIT, E2BIG,
			     "The command line and environment are too large");
	if (r == 0)
		r = plan_cwd(req, job, err);
	if (r == 0)
		r = job_plan_landlock(req, job, err);
	if (r == 0)
		job_plan_copies(req, job);
	if (r == 0)
		r = job_plan_rules(req, job, err);
	if (r == 0)
		r = plan_filter(req, job, err);
	if (r < 0) {
		util_close(job->memfd);
		util_close(job->null_fd);
		job_free(job);
		return r;
	}
	job->tmp_fd = req->tmp_fd;
	if (req->tmp_name)
		job->tmp_name = job_strdup(job, req->tmp_name);
	job->place_fd = req->place_fd;
	if (req->place_name) {
		auto_free char *shm = xasprintf("%s/shm", req->place_name);
		job->place_name = job_strdup(job, req->place_name);
		job->place_shm = job_strdup(job, shm);
	}
	job->lock_fd = req->registry.lock_fd;
	if (req->registry.name)
		plan_entry(&req->registry, job);
	*ret_job = job;
	return 0;
}
