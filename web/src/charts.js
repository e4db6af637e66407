// Charts by uPlot in the colours of the theme. Each has a text for readers who do not see it.
import uPlot from "uplot";
import { el } from "./dom.js";
import { measure, rangeText } from "./format.js";
import { themed } from "./theme.js";

/** @import { Range, Series, Steps } from "./types.js" */

const FONT = '11px system-ui, "Segoe UI", Roboto, "DejaVu Sans", sans-serif';

/** @param {string} colour @param {number} alpha 0 to 255 */
const faint = (colour, alpha) => `${colour}${alpha.toString(16).padStart(2, "0")}`;

/** @param {(v: number) => string} text @param {number} [size] @returns {uPlot.Axis} */
function axis(text, size = 28) {
	return {
		stroke: themed("muted"),
		font: FONT,
		size,
		gap: 4,
		grid: { stroke: themed("line"), width: 1 },
		ticks: { stroke: themed("line"), width: 1, size: 4 },
		values: (_, splits) => splits.map((v) => (v === null ? "" : text(v))),
	};
}

/**
 * @param {HTMLElement} host
 * @param {number} height
 * @param {number[][]} data
 * @param {Omit<uPlot.Options, "width"|"height">} options
 * @returns {{chart: uPlot, close: () => void}}
 */
function plot(host, height, data, options) {
	const width = () => Math.max(80, host.clientWidth);
	const chart = new uPlot(
		{ width: width(), height, legend: { show: false }, padding: [8, 16, 0, 0], ...options },
		/** @type {uPlot.AlignedData} */ (data),
		host,
	);
	const observer = new ResizeObserver(() => chart.setSize({ width: width(), height }));
	observer.observe(host);
	return {
		chart,
		close: () => {
			observer.disconnect();
			chart.destroy();
		},
	};
}

/** @param {uPlot} chart @returns {number|null} index of the point under the cursor */
const pointed = (chart) => chart.cursor.idx ?? null;

/** @param {number} top ns @returns {[number, string]} */
function timeUnit(top) {
	if (top >= 1e9)
		return [1e9, "s"];
	return top >= 1e6 ? [1e6, "ms"] : [1e3, "µs"];
}

/**
 * Step times: the median as a line in a band from least to most.
 * @param {HTMLElement} host
 * @param {Steps} steps
 * @param {number} height
 * @param {(index: number) => void} onpick
 */
export function stepChart(host, steps, height, onpick) {
	const top = Math.max(...steps.max, 1);
	const [size, unit] = timeUnit(top);
	const scaled = (/** @type {number[]} */ list) => list.map((v) => v / size);
	const accent = themed("accent");
	const banded = steps.min.some((v, i) => v !== steps.max[i]);
	const least = measure(Math.min(...steps.min) / size, "");
	host.setAttribute("role", "img");
	host.setAttribute("aria-label", `Step time in ${unit}, from ${least} to ${measure(top / size, "")}`);
	const made = plot(host, height, [steps.x, scaled(steps.max), scaled(steps.med), scaled(steps.min)], {
		scales: { x: { time: false }, y: { range: (_, __, max) => [0, max * 1.08 || 1] } },
		series: [
			{},
			{ stroke: faint(accent, banded ? 190 : 0), width: banded ? 1 : 0, points: { show: false } },
			{ stroke: accent, width: 1.5, points: { show: steps.x.length < 3 } },
			{ stroke: faint(accent, 0), width: 0, points: { show: false } },
		],
		bands: [{ series: [1, 3], fill: faint(accent, 60) }],
		axes: [axis((v) => v.toLocaleString("en-US")), axis((v) => measure(v, ""), 44)],
		cursor: { drag: { x: false, y: false }, points: { size: 5 } },
	});
	host.addEventListener("click", () => {
		const index = pointed(made.chart);
		if (index !== null)
			onpick(index);
	});
	return { ...made, unit };
}

/**
 * A tick with the digits that it needs: 50 MB, not 50.0 MB.
 * @param {number} value
 * @param {string} unit
 */
const tickText = (value, unit) => measure(value, unit).replace(/(\.\d*?)0+(?= |$)/, "$1").replace(/\.(?= |$)/, "");

/**
 * A tick of a time axis; all ticks of the axis have one unit.
 * @param {number} seconds
 * @param {number} span of the axis, in seconds
 */
function timeTick(seconds, span) {
	if (span >= 120)
		return `${Math.floor(seconds / 60)}:${String(Math.round(seconds % 60)).padStart(2, "0")}`;
	const [scale, unit] = span >= 1 ? [1, "s"] : span >= 1e-3 ? [1e3, "ms"] : [1e6, "µs"];
	return `${Number((seconds * Number(scale)).toPrecision(6))} ${unit}`;
}

/**
 * One series over time; charts with the same `sync` share a cursor.
 * @param {HTMLElement} host
 * @param {Series} series
 * @param {number} height
 * @param {string} sync
 * @param {Range} span of the axis, the same for all charts so that their ticks line up
 * @param {(text: string) => void} onread the value under the cursor, or ""
 */
export function timeChart(host, series, height, sync, span, onread) {
	const { unit, low, high, peak_ns: peak } = series;
	const accent = themed("accent");
	const seconds = series.ts.map((t) => t / 1e9);
	const from = measure(Math.min(...low), unit);
	const to = measure(Math.max(...high), unit);
	host.setAttribute("role", "img");
	host.setAttribute("aria-label", `${series.name}: ${from} to ${to}, axis ${rangeText(span)}`);
	const read = (/** @type {uPlot} */ chart) => {
		const i = pointed(chart);
		onread(i === null ? "" : `${measure(high[i], unit)} at ${seconds[i].toFixed(2)} s`);
	};
	return plot(host, height, [seconds, high, low], {
		scales: {
			x: { time: false, range: [span.t0 / 1e9, span.t1 / 1e9] },
			y: { range: (_, min, max) => [Math.min(0, min), max > 0 ? max * 1.1 : 1] },
		},
		series: [
			{},
			{ stroke: accent, width: 1.25, fill: faint(accent, 40), points: { show: seconds.length < 40, size: 4 } },
			{ stroke: accent, width: 1, points: { show: false } },
		],
		axes: [axis((v) => timeTick(v, (span.t1 - span.t0) / 1e9)), axis((v) => tickText(v, unit), 62)],
		cursor: { sync: { key: sync }, drag: { x: false, y: false }, points: { size: 5 } },
		hooks: { setCursor: [read], draw: peak === undefined ? [] : [(chart) => markPeak(chart, peak / 1e9)] },
	});
}

/**
 * A labelled line at the peak.
 * @param {uPlot} chart
 * @param {number} seconds
 */
function markPeak(chart, seconds) {
	const { ctx: ink, bbox: box } = chart;
	const x = chart.valToPos(seconds, "x", true);
	if (x < box.left || x > box.left + box.width)
		return;
	const right = x > box.left + box.width / 2;
	ink.save();
	ink.strokeStyle = ink.fillStyle = themed("bad");
	ink.setLineDash([4, 4]);
	ink.beginPath();
	ink.moveTo(x, box.top);
	ink.lineTo(x, box.top + box.height);
	ink.stroke();
	ink.textAlign = right ? "right" : "left";
	ink.textBaseline = "top";
	ink.fillText("peak", x + (right ? -6 : 6), box.top + 2);
	ink.restore();
}

/**
 * A card with room for a chart.
 * @param {string} title
 * @param {string} note
 */
export function chartCard(title, note) {
	const read = el("span", { text: note });
	const host = el("div", { class: "chart" });
	return { card: el("section", { class: "card" }, el("h2", { text: title }, read), host), host, read };
}

/**
 * Columns of a query over its first one.
 * @param {HTMLElement} host
 * @param {number[]} x
 * @param {{name: string, values: number[]}[]} series
 * @param {string} xName
 * @param {number} height
 */
export function lineChart(host, x, series, xName, height) {
	const colours = ["accent", "warn", "good", "bad", "muted"].map(themed);
	const title = `${series.map((one) => one.name).join(", ")} over ${xName}`;
	const read = el("p", { class: "muted", "aria-live": "off", text: title });
	const box = el("div", { class: "chart", role: "img", "aria-label": title });
	const values = (/** @type {number} */ i) =>
		series.map((one) => `${one.name} ${measure(one.values[i], "")}`).join(", ");
	host.append(read, box);
	return plot(box, height, [x, ...series.map((one) => one.values)], {
		scales: { x: { time: false } },
		series: [
			{},
			...series.map((one, i) => ({
				label: one.name,
				stroke: colours[i],
				width: 1.25,
				points: { show: x.length < 60, size: 4 },
			})),
		],
		axes: [axis((v) => measure(v, "")), axis((v) => measure(v, ""), 72)],
		cursor: { drag: { x: true, y: false }, points: { size: 5 } },
		hooks: {
			setCursor: [
				(chart) => {
					const i = pointed(chart);
					read.textContent = i === null ? title : `${xName} ${measure(x[i], "")}: ${values(i)}`;
				},
			],
		},
	});
}

/** @param {{name: string, value: number}[]} rows @param {string} title */
export function barChart(rows, title) {
	const most = Math.max(1e-12, ...rows.map((r) => Math.abs(r.value)));
	const cells = rows.flatMap((row) => {
		const fill = el("span", { class: "fill", "aria-hidden": "true" });
		fill.style.width = `${(100 * Math.abs(row.value)) / most}%`;
		return [
			el("span", { class: "name", text: row.name, title: row.name }),
			fill,
			el("span", { text: measure(row.value, "") }),
		];
	});
	return el("div", { class: "bars", role: "table", "aria-label": title }, ...cells);
}
