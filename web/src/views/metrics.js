// Charts of the machine, the process and the counters of the program, with one cursor for all.
import { chartCard, timeChart } from "../charts.js";
import { el, emptyState } from "../dom.js";
import { count, measure } from "../format.js";
import { ranksLabel } from "../job/ranks.js";
import { selectedRange } from "../range.js";
import { table } from "../tables.js";

/** @import { Range, RunDocument, Series, Tab } from "../types.js" */
/** @import { Shell } from "../shell.js" */

const HEIGHT = 150;

/**
 * The last and the highest value of the shown time.
 * @param {Series} series
 * @param {Range|null} range
 */
function noteOf(series, range) {
	const shown = series.high.filter((_, i) => !range || (series.ts[i] >= range.t0 && series.ts[i] < range.t1));
	if (!shown.length)
		return "not measured in this range";
	const last = measure(shown[shown.length - 1], series.unit);
	const most = measure(Math.max(...shown), series.unit);
	return `${last} at the end, at most ${most}${range ? ", in the range" : ""}`;
}

/**
 * A chart for each series.
 * @param {Series[]} list
 * @param {Shell} shell
 * @param {number} height
 */
export function seriesCharts(list, shell, height) {
	/** @type {(() => void)[]} */
	const closers = [];
	const ends = list.map((series) => series.ts[series.ts.length - 1]);
	const span = shell.range ?? { t0: 0, t1: Math.max(shell.source.meta().end, ...ends) };
	const grid = el("div", { class: list.length > 1 ? "multiples" : "" });
	for (const series of list) {
		const note = noteOf(series, shell.range);
		const { card, host, read } = chartCard(series.name, note);
		grid.append(card);
		// The chart needs the width of its card, which is known once the card is in the page.
		queueMicrotask(() => {
			const chart = timeChart(host, series, height, "time", span, (text) => {
				read.textContent = text || note;
			});
			closers.push(chart.close);
		});
	}
	return { grid, close: () => closers.forEach((close) => close()) };
}

/**
 * Says of which ranks charts are, if some are chosen.
 * @param {Shell} shell
 * @param {ReturnType<typeof selectedRange>} selected
 * @param {boolean} cut they are of the chosen ranks
 */
export function ranksNote(shell, selected, cut) {
	if (!shell.ranks)
		return null;
	const why = selected?.failed ? `: ${selected.failed.message}` : "";
	const reading = selected && !selected.doc && !why;
	const all = reading ? "Reading…" : `All ranks${why || "; a report has no series by rank"}.`;
	const text = `${ranksLabel(shell.ranks, 60)}. Values of a machine are of all its processes.`;
	return el("p", { class: "muted of-ranks", role: "status", text: cut ? text : all });
}

/** @param {RunDocument["counters"]} counters @param {boolean} isRange */
function countersCard(counters, isRange) {
	if (!counters.length)
		return null;
	const value = (/** @type {string} */ key) => ({
		key,
		title: key,
		show: (/** @type {number|null} */ v) => measure(v, ""),
	});
	const columns = [
		{ key: "name", title: "Counter", text: true },
		{ key: "count", title: "Count", show: count },
		...["mean", "std", "min", "max", "last"].map(value),
	];
	return el(
		"section",
		{ class: "card" },
		el("h2", { text: "Counters" }, el("span", { text: isRange ? "selected range" : "whole run" })),
		table(columns, counters, { label: "Counters", sort: "name", descending: false, compact: true }),
	);
}

/** @type {Tab} */
export const metrics = {
	id: "metrics",
	title: "Metrics",
	has: (source) => source.data().series.length > 0,
	open(shell) {
		const data = shell.source.data();
		if (!data.series.length)
			return {
				node: emptyState(
					"No metrics recorded",
					"CPU, memory, I/O and network are recorded once a second by",
					"kymo run -- python train.py",
				),
			};
		let closed = false;
		const selected = selectedRange(shell, () => {
			if (!closed)
				shell.open();
		});
		const part = selected?.doc?.ofRange.counters;
		const series = selected?.doc?.ofRange.series;
		const charts = seriesCharts(series ?? data.series, shell, HEIGHT);
		return {
			node: el(
				"div",
				{ class: "page" },
				ranksNote(shell, selected, Boolean(series)),
				charts.grid,
				countersCard(part ?? data.counters, Boolean(part)),
			),
			close: () => {
				closed = true;
				charts.close();
			},
		};
	},
};
