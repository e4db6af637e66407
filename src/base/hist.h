/*
 * The log-linear histogram of durations: 8 buckets to a power of two, so that a bucket is at most
 * an eighth of its values wide. 0 … 7 have a bucket each; the last one has all from 15 * 2^41 on.
 * Everything that states a quantile of durations out of buckets takes it from hist_quantile().
 */
#ifndef KYMO_BASE_HIST_H
#define KYMO_BASE_HIST_H

#include <stdint.h>

#include "base/format.h"

/* The bits of a double are the exponent followed by the bits after the leading one. Rounding
   affects only durations above 2^53, which are in the last bucket. (BSR is microcoded on AMD and
   costs three times as much.) */
static inline uint32_t hist_bucket(uint64_t ticks)
{
	double real = (double)(int64_t)ticks;
	uint64_t bits;

	__builtin_memcpy(&bits, &real, sizeof(bits));
	bits = (bits >> 49) - (1023u + 3u) * 8u; /* 0 for a duration of 8 */
	if (__builtin_expect(bits < KYMO_HIST_BUCKETS - 8u, 1))
		return (uint32_t)bits + 8u;
	return ticks < 8 ? (uint32_t)ticks : KYMO_HIST_BUCKETS - 1u;
}

/* The smallest duration of a bucket; that of the next bucket is its end. */
static inline uint64_t hist_start(uint32_t bucket)
{
	if (bucket < 8)
		return bucket;
	return (uint64_t)(8u + bucket % 8u) << (bucket / 8u - 1u);
}

/*
 * The quantile `share` (0.5: the median) of the durations in `buckets`, in ns and rounded; -1:
 * there are none. Linear inside the bucket that holds it, and never below min_ns or above max_ns,
 * which are of these durations. ns_per_tick: 1 where buckets are of ns.
 */
int64_t hist_quantile(const uint64_t buckets[KYMO_HIST_BUCKETS], double share, double ns_per_tick,
		      int64_t min_ns, int64_t max_ns);

#endif
