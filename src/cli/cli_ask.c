/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Questions on the terminal. An answer is a word and the question's number, which is by chance: a
 * command that gets the user to type "run" at the right moment answers nothing.
 */
#include "cli/cli_ask.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/util.h"
#include "base/value.h"
#include "cli/cli.h"
#include "cli/cli_tty.h"

/*
 * Ends what escape sequence the command may have left half-written (CAN, ST), and takes back what
 * would hide or change the text: soft reset, character set, attributes, scroll region. Then a line
 * of its own at the bottom.
 */
#define CLEAN "\030\033\\\033[!p\017\033(B\033[0m\033[r\033[999;1H\r\n"

#define DEFER_MAX 50

static const char *text_of(const struct value *q, const char *key)
{
	const struct value *v = value_get(q, key);
	return v && v->kind == VALUE_STRING ? v->str : NULL;
}

static int64_t number_of(const struct value *q, const char *key)
{
	const struct value *v = value_get(q, key);
	return v && v->kind == VALUE_INT ? v->integer : 0;
}

static void add_safe(struct buf *out, const char *text)
{
	buf_add_terminal(out, text ? text : "?", strlen(text ? text : "?"));
}

void ask_add_text(const struct value *q, struct buf *out)
{
	const char *host = text_of(q, "host");
	const char *op = text_of(q, "op");
	add_safe(out, text_of(q, "program"));
	buf_printf(out, " (pid %lld) wants to %s to ", (long long)number_of(q, "pid"),
		   op && str_eq(op, "connect") ? "connect" : "send");
	if (host) {
		add_safe(out, host);
		buf_add_str(out, " (");
	}
	add_safe(out, text_of(q, "address"));
	buf_printf(out, "%s port %lld, ", host ? ")" : "", (long long)number_of(q, "port"));
	add_safe(out, text_of(q, "protocol"));
}

/* --- The terminal --------------------------------------------------------------------------- */

void ask_terminal_init(struct ask_terminal *t, bool shared, struct relay *relay, bool quiet)
{
	*t = (struct ask_terminal){.fd = -1, .relay = relay, .quiet = quiet};
	if (!shared)
		t->fd = open("/dev/tty", O_RDWR | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
}

static bool in_foreground(const struct ask_terminal *t)
{
	return t->fd >= 0 && tcgetpgrp(t->fd) == getpgrp();
}

/* A terminal that takes nothing now loses text, and holds up nothing. */
static void put(const struct ask_terminal *t, const struct buf *b)
{
	for (size_t done = 0; done < b->len;) {
		ssize_t n = write(t->fd, b->data + done, b->len - done);
		struct pollfd pfd = {.fd = t->fd, .events = POLLOUT};
		if (n < 0 && (errno != EAGAIN || poll(&pfd, 1, 100) <= 0))
			return;
		done += n > 0 ? (size_t)n : 0;
	}
}

static void prompt(const struct ask_terminal *t, struct buf *b)
{
	buf_printf(b,
		   "sandlock: allow it? Type \"once %d\", \"run %d\" (for the whole run) or "
		   "\"no %d\": ",
		   t->shown, t->shown, t->shown);
}

/* Lines are edited by the terminal; what was typed before was not meant for us. */
static bool take_terminal(struct ask_terminal *t)
{
	if (tcgetattr(t->fd, &t->before) < 0)
		return false;
	struct termios lines = t->relay && t->relay->raw ? t->relay->saved : t->before;
	lines.c_iflag |= ICRNL;
	lines.c_oflag |= OPOST | ONLCR;
	lines.c_lflag |= ICANON | ECHO | ECHOE | ISIG;
	lines.c_cc[VMIN] = 1;
	lines.c_cc[VTIME] = 0;
	return tcsetattr(t->fd, TCSANOW, &lines) == 0 && tcflush(t->fd, TCIFLUSH) == 0;
}

static void show(struct ask_terminal *t, const struct value *q)
{
	AUTO(buf_done) struct buf b = BUF_INIT(8192);
	int id = (int)number_of(q, "id");
	if (id <= 0 || !in_foreground(t) || !take_terminal(t))
		return;
	t->shown = id;
	t->len = 0;
	if (t->relay) {
		relay_hold(t->relay, true);
		buf_add_str(&b, CLEAN);
	}
	buf_add_str(&b, "sandlock: ");
	ask_add_text(q, &b);
	buf_printf(&b, "; refused in %lld s\n", (long long)(number_of(q, "left_ms") + 999) / 1000);
	prompt(t, &b);
	put(t, &b);
}

static void hide(struct ask_terminal *t, const char *why)
{
	AUTO(buf_done) struct buf b = BUF_INIT(256);
	if (!t->shown)
		return;
	t->shown = 0;
	if (in_foreground(t)) {
		if (why)
			buf_printf(&b, "\nsandlock: %s\n", why);
		put(t, &b);
		tcflush(t->fd, TCIFLUSH);
		tcsetattr(t->fd, TCSANOW, &t->before);
	}
	if (t->relay)
		relay_hold(t->relay, false);
}

/* Once: a run whose questions nobody sees refuses them, and does not say why. */
static void hint(struct ask_terminal *t, const struct value *q)
{
	AUTO(buf_done) struct buf b = BUF_INIT(8192);
	AUTO(buf_done) struct buf name = BUF_INIT(1024);
	const char *sandbox = text_of(q, "sandbox");
	t->hinted = true;
	if (t->quiet)
		return;
	ask_add_text(q, &b);
	buf_add_shell(&name, sandbox ? sandbox : "NAME");
	cli_error(0, "%s; 'sandlock answer %s' allows it within %lld s, and shows further ones",
		  buf_text(&b), buf_text(&name), (long long)(number_of(q, "left_ms") + 999) / 1000);
}

static const struct value *find(const struct value *list, int id)
{
	for (size_t i = 0; i < list->n; i++) {
		if (number_of(list->items[i], "id") == id)
			return list->items[i];
	}
	return NULL;
}

void ask_terminal_update(struct ask_terminal *t, struct sandlock_process *process)
{
	AUTO(value_free) struct value *list = NULL;
	auto_free char *json = NULL;
	if (!t->shown && sandlock_process_asks(process) <= 0)
		return;
	if (!t->shown && t->hinted && !in_foreground(t))
		return;
	if (sandlock_process_questions(process, &json) < 0 ||
	    json_parse(json, strlen(json), "questions", &list, NULL) < 0 ||
	    list->kind != VALUE_ARRAY)
		return;
	if (t->shown && !find(list, t->shown))
		hide(t, "the question is not open any more");
	if (!list->n || t->shown)
		return;
	/* What the command has printed before comes first, unless it prints without end. */
	if (t->relay && relay_is_busy(t->relay) && t->deferred++ < DEFER_MAX)
		return;
	t->deferred = 0;
	show(t, list->items[0]);
	if (!t->shown && !t->hinted)
		hint(t, list->items[0]);
}

/* --- Answers -------------------------------------------------------------------------------- */

/* "WORD NUMBER", with blanks around. NULL: it is not the one that is shown. */
static const char *parse_line(struct ask_terminal *t)
{
	char *word = t->line + strspn(t->line, " ");
	char *behind = word + strcspn(word, " ");
	char *end = NULL;
	long id = strtol(behind, &end, 10);
	if (end == behind || end[strspn(end, " ")] || id != t->shown)
		return NULL;
	*behind = '\0';
	return word;
}

static void take_line(struct ask_terminal *t, struct sandlock_process *process)
{
	AUTO(buf_done) struct buf b = BUF_INIT(8192);
	struct sandlock_error err = {0};
	t->line[t->len] = '\0';
	t->len = 0;
	const char *word = parse_line(t);
	if (word) {
		int r = sandlock_process_answer(process, t->shown, word, &err);
		if (r == 0) {
			hide(t, NULL);
			return;
		}
		buf_printf(&b, "sandlock: %s\n", err.msg);
	}
	prompt(t, &b);
	put(t, &b);
}

void ask_terminal_poll(const struct ask_terminal *t, struct pollfd *pfd)
{
	*pfd = (struct pollfd){.fd = t->shown ? t->fd : -1, .events = POLLIN};
}

void ask_terminal_step(struct ask_terminal *t, const struct pollfd *pfd,
		       struct sandlock_process *process)
{
	char text[256];
	if (!t->shown || pfd->fd < 0 || !pfd->revents || !in_foreground(t))
		return;
	ssize_t n = read(t->fd, text, sizeof(text));
	if (n <= 0 && errno != EAGAIN) {
		hide(t, NULL);
		t->fd = util_close(t->fd);
	}
	for (ssize_t i = 0; i < n && t->shown; i++) {
		if (text[i] == '\n')
			take_line(t, process);
		else if (t->len + 1 < sizeof(t->line))
			t->line[t->len++] = text[i];
	}
}

void ask_terminal_done(struct ask_terminal *t)
{
	hide(t, "the run has ended");
	t->fd = util_close(t->fd);
}
