/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The public functions on sandboxes of other processes: list, inspect, kill by name. The registry
 * says who is there, the control socket what they are; both are read as if a stranger had written
 * them, and a process is signalled only if its start time is the one noted.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/utf8.h"
#include "base/util.h"
#include "base/value.h"
#include "control/client.h"
#include "lib/launch.h"
#include "lib/registry.h"

#define ANSWER_MS 1000
/* How long a sandbox is waited for that is not visible yet. */
#define STARTING_MS 1000
#define NAME_BYTES  255
/* Sandboxes looked at together, so that descriptors do not run out. */
#define CHUNK 64
/* How long a tree has for its end after it was asked for, and after its guardian was killed. */
#define END_ASKED_MS  2000
#define END_KILLED_MS 10000

static int64_t now_ms(void)
{
	struct timespec ts;
	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

/* --- Listing -------------------------------------------------------------------------------- */

struct seen {
	const char *name;
	int entry_fd;
	struct registry_pids pids;
};

/* The command line that the process shows, in words; hostile. */
static struct value *shown_command(const struct registry_process *p)
{
	char path[32];
	char text[4096];
	struct value *list = value_new(VALUE_ARRAY);
	snprintf(path, sizeof(path), "/proc/%d/cmdline", p->pid);
	auto_close int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd >= 0 && process_is_alive(p) ? read(fd, text, sizeof(text) - 1) : 0;
	if (n <= 0)
		return list;
	text[n] = '\0';
	for (const char *at = text; at < text + n; at += strlen(at) + 1)
		value_array_add_take(list, value_new_string(at));
	return list;
}

/* How long the process has been there; 0 if that is unknown. */
static int64_t shown_uptime_ms(const struct registry_process *p)
{
	struct timespec ts;
	int64_t ticks = sysconf(_SC_CLK_TCK);
	if (!p->start || ticks <= 0 || p->start > INT64_MAX / 1000)
		return 0;
	clock_gettime(CLOCK_BOOTTIME, &ts);
	int64_t ms =
		(int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000 - (int64_t)p->start * 1000 / ticks;
	return ms < 0 ? 0 : ms;
}

/* Copies KEY of the reply FROM (NULL: there is none) into TO if it is of KIND. */
static bool copy_key(struct value *to, const struct value *from, const char *key,
		     enum value_kind kind)
{
	const struct value *v = from ? value_get(from, key) : NULL;
	struct value *copy = NULL;
	if (!v || v->kind != kind)
		return false;
	if (kind == VALUE_INT) {
		copy = value_new_int(v->integer);
	} else if (kind == VALUE_STRING) {
		copy = value_new_string(v->str);
	} else {
		auto_free char *text = json_write_compact(v);
		if (json_parse(text, strlen(text), "reply", &copy, NULL) < 0)
			return false;
	}
	value_table_put_take(to, key, copy);
	return true;
}

static void put_pids(struct value *to, const struct registry_pids *pids)
{
	value_table_put_take(to, "pid", value_new_int(pids->v[ROLE_CHILD].pid));
	value_table_put_take(to, "supervisor_pid", value_new_int(pids->v[ROLE_SUPERVISOR].pid));
	value_table_put_take(to, "guardian_pid", value_new_int(pids->v[ROLE_GUARDIAN].pid));
}

/* One row: what the supervisor says, and where it says nothing, what can be seen from outside. */
static struct value *row_of(const struct seen *s, const struct control_query *q)
{
	struct value *row = value_new(VALUE_TABLE);
	const struct value *info = q->result == 0 ? q->data : NULL;
	const struct registry_process *child = &s->pids.v[ROLE_CHILD];
	value_table_put_take(row, "name", value_new_string(s->name));
	put_pids(row, &s->pids);
	if (!copy_key(row, info, "uptime_ms", VALUE_INT))
		value_table_put_take(row, "uptime_ms", value_new_int(shown_uptime_ms(child)));
	if (!copy_key(row, info, "status", VALUE_STRING))
		value_table_put_take(row, "status", value_new_string("no-answer"));
	if (!copy_key(row, info, "ports", VALUE_TABLE))
		value_table_put_take(row, "ports", value_new(VALUE_NULL));
	if (!copy_key(row, info, "command", VALUE_ARRAY))
		value_table_put_take(row, "command", shown_command(child));
	return row;
}

static int by_name(const void *a, const void *b)
{
	char *const *x = a;
	char *const *y = b;
	return strcmp(*x, *y);
}

static void read_names(int dir_fd, struct strv *ret_names)
{
	int fd = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
	if (!dir) {
		util_close(fd);
		return;
	}
	const struct dirent *d;
	/* NOLINTNEXTLINE(concurrency-mt-unsafe): the stream is ours alone */
	while ((d = readdir(dir))) {
		if (!str_eq(d->d_name, ".") && !str_eq(d->d_name, ".."))
			strv_add(ret_names, d->d_name);
	}
	closedir(dir);
	if (ret_names->n)
		qsort(ret_names->v, ret_names->n, sizeof(*ret_names->v), by_name);
}

/* Looks at N names. The number of those that live, in SEEN. Dead ones are removed. */
static size_t look_at(int dir_fd, char *const *names, size_t n, struct seen *seen, bool *ret_pruned)
{
	size_t found = 0;
	for (size_t i = 0; i < n; i++) {
		struct seen *s = &seen[found];
		auto_close int fd = -1;
		enum registry_state state = registry_look(dir_fd, names[i], &fd, &s->pids);
		if (state == ENTRY_LIVE) {
			s->name = names[i];
			s->entry_fd = take_fd(&fd);
			found++;
		} else if (state == ENTRY_DEAD) {
			registry_prune(dir_fd, names[i]);
			*ret_pruned = true;
		}
	}
	return found;
}

static void list_place(int place, struct value *rows, int64_t until_ms)
{
	auto_close int dir_fd = registry_open_place(place);
	struct strv names = {0};
	struct seen seen[CHUNK];
	struct control_query queries[CHUNK];
	bool pruned = false;
	if (dir_fd < 0)
		return;
	read_names(dir_fd, &names);
	for (size_t from = 0; from < names.n; from += CHUNK) {
		size_t count = names.n - from < CHUNK ? names.n - from : CHUNK;
		count = look_at(dir_fd, names.v + from, count, seen, &pruned);
		for (size_t i = 0; i < count; i++)
			queries[i] = (struct control_query){.dir_fd = seen[i].entry_fd,
							    .verb = CONTROL_INFO};
		control_query_all(queries, count, (int)(until_ms - now_ms()));
		for (size_t i = 0; i < count; i++) {
			value_array_add_take(rows, row_of(&seen[i], &queries[i]));
			control_query_done(&queries[i]);
			util_close(seen[i].entry_fd);
		}
	}
	strv_done(&names);
	if (pruned)
		registry_tidy(place);
}

int sandlock_list(char **ret_json, struct sandlock_error *err)
{
	(void)err;
	AUTO(value_free) struct value *rows = value_new(VALUE_ARRAY);
	int64_t until_ms = now_ms() + ANSWER_MS;
	for (int place = 0; place < REGISTRY_PLACES; place++)
		list_place(place, rows, until_ms);
	*ret_json = json_write(rows);
	return 0;
}

/* --- One by name ---------------------------------------------------------------------------- */

struct found {
	int dir_fd; /* the runtime directory */
	int place;
	int entry_fd;
	struct registry_pids pids;
};

static void found_done(struct found *f)
{
	f->dir_fd = util_close(f->dir_fd);
	f->entry_fd = util_close(f->entry_fd);
}

static void found_done_cleanup(struct found *f)
{
	found_done(f);
}

static bool is_name(const char *name)
{
	size_t len = strlen(name);
	if (!len || len > NAME_BYTES || strchr(name, '/') || str_eq(name, ".") ||
	    str_eq(name, ".."))
		return false;
	for (size_t at = 0; at < len;) {
		uint32_t cp = 0;
		size_t n = utf8_decode(name + at, len - at, &cp);
		if (!n || cp == ' ' || utf8_is_unsafe(cp))
			return false;
		at += n;
	}
	return true;
}

/* Looks through the places. For ENTRY_LIVE all of F is filled. */
static enum registry_state find_now(const char *name, struct found *f)
{
	enum registry_state state = ENTRY_NONE;
	for (int i = 0; i < REGISTRY_PLACES; i++) {
		f->place = i;
		f->dir_fd = registry_open_place(i);
		if (f->dir_fd >= 0)
			state = registry_look(f->dir_fd, name, &f->entry_fd, &f->pids);
		if (state == ENTRY_LIVE)
			break;
		found_done(f);
		if (state == ENTRY_STARTING)
			break;
	}
	return state;
}

static int find(const char *name, struct found *f, struct sandlock_error *err)
{
	char quoted[QUOTE_SIZE];
	if (!is_name(name))
		return api_fail(err, SANDLOCK_E_INVALID, EINVAL, "%s is no name of a sandbox",
				quote_str(name, quoted, sizeof(quoted)));
	for (int64_t until = now_ms() + STARTING_MS;;) {
		enum registry_state state = find_now(name, f);
		if (state == ENTRY_LIVE)
			return 0;
		if (state != ENTRY_STARTING)
			break;
		if (now_ms() >= until)
			return api_fail(err, SANDLOCK_E_STATE, EAGAIN,
					"sandbox '%s' is only starting: try again", name);
		nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
	}
	return api_fail(err, SANDLOCK_E_NOT_FOUND, ENOENT, "no sandbox named '%s'", name);
}

static int no_answer(const char *name, const struct found *f, const struct control_query *q,
		     const char *what, struct sandlock_error *err)
{
	if (q->result == -ETIMEDOUT)
		return api_fail(err, SANDLOCK_E_TIMEOUT, ETIMEDOUT,
				"sandbox '%s' does not answer: its supervisor, process %d, is "
				"stopped or hangs",
				name, f->pids.v[ROLE_SUPERVISOR].pid);
	if (q->result == -EREMOTEIO)
		return api_fail(err, SANDLOCK_E_INTERNAL, EREMOTEIO,
				"%s failed: sandbox '%s' says: %.256s", what, name, q->why);
	return api_fail(err, SANDLOCK_E_INTERNAL, -q->result,
			"%s failed: sandbox '%s' cannot be asked: %s", what, name,
			strerror(-q->result));
}

/* A line of the comments that stand in front of the TOML form; hostile text stays in the line. */
static void add_fact(struct buf *b, const struct value *info, const char *key)
{
	const struct value *v = value_get(info, key);
	if (!v)
		return;
	AUTO(value_free) struct value *box = value_new(VALUE_TABLE);
	if (v->kind != VALUE_INT && v->kind != VALUE_STRING && v->kind != VALUE_ARRAY &&
	    v->kind != VALUE_TABLE)
		return;
	if (!copy_key(box, info, key, v->kind))
		return;
	auto_free char *text = json_write_compact(box);
	size_t skip = strlen(key) + 4; /* {"key": */
	size_t len = strlen(text);
	buf_printf(b, "# %s: ", key);
	buf_add_terminal(b, text + skip, len - skip - 1);
	buf_add_char(b, '\n');
}

static char *as_toml(const struct value *config, const struct value *info)
{
	static const char *const keys[] = {"name",    "pid",	 "supervisor_pid", "guardian_pid",
					   "status",  "started", "command",	   "view",
					   "waivers", "rungs"};
	struct buf b = BUF_INIT(CONTROL_REPLY_MAX * 8);
	auto_free char *text = toml_write(config);
	for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
		add_fact(&b, info, keys[i]);
	if (b.len)
		buf_add_char(&b, '\n');
	buf_add_str(&b, text);
	return buf_take(&b);
}

static char *as_json(struct value *config, struct value **info, bool full)
{
	if (full)
		value_table_put_take(config, "sandbox", take_ptr(*info));
	return json_write(config);
}

int sandlock_inspect(const char *name, const char *format, char **ret_text,
		     struct sandlock_error *err)
{
	AUTO(found_done) struct found f = {.dir_fd = -1, .entry_fd = -1};
	bool toml = str_eq(format, "toml");
	bool full = str_eq(format, "full");
	if (!toml && !full && !str_eq(format, "json"))
		return api_fail(err, SANDLOCK_E_INVALID, EINVAL,
				"the format of inspect is full, json or toml");
	int r = find(name, &f, err);
	if (r < 0)
		return r;
	struct control_query q[2] = {{.dir_fd = f.entry_fd, .verb = CONTROL_CONFIG},
				     {.dir_fd = f.entry_fd, .verb = CONTROL_INFO}};
	control_query_all(q, 2, ANSWER_MS);
	for (size_t i = 0; i < 2 && r == 0; i++) {
		if (q[i].result == 0 && q[i].data->kind != VALUE_TABLE)
			q[i].result = -EPROTO;
		if (q[i].result < 0)
			r = no_answer(name, &f, &q[i], "inspect", err);
	}
	if (r == 0)
		*ret_text =
			toml ? as_toml(q[0].data, q[1].data) : as_json(q[0].data, &q[1].data, full);
	control_query_done(&q[0]);
	control_query_done(&q[1]);
	return r;
}

/* --- Questions ------------------------------------------------------------------------------ */

int sandlock_questions(const char *name, char **ret_json, struct sandlock_error *err)
{
	AUTO(found_done) struct found f = {.dir_fd = -1, .entry_fd = -1};
	int r = find(name, &f, err);
	if (r < 0)
		return r;
	struct control_query q = {.dir_fd = f.entry_fd, .verb = CONTROL_QUESTIONS};
	control_query_all(&q, 1, ANSWER_MS);
	if (q.result == 0 && q.data->kind != VALUE_ARRAY)
		q.result = -EPROTO;
	if (q.result < 0)
		r = no_answer(name, &f, &q, "answer", err);
	else
		*ret_json = json_write(q.data);
	control_query_done(&q);
	return r;
}

int sandlock_answer(const char *name, int id, const char *answer, struct sandlock_error *err)
{
	AUTO(found_done) struct found f = {.dir_fd = -1, .entry_fd = -1};
	AUTO(value_free) struct value *args = value_new(VALUE_TABLE);
	int r = find(name, &f, err);
	if (r < 0)
		return r;
	value_table_put_take(args, "id", value_new_int(id));
	value_table_put_take(args, "answer", value_new_string(answer ? answer : ""));
	struct control_query q = {.dir_fd = f.entry_fd, .verb = CONTROL_ANSWER, .args = args};
	control_query_all(&q, 1, ANSWER_MS);
	if (q.result < 0)
		r = no_answer(name, &f, &q, "answer", err);
	control_query_done(&q);
	return r;
}

/* --- Killing -------------------------------------------------------------------------------- */

struct victim {
	struct pollfd pidfds[3]; /* guardian, keeper, command; -1: gone or unknown */
	int entry_fd;
};

static void victim_open(struct victim *v, const struct found *f)
{
	static const enum registry_role roles[] = {ROLE_GUARDIAN, ROLE_KEEPER, ROLE_CHILD};
	v->entry_fd = f->entry_fd;
	for (size_t i = 0; i < ARRAY_SIZE(roles); i++)
		v->pidfds[i] =
			(struct pollfd){.fd = process_open(&f->pids.v[roles[i]]), .events = POLLIN};
}

static void victim_done(struct victim *v)
{
	for (size_t i = 0; i < ARRAY_SIZE(v->pidfds); i++)
		v->pidfds[i].fd = util_close(v->pidfds[i].fd);
}

static void signal_victim(const struct victim *v, size_t i, int sig)
{
	if (v->pidfds[i].fd >= 0)
		syscall(SYS_pidfd_send_signal, v->pidfds[i].fd, sig, NULL, 0);
}

/* Waits for the end of guardian, keeper and command. */
static bool has_ended(struct victim *v, int timeout_ms)
{
	int64_t until = now_ms() + timeout_ms;
	for (;;) {
		bool alive = false;
		int64_t left = until - now_ms();
		for (size_t i = 0; i < ARRAY_SIZE(v->pidfds); i++) {
			struct pollfd *p = &v->pidfds[i];
			if (p->fd >= 0 && poll(p, 1, left > 0 ? (int)left : 0) == 1)
				p->fd = util_close(p->fd);
			alive |= p->fd >= 0;
		}
		/* A guardian that was not to be found may still hold the lock. */
		if (!alive && !registry_is_locked(v->entry_fd))
			return true;
		if (left <= 0)
			return !alive;
		if (!alive)
			nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
	}
}

/*
 * The guardian's end takes the tree along: by the kernel in namespaces, else by the keeper, which
 * may be stopped. Without a guardian to be found, the command's end makes it end the rest.
 */
static void kill_by_force(const struct victim *v)
{
	size_t target = v->pidfds[0].fd >= 0 ? 0 : 2;
	signal_victim(v, target, SIGKILL);
	signal_victim(v, 1, SIGCONT);
}

int sandlock_kill_name(const char *name, pid_t *ret_pid, pid_t *ret_supervisor,
		       struct sandlock_error *err)
{
	AUTO(found_done) struct found f = {.dir_fd = -1, .entry_fd = -1};
	struct victim v;
	int r = find(name, &f, err);
	if (r < 0)
		return r;
	victim_open(&v, &f);
	struct control_query q = {.dir_fd = f.entry_fd, .verb = CONTROL_KILL};
	control_query_all(&q, 1, ANSWER_MS);
	bool ended = q.result == 0 && has_ended(&v, END_ASKED_MS);
	control_query_done(&q);
	if (!ended) {
		kill_by_force(&v);
		ended = has_ended(&v, END_KILLED_MS);
	}
	victim_done(&v);
	if (!ended)
		return api_fail(err, SANDLOCK_E_TIMEOUT, ETIMEDOUT,
				"sandbox '%s' was killed, but has not ended in %d s", name,
				END_KILLED_MS / 1000);
	registry_prune(f.dir_fd, name);
	registry_tidy(f.place);
	if (ret_pid)
		*ret_pid = f.pids.v[ROLE_CHILD].pid;
	if (ret_supervisor)
		*ret_supervisor = f.pids.v[ROLE_SUPERVISOR].pid;
	return 0;
}
