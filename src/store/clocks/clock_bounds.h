/*
 * What causality allows for the clocks of all hosts together. The last arrival at a collective is
 * not before the arrival of any host and not after the end of any. A host whose clock is bounded
 * bounds this moment, and the moment bounds the clocks of all others: bounds spread from the
 * reference over all collectives and hosts until they do not change any more. A pair of hosts that
 * never waited for each other is bounded through others that did.
 *
 * These bounds hold whatever the network and the scheduler do, if the recorded times are right.
 */
#ifndef KYMO_STORE_CLOCK_BOUNDS_H
#define KYMO_STORE_CLOCK_BOUNDS_H

#include "store/clocks/clock_calls.h"
#include "store/clocks/clock_fit.h"

struct clock_bounds {
	const struct clock_calls *calls; /* by key, then domain */
	const uint32_t *meeting_of; /* by call: its collective, in the order of the calls */
	size_t meeting_count;
	const size_t *first_of, *calls_of; /* the calls of each domain, as in host_clocks.c */
	uint32_t domains, reference;
	const int64_t *slack_ns; /* by domain: how much its times may be wrong by themselves */
	struct clock_fit *fits; /* by domain */
};

/* Moves the pieces of all fits into their bounds and states errors that these allow. Out of memory:
   the fits stay as they are. */
void clock_bounds_apply(const struct clock_bounds *bounds);

#endif
