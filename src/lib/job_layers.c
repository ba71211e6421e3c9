/* SPDX-License-Identifier: Apache-2.0 */
/* The workspace's part of a job: its layers, and what is hidden from the sandbox. */
#include <errno.h>
#include <string.h>

#include "base/path.h"
#include "base/util.h"
#include "confine/job.h"
#include "confine/layers.h"
#include "lib/launch.h"
#include "lib/workspace.h"

/* The rules of the workdirs are the last ones of RULES, as add_workdirs made them. */
static int plan_layer(struct job *job, const struct workspace_root *root, size_t rule, size_t i)
{
	struct job_layer *layer = &job->layers[i];
	layer->path = job_strdup(job, root->path);
	layer->store = job_strdup(job, root->store);
	layer->dev = root->dev;
	layer->ino = root->ino;
	layer->store_dev = root->store_dev;
	layer->store_ino = root->store_ino;
	layer->rule = rule;
	return layer->path && layer->store ? 0 : -E2BIG;
}

static int plan_layers(const struct job_request *req, struct job *job)
{
	const struct workspace_root *roots = NULL;
	size_t n = workspace_roots(req->workspace, &roots);
	if (!n)
		return 0;
	job->layers = job_alloc(job, n * sizeof(*job->layers));
	if (!job->layers)
		return -E2BIG;
	for (size_t i = 0; i < job->n_rules && job->n_layers < n; i++) {
		if (!job->rules[i].layer)
			continue;
		int r = plan_layer(job, &roots[job->n_layers], i, job->n_layers);
		if (r < 0)
			return r;
		job->n_layers++;
	}
	job->layer_lock = workspace_lock(req->workspace);
	return job->n_layers == n ? 0 : -E2BIG;
}

static bool is_in_write_grant(const struct job *job, const char *path)
{
	for (size_t i = 0; i < job->n_rules; i++)
		if (job->rules[i].full && path_is_beneath(path, job->rules[i].path))
			return true;
	return false;
}

/*
 * Change sets that wait for their commit must not be open to a sandbox, whatever it may write.
 */
static int plan_hidden(const struct job_request *req, struct job *job)
{
	struct strv states = {0};
	int r = 0;
	if (req->workspace)
		strv_copy(&states, workspace_hidden(req->workspace));
	else if (req->policy->fs_write.n)
		workspace_find_states(&states);
	const char **hidden = job_alloc(job, (states.n + 1) * sizeof(*hidden));
	for (size_t i = 0; hidden && r == 0 && i < states.n; i++) {
		if (!req->workspace && !is_in_write_grant(job, states.v[i]))
			continue;
		hidden[job->n_hidden] = job_strdup(job, states.v[i]);
		r = hidden[job->n_hidden++] ? 0 : -E2BIG;
	}
	strv_done(&states);
	job->hidden = hidden;
	return hidden ? r : -E2BIG;
}

/* Nothing can be laid over it there. */
static void warn_open(struct job_request *req, const struct job *job)
{
	struct strv states = {0};
	if (req->policy->fs_write.n)
		workspace_find_states(&states);
	for (size_t i = 0; i < states.n; i++) {
		if (is_in_write_grant(job, states.v[i]))
			warn_add(req->warnings,
				 "a write grant covers the state directory %s, whose change sets "
				 "the command can alter, and there is no base here: use a narrower "
				 "grant",
				 states.v[i]);
	}
	strv_done(&states);
}

int job_plan_layers(struct job_request *req, struct job *job)
{
	if (!job->base) {
		warn_open(req, job);
		return 0;
	}
	int r = plan_layers(req, job);
	return r < 0 ? r : plan_hidden(req, job);
}
