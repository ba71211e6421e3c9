/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Message headers, vectors and ancillary data of a hostile task. The input is the task's memory,
 * from MEMORY_AT on; the header lies at its start. What is read must keep its bounds, and what
 * would be handed to the kernel must be well formed.
 */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/util.h"
#include "fuzz.h"
#include "supervise/box.h"
#include "supervise/msg.h"

#define MEMORY_AT 0x1000u

static const uint8_t *memory;
static size_t memory_size;
static int fds_out; /* copies that were given and not closed are a leak: counted by number */

int call_read(struct call *call, uint64_t addr, void *ret_data, size_t n)
{
	(void)call;
	if (n == 0)
		return 0;
	if (addr < MEMORY_AT || addr - MEMORY_AT > memory_size ||
	    n > memory_size - (addr - MEMORY_AT))
		return -EFAULT;
	memcpy(ret_data, memory + (addr - MEMORY_AT), n);
	return 0;
}

int call_fd_take(struct call *call, int fd)
{
	(void)call;
	if (fd < 0 || fd > 100)
		return -EBADF;
	int copy = dup(fds_out);
	assert(copy >= 0);
	return copy;
}

static void check_control(const struct msg_control *c)
{
	struct msghdr h = {.msg_control = c->data, .msg_controllen = c->len};
	size_t rights = 0;
	assert(c->n_fds <= MSG_RIGHTS_MAX);
	for (struct cmsghdr *m = CMSG_FIRSTHDR(&h); m; m = CMSG_NXTHDR(&h, m)) {
		assert(m->cmsg_len >= sizeof(*m));
		if (m->cmsg_level == SOL_SOCKET && m->cmsg_type == SCM_RIGHTS)
			rights += (m->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		assert(m->cmsg_level != SOL_SOCKET || m->cmsg_type != SCM_CREDENTIALS);
	}
	assert(rights == c->n_fds);
}

static void check(struct call *call, const struct msg *m, bool local)
{
	struct msg_control control;
	char data[4096];
	assert(m->name.len <= sizeof(m->name.storage) && m->name.end == 0);
	assert(m->n_iov <= MSG_IOV_MAX && m->total <= MSG_SENDABLE_MAX);
	assert(m->control_len <= MSG_CONTROL_MAX);
	ssize_t n = msg_gather(call, m, m->total / 2, data, sizeof(data));
	assert(n <= (ssize_t)sizeof(data) && (n < 0 || (size_t)n <= m->total));
	if (msg_control_make(call, m, local, &control) == 0)
		check_control(&control);
	msg_control_done(&control);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct box box = {.uid = 1, .gid = 1};
	struct call call = {.box = &box, .pidfd = -1};
	struct msg m;
	fds_out = open("/dev/null", O_RDONLY | O_CLOEXEC);
	assert(fds_out >= 0);
	int lowest = dup(fds_out);
	close(lowest);
	memory = data;
	memory_size = size;
	for (int local = 0; local < 2; local++) {
		if (msg_read(&call, MEMORY_AT, &m) == 0)
			check(&call, &m, local);
		msg_done(&m);
	}
	int now = dup(fds_out);
	assert(now == lowest);
	close(now);
	close(fds_out);
	return 0;
}
