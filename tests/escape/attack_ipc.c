/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Attacks on objects of inter-process communication that a process outside made: System V shared
 * memory, semaphores and queues, POSIX queues and shared memory, named and abstract Unix sockets.
 *
 * Invariant: only the victim's objects are addressed, by the key or name that the harness gives.
 */
#include "attack.h"

#include <fcntl.h>
#include <mqueue.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

static int shm_key(char *const *arg)
{
	int id = shmget((key_t)number(arg[0]), 0, 0);
	void *p;

	if (id < 0)
		return errno;
	p = shmat(id, NULL, 0);
	return p == (void *)-1 ? errno : ATTACK_WORKED;
}

static int shm_id(char *const *arg)
{
	return shmat((int)number(arg[0]), NULL, SHM_RDONLY) == (void *)-1 ? errno : ATTACK_WORKED;
}

static int sem_key(char *const *arg)
{
	return outcome(semget((key_t)number(arg[0]), 0, 0));
}

static int msg_key(char *const *arg)
{
	struct {
		long type;
		char text[4];
	} message = {1, "hi"};
	int id = msgget((key_t)number(arg[0]), 0);

	if (id < 0)
		return errno;
	return outcome(msgsnd(id, &message, sizeof(message.text), IPC_NOWAIT));
}

static int mq_name(char *const *arg)
{
	return outcome(mq_open(arg[0], O_RDWR));
}

static int posix_shm(char *const *arg)
{
	return outcome(shm_open(arg[0], O_RDWR, 0));
}

static socklen_t address(struct sockaddr_un *sa, const char *name)
{
	size_t len = strlen(name);

	memset(sa, 0, sizeof(*sa));
	sa->sun_family = AF_UNIX;
	if (len >= sizeof(sa->sun_path))
		len = sizeof(sa->sun_path) - 1;
	memcpy(sa->sun_path, name, len);
	/* '@' stands for the zero byte of an abstract name. */
	if (name[0] == '@')
		sa->sun_path[0] = '\0';
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len + (name[0] != '@'));
}

static int unix_connect(const char *name, int type)
{
	struct sockaddr_un sa;
	socklen_t len = address(&sa, name);
	int fd = socket(AF_UNIX, type, 0);

	if (fd < 0)
		return errno;
	return outcome(connect(fd, (struct sockaddr *)&sa, len));
}

static int unix_stream(char *const *arg)
{
	return unix_connect(arg[0], SOCK_STREAM);
}

static int unix_seqpacket(char *const *arg)
{
	return unix_connect(arg[0], SOCK_SEQPACKET);
}

static int unix_dgram_connect(char *const *arg)
{
	return unix_connect(arg[0], SOCK_DGRAM);
}

static int unix_dgram_sendto(char *const *arg)
{
	struct sockaddr_un sa;
	socklen_t len = address(&sa, arg[0]);
	int fd = socket(AF_UNIX, SOCK_DGRAM, 0);

	if (fd < 0)
		return errno;
	return outcome(sendto(fd, "x", 1, 0, (struct sockaddr *)&sa, len));
}

/* A datagram pair can send to any name, though each end is already connected. */
static int unix_pair_sendto(char *const *arg)
{
	struct sockaddr_un sa;
	socklen_t len = address(&sa, arg[0]);
	int sv[2];

	if (socketpair(AF_UNIX, SOCK_DGRAM, 0, sv) < 0)
		return errno;
	return outcome(sendto(sv[0], "x", 1, 0, (struct sockaddr *)&sa, len));
}

static int unix_pair_sendmsg(char *const *arg)
{
	struct sockaddr_un sa;
	socklen_t len = address(&sa, arg[0]);
	struct iovec iov = {(char[]){'x'}, 1};
	struct msghdr msg = {.msg_name = &sa, .msg_namelen = len, .msg_iov = &iov, .msg_iovlen = 1};
	struct mmsghdr batch = {.msg_hdr = msg};
	int sv[2];

	if (socketpair(AF_UNIX, SOCK_DGRAM, 0, sv) < 0)
		return errno;
	return outcome(sendmmsg(sv[0], &batch, 1, 0));
}

/* SOCK_RAW is turned into SOCK_DGRAM by the kernel for this family. */
static int unix_pair_raw(char *const *arg)
{
	struct sockaddr_un sa;
	socklen_t len = address(&sa, arg[0]);
	int sv[2];

	if (socketpair(AF_UNIX, SOCK_RAW, 0, sv) < 0)
		return errno;
	return outcome(sendto(sv[0], "x", 1, 0, (struct sockaddr *)&sa, len));
}

/* High bits that the kernel cuts off must not hide the family from the filter. */
static int unix_high_bits(char *const *arg)
{
	struct sockaddr_un sa;
	socklen_t len = address(&sa, arg[0]);
	long fd = syscall(SYS_socket, AF_UNIX | (1UL << 40), SOCK_STREAM | (1UL << 40), 0);

	if (fd < 0)
		return errno;
	return outcome(connect((int)fd, (struct sockaddr *)&sa, len));
}

static int unix_bind(char *const *arg)
{
	struct sockaddr_un sa;
	socklen_t len = address(&sa, arg[0]);
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	if (fd < 0)
		return errno;
	return outcome(bind(fd, (struct sockaddr *)&sa, len));
}

const struct attack attacks_ipc[] = {
	{"shm_key", 1, shm_key},
	{"shm_id", 1, shm_id},
	{"sem_key", 1, sem_key},
	{"msg_key", 1, msg_key},
	{"mq_name", 1, mq_name},
	{"posix_shm", 1, posix_shm},
	{"unix_stream", 1, unix_stream},
	{"unix_seqpacket", 1, unix_seqpacket},
	{"unix_dgram_connect", 1, unix_dgram_connect},
	{"unix_dgram_sendto", 1, unix_dgram_sendto},
	{"unix_pair_sendto", 1, unix_pair_sendto},
	{"unix_pair_sendmsg", 1, unix_pair_sendmsg},
	{"unix_pair_raw", 1, unix_pair_raw},
	{"unix_high_bits", 1, unix_high_bits},
	{"unix_bind", 1, unix_bind},
	{0},
};
