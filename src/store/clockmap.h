/*
 * From ticks to ns. Two pairs of (ticks, CLOCK_MONOTONIC) give the rate; the further apart they
 * are, the better. A process that lived for a moment, or whose pairs are nonsense, takes the rate
 * of others that use the same counter.
 */
#ifndef KYMO_STORE_CLOCKMAP_H
#define KYMO_STORE_CLOCKMAP_H

#include <stdbool.h>

#include "store/store.h"

/* ns per tick, 32.32, and over which time it was measured; false: the pairs are no clock. */
struct clockmap_rate {
	uint64_t mult;
	uint64_t baseline_ns;
	uint64_t error_ns;
};
bool clockmap_rate(const struct kymo_clock_pair *first, const struct kymo_clock_pair *last,
		   struct clockmap_rate *out);
/* The first pair and the newest sound one of a process; false: its pairs are no clock, and
   *nonsense says whether there were any. */
bool clockmap_pairs(const struct kymo_control *control, struct kymo_clock_pair *first,
		    struct kymo_clock_pair *last, bool *nonsense);
/* Sets every process's clock. now: a pair taken just now, or NULL when the recording is of another
   boot; sentences go to say(). */
void clockmap_all(struct recording *recording, const struct kymo_clock_pair *now,
		  void (*say)(void *context, const char *sentence), void *context);

#endif
