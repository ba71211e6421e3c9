/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a change set is of, as text: "key value" lines in a fixed order, texts with %XX for all but
 * plain characters, "end" as the last line.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/util.h"
#include "fs/file.h"
#include "fs/store.h"

enum { WORKDIRS_MAX = 64, WORDS_MAX = 65536 };

void set_info_done(struct set_info *info)
{
	for (size_t i = 0; i < info->n_workdirs; i++)
		free(info->workdirs[i].path);
	free(info->workdirs);
	strv_done(&info->command);
	*info = (struct set_info){0};
}

void set_info_done_cleanup(struct set_info *info)
{
	set_info_done(info);
}

static void add_text(struct buf *out, const char *text)
{
	for (; *text; text++) {
		unsigned char c = (unsigned char)*text;
		if (c > 32 && c < 127 && c != '%')
			buf_add_char(out, (char)c);
		else
			buf_printf(out, "%%%02X", c);
	}
	buf_add_char(out, '\n');
}

int set_info_encode(const struct set_info *info, struct buf *out)
{
	buf_clear(out);
	buf_printf(out, "sandlock-changes 1\nbegan %lld.%09ld\ndeath %s\n",
		   (long long)info->began.tv_sec, info->began.tv_nsec,
		   info->keep_on_death ? "keep" : "discard");
	for (size_t i = 0; i < info->n_workdirs; i++) {
		const struct set_workdir *w = &info->workdirs[i];
		buf_printf(out, "workdir %llu.%llu ", (unsigned long long)w->id.ino,
			   (unsigned long long)w->id.born);
		add_text(out, w->path);
	}
	for (size_t i = 0; i < info->command.n; i++) {
		buf_add_str(out, "word ");
		add_text(out, info->command.v[i]);
	}
	return buf_add_str(out, "end\n");
}

static int hex_value(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* TEXT up to the end of its line, unescaped (owned); NULL if it is malformed. */
static char *get_text(const char *text, size_t len)
{
	auto_free char *out = xzalloc(len + 1);
	size_t n = 0;
	for (size_t i = 0; i < len; i++) {
		if (text[i] != '%') {
			out[n++] = text[i];
			continue;
		}
		int high = i + 2 < len ? hex_value(text[i + 1]) : -1;
		int low = i + 2 < len ? hex_value(text[i + 2]) : -1;
		if (high < 0 || low < 0 || high + low == 0)
			return NULL;
		out[n++] = (char)(high * 16 + low);
		i += 2;
	}
	return take_ptr(out);
}

/* LINE is after the keyword. */
static bool get_workdir(const char *line, struct set_info *info)
{
	struct fs_id id;
	if (info->n_workdirs == WORKDIRS_MAX || !file_number(&line, 10, '.', &id.ino) ||
	    !file_number(&line, 10, ' ', &id.born))
		return false;
	char *path = get_text(line, strlen(line));
	if (!path || path[0] != '/') {
		free(path);
		return false;
	}
	info->workdirs = xrealloc(info->workdirs, info->n_workdirs + 1, sizeof(struct set_workdir));
	info->workdirs[info->n_workdirs++] = (struct set_workdir){.path = path, .id = id};
	return true;
}

static bool get_word(const char *line, struct set_info *info)
{
	char *text = info->command.n < WORDS_MAX ? get_text(line, strlen(line)) : NULL;
	if (!text)
		return false;
	strv_add_take(&info->command, text);
	return true;
}

static bool get_line(const char *line, size_t number, struct set_info *info)
{
	const char *value = strchr(line, ' ');
	value = value ? value + 1 : "";
	switch (number) {
	case 0:
		return str_eq(line, "sandlock-changes 1");
	case 1:
		return str_starts(line, "began ") && file_time(&value, '\0', &info->began) &&
		       !*value;
	case 2:
		info->keep_on_death = str_eq(line, "death keep");
		return info->keep_on_death || str_eq(line, "death discard");
	default:
		break;
	}
	if (str_starts(line, "workdir "))
		return get_workdir(value, info);
	return str_starts(line, "word ") && get_word(value, info);
}

int set_info_decode(const char *text, size_t len, struct set_info *ret)
{
	AUTO(set_info_done) struct set_info info = {0};
	size_t number = 0;
	while (len) {
		const char *end = memchr(text, '\n', len);
		size_t n = end ? (size_t)(end - text) : 0;
		if (!end || memchr(text, '\0', n))
			return -EINVAL;
		auto_free char *line = xstrndup(text, n);
		text += n + 1;
		len -= n + 1;
		if (str_eq(line, "end")) {
			if (len || number < 3)
				return -EINVAL;
			*ret = info;
			info = (struct set_info){0};
			return 0;
		}
		if (!get_line(line, number++, &info))
			return -EINVAL;
	}
	return -EINVAL;
}
