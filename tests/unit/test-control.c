/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests of the control protocol: frames, requests and replies as text; a server under clients that
 * are slow, rude, many or gone; and the asking side before servers that hang or answer rubbish.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/util.h"
#include "base/value.h"
#include "control/client.h"
#include "control/server.h"

/* --- A server that a test steps by hand ----------------------------------------------------- */

struct fixture {
	char dir[64];
	int dir_fd;
	struct control_server *server;
	size_t data_bytes; /* of what config answers */
	int kills;
};

static int give_config(void *data, char **ret_json)
{
	const struct fixture *f = data;
	char *text = xzalloc(f->data_bytes + 3);
	memset(text, 'a', f->data_bytes + 2);
	text[0] = text[f->data_bytes + 1] = '"';
	*ret_json = text;
	return 0;
}

static int give_info(void *data, char **ret_json)
{
	(void)data;
	*ret_json = xstrdup("{\"name\":\"x\"}");
	return 0;
}

static int fail_ports(void *data, char **ret_json)
{
	(void)data;
	(void)ret_json;
	return -EIO;
}

static int count_kill(void *data)
{
	struct fixture *f = data;
	f->kills++;
	return 0;
}

/* Answers nothing but {"id":7}, and says why. */
static int take_answer(void *data, const struct value *args, char **ret_why)
{
	const struct value *id = args ? value_get(args, "id") : NULL;
	(void)data;
	if (id && id->kind == VALUE_INT && id->integer == 7)
		return 0;
	*ret_why = xstrdup("it is not 7");
	return -EINVAL;
}

static const struct control_ops ops = {give_config, fail_ports, give_info,
				       count_kill,  give_info,	take_answer};

static int setup_dir(void **state)
{
	struct fixture *f = xnew(struct fixture);
	snprintf(f->dir, sizeof(f->dir), "/tmp/sandlock-control-XXXXXX");
	assert_non_null(mkdtemp(f->dir));
	f->dir_fd = open(f->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(f->dir_fd >= 0);
	f->data_bytes = 10;
	*state = f;
	return 0;
}

static int setup(void **state)
{
	setup_dir(state);
	struct fixture *f = *state;
	assert_int_equal(control_server_new(&ops, f, &f->server), 0);
	assert_int_equal(control_server_timeout_ms(f->server), -1);
	control_server_step(f->server);
	assert_int_equal(control_server_listen(f->server, f->dir_fd), 0);
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;
	control_server_free(f->server);
	unlinkat(f->dir_fd, CONTROL_SOCKET_NAME, 0);
	close(f->dir_fd);
	rmdir(f->dir);
	free(f);
	return 0;
}

static struct sockaddr_un address(const struct fixture *f)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	snprintf(addr.sun_path, sizeof(addr.sun_path), "%.64s/" CONTROL_SOCKET_NAME, f->dir);
	return addr;
}

static int dial(const struct fixture *f)
{
	struct sockaddr_un addr = address(f);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	assert_true(fd >= 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	return fd;
}

static void say(int fd, const char *text, size_t len)
{
	assert_int_equal(send(fd, text, len, MSG_NOSIGNAL), len);
}

static void say_frame(int fd, const char *text)
{
	char header[CONTROL_HEADER];
	control_put_length(header, strlen(text));
	say(fd, header, sizeof(header));
	say(fd, text, strlen(text));
}

/* Steps the server until FD has a whole reply, which is returned, or its end: NULL. Closes FD. */
static char *hear(struct fixture *f, int fd)
{
	size_t room = CONTROL_HEADER + CONTROL_REPLY_MAX + 1;
	char *text = xzalloc(room);
	size_t got = 0;
	for (;;) {
		control_server_step(f->server);
		ssize_t n = recv(fd, text + got, room - got, MSG_DONTWAIT);
		if (n > 0)
			got += (size_t)n;
		else if (n == 0 || errno != EAGAIN)
			break;
	}
	close(fd);
	char *reply = NULL;
	if (got) {
		assert_true(got > CONTROL_HEADER);
		assert_int_equal(control_get_length(text), got - CONTROL_HEADER);
		reply = xstrdup(text + CONTROL_HEADER);
	}
	free(text);
	return reply;
}

static void expect_reply(struct fixture *f, int fd, const char *expected)
{
	auto_free char *reply = hear(f, fd);
	assert_non_null(reply);
	assert_string_equal(reply, expected);
}

#define INFO_REQUEST "{\"v\":1,\"verb\":\"info\",\"args\":{}}"
#define INFO_REPLY   "{\"v\":1,\"ok\":true,\"data\":{\"name\":\"x\"}}"

static void expect_service(struct fixture *f)
{
	int fd = dial(f);
	say_frame(fd, INFO_REQUEST);
	expect_reply(f, fd, INFO_REPLY);
}

/* --- Text ----------------------------------------------------------------------------------- */

static void test_length(void **state)
{
	static const size_t lengths[] = {0, 1, 255, 256, 65536, 0x01020304, 0xffffffff};
	char out[CONTROL_HEADER];
	for (size_t i = 0; i < ARRAY_SIZE(lengths); i++) {
		control_put_length(out, lengths[i]);
		assert_int_equal(control_get_length(out), lengths[i]);
	}
	control_put_length(out, 0x01020304);
	assert_memory_equal(out, "\1\2\3\4", 4);
}

static void test_own_requests(void **state)
{
	for (int i = 0; i < CONTROL_VERB_COUNT; i++) {
		size_t len = 0;
		enum control_verb verb = CONTROL_VERB_COUNT;
		auto_free char *why = NULL;
		AUTO(value_free) struct value *args = NULL;
		AUTO(value_free) struct value *in = value_new(VALUE_TABLE);
		value_table_put_take(in, "id", value_new_int(7));
		auto_free char *text = control_request_text((enum control_verb)i, in, &len);
		assert_int_equal(control_get_length(text), len - CONTROL_HEADER);
		assert_int_equal(control_request_parse(text + CONTROL_HEADER, len - CONTROL_HEADER,
						       &verb, &args, &why),
				 0);
		assert_int_equal(verb, i);
		assert_int_equal(value_get(args, "id")->integer, 7);
	}
}

static void test_bad_requests(void **state)
{
	static const struct {
		const char *text;
		const char *why; /* the beginning */
	} rows[] = {
		{"", "parse error: "},
		{"{", "parse error: "},
		{"[]", "parse error: a request is an object"},
		{"{\"verb\":\"info\"}", "parse error: v is no integer"},
		{"{\"v\":\"1\",\"verb\":\"info\"}", "parse error: v is no integer"},
		{"{\"v\":1.0,\"verb\":\"info\"}", "parse error: v is no integer"},
		{"{\"v\":2,\"verb\":\"info\"}", "unsupported protocol version: 2"},
		{"{\"v\":-1,\"verb\":7}", "unsupported protocol version: -1"},
		{"{\"v\":1}", "parse error: verb is no string"},
		{"{\"v\":1,\"verb\":[\"info\"]}", "parse error: verb is no string"},
		{"{\"v\":1,\"verb\":\"info\",\"args\":1}", "parse error: args is no object"},
		{"{\"v\":1,\"verb\":\"\"}", "unknown verb: "},
		{"{\"v\":1,\"verb\":\"Info\"}", "unknown verb: Info"},
		{"{\"v\":1,\"verb\":\"info\\u0000\"}", "unknown verb: info"},
		{"{\"v\":1,\"verb\":\"\\u001b[2J\"}", "unknown verb: \\x1b[2J"},
		{"{\"v\":1,\"v\":1,\"verb\":\"info\"}", "parse error: "},
	};
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		enum control_verb verb;
		struct value *args = NULL;
		auto_free char *why = NULL;
		assert_int_equal(control_request_parse(rows[i].text, strlen(rows[i].text), &verb,
						       &args, &why),
				 -EINVAL);
		assert_null(args);
		assert_non_null(why);
		if (!str_starts(why, rows[i].why))
			assert_string_equal(why, rows[i].why);
	}
}

static void test_replies(void **state)
{
	static const struct {
		const char *text;
		int result;
	} rows[] = {
		{"{\"v\":1,\"ok\":true,\"data\":{}}", 0},
		{"{\"v\":1,\"ok\":true,\"data\":3}", 0},
		{"{\"v\":1,\"ok\":true}", -EPROTO},
		{"{\"v\":2,\"ok\":true,\"data\":{}}", -EPROTO},
		{"{\"ok\":true,\"data\":{}}", -EPROTO},
		{"{\"v\":1,\"ok\":1,\"data\":{}}", -EPROTO},
		{"{\"v\":1,\"ok\":false,\"err\":\"no\"}", -EREMOTEIO},
		{"{\"v\":1,\"ok\":false,\"err\":[]}", -EREMOTEIO},
		{"{\"v\":1,\"ok\":false}", -EREMOTEIO},
		{"[1]", -EPROTO},
		{"", -EPROTO},
	};
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		AUTO(value_free) struct value *data = NULL;
		auto_free char *why = NULL;
		int r = control_reply_parse(rows[i].text, strlen(rows[i].text), &data, &why);
		assert_int_equal(r, rows[i].result);
		assert_int_equal(data != NULL, r == 0);
		assert_int_equal(why != NULL, r == -EREMOTEIO);
	}
}

/* --- The server ----------------------------------------------------------------------------- */

static void test_verbs(void **state)
{
	struct fixture *f = *state;
	struct stat st;
	assert_int_equal(fstatat(f->dir_fd, CONTROL_SOCKET_NAME, &st, 0), 0);
	assert_int_equal(st.st_mode, S_IFSOCK | 0600);
	assert_int_equal(control_server_timeout_ms(f->server), -1);
	expect_service(f);
	int fd = dial(f);
	say_frame(fd, "{\"verb\":\"config\",\"v\":1}");
	expect_reply(f, fd, "{\"v\":1,\"ok\":true,\"data\":\"aaaaaaaaaa\"}");
	fd = dial(f);
	say_frame(fd, "{\"v\":1,\"verb\":\"ports\",\"other\":[1]}");
	expect_reply(f, fd, "{\"v\":1,\"ok\":false,\"err\":\"ports failed: Input/output error\"}");
	fd = dial(f);
	say_frame(fd, "{\"v\":1,\"verb\":\"kill\"}");
	expect_reply(f, fd, "{\"v\":1,\"ok\":true,\"data\":{}}");
	assert_int_equal(f->kills, 1);
	fd = dial(f);
	say_frame(fd, "{\"v\":1,\"verb\":\"answer\",\"args\":{\"id\":7}}");
	expect_reply(f, fd, "{\"v\":1,\"ok\":true,\"data\":{}}");
	fd = dial(f);
	say_frame(fd, "{\"v\":1,\"verb\":\"answer\"}");
	expect_reply(f, fd, "{\"v\":1,\"ok\":false,\"err\":\"answer failed: it is not 7\"}");
	fd = dial(f);
	say_frame(fd, "{\"v\":1,\"verb\":\"x\"}");
	expect_reply(f, fd, "{\"v\":1,\"ok\":false,\"err\":\"unknown verb: x\"}");
	assert_int_equal(control_server_timeout_ms(f->server), -1);
}

static void test_drops(void **state)
{
	struct fixture *f = *state;
	size_t len = 0;
	auto_free char *text = control_request_text(CONTROL_INFO, NULL, &len);
	int fd = dial(f);
	for (size_t i = 0; i < len; i++) {
		assert_true(i == 0 || control_server_timeout_ms(f->server) >= 0);
		say(fd, text + i, 1);
		control_server_step(f->server);
	}
	expect_reply(f, fd, INFO_REPLY);
}

static void test_lengths_that_lie(void **state)
{
	struct fixture *f = *state;
	int fd = dial(f);
	say(fd, "\xff\xff\xff\xff", 4);
	expect_reply(f, fd,
		     "{\"v\":1,\"ok\":false,\"err\":\"request too large (4294967295 bytes, at most "
		     "65536)\"}");
	fd = dial(f);
	say(fd, "\0\1\0\1", 4);
	expect_reply(f, fd,
		     "{\"v\":1,\"ok\":false,\"err\":\"request too large (65537 bytes, at most "
		     "65536)\"}");
	fd = dial(f);
	say(fd, "\0\0\0\0", 4);
	auto_free char *reply = hear(f, fd);
	assert_non_null(reply);
	assert_true(str_starts(reply, "{\"v\":1,\"ok\":false,\"err\":\"parse error: "));
	/* More than was announced: the rest is not read. */
	fd = dial(f);
	say_frame(fd, INFO_REQUEST);
	say(fd, "and more", 8);
	expect_reply(f, fd, INFO_REPLY);
	expect_service(f);
}

static void test_large_replies(void **state)
{
	struct fixture *f = *state;
	f->data_bytes = CONTROL_REPLY_MAX - 100;
	int fd = dial(f);
	say_frame(fd, "{\"v\":1,\"verb\":\"config\"}");
	/* It does not fit the socket: meanwhile others are served. */
	control_server_step(f->server);
	expect_service(f);
	auto_free char *reply = hear(f, fd);
	assert_non_null(reply);
	assert_int_equal(strlen(reply),
			 f->data_bytes + strlen("{\"v\":1,\"ok\":true,\"data\":\"\"}"));
	f->data_bytes = CONTROL_REPLY_MAX;
	fd = dial(f);
	say_frame(fd, "{\"v\":1,\"verb\":\"config\"}");
	expect_reply(
		f, fd,
		"{\"v\":1,\"ok\":false,\"err\":\"response too large (1048578 bytes of data, at "
		"most 1048576 in all)\"}");
}

static void test_clients_that_leave(void **state)
{
	struct fixture *f = *state;
	f->data_bytes = CONTROL_REPLY_MAX - 100;
	int silent = dial(f);
	int half = dial(f);
	int asked = dial(f);
	say(half, "\0\0", 2);
	say_frame(asked, "{\"v\":1,\"verb\":\"config\"}");
	control_server_step(f->server);
	control_server_step(f->server);
	assert_true(control_server_timeout_ms(f->server) >= 0);
	close(silent);
	close(half);
	close(asked);
	control_server_step(f->server);
	assert_int_equal(control_server_timeout_ms(f->server), -1);
	expect_service(f);
}

/* Many that say nothing: only so many are kept, and whoever asks is answered all the same. */
static void test_hundred_connections(void **state)
{
	struct fixture *f = *state;
	int fds[100];
	int open = 0;
	char byte;
	for (size_t i = 0; i < ARRAY_SIZE(fds); i++) {
		fds[i] = dial(f);
		say(fds[i], "\0\0\0", 3);
		if (i % 20 == 0)
			expect_service(f);
	}
	for (size_t i = 0; i < ARRAY_SIZE(fds); i++)
		control_server_step(f->server);
	for (size_t i = 0; i < ARRAY_SIZE(fds); i++)
		open += recv(fds[i], &byte, 1, MSG_DONTWAIT) < 0 && errno == EAGAIN;
	assert_int_equal(open, CONTROL_CLIENTS);
	expect_service(f);
	for (size_t i = 0; i < ARRAY_SIZE(fds); i++)
		close(fds[i]);
	for (size_t i = 0; i < ARRAY_SIZE(fds); i++)
		control_server_step(f->server);
	assert_int_equal(control_server_timeout_ms(f->server), -1);
}

static void test_place_is_taken(void **state)
{
	struct fixture *f = *state;
	struct control_server *second = NULL;
	assert_int_equal(control_server_new(&ops, f, &second), 0);
	assert_int_equal(control_server_listen(second, f->dir_fd), -EADDRINUSE);
	control_server_step(second);
	control_server_free(second);
}

/* --- The asking side ------------------------------------------------------------------------ */

/* A process that accepts one connection and says LEN bytes of TEXT, then waits to be killed. */
static pid_t start_liar(const struct fixture *f, const char *text, size_t len)
{
	struct sockaddr_un addr = address(f);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	assert_int_equal(listen(fd, 4), 0);
	pid_t pid = fork();
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		int client = accept(fd, NULL, NULL);
		(void)!write(client, text, len);
		pause();
		_exit(0);
	}
	close(fd);
	return pid;
}

static int ask_liar(struct fixture *f, const char *text, size_t len)
{
	pid_t pid = start_liar(f, text, len);
	struct control_query q = {.dir_fd = f->dir_fd, .verb = CONTROL_INFO};
	control_query_all(&q, 1, 100);
	int result = q.result;
	control_query_done(&q);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	unlinkat(f->dir_fd, CONTROL_SOCKET_NAME, 0);
	return result;
}

static void test_query_liars(void **state)
{
	struct fixture *f = *state;
	assert_int_equal(ask_liar(f, "", 0), -ETIMEDOUT);
	assert_int_equal(ask_liar(f, "\0\0\0\4nope", 8), -EPROTO);
	assert_int_equal(ask_liar(f, "\0\0\0\0", 4), -EPROTO);
	assert_int_equal(ask_liar(f, "\xff\xff\xff\xff", 4), -EPROTO);
	assert_int_equal(ask_liar(f, "\0\0\0\4{}", 6), -ETIMEDOUT);
	assert_int_equal(ask_liar(f, "\0\0\0\x1c{\"v\":1,\"ok\":true,\"data\":[1]}", 32), 0);
}

static void test_query_nobody(void **state)
{
	struct fixture *f = *state;
	struct control_query q = {.dir_fd = f->dir_fd, .verb = CONTROL_INFO};
	control_query_all(&q, 1, 100);
	assert_int_equal(q.result, -ENOENT);
	struct sockaddr_un addr = address(f);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	close(fd);
	control_query_all(&q, 1, 100);
	assert_int_equal(q.result, -ECONNREFUSED);
}

/* More than one batch, some before a server, the others before one that hangs. */
static void test_query_many(void **state)
{
	struct fixture *f = *state;
	struct fixture *hung = NULL;
	struct control_query q[150];
	setup((void **)&hung);
	pid_t pid = fork();
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;) {
			struct pollfd pfd = {control_server_fd(f->server), POLLIN, 0};
			poll(&pfd, 1, control_server_timeout_ms(f->server));
			control_server_step(f->server);
		}
	}
	for (size_t i = 0; i < ARRAY_SIZE(q); i++)
		q[i] = (struct control_query){.dir_fd = i % 50 ? f->dir_fd : hung->dir_fd,
					      .verb = CONTROL_INFO};
	control_query_all(q, ARRAY_SIZE(q), 3000);
	for (size_t i = 0; i < ARRAY_SIZE(q); i++) {
		assert_int_equal(q[i].result, i % 50 ? 0 : -ETIMEDOUT);
		control_query_done(&q[i]);
	}
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	teardown((void **)&hung);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_length),
		cmocka_unit_test(test_own_requests),
		cmocka_unit_test(test_bad_requests),
		cmocka_unit_test(test_replies),
		cmocka_unit_test_setup_teardown(test_verbs, setup, teardown),
		cmocka_unit_test_setup_teardown(test_drops, setup, teardown),
		cmocka_unit_test_setup_teardown(test_lengths_that_lie, setup, teardown),
		cmocka_unit_test_setup_teardown(test_large_replies, setup, teardown),
		cmocka_unit_test_setup_teardown(test_clients_that_leave, setup, teardown),
		cmocka_unit_test_setup_teardown(test_hundred_connections, setup, teardown),
		cmocka_unit_test_setup_teardown(test_place_is_taken, setup, teardown),
		cmocka_unit_test_setup_teardown(test_query_liars, setup_dir, teardown),
		cmocka_unit_test_setup_teardown(test_query_nobody, setup_dir, teardown),
		cmocka_unit_test_setup_teardown(test_query_many, setup, teardown),
	};
	return cmocka_run_group_tests_name("control", tests, NULL, NULL);
}
