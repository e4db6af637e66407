// Small multiples with one cursor: the machine, the process, and the program's own counters. Memory is the same for
// what is about memory, with its peak.
import { chartCard, timeChart } from "../charts.js";
import { stretchOf } from "../stretch.js";
import { table } from "../tables.js";
import { bytes, count, duration, el, measure, nothing } from "../util.js";

/**
 * The last and the most of it, in the range that is shown.
 * @param {any} series
 * @param {import("../source.js").Range} range
 */
function noteOf(series, range) {
	const shown = series.high.filter(
		(/** @type {any} */ _, /** @type {number} */ i) =>
			!range || (series.ts[i] >= range.t0 && series.ts[i] < range.t1),
	);
	if (!shown.length)
		return "not measured in this range";
	return `${measure(shown[shown.length - 1], series.unit)} at the end, at most ${measure(Math.max(...shown), series.unit)}${range ? ", in the range" : ""}`;
}

/** @param {any[]} list @param {any} shell @param {number} height */
function multiples(list, shell, height) {
	/** @type {(() => void)[]} */ const closers = [];
	const span = shell.range ?? {
		t0: 0,
		t1: Math.max(shell.source.meta().end, ...list.map((series) => series.ts[series.ts.length - 1])),
	};
	const grid = el("div", { class: list.length > 1 ? "multiples" : "" });
	for (const series of list) {
		const note = noteOf(series, shell.range);
		const { card, host, read } = chartCard(series.name, note);
		grid.append(card);
		queueMicrotask(() =>
			closers.push(
				timeChart(host, series, height, "time", span, (text) => {
					read.textContent = text || note;
				}).close,
			),
		);
	}
	return { grid, close: () => closers.forEach((one) => one()) };
}

/** @type {import("../shell.js").Tab} */
export const metrics = {
	id: "metrics",
	title: "Metrics",
	has: (source) => source.data().series.length > 0,
	open(shell) {
		const data = shell.source.data();
		if (!data.series.length)
			return {
				node: nothing(
					"No metrics were recorded",
					"CPU, memory, I/O and network are recorded once a second by",
					"kymo run -- python train.py",
				),
			};
		let closed = false;
		const made = multiples(data.series, shell, 150);
		const stretch = stretchOf(shell, () => {
			if (!closed)
				shell.open();
		});
		const told = stretch?.doc?.follows.counters;
		const counters = told ?? data.counters;
		const summary = counters.length
			? el(
					"section",
					{ class: "card" },
					el("h2", { text: "Counters" }, el("span", { text: told ? "in the selected range" : "whole run" })),
					table(
						[
							{ key: "name", title: "Counter", text: true },
							{ key: "count", title: "Count", show: count },
							...["mean", "std", "min", "max", "last"].map((key) => ({
								key,
								title: key,
								show: (/** @type {any} */ v) => measure(v, ""),
							})),
						],
						counters,
						{ label: "Counters", sort: "name", descending: false, compact: true },
					),
				)
			: null;
		return {
			node: el("div", { class: "page" }, made.grid, summary),
			close: () => {
				closed = true;
				made.close();
			},
		};
	},
};

/**
 * The peak of what was allocated, with what of it is estimated, and what grows.
 * @param {any} data
 * @returns {string[][]}
 */
function allocated(data) {
	const [peak] = data.allocated ?? [];
	const [growth] = data.growth ?? [];
	const rows = peak
		? [
				[
					"Peak, allocated",
					bytes(peak.peak_bytes) + (peak.error_bytes > 0 ? ` ± ${bytes(peak.error_bytes)}` : ""),
					`at ${duration(peak.at_ns)}, ${Math.round((100 * peak.estimated_bytes) / Math.max(1, peak.peak_bytes))} % estimated, ${peak.source}`,
				],
			]
		: [];
	return growth
		? [
				...rows,
				[
					"Grows",
					`${bytes(growth.step_bytes)} a step`,
					`since step ${growth.since_step}${growth.site ? `, at ${growth.site}` : ""}`,
				],
			]
		: rows;
}

/** @type {import("../shell.js").Tab} */
export const memory = {
	id: "memory",
	title: "Memory",
	has: (source) => source.data().series.some((/** @type {any} */ s) => s.group === "memory"),
	open(shell) {
		const data = shell.source.data();
		const peak = data.allocated?.[0];
		const list = data.series
			.filter((/** @type {any} */ s) => s.group === "memory")
			.map((/** @type {any} */ s) =>
				peak && s.name === `Allocated, ${peak.source}` ? { ...s, peak_ns: peak.at_ns } : s,
			);
		if (!list.length)
			return {
				node: nothing(
					"No memory was recorded",
					"Resident memory is recorded once a second by kymo run; allocations with",
					"kymo run --memory -- python train.py",
				),
			};
		const made = multiples(list, shell, list.length > 2 || data.sites.length ? 190 : 340);
		const facts = data.memory_facts;
		const top = data.allocated?.[0]?.peak_bytes;
		const sites = data.sites.map((/** @type {any} */ s) => ({
			...s,
			share: top > 0 ? (100 * s.at_peak_bytes) / top : 0,
		}));
		const figure = (/** @type {string} */ label, /** @type {string} */ value, /** @type {string} */ note) =>
			el(
				"div",
				{ class: "figure" },
				el("div", { class: "label", text: label }),
				el("span", { class: "value", text: value }),
				el("span", { class: "note", text: note }),
			);
		const more = allocated(data);
		const figures = el(
			"section",
			{ class: more.length ? "figures many" : "figures" },
			figure("Peak, resident", bytes(facts.peak_bytes), `at ${duration(facts.peak_at_ns)}`),
			figure("At the end", bytes(facts.last_bytes), ""),
			figure("After start-up", bytes(facts.early_bytes), `at ${duration(facts.early_at_ns)}`),
			figure(
				`Grown since ${duration(facts.early_at_ns)}`,
				bytes(Math.max(0, facts.last_bytes - facts.early_bytes)),
				"to the end",
			),
			figure("Samples", count(facts.samples), ""),
			...more.map(([label, value, note]) => figure(label, value, note)),
			figure(
				"Allocations",
				sites.length
					? count(sites.reduce((/** @type {number} */ a, /** @type {any} */ s) => a + s.count, 0))
					: "not recorded",
				"",
			),
		);
		const where = sites.length
			? el(
					"section",
					{ class: "card" },
					el("h2", { text: "Live at the peak, by call site" }),
					table(
						[
							{ key: "site", title: "Site", text: true },
							{ key: "at_peak_bytes", title: "At peak", show: bytes },
							{ key: "share", title: "Share", show: (/** @type {number} */ v) => `${v.toFixed(1)} %` },
							{ key: "live_bytes", title: "At the end", show: bytes },
							{ key: "allocated_bytes", title: "Allocated", show: bytes },
							{ key: "count", title: "Count", show: count },
						],
						sites,
						{ sort: "at_peak_bytes", label: "Call sites" },
					),
				)
			: el(
					"p",
					{ class: "muted" },
					"Which lines allocated it is recorded by ",
					el("code", { text: "kymo run --memory -- python train.py" }),
					".",
				);
		const said = more.map(([label, value, note]) => `${label}: ${value} ${note}`).join(". ");
		const whose = shell.range
			? el("p", {
					class: "muted",
					text: "The charts show the selected range; figures and call sites are of the whole run.",
				})
			: null;
		return {
			node: el(
				"div",
				{ class: "page" },
				figures,
				whose,
				said ? el("p", { class: "sr said", text: said }) : null,
				made.grid,
				where,
			),
			close: made.close,
		};
	},
};
