/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Configuration of root that must look like the user's own. In the base one id exists, so that
 * root's files look like nobody's, and ssh refuses what it includes from /etc/ssh/ssh_config.d
 * then. The sandbox gets a private copy of that directory, owned by its user, where it may read the
 * real one. What the real one would be refused for (other owners, modes) is kept or left alone.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/path.h"
#include "base/util.h"
#include "confine/job.h"
#include "lib/launch.h"
#include "sys/at.h"

enum { FILES_MAX = 64, BYTES_MAX = 64 * 1024 };

static const char ssh_dir[] = "/etc/ssh/ssh_config.d";

struct copies {
	struct job *job;
	const struct policy *policy;
	size_t bytes;
	bool needed; /* one is root's */
};

static bool covers(const struct strv *grants, const char *path)
{
	for (size_t i = 0; i < grants->n; i++) {
		if (path_is_beneath(path, grants->v[i]))
			return true;
	}
	return false;
}

static bool may_read(const struct policy *p, const char *path)
{
	return covers(&p->fs_read, path) || covers(&p->fs_read_if_exists, path);
}

/* A write grant there means the real directory. */
static bool may_write(const struct policy *p)
{
	for (size_t i = 0; i < p->fs_write.n; i++) {
		if (path_is_beneath(ssh_dir, p->fs_write.v[i]) ||
		    path_is_beneath(p->fs_write.v[i], ssh_dir))
			return true;
	}
	return false;
}

/* False where nothing should be copied at all. */
static bool read_file(struct copies *c, int fd, struct job_copy *copy)
{
	struct stat st;
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || (st.st_uid && st.st_uid != geteuid()) ||
	    st.st_size < 0 || (size_t)st.st_size > BYTES_MAX - c->bytes)
		return false;
	size_t size = (size_t)st.st_size;
	char *data = job_alloc(c->job, size + 1);
	if (!data)
		return false;
	ssize_t n = read(fd, data, size);
	if (n < 0)
		return false;
	copy->data = data;
	copy->size = (size_t)n;
	copy->mode = st.st_mode & 0777;
	c->bytes += size;
	c->needed |= st.st_uid == 0;
	return true;
}

/* A link is followed only to what the sandbox could read there; else it stays what it is. */
static bool add_link(struct copies *c, int dir, const char *name, struct job_copy *copy)
{
	char text[PATH_MAX];
	auto_free char *path = path_join(ssh_dir, name);
	auto_free char *real = realpath(path, NULL);
	if (real && may_read(c->policy, real)) {
		auto_close int fd = open(real, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
		if (fd >= 0)
			return read_file(c, fd, copy);
	}
	if (at_read_link_of(dir, name, text, sizeof(text)) < 0)
		return false;
	copy->link = job_strdup(c->job, text);
	return copy->link;
}

static bool add_entry(struct copies *c, int dir, const char *name)
{
	struct job *job = c->job;
	struct at_info info;
	if (job->n_copies == FILES_MAX || at_info_of(dir, name, &info) < 0)
		return false;
	struct job_copy *copy = &job->copies[job->n_copies++];
	copy->name = job_strdup(job, name);
	if (!copy->name)
		return false;
	if (S_ISLNK(info.mode))
		return add_link(c, dir, name, copy);
	auto_close int fd = at_open_entry(dir, name, O_RDONLY | O_NONBLOCK | O_NOCTTY, 0);
	return fd >= 0 && read_file(c, fd, copy);
}

void job_plan_copies(const struct job_request *req, struct job *job)
{
	struct copies c = {.job = job, .policy = req->policy};
	if (!job->base || !job->map_ids || !may_read(req->policy, ssh_dir) ||
	    may_write(req->policy))
		return;
	AUTO(at_dir_done) DIR *dir = at_dir(AT_FDCWD, ssh_dir);
	bool whole = dir;
	for (struct dirent *e = dir ? readdir(dir) : NULL; e && whole; e = readdir(dir)) {
		if (str_eq(e->d_name, ".") || str_eq(e->d_name, ".."))
			continue;
		if (!job->copies)
			job->copies = job_alloc(job, FILES_MAX * sizeof(*job->copies));
		whole = job->copies && add_entry(&c, dirfd(dir), e->d_name);
	}
	if (whole && c.needed)
		job->copies_dir = ssh_dir;
}
