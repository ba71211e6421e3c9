/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where profiles are: the user's own directories, the built-in ones, files by path. A profile's
 * name is never a path: it holds no slash and is looked for in these places only.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/path.h"
#include "base/util.h"
#include "base/value.h"
#include "lib/lib_internal.h"
#include "policy/embedded.h"

#define BUILTIN_PREFIX "builtin:"
#define PROFILE_SUFFIX ".toml"

enum { PROFILE_NAME_MAX = 64, PROFILES_MAX = 4096 };

void profile_text_done(struct profile_text *t)
{
	free(t->text);
	free(t->label);
	free(t->dir);
	free(t->id);
	*t = (struct profile_text){0};
}

/* --- Directories -------------------------------------------------------------------------- */

/* The directories of own profiles, best first; either may be missing. */
static struct strv profile_dirs(void)
{
	const char *config = getenv("XDG_CONFIG_HOME");
	const char *home = getenv("HOME");
	struct strv dirs = {0};

	if (config && config[0] == '/') {
		auto_free char *base = path_normalize(config);

		strv_add_take(&dirs, path_join(base, "sandlock/profiles"));
	}
	if (home && home[0] == '/') {
		auto_free char *base = path_normalize(home);
		auto_free char *dir = path_join(base, ".config/sandlock/profiles");

		if (!strv_has(&dirs, dir))
			strv_add_take(&dirs, take_ptr(dir));
	}
	return dirs;
}

static int check_name(const char *name, struct err *err)
{
	size_t len = strlen(name);
	char q[QUOTE_SIZE];

	quote_str(name, q, sizeof(q));
	if (len == 0 || len > PROFILE_NAME_MAX)
		return err_set(err, EINVAL, "profile name %s is not 1 to 64 bytes long", q);
	if (strchr(name, '/'))
		return err_set(err, EINVAL,
			       "profile name %s holds a slash; --profile-file takes a path", q);
	if (name[0] == '.' || name[0] == '-')
		return err_set(err, EINVAL, "profile name %s begins with a dot or a dash", q);
	for (const char *p = name; *p; p++)
		if ((unsigned char)*p <= 0x20 || *p == 0x7f || *p == ':')
			return err_set(
				err, EINVAL,
				"profile name %s holds a blank, a colon or a control character", q);
	return 0;
}

/* --- Reading ------------------------------------------------------------------------------ */

static int read_stream(FILE *f, const char *label, struct profile_text *t, struct err *err)
{
	AUTO(buf_done) struct buf b = BUF_INIT(VALUE_TEXT_MAX);
	char chunk[4096];
	size_t n;

	buf_add_str(&b, "");
	while (!b.error && (n = fread(chunk, 1, sizeof(chunk), f)) > 0)
		buf_add(&b, chunk, n);
	if (b.error)
		return err_set(err, E2BIG, "%s is larger than 1 MiB, too large for a policy file",
			       label);
	if (ferror(f))
		return err_sys(err, errno ? errno : EIO, "%s cannot be read", label);
	t->len = b.len;
	t->text = buf_take(&b);
	return 0;
}

static bool starts_with_brace(const struct profile_text *t)
{
	return t->text && t->text[strspn(t->text, " \t\r\n")] == '{';
}

static int read_stdin(struct profile_text *ret, struct err *err)
{
	struct profile_text t = {0};
	int r = read_stream(stdin, "standard input", &t, err);

	if (r < 0)
		return r;
	t.json = starts_with_brace(&t);
	t.label = xstrdup("standard input");
	t.id = xstrdup("-");
	*ret = t;
	return 0;
}

/* Whether PATH names one of our own descriptors, as the shell's <(command) does. */
static bool is_descriptor_path(const char *path)
{
	return str_starts(path, "/dev/fd/") || str_starts(path, "/proc/self/fd/") ||
	       str_eq(path, "/dev/stdin");
}

/* A FIFO by name could keep us waiting for its other end for ever. */
static int check_kind(const char *path, const struct stat *st, struct err *err)
{
	char q[QUOTE_SIZE];

	quote_str(path, q, sizeof(q));
	if (S_ISDIR(st->st_mode))
		return err_set(err, EISDIR, "%s is a directory, not a policy file", q);
	if (S_ISREG(st->st_mode) || S_ISCHR(st->st_mode) ||
	    (S_ISFIFO(st->st_mode) && is_descriptor_path(path)))
		return 0;
	return err_set(err, EINVAL, "%s is not a regular file; - reads a policy from a pipe", q);
}

/* Opens PATH; -ENOENT is left to the caller to word. */
static int open_file(const char *path, FILE **ret, char **ret_id, struct err *err)
{
	auto_close int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	char q[QUOTE_SIZE];
	struct stat st;

	quote_str(path, q, sizeof(q));
	if (fd < 0 && errno == ENOENT)
		return -ENOENT;
	if (fd < 0 || fstat(fd, &st) < 0)
		return err_sys(err, errno, "the policy file %s cannot be opened", q);

	int r = check_kind(path, &st, err);

	if (r < 0)
		return r;
	if (fcntl(fd, F_SETFL, 0) < 0)
		return err_sys(err, errno, "the policy file %s cannot be read", q);
	*ret = fdopen(fd, "r");
	if (!*ret)
		return err_sys(err, errno, "the policy file %s cannot be read", q);
	take_fd(&fd);
	*ret_id = xasprintf("%llu:%llu", (unsigned long long)st.st_dev,
			    (unsigned long long)st.st_ino);
	return 0;
}

/* -ENOENT without a message where there is no such file. */
static int read_file(const char *path, struct profile_text *ret, struct err *err)
{
	struct profile_text t = {0};
	FILE *f = NULL;
	int r = open_file(path, &f, &t.id, err);

	if (r < 0)
		return r;
	AUTO(buf_done) struct buf label = BUF_INIT(65536);

	buf_add_terminal(&label, path, strlen(path));
	t.label = buf_take(&label);
	r = read_stream(f, t.label, &t, err);
	fclose(f);
	if (r < 0) {
		profile_text_done(&t);
		return r;
	}
	t.json = str_ends(path, ".json");
	*ret = t;
	return 0;
}

int profile_read_path(const char *path, const char *from_dir, struct profile_text *ret,
		      struct err *err)
{
	char q[QUOTE_SIZE];

	if (str_eq(path, "-"))
		return read_stdin(ret, err);
	if (!path[0])
		return err_set(err, EINVAL, "the name of the policy file is empty");

	auto_free char *full = from_dir ? path_join(from_dir, path) : xstrdup(path);
	int r = read_file(path[0] == '/' ? path : full, ret, err);

	if (r == -ENOENT)
		return err_set(err, ENOENT, "there is no policy file %s",
			       quote_str(path, q, sizeof(q)));
	if (r < 0)
		return r;

	auto_free char *cwd = getcwd(NULL, 0);
	auto_free char *abs = full[0] == '/' || (cwd && cwd[0] == '/')
				      ? path_absolute(cwd ? cwd : "/", full)
				      : NULL;

	ret->dir = abs ? path_dirname(abs) : NULL;
	return 0;
}

/* The text of built-in profile NAME, NULL if there is none. */
static const char *builtin_profile_text(const char *name)
{
	auto_free char *file = xasprintf("%s" PROFILE_SUFFIX, name);

	return embedded_text(file);
}

static int read_builtin(const char *name, struct profile_text *ret, struct err *err)
{
	const char *text = builtin_profile_text(name);
	char q[QUOTE_SIZE];

	if (!text)
		return err_set(err, ENOENT,
			       "there is no built-in profile %s; sandlock profile list shows all",
			       quote_str(name, q, sizeof(q)));
	*ret = (struct profile_text){
		.text = xstrdup(text),
		.len = strlen(text),
		.label = xasprintf(BUILTIN_PREFIX "%s", name),
		.id = xasprintf(BUILTIN_PREFIX "%s", name),
	};
	return 0;
}

/* The user's own profile NAME: its path (owned), or NULL. */
static char *find_own(const char *name)
{
	struct strv dirs = profile_dirs();
	char *found = NULL;

	for (size_t i = 0; !found && i < dirs.n; i++) {
		auto_free char *file = xasprintf("%s" PROFILE_SUFFIX, name);
		auto_free char *path = path_join(dirs.v[i], file);
		struct stat st;

		if (lstat(path, &st) == 0 || errno != ENOENT)
			found = errno == ENOTDIR ? NULL : take_ptr(path);
	}
	strv_done(&dirs);
	return found;
}

int profile_read_name(const char *name, struct profile_text *ret, struct err *err)
{
	bool forced = str_starts(name, BUILTIN_PREFIX);
	const char *bare = forced ? name + strlen(BUILTIN_PREFIX) : name;
	char q[QUOTE_SIZE];
	int r = check_name(bare, err);

	if (r < 0)
		return r;
	if (forced)
		return read_builtin(bare, ret, err);

	auto_free char *path = find_own(name);

	if (path)
		return profile_read_path(path, NULL, ret, err);
	if (builtin_profile_text(name))
		return read_builtin(name, ret, err);
	return err_set(err, ENOENT, "there is no profile %s; sandlock profile list shows all",
		       quote_str(name, q, sizeof(q)));
}

int profile_parse(const struct profile_text *t, struct value **ret_root, struct err *err)
{
	return t->json ? json_parse(t->text, t->len, t->label, ret_root, err)
		       : toml_parse(t->text, t->len, t->label, ret_root, err);
}

/* --- The public functions ----------------------------------------------------------------- */

static int fail(struct sandlock_error *err, const struct err *e)
{
	return lib_fail(err, e);
}

static void add_names_of(const char *dir, struct strv *names)
{
	DIR *d = opendir(dir);
	struct dirent *entry;

	if (!d)
		return;
	while (names->n < PROFILES_MAX && (entry = readdir(d))) {
		size_t len = strlen(entry->d_name);

		if (!str_ends(entry->d_name, PROFILE_SUFFIX))
			continue;
		auto_free char *name = xstrndup(entry->d_name, len - strlen(PROFILE_SUFFIX));

		if (check_name(name, NULL) == 0 && !strv_has(names, name))
			strv_add_take(names, take_ptr(name));
	}
	closedir(d);
}

static int compare_names(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

int sandlock_profile_list(char **ret_text, struct sandlock_error *err)
{
	AUTO(buf_done) struct buf out = BUF_INIT(1 << 20);
	struct strv dirs = profile_dirs();
	struct strv names = {0};

	(void)err;
	for (size_t i = 0; i < dirs.n; i++)
		add_names_of(dirs.v[i], &names);
	if (names.n)
		qsort(names.v, names.n, sizeof(*names.v), compare_names);
	for (size_t i = 0; i < names.n; i++) {
		buf_add_terminal(&out, names.v[i], strlen(names.v[i]));
		buf_add_char(&out, '\n');
	}
	for (const struct embedded_file *f = embedded_files; f->name; f++)
		if (str_ends(f->name, PROFILE_SUFFIX))
			buf_printf(&out, BUILTIN_PREFIX "%.*s\n",
				   (int)(strlen(f->name) - strlen(PROFILE_SUFFIX)), f->name);
	strv_done(&dirs);
	strv_done(&names);
	*ret_text = buf_take(&out);
	return 0;
}

int sandlock_profile_show(const char *name, const char *format, char **ret_text,
			  struct sandlock_error *err)
{
	struct profile_text text = {0};
	struct value *root = NULL;
	struct err e = {0};

	if (!str_eq(format, "toml") && !str_eq(format, "json")) {
		err_set(&e, EINVAL, "the format of a profile is toml or json");
		return fail(err, &e);
	}
	if (profile_read_name(name, &text, &e) < 0)
		return fail(err, &e);
	if (str_eq(format, "toml")) {
		*ret_text = take_ptr(text.text);
		profile_text_done(&text);
		return 0;
	}
	int r = profile_parse(&text, &root, &e);

	profile_text_done(&text);
	if (r < 0)
		return fail(err, &e);
	*ret_text = json_write(root);
	value_free(root);
	return 0;
}

int sandlock_profile_delete(const char *name, struct sandlock_error *err)
{
	struct err e = {0};
	char q[QUOTE_SIZE];

	quote_str(name, q, sizeof(q));
	if (str_starts(name, BUILTIN_PREFIX)) {
		err_set(&e, EPERM, "%s is built in and cannot be deleted", q);
		return fail(err, &e);
	}
	if (check_name(name, &e) < 0)
		return fail(err, &e);

	auto_free char *path = find_own(name);

	if (!path) {
		err_set(&e, ENOENT, "there is no profile %s of yours", q);
		return fail(err, &e);
	}
	if (unlink(path) < 0) {
		err_sys(&e, errno, "the profile %s cannot be deleted",
			quote_str(path, q, sizeof(q)));
		return fail(err, &e);
	}
	return 0;
}

int sandlock_profile_dir(char **ret_path, struct sandlock_error *err)
{
	struct strv dirs = profile_dirs();
	struct err e = {0};

	if (!dirs.n) {
		err_set(&e, ENOENT,
			"there is no directory for profiles: neither XDG_CONFIG_HOME nor HOME is "
			"set to an absolute path");
		return fail(err, &e);
	}
	*ret_path = xstrdup(dirs.v[0]);
	strv_done(&dirs);
	return 0;
}
