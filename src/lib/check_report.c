/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The report as text and as JSON. The text begins with lines whose wording is fixed, since scripts
 * look for them; what follows is for people, and the JSON for programs (sandlock-check(1)).
 */
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/util.h"
#include "base/value.h"
#include "lib/check.h"

#define REPORT_VERSION 1
#define MINIMUM_ABI    6
#define TEXT_MAX       ((size_t)256 * 1024)

static const char *const status_names[CHECK_STATUS_COUNT] = {
	[CHECK_PENDING] = "failed",    [CHECK_OK] = "ok",
	[CHECK_MISSING] = "missing",   [CHECK_BLOCKED] = "blocked",
	[CHECK_DEGRADED] = "degraded", [CHECK_FAILED] = "failed",
	[CHECK_UNTRIED] = "untried",   [CHECK_INFO] = "info",
};

const char *check_status_name(enum check_status status)
{
	return status_names[status];
}

/* --- The fixed lines ----------------------------------------------------------------------------
 */

/* clang-format off */
static const struct {
	const char *words;
	const char *row;
	int abi;
} features[] = {
	{"Filesystem:",     "landlock-write", 1},
	{"File truncate:",  "landlock-fs-truncate", 3},
	{"TCP ports:",      "landlock-net-tcp", 4},
	{"Device ioctl:",   "landlock-fs-ioctl-dev", 5},
	{"IPC scoping:",    "landlock-abstract-unix-socket-scope", 6},
	{"Signal scoping:", "landlock-signal-scope", 6},
};

static const struct {
	const char *words;
	const char *row;
	int abi;
} protections[] = {
	{"FsRefer",                 "landlock-fs-refer", 2},
	{"FsTruncate",              "landlock-fs-truncate", 3},
	{"NetTcp",                  "landlock-net-tcp", 4},
	{"FsIoctlDev",              "landlock-fs-ioctl-dev", 5},
	{"SignalScope",             "landlock-signal-scope", 6},
	{"AbstractUnixSocketScope", "landlock-abstract-unix-socket-scope", 6},
};
/* clang-format on */

/* Tried and right; or not to be tried here, and the kernel is new enough. */
static bool supported(const struct check_report *report, const char *id, int abi)
{
	const struct check_row *row = check_row_find(report, id);
	if (row && row->status == CHECK_UNTRIED)
		return report->landlock_abi >= abi;
	return row && row->status == CHECK_OK;
}

static void add_fixed_lines(const struct check_report *report, struct buf *b)
{
	bool all = report->landlock_abi >= MINIMUM_ABI;
	for (size_t i = 0; i < ARRAY_SIZE(protections); i++)
		all = all && supported(report, protections[i].row, protections[i].abi);
	buf_add_str(b, "Kernel feature support:\n");
	if (report->landlock_abi)
		buf_printf(b, "  Landlock:       ABI v%d\n", report->landlock_abi);
	else
		buf_add_str(b, "  Landlock:       not available\n");
	buf_printf(b, "  Minimum required: ABI v%d\n", MINIMUM_ABI);
	buf_printf(b, "  Status:         %s\n",
		   all ? "OK"
		   : report->landlock_abi && report->landlock_abi < MINIMUM_ABI
			   ? "UNSUPPORTED (upgrade kernel)"
			   : "UNSUPPORTED (see the rows below)");
	for (size_t i = 0; i < ARRAY_SIZE(features); i++) {
		if (supported(report, features[i].row, features[i].abi))
			buf_printf(b, "  %-15s supported (ABI v%d+)\n", features[i].words,
				   features[i].abi);
		else
			buf_printf(b, "  %-15s not supported\n", features[i].words);
	}
	buf_printf(b, "\nPer-protection availability (host Landlock ABI v%d):\n",
		   report->landlock_abi);
	for (size_t i = 0; i < ARRAY_SIZE(protections); i++)
		buf_printf(b, "  %-22s requires v%d \xe2\x80\x94 %s\n", protections[i].words,
			   protections[i].abi,
			   supported(report, protections[i].row, protections[i].abi)
				   ? "available"
				   : "unavailable");
	buf_printf(b, "  Platform: %s\n", report->env.place.machine);
}

/* --- Text ---------------------------------------------------------------------------------------
 */

static size_t id_width(const struct check_report *report)
{
	size_t width = 0;
	for (size_t i = 0; i < report->n; i++) {
		size_t n = strlen(report->rows[i].id);
		width = n > width ? n : width;
	}
	return width;
}

static void add_text(struct buf *b, const char *s)
{
	buf_add_terminal(b, s, strlen(s));
}

static void add_row(const struct check_row *row, size_t width, struct buf *b)
{
	buf_printf(b, "  %-*s  %-8s  ", (int)width, row->id, check_status_name(row->status));
	add_text(b, row->tried);
	if (row->detail) {
		buf_add_str(b, ": ");
		add_text(b, row->detail);
	}
	buf_add_char(b, '\n');
	if (row->remedy) {
		buf_printf(b, "  %-*s  %-8s  remedy: ", (int)width, "", "");
		add_text(b, row->remedy);
		buf_add_char(b, '\n');
	}
}

static bool is_in_the_way(const struct check_row *row)
{
	return row->required && (row->status == CHECK_MISSING || row->status == CHECK_BLOCKED ||
				 row->status == CHECK_FAILED);
}

static bool all_tried(const struct check_report *report)
{
	for (size_t i = 0; i < report->n; i++) {
		if (report->rows[i].required && report->rows[i].status == CHECK_UNTRIED)
			return false;
	}
	return true;
}

/* The first row that stands in the way, and how many there are but the self-test that follows. */
static const struct check_row *first_bad(const struct check_report *report, size_t *ret_n)
{
	const struct check_row *first = NULL;
	*ret_n = 0;
	for (size_t i = 0; i < report->n; i++) {
		const struct check_row *row = &report->rows[i];
		if (!is_in_the_way(row) || (first && str_starts(row->id, "self-test")))
			continue;
		first = first ? first : row;
		(*ret_n)++;
	}
	return first;
}

/* One row in full, or the names of several. */
static void add_bad_rows(const struct check_report *report, const struct check_row *first, size_t n,
			 struct buf *b)
{
	if (n == 1) {
		buf_printf(b, "%s %s: ", first->id, check_status_name(first->status));
		add_text(b, first->detail ? first->detail : first->tried);
		if (first->remedy) {
			buf_add_str(b, "; ");
			add_text(b, first->remedy);
		}
		return;
	}
	for (const struct check_row *row = first; row < report->rows + report->n; row++) {
		if (is_in_the_way(row) && !str_starts(row->id, "self-test"))
			buf_printf(b, "%s%s %s", row == first ? "" : ", ", row->id,
				   check_status_name(row->status));
	}
	buf_add_str(b, "; what helps stands in these rows");
}

static void add_verdict(const struct check_report *report, struct buf *b)
{
	size_t n;
	const struct check_row *bad = first_bad(report, &n);
	buf_add_str(b, "\nVerdict: the strict default ");
	if (report->starts && !all_tried(report)) {
		buf_add_str(b, "should start here, but not all could be tried");
	} else if (report->starts) {
		buf_add_str(b,
			    report->in_namespaces
				    ? "starts here, in namespaces"
				    : "starts here, without namespaces (they are not to be had)");
	} else {
		buf_add_str(b, "does not start here: ");
		if (bad)
			add_bad_rows(report, bad, n, b);
	}
	buf_add_str(b, ".\n");
}

char *check_text(const struct check_report *report)
{
	struct buf b = BUF_INIT(TEXT_MAX);
	size_t width = id_width(report);
	const char *group = NULL;
	add_fixed_lines(report, &b);
	buf_printf(&b, "\nTried on Linux %s:\n", report->env.place.release);
	for (size_t i = 0; i < report->n; i++) {
		if (!group || strcmp(group, report->rows[i].group) != 0) {
			group = report->rows[i].group;
			buf_printf(&b, "\n%s\n", group);
		}
		add_row(&report->rows[i], width, &b);
	}
	add_verdict(report, &b);
	return buf_take(&b);
}

/* --- JSON ---------------------------------------------------------------------------------------
 */

static struct value *text_or_null(const char *s)
{
	return s ? value_new_string(s) : value_new(VALUE_NULL);
}

static struct value *row_value(const struct check_row *row)
{
	struct value *v = value_new(VALUE_TABLE);
	value_table_put_take(v, "id", value_new_string(row->id));
	value_table_put_take(v, "group", value_new_string(row->group));
	value_table_put_take(v, "status", value_new_string(check_status_name(row->status)));
	value_table_put_take(v, "required", value_new_bool(row->required));
	value_table_put_take(v, "tried", value_new_string(row->tried));
	value_table_put_take(v, "detail", text_or_null(row->detail));
	value_table_put_take(v, "remedy", text_or_null(row->remedy));
	return v;
}

char *check_json(const struct check_report *report)
{
	struct value *root = value_new(VALUE_TABLE);
	struct value *rows = value_new(VALUE_ARRAY);
	value_table_put_take(root, "v", value_new_int(REPORT_VERSION));
	value_table_put_take(root, "kernel", value_new_string(report->env.place.release));
	value_table_put_take(root, "machine", value_new_string(report->env.place.machine));
	value_table_put_take(root, "landlock_abi", value_new_int(report->landlock_abi));
	value_table_put_take(root, "minimum_landlock_abi", value_new_int(MINIMUM_ABI));
	value_table_put_take(root, "strict_default_starts", value_new_bool(report->starts));
	value_table_put_take(root, "in_namespaces", value_new_bool(report->in_namespaces));
	for (size_t i = 0; i < report->n; i++)
		value_array_add_take(rows, row_value(&report->rows[i]));
	value_table_put_take(root, "rows", rows);
	char *text = json_write(root);
	value_free(root);
	return text;
}
