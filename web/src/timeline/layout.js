// Positions in the timeline: sizes in px, places of tracks and series, labels that fit, ticks of the ruler.
import { shortened } from "../flame.js";
import { hasRank } from "../job/ranks.js";

/** @import { Lane, RunDocument, Series } from "../types.js" */
/** @import { Timeline } from "./timeline.js" */

export const GUTTER = 132;
export const ROW = 16;
export const BAR = 15;
export const GAP = 9;
export const RULER = 22;
export const MINIMAP = 26;
export const SERIES = 49;
/** The heading of a rank. */
export const GROUP = 20;
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
 * @typedef {Object} Group of the tracks of a rank
 * @property {number|null} rank null: of processes without one
 * @property {string} host
 * @property {number} y
 * @property {number} height of the heading
 * @property {number} lanes how many
 *
 * @typedef {{tracks: Track[], charts: Chart[], groups: Group[], height: number}} Layout
 */

/** @param {Lane} lane */
export const laneName = (lane) => lane.name || `tid ${lane.tid}`;

/** In the group of its rank: without the rank. @param {Lane} lane */
const shortLaneName = (lane) =>
	laneName(lane)
		.replace(/ of rank \d+$/, "")
		.replace(/^thread (\d+) \((.*)\)$/, "$2 $1");

/** @param {Lane[]} lanes */
export const isGrouped = (lanes) => new Set(lanes.map((lane) => lane.rank ?? null)).size > 1;

/**
 * Tracks in the order of ranks, each rank with a heading. A folded rank shows its collectives, or its first track.
 * @param {Timeline} timeline
 * @param {Lane[]} lanes
 * @returns {{tracks: Track[], groups: Group[], height: number}}
 */
function groupedTracks({ folded, foldedRanks }, lanes) {
	/** @type {Map<number|null, Lane[]>} */
	const byRank = new Map();
	for (const lane of lanes) {
		const rank = lane.rank ?? null;
		byRank.set(rank, [...(byRank.get(rank) ?? []), lane]);
	}
	const ranks = [...byRank.keys()].sort((a, b) => (a ?? Infinity) - (b ?? Infinity));
	/** @type {Track[]} */
	const tracks = [];
	/** @type {Group[]} */
	const groups = [];
	let y = 0;
	for (const rank of ranks) {
		const own = byRank.get(rank) ?? [];
		const closed = foldedRanks.has(rank);
		groups.push({ rank, host: own.find((lane) => lane.host)?.host ?? "", y, height: GROUP, lanes: own.length });
		y += GROUP + 3;
		const one = own.find((lane) => lane.kind === "collectives") ?? own[0];
		for (const lane of closed ? [one] : own) {
			const rows = folded.has(lane.id) ? 1 : Math.max(1, lane.rows);
			const track = { lane, y, height: rows * ROW + 5, rows };
			tracks.push(track);
			y += track.height;
		}
	}
	return { tracks, groups, height: y };
}

/**
 * @param {Timeline} timeline
 * @param {Lane[]} lanes
 * @returns {{tracks: Track[], groups: Group[], height: number}}
 */
function plainTracks({ folded }, lanes) {
	let y = 4;
	const tracks = lanes.map((lane) => {
		const rows = folded.has(lane.id) ? 1 : Math.max(1, lane.rows);
		const track = { lane, y, height: Math.max(rows * ROW, 2 * ROW) + GAP, rows };
		y += track.height;
		return track;
	});
	return { tracks, groups: [], height: y };
}

/** What the gutter says of a track. @param {Lane} lane @param {boolean} grouped */
export const gutterName = (lane, grouped) => (grouped ? shortLaneName(lane) : laneName(lane));

/**
 * Places of tracks, and of the charts of series below them.
 * @param {Timeline} timeline
 * @returns {Layout}
 */
export function layoutOf(timeline) {
	const { only } = timeline;
	const chosen = hasRank(timeline.source.ranks);
	const lanes = timeline.meta.lanes.filter((lane) => chosen(lane.rank));
	const shown = lanes.filter((lane) => only === null || lane.id === only);
	const placed = isGrouped(timeline.meta.lanes) ? groupedTracks(timeline, shown) : plainTracks(timeline, shown);
	let y = placed.height;
	const charts = (only === null ? timeline.series : []).map((series) => {
		const chart = { series, y, height: SERIES };
		y += SERIES;
		return chart;
	});
	return { ...placed, charts, height: y };
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
