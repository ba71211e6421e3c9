/* SPDX-License-Identifier: Apache-2.0 */
/* Reading what guardian and child report on the control socket. */
#pragma once

#include <sys/types.h>

struct report_msg {
	int kind; /* enum job_report */
	int value;
	pid_t pid; /* the sender's, as this process sees it; 0 if unknown */
	int fd;	   /* passed along, owned by the receiver; -1: none */
};

/* One report without blocking: 1, 0 if there is none now, or a negative errno. */
int report_receive(int ctl, struct report_msg *ret_msg);
