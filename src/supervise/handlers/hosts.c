/* SPDX-License-Identifier: Apache-2.0 */
/*
 * /etc/hosts, where names are in play: who opens the host's file for reading gets one that holds
 * the loopback names and the literal names with their current answers, as a sealed file of its own.
 * Only paths that end in "hosts" are looked at; another name of the file shows the real one.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/util.h"
#include "net/names.h"
#include "supervise/act.h"
#include "supervise/box.h"
#include "supervise/handlers/special.h"
#include "supervise/resolve.h"
#include "supervise/sock.h"
#include "sys/at.h"

#define HOSTS "/etc/hosts"

static bool is_called_hosts(const char *path)
{
	const char *slash = strrchr(path, '/');
	return str_eq(slash ? slash + 1 : path, "hosts");
}

static bool only_reads(const struct open_request *req)
{
	return (req->flags & O_ACCMODE) == O_RDONLY &&
	       !(req->flags & (O_PATH | O_CREAT | O_TRUNC | O_DIRECTORY));
}

/* 1: it is the file, 0: it is not, -EAGAIN: to be found out on a worker. */
static int is_hosts(struct call *call, const struct open_request *req)
{
	AUTO(resolved_done) struct resolved r = RESOLVED_INIT;
	AUTO(act_end) struct act act;
	struct at_info info;
	auto_close int own = at_open(AT_FDCWD, HOSTS, 0, 0);
	int e = act_begin(call->box, &act);
	if (e == 0)
		e = resolve_path(call, req->dirfd, req->text,
				 req->flags & O_NOFOLLOW ? RESOLVE_NOFOLLOW : 0, &r);
	if (e == -EAGAIN)
		return e;
	return e == 0 && S_ISREG(r.mode) && own >= 0 && at_info(own, &info) == 0 &&
	       info.dev == r.dev && info.ino == r.ino;
}

static int make_file(struct names *names)
{
	auto_free char *text = names_hosts_text(names, sock_now_ms());
	size_t n = strlen(text);
	auto_close int fd = memfd_create("hosts", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd < 0)
		return -errno;
	if (write(fd, text, n) != (ssize_t)n || lseek(fd, 0, SEEK_SET) < 0 ||
	    fcntl(fd, F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE) < 0)
		return errno ? -errno : -EIO;
	return take_fd(&fd);
}

bool hosts_takes(struct call *call, const struct open_request *req, struct verdict *ret)
{
	if (!is_called_hosts(req->text) || !only_reads(req))
		return false;
	int is = is_hosts(call, req);
	if (is == -EAGAIN) {
		*ret = (struct verdict){.answer = ANSWER_WORKER};
		return !call->on_worker;
	}
	if (is <= 0)
		return false;
	int fd = make_file(call->box->names);
	*ret = fd < 0 ? verdict_errno(-fd) : verdict_fd(fd, req->flags & O_CLOEXEC);
	return true;
}
