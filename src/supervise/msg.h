/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a send call hands over, read from the task: addresses, message headers, vectors and
 * ancillary data. Everything here is hostile. Headers, vectors, names and ancillary data are copied
 * once; the payload, which nothing judges, is read when it is sent.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <sys/un.h>

#include "supervise/call.h"

enum {
	MSG_IOV_MAX = 1024,	       /* UIO_MAXIOV */
	MSG_CONTROL_MAX = 1 << 16,     /* ancillary data of one message */
	MSG_RIGHTS_MAX = 253,	       /* descriptors in one message: SCM_MAX_FD */
	MSG_SENDABLE_MAX = 0x7ffff000, /* bytes of one call: MAX_RW_COUNT */
};

/* A socket address with room for the NUL that a full sun_path lacks. */
struct sock_addr {
	union {
		struct sockaddr sa;
		struct sockaddr_un un;
		struct sockaddr_storage storage;
	};
	char end; /* always 0 */
	socklen_t len;
};

/* Reads an address of LEN bytes, as the kernel takes it. 0, -EINVAL, or what call_read returns. */
int sock_addr_read(struct call *call, uint64_t addr, int len, struct sock_addr *ret);

struct msg {
	struct sock_addr name; /* LEN 0: none */
	struct iovec *iov;     /* owned; addresses of the task */
	size_t n_iov;
	size_t total;  /* bytes of payload, at most MSG_SENDABLE_MAX */
	char *control; /* owned; as the task wrote it */
	size_t control_len;
};

#define MSG_HEADER_SIZE	 56 /* struct msghdr, the same on every 64-bit architecture */
#define MSG_MHEADER_SIZE 64 /* struct mmsghdr; msg_len follows the header */

void msg_done(struct msg *m);
/* Reads the struct msghdr at ADDR. 0, or the negative errno that the kernel would give. */
int msg_read(struct call *call, uint64_t addr, struct msg *ret);
/* One buffer of the task, without a name. */
void msg_from_buffer(uint64_t addr, uint64_t len, struct msg *ret);
/*
 * Reads up to SIZE bytes of the payload from OFFSET on. Less, where a later part of it cannot be
 * read; a negative errno where the first cannot.
 */
ssize_t msg_gather(struct call *call, const struct msg *m, size_t offset, char *ret_data,
		   size_t size);

/* Ancillary data as this process may send it. */
struct msg_control {
	char *data; /* owned; for msg_control */
	size_t len;
	int fds[MSG_RIGHTS_MAX]; /* owned: copies of what SCM_RIGHTS names */
	size_t n_fds;
	bool creds; /* the task sends credentials: its own */
};

void msg_control_done(struct msg_control *c);
void msg_control_done_cleanup(struct msg_control *c);
/*
 * Makes it from what the task wrote: descriptors are copied, credentials checked to be the task's
 * own and left out, the rest is passed on. With LOCAL (a Unix socket), SCM_RIGHTS and
 * SCM_CREDENTIALS mean something; elsewhere the kernel passes over them. RET needs room behind:
 * msg_control_add.
 */
int msg_control_make(struct call *call, const struct msg *m, bool local, struct msg_control *ret);
/* Adds one more item of SIZE bytes. */
void msg_control_add(struct msg_control *c, int level, int type, const void *data, size_t size);
