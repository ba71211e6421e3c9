/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Probes of what one process may do to another, and of the calls that every start makes. Raw system
 * calls only (see check.h).
 */
#include <errno.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/wait.h>

#include "base/util.h"
#include "confine/raw_util.h"
#include "lib/check.h"

#ifndef P_PIDFD
#define P_PIDFD 3
#endif

/* A child that has set its copy of MARK and waits until HOLD is closed. */
struct helper {
	long pid;
	int hold;     /* our end of a socket pair */
	int child_fd; /* the number that the other end has in the child, and in it alone */
	volatile char mark;
};

static int helper_start(struct probe_result *res, struct helper *h)
{
	int pair[2] = {-1, -1};
	char byte = 0;
	h->mark = 'p';
	long r = raw_syscall4(SYS_socketpair, AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair);
	if (r < 0)
		return probe_error(res, "socketpair", r);
	h->pid = probe_fork(res, 0);
	if (h->pid < 0)
		return -1;
	if (h->pid == 0) {
		raw_close(pair[0]);
		h->mark = 'c';
		raw_write(pair[1], &byte, 1);
		raw_syscall3(SYS_read, pair[1], &byte, 1);
		raw_exit(0);
	}
	raw_close(pair[1]);
	h->hold = pair[0];
	h->child_fd = pair[1];
	r = raw_syscall3(SYS_read, h->hold, &byte, 1);
	return r == 1 ? 0 : probe_error(res, "read", r < 0 ? r : -EPIPE);
}

static int probe_pidfd_open(const struct check_env *env, struct probe_result *res, int arg)
{
	struct helper h = {.pid = -1, .hold = -1};
	if (helper_start(res, &h) < 0)
		return -1;
	int fd = (int)raw_syscall2(SYS_pidfd_open, h.pid, 0);
	if (fd < 0)
		return probe_error(res, "pidfd_open", fd);
	long r = raw_syscall4(SYS_pidfd_send_signal, fd, SIGKILL, NULL, 0);
	if (r < 0)
		return probe_error(res, "pidfd_send_signal", r);
	struct pollfd pfd = {.fd = fd, .events = POLLIN};
	r = raw_syscall5(SYS_ppoll, &pfd, 1, NULL, NULL, 0);
	if (r < 0)
		return probe_error(res, "ppoll", r);
	siginfo_t info;
	raw_zero(&info, sizeof(info));
	r = raw_syscall5(SYS_waitid, P_PIDFD, fd, &info, WEXITED, NULL);
	if (r < 0)
		return probe_error(res, "waitid(P_PIDFD)", r);
	if (info.si_code != CLD_KILLED || info.si_status != SIGKILL)
		return probe_say(res, CHECK_FAILED, "a process that was killed ended otherwise");
	return 0;
}

static int probe_pidfd_getfd(const struct check_env *env, struct probe_result *res, int arg)
{
	struct helper h = {.pid = -1, .hold = -1};
	char byte = 'g';
	if (helper_start(res, &h) < 0)
		return -1;
	int pidfd = (int)raw_syscall2(SYS_pidfd_open, h.pid, 0);
	if (pidfd < 0)
		return probe_error(res, "pidfd_open", pidfd);
	int fd = (int)raw_syscall3(SYS_pidfd_getfd, pidfd, h.child_fd, 0);
	if (fd < 0)
		return probe_error(res, "pidfd_getfd", fd);
	/* Once the child is gone, what is written to its end arrives at the copy that was taken. */
	raw_syscall2(SYS_kill, h.pid, SIGKILL);
	siginfo_t info;
	raw_syscall5(SYS_waitid, P_PID, h.pid, &info, WEXITED, NULL);
	long r = raw_write(h.hold, &byte, 1);
	byte = 0;
	if (r == 1)
		r = raw_syscall3(SYS_read, fd, &byte, 1);
	if (r == 1 && byte == 'g')
		return 0;
	return probe_error(res, "reading from the taken descriptor", r < 0 ? r : -EPROTO);
}

static int probe_memory(const struct check_env *env, struct probe_result *res, int arg)
{
	struct helper h = {.pid = -1, .hold = -1};
	char copy = 0;
	if (helper_start(res, &h) < 0)
		return -1;
	struct iovec local = {&copy, 1};
	struct iovec remote = {(void *)(uintptr_t)&h.mark, 1};
	long r = raw_syscall6(SYS_process_vm_readv, h.pid, (long)&local, 1, (long)&remote, 1, 0);
	if (r < 0)
		return probe_error(res, "process_vm_readv", r);
	if (r != 1 || copy != 'c')
		return probe_say(res, CHECK_FAILED, "what was read is not what was there");
	raw_close(h.hold);
	return probe_wait(res, h.pid);
}

static int probe_close_range(const struct check_env *env, struct probe_result *res, int arg)
{
	int fds[2] = {-1, -1};
	long r = raw_syscall2(SYS_pipe2, fds, O_CLOEXEC);
	if (r < 0)
		return probe_error(res, "pipe2", r);
	r = raw_syscall3(SYS_close_range, 3, ~0U, 0);
	if (r < 0)
		return probe_error(res, "close_range", r);
	return probe_expect(res, "using a closed descriptor",
			    raw_syscall2(SYS_fcntl, fds[1], F_GETFD), -EBADF);
}

static int probe_memfd(const struct check_env *env, struct probe_result *res, int arg)
{
	int fd = (int)raw_syscall2(SYS_memfd_create, "sandlock-check", 1 /* MFD_CLOEXEC */);
	if (fd < 0)
		return probe_error(res, "memfd_create", fd);
	long r = raw_syscall2(SYS_ftruncate, fd, 4096);
	if (r < 0)
		return probe_error(res, "ftruncate", r);
	r = raw_syscall6(SYS_mmap, 0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	return r < 0 && r > -4096 ? probe_error(res, "mmap", r) : 0;
}

/* clang-format off */
static const struct probe probes[] = {
	{"pidfd-open", "watch, signal and wait for a process by its pidfd", "use Linux 5.4 or later, or lift the outer filter's rule on pidfd_open",
	 KERNEL(5, 4), true, NULL, false, 0, probe_pidfd_open},
	{"close-range", "close all descriptors at once", "use Linux 5.9 or later, or lift the outer filter's rule on close_range",
	 KERNEL(5, 9), true, NULL, false, 0, probe_close_range},
	{"memfd-create", "map memory that has no name", "starts without namespaces need it: lift the outer filter's rule on memfd_create",
	 KERNEL(3, 17), false, NULL, false, 0, probe_memfd},
	{"pidfd-getfd", "take a descriptor from a child", "lift the outer filter's rule on pidfd_getfd (Docker: --cap-add SYS_PTRACE), or lower kernel.yama.ptrace_scope",
	 KERNEL(5, 6), false, "pidfd-open", false, 0, probe_pidfd_getfd},
	{"process-vm-readv", "read a child's memory", "lift the outer filter's rule on process_vm_readv, or lower kernel.yama.ptrace_scope",
	 KERNEL(3, 2), false, NULL, false, 0, probe_memory},
};
/* clang-format on */

const struct probe_group check_process_group = {"Processes", probes, ARRAY_SIZE(probes)};
