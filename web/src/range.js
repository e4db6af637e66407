// The document of the selected range: that of the run, with the values of the range where there are any.
import { count, counted, duration, measure, percent } from "./format.js";

/** @import { Figure, Range, RangeDocument, RangePart, RunDocument, Source } from "./types.js" */
/** @import { Shell } from "./shell.js" */

/** @typedef {{key: string, part: RangePart|null, failed: Error|null}} Request */

const LATE_NS = 2e9; // rows of a running program arrive within this time

/** @type {WeakMap<Source, Request>} */
const requests = new WeakMap();

/**
 * Asks once for each range. The old answer stays until the new one is there.
 * @param {Source} source
 * @param {Range} range
 * @param {() => void} again called when the answer has come
 */
function ask(source, range, again) {
	const prefix = `${range.t0} ${range.t1} ${source.ranks} `;
	const end = source.running ? Math.min(source.meta().end, range.t1 + LATE_NS) : 0;
	const key = `${prefix}${source.columns?.length ?? 0} ${end}`;
	const known = requests.get(source);
	if (known?.key === key)
		return known;
	/** @type {Request} */
	const request = { key, part: known?.key.startsWith(prefix) ? known.part : null, failed: null };
	requests.set(source, request);
	source
		.rangePart(range)
		.then(
			(part) => {
				request.part = part;
			},
			(/** @type {Error} */ why) => {
				request.failed = why;
			},
		)
		.then(again);
	return request;
}

/**
 * Mean and most of a series in the range.
 * @param {RunDocument} data
 * @param {string} name
 * @param {Range} range
 */
function measured(data, name, range) {
	const series = data.series.find((s) => s.name === name);
	if (!series)
		return null;
	const points = [...series.ts.keys()].filter((i) => series.ts[i] >= range.t0 && series.ts[i] < range.t1);
	if (!points.length)
		return null;
	const top = points.reduce((best, i) => (series.high[i] > series.high[best] ? i : best));
	const sum = points.reduce((total, i) => total + (series.low[i] + series.high[i]) / 2, 0);
	return { mean: sum / points.length, most: series.high[top], at: series.ts[top], unit: series.unit };
}

/** @param {RunDocument} whole @param {Range} range @returns {[string, string, string][]} */
function hostFigures(whole, range) {
	const cpu = measured(whole, "CPU, program", range);
	const rss = measured(whole, "Resident memory", range);
	return [
		["Processor", cpu ? `${Math.round(cpu.mean)} %` : "not measured", cpu ? "of a core, mean" : ""],
		["Peak memory", rss ? measure(rss.most, rss.unit) : "not measured", rss ? `at ${duration(rss.at)}` : ""],
	];
}

/**
 * The six figures of the range.
 * @param {RunDocument} whole
 * @param {RangePart} part
 * @param {Range} range
 * @returns {Figure[]}
 */
function figuresOf(whole, part, range) {
	const length = range.t1 - range.t0;
	const steps = part.step_facts;
	const host = hostFigures({ ...whole, series: part.series ?? whole.series }, range);
	const rate = (/** @type {number} */ v) => (v >= 1000 ? count(Math.round(v)) : String(Number(v.toPrecision(3))));
	/** @type {[string, string, string][]} */
	const list = steps?.count
		? [
				["Steps", count(steps.count), `of ${count(whole.step_facts.count)}`],
				["Step, median", duration(steps.median_ns), `p99 ${duration(steps.p99_ns)}`],
				["Throughput", rate((steps.count * 1e9) / length), "steps/s"],
				...host,
				["Slow steps", count(steps.slow), "over 2 × median"],
			]
		: [
				["Range", duration(length), `of ${duration(whole.run.duration_ns)}`],
				["Regions", count(part.region_count), "in the range"],
				["Zones", count(part.zones), "in the range"],
				...host,
				["Threads", count(part.threads), "with zones"],
			];
	return list.map(([label, value, note]) => ({ label, value, note }));
}

/** @param {RunDocument} whole @param {RangePart} part */
function summaryText(whole, part) {
	const steps = part.step_facts;
	const usual = whole.step_facts.median_ns;
	if (steps?.count) {
		const median = `median ${duration(steps.median_ns)}${usual ? ` (whole run: ${duration(usual)})` : ""}`;
		return `${counted(steps.count, "step")}, ${median}`;
	}
	if (part.zones)
		return `${counted(part.zones, "zone")} of ${counted(part.threads, "thread")}`;
	return (part.samples ?? whole.samples).length ? "stack samples, no zones" : "no data in this range";
}

/**
 * The range in a sentence, with its evidence.
 * @param {RunDocument} whole
 * @param {RangePart} part
 * @param {Range} range
 */
function summaryOf(whole, part, range) {
	const [top] = part.regions ?? [];
	const evidence = top
		? `most self time: ${top.name}, ${duration(top.self_ns)} in ${counted(top.count, "call")}`
		: "";
	const share = percent(Math.min(1, (range.t1 - range.t0) / (whole.run.duration_ns || 1)));
	return { text: summaryText(whole, part), evidence, share };
}

/**
 * @param {RunDocument} whole
 * @param {RangePart} part
 * @param {Range} range
 * @returns {RangeDocument}
 */
function merged(whole, part, range) {
	return {
		...whole,
		...part,
		zones: whole.zones,
		steps: part.steps ?? { x: [], min: [], med: [], max: [], worst_start_ns: [] },
		run: { ...whole.run, duration_ns: range.t1 - range.t0 },
		figures: figuresOf(whole, part, range),
		summary: summaryOf(whole, part, range),
		ofRange: part,
	};
}

/**
 * The document of the selected range, or of the selected ranks in the whole run.
 * @param {Shell} shell
 * @param {() => void} again called when the answer has come
 * @returns {null|{doc: RangeDocument|null, failed: Error|null, retry: () => void}} null: nothing is selected;
 * doc null: it has not come yet
 */
export function selectedRange(shell, again) {
	const { source } = shell;
	const range = shell.range ?? (source.ranks ? { t0: 0, t1: Math.ceil(source.meta().end) } : null);
	if (!range || source.read === false)
		return null;
	const { part, failed } = ask(source, range, again);
	const retry = () => {
		requests.delete(source);
		again();
	};
	return { failed, retry, doc: part && merged(source.data(), part, range) };
}
