/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The judge of socket addresses. A named Unix socket is what its path leads to from the task's own
 * root and working directory, held by a descriptor: that descriptor is judged and is what is
 * connected to. Internet addresses: sock_inet.c. The sandbox's Landlock rules do not bind the
 * process that connects here.
 */
#include "supervise/sock.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/util.h"
#include "policy/policy.h"
#include "supervise/act.h"
#include "supervise/ask.h"
#include "supervise/box.h"
#include "supervise/judge.h"
#include "supervise/narrow.h"
#include "supervise/pending.h"
#include "supervise/resolve.h"
#include "sys/proc.h"

#define UN_PATH_AT offsetof(struct sockaddr_un, sun_path)
#define ROOM_MS	   3 /* between looks for a free worker */

int sock_info_get(int fd, struct sock_info *ret)
{
	socklen_t n = sizeof(int);
	int flags = fcntl(fd, F_GETFL);
	*ret = (struct sock_info){0};
	if (flags < 0 || getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &ret->domain, &n) < 0 ||
	    getsockopt(fd, SOL_SOCKET, SO_TYPE, &ret->type, &n) < 0 ||
	    getsockopt(fd, SOL_SOCKET, SO_PROTOCOL, &ret->protocol, &n) < 0)
		return -errno;
	ret->nonblock = flags & O_NONBLOCK;
	return 0;
}

static bool is_inet(int family)
{
	return family == AF_INET || family == AF_INET6;
}

bool sock_is_tcp(const struct sock_info *info)
{
	return is_inet(info->domain) && info->type == SOCK_STREAM && info->protocol == IPPROTO_TCP;
}

void sock_target_done(struct sock_target *t)
{
	t->path_fd = util_close(t->path_fd);
	t->hold_fd = util_close(t->hold_fd);
}

void sock_target_done_cleanup(struct sock_target *t)
{
	sock_target_done(t);
}

int64_t sock_now_ms(void)
{
	struct timespec ts;
	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

int64_t sock_send_deadline(int fd, int64_t now_ms)
{
	struct timeval tv = {0};
	socklen_t n = sizeof(tv);
	if (getsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &tv, &n) < 0 || (!tv.tv_sec && !tv.tv_usec))
		return 0;
	if (tv.tv_sec > INT32_MAX)
		return 0;
	return now_ms + (int64_t)tv.tv_sec * 1000 + (tv.tv_usec + 999) / 1000;
}

/* --- The task's socket -------------------------------------------------------------------- */

bool sock_link_inode(const char *link, uint64_t *ret_inode)
{
	static const char start[] = "socket:[";
	char *end = NULL;
	if (!str_starts(link, start))
		return false;
	*ret_inode = strtoull(link + sizeof(start) - 1, &end, 10);
	return str_eq(end, "]");
}

/* The inode of the task's socket NUMBER; it names a copy of ours, and nothing is done by number. */
static int inode_of(struct call *call, int number, uint64_t *ret_inode)
{
	char text[64];
	if (number < 0)
		return -EBADF;
	ssize_t n = proc_fd_link(call->tid, number, text, sizeof(text));
	if (n < 0)
		return n == -ENOENT ? -EBADF : -EACCES;
	if (!call_is_alive(call))
		return -ESRCH;
	return sock_link_inode(text, ret_inode) ? 0 : -ENOTSOCK;
}

int sock_copy(struct call *call, int number)
{
	uint64_t inode = 0;
	/* Run again: it stays the socket that it was. */
	if (call->n_fds)
		return call->fds[0];
	if (call->box->have_getfd)
		return call_fd(call, number);
	int r = inode_of(call, number, &inode);
	if (r < 0)
		return r;
	if (call->n_fds == ARRAY_SIZE(call->fds))
		return -EMFILE;
	int fd = sock_table_find(call->box->socks, inode);
	if (fd >= 0)
		call->fds[call->n_fds++] = fd;
	return fd == -ENOENT ? -EPERM : fd;
}

struct verdict sock_no_copy(struct call *call, const char *op, int error)
{
	if (error == -ESRCH)
		return (struct verdict){.answer = ANSWER_GONE};
	if (error != -EPERM && error != -EACCES)
		return verdict_errno(-error);
	struct refusal refusal = {
		.op = op,
		.object = "socket",
		.rule = call->box->have_getfd ? "the program does not let itself be looked at (it "
						"is not dumpable)"
					      : "pidfd_getfd is barred here, and this socket was "
						"not made, or is not "
						"known any more, by the supervisor",
		.error = EACCES,
	};
	return call_refuse(call, &refusal);
}

/* --- Workers ------------------------------------------------------------------------------ */

static struct verdict look_for_room(struct call *call, struct pending_op *op, bool timed_out)
{
	(void)op;
	(void)timed_out;
	return (struct verdict){.answer = call_may_work(call) ? ANSWER_WORKER : ANSWER_PENDING};
}

struct verdict sock_to_worker(struct call *call)
{
	struct pending_op op = {
		.resume = look_for_room, .fd = -1, .retry_ms = ROOM_MS, .interruptible = true};
	if (ask_is_wanted(call))
		return ask_wait(call);
	if (call_may_work(call))
		return (struct verdict){.answer = ANSWER_WORKER};
	return call->on_worker ? verdict_errno(EAGAIN) : call_wait(call, &op);
}

/* --- Named Unix sockets ------------------------------------------------------------------- */

static bool refuse_path(struct call *call, const char *op, const char *asked,
			const struct resolved *r, struct verdict *ret)
{
	AUTO(buf_done) struct buf allow = BUF_INIT(1 << 16);
	buf_add_str(&allow, "--unix-allow ");
	buf_add_shell(&allow, r->path);
	struct refusal refusal = {
		.op = op,
		.object = asked,
		.resolved = r->path,
		.rule = "no write grant and no --unix-allow covers this socket",
		.allow = buf_text(&allow),
		.error = EACCES,
	};
	*ret = call_refuse(call, &refusal);
	return false;
}

/* 1: it may be reached; 0: not; or a negative errno (-EAGAIN: on a worker). */
static int path_allowed(struct call *call, const struct resolved *r)
{
	const struct grant *grant = NULL;
	if (call->box->policy->unix_allow_all || sock_table_allows(call->box->socks, r->path))
		return 1;
	int e = judge_grant(call, r, GRANT_WRITE, &grant);
	return e < 0 ? e : grant != NULL;
}

/* Whoever speaks there is taken for the user, who may open the sandbox further. */
static bool is_own_control(const struct box *box, const struct resolved *r)
{
	uint64_t ino = __atomic_load_n(&box->control_ino, __ATOMIC_ACQUIRE);
	return ino && ino == r->ino &&
	       __atomic_load_n(&box->control_dev, __ATOMIC_RELAXED) == r->dev;
}

/* Finds the socket with the task's rights and judges it: as path_allowed. */
static int find_path(struct call *call, const char *path, struct resolved *ret)
{
	AUTO(act_end) struct act act;
	int r = act_begin(call->box, &act);
	if (r == 0)
		r = resolve_path(call, AT_FDCWD, path, 0, ret);
	if (r == 0 && (!S_ISSOCK(ret->mode) || ret->anonymous))
		r = -ECONNREFUSED;
	if (r == 0 && is_own_control(call->box, ret))
		r = -EACCES;
	return r < 0 ? r : path_allowed(call, ret);
}

/*
 * The kernel follows /proc/self/fd/N to the object itself, without a look at any name, and checks
 * its mode bits for us. A socket that has no file (socket:[…]) is nobody's address.
 */
static bool judge_path(struct call *call, const char *op, const struct sock_addr *asked,
		       struct sock_target *ret, struct verdict *ret_verdict)
{
	AUTO(resolved_done) struct resolved r = RESOLVED_INIT;
	int code = find_path(call, asked->un.sun_path, &r);
	if (code < 0) {
		*ret_verdict = judge_failed(code);
		return false;
	}
	if (!code)
		return refuse_path(call, op, asked->un.sun_path, &r, ret_verdict);
	ret->path_fd = take_fd(&r.fd);
	memset(&ret->addr, 0, sizeof(ret->addr));
	ret->addr.un.sun_family = AF_UNIX;
	int n = snprintf(ret->addr.un.sun_path, sizeof(ret->addr.un.sun_path), "/proc/self/fd/%d",
			 ret->path_fd);
	ret->addr.len = (socklen_t)(UN_PATH_AT + (size_t)n + 1);
	return true;
}

/* --- Abstract Unix sockets ---------------------------------------------------------------- */

static void refuse_abstract(struct call *call, const char *op, const struct sock_addr *asked,
			    struct verdict *ret)
{
	AUTO(buf_done) struct buf name = BUF_INIT(1024);
	buf_add_char(&name, '@');
	for (size_t i = UN_PATH_AT + 1; i < asked->len; i++) {
		char c = asked->un.sun_path[i - UN_PATH_AT];
		buf_add_char(&name, c ? c : '@');
	}
	struct refusal refusal = {
		.op = op,
		.object = buf_text(&name),
		.rule = "abstract sockets stay inside the sandbox",
		.allow = "--unix-allow '*'",
		.error = EPERM,
	};
	*ret = call_refuse(call, &refusal);
}

static bool judge_abstract(struct call *call, const char *op, const struct sock_info *info,
			   const struct sock_addr *asked, struct sock_target *ret,
			   struct verdict *ret_verdict)
{
	const struct policy *p = call->box->policy;
	ret->addr = *asked;
	if (p->unix_allow_all || p->prot[PROT_ABSTRACT_UNIX_SOCKET_SCOPE] == PROT_DISABLED)
		return true;
	if (narrow_has(call)) {
		*ret_verdict = narrow_refuse(call, op, "abstract socket", EPERM);
		return false;
	}
	if (!call->on_worker) {
		*ret_verdict = (struct verdict){.answer = ANSWER_WORKER};
		return false;
	}
	int r = sock_abstract_find(call, asked, info->type, &ret->hold_fd);
	if (r == -EPERM)
		refuse_abstract(call, op, asked, ret_verdict);
	else if (r < 0)
		*ret_verdict = verdict_errno(-r);
	return r == 0;
}

static bool judge_unix(struct call *call, const char *op, const struct sock_info *info,
		       const struct sock_addr *asked, struct sock_target *ret,
		       struct verdict *ret_verdict)
{
	bool well_formed = asked->len > UN_PATH_AT && asked->len <= sizeof(asked->un) &&
			   asked->sa.sa_family == AF_UNIX;
	if (info->type == SOCK_DGRAM && asked->len >= UN_PATH_AT &&
	    asked->sa.sa_family == AF_UNSPEC && str_eq(op, "connect")) {
		ret->addr = *asked; /* takes the connection back */
		return true;
	}
	if (!well_formed) {
		*ret_verdict = verdict_errno(EINVAL);
		return false;
	}
	if (!asked->un.sun_path[0])
		return judge_abstract(call, op, info, asked, ret, ret_verdict);
	return judge_path(call, op, asked, ret, ret_verdict);
}

bool sock_judge(struct call *call, const char *op, const struct sock_info *info,
		const struct sock_addr *asked, struct sock_target *ret, struct verdict *ret_verdict)
{
	if (info->domain == AF_UNIX)
		return judge_unix(call, op, info, asked, ret, ret_verdict);
	if (is_inet(info->domain))
		return sock_judge_inet(call, op, info, asked, ret, ret_verdict);
	*ret_verdict = verdict_errno(EAFNOSUPPORT);
	return false;
}
