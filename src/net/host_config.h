/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The host's own name service, as its files say: name servers and search list of resolv.conf, and
 * the lines of hosts. The texts are the administrator's, and are read leniently, as libc does: what
 * is not understood is passed over. Pure, but for the functions that read the files.
 */
#pragma once

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include "base/strv.h"

enum { HOST_SERVERS_MAX = 3 };

union inet_addr {
	struct sockaddr sa;
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
	struct sockaddr_storage storage;
};

struct host_address {
	char *name; /* owned; lower case */
	bool v6;
	uint8_t addr[16];
};

struct host_config {
	union inet_addr servers[HOST_SERVERS_MAX];
	size_t n_servers;
	struct strv search; /* lower case, no dot at the end */
	struct host_address *hosts;
	size_t n_hosts;
};

void host_config_done(struct host_config *c);
/* Where there is no server, it is this machine, as in libc. */
void host_config_add_resolv(struct host_config *c, const char *text);
void host_config_add_hosts(struct host_config *c, const char *text);

/* What identifies a state of the two files. */
struct host_stamp {
	struct {
		uint64_t dev, ino;
		int64_t size, sec, nsec;
	} file[2];
};

void host_stamp_get(struct host_stamp *ret);
/* Reads /etc/resolv.conf and /etc/hosts as they are now. */
void host_config_read(struct host_config *ret);
