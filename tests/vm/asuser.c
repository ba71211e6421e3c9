/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs a command in the virtual machine as uid and gid 1000, which busybox has no applet for.
 */
#include <grp.h>
#include <stdio.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	if (argc < 2)
		return 2;
	if (setgroups(0, NULL) || setgid(1000) || setuid(1000)) {
		perror("asuser");
		return 2;
	}
	execv(argv[1], argv + 1);
	perror(argv[1]);
	return 127;
}
