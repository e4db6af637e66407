/**
 * The quantile of durations by the log-linear histogram that kymo keeps (src/base/hist.h), so that a page states what
 * the server and trace.regions state: 8 buckets to a power of two, linear inside a bucket, within [min, max], whole ns.
 */
const LAST = 343;

/** @param {number} duration in ticks */
const bucketOf = (duration) => {
	if (duration < 8)
		return Math.floor(duration);
	const exponent = duration < 2 ** 32 ? 31 - Math.clz32(duration) : 63 - Math.clz32(duration / 2 ** 32);
	return Math.min(LAST, 8 * (exponent - 2) + Math.floor(duration / 2 ** (exponent - 3)) % 8);
};

/** @param {number} bucket */
const startOf = (bucket) => (bucket < 8 ? bucket : (8 + bucket % 8) * 2 ** (Math.floor(bucket / 8) - 1));

/**
 * Each share's quantile; null without durations. Buckets are of ticks, durations are whole ns: one that begins a bucket
 * may be of the bucket before it.
 * @param {ArrayLike<number>} durations @param {number[]} shares @param {number} tick its length in ns
 * @returns {(number|null)[]}
 */
export const quantiles = (durations, shares, tick = 1) => {
	const buckets = new Float64Array(LAST + 1);
	let min = Infinity, max = -Infinity;
	for (let i = 0; i < durations.length; i++) {
		buckets[bucketOf(Math.ceil(durations[i] / tick))]++;
		min = Math.min(min, durations[i]);
		max = Math.max(max, durations[i]);
	}
	return shares.map((share) => {
		const wanted = share * durations.length;
		let bucket = 0, before = 0;
		if (!durations.length)
			return null;
		while (bucket < LAST && before + buckets[bucket] < wanted)
			before += buckets[bucket++];
		const start = startOf(bucket) * tick, end = bucket < LAST ? startOf(bucket + 1) * tick : max;
		const at = start + (buckets[bucket] ? (end - start) * (wanted - before) / buckets[bucket] : 0);
		return at >= max ? max : at <= min ? min : Math.floor(at + 0.5);
	});
};
