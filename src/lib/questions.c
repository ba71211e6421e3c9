/* SPDX-License-Identifier: Apache-2.0 */
/* The questions of --net-ask: see questions.h. */
#include "lib/questions.h"

#include <arpa/inet.h>
#include <errno.h>
#include <limits.h>
#include <string.h>

#include "base/util.h"
#include "base/value.h"
#include "lib/ask_save.h"
#include "lib/launch.h"
#include "supervise/ask.h"
#include "supervise/sock.h"

static struct value *question_value(const struct ask_question *q, const char *sandbox)
{
	char address[INET6_ADDRSTRLEN] = "";
	int64_t left = q->until_ms - sock_now_ms();
	struct value *row = value_new(VALUE_TABLE);
	inet_ntop(q->point.v6 ? AF_INET6 : AF_INET, q->point.addr, address, sizeof(address));
	value_table_put_take(row, "id", value_new_int(q->id));
	value_table_put_take(row, "sandbox",
			     sandbox ? value_new_string(sandbox) : value_new(VALUE_NULL));
	value_table_put_take(row, "op", value_new_string(q->op));
	value_table_put_take(row, "protocol",
			     value_new_string(q->point.proto == NET_UDP ? "udp" : "tcp"));
	value_table_put_take(row, "host",
			     q->n_hosts ? value_new_string(q->host) : value_new(VALUE_NULL));
	value_table_put_take(row, "address", value_new_string(address));
	value_table_put_take(row, "port", value_new_int(q->point.port));
	value_table_put_take(row, "pid", value_new_int(q->pid));
	value_table_put_take(row, "program", value_new_string(q->program));
	value_table_put_take(row, "left_ms", value_new_int(left < 0 ? 0 : left));
	return row;
}

struct value *questions_value(struct sandlock_process *p)
{
	struct ask_question all[ASK_OPEN_MAX];
	size_t n = ask_list(p->ask, all);
	struct value *list = value_new(VALUE_ARRAY);
	for (size_t i = 0; i < n; i++)
		value_array_add_take(list, question_value(&all[i], p->name));
	return list;
}

int questions_answer(struct sandlock_process *p, int64_t id, const char *word, char **ret_why)
{
	struct ask_question q;
	enum ask_answer answer = ASK_OPEN;
	if (str_eq(word, "once"))
		answer = ASK_ONCE;
	else if (str_eq(word, "run"))
		answer = ASK_RUN;
	else if (str_eq(word, "no"))
		answer = ASK_NO;
	if (answer == ASK_OPEN) {
		*ret_why = xstrdup("an answer is once, run or no");
		return -EINVAL;
	}
	if (id < 0 || id > INT_MAX || ask_answer(p->ask, (unsigned int)id, answer, &q) < 0) {
		*ret_why = xasprintf("there is no open question %lld", (long long)id);
		return -ENOENT;
	}
	int r = answer == ASK_RUN ? ask_save_add(p->ask_save, &q) : 0;
	if (r < 0)
		*ret_why = xasprintf("it is allowed for the run, but could not be saved: %s",
				     strerror(-r));
	return r;
}

/* --- Of the own process's sandboxes --------------------------------------------------------- */

int sandlock_process_questions(struct sandlock_process *process, char **ret_json)
{
	AUTO(value_free) struct value *list = questions_value(process);
	*ret_json = json_write_compact(list);
	return 0;
}

int sandlock_process_asks(const struct sandlock_process *process)
{
	return process->ask ? (int)ask_count(process->ask) : -SANDLOCK_E_STATE;
}

int sandlock_process_answer(struct sandlock_process *process, int id, const char *answer,
			    struct sandlock_error *err)
{
	auto_free char *why = NULL;
	int r = questions_answer(process, id, answer ? answer : "", &why);
	if (r == 0)
		return 0;
	return api_fail(err, r == -ENOENT ? SANDLOCK_E_NOT_FOUND : SANDLOCK_E_INVALID, -r, "%s",
			why);
}
