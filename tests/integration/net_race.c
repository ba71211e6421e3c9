/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Races against whoever judges Internet destinations: threads swap what was looked at.
 *
 *   net-race connect|send|fd|bind OWN FOREIGN SECONDS
 *
 * OWN and FOREIGN are ports of 127.0.0.1: OWN may be reached, FOREIGN may not. A TCP server answers
 * "a" on OWN and "f" on FOREIGN. For bind, FOREIGN is a UDP port that may not be bound, to which
 * somebody outside sends all the time. Prints asked=N reached=N foreign=N.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

enum { SWAPPERS = 3 };

union address {
	struct sockaddr sa;
	struct sockaddr_in in;
	struct sockaddr_un un;
};

struct race {
	const char *mode;
	union address own;
	union address foreign;
	union address asked; /* swapped underneath */
	int number;	     /* a descriptor, swapped underneath */
	int harmless;
	int udp;
	volatile int over;
};

static double now(void)
{
	struct timespec ts;
	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static void *swap(void *arg)
{
	struct race *r = arg;
	bool fds = strcmp(r->mode, "fd") == 0 || strcmp(r->mode, "bind") == 0;
	bool addresses = strcmp(r->mode, "fd") != 0;
	for (unsigned int i = 0; !r->over; i++) {
		bool odd = i & 1;
		if (addresses)
			memcpy(&r->asked, odd ? &r->foreign : &r->own, sizeof(r->own));
		if (fds)
			dup2(odd ? r->udp : r->harmless, r->number);
		for (volatile int spin = 0; spin < 300; spin++)
			;
	}
	return NULL;
}

static char ask_connect(struct race *r)
{
	char answer = 0;
	struct timeval limit = {.tv_sec = 2};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	if (connect(fd, &r->asked.sa, sizeof(r->asked.in)) == 0 && recv(fd, &answer, 1, 0) != 1)
		answer = 0;
	close(fd);
	return answer;
}

/* Who got it is told by the receivers. */
static char ask_send(struct race *r, int fd, unsigned int i)
{
	struct iovec v = {(void *)(uintptr_t) "x", 1};
	struct mmsghdr m = {.msg_hdr = {.msg_name = &r->asked,
					.msg_namelen = sizeof(r->asked.in),
					.msg_iov = &v,
					.msg_iovlen = 1}};
	if (i % 3 == 0)
		return sendto(fd, "x", 1, MSG_NOSIGNAL, &r->asked.sa, sizeof(r->asked.in)) == 1
			       ? 'a'
			       : 0;
	if (i % 3 == 1)
		return sendmsg(fd, &m.msg_hdr, MSG_NOSIGNAL) == 1 ? 'a' : 0;
	return sendmmsg(fd, &m, 1, MSG_NOSIGNAL) == 1 ? 'a' : 0;
}

/* A descriptor that was a Unix socket when it was looked at. 'f': something came to the port. */
static char ask_bind(struct race *r)
{
	char answer = 0;
	char text[8];
	struct timeval limit = {.tv_usec = 20000};
	struct sockaddr_in at = {0};
	socklen_t n = sizeof(at);
	if (bind(r->number, &r->asked.sa, sizeof(r->asked.in)) == 0)
		answer = 'a';
	if (getsockname(r->udp, (struct sockaddr *)&at, &n) == 0 && at.sin_port) {
		setsockopt(r->udp, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
		if (recv(r->udp, text, sizeof(text), 0) > 0)
			answer = 'f';
	}
	int udp = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	int unix_socket = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	dup2(udp, r->udp);
	dup2(unix_socket, r->harmless);
	close(udp);
	close(unix_socket);
	return answer;
}

static void prepare(struct race *r, char **argv)
{
	int pair[2];
	r->mode = argv[1];
	r->own.in.sin_family = r->foreign.in.sin_family = AF_INET;
	r->own.in.sin_addr.s_addr = r->foreign.in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	r->own.in.sin_port = htons((uint16_t)strtol(argv[2], NULL, 10));
	r->foreign.in.sin_port = htons((uint16_t)strtol(argv[3], NULL, 10));
	if (strcmp(r->mode, "bind") == 0) {
		/* Autobind: an abstract name of as many bytes as the other address has. */
		memset(&r->own, 0, sizeof(r->own));
		r->own.un.sun_family = AF_UNIX;
		snprintf(r->own.un.sun_path + 1, 13, "%d", getpid());
	}
	r->asked = strcmp(r->mode, "fd") == 0 ? r->foreign : r->own;
	r->udp = socket(AF_INET, SOCK_DGRAM, 0);
	if (r->udp < 0 || socketpair(AF_UNIX, SOCK_STREAM, 0, pair) < 0)
		exit(2);
	r->harmless = pair[0];
	r->number = dup(r->udp);
}

int main(int argc, char **argv)
{
	static struct race r;
	unsigned long asked = 0, reached = 0, foreign = 0;
	pthread_t threads[SWAPPERS];
	if (argc != 5)
		return 2;
	prepare(&r, argv);
	double end = now() + strtod(argv[4], NULL);
	for (int i = 0; i < SWAPPERS; i++)
		if (pthread_create(&threads[i], NULL, swap, &r))
			return 2;
	for (unsigned int i = 0; now() < end; i++) {
		char answer = 0;
		if (strcmp(r.mode, "connect") == 0)
			answer = ask_connect(&r);
		else if (strcmp(r.mode, "bind") == 0)
			answer = ask_bind(&r);
		else
			answer = ask_send(&r, r.mode[0] == 'f' ? r.number : r.udp, i);
		asked++;
		reached += answer == 'a';
		foreign += answer == 'f';
	}
	r.over = 1;
	for (int i = 0; i < SWAPPERS; i++)
		pthread_join(threads[i], NULL);
	printf("asked=%lu\nreached=%lu\nforeign=%lu\n", asked, reached, foreign);
	return 0;
}
