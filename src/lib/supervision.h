/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The library's side of the supervisor: what a policy needs mediated, the box that the handlers
 * work with, who steps the loop, and where the events go.
 */
#pragma once

#include "lib/launch.h"

/* Fills REQ->mediation: what the filter sends to the supervisor, by policy, rung and machine. */
int supervision_plan(struct job_request *req, struct sandlock_error *err);
/*
 * Finds the grants as they are now, between the clone of the guardian and the report of the start;
 * supervision_start compares them with what the child made its rules of.
 */
void supervision_prepare(struct job_request *req, struct sandlock_process *p);
/* Serves the listener, which it takes. */
int supervision_start(struct job_request *req, struct sandlock_process *p, int listener,
		      struct sandlock_error *err);
/* From now on LISTENER is told of events (those that came before included). */
void supervision_open(struct sandlock_process *p, const struct listener *listener);
/* Ends serving P: no event comes after it. */
void supervision_stop(struct sandlock_process *p);
/* Adds an event, found by a handler or (a time-out) by the library; REFUSAL: for the footer too. */
void supervision_event(struct sandlock_process *p, struct event *event, bool refusal);
/* Tells the listener what it has not been told yet. */
void supervision_tell(struct sandlock_process *p);
void supervision_done(struct sandlock_process *p);
