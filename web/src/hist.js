/**
 * The quantile of durations by the log-linear histogram that kymo keeps (src/base/hist.h), so that a page states what
 * the server and trace.regions state: 8 buckets to a power of two, linear inside a bucket, within [min, max], whole ns.
 */
const LAST = 343;

/** @param {number} duration in ns */
const bucketOf = (duration) => {
	if (duration < 8)
		return Math.floor(duration);
	const exponent = duration < 2 ** 32 ? 31 - Math.clz32(duration) : 63 - Math.clz32(duration / 2 ** 32);
	return Math.min(LAST, 8 * (exponent - 2) + Math.floor(duration / 2 ** (exponent - 3)) % 8);
};

/** @param {number} bucket */
const startOf = (bucket) => (bucket < 8 ? bucket : (8 + bucket % 8) * 2 ** (Math.floor(bucket / 8) - 1));

/**
 * Each share's quantile; null without durations.
 * @param {ArrayLike<number>} durations @param {number[]} shares
 * @returns {(number|null)[]}
 */
export const quantiles = (durations, shares) => {
	const buckets = new Float64Array(LAST + 1);
	let min = Infinity, max = -Infinity;
	for (let i = 0; i < durations.length; i++) {
		buckets[bucketOf(durations[i])]++;
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
		const start = startOf(bucket), end = bucket < LAST ? startOf(bucket + 1) : max;
		const at = start + (buckets[bucket] ? (end - start) * (wanted - before) / buckets[bucket] : 0);
		return at >= max ? max : at <= min ? min : Math.floor(at + 0.5);
	});
};
