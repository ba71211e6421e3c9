/* SPDX-License-Identifier: Apache-2.0 */
/* resolv.conf(5) and hosts(5), line by line. */
#include "net/host_config.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <net/if.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/util.h"
#include "sys/at.h"

#define FILE_MAX    ((size_t)4 << 20)
#define LINE_SIZE   4096
#define HOSTS_LINES 65536
#define SEARCH_MAX  32
#define DNS_PORT    53
#define RESOLV_CONF "/etc/resolv.conf"
#define HOSTS	    "/etc/hosts"
#define BLANKS	    " \t\r\v\f"

void host_config_done(struct host_config *c)
{
	for (size_t i = 0; i < c->n_hosts; i++)
		free(c->hosts[i].name);
	free(c->hosts);
	strv_done(&c->search);
	memset(c, 0, sizeof(*c));
}

/* Copies the next line, without its comment, cut where it is too long. False at the end. */
static bool next_line(const char **text, const char *comments, char *ret_line)
{
	if (!**text)
		return false;
	size_t n = strcspn(*text, "\n");
	size_t used = n < LINE_SIZE - 1 ? n : LINE_SIZE - 1;
	memcpy(ret_line, *text, used);
	ret_line[used] = '\0';
	ret_line[strcspn(ret_line, comments)] = '\0';
	*text += n + ((*text)[n] == '\n');
	return true;
}

/* Cuts the next word off REST; NULL if there is none. */
static char *next_word(char **rest)
{
	char *word = *rest + strspn(*rest, BLANKS);
	if (!*word)
		return NULL;
	char *end = word + strcspn(word, BLANKS);
	*rest = *end ? end + 1 : end;
	*end = '\0';
	return word;
}

static char *normal_name(const char *text)
{
	char *name = xstrdup(text);
	size_t n = strlen(name);
	for (char *p = name; *p; p++)
		if (*p >= 'A' && *p <= 'Z')
			*p = (char)(*p - 'A' + 'a');
	if (n > 1 && name[n - 1] == '.')
		name[n - 1] = '\0';
	return name;
}

/* --- resolv.conf ------------------------------------------------------------------------------ */

static void add_server(struct host_config *c, char *word)
{
	union inet_addr a = {0};
	char *scope = strchr(word, '%');
	if (c->n_servers == HOST_SERVERS_MAX)
		return;
	if (scope)
		*scope++ = '\0';
	if (inet_pton(AF_INET, word, &a.v4.sin_addr) == 1) {
		a.v4.sin_family = AF_INET;
		a.v4.sin_port = htons(DNS_PORT);
	} else if (inet_pton(AF_INET6, word, &a.v6.sin6_addr) == 1) {
		a.v6.sin6_family = AF_INET6;
		a.v6.sin6_port = htons(DNS_PORT);
		if (scope)
			a.v6.sin6_scope_id = if_nametoindex(scope);
	} else {
		return;
	}
	c->servers[c->n_servers++] = a;
}

static void set_search(struct host_config *c, char *rest)
{
	strv_done(&c->search);
	for (char *word = next_word(&rest); word; word = next_word(&rest)) {
		if (c->search.n == SEARCH_MAX)
			break;
		strv_add_take(&c->search, normal_name(word));
	}
}

void host_config_add_resolv(struct host_config *c, const char *text)
{
	char line[LINE_SIZE];
	while (next_line(&text, "#;", line)) {
		char *rest = line;
		const char *key = next_word(&rest);
		char *value = key && str_eq(key, "nameserver") ? next_word(&rest) : NULL;
		if (value)
			add_server(c, value);
		else if (key && (str_eq(key, "search") || str_eq(key, "domain")))
			set_search(c, rest);
	}
	char here[] = "127.0.0.1";
	if (!c->n_servers)
		add_server(c, here);
}

/* --- hosts ------------------------------------------------------------------------------------ */

static void add_host(struct host_config *c, bool v6, const uint8_t *addr, const char *name)
{
	if (c->n_hosts == HOSTS_LINES)
		return;
	if (!c->hosts)
		c->hosts = xcalloc(64, sizeof(*c->hosts));
	else if (c->n_hosts >= 64 && (c->n_hosts & (c->n_hosts - 1)) == 0)
		c->hosts = xrealloc(c->hosts, c->n_hosts * 2, sizeof(*c->hosts));
	struct host_address *h = &c->hosts[c->n_hosts++];
	*h = (struct host_address){.name = normal_name(name), .v6 = v6};
	memcpy(h->addr, addr, v6 ? 16 : 4);
}

void host_config_add_hosts(struct host_config *c, const char *text)
{
	char line[LINE_SIZE];
	while (next_line(&text, "#", line)) {
		uint8_t addr[16] = {0};
		char *rest = line;
		char *word = next_word(&rest);
		if (!word)
			continue;
		word[strcspn(word, "%")] = '\0';
		bool v6 = strchr(word, ':');
		if (inet_pton(v6 ? AF_INET6 : AF_INET, word, addr) != 1)
			continue;
		for (word = next_word(&rest); word; word = next_word(&rest))
			add_host(c, v6, addr, word);
	}
}

/* --- The files -------------------------------------------------------------------------------- */

void host_stamp_get(struct host_stamp *ret)
{
	static const char *const paths[2] = {RESOLV_CONF, HOSTS};
	memset(ret, 0, sizeof(*ret));
	for (size_t i = 0; i < ARRAY_SIZE(paths); i++) {
		struct stat st;
		auto_close int fd = at_open(AT_FDCWD, paths[i], 0, 0);
		if (fd < 0 || fstat(fd, &st) < 0)
			continue;
		ret->file[i].dev = st.st_dev;
		ret->file[i].ino = st.st_ino;
		ret->file[i].size = st.st_size;
		ret->file[i].sec = st.st_mtim.tv_sec;
		ret->file[i].nsec = st.st_mtim.tv_nsec;
	}
}

/* "" where it cannot be read. O_NONBLOCK: should somebody have put a FIFO there. */
static char *read_file(const char *path)
{
	struct buf b = BUF_INIT(FILE_MAX);
	char data[16384];
	ssize_t n = 0;
	auto_close int at = at_open(AT_FDCWD, path, 0, 0);
	auto_close int fd = at < 0 ? at : at_reopen(at, O_RDONLY | O_NONBLOCK | O_NOCTTY);
	while (fd >= 0 && (n = read(fd, data, sizeof(data))) > 0)
		if (buf_add(&b, data, (size_t)n) < 0)
			break;
	return buf_take(&b);
}

void host_config_read(struct host_config *ret)
{
	auto_free char *resolv = read_file(RESOLV_CONF);
	auto_free char *hosts = read_file(HOSTS);
	memset(ret, 0, sizeof(*ret));
	host_config_add_resolv(ret, resolv);
	host_config_add_hosts(ret, hosts);
}
