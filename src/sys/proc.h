/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What procfs tells of other processes. Numbers can be given anew at any time: whoever acts on an
 * answer must prove afterwards that it still holds.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* The number of the group that thread TID is in, -1 if it is gone. */
pid_t proc_group(pid_t tid);
/* The text of the link for descriptor FD of process or thread PID; its length, or a negative errno
 * (-ENOENT: there is no such descriptor). */
ssize_t proc_fd_link(pid_t pid, int fd, char *ret_text, size_t size);
/* Calls FN with each descriptor of PID and the text of its link, until it says true; then true. */
bool proc_each_fd(pid_t pid, bool (*fn)(void *data, int fd, const char *link), void *data);
/* Calls FN with each line of the file PATH, without its end; lines over 510 bytes come in parts. */
int proc_each_line(const char *path, void (*fn)(void *data, const char *line), void *data);
/* PATH with all links followed (owned), as this process sees it; NULL, and errno, if it leads
 * nowhere. For what the user names, before a sandbox runs. */
char *proc_real_path(const char *path);
