/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whose an abstract name is. The kernel's list of Unix sockets gives the inodes that carry the
 * name; a process of the sandbox that holds such a socket makes it the sandbox's own (sock_own.c).
 * What the copy is bound to is asked of the kernel, and so nothing that the sandbox writes into the
 * list's text can mislead.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "supervise/sock.h"
#include "sys/proc.h"

#define UN_PATH_AT offsetof(struct sockaddr_un, sun_path)

enum { NAMED_MAX = 16 }; /* sockets of one name: one per type, and lines that lie */

struct search {
	const struct sock_addr *addr;
	int type;
	char name[sizeof(((struct sockaddr_un *)0)->sun_path) + 1]; /* as the list shows it */
	uint64_t inodes[NAMED_MAX];
	size_t n;
};

/* The name as the list shows it: each NUL as an at sign, at most 108 of them. */
static void shown_name(const struct sock_addr *addr, char *ret_text)
{
	size_t n = addr->len - UN_PATH_AT;
	for (size_t i = 0; i < n; i++)
		ret_text[i] = addr->un.sun_path[i] ? addr->un.sun_path[i] : '@';
	ret_text[n] = '\0';
}

/* Where field N (from 0) of LINE begins, NULL where there are not so many. */
static const char *field_at(const char *line, int n)
{
	line += strspn(line, " ");
	for (; n > 0 && *line; n--) {
		line += strcspn(line, " ");
		line += strspn(line, " ");
	}
	return *line ? line : NULL;
}

/*
 * A line: seven fields, the fifth the type, the last the inode, and the name behind one blank.
 * A name that holds a newline is cut by it, so a name is compared up to its first newline.
 */
static void read_line(void *data, const char *line)
{
	struct search *s = data;
	const char *type = field_at(line, 4);
	const char *inode = type ? field_at(type, 2) : NULL;
	char *end = NULL;
	if (!inode || s->n == NAMED_MAX || strtoul(type, NULL, 16) != (unsigned long)s->type)
		return;
	uint64_t number = strtoull(inode, &end, 10);
	if (end[0] == ' ' && str_eq(end + 1, s->name))
		s->inodes[s->n++] = number;
}

static bool is_it(void *data, int fd)
{
	const struct search *s = data;
	struct sock_addr bound = {0};
	struct sock_info info;
	socklen_t len = sizeof(bound.storage);
	return sock_info_get(fd, &info) == 0 && info.domain == AF_UNIX && info.type == s->type &&
	       getsockname(fd, &bound.sa, &len) == 0 && len == s->addr->len &&
	       memcmp(&bound.storage, &s->addr->storage, len) == 0;
}

int sock_abstract_find(struct call *call, const struct sock_addr *addr, int type, int *ret_hold)
{
	struct search s = {.addr = addr, .type = type};
	shown_name(addr, s.name);
	s.name[strcspn(s.name, "\n")] = '\0';
	if (proc_each_line("/proc/net/unix", read_line, &s) < 0)
		return -EPERM;
	if (!s.n)
		return -ECONNREFUSED;
	struct sock_search what = {.inodes = s.inodes, .n = s.n, .is_it = is_it, .data = &s};
	int hold = sock_own_find(call, &what);
	if (hold < 0)
		return hold;
	*ret_hold = hold;
	return 0;
}
