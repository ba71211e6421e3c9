/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The supervisor's loop: one epoll descriptor for the listeners of any number of sandboxes. It
 * never blocks (slow work goes to the pool) and never fails open (what cannot be judged is
 * refused). One thread steps it; sandboxes may be added and removed by any.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "supervise/box.h"

struct event;
struct supervisor;

/* NULL with errno set where no descriptor or memory is left. */
struct supervisor *supervisor_new(void);
/* No sandbox may be left in it. */
void supervisor_free(struct supervisor *sup);
/* Readable when supervisor_step has work; borrowed. */
int supervisor_fd(const struct supervisor *sup);
/* How long supervisor_step may be left alone at most, in ms; -1: until the descriptor is readable.
 */
int supervisor_timeout_ms(struct supervisor *sup);
/*
 * Waits up to TIMEOUT_MS (-1: without end) and handles what is there. Returns the number of
 * notifications that were handled.
 */
int supervisor_step(struct supervisor *sup, int timeout_ms);

/* A box to be filled, with its listener and descriptors absent; box_free before it is added. */
struct box *box_new(void);
void box_free(struct box *box);
/*
 * Told of each event, from the stepping thread or a worker, with the sandbox's lock held: it must
 * be quick and call nothing of this module.
 */
typedef void (*box_event_fn)(void *data, const struct event *event);
void box_on_event(struct box *box, box_event_fn fn, void *data);
/* Takes BOX, whose listener is served from now on. Negative errno on failure; BOX is freed then. */
int supervisor_add_take(struct supervisor *sup, struct box *box);
/*
 * All its tasks are dead: whether nothing is done for them any more, waiting MS for that at most.
 * Long work is asked to stop.
 */
bool supervisor_drain(struct supervisor *sup, struct box *box, int ms);
/* Stops serving BOX and frees it. No event is told after this returns. */
void supervisor_remove(struct supervisor *sup, struct box *box);

/*
 * Has FN called by the stepping thread when FD (borrowed; an epoll descriptor, say) is readable, or
 * when its time has come: *RET_TIMEOUT_MS is asked for after each call and at the start (-1:
 * never).
 */
struct supervisor_guest;
struct supervisor_guest *supervisor_attach(struct supervisor *sup, int fd,
					   int (*fn)(void *data, bool ready), void *data);
void supervisor_detach(struct supervisor *sup, struct supervisor_guest *guest);
/*
 * The same for a handler that the loop runs (not a worker), on behalf of its sandbox: it ends when
 * the sandbox is removed. Negative errno.
 */
int box_attach(struct box *box, int fd, int (*fn)(void *data, bool ready), void *data);
