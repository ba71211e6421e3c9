/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Why a command could not be executed, looked at from outside after the fact: the file, the grant
 * it lacks, and the interpreter or loader that the kernel wanted with it (execve(2), elf(5)). Runs
 * no foreign code and decides nothing; it only finds words.
 */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/util.h"
#include "confine/job.h"
#include "lib/launch.h"

#define HEADER_SIZE 4096

/* PATH as the child meant it: relative ones start at its working directory. */
static char *full_path(const struct job *job, const char *path)
{
	if (path[0] == '/' || !job->cwd)
		return xstrdup(path);
	return xasprintf("%s/%s", job->cwd, path);
}

static bool covered_by(const struct strv *grants, const char *real)
{
	for (size_t i = 0; i < grants->n; i++) {
		char buf[PATH_MAX];
		const char *g = realpath(grants->v[i], buf) ? buf : grants->v[i];
		size_t n = strlen(g);
		if (str_eq(g, "/") ||
		    (strncmp(real, g, n) == 0 && (real[n] == '\0' || real[n] == '/')))
			return true;
	}
	return false;
}

/* Says so if no grant lets REAL be executed. WHAT: "the interpreter ", or "". */
static bool explain_grant(const struct policy *p, const char *what, const char *path,
			  char *ret_text, size_t size)
{
	char real[PATH_MAX];
	if (!realpath(path, real)) {
		snprintf(ret_text, size, "%s%s does not exist", what, path);
		return true;
	}
	if (covered_by(&p->fs_read, real) || covered_by(&p->fs_read_if_exists, real) ||
	    covered_by(&p->fs_write, real))
		return false;
	char dir[PATH_MAX];
	snprintf(dir, sizeof(dir), "%s", real);
	char *slash = strrchr(dir, '/');
	if (slash && slash != dir)
		*slash = '\0';
	snprintf(ret_text, size, "%s%s%s%s is not granted: add -r %s", what, path,
		 str_eq(path, real) ? "" : " -> ", str_eq(path, real) ? "" : real, dir);
	return true;
}

/* The interpreter of a script ("#!/bin/sh -e"), or "". */
static void script_interpreter(const char *head, size_t n, char *ret_path, size_t size)
{
	size_t i = 2;
	size_t k = 0;
	while (i < n && (head[i] == ' ' || head[i] == '\t'))
		i++;
	while (i < n && k + 1 < size && !strchr(" \t\n", head[i]) && head[i])
		ret_path[k++] = head[i++];
	ret_path[k] = '\0';
}

/* The dynamic loader of an ELF file of this machine's word size, or "". */
static void elf_loader(int fd, const char *head, size_t n, char *ret_path, size_t size)
{
	Elf64_Ehdr eh;
	ret_path[0] = '\0';
	if (n < sizeof(eh))
		return;
	memcpy(&eh, head, sizeof(eh));
	if (eh.e_ident[EI_CLASS] != ELFCLASS64 || eh.e_phentsize != sizeof(Elf64_Phdr))
		return;
	for (size_t i = 0; i < eh.e_phnum; i++) {
		Elf64_Phdr ph;
		off_t at = (off_t)(eh.e_phoff + i * sizeof(ph));
		if (pread(fd, &ph, sizeof(ph), at) != (ssize_t)sizeof(ph))
			return;
		if (ph.p_type != PT_INTERP)
			continue;
		size_t want = ph.p_filesz < size ? ph.p_filesz : size - 1;
		ssize_t got = pread(fd, ret_path, want, (off_t)ph.p_offset);
		ret_path[got > 0 ? got : 0] = '\0';
		return;
	}
}

/* Opens PATH if it is a regular file: a device or FIFO that a script names is not touched. */
static int open_regular(const char *path)
{
	struct stat st;
	char again[64];
	auto_close int handle = open(path, O_PATH | O_CLOEXEC);
	if (handle < 0 || fstat(handle, &st) < 0 || !S_ISREG(st.st_mode))
		return -1;
	snprintf(again, sizeof(again), "/proc/self/fd/%d", handle);
	return open(again, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
}

static void explain_format(const struct policy *p, const char *path, int code, char *ret_text,
			   size_t size)
{
	char head[HEADER_SIZE];
	char other[PATH_MAX];
	auto_close int fd = open_regular(path);
	ssize_t n = fd >= 0 ? read(fd, head, sizeof(head)) : -1;
	if (n < 2)
		return;
	if (head[0] == '#' && head[1] == '!') {
		script_interpreter(head, (size_t)n, other, sizeof(other));
		if (other[0] && explain_grant(p, "its interpreter ", other, ret_text, size))
			return;
		auto_close int ifd = open_regular(other);
		n = ifd >= 0 ? read(ifd, head, sizeof(head)) : -1;
		if (n > 4)
			elf_loader(ifd, head, (size_t)n, other, sizeof(other));
		if (n > 4 && other[0])
			explain_grant(p, "the loader of its interpreter, ", other, ret_text, size);
		return;
	}
	if (n >= 4 && memcmp(head, ELFMAG, SELFMAG) == 0) {
		elf_loader(fd, head, (size_t)n, other, sizeof(other));
		if (other[0])
			explain_grant(p, "its loader ", other, ret_text, size);
		if (!ret_text[0] && code == ENOEXEC)
			snprintf(ret_text, size, "it is a program for another machine");
		return;
	}
	if (code == ENOEXEC)
		snprintf(ret_text, size,
			 "it is neither a program of this machine nor a script with a #! line, and "
			 "/bin/sh could not be executed for it");
}

bool exec_explain(const struct job_request *req, const struct job *job, char *ret_text, size_t size)
{
	const char *name = req->spawn->argv[0];
	int code = job->state.step_errno;
	ret_text[0] = '\0';
	bool found = false;
	for (size_t i = 0; job->candidates[i] && !ret_text[0]; i++) {
		auto_free char *path = full_path(job, job->candidates[i]);
		struct stat st;
		if (stat(path, &st) < 0)
			continue;
		found = true;
		if (S_ISDIR(st.st_mode))
			snprintf(ret_text, size, "%s is a directory", path);
		else if (!(st.st_mode & 0111))
			snprintf(ret_text, size, "%s has no execute permission: chmod +x it", path);
		else if (!explain_grant(req->policy, "", path, ret_text, size))
			explain_format(req->policy, path, code, ret_text, size);
	}
	if (!found && strchr(name, '/'))
		snprintf(ret_text, size, "there is no such file");
	else if (!found)
		snprintf(ret_text, size, "there is no such command on the sandbox's PATH");
	return found;
}
