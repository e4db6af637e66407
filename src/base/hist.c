#include "base/hist.h"

int64_t hist_quantile(const uint64_t buckets[KYMO_HIST_BUCKETS], double share, double ns_per_tick,
		      int64_t min_ns, int64_t max_ns)
{
	double all = 0, wanted, before = 0, start, end, at;
	uint32_t bucket = 0;

	for (uint32_t i = 0; i < KYMO_HIST_BUCKETS; i++)
		all += (double)buckets[i];
	if (all <= 0)
		return -1;
	wanted = share * all;
	while (bucket < KYMO_HIST_BUCKETS - 1 && before + (double)buckets[bucket] < wanted)
		before += (double)buckets[bucket++];
	start = (double)hist_start(bucket) * ns_per_tick;
	/* The last bucket has no end of its own. */
	end = bucket < KYMO_HIST_BUCKETS - 1 ? (double)hist_start(bucket + 1) * ns_per_tick
					     : (double)max_ns;
	at = start;
	if (buckets[bucket])
		at += (end - start) * (wanted - before) / (double)buckets[bucket];
	if (at >= (double)max_ns)
		return max_ns;
	return at <= (double)min_ns ? min_ns : (int64_t)(at + 0.5);
}
