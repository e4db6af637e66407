/* The clock of recordings: the counter used, and its relation to the kernel's clocks. libc only. */
#ifndef KYMO_BASE_CLOCK_H
#define KYMO_BASE_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

#include "base/format.h"

/* Chooses the clock once and sets kymo__slow_clock: the CPU's counter if it is invariant and
   trusted by the kernel, else CLOCK_MONOTONIC. KYMO_CLOCK=monotonic forces the latter. */
enum kymo_clock_kind clock_init(void);
/* Reads ticks between two readings of CLOCK_MONOTONIC; takes the narrowest of a few tries. The
   time is clock_shared_ns(). */
void clock_take_pair(struct kymo_clock_pair *out);
uint64_t clock_monotonic_ns(void);
uint64_t clock_realtime_ns(void);
/* CLOCK_MONOTONIC without the offset of this process's time namespace: the same in all processes of
   a machine, and the time in files. */
uint64_t clock_shared_ns(void);
/* A start time of /proc/PID/stat, without that offset. */
uint64_t clock_shared_starttime(uint64_t starttime);

/* ns per tick as 32.32 fixed point, and the time over which it was measured. */
struct clock_rate {
	uint64_t mult;
	uint64_t baseline_ns;
	uint64_t error_ns;
};
#define CLOCK_ENOUGH_NS 500000000u /* over this time the pairs of one process are exact enough */
/* False: the pairs are invalid. */
bool clock_rate_between(const struct kymo_clock_pair *first, const struct kymo_clock_pair *last,
			struct clock_rate *out);
/* The first and the newest valid of `count` published pairs. False: there is none; *nonsense is
   true if there were invalid ones. */
bool clock_newest_pairs(const struct kymo_clock_pair pairs[KYMO_CLOCK_PAIRS], uint32_t count,
			struct kymo_clock_pair *first, struct kymo_clock_pair *last,
			bool *nonsense);
static inline bool clock_is_filled(const struct kymo_clock_pair *pair)
{
	return pair->ticks && pair->monotonic_ns;
}
/* A duration; saturates at INT64_MAX. Everything that states one converts it by this. */
static inline int64_t clock_span_ns(uint64_t mult, uint64_t ticks)
{
	unsigned __int128 ns = ((unsigned __int128)ticks * mult) >> 32;

	return ns > INT64_MAX ? INT64_MAX : (int64_t)ns;
}
/* The same unit for quantiles, which are not whole ticks. */
static inline double clock_tick_ns(uint64_t mult)
{
	return (double)mult / 4294967296.0;
}

#endif
