// One stretch of time, as the tabs show it: the document of the run with what is of the selected range in place of what
// is of all of it.
import { count, duration, measure, percent } from "./util.js";

/** @typedef {{t0: number, t1: number}} Stretch */
/** @typedef {{key: string, doc: any, failed: Error|null}} Kept */

const LATE_NS = 2e9; // rows of a running program come that late at most

/** @type {WeakMap<object, Kept>} */
const kept = new WeakMap();

/**
 * Asked once for each range; `again` is called when the answer has come.
 * @param {any} source
 * @param {Stretch} range
 * @param {() => void} again
 * @returns {Kept}
 */
function ask(source, range, again) {
	const key = [
		range.t0,
		range.t1,
		source.columns?.length ?? 0,
		source.running ? Math.min(source.meta().end, range.t1 + LATE_NS) : 0,
	].join(" ");
	const known = kept.get(source);
	if (known?.key === key)
		return known;
	const same = known?.key.startsWith(`${range.t0} ${range.t1} `);
	/** @type {Kept} */ const made = { key, doc: same ? known?.doc : null, failed: null }; // what is there stays until the newer is
	kept.set(source, made);
	source
		.stretch(range)
		.then(
			(/** @type {any} */ doc) => {
				made.doc = doc;
			},
			(/** @type {Error} */ why) => {
				made.failed = why;
			},
		)
		.then(again);
	return made;
}

/**
 * What measurements were in the range.
 * @param {any} data
 * @param {string} name
 * @param {Stretch} range
 */
function measured(data, name, range) {
	const series = data.series.find((/** @type {any} */ s) => s.name === name);
	const at =
		series?.ts
			.map((/** @type {number} */ t, /** @type {number} */ i) => (t >= range.t0 && t < range.t1 ? i : -1))
			.filter((/** @type {number} */ i) => i >= 0) ?? [];
	if (!at.length)
		return null;
	const top = at.reduce(
		(/** @type {number} */ best, /** @type {number} */ i) => (series.high[i] > series.high[best] ? i : best),
		at[0],
	);
	return {
		mean:
			at.reduce(
				(/** @type {number} */ sum, /** @type {number} */ i) => sum + (series.low[i] + series.high[i]) / 2,
				0,
			) / at.length,
		most: series.high[top],
		at: series.ts[top],
		unit: series.unit,
	};
}

/**
 * Six figures of the range.
 * @param {any} whole
 * @param {any} doc
 * @param {Stretch} range
 */
function figuresOf(whole, doc, range) {
	const seconds = (range.t1 - range.t0) / 1e9;
	const cpu = measured(whole, "CPU, this process", range);
	const rss = measured(whole, "Resident memory", range);
	const steps = doc.step_facts;
	const rate = (/** @type {number} */ v) => (v >= 1000 ? count(Math.round(v)) : String(Number(v.toPrecision(3))));
	const some = [
		cpu ? ["Processor", `${Math.round(cpu.mean)} %`, "of a core, mean"] : ["Processor", "not measured", ""],
		rss
			? ["Peak memory", measure(rss.most, rss.unit), `at ${duration(rss.at)}`]
			: ["Peak memory", "not measured", ""],
	];
	const list = steps?.count
		? [
				["Steps", count(steps.count), `of ${count(whole.step_facts.count)}`],
				["Step, median", duration(steps.median_ns), `p99 ${duration(steps.p99_ns)}`],
				["Throughput", rate(steps.count / seconds), "steps/s"],
				...some,
				["Slow steps", count(steps.slow), "over 2 × median"],
			]
		: [
				["Range", duration(range.t1 - range.t0), `of ${duration(whole.run.duration_ns)}`],
				["Regions", count(doc.region_count), "in it"],
				["Zones", count(doc.zones), "in it"],
				...some,
				["Threads", count(doc.threads), "with zones"],
			];
	return list.map(([label, value, note]) => ({ label, value, note }));
}

/**
 * What there is to say of it in a sentence, and its evidence.
 * @param {any} whole
 * @param {any} doc
 * @param {Stretch} range
 */
function sayOf(whole, doc, range) {
	const steps = doc.step_facts;
	const [top] = doc.regions;
	const usual = whole.step_facts.median_ns;
	const share = (range.t1 - range.t0) / (whole.run.duration_ns || 1);
	const text = steps?.count
		? `${count(steps.count)} step${steps.count === 1 ? "" : "s"}, ${duration(steps.median_ns)} at the median${usual ? ` (whole run: ${duration(usual)})` : ""}`
		: doc.zones
			? `${count(doc.zones)} zone${doc.zones === 1 ? "" : "s"} of ${count(doc.threads)} thread${doc.threads === 1 ? "" : "s"}`
			: doc.samples?.length
				? "Python stacks, no zones"
				: "nothing was recorded in this range";
	return {
		text,
		evidence: top
			? `most of its own time has ${top.name}: ${duration(top.self_ns)} in ${count(top.count)} call${top.count === 1 ? "" : "s"}`
			: "",
		share: percent(Math.min(1, share)),
	};
}

/**
 * The document of the selected range; null where none is selected, doc null where it has not come yet.
 * @param {any} shell
 * @param {() => void} again
 * @returns {null|{doc: any, failed: Error|null, retry: () => void}}
 */
export function stretchOf(shell, again) {
	const { range, source } = shell;
	const whole = source.data();
	if (!range || !source.stretch || source.read === false)
		return null;
	const { doc, failed } = ask(source, range, again);
	const retry = () => {
		kept.delete(source);
		again();
	};
	return {
		failed,
		retry,
		doc: doc && {
			...whole,
			...doc,
			steps: doc.steps ?? { x: [] },
			run: { ...whole.run, duration_ns: range.t1 - range.t0 },
			figures: figuresOf(whole, doc, range),
			said: sayOf(whole, doc, range),
			follows: doc,
		},
	};
}
