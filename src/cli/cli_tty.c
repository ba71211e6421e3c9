/* SPDX-License-Identifier: Apache-2.0 */
/* Terminal hand-over and the --pty relay; see the header. */
#include "cli/cli_tty.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/util.h"

/* The descriptor through which the controlling terminal is reached, -1 if there is none. */
static int tty_fd(void)
{
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
		if (tcgetpgrp(fd) > 0)
			return fd;
	}
	return -1;
}

bool tty_is_ours(void)
{
	int fd = tty_fd();
	return fd >= 0 && tcgetpgrp(fd) == getpgrp();
}

bool tty_is_interactive(void)
{
	return isatty(STDIN_FILENO) && tcgetpgrp(STDIN_FILENO) == getpgrp();
}

static void continued(int sig)
{
	(void)sig;
}

bool tty_wait_for(void)
{
	/* A handler without SA_RESTART: one continuation ends the wait, whatever it was for. */
	struct sigaction sa = {.sa_handler = continued};
	struct sigaction old;
	sigaction(SIGCONT, &sa, &old);
	/* From the background this raises SIGTTOU, whose default is to stop (tcsetpgrp(3)). */
	int fd = tty_fd();
	bool stuck = fd < 0 || (tcsetpgrp(fd, getpgrp()) < 0 && errno == EIO);
	sigaction(SIGCONT, &old, NULL);
	return !stuck;
}

void tty_give(pid_t pgrp)
{
	sigset_t set;
	sigset_t old;
	sigemptyset(&set);
	sigaddset(&set, SIGTTOU);
	sigprocmask(SIG_BLOCK, &set, &old);
	int fd = tty_fd();
	if (fd >= 0)
		(void)tcsetpgrp(fd, pgrp);
	sigprocmask(SIG_SETMASK, &old, NULL);
}

void tty_take_back(pid_t command)
{
	int fd = tty_fd();
	pid_t now = fd >= 0 ? tcgetpgrp(fd) : -1;
	if (now <= 0 || now == getpgrp())
		return;
	if (now == command || (kill(-now, 0) < 0 && errno == ESRCH))
		tty_give(getpgrp());
}

void tty_save(struct tty_state *ret_state)
{
	struct tty_state st = {.fd = -1};
	for (int fd = 0; fd < 3; fd++) {
		st.flags[fd] = fcntl(fd, F_GETFL);
		if (st.fd < 0 && isatty(fd) && tcgetattr(fd, &st.termios) == 0 &&
		    ioctl(fd, TIOCGWINSZ, &st.size) == 0)
			st.fd = fd;
	}
	*ret_state = st;
}

void tty_restore(const struct tty_state *state, bool modes)
{
	for (int fd = 0; fd < 3; fd++) {
		if (state->flags[fd] >= 0 && fcntl(fd, F_GETFL) != state->flags[fd])
			fcntl(fd, F_SETFL, state->flags[fd]);
	}
	if (state->fd < 0)
		return;
	/* A process in the background may do neither without SIGTTOU, which is blocked here. */
	sigset_t set;
	sigset_t old;
	sigemptyset(&set);
	sigaddset(&set, SIGTTOU);
	sigprocmask(SIG_BLOCK, &set, &old);
	if (tty_is_ours()) {
		tcflow(state->fd, TCOON);
		ioctl(state->fd, TIOCNXCL);
		if (modes) {
			tcsetattr(state->fd, TCSANOW, &state->termios);
			ioctl(state->fd, TIOCSWINSZ, &state->size);
		}
	}
	sigprocmask(SIG_SETMASK, &old, NULL);
}

void relay_init(struct relay *r, int master)
{
	memset(r, 0, sizeof(*r));
	r->master = master;
	fcntl(master, F_SETFL, fcntl(master, F_GETFL) | O_NONBLOCK);
	if (tty_is_interactive() && tcgetattr(STDIN_FILENO, &r->saved) == 0) {
		struct termios raw = r->saved;
		cfmakeraw(&raw);
		r->raw = tcsetattr(STDIN_FILENO, TCSADRAIN, &raw) == 0;
	}
}

void relay_done(struct relay *r)
{
	if (r->raw)
		tcsetattr(STDIN_FILENO, TCSADRAIN, &r->saved);
	r->raw = false;
	r->master = util_close(r->master);
	free(take_ptr(r->held));
}

void relay_resize(const struct relay *r)
{
	struct winsize ws;
	if (ioctl(STDIN_FILENO, TIOCGWINSZ, &ws) == 0)
		ioctl(r->master, TIOCSWINSZ, &ws);
}

void relay_poll(const struct relay *r, struct pollfd *pfd)
{
	bool in_room = !r->in.eof && r->in.len == 0 && !r->holding;
	bool out_room = r->holding ? r->held_len < RELAY_HELD_MAX : r->out.len == 0;
	pfd[0] = (struct pollfd){.fd = in_room ? STDIN_FILENO : -1, .events = POLLIN};
	short events = 0;
	if (!r->out.eof && out_room)
		events |= POLLIN;
	if (r->in.len)
		events |= POLLOUT;
	pfd[1] = (struct pollfd){.fd = events && !r->out.eof ? r->master : -1, .events = events};
	bool shows = r->out.len && !r->holding;
	pfd[2] = (struct pollfd){.fd = shows ? STDOUT_FILENO : -1, .events = POLLOUT};
}

/* Reads into an empty pipe. False at the end of the source. */
static bool pull(int fd, struct relay_pipe *p)
{
	ssize_t n = read(fd, p->buf, sizeof(p->buf));
	if (n > 0) {
		p->len = (size_t)n;
		p->sent = 0;
		return true;
	}
	return n < 0 && (errno == EAGAIN || errno == EINTR);
}

/* Reads from the command into what is held. */
static bool pull_held(struct relay *r)
{
	char text[8192];
	ssize_t n = read(r->master, text, sizeof(text));
	if (n <= 0)
		return n < 0 && (errno == EAGAIN || errno == EINTR);
	r->held = xrealloc(r->held, r->held_len + (size_t)n, 1);
	memcpy(r->held + r->held_len, text, (size_t)n);
	r->held_len += (size_t)n;
	return true;
}

/* The next piece of what was held becomes the next to be written. */
static void take_held(struct relay *r)
{
	size_t left = r->held_len - r->held_at;
	size_t n = left < sizeof(r->out.buf) ? left : sizeof(r->out.buf);
	if (!left || r->out.len || r->holding)
		return;
	memcpy(r->out.buf, r->held + r->held_at, n);
	r->out.len = n;
	r->out.sent = 0;
	r->held_at += n;
	if (r->held_at < r->held_len)
		return;
	free(take_ptr(r->held));
	r->held_len = r->held_at = 0;
}

void relay_hold(struct relay *r, bool hold)
{
	r->holding = hold;
	take_held(r);
}

bool relay_is_busy(const struct relay *r)
{
	struct pollfd pfd = {.fd = r->master, .events = POLLIN};
	return r->out.len || r->held_at < r->held_len ||
	       (poll(&pfd, 1, 0) > 0 && (pfd.revents & POLLIN));
}

static bool push(int fd, struct relay_pipe *p)
{
	ssize_t n = write(fd, p->buf + p->sent, p->len - p->sent);
	if (n < 0)
		return errno == EAGAIN || errno == EINTR;
	p->sent += (size_t)n;
	if (p->sent == p->len)
		p->len = p->sent = 0;
	return true;
}

void relay_step(struct relay *r, const struct pollfd *pfd)
{
	if (pfd[0].fd >= 0 && pfd[0].revents && !pull(STDIN_FILENO, &r->in)) {
		/* The end of input becomes the terminal's own end-of-file character. */
		r->in.eof = true;
		r->in.buf[0] = 4;
		r->in.len = 1;
		r->in.sent = 0;
	}
	if (pfd[1].fd >= 0 && (pfd[1].revents & POLLOUT) && !push(r->master, &r->in))
		r->in.len = 0;
	if (pfd[1].fd >= 0 && (pfd[1].revents & (POLLIN | POLLHUP | POLLERR))) {
		if (r->holding ? r->held_len < RELAY_HELD_MAX && !pull_held(r)
			       : r->out.len == 0 && !pull(r->master, &r->out))
			r->out.eof = true;
	}
	if (pfd[2].fd >= 0 && pfd[2].revents && !push(STDOUT_FILENO, &r->out)) {
		r->out.len = 0;
		r->out.eof = true;
		r->broken = true;
	}
	take_held(r);
}

void relay_drain(struct relay *r, bool patient)
{
	for (;;) {
		take_held(r);
		if (r->out.len == 0 && r->out.eof)
			return;
		if (r->out.len == 0) {
			ssize_t n = read(r->master, r->out.buf, sizeof(r->out.buf));
			if (n <= 0)
				return;
			r->out.len = (size_t)n;
			r->out.sent = 0;
		}
		struct pollfd pfd = {.fd = STDOUT_FILENO, .events = POLLOUT};
		if (poll(&pfd, 1, patient ? 5000 : 0) <= 0 || !push(STDOUT_FILENO, &r->out))
			return;
	}
}
