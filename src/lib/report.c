/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Control-socket reports. The sender's pid is the kernel's word (SCM_CREDENTIALS, translated into
 * this process's PID namespace; unix(7)), not the sender's.
 */
#include "lib/report.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "confine/job.h"

static void read_control(struct msghdr *mh, struct report_msg *msg)
{
	for (struct cmsghdr *c = CMSG_FIRSTHDR(mh); c; c = CMSG_NXTHDR(mh, c)) {
		if (c->cmsg_level != SOL_SOCKET)
			continue;
		if (c->cmsg_type == SCM_CREDENTIALS &&
		    c->cmsg_len == CMSG_LEN(sizeof(struct ucred))) {
			struct ucred cred;
			memcpy(&cred, CMSG_DATA(c), sizeof(cred));
			msg->pid = cred.pid;
		}
		if (c->cmsg_type == SCM_RIGHTS && c->cmsg_len == CMSG_LEN(sizeof(int)))
			memcpy(&msg->fd, CMSG_DATA(c), sizeof(int));
	}
}

int report_receive(int ctl, struct report_msg *ret_msg)
{
	struct job_msg body;
	struct iovec iov = {&body, sizeof(body)};
	union {
		struct cmsghdr align;
		char space[CMSG_SPACE(sizeof(struct ucred)) + CMSG_SPACE(sizeof(int))];
	} control;
	struct msghdr mh = {.msg_iov = &iov,
			    .msg_iovlen = 1,
			    .msg_control = &control,
			    .msg_controllen = sizeof(control)};
	ssize_t n = recvmsg(ctl, &mh, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -errno;
	struct report_msg msg = {.fd = -1};
	read_control(&mh, &msg);
	if (n != (ssize_t)sizeof(body)) {
		if (msg.fd >= 0)
			close(msg.fd);
		return n == 0 ? -EPIPE : -EBADMSG;
	}
	msg.kind = body.kind;
	msg.value = body.value;
	*ret_msg = msg;
	return 1;
}
