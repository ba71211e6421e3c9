/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Executing, as Landlock will judge it: the file itself and what the kernel executes for it, the
 * interpreter of a script or the loader that an ELF file names.
 */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/util.h"
#include "supervise/explain_path.h"
#include "sys/at.h"

enum { HEAD_SIZE = 4096, DEPTH_MAX = 4 };

/* The word behind "#!"; false if there is none. */
static bool script_interpreter(const char *head, size_t n, char *ret_path, size_t size)
{
	if (n < 3 || head[0] != '#' || head[1] != '!')
		return false;
	const char *word = head + 2 + strspn(head + 2, " \t");
	size_t len = strcspn(word, " \t\n");
	if (!len || len >= size)
		return false;
	snprintf(ret_path, size, "%.*s", (int)len, word);
	return true;
}

/* The file of this machine's own kind of ELF, whose table lies in its first page. */
static bool elf_interpreter(const char *head, size_t n, char *ret_path, size_t size)
{
	Elf64_Ehdr eh;
	Elf64_Phdr ph;
	if (n < sizeof(eh) || memcmp(head, ELFMAG, SELFMAG) != 0)
		return false;
	memcpy(&eh, head, sizeof(eh));
	if (eh.e_ident[EI_CLASS] != ELFCLASS64 || eh.e_phentsize != sizeof(ph))
		return false;
	for (size_t i = 0; i < eh.e_phnum; i++) {
		if (eh.e_phoff > n || n - eh.e_phoff < (i + 1) * sizeof(ph))
			return false;
		memcpy(&ph, head + eh.e_phoff + i * sizeof(ph), sizeof(ph));
		if (ph.p_type != PT_INTERP)
			continue;
		if (ph.p_filesz == 0 || ph.p_filesz >= size || ph.p_offset > n ||
		    n - ph.p_offset < ph.p_filesz)
			return false;
		memcpy(ret_path, head + ph.p_offset, ph.p_filesz);
		ret_path[ph.p_filesz] = '\0';
		return ret_path[0] != '\0';
	}
	return false;
}

/* What the kernel executes for the file of FD (O_PATH, regular); false: nothing that is known. */
static bool find_interpreter(int fd, char *ret_path, size_t size)
{
	char head[HEAD_SIZE + 1];
	auto_close int file = at_reopen(fd, O_RDONLY | O_NONBLOCK | O_NOCTTY);
	ssize_t n = file < 0 ? -1 : pread(file, head, HEAD_SIZE, 0);
	if (n <= 0)
		return false;
	head[n] = '\0';
	return script_interpreter(head, (size_t)n, ret_path, size) ||
	       elf_interpreter(head, (size_t)n, ret_path, size);
}

static int judge_exec(struct call *call, const struct explain_path *p, const void *how,
		      struct explained *ret)
{
	unsigned int flags = *(const unsigned int *)how;
	struct explain_path at = *p;
	for (int depth = 0; depth < DEPTH_MAX; depth++) {
		AUTO(resolved_done) struct resolved r = RESOLVED_INIT;
		int e = explain_resolve(call, &at, flags, &r);
		if (e < 0 || !S_ISREG(r.mode))
			return e;
		e = explain_judge(call, &r, X_OK, ret);
		if (e != 0 || at_access(r.fd, X_OK) < 0)
			return e;
		if (!find_interpreter(r.fd, at.text, sizeof(at.text)))
			return 0;
		at.dirfd = AT_FDCWD;
		flags = 0;
	}
	return 0;
}

int explain_exec(struct call *call)
{
	struct explain_path p;
	unsigned int flags = 0;
	bool at = str_eq(call->row->name, "execveat");
	int at_flags = at ? call_int(call, 4) : 0;
	if (!at && !str_eq(call->row->name, "execve"))
		return -EINVAL;
	int r = explain_read_path(call, 0, &p);
	if (at_flags & AT_EMPTY_PATH)
		flags |= RESOLVE_EMPTY;
	if (at_flags & AT_SYMLINK_NOFOLLOW)
		flags |= RESOLVE_NOFOLLOW;
	return r < 0 ? r : explain_with(call, &p, judge_exec, &flags);
}
