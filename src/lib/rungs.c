/* SPDX-License-Identifier: Apache-2.0 */
/* What holds a sandbox together on this machine, as one JSON object. */
#include <string.h>

#include "base/value.h"
#include "confine/job.h"
#include "lib/launch.h"

static const char *const rung_names[RUNG_COUNT] = {
	[RUNG_BASE] = "namespace", [RUNG_PLAIN] = "plain", [RUNG_NONE] = "none"};

static const char *protection_status(const struct landlock_caps *caps, enum protection_state state,
				     enum protection prot)
{
	static const struct {
		uint64_t fs, net, scope;
	} need[PROT_COUNT] = {
		[PROT_FS_REFER] = {LANDLOCK_ACCESS_FS_REFER, 0, 0},
		[PROT_FS_TRUNCATE] = {LANDLOCK_ACCESS_FS_TRUNCATE, 0, 0},
		[PROT_NET_TCP] = {0, LANDLOCK_ACCESS_NET_CONNECT_TCP, 0},
		[PROT_FS_IOCTL_DEV] = {LANDLOCK_ACCESS_FS_IOCTL_DEV, 0, 0},
		[PROT_SIGNAL_SCOPE] = {0, 0, LANDLOCK_SCOPE_SIGNAL},
		[PROT_ABSTRACT_UNIX_SOCKET_SCOPE] = {0, 0, LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET},
	};
	if (state == PROT_DISABLED)
		return "disabled";
	bool have = (caps->fs & need[prot].fs) == need[prot].fs &&
		    (caps->net & need[prot].net) == need[prot].net &&
		    (caps->scopes & need[prot].scope) == need[prot].scope;
	return have ? "active" : "degraded";
}

char *rungs_json(enum rung rung, const struct landlock_caps *caps,
		 const enum protection_state prot[PROT_COUNT])
{
	struct value *root = value_new(VALUE_TABLE);
	struct value *prots = value_new(VALUE_TABLE);
	value_table_put_take(root, "supervisor", value_new_bool(rung != RUNG_NONE));
	value_table_put_take(root, "base", value_new_bool(rung == RUNG_BASE));
	value_table_put_take(root, "view", value_new_string(rung_names[rung]));
	value_table_put_take(root, "landlock_abi", value_new_int(caps->abi));
	for (size_t i = 0; i < PROT_COUNT; i++)
		value_table_put_take(
			prots, protection_name((enum protection)i),
			value_new_string(protection_status(caps, prot[i], (enum protection)i)));
	value_table_put_take(root, "protections", prots);
	char *text = json_write_compact(root);
	value_free(root);
	return text;
}

int sandlock_process_rungs(const struct sandlock_process *p, char **ret_json)
{
	*ret_json = rungs_json(p->rung, &p->caps, p->prot);
	return 0;
}

int sandlock_landlock_abi(void)
{
	struct landlock_caps caps;
	return landlock_probe(&caps) == 0 && caps.abi ? caps.abi : -1;
}
