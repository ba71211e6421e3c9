/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Probes of seccomp: a filter that answers, and a listener whose trapped call is received, given a
 * descriptor and answered by another process, as the supervisor would. Raw system calls only (see
 * check.h).
 */
#include <errno.h>
#include <linux/prctl.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "base/util.h"
#include "confine/raw_util.h"
#include "lib/check.h"
#include "sys/uapi.h"

enum listener_use {
	USE_ANSWER,
	USE_WAIT_KILLABLE,
	USE_SYNC_WAKE_UP,
	USE_ADDFD,
	USE_ADDFD_SEND,
};

/* The trapped call is getpgid with this number, which no process has. */
#define TRAP_PID    0x3fffff5a
#define TRAP_ANSWER 4242
#define PIPE_BYTE   'k'

struct filter_prog {
	unsigned short len;
	struct sock_filter *filter;
};

/* Traps or answers getpgid(TRAP_PID) with ACTION and allows all else. */
static long install(unsigned int flags, unsigned int action)
{
	struct sock_filter insns[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getpgid, 0, 3),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, TRAP_PID, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, action),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct filter_prog prog = {ARRAY_SIZE(insns), insns};
	long r = raw_syscall5(SYS_prctl, PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	return r < 0 ? r : raw_syscall3(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &prog);
}

static int probe_filter(const struct check_env *env, struct probe_result *res, int arg)
{
	long r = install(0, SECCOMP_RET_ERRNO | EXDEV);
	if (r < 0)
		return probe_error(res, "seccomp(SECCOMP_SET_MODE_FILTER)", r);
	r = raw_syscall1(SYS_getpgid, TRAP_PID);
	return r == -EXDEV ? 0 : probe_say(res, CHECK_FAILED, "the filter did not answer the call");
}

/* --- Passing the listener ----------------------------------------------------------------------
 */

union fd_control {
	struct cmsghdr head;
	char space[CMSG_SPACE(sizeof(int))];
};

static long send_fd(int sock, int fd)
{
	char byte = 0;
	struct iovec iov = {&byte, 1};
	union fd_control control = {.head = {.cmsg_len = CMSG_LEN(sizeof(int)),
					     .cmsg_level = SOL_SOCKET,
					     .cmsg_type = SCM_RIGHTS}};
	*(int *)(void *)CMSG_DATA(&control.head) = fd;
	struct msghdr mh = {.msg_iov = &iov,
			    .msg_iovlen = 1,
			    .msg_control = &control,
			    .msg_controllen = sizeof(control)};
	return raw_syscall3(SYS_sendmsg, sock, &mh, MSG_NOSIGNAL);
}

/* The descriptor that comes, or a negative errno; -EPIPE where the other side went away. */
static int receive_fd(int sock)
{
	char byte = 0;
	struct iovec iov = {&byte, 1};
	union fd_control control = {.space = {0}};
	struct msghdr mh = {.msg_iov = &iov,
			    .msg_iovlen = 1,
			    .msg_control = &control,
			    .msg_controllen = sizeof(control)};
	long r = raw_syscall3(SYS_recvmsg, sock, &mh, MSG_CMSG_CLOEXEC);
	if (r < 0)
		return (int)r;
	if (r == 0 || mh.msg_controllen < CMSG_LEN(sizeof(int)))
		return -EPIPE;
	return *(int *)(void *)CMSG_DATA(&control.head);
}

/* --- The trapped process ------------------------------------------------------------------------
 */

static int trapped_calls(struct probe_result *res, int sock, enum listener_use use)
{
	unsigned int flags = SECCOMP_FILTER_FLAG_NEW_LISTENER;
	const char *call = "seccomp(SECCOMP_FILTER_FLAG_NEW_LISTENER)";
	if (use == USE_WAIT_KILLABLE) {
		flags |= SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV;
		call = "seccomp(SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV)";
	}
	long fd = install(flags, SECCOMP_RET_USER_NOTIF);
	if (fd < 0)
		return probe_error(res, call, fd);
	long r = send_fd(sock, (int)fd);
	raw_close((int)fd);
	raw_close(sock);
	if (r < 0)
		return probe_error(res, "sendmsg of the listener", r);
	r = raw_syscall1(SYS_getpgid, TRAP_PID);
	bool wants_fd = use == USE_ADDFD || use == USE_ADDFD_SEND;
	if (r < 0 || (!wants_fd && r != TRAP_ANSWER))
		return probe_say(res, CHECK_FAILED, "the trapped call was not answered");
	if (!wants_fd)
		return 0;
	char byte = 0;
	r = raw_syscall3(SYS_read, r, &byte, 1);
	if (r == 1 && byte == PIPE_BYTE)
		return 0;
	return probe_say(res, CHECK_FAILED, "the injected descriptor is not the one that was sent");
}

/* --- The supervisor -----------------------------------------------------------------------------
 */

/* Big enough for whatever a later kernel adds to the two structures. */
union notification {
	struct seccomp_notif req;
	struct seccomp_notif_resp resp;
	char room[512];
};

/* A pipe that holds one byte; returns its reading side. */
static int filled_pipe(struct probe_result *res)
{
	static const char byte = PIPE_BYTE;
	int fds[2] = {-1, -1};
	long r = raw_syscall2(SYS_pipe2, fds, O_CLOEXEC);
	if (r < 0)
		return probe_error(res, "pipe2", r);
	r = raw_write(fds[1], &byte, 1);
	raw_close(fds[1]);
	return r == 1 ? fds[0] : probe_error(res, "write", r < 0 ? r : -EIO);
}

/* Injects a descriptor. The trapped call is answered by that with SEND, else its number returned.
 */
static long inject(struct probe_result *res, int listener, __u64 id, bool send)
{
	int fd = filled_pipe(res);
	if (fd < 0)
		return -1;
	struct seccomp_notif_addfd add = {
		.id = id, .flags = send ? SECCOMP_ADDFD_FLAG_SEND : 0, .srcfd = (__u32)fd};
	long r = raw_syscall3(SYS_ioctl, listener, SECCOMP_IOCTL_NOTIF_ADDFD, &add);
	raw_close(fd);
	if (r < 0)
		return probe_error(res,
				   send ? "ioctl(SECCOMP_ADDFD_FLAG_SEND)"
					: "ioctl(SECCOMP_IOCTL_NOTIF_ADDFD)",
				   r);
	return r;
}

static int answer(struct probe_result *res, int listener, enum listener_use use)
{
	if (use == USE_SYNC_WAKE_UP) {
		long r = raw_syscall3(SYS_ioctl, listener, SECCOMP_IOCTL_NOTIF_SET_FLAGS,
				      SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP);
		if (r < 0)
			return probe_error(res, "ioctl(SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP)", r);
	}
	union notification n;
	raw_zero(&n, sizeof(n));
	long r = raw_syscall3(SYS_ioctl, listener, SECCOMP_IOCTL_NOTIF_RECV, &n);
	if (r < 0)
		return probe_error(res, "ioctl(SECCOMP_IOCTL_NOTIF_RECV)", r);
	__u64 id = n.req.id;
	if (n.req.data.nr != SYS_getpgid || n.req.data.args[0] != TRAP_PID)
		return probe_say(res, CHECK_FAILED, "another call than the trapped one arrived");
	long value = TRAP_ANSWER;
	if (use == USE_ADDFD || use == USE_ADDFD_SEND) {
		value = inject(res, listener, id, use == USE_ADDFD_SEND);
		if (value < 0)
			return -1;
	}
	if (use == USE_ADDFD_SEND)
		return 0;
	raw_zero(&n, sizeof(n));
	n.resp.id = id;
	n.resp.val = value;
	r = raw_syscall3(SYS_ioctl, listener, SECCOMP_IOCTL_NOTIF_SEND, &n);
	return r < 0 ? probe_error(res, "ioctl(SECCOMP_IOCTL_NOTIF_SEND)", r) : 0;
}

static int probe_listener(const struct check_env *env, struct probe_result *res, int arg)
{
	int pair[2] = {-1, -1};
	long r = raw_syscall4(SYS_socketpair, AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair);
	if (r < 0)
		return probe_error(res, "socketpair", r);
	long pid = probe_fork(res, 0);
	if (pid < 0)
		return -1;
	if (pid == 0) {
		raw_close(pair[0]);
		raw_exit(trapped_calls(res, pair[1], (enum listener_use)arg) == 0 ? 0 : 1);
	}
	raw_close(pair[1]);
	int listener = receive_fd(pair[0]);
	if (listener >= 0) {
		answer(res, listener, (enum listener_use)arg);
		raw_close(listener);
	} else if (listener != -EPIPE) {
		probe_error(res, "recvmsg of the listener", listener);
	}
	probe_wait(res, pid);
	return res->status == CHECK_PENDING ? 0 : -1;
}

/* clang-format off */
static const struct probe probes[] = {
	{"seccomp-filter", "install a filter that answers a call", "lift the outer filter's rule on seccomp",
	 KERNEL(3, 17), true, NULL, false, 0, probe_filter},
	{"seccomp-listener", "receive a trapped call and answer it from another process", "inside a supervised sandbox use --no-supervisor",
	 KERNEL(5, 0), true, "seccomp-filter", false, USE_ANSWER, probe_listener},
	{"seccomp-wait-killable", "the same with calls that signals do not interrupt", "without it signals can interrupt trapped calls with EINTR",
	 KERNEL(5, 19), false, "seccomp-listener", false, USE_WAIT_KILLABLE, probe_listener},
	{"seccomp-sync-wake-up", "the same with both sides waking each other on one CPU", "without it trapped calls take longer",
	 KERNEL(6, 6), false, "seccomp-listener", false, USE_SYNC_WAKE_UP, probe_listener},
	{"seccomp-addfd", "inject a descriptor into a trapped process", "use a newer kernel",
	 KERNEL(5, 9), false, "seccomp-listener", false, USE_ADDFD, probe_listener},
	{"seccomp-addfd-send", "inject a descriptor as the answer to a call", "without it two steps do the same",
	 KERNEL(5, 14), false, "seccomp-listener", false, USE_ADDFD_SEND, probe_listener},
};
/* clang-format on */

const struct probe_group check_seccomp_group = {"seccomp", probes, ARRAY_SIZE(probes)};
