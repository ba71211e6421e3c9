/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The control protocol (docs/control.md) as text: frames, requests, replies. Pure: no system call
 * is made here. Whatever comes from the other side of a socket is hostile.
 *
 * A message is its length, four bytes with the highest first, and that many bytes of JSON.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define CONTROL_VERSION	      1
#define CONTROL_HEADER	      4
#define CONTROL_REQUEST_MAX   ((size_t)65536)
#define CONTROL_REPLY_MAX     ((size_t)1024 * 1024)
#define CONTROL_SOCKET_NAME   "control.sock"
#define CONTROL_VERB_MAX_SHOW 64

struct value;

enum control_verb {
	CONTROL_CONFIG,	   /* the effective policy */
	CONTROL_PORTS,	   /* virtual port → real one */
	CONTROL_INFO,	   /* who and what it is, what holds it together */
	CONTROL_KILL,	   /* ends the whole tree */
	CONTROL_QUESTIONS, /* what is asked of the user */
	CONTROL_ANSWER,	   /* to one of these; takes arguments */
	CONTROL_VERB_COUNT,
};

const char *control_verb_name(enum control_verb verb);

void control_put_length(char out[CONTROL_HEADER], size_t len);
size_t control_get_length(const char in[CONTROL_HEADER]);

/* The request of VERB with its length in front; owned by the caller. ARGS is a table, or NULL. */
char *control_request_text(enum control_verb verb, const struct value *args, size_t *ret_len);
/*
 * Reads a request of LEN bytes. 0 and its arguments (a table, or NULL), or -EINVAL with *RET_WHY
 * what to answer; owned by the caller.
 */
int control_request_parse(const char *text, size_t len, enum control_verb *ret_verb,
			  struct value **ret_args, char **ret_why);

/* Replies with their length in front, owned by the caller. DATA is JSON text. */
char *control_reply_ok(const char *data, size_t *ret_len);
char *control_reply_error(const char *why, size_t *ret_len);
/*
 * Reads a reply of LEN bytes: 0 with its data, owned by the caller; -EREMOTEIO with the other
 * side's refusal in *RET_WHY (owned by the caller); -EPROTO for what is no reply.
 */
int control_reply_parse(const char *text, size_t len, struct value **ret_data, char **ret_why);
