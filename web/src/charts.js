// uPlot with the theme's colours. Each chart has a text beside it for those who do not see it.
import uPlot from "uplot";
import { el, measure, rangeText, themed } from "./util.js";

const FONT = '11px system-ui, "Segoe UI", Roboto, "DejaVu Sans", sans-serif';

/** @param {string} colour @param {number} alpha 0 to 255 */
const faint = (colour, alpha) => `${colour}${alpha.toString(16).padStart(2, "0")}`;

/** @param {(v: number) => string} text @param {number} [size] */
function axis(text, size) {
	return {
		stroke: themed("muted"),
		font: FONT,
		size: size ?? 28,
		gap: 4,
		grid: { stroke: themed("line"), width: 1 },
		ticks: { stroke: themed("line"), width: 1, size: 4 },
		values: (/** @type {any} */ _, /** @type {number[]} */ splits) =>
			splits.map((v) => (v === null ? "" : text(v))),
	};
}

/**
 * @param {HTMLElement} host
 * @param {number} height
 * @param {any[]} data
 * @param {any} options
 * @returns {{chart: any, close: () => void}}
 */
function make(host, height, data, options) {
	const chart = new uPlot(
		{ width: Math.max(80, host.clientWidth), height, legend: { show: false }, padding: [8, 16, 0, 0], ...options },
		data,
		host,
	);
	const observer = new ResizeObserver(() => chart.setSize({ width: Math.max(80, host.clientWidth), height }));
	observer.observe(host);
	return {
		chart,
		close: () => {
			observer.disconnect();
			chart.destroy();
		},
	};
}

/**
 * Median line in a band of least to most.
 * @param {HTMLElement} host
 * @param {{x: number[], min: number[], med: number[], max: number[]}} steps in ns
 * @param {number} height
 * @param {(index: number) => void} onpick
 */
export function stepChart(host, steps, height, onpick) {
	const top = Math.max(...steps.max, 1);
	const [size, unit] = top >= 1e9 ? [1e9, "s"] : top >= 1e6 ? [1e6, "ms"] : [1e3, "µs"];
	const scaled = (/** @type {number[]} */ list) => list.map((v) => v / Number(size));
	const accent = themed("accent");
	const banded = steps.min.some((v, i) => v !== steps.max[i]);
	const single = steps.x.length < 3;
	const series = [
		{},
		{ stroke: faint(accent, banded ? 190 : 0), width: banded ? 1 : 0, points: { show: false } },
		{ stroke: accent, width: banded ? 1.5 : 1.5, points: { show: single } },
		{ stroke: faint(accent, 0), width: 0, points: { show: false } },
	];
	host.setAttribute("role", "img");
	host.setAttribute(
		"aria-label",
		`Step time in ${unit}, from ${measure(Math.min(...steps.min) / Number(size), "")} to ${measure(top / Number(size), "")}`,
	);
	const made = make(host, height, [steps.x, scaled(steps.max), scaled(steps.med), scaled(steps.min)], {
		scales: {
			x: { time: false },
			y: {
				range: (/** @type {any} */ _, /** @type {number} */ __, /** @type {number} */ max) => [
					0,
					max * 1.08 || 1,
				],
			},
		},
		series,
		bands: [{ series: [1, 3], fill: faint(accent, 60) }],
		axes: [axis((v) => v.toLocaleString("en-US")), axis((v) => measure(v, ""), 44)],
		cursor: { drag: { x: false, y: false }, points: { size: 5 } },
	});
	host.addEventListener("click", () => {
		if (made.chart.cursor.idx !== null && made.chart.cursor.idx !== undefined)
			onpick(made.chart.cursor.idx);
	});
	return { ...made, unit };
}

/**
 * Marks of an axis say no more digits than they need: 50 MB, not 50.0 MB.
 * @param {number} value
 * @param {string} unit
 */
const markText = (value, unit) => measure(value, unit).replace(/\.0+(?= |$)/, "");

/**
 * Marks of an axis of time, in one unit that fits all of it.
 * @param {number} seconds of the mark
 * @param {number} span of the axis
 */
function timeMark(seconds, span) {
	if (span >= 120)
		return `${Math.floor(seconds / 60)}:${String(Math.round(seconds % 60)).padStart(2, "0")}`;
	const [size, unit] = span >= 1 ? [1, "s"] : span >= 1e-3 ? [1e3, "ms"] : [1e6, "µs"];
	return `${Number((seconds * Number(size)).toPrecision(6))} ${unit}`;
}

/**
 * One series over time; small multiples share a cursor by `sync`.
 * @param {HTMLElement} host
 * @param {any} series
 * @param {number} height
 * @param {string} sync
 * @param {{t0: number, t1: number}} span that is shown: the same for all, so that marks and lines stand below each
 * other
 * @param {(text: string) => void} onread
 */
export function timeChart(host, series, height, sync, span, onread) {
	const accent = themed("accent");
	const seconds = series.ts.map((/** @type {number} */ t) => t / 1e9);
	const sparse = seconds.length < 40;
	host.setAttribute("role", "img");
	host.setAttribute(
		"aria-label",
		`${series.name}: ${measure(Math.min(...series.low), series.unit)} to ${measure(Math.max(...series.high), series.unit)}, axis ${rangeText(span)}`,
	);
	return make(host, height, [seconds, series.high, series.low], {
		scales: {
			x: { time: false, range: [span.t0 / 1e9, span.t1 / 1e9] },
			y: {
				range: (/** @type {any} */ _, /** @type {number} */ min, /** @type {number} */ max) => [
					Math.min(0, min),
					max > 0 ? max * 1.1 : 1,
				],
			},
		},
		series: [
			{},
			{ stroke: accent, width: 1.25, fill: faint(accent, 40), points: { show: sparse, size: 4 } },
			{ stroke: accent, width: 1, points: { show: false } },
		],
		axes: [axis((v) => timeMark(v, (span.t1 - span.t0) / 1e9)), axis((v) => markText(v, series.unit), 62)],
		cursor: { sync: { key: sync }, drag: { x: false, y: false }, points: { size: 5 } },
		hooks: {
			setCursor: [
				(/** @type {any} */ u) => {
					const i = u.cursor.idx;
					onread(
						i === null || i === undefined
							? ""
							: `${measure(series.high[i], series.unit)} at ${seconds[i].toFixed(2)} s`,
					);
				},
			],
			draw: series.peak_ns === undefined ? [] : [(/** @type {any} */ u) => markPeak(u, series.peak_ns / 1e9)],
		},
	});
}

/**
 * A line where the peak was, with its name.
 * @param {any} u
 * @param {number} seconds
 */
function markPeak(u, seconds) {
	const x = u.valToPos(seconds, "x", true);
	const { left, top, width, height } = u.bbox;
	const c = u.ctx;
	if (x < left || x > left + width)
		return;
	c.save();
	c.strokeStyle = c.fillStyle = themed("bad");
	c.setLineDash([4, 4]);
	c.beginPath();
	c.moveTo(x, top);
	c.lineTo(x, top + height);
	c.stroke();
	c.textAlign = x > left + width / 2 ? "right" : "left";
	c.textBaseline = "top";
	c.fillText("peak", x + (x > left + width / 2 ? -6 : 6), top + 2);
	c.restore();
}

/**
 * A card with a chart in it.
 * @param {string} title
 * @param {string} note
 */
export function chartCard(title, note) {
	const read = el("span", { text: note });
	const host = el("div", { class: "chart" });
	return { card: el("section", { class: "card" }, el("h2", { text: title }, read), host), host, read };
}

/**
 * Numbers over numbers: the answer to a query.
 * @param {HTMLElement} host
 * @param {number[]} x
 * @param {{name: string, values: number[]}[]} series
 * @param {string} xName
 * @param {number} height
 */
export function lineChart(host, x, series, xName, height) {
	const colours = ["accent", "warn", "good", "bad", "muted"].map(themed);
	const read = el("p", { class: "muted", "aria-live": "off" });
	const plain = series.map((one) => one.name).join(", ");
	const box = el("div", { class: "chart", role: "img", "aria-label": `${plain} over ${xName}` });
	read.textContent = `${plain} over ${xName}`;
	host.append(read, box);
	return make(box, height, [x, ...series.map((one) => one.values)], {
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
				(/** @type {any} */ u) => {
					const i = u.cursor.idx;
					read.textContent =
						i === null || i === undefined
							? `${plain} over ${xName}`
							: `${xName} ${measure(x[i], "")}: ${series.map((one) => `${one.name} ${measure(one.values[i], "")}`).join(", ")}`;
				},
			],
		},
	});
}

/** @param {{name: string, value: number}[]} rows @param {string} title */
export function barChart(rows, title) {
	const most = Math.max(1e-12, ...rows.map((r) => Math.abs(r.value)));
	return el(
		"div",
		{ class: "bars", role: "table", "aria-label": title },
		...rows.flatMap((row) => {
			const fill = el("span", { class: "fill", "aria-hidden": "true" });
			fill.style.width = `${(100 * Math.abs(row.value)) / most}%`;
			return [
				el("span", { class: "name", text: row.name, title: row.name }),
				fill,
				el("span", { text: measure(row.value, "") }),
			];
		}),
	);
}
