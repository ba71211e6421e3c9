/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Message headers and ancillary data of the task. Lengths are checked before anything is allocated,
 * and what is malformed fails as in the kernel.
 */
#include "supervise/msg.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "supervise/box.h"

int sock_addr_read(struct call *call, uint64_t addr, int len, struct sock_addr *ret)
{
	memset(ret, 0, sizeof(*ret));
	if (len < 0 || (size_t)len > sizeof(ret->storage))
		return -EINVAL;
	int r = call_read(call, addr, &ret->storage, (size_t)len);
	if (r < 0)
		memset(ret, 0, sizeof(*ret));
	else
		ret->len = (socklen_t)len;
	return r;
}

void msg_done(struct msg *m)
{
	free(m->iov);
	free(m->control);
	*m = (struct msg){0};
}

/* struct msghdr of a 64-bit task. */
struct wire_msghdr {
	uint64_t name;
	int32_t namelen;
	uint32_t pad0;
	uint64_t iov;
	uint64_t iovlen;
	uint64_t control;
	uint64_t controllen;
	int32_t flags;
	uint32_t pad1;
};

_Static_assert(sizeof(struct wire_msghdr) == MSG_HEADER_SIZE, "as the kernel has it");
_Static_assert(sizeof(struct iovec) == 16, "two words");

/* A vector is cut to what one call can transfer, as the kernel cuts it. */
static int check_iov(struct msg *m)
{
	for (size_t i = 0; i < m->n_iov; i++) {
		if (m->iov[i].iov_len > SSIZE_MAX)
			return -EINVAL;
		if (m->iov[i].iov_len > MSG_SENDABLE_MAX - m->total)
			m->iov[i].iov_len = MSG_SENDABLE_MAX - m->total;
		m->total += m->iov[i].iov_len;
	}
	return 0;
}

static int read_iov(struct call *call, uint64_t addr, uint64_t n, struct msg *m)
{
	if (n > MSG_IOV_MAX)
		return -EMSGSIZE;
	if (n == 0)
		return 0;
	m->iov = xcalloc(n, sizeof(*m->iov));
	m->n_iov = n;
	int r = call_read(call, addr, m->iov, n * sizeof(*m->iov));
	return r < 0 ? r : check_iov(m);
}

static int read_control(struct call *call, uint64_t addr, uint64_t len, struct msg *m)
{
	if (len > MSG_CONTROL_MAX)
		return -ENOBUFS;
	if (len == 0)
		return 0;
	m->control = xzalloc(len);
	m->control_len = len;
	return call_read(call, addr, m->control, len);
}

/* A name that is too long is cut, unlike in connect: what is left is judged. */
static int read_name(struct call *call, uint64_t addr, int32_t len, struct msg *m)
{
	if (!addr)
		return 0;
	if (len < 0)
		return -EINVAL;
	if ((size_t)len > sizeof(m->name.storage))
		len = (int32_t)sizeof(m->name.storage);
	return sock_addr_read(call, addr, len, &m->name);
}

int msg_read(struct call *call, uint64_t addr, struct msg *ret)
{
	struct wire_msghdr h;
	struct msg m = {0};
	int r = call_read(call, addr, &h, sizeof(h));
	if (r == 0)
		r = read_name(call, h.name, h.namelen, &m);
	if (r == 0)
		r = read_iov(call, h.iov, h.iovlen, &m);
	if (r == 0)
		r = read_control(call, h.control, h.controllen, &m);
	if (r < 0)
		msg_done(&m);
	*ret = m;
	return r;
}

void msg_from_buffer(uint64_t addr, uint64_t len, struct msg *ret)
{
	*ret = (struct msg){.n_iov = 1};
	ret->iov = xcalloc(1, sizeof(*ret->iov));
	ret->iov->iov_base = (void *)(uintptr_t)addr; /* NOLINT(performance-no-int-to-ptr) */
	ret->iov->iov_len = len < MSG_SENDABLE_MAX ? len : MSG_SENDABLE_MAX;
	ret->total = ret->iov->iov_len;
}

ssize_t msg_gather(struct call *call, const struct msg *m, size_t offset, char *ret_data,
		   size_t size)
{
	size_t got = 0;
	for (size_t i = 0; i < m->n_iov && got < size; i++) {
		const struct iovec *v = &m->iov[i];
		if (offset >= v->iov_len) {
			offset -= v->iov_len;
			continue;
		}
		size_t part = v->iov_len - offset;
		part = part < size - got ? part : size - got;
		int r = call_read(call, (uint64_t)(uintptr_t)v->iov_base + offset, ret_data + got,
				  part);
		if (r < 0)
			return got ? (ssize_t)got : r;
		got += part;
		offset = 0;
	}
	return (ssize_t)got;
}

/* --- Ancillary data ----------------------------------------------------------------------- */

void msg_control_done(struct msg_control *c)
{
	for (size_t i = 0; i < c->n_fds; i++)
		util_close(c->fds[i]);
	c->n_fds = 0;
	free(take_ptr(c->data));
	c->len = 0;
}

void msg_control_done_cleanup(struct msg_control *c)
{
	msg_control_done(c);
}

/* DATA has room: it is as long as what the task wrote, and what is made here besides. */
void msg_control_add(struct msg_control *c, int level, int type, const void *data, size_t size)
{
	struct cmsghdr h = {.cmsg_len = CMSG_LEN(size), .cmsg_level = level, .cmsg_type = type};
	c->data = xrealloc(c->data, 1, c->len + CMSG_SPACE(size));
	memset(c->data + c->len, 0, CMSG_SPACE(size));
	memcpy(c->data + c->len, &h, sizeof(h));
	if (size)
		memcpy(c->data + c->len + CMSG_LEN(0), data, size);
	c->len += CMSG_SPACE(size);
}

static int take_rights(struct call *call, const char *data, size_t size, struct msg_control *c)
{
	size_t n = size / sizeof(int);
	if (n > MSG_RIGHTS_MAX - c->n_fds)
		return -EINVAL;
	for (size_t i = 0; i < n; i++) {
		int number;
		memcpy(&number, data + i * sizeof(int), sizeof(number));
		int fd = call_fd_take(call, number);
		if (fd < 0)
			return fd;
		c->fds[c->n_fds++] = fd;
	}
	return 0;
}

/*
 * A process may send its own ids only. The number is not compared: it is one of the task's PID
 * namespace, and a receiver gets that of the process that sends, this one, whatever is written.
 */
static int check_credentials(const struct call *call, const char *data, size_t size)
{
	struct ucred cred;
	if (size != sizeof(cred))
		return -EINVAL;
	memcpy(&cred, data, sizeof(cred));
	return cred.uid == call->box->uid && cred.gid == call->box->gid ? 0 : -EPERM;
}

/* A route in a message leads elsewhere than its address says; a flow label can hold one. */
static bool is_route(const struct cmsghdr *h)
{
	if (h->cmsg_level == UAPI_IPPROTO_IP)
		return h->cmsg_type == UAPI_IP_RETOPTS;
	return h->cmsg_level == UAPI_IPPROTO_IPV6 &&
	       (h->cmsg_type == UAPI_IPV6_RTHDR || h->cmsg_type == UAPI_IPV6_2292RTHDR ||
		h->cmsg_type == UAPI_IPV6_FLOWINFO);
}

static int take_item(struct call *call, const struct cmsghdr *h, const char *data, bool local,
		     struct msg_control *c)
{
	size_t size = h->cmsg_len - CMSG_LEN(0);
	bool ours = h->cmsg_level == SOL_SOCKET &&
		    (h->cmsg_type == SCM_RIGHTS || h->cmsg_type == SCM_CREDENTIALS);
	if (!local && is_route(h))
		return -EPERM;
	if (!ours) {
		msg_control_add(c, h->cmsg_level, h->cmsg_type, data, size);
		return 0;
	}
	if (!local)
		return 0;
	if (h->cmsg_type == SCM_RIGHTS)
		return take_rights(call, data, size, c);
	c->creds = true;
	return check_credentials(call, data, size);
}

int msg_control_make(struct call *call, const struct msg *m, bool local, struct msg_control *ret)
{
	size_t at = 0;
	int r = 0;
	*ret = (struct msg_control){0};
	while (r == 0 && m->control_len - at >= sizeof(struct cmsghdr)) {
		struct cmsghdr h;
		memcpy(&h, m->control + at, sizeof(h));
		if (h.cmsg_len < sizeof(h) || h.cmsg_len > m->control_len - at) {
			r = -EINVAL;
			break;
		}
		r = take_item(call, &h, m->control + at + sizeof(h), local, ret);
		size_t step = CMSG_ALIGN(h.cmsg_len);
		at += step < m->control_len - at ? step : m->control_len - at;
	}
	if (r == 0 && ret->n_fds)
		msg_control_add(ret, SOL_SOCKET, SCM_RIGHTS, ret->fds, ret->n_fds * sizeof(int));
	if (r < 0)
		msg_control_done(ret);
	return r;
}
