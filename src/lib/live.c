/* SPDX-License-Identifier: Apache-2.0 */
/* The answers of a running sandbox to ps, inspect and kill: see live.h. */
#include "lib/live.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "base/timestamp.h"
#include "base/util.h"
#include "base/value.h"
#include "control/protocol.h"
#include "control/server.h"
#include "lib/questions.h"
#include "lib/registry.h"
#include "net/ports.h"
#include "supervise/box.h"

/* Words of the command line that are told, and bytes of each. */
#define COMMAND_WORDS 256
#define COMMAND_BYTES ((size_t)4096)

/* How old a sandbox is when it becomes visible. */
#define VISIBLE_MS 20

struct live {
	struct control_server *server;
	int top_fd; /* what holds the runtime directory, until it is opened; -1 from then on */
	char *top_name;
	pid_t guardian_pid;
	int timer_fd; /* until it is visible; -1 from then on */
	struct sandlock_process *process;
	struct ports *ports; /* a reference, or NULL */
	char *config;	     /* JSON */
	char *name;
	struct strv command;
	struct registry_pids pids;
	enum rung rung;
	struct landlock_caps caps;
	enum protection_state prot[PROT_COUNT];
	struct timestamp started;
	int64_t started_ms; /* CLOCK_BOOTTIME */
};

static int64_t boot_ms(void)
{
	struct timespec ts;
	clock_gettime(CLOCK_BOOTTIME, &ts);
	return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

/* --- Answers -------------------------------------------------------------------------------- */

static int answer_config(void *data, char **ret_json)
{
	const struct live *l = data;
	AUTO(value_free) struct value *root = NULL;
	/* Printed for people; on the socket a reply is one line. */
	if (json_parse(l->config, strlen(l->config), "policy", &root, NULL) < 0)
		return -EIO;
	*ret_json = json_write_compact(root);
	return 0;
}

/* The families have one number nearly always; else the last is told. */
static void add_port(void *data, const struct ports_key *key, uint16_t real)
{
	struct value *table = data;
	char name[16];
	snprintf(name, sizeof(name), "%u%s", key->port, key->proto == NET_UDP ? "/udp" : "");
	value_table_put_take(table, name, value_new_int(real));
}

static struct value *ports_value(const struct live *l)
{
	struct value *table = value_new(VALUE_TABLE);
	if (l->ports)
		ports_each(l->ports, add_port, table);
	return table;
}

static int answer_ports(void *data, char **ret_json)
{
	const struct live *l = data;
	AUTO(value_free) struct value *table = ports_value(l);
	*ret_json = json_write_compact(table);
	return 0;
}

static int answer_kill(void *data)
{
	const struct live *l = data;
	return sandlock_kill(l->process) < 0 ? -EIO : 0;
}

static struct value *command_value(const struct live *l)
{
	struct value *list = value_new(VALUE_ARRAY);
	for (size_t i = 0; i < l->command.n; i++)
		value_array_add_take(list, value_new_string(l->command.v[i]));
	return list;
}

/* The protections that the policy does not insist on. */
static struct value *waivers_value(const struct live *l)
{
	struct value *table = value_new(VALUE_TABLE);
	for (size_t i = 0; i < PROT_COUNT; i++) {
		const char *how = l->prot[i] == PROT_DISABLED ? "disabled" : "degraded-if-missing";
		if (l->prot[i] != PROT_STRICT)
			value_table_put_take(table, protection_name((enum protection)i),
					     value_new_string(how));
	}
	return table;
}

static int answer_info(void *data, char **ret_json)
{
	const struct live *l = data;
	AUTO(value_free) struct value *root = value_new(VALUE_TABLE);
	auto_free char *rungs_text = rungs_json(l->rung, &l->caps, l->prot);
	struct value *rungs = NULL;
	char when[TIMESTAMP_TEXT_SIZE];

	if (json_parse(rungs_text, strlen(rungs_text), "rungs", &rungs, NULL) < 0)
		return -EIO;
	value_table_put_take(root, "name", value_new_string(l->name));
	value_table_put_take(root, "pid", value_new_int(l->pids.v[ROLE_CHILD].pid));
	value_table_put_take(root, "supervisor_pid", value_new_int(l->pids.v[ROLE_SUPERVISOR].pid));
	value_table_put_take(root, "guardian_pid", value_new_int(l->pids.v[ROLE_GUARDIAN].pid));
	value_table_put_take(root, "status", value_new_string("running"));
	value_table_put_take(root, "started",
			     value_new_string(timestamp_print_ms(l->started, when)));
	value_table_put_take(root, "uptime_ms", value_new_int(boot_ms() - l->started_ms));
	value_table_put_take(root, "command", command_value(l));
	value_table_put_take(root, "ports", ports_value(l));
	const struct value *view = value_get(rungs, "view");
	value_table_put_take(root, "view", value_new_string(view ? view->str : "none"));
	value_table_put_take(root, "rungs", rungs);
	value_table_put_take(root, "waivers", waivers_value(l));
	*ret_json = json_write_compact(root);
	return 0;
}

static int answer_questions(void *data, char **ret_json)
{
	const struct live *l = data;
	AUTO(value_free) struct value *list = questions_value(l->process);
	*ret_json = json_write_compact(list);
	return 0;
}

static int answer_answer(void *data, const struct value *args, char **ret_why)
{
	const struct live *l = data;
	const struct value *id = args ? value_get(args, "id") : NULL;
	const struct value *word = args ? value_get(args, "answer") : NULL;
	if (!id || id->kind != VALUE_INT || !word || word->kind != VALUE_STRING) {
		*ret_why = xstrdup("it takes id, a number, and answer, a string");
		return -EINVAL;
	}
	return questions_answer(l->process, id->integer, word->str, ret_why);
}

static const struct control_ops ops = {
	.config = answer_config,
	.ports = answer_ports,
	.info = answer_info,
	.kill = answer_kill,
	.questions = answer_questions,
	.answer = answer_answer,
};

/* --- The whole ------------------------------------------------------------------------------ */

static void fill_pids(struct live *l)
{
	const struct sandlock_process *p = l->process;
	const pid_t pids[ROLE_COUNT] = {
		[ROLE_CHILD] = p->child_pid,
		[ROLE_SUPERVISOR] = getpid(),
		[ROLE_GUARDIAN] = l->guardian_pid,
		[ROLE_KEEPER] = p->keeper_pid,
	};
	for (size_t i = 0; i < ROLE_COUNT; i++) {
		l->pids.v[i].pid = pids[i];
		if (i == ROLE_KEEPER && pids[i] == pids[ROLE_GUARDIAN])
			l->pids.v[i].start = l->pids.v[ROLE_GUARDIAN].start;
		else
			l->pids.v[i].start = process_start(pids[i]);
	}
}

static void fill_command(struct live *l, char *const *argv)
{
	for (size_t i = 0; argv[i] && i < COMMAND_WORDS; i++)
		strv_add_take(&l->command, xstrndup(argv[i], COMMAND_BYTES));
}

static struct live *snapshot(const struct live_spec *spec)
{
	struct live *l = xnew(struct live);
	const struct sandlock_process *p = spec->process;
	l->process = spec->process;
	l->top_fd = l->timer_fd = -1;
	l->ports = ports_ref(p->box ? p->box->ports : NULL);
	l->name = xstrdup(spec->name);
	l->guardian_pid = spec->guardian_pid;
	l->rung = p->rung;
	l->caps = p->caps;
	memcpy(l->prot, p->prot, sizeof(l->prot));
	l->started = timestamp_now();
	l->started_ms = boot_ms();
	fill_command(l, spec->argv);
	if (sandlock_policy_print(spec->policy, "json", &l->config, NULL) < 0)
		l->config = xstrdup("{}");
	return l;
}

/* Lets the server's descriptor wake its loop when the sandbox is to become visible. */
static int start_timer(struct live *l)
{
	const struct itimerspec when = {.it_value.tv_nsec = VISIBLE_MS * 1000000L};
	struct epoll_event ev = {.events = EPOLLIN};
	l->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (l->timer_fd < 0 || timerfd_settime(l->timer_fd, 0, &when, NULL) < 0 ||
	    epoll_ctl(control_server_fd(l->server), EPOLL_CTL_ADD, l->timer_fd, &ev) < 0)
		return -errno;
	return 0;
}

struct live *live_new(const struct live_spec *spec, struct strv *warnings)
{
	if (!spec->name || spec->entry->top_fd < 0)
		return NULL;
	struct live *l = snapshot(spec);
	l->top_name = xstrdup(spec->entry->top_name);
	l->top_fd = fcntl(spec->entry->top_fd, F_DUPFD_CLOEXEC, 3);
	int r = l->top_fd < 0 ? -errno : control_server_new(&ops, l, &l->server);
	if (r == 0)
		r = start_timer(l);
	if (r == 0)
		return l;
	registry_warn(warnings, -r, NULL);
	live_free(l);
	return NULL;
}

/* Its supervisor makes its connections, and would be heard as the user. */
static void close_to_sandbox(const struct live *l, int dir)
{
	struct box *box = l->process->box;
	struct stat st;
	if (!box || fstatat(dir, CONTROL_SOCKET_NAME, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return;
	__atomic_store_n(&box->control_dev, st.st_dev, __ATOMIC_RELAXED);
	__atomic_store_n(&box->control_ino, st.st_ino, __ATOMIC_RELEASE);
}

/* A run that is over by now has taken its entry with it; whatever else fails, the run goes on. */
static void become_visible(struct live *l)
{
	auto_close int dir = registry_open_entry(l->top_fd, l->top_name, l->name);
	l->top_fd = util_close(l->top_fd);
	if (dir < 0 || control_server_listen(l->server, dir) < 0)
		return;
	close_to_sandbox(l, dir);
	fill_pids(l);
	registry_write_pids(dir, &l->pids);
}

int live_fd(const struct live *live)
{
	return live ? control_server_fd(live->server) : -1;
}

int live_timeout_ms(const struct live *live)
{
	return live ? control_server_timeout_ms(live->server) : -1;
}

void live_step(struct live *live)
{
	uint64_t times = 0;
	if (!live)
		return;
	if (live->timer_fd >= 0 && read(live->timer_fd, &times, sizeof(times)) > 0) {
		live->timer_fd = util_close(live->timer_fd);
		become_visible(live);
	}
	control_server_step(live->server);
}

void live_free(struct live *live)
{
	if (!live)
		return;
	control_server_free(live->server);
	util_close(live->top_fd);
	util_close(live->timer_fd);
	free(live->top_name);
	ports_unref(live->ports);
	strv_done(&live->command);
	free(live->config);
	free(live->name);
	free(live);
}
