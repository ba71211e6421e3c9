/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What runs inside while tests/fault/run.py lets sandlock's system calls fail: it says `confined`,
 * or `LEAK WHAT` for each layer that is not in force. A call of its own that was made to fail
 * proves nothing and is no leak.
 *
 * Usage: probe SECRET FORBIDDEN-FILE LISTENING-SOCKET no-bounding-set|any-bounding-set
 */
#include <fcntl.h>
#include <linux/capability.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

static int leaks;

static void leak(int is_leak, const char *what)
{
	if (is_leak) {
		printf("LEAK %s\n", what);
		leaks++;
	}
}

static int has_capability(void)
{
	struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[2] = {{0}};

	if (syscall(SYS_capget, &head, data) != 0)
		return 0;
	for (int i = 0; i < 2; i++)
		if (data[i].effective | data[i].permitted | data[i].inheritable)
			return 1;
	return 0;
}

static int has_bounding_capability(void)
{
	for (unsigned long cap = 0; cap <= CAP_CHECKPOINT_RESTORE; cap++)
		if (prctl(PR_CAPBSET_READ, cap, 0, 0, 0) == 1)
			return 1;
	return 0;
}

static int has_descriptor(void)
{
	for (int fd = 3; fd < 1024; fd++)
		if (fcntl(fd, F_GETFD) >= 0)
			return 1;
	return 0;
}

static int can_connect(const char *path)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	snprintf(addr.sun_path, sizeof(addr.sun_path), "%s", path);
	return fd >= 0 && connect(fd, (struct sockaddr *)&addr, sizeof(addr)) == 0;
}

int main(int argc, char **argv)
{
	if (argc != 5)
		return 2;
	leak(has_descriptor(), "a descriptor above 2 is open");
	leak(open(argv[1], O_RDONLY) >= 0, "the secret can be read");
	leak(open(argv[2], O_WRONLY | O_CREAT, 0600) >= 0, "a file can be made outside");
	leak(prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 0, "no_new_privs is not set");
	leak(prctl(PR_GET_SECCOMP, 0, 0, 0, 0) == 0, "no filter is installed");
	leak(can_connect(argv[3]), "a socket outside can be connected to");
	leak(unshare(CLONE_NEWUSER) == 0, "the filter lets user namespaces be made");
	leak(has_capability(), "it has capabilities");
	if (strcmp(argv[4], "no-bounding-set") == 0)
		leak(has_bounding_capability(), "its bounding set is not empty");
	if (leaks == 0)
		printf("confined\n");
	return leaks ? 1 : 0;
}
