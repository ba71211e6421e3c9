/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One sandbox's control socket. It never blocks and never grows: a bounded number of clients, each
 * with one request, one reply and five seconds for both. Only the own uid is heard.
 *
 * Not for several threads: one of them makes all calls.
 */
#pragma once

#define CONTROL_CLIENTS	  16
#define CONTROL_CLIENT_MS 5000

struct value;

/*
 * What the verbs do. Those with RET_JSON put JSON text there, owned by the caller. All return 0 or
 * a negative errno, which the client is told in words, or in those of RET_WHY (owned by the caller)
 * if that is set. None may block.
 */
struct control_ops {
	int (*config)(void *data, char **ret_json);
	int (*ports)(void *data, char **ret_json);
	int (*info)(void *data, char **ret_json);
	int (*kill)(void *data);
	int (*questions)(void *data, char **ret_json);
	/* ARGS: a table, hostile, or NULL. */
	int (*answer)(void *data, const struct value *args, char **ret_why);
};

struct control_server;

/*
 * A server that hears nobody yet. OPS and DATA are borrowed until control_server_free. Negative
 * errno on failure.
 */
int control_server_new(const struct control_ops *ops, void *data,
		       struct control_server **ret_server);
/*
 * Listens as control.sock (mode 0600) in the directory DIR_FD, which is borrowed for the call and
 * holds no such name. Once only. Negative errno on failure.
 */
int control_server_listen(struct control_server *s, int dir_fd);
/* Readable when control_server_step has work; borrowed. */
int control_server_fd(const struct control_server *s);
/* How long control_server_step may be put off: milliseconds, or -1 without limit. */
int control_server_timeout_ms(const struct control_server *s);
/* Does what is there to do. */
void control_server_step(struct control_server *s);
/* Closes all connections. The socket's name is left to whoever owns the directory. NULL is fine. */
void control_server_free(struct control_server *s);
void control_server_free_cleanup(struct control_server **s);
