// Positions in the timeline: sizes in px, places of tracks and series, labels that fit, ticks of the ruler.
import { shortened } from "../flame.js";

/** @import { Lane, RunDocument, Series } from "../types.js" */
/** @import { Timeline } from "./timeline.js" */

export const GUTTER = 132;
export const ROW = 16;
export const BAR = 15;
export const GAP = 9;
export const RULER = 22;
export const MINIMAP = 26;
export const SERIES = 49;
export const TOP = RULER + MINIMAP;
export const LABEL_LEAST = 26;
export const FONT = '11px system-ui, "Segoe UI", Roboto, "DejaVu Sans", sans-serif';
/** A name that has not come yet. */
export const UNKNOWN = { name: "", source: "c", file: "", line: 0 };

const SERIES_MOST = 12;

/**
 * @typedef {Series & {min: number, max: number, last: number}} ShownSeries
 *
 * @typedef {Object} Track
 * @property {Lane} lane
 * @property {number} y from the first track
 * @property {number} height
 * @property {number} rows that are shown
 *
 * @typedef {Object} Chart
 * @property {ShownSeries} series
 * @property {number} y
 * @property {number} height
 *
 * @typedef {{tracks: Track[], charts: Chart[], height: number}} Layout
 */

/** @param {Lane} lane */
export const laneName = (lane) => lane.name || `tid ${lane.tid}`;

/**
 * Places of tracks, and of the charts of series below them.
 * @param {Timeline} timeline
 * @returns {Layout}
 */
export function layoutOf(timeline) {
	const { only, folded } = timeline;
	const shown = timeline.meta.lanes.filter((lane) => only === null || lane.id === only);
	let y = 4;
	const tracks = shown.map((lane) => {
		const rows = folded.has(lane.id) ? 1 : Math.max(1, lane.rows);
		const track = { lane, y, height: Math.max(rows * ROW, 2 * ROW) + GAP, rows };
		y += track.height;
		return track;
	});
	const charts = (only === null ? timeline.series : []).map((series) => {
		const chart = { series, y, height: SERIES };
		y += SERIES;
		return chart;
	});
	return { tracks, charts, height: y };
}

/**
 * The name, or its last part, shortened if needed. Names are measured once.
 * @param {Timeline} timeline
 * @param {number} id
 * @param {number} room
 */
export function fittedLabel(timeline, id, room) {
	const name = timeline.meta.names[id]?.name ?? "";
	let width = timeline.widths.get(id);
	if (width === undefined && name) {
		width = timeline.ink.measureText(name).width;
		timeline.widths.set(id, width);
	}
	if (width === undefined || width <= room)
		return name;
	return shortened(timeline.ink, name.split(/::|\./).pop() || name, room);
}

/**
 * Resident memory and the counters of the program, below the tracks.
 * @param {RunDocument} data
 * @returns {ShownSeries[]}
 */
export function seriesOf(data) {
	const wanted = data.series.filter((s) => s.timeline).slice(0, SERIES_MOST);
	return wanted.map((s) => ({
		...s,
		min: Math.min(...s.low),
		max: Math.max(...s.high),
		last: s.high[s.high.length - 1],
	}));
}

/** @param {number} span @param {number} pixels */
export function tickStep(span, pixels) {
	const raw = span / Math.max(2, pixels / 135);
	const power = 10 ** Math.floor(Math.log10(raw));
	return [1, 2, 5, 10].map((n) => n * power).find((n) => n >= raw) ?? power * 10;
}

/** @param {number} t @param {number} step @returns {[number, string]} */
function tickUnit(t, step) {
	if (step >= 1e9 || (step >= 1e6 && t >= 1e9))
		return [1e9, "s"];
	if (step >= 1e6)
		return [1e6, "ms"];
	return step >= 1e3 ? [1e3, "µs"] : [1, "ns"];
}

/** @param {number} t @param {number} step */
export function tickLabel(t, step) {
	const [size, unit] = tickUnit(t, step);
	const places = Math.max(0, Math.ceil(-Math.log10(step / size)));
	const digits = { minimumFractionDigits: places, maximumFractionDigits: places };
	return `${(t / size).toLocaleString("en-US", digits)} ${unit}`;
}
