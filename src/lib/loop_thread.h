/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The library's one supervising thread: started at the first supervised spawn whose caller does not
 * step the loop itself, with all signals blocked; it serves every such sandbox of the process.
 */
#pragma once

struct supervisor;

/* The loop that the thread steps, or NULL with errno set where no thread can be had. */
struct supervisor *loop_thread_get(void);
