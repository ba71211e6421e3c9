/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes on the control socket, in pieces that the first byte chooses: the server answers with
 * one well-formed frame or closes, holds nothing afterwards, and the asking side takes the same
 * bytes as a reply without harm.
 */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/util.h"
#include "base/value.h"
#include "control/protocol.h"
#include "control/server.h"
#include "fuzz.h"

static int give_text(void *data, char **ret_json)
{
	(void)data;
	*ret_json = xstrdup("{\"a\":1}");
	return 0;
}

static int do_nothing(void *data)
{
	(void)data;
	return 0;
}

static int look_at(void *data, const struct value *args, char **ret_why)
{
	(void)data;
	*ret_why = args ? json_write_compact(args) : xstrdup("nothing");
	return -EINVAL;
}

static const struct control_ops ops = {give_text,  give_text, give_text,
				       do_nothing, give_text, look_at};

/* What is there of the reply is one frame, whole, that the asking side understands. */
static void check_reply(const char *text, size_t len)
{
	AUTO(value_free) struct value *data = NULL;
	auto_free char *why = NULL;
	assert(len > CONTROL_HEADER && control_get_length(text) == len - CONTROL_HEADER);
	int r = control_reply_parse(text + CONTROL_HEADER, len - CONTROL_HEADER, &data, &why);
	assert(r == 0 || (r == -EREMOTEIO && why));
}

static int dial(int dir_fd)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	snprintf(addr.sun_path, sizeof(addr.sun_path), "/proc/self/fd/%d/" CONTROL_SOCKET_NAME,
		 dir_fd);
	assert(fd >= 0 && connect(fd, (struct sockaddr *)&addr, sizeof(addr)) == 0);
	return fd;
}

static void talk(struct control_server *server, int fd, const uint8_t *data, size_t size)
{
	char reply[65536];
	size_t piece = size ? (size_t)data[0] * 16 + 1 : 1;
	size_t got = 0;
	for (size_t at = 0; at < size; at += piece) {
		size_t n = size - at < piece ? size - at : piece;
		if (send(fd, data + at, n, MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
			break;
		control_server_step(server);
	}
	shutdown(fd, SHUT_WR);
	for (ssize_t n = 1; n > 0 && got < sizeof(reply); got += (size_t)(n > 0 ? n : 0)) {
		control_server_step(server);
		n = recv(fd, reply + got, sizeof(reply) - got, MSG_DONTWAIT);
	}
	if (got)
		check_reply(reply, got);
	assert(control_server_timeout_ms(server) == -1);
}

static void check_texts(const uint8_t *data, size_t size)
{
	AUTO(value_free) struct value *value = NULL;
	auto_free char *why = NULL;
	auto_free char *refusal = NULL;
	enum control_verb verb = CONTROL_VERB_COUNT;
	AUTO(value_free) struct value *args = NULL;
	int r = control_request_parse((const char *)data, size, &verb, &args, &why);
	assert(r == 0 ? verb < CONTROL_VERB_COUNT && !why : r == -EINVAL && why);
	r = control_reply_parse((const char *)data, size, &value, &refusal);
	assert(r == 0 ? value != NULL : r == -EPROTO || (r == -EREMOTEIO && refusal));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char dir[] = "/tmp/sandlock-fuzz-XXXXXX";
	struct control_server *server = NULL;

	check_texts(data, size);
	if (size > 100000 || !mkdtemp(dir))
		return 0;
	int dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert(dir_fd >= 0 && control_server_new(&ops, NULL, &server) == 0 &&
	       control_server_listen(server, dir_fd) == 0);
	int fd = dial(dir_fd);
	talk(server, fd, data, size);
	close(fd);
	control_server_free(server);
	unlinkat(dir_fd, CONTROL_SOCKET_NAME, 0);
	close(dir_fd);
	rmdir(dir);
	return 0;
}
