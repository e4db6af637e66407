/*
 * DuckDB runs in a child of the command. It reads files of others and runs any SELECT: a damaged
 * file can crash it, and some functions ignore its limits of memory and time and its interrupt. The
 * kernel limits the child (tables/self_limits.h); the parent only waits, forwards signals, ends the
 * child at its deadline, removes what it left, and turns its death into a sentence.
 */
#ifndef KYMO_CMDS_GUARD_GUARD_H
#define KYMO_CMDS_GUARD_GUARD_H

#include <stdbool.h>

#include "base/error.h"

/* Runs work(context) in a child and returns its result, an exit status. If the child died, returns
   a negative errno and a sentence: -ECANCELED after Ctrl-C, -ETIMEDOUT after its deadline. Changes
   of *context stay in the child. If a signal meant for the command ended the child (SIGPIPE,
   SIGTERM, …), it ends this process, too. */
int guard_run(int (*work)(void *context), void *context, struct kymo_error *err);

/* Called in the parent when the child has ended, in any way, before a signal ends this process too:
   for the state of a terminal. */
void guard_at_end(void (*restore)(void));

/* Whether this is such a child. Its parent decides what a second Ctrl-C does: the terminal sends
   SIGINT to both, and the parent forwards it. */
bool guard_is_child(void);

#endif
