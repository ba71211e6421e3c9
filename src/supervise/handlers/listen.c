/* SPDX-License-Identifier: Apache-2.0 */
/*
 * listen. On an unbound TCP socket it binds to a free port, past the kernel's rules for bind, so
 * that is judged as a bind of port 0. Unix sockets listen as they like: their names are files in
 * write grants, or abstract and inside.
 */
#include <errno.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "base/util.h"
#include "policy/policy.h"
#include "supervise/box.h"
#include "supervise/handlers/handlers.h"
#include "supervise/sock.h"

static const char op_name[] = "listen";

static struct verdict refuse_port(struct call *call, const char *object, const char *rule,
				  const char *allow)
{
	struct refusal refusal = {
		.op = op_name, .object = object, .rule = rule, .allow = allow, .error = EACCES};
	return call_refuse(call, &refusal);
}

/* True if the socket may listen. */
static bool judge_tcp(struct call *call, int fd, struct verdict *ret)
{
	const struct policy *p = call->box->policy;
	struct sockaddr_in6 bound = {0};
	socklen_t len = sizeof(bound);
	if (p->prot[PROT_NET_TCP] == PROT_DISABLED)
		return true;
	if (!net_policy_has_bind(p)) {
		*ret = refuse_port(call, "TCP socket", "no rule allows binding",
				   "--net-allow-bind 0");
		return false;
	}
	if (getsockname(fd, (struct sockaddr *)&bound, &len) < 0) {
		*ret = verdict_errno(errno);
		return false;
	}
	if (bound.sin6_port != 0 || net_policy_may_bind(p, 0))
		return true;
	*ret = refuse_port(call, "TCP socket without a port",
			   "no rule allows binding to a port that the kernel chooses",
			   "--net-allow-bind 0");
	return false;
}

/*
 * Where copies are kept, a listener's would go on listening when the task has closed it. That of an
 * abstract name stays: it is what tells that the name is the sandbox's own.
 */
static void forget_copy(const struct box *box, int fd, const struct sock_info *info)
{
	struct sockaddr_un bound = {0};
	socklen_t len = sizeof(bound);
	struct stat st;
	if (box->have_getfd || fstat(fd, &st) < 0)
		return;
	bool named = info->domain == AF_UNIX &&
		     getsockname(fd, (struct sockaddr *)&bound, &len) == 0 &&
		     len > offsetof(struct sockaddr_un, sun_path) && !bound.sun_path[0];
	if (!named)
		sock_table_drop(box->socks, st.st_ino);
}

struct verdict handle_listen(struct call *call)
{
	struct sock_info info;
	struct sock_ids ids;
	struct verdict verdict;
	if (!str_eq(call->row->name, op_name))
		return verdict_errno(EPERM);
	int fd = sock_copy(call, call_int(call, 0));
	if (fd < 0)
		return sock_no_copy(call, op_name, fd);
	int r = sock_info_get(fd, &info);
	if (r < 0)
		return verdict_errno(-r);
	if (info.domain != AF_UNIX && !sock_is_tcp(&info))
		return verdict_errno(EOPNOTSUPP);
	if (info.domain != AF_UNIX && !judge_tcp(call, fd, &verdict))
		return verdict;
	if (!call_is_alive(call))
		return (struct verdict){.answer = ANSWER_GONE};
	if (!sock_ids_begin(call->box, &ids))
		return verdict_errno(EACCES);
	r = listen(fd, call_int(call, 1));
	int code = errno;
	sock_ids_end(&ids);
	if (r == 0)
		forget_copy(call->box, fd, &info);
	return verdict_result(r, code);
}
