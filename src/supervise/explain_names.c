/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls that make, remove and move names, as Landlock and the base's mounts will judge them: by the
 * directories that the names lie in.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/path.h"
#include "base/util.h"
#include "supervise/box.h"
#include "supervise/explain_path.h"
#include "sys/at.h"

/* --- Making ------------------------------------------------------------------------------- */

int explain_judge_new(struct call *call, const struct explain_path *p, const void *how,
		      struct explained *ret)
{
	struct at_info info;
	AUTO(resolved_done) struct resolved parent = RESOLVED_INIT;
	int r = explain_resolve(call, p, RESOLVE_PARENT, &parent);
	(void)how;
	if (r < 0 || !parent.last[0] || explain_has_entry(&parent, &info))
		return r;
	return explain_judge_entry(call, &parent, ret);
}

/* Devices are nobody's to make. */
static bool makes_device(const struct call *call)
{
	int mode = 0;
	if (str_eq(call->row->name, "mknod"))
		mode = call_int(call, 1);
	else if (str_eq(call->row->name, "mknodat"))
		mode = call_int(call, 2);
	return S_ISCHR(mode) || S_ISBLK(mode);
}

int explain_create(struct call *call)
{
	struct explain_path p;
	int r = makes_device(call) ? -EPERM : explain_read_path(call, 0, &p);
	return r < 0 ? r : explain_with(call, &p, explain_judge_new, NULL);
}

/* --- Removing ----------------------------------------------------------------------------- */

/* In a sticky directory names belong to their owner and to that of the directory. */
static bool is_anothers(const struct call *call, const struct resolved *parent,
			const struct at_info *info)
{
	struct at_info dir;
	uint32_t own = call->box->host_uid;
	return parent->mode & S_ISVTX && info->uid != own && at_info(parent->fd, &dir) == 0 &&
	       dir.uid != own;
}

static int judge_remove(struct call *call, const struct explain_path *p, const void *how,
			struct explained *ret)
{
	bool dir = *(const bool *)how;
	struct at_info info;
	AUTO(resolved_done) struct resolved parent = RESOLVED_INIT;
	int r = explain_resolve(call, p, RESOLVE_PARENT, &parent);
	if (r < 0 || !parent.last[0] || !explain_has_entry(&parent, &info))
		return r;
	if ((bool)S_ISDIR(info.mode) != dir || is_anothers(call, &parent, &info))
		return 0;
	return explain_judge_entry(call, &parent, ret);
}

int explain_remove(struct call *call)
{
	struct explain_path p;
	bool dir = str_eq(call->row->name, "rmdir") ||
		   (str_eq(call->row->name, "unlinkat") && call_int(call, 2) & AT_REMOVEDIR);
	int r = explain_read_path(call, 0, &p);
	return r < 0 ? r : explain_with(call, &p, judge_remove, &dir);
}

/* --- Moving and linking ------------------------------------------------------------------- */

struct move {
	struct explain_path to;
	bool link;
	bool from_unknown; /* no name that could be judged leads there */
};

/*
 * The errno where one of the two directories at least is not writable. The kernel asks for a
 * writable place for a link's new name first, then whether both are on one mount, then for
 * Landlock's rights in both, and last for its right to take a name elsewhere.
 */
static void set_error(const struct move *m, const struct resolved *from, const struct resolved *to,
		      bool to_refused, struct explained *ret)
{
	bool apart = from->fd >= 0 && from->mnt != to->mnt;
	if (m->link && to_refused && ret->error == EROFS)
		return;
	ret->mount = apart;
	if (apart || (m->link && !to_refused))
		ret->error = EXDEV;
}

/* FROM's directory must be writable too: a link is a way to write to what it leads to. */
static int judge_both(struct call *call, const struct move *m, const struct resolved *from,
		      const struct resolved *to, struct explained *ret)
{
	struct explained other = {0};
	int new = explain_judge_entry(call, to, ret);
	int old = m->from_unknown ? 0 : explain_judge_entry(call, from, &other);
	if (new < 0 || old < 0)
		return new < 0 ? new : old;
	if (!new && !old)
		return 0;
	if (!new)
		*ret = other;
	else if (old && !path_is_beneath(other.where, ret->where))
		snprintf(ret->also, sizeof(ret->also), "%s", other.where);
	set_error(m, from, to, new, ret);
	return 1;
}

static int judge_move(struct call *call, const struct explain_path *p, const void *how,
		      struct explained *ret)
{
	const struct move *m = how;
	struct at_info info;
	AUTO(resolved_done) struct resolved from = RESOLVED_INIT;
	AUTO(resolved_done) struct resolved to = RESOLVED_INIT;
	int r = m->from_unknown ? 0 : explain_resolve(call, p, RESOLVE_PARENT, &from);
	if (r == 0 && !m->from_unknown && !explain_has_entry(&from, &info))
		return 0;
	if (r == 0)
		r = explain_resolve(call, &m->to, RESOLVE_PARENT, &to);
	if (r < 0 || !to.last[0])
		return r;
	if (m->link && (explain_has_entry(&to, &info) || (from.fd >= 0 && S_ISDIR(info.mode))))
		return 0;
	return judge_both(call, m, &from, &to, ret);
}

int explain_link(struct call *call)
{
	struct explain_path from;
	struct move m = {.link = str_starts(call->row->name, "link")};
	int flags = m.link ? explain_at_flags(call) : 0;
	int r = explain_read_path(call, 0, &from);
	if (r == 0)
		r = explain_read_path(call, 1, &m.to);
	m.from_unknown = flags & (AT_SYMLINK_FOLLOW | AT_EMPTY_PATH);
	return r < 0 ? r : explain_with(call, &from, judge_move, &m);
}
