/*
 * Conversion of ticks to ns. Two pairs of (ticks, CLOCK_MONOTONIC) give the rate; the further
 * apart, the better. A short-lived process, or one with invalid pairs, uses the rate of others with
 * the same counter.
 */
#ifndef KYMO_STORE_CLOCKMAP_H
#define KYMO_STORE_CLOCKMAP_H

#include <stdbool.h>

#include "store/store.h"

/* The first and the newest valid pair of a process. False: there is none; *nonsense is true if
   there were invalid ones. */
bool clockmap_pairs(const struct kymo_control *control, struct kymo_clock_pair *first,
		    struct kymo_clock_pair *last, bool *nonsense);
/* Sets the clock of every process. now: a pair taken just now, or NULL if the recording is of
   another boot. Problems are reported to say(). */
void clockmap_all(struct recording *recording, const struct kymo_clock_pair *now,
		  void (*say)(void *context, const char *sentence), void *context);

#endif
