/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Opening by path without the base. Most opens have nothing to do with /proc, /dev/pts or /dev/shm,
 * and the kernel goes on with them: Landlock is their guard, and it grants nothing of these three,
 * so that a path exchanged meanwhile gains nothing. What does lead there is judged here by the
 * object that the task's path means, and that very object is opened and given to it.
 *
 * The first look is a cheap one and costs most opens two system calls. It may be taken with this
 * process's own /proc/self: only whether the path leads to such a file system counts, and where
 * that could differ (links that jump, names that are not there) the careful walk decides.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/path.h"
#include "base/util.h"
#include "supervise/act.h"
#include "supervise/box.h"
#include "supervise/grants.h"
#include "supervise/handlers/handlers.h"
#include "supervise/handlers/special.h"
#include "supervise/judge.h"
#include "supervise/own.h"
#include "supervise/pending.h"
#include "supervise/places.h"
#include "supervise/resolve.h"
#include "supervise/walk.h"
#include "sys/at.h"

/* --- The call --------------------------------------------------------------------------------- */

static int read_how(struct call *call, struct open_request *ret)
{
	struct open_how how;
	if (call_arg(call, 3) < sizeof(how))
		return -EINVAL;
	int r = call_read(call, call_arg(call, 2), &how, sizeof(how));
	if (r < 0)
		return r;
	ret->flags = how.flags;
	ret->mode = (mode_t)how.mode;
	ret->resolve = how.resolve;
	/* Bounds on the way that a path takes: who sets them means no place of ours. */
	return how.resolve & ~(uint64_t)(RESOLVE_NO_MAGICLINKS | RESOLVE_NO_SYMLINKS) ? -EXDEV : 0;
}

static int read_request(struct call *call, struct open_request *ret)
{
	const char *name = call->row->name;
	unsigned int path = str_starts(name, "openat");
	ret->dirfd = path ? call_int(call, 0) : AT_FDCWD;
	ret->resolve = 0;
	ret->mapped = false;
	ssize_t n = call_read_str(call, call_arg(call, path), ret->text, sizeof(ret->text));
	if (n <= 0)
		return n < 0 ? (int)n : -ENOENT;
	if (str_eq(name, "openat2"))
		return read_how(call, ret);
	bool creat = str_eq(name, "creat");
	ret->flags = creat ? O_CREAT | O_WRONLY | O_TRUNC : (uint32_t)call_int(call, path + 1);
	ret->mode = (mode_t)call_int(call, creat ? 1 : path + 2);
	return 0;
}

/* --- Where it leads --------------------------------------------------------------------------- */

enum lead { LEAD_ELSEWHERE, LEAD_SPECIAL, LEAD_SHM, LEAD_UNKNOWN };

/* The object at the end of TEXT: 0 or a negative errno. */
static int look(int start, const char *text, uint64_t flags, uint64_t resolve, struct at_info *ret)
{
	auto_close int fd = at_open(start, text, flags, resolve);
	return fd < 0 ? fd : at_info(fd, ret);
}

/* A name that is to be made, or whose absence may be due to our own /proc/self. */
static enum lead lead_of_absent(int start, const struct open_request *req, uint64_t cached)
{
	struct at_info info;
	/* Not even a mount was crossed: /proc is one. */
	int r = look(start, req->text, 0, RESOLVE_NO_XDEV | RESOLVE_NO_MAGICLINKS | cached, &info);
	return r == -ENOENT || r == -ENOTDIR ? LEAD_ELSEWHERE : LEAD_SPECIAL;
}

/*
 * A name to be made that the kernel has not in its cache is hardly a link into one of the places:
 * its directory decides. If it is one all the same, what is written there is Landlock's to judge.
 */
static enum lead lead_of_new(const struct call *call, int start, const struct open_request *req)
{
	struct at_info info;
	char parent[PATH_MAX];
	char last[NAME_MAX + 2];
	walk_split(req->text, parent, last);
	int r = look(start, parent, O_DIRECTORY, RESOLVE_NO_SYMLINKS | RESOLVE_CACHED, &info);
	if (r == -ELOOP)
		r = look(start, parent, O_DIRECTORY, RESOLVE_NO_MAGICLINKS | RESOLVE_CACHED, &info);
	if (r < 0)
		return LEAD_UNKNOWN;
	return places_find(call->box->places, &info) ? LEAD_SPECIAL : LEAD_ELSEWHERE;
}

static enum lead lead_of(const struct call *call, int start, const struct open_request *req)
{
	struct at_info info;
	uint64_t cached = call->on_worker ? 0 : RESOLVE_CACHED;
	uint64_t flags = req->flags & O_NOFOLLOW;
	int r = look(start, req->text, flags, RESOLVE_NO_SYMLINKS | cached, &info);
	if (r == -ELOOP && !(req->resolve & RESOLVE_NO_SYMLINKS)) {
		r = look(start, req->text, flags, RESOLVE_NO_MAGICLINKS | cached, &info);
		if (r == -ELOOP)
			return LEAD_SPECIAL;
		if (r == -ENOENT || r == -ENOTDIR)
			return lead_of_absent(start, req, cached);
	}
	if (r == -EAGAIN)
		return req->flags & O_CREAT ? lead_of_new(call, start, req) : LEAD_UNKNOWN;
	if (r < 0)
		return LEAD_ELSEWHERE;
	return places_find(call->box->places, &info) ? LEAD_SPECIAL : LEAD_ELSEWHERE;
}

/* A path relative to a stand-in (START, INFO) is meant relative to the real place. */
static void map_stand_in(const struct call *call, int start, const struct at_info *info,
			 struct open_request *req)
{
	char real[PATH_MAX];
	if (!places_real_name(call->box->places, start, info, real, sizeof(real)))
		return;
	auto_free char *joined = xasprintf("%s/%s", real, req->text);
	if (strlen(joined) >= sizeof(req->text))
		return;
	snprintf(req->text, sizeof(req->text), "%s", joined);
	req->mapped = true;
	req->dirfd = AT_FDCWD;
}

/* RET_REST is set where the answer is LEAD_SHM. */
static enum lead find_lead(struct call *call, struct open_request *req, const char **ret_rest)
{
	struct at_info info = {0};
	bool relative = req->text[0] != '/';
	auto_close int start = relative ? call_fd_path(call, req->dirfd) : AT_FDCWD;
	if (relative && (start < 0 || at_info(start, &info) < 0))
		return LEAD_ELSEWHERE;
	bool from_shm = relative && places_find(call->box->places, &info) == PLACE_SHM;
	*ret_rest = shm_rest(req->text, from_shm);
	if (*ret_rest && !shm_is_granted(call, *ret_rest))
		return LEAD_SHM;
	if (relative)
		map_stand_in(call, start, &info, req);
	return req->mapped ? LEAD_SPECIAL : lead_of(call, start, req);
}

/* --- Serving ---------------------------------------------------------------------------------- */

struct verdict special_reopen(const struct open_request *req, const struct resolved *r)
{
	const uint64_t taken = O_ACCMODE | O_APPEND | O_DIRECT | O_DIRECTORY | O_LARGEFILE |
			       O_NOATIME | O_NONBLOCK | O_SYNC | O_DSYNC | O_TRUNC;
	if ((req->flags & O_NOFOLLOW) && S_ISLNK(r->mode) && !(req->flags & O_PATH))
		return verdict_errno(ELOOP);
	/* The kernel puts no O_PATH descriptor into a task: one for reading takes its place. */
	int flags = (int)(req->flags & taken) | O_CLOEXEC | O_NOCTTY;
	int fd = at_reopen(r->fd, flags);
	return fd < 0 ? verdict_errno(-fd) : verdict_fd(fd, req->flags & O_CLOEXEC);
}

static bool only_reads(const struct open_request *req)
{
	return (req->flags & O_ACCMODE) == O_RDONLY && !(req->flags & O_TRUNC);
}

static struct verdict list(struct call *call, const struct open_request *req, enum place place)
{
	if (!only_reads(req))
		return verdict_errno(EISDIR);
	int fd = places_list(call->box->places, call->box, place);
	return fd < 0 ? verdict_errno(-fd) : verdict_fd(fd, req->flags & O_CLOEXEC);
}

static struct verdict refuse_writing(struct call *call, const struct open_request *req,
				     const struct resolved *r)
{
	return call_refuse(call, &(struct refusal){.op = "open",
						   .object = req->text,
						   .resolved = r->path,
						   .rule = "/proc is for reading",
						   .error = EACCES});
}

/*
 * What a PID or IPC namespace would show of the sandbox alone, and here shows of everybody. A grant
 * of such a name, or of the directory that it lies in, is meant; one of all /proc is not.
 */
static bool is_everybodys(const struct box *box, const char *path)
{
	if (!str_eq(path, "/proc/locks") && !path_is_beneath(path, "/proc/sysvipc"))
		return false;
	const struct grant *grant = grants_find(&box->grants, path, GRANT_READ);
	return !grant || path_is_beneath("/proc", grant->path);
}

static struct verdict refuse_everybodys(struct call *call, const struct open_request *req,
					const struct resolved *r)
{
	AUTO(buf_done) struct buf allow = BUF_INIT(64);
	buf_printf(&allow, "-r %s", r->path);
	return call_refuse(call, &(struct refusal){.op = "open",
						   .object = req->text,
						   .resolved = r->path,
						   .rule = "it shows what other programs have",
						   .allow = buf_text(&allow),
						   .error = EACCES});
}

/* Numbers are processes; all else below /proc is the machine's, as in the base. */
static struct verdict open_proc(struct call *call, const struct open_request *req,
				const struct resolved *r)
{
	char *end;
	if (!str_starts(r->path, "/proc/"))
		return verdict_continue(); /* another procfs: Landlock's */
	pid_t pid = (pid_t)strtol(r->path + strlen("/proc/"), &end, 10);
	bool numbered = end > r->path + strlen("/proc/") && (*end == '/' || *end == '\0');
	/*
	 * Looked at after the object is held: a process that has ended by now cannot be opened any
	 * more, so the number is that of the object's process still.
	 */
	if (numbered && pid != call->tid && !own_process(call->box, pid))
		return verdict_errno(ENOENT);
	if ((req->flags & O_PATH) && !req->mapped)
		return verdict_continue();
	if (is_everybodys(call->box, r->path))
		return refuse_everybodys(call, req, r);
	if (!only_reads(req))
		return grants_find(&call->box->grants, r->path, GRANT_WRITE)
			       ? verdict_continue()
			       : refuse_writing(call, req, r);
	return special_reopen(req, r);
}

static struct verdict open_pts(struct call *call, const struct open_request *req,
			       const struct resolved *r)
{
	char *end;
	const char *name = r->path + strlen("/dev/pts/");
	if (!str_starts(r->path, "/dev/pts/") ||
	    grants_find(&call->box->grants, r->path, GRANT_DEVICE) ||
	    grants_find(&call->box->grants, r->path, GRANT_READ))
		return verdict_continue();
	unsigned long index = strtoul(name, &end, 10);
	if (end == name || *end)
		return verdict_continue();
	if (!own_terminal(call->box, call->tid, (unsigned int)index))
		return verdict_errno(ENOENT);
	return special_reopen(req, r);
}

/* By ".." out of a stand-in: the kernel would go elsewhere. */
static struct verdict open_granted(struct call *call, const struct open_request *req,
				   const struct resolved *r)
{
	unsigned int right = only_reads(req) ? GRANT_READ : GRANT_WRITE;
	const struct grant *grant = NULL;
	int e = judge_grant(call, r, right, &grant);
	if (e < 0)
		return judge_failed(e);
	if ((!S_ISREG(r->mode) && !S_ISDIR(r->mode)) || r->anonymous || !grant)
		return verdict_errno(EACCES);
	return special_reopen(req, r);
}

static enum place find_listing(const struct resolved *r)
{
	if (str_eq(r->path, "/proc"))
		return PLACE_PROC;
	return str_eq(r->path, "/dev/pts") ? PLACE_PTS : PLACE_NONE;
}

/* Between act_begin and act_end. PLACE_NONE in RET_LIST: the verdict is made. */
static struct verdict serve_object(struct call *call, const struct open_request *req,
				   enum place *ret_list)
{
	AUTO(resolved_done) struct resolved r = RESOLVED_INIT;
	unsigned int flags = req->flags & O_NOFOLLOW ? RESOLVE_NOFOLLOW : 0;
	int e = resolve_path(call, req->dirfd, req->text, flags, &r);
	/* What cannot be found the kernel knows how to answer, but for processes of others. */
	if (e < 0)
		return req->mapped || (e == -ENOENT && !(req->flags & O_CREAT))
			       ? verdict_errno(-e)
			       : verdict_continue();
	struct at_info info = {.dev = r.dev, .ino = r.ino};
	enum place place = places_find(call->box->places, &info);
	*ret_list = find_listing(&r);
	if (*ret_list && (req->flags & O_PATH) && !req->mapped) {
		*ret_list = PLACE_NONE;
		return verdict_continue();
	}
	if (place == PLACE_PROC)
		return open_proc(call, req, &r);
	if (place == PLACE_PTS)
		return open_pts(call, req, &r);
	if (place == PLACE_SHM)
		return shm_is_granted(call, "") ? verdict_continue() : shm_open_rest(call, req, "");
	return req->mapped ? open_granted(call, req, &r) : verdict_continue();
}

static struct verdict serve(struct call *call, const struct open_request *req)
{
	struct act act;
	enum place listing = PLACE_NONE;
	int e = act_begin(call->box, &act);
	if (e < 0)
		return verdict_errno(-e);
	struct verdict verdict = serve_object(call, req, &listing);
	act_end(&act);
	return listing ? list(call, req, listing) : verdict;
}

static struct verdict serve_shm(struct call *call, const struct open_request *req, const char *rest)
{
	AUTO(act_end) struct act act;
	int e = act_begin(call->box, &act);
	return e < 0 ? verdict_errno(-e) : shm_open_rest(call, req, rest);
}

/* --- The files that everybody reads ------------------------------------------------------------
 */

/* What opens without waiting for anything: no lock of the process, no other file system. */
static bool is_quick_file(const char *path)
{
	static const char *const names[] = {"stat",    "statm",	  "status",	"comm",
					    "cmdline", "uptime",  "meminfo",	"loadavg",
					    "cpuinfo", "version", "filesystems"};
	const char *name = strrchr(path, '/') + 1;
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		if (str_eq(name, names[i]))
			return true;
	}
	return false;
}

/* PATH without "self", which would be this process. 0 or a negative errno. */
static int name_caller(const struct call *call, const char *path, char *ret, size_t size)
{
	char status[4096];
	const char *rest = path + strlen("/proc/");
	int n = snprintf(ret, size, "%s", path);
	if (str_starts(rest, "self/")) {
		char name[40];
		snprintf(name, sizeof(name), "/proc/%d/status", call->tid);
		ssize_t got = at_read_file(AT_FDCWD, name, status, sizeof(status));
		const char *line = got > 0 ? strstr(status, "\nTgid:") : NULL;
		if (!line || !call_is_alive(call))
			return -ESRCH;
		n = snprintf(ret, size, "/proc/%ld%s", strtol(line + 6, NULL, 10),
			     rest + strlen("self"));
	}
	return n < 0 || (size_t)n >= size ? -ENAMETOOLONG : 0;
}

/* Without a worker, if nothing of it can take long. ANSWER_WORKER: it could. */
static struct verdict open_quick(struct call *call, const struct open_request *req)
{
	const struct verdict slow = {.answer = ANSWER_WORKER};
	AUTO(resolved_done) struct resolved r = RESOLVED_INIT;
	AUTO(act_end) struct act act = {0};
	char *end;
	if (!str_starts(req->text, "/proc/") || strstr(req->text, "..") || !only_reads(req) ||
	    (req->flags & (O_PATH | O_CREAT)) || !is_quick_file(req->text) ||
	    name_caller(call, req->text, r.path, sizeof(r.path)) < 0 ||
	    act_begin(call->box, &act) < 0)
		return slow;
	struct at_info info;
	r.fd = at_open(AT_FDCWD, r.path, O_NOFOLLOW, RESOLVE_NO_SYMLINKS);
	if (r.fd < 0 || at_info(r.fd, &info) < 0 || !S_ISREG(info.mode) ||
	    places_find(call->box->places, &info) != PLACE_PROC ||
	    at_name(r.fd, r.path, sizeof(r.path)) < 0 || !str_starts(r.path, "/proc/"))
		return slow;
	/* As in open_proc: the number is looked at while the object is held. */
	long pid = strtol(r.path + strlen("/proc/"), &end, 10);
	if (end > r.path + strlen("/proc/") && pid != call->tid &&
	    !own_process_near(call->box, (pid_t)pid))
		return slow;
	r.mode = info.mode;
	return special_reopen(req, &r);
}

/* --- On a worker ------------------------------------------------------------------------------ */

static struct verdict try_worker(struct call *call, struct pending_op *op, bool timed_out)
{
	(void)op;
	(void)timed_out;
	return (struct verdict){.answer = call_may_work(call) ? ANSWER_WORKER : ANSWER_PENDING};
}

/* No open fails because many are made at once. */
static struct verdict to_worker(struct call *call)
{
	struct pending_op op = {.fd = -1, .resume = try_worker, .retry_ms = 1};
	if (call_may_work(call))
		return (struct verdict){.answer = ANSWER_WORKER};
	return call_wait(call, &op);
}

struct verdict handle_open(struct call *call)
{
	struct open_request req;
	struct verdict verdict;
	if ((!call->box->places && !call->box->names) || read_request(call, &req) < 0)
		return verdict_continue();
	if (call->box->names && hosts_takes(call, &req, &verdict))
		return verdict.answer == ANSWER_WORKER ? to_worker(call) : verdict;
	if (!call->box->places)
		return verdict_continue();
	const char *rest = NULL;
	enum lead lead = find_lead(call, &req, &rest);
	if (lead == LEAD_ELSEWHERE)
		return verdict_continue();
	if (!call->on_worker) {
		struct verdict quick = open_quick(call, &req);
		return quick.answer == ANSWER_WORKER ? to_worker(call) : quick;
	}
	return lead == LEAD_SHM ? serve_shm(call, &req, rest) : serve(call, &req);
}
