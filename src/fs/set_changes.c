/* SPDX-License-Identifier: Apache-2.0 */
/* The changes of all layers of a set. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/util.h"
#include "fs/commit.h"

void set_changes_done(struct set_changes *sc)
{
	for (size_t i = 0; i < sc->n; i++) {
		changes_done(&sc->changes[i]);
		layer_done(&sc->layers[i]);
		util_close(sc->dirs[i]);
	}
	free(sc->changes);
	free(sc->layers);
	free(sc->dirs);
	free(sc->roots);
	*sc = (struct set_changes){0};
}

void set_changes_done_cleanup(struct set_changes *sc)
{
	set_changes_done(sc);
}

static int read_one(struct set *set, size_t i, const char *only, struct set_changes *sc,
		    struct err *err)
{
	const struct set_workdir *w = &set->info.workdirs[i];
	const struct timespec *since = set->status == SET_KEPT ? &set->since : &set->info.began;
	struct fs_id id;
	char quoted[QUOTE_SIZE];
	sc->dirs[i] = set_open_layer(set, i);
	if (sc->dirs[i] < 0)
		return err_sys(err, -sc->dirs[i], "the layer of change set %s cannot be opened",
			       set->id);
	int r = layer_open(sc->dirs[i], w->path, since, set->store->io, &sc->layers[i], err);
	if (r < 0)
		return r;
	sc->roots[i] = sc->layers[i].lower;
	r = fs_identify(set->store->io, sc->layers[i].lower, ".", &id);
	if (r < 0 || !fs_id_same(&id, &w->id))
		return err_set(err, ESTALE,
			       "%s is not the directory that change set %s was made in",
			       quote_str(w->path, quoted, sizeof(quoted)), set->id);
	r = changes_scan(&sc->layers[i], &sc->changes[i], err);
	if (r >= 0)
		(void)changes_choose(&sc->changes[i], only);
	return r;
}

int set_changes_read(struct set *set, const char *only, struct set_changes *ret, struct err *err)
{
	AUTO(set_changes_done) struct set_changes sc = {.n = set->info.n_workdirs};
	sc.roots = xcalloc(sc.n + 1, sizeof(int));
	sc.dirs = xcalloc(sc.n + 1, sizeof(int));
	sc.layers = xcalloc(sc.n + 1, sizeof(struct layer));
	sc.changes = xcalloc(sc.n + 1, sizeof(struct changes));
	for (size_t i = 0; i < sc.n; i++) {
		sc.dirs[i] = -1;
		sc.layers[i].upper = sc.layers[i].lower = -1;
	}
	for (size_t i = 0; i < sc.n; i++) {
		int r = read_one(set, i, only, &sc, err);
		if (r < 0)
			return r;
	}
	*ret = sc;
	sc = (struct set_changes){0};
	return 0;
}

size_t set_changes_count(const struct set_changes *sc)
{
	size_t n = 0;
	for (size_t i = 0; i < sc->n; i++)
		n += sc->changes[i].n_listed;
	return n;
}
