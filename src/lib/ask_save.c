/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The file of --ask-save. It is read anew for each rule and replaced as a whole, so that a reader,
 * or a crash, finds either the old or the new one; a lock on its directory keeps two sandboxes with
 * the same file from losing each other's rules.
 */
#include "lib/ask_save.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/util.h"
#include "base/value.h"
#include "lib/launch.h"
#include "supervise/ask.h"

#define HEADING "# What was allowed in answers to --net-ask: a profile for --profile-file.\n"
/* For the lock, which others hold for a moment only. */
#define LOCK_TRIES 20

struct ask_save {
	pthread_mutex_t lock;
	int dir_fd;
	char *name;
	char *temporary; /* the name that the new file has until it is whole */
};

void ask_save_free(struct ask_save *s)
{
	if (!s)
		return;
	pthread_mutex_destroy(&s->lock);
	util_close(s->dir_fd);
	free(s->name);
	free(s->temporary);
	free(s);
}

static void ask_save_free_cleanup(struct ask_save **s)
{
	ask_save_free(*s);
}

/* --- The file ------------------------------------------------------------------------------- */

/* Its tree: an empty one where there is no file. Links are not followed. */
static int read_tree(const struct ask_save *s, struct value **ret_root)
{
	struct stat st;
	auto_close int fd = openat(s->dir_fd, s->name,
				   O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (fd < 0 && errno == ENOENT) {
		*ret_root = value_new(VALUE_TABLE);
		return 0;
	}
	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EINVAL;
	if ((uint64_t)st.st_size > VALUE_TEXT_MAX)
		return -E2BIG;
	auto_free char *text = xzalloc((size_t)st.st_size + 1);
	ssize_t n = pread(fd, text, (size_t)st.st_size, 0);
	if (n < 0)
		return -errno;
	return toml_parse(text, (size_t)n, s->name, ret_root, NULL);
}

/* The list network.allow of ROOT, made where it is missing; NULL if something else is there. */
static struct value *allow_list(struct value *root)
{
	struct value *network = value_get(root, "network");
	if (!network) {
		network = value_new(VALUE_TABLE);
		value_table_put_take(root, "network", network);
	}
	if (network->kind != VALUE_TABLE)
		return NULL;
	struct value *allow = value_get(network, "allow");
	if (!allow) {
		allow = value_new(VALUE_ARRAY);
		value_table_put_take(network, "allow", allow);
	}
	return allow->kind == VALUE_ARRAY ? allow : NULL;
}

static bool has_text(const struct value *list, const char *text)
{
	for (size_t i = 0; i < list->n; i++) {
		if (list->items[i]->kind == VALUE_STRING && str_eq(list->items[i]->str, text))
			return true;
	}
	return false;
}

static int write_whole(int fd, const char *text, size_t len)
{
	for (size_t done = 0; done < len;) {
		ssize_t n = write(fd, text + done, len - done);
		if (n < 0 && errno != EINTR)
			return -errno;
		done += n > 0 ? (size_t)n : 0;
	}
	return 0;
}

static int create_temporary(const struct ask_save *s)
{
	/* Left by one that was killed; the lock says that nobody is at it. */
	unlinkat(s->dir_fd, s->temporary, 0);
	int fd = openat(s->dir_fd, s->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	return fd < 0 ? -errno : fd;
}

static int replace(const struct ask_save *s, const char *text)
{
	auto_close int fd = create_temporary(s);
	if (fd < 0)
		return fd;
	int r = write_whole(fd, HEADING, strlen(HEADING));
	if (r == 0)
		r = write_whole(fd, text, strlen(text));
	if (r == 0 && renameat(s->dir_fd, s->temporary, s->dir_fd, s->name) < 0)
		r = -errno;
	if (r < 0)
		unlinkat(s->dir_fd, s->temporary, 0);
	return r;
}

static int take_lock(const struct ask_save *s)
{
	for (int i = 0; i < LOCK_TRIES; i++) {
		if (flock(s->dir_fd, LOCK_EX | LOCK_NB) == 0)
			return 0;
		if (errno != EWOULDBLOCK)
			return -errno;
		nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
	}
	return -EBUSY;
}

static char *rule_text(const struct ask_question *q)
{
	const char *proto = q->point.proto == NET_UDP ? "udp" : "tcp";
	char text[NET_POINT_TEXT_MAX];
	if (q->n_hosts == 1)
		return xasprintf("%s://%s:%u", proto, q->host, q->point.port);
	net_point_format(&q->point, text);
	return xasprintf("%s://%s", proto, text);
}

static int add_rule(const struct ask_save *s, const char *rule)
{
	AUTO(value_free) struct value *root = NULL;
	int r = read_tree(s, &root);
	struct value *allow = r == 0 ? allow_list(root) : NULL;
	if (!allow)
		return r < 0 ? r : -EINVAL;
	if (has_text(allow, rule))
		return 0;
	value_array_add_take(allow, value_new_string(rule));
	auto_free char *text = toml_write(root);
	return replace(s, text);
}

int ask_save_add(struct ask_save *s, const struct ask_question *q)
{
	if (!s)
		return 0;
	auto_free char *rule = rule_text(q);
	pthread_mutex_lock(&s->lock);
	int r = take_lock(s);
	if (r == 0) {
		r = add_rule(s, rule);
		flock(s->dir_fd, LOCK_UN);
	}
	pthread_mutex_unlock(&s->lock);
	return r;
}

/* --- Before the start ----------------------------------------------------------------------- */

static bool below(const char *path, const char *dir)
{
	size_t n = strlen(dir);
	if (n == 1)
		return true;
	return strncmp(path, dir, n) == 0 && (path[n] == '\0' || path[n] == '/');
}

/* Whoever can write there would choose what is allowed the next time. */
static int check_grants(const struct policy *p, const char *path, struct sandlock_error *err)
{
	char q[QUOTE_SIZE];
	for (size_t i = 0; i < p->fs_write.n; i++) {
		auto_free char *real = realpath(p->fs_write.v[i], NULL);
		if (real && below(path, real))
			return api_fail(err, SANDLOCK_E_INVALID, EPERM,
					"--ask-save %s lies in what --fs-write grants, where the "
					"sandbox could add rules itself: choose another place",
					quote_str(p->ask_save, q, sizeof(q)));
	}
	return 0;
}

/* That what is there can be added to, and that there is room beside it. */
static int try_out(const struct ask_save *s)
{
	AUTO(value_free) struct value *root = NULL;
	int r = read_tree(s, &root);
	if (r == 0 && !allow_list(root))
		r = -EINVAL;
	if (r == 0)
		r = take_lock(s);
	if (r < 0)
		return r;
	auto_close int fd = create_temporary(s);
	if (fd < 0)
		r = fd;
	else
		unlinkat(s->dir_fd, s->temporary, 0);
	if (r == 0 && faccessat(s->dir_fd, s->name, F_OK, AT_SYMLINK_NOFOLLOW) < 0)
		r = replace(s, "");
	flock(s->dir_fd, LOCK_UN);
	return r;
}

static int fail(const struct policy *p, int code, struct sandlock_error *err)
{
	char q[QUOTE_SIZE];
	return api_fail(err, SANDLOCK_E_INVALID, -code,
			"--ask-save %s cannot be added to: %s; name a profile in TOML, or a file "
			"that does not exist yet in a directory that you may write to",
			quote_str(p->ask_save, q, sizeof(q)), strerror(-code));
}

int ask_save_open(const struct policy *policy, struct ask_save **ret_save,
		  struct sandlock_error *err)
{
	*ret_save = NULL;
	if (!policy->ask_save)
		return 0;
	const char *slash = strrchr(policy->ask_save, '/');
	if (!slash || !slash[1] || strlen(slash + 1) > NAME_MAX - 16)
		return fail(policy, -EINVAL, err);
	auto_free char *dir = xstrndup(policy->ask_save, (size_t)(slash - policy->ask_save) + 1);
	auto_free char *real = realpath(dir, NULL);
	if (!real)
		return fail(policy, -errno, err);
	auto_free char *path = xasprintf("%s/%s", str_eq(real, "/") ? "" : real, slash + 1);
	int r = check_grants(policy, path, err);
	if (r < 0)
		return r;
	AUTO(ask_save_free) struct ask_save *s = xnew(struct ask_save);
	pthread_mutex_init(&s->lock, NULL);
	s->name = xstrdup(slash + 1);
	s->temporary = xasprintf(".%s.sandlock", slash + 1);
	s->dir_fd = open(real, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	r = s->dir_fd < 0 ? -errno : try_out(s);
	if (r < 0)
		return fail(policy, r, err);
	*ret_save = take_ptr(s);
	return 0;
}
