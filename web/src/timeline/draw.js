// Draws the timeline: zones from tiles, tracks, ruler, minimap and series; and cursor, hover and selection on a canvas
// over it.
import { levelFor, tileSpan, unitOf } from "../document.js";
import { shortened } from "../flame.js";
import { duration, measure } from "../format.js";
import { fillOf, labelOf, SAMPLE, themed } from "../theme.js";
import { BAR, FONT, GAP, GUTTER, LABEL_LEAST, MINIMAP, ROW, RULER, TOP, UNKNOWN } from "./layout.js";
import { fittedLabel, gutterName, layoutOf, tickLabel, tickStep } from "./layout.js";
import { drawJoins } from "./joins.js";
import { drawMarks, drawOpen } from "./live.js";

/** @import { TileRow, Zone } from "../types.js" */
/** @import { Chart, Layout } from "./layout.js" */
/** @import { Timeline } from "./timeline.js" */

/**
 * @typedef {{x: number, y: number, w: number, name: number, right: boolean}} Label
 * right: the zone goes on in the next tile
 */

/** Heights of merged pieces, by the covered quarter of their time. */
const HEIGHTS = [4, 7, 11, BAR];
/** Of a zone that is made of stack samples. */
const EDGE = 2;

/** @param {Timeline} timeline */
export function drawPicture(timeline) {
	const ink = timeline.ink;
	timeline.dirty = false;
	ink.font = FONT;
	ink.textBaseline = "middle";
	ink.fillStyle = themed("bg");
	ink.fillRect(0, 0, timeline.width, timeline.height);
	timeline.settle();
	const layout = layoutOf(timeline);
	drawSeparators(timeline, layout);
	ink.save();
	ink.beginPath();
	ink.rect(GUTTER, TOP, timeline.plot, timeline.height - TOP);
	ink.clip();
	drawZones(timeline, layout);
	drawOpen(timeline, layout);
	drawMarks(timeline);
	for (const chart of layout.charts)
		drawSeries(timeline, chart);
	ink.restore();
	drawGutter(timeline, layout);
	drawGroups(timeline, layout);
	drawRuler(timeline);
	drawMinimap(timeline);
	drawOver(timeline);
	timeline.joined.askView();
}

/** The headings of ranks. @param {Timeline} timeline @param {Layout} layout */
function drawGroups(timeline, { groups }) {
	const { ink } = timeline;
	for (const { rank, host, y, height, lanes } of groups) {
		const top = Math.round(TOP + y - timeline.scroll);
		if (top > timeline.height || top + height < TOP)
			continue;
		ink.fillStyle = themed("panel");
		ink.fillRect(0, top, timeline.width, height);
		ink.fillStyle = themed("line");
		ink.fillRect(0, top, timeline.width, 1);
		ink.font = `600 ${FONT.replace("11px", "12px")}`;
		ink.fillStyle = themed("text");
		const title = `${timeline.foldedRanks.has(rank) ? "▸" : "▾"} ${rank === null ? "no rank" : `rank ${rank}`}`;
		ink.fillText(title, 8, top + height / 2);
		const wide = ink.measureText(title).width;
		ink.font = FONT;
		ink.fillStyle = themed("muted");
		const note = timeline.foldedRanks.has(rank) && lanes > 1 ? `${lanes} tracks` : "";
		ink.fillText([host, note].filter(Boolean).join(" · "), Math.max(GUTTER + 4, wide + 16), top + height / 2);
	}
}

/** @param {Timeline} timeline @param {Layout} layout */
function drawSeparators(timeline, { tracks, charts }) {
	timeline.ink.fillStyle = themed("line");
	for (const { y, height } of [...tracks, ...charts]) {
		const bottom = TOP + y + height - timeline.scroll - GAP / 2;
		timeline.ink.fillRect(GUTTER, Math.round(bottom), timeline.plot, 1);
	}
}

/**
 * Gathers rectangles by colour, and labels, then paints each colour once.
 * @param {Timeline} timeline
 * @param {Layout} layout
 */
function drawZones(timeline, { tracks }) {
	const gathered = new Gathered();
	const byLane = new Map(tracks.map((track) => [track.lane.id, track]));
	for (const { tile, t0, t1 } of timeline.tiles()) {
		const from = Math.max(GUTTER - 2, Math.round(timeline.xOf(t0)));
		const to = Math.min(timeline.width + 2, Math.round(timeline.xOf(t1)));
		for (const row of tile.tracks) {
			const track = byLane.get(row.lane);
			if (!track || row.row >= track.rows)
				continue;
			const y = Math.round(TOP + track.y + row.row * ROW - timeline.scroll);
			if (y >= TOP - ROW && y <= timeline.height)
				gather(timeline, { row, t0: tile.t0, unit: unitOf(tile.level), y, from, to }, gathered);
		}
	}
	gathered.paint(timeline);
}

/** Rectangles by colour, four numbers each, and labels. */
class Gathered {
	constructor() {
		/** @type {Map<string, number[]>} */
		this.colours = new Map();
		/** Upper edges of zones that are made of stack samples, over their rectangles. @type {number[]} */
		this.edges = [];
		/** @type {Label[]} */
		this.labels = [];
		/** The last label of each row of a track. @type {Map<number, Label>} */
		this.last = new Map();
	}

	/** @param {string} colour */
	rectangles(colour) {
		let rectangles = this.colours.get(colour);
		if (!rectangles) {
			rectangles = [];
			this.colours.set(colour, rectangles);
		}
		return rectangles;
	}

	/**
	 * A zone that goes on from the tile before it has one label.
	 * @param {number} key of the row
	 * @param {Label} label
	 * @param {boolean} left it begins before the tile
	 */
	label(key, label, left) {
		const before = this.last.get(key);
		if (left && before?.right && before.name === label.name) {
			before.w = label.x + label.w - before.x;
			before.right = label.right;
		} else if (label.w >= LABEL_LEAST || label.right) {
			this.labels.push(label);
			this.last.set(key, label);
		}
	}

	/** @param {Timeline} timeline */
	paint(timeline) {
		/** @type {[string, number[]][]} */
		const all = [...this.colours, [themed("sample-edge"), this.edges]];
		for (const [colour, rectangles] of all) {
			timeline.ink.fillStyle = colour;
			for (let i = 0; i < rectangles.length; i += 4)
				timeline.ink.fillRect(rectangles[i], rectangles[i + 1], rectangles[i + 2], rectangles[i + 3]);
		}
		for (const label of this.labels)
			drawLabel(timeline, label);
	}
}

/**
 * The rectangles of a row of a tile, at y, between the px `from` and `to`.
 * @param {Timeline} timeline
 * @param {{row: TileRow, t0: number, unit: number, y: number, from: number, to: number}} of
 * @param {Gathered} gathered
 */
function gather(timeline, { row, t0, unit, y, from, to }, gathered) {
	const scale = unit / timeline.nsPerPixel;
	const shift = GUTTER + (t0 - timeline.view.t0) / timeline.nsPerPixel;
	const key = row.lane * 256 + row.row;
	/** Rectangles that the last piece went to, if it was a merged one. @type {number[]|null} */
	let last = null;
	let lastHeight = 0;
	let lastEnd = -1;
	for (let i = 0; i < row.count; i++) {
		let x = Math.round(shift + row.x[i] * scale);
		let end = Math.round(shift + (row.x[i] + row.w[i]) * scale);
		if (end < from || x >= to)
			continue;
		x = Math.max(x, from);
		end = Math.min(Math.max(end, x + 1), to);
		const id = row.name[i];
		const single = row.n[i] === 1;
		const cov = row.cov[i];
		const height = single ? BAR : HEIGHTS[Math.min(3, cov >> 6)];
		if (end <= lastEnd && height <= lastHeight)
			continue; // adds no pixel
		const dimmed = timeline.isDimmed(id);
		const { name, source } = timeline.meta.names[id] ?? UNKNOWN;
		const rectangles = gathered.rectangles(dimmed ? themed("line") : fillOf(name, source));
		const at = rectangles.length;
		const right = Boolean(cov & 2);
		const top = y + BAR - height;
		const width = end - x - (single && end - x > 3 && !right ? 1 : 0);
		if (rectangles === last && x <= lastEnd && height === lastHeight && !single)
			rectangles[at - 2] = end - rectangles[at - 4];
		else
			rectangles.push(x, top, width, height);
		if (source === SAMPLE && !dimmed)
			gathered.edges.push(x, top, width, EDGE);
		last = single ? null : rectangles;
		lastHeight = height;
		lastEnd = end;
		if (single && !dimmed)
			gathered.label(key, { x, y, w: end - x, name: id, right }, Boolean(cov & 1));
	}
}

/** @param {Timeline} timeline @param {Label} label */
function drawLabel(timeline, label) {
	const left = Math.max(label.x, GUTTER);
	const room = label.x + label.w - left - 8;
	const text = room + 8 >= LABEL_LEAST ? fittedLabel(timeline, label.name, room) : "";
	if (!text)
		return;
	timeline.ink.fillStyle = labelOf((timeline.meta.names[label.name] ?? UNKNOWN).source);
	timeline.ink.fillText(text, left + 4, label.y + 8);
}

/** @param {Timeline} timeline @param {Chart} chart */
function drawSeries(timeline, { series, y }) {
	const { ts, low, high, min, max } = series;
	const ink = timeline.ink;
	const base = TOP + y - timeline.scroll + 40;
	const top = base - 34;
	if (base < TOP || top > timeline.height || !ts.length)
		return;
	const span = max - Math.min(0, min) || 1;
	const yOf = (/** @type {number} */ v) => base - (34 * (v - Math.min(0, min))) / span;
	ink.beginPath();
	ink.moveTo(timeline.xOf(ts[0]), base);
	for (let i = 0; i < ts.length; i++)
		ink.lineTo(timeline.xOf(ts[i]), yOf(high[i]));
	ink.lineTo(timeline.xOf(ts[ts.length - 1]), base);
	ink.globalAlpha = 0.18;
	ink.fillStyle = themed("accent");
	ink.fill();
	ink.globalAlpha = 1;
	ink.beginPath();
	for (let i = 0; i < ts.length; i++) {
		ink.lineTo(timeline.xOf(ts[i]), yOf(high[i]));
		if (low[i] !== high[i])
			ink.lineTo(timeline.xOf(ts[i]), yOf(low[i]));
	}
	ink.strokeStyle = themed("accent");
	ink.lineWidth = 1.25;
	ink.stroke();
}

/** Texts of the gutter as they fit, by font and text: none is measured twice. @type {Map<string, string>} */
const fitting = new Map();
const FITTING_MOST = 4000;

/** @param {CanvasRenderingContext2D} ink @param {string} text @param {number} x */
function gutterText(ink, text, x) {
	const key = `${ink.font} ${x} ${text}`;
	let shown = fitting.get(key);
	if (shown === undefined) {
		shown = shortened(ink, text, GUTTER - 6 - x);
		if (fitting.size > FITTING_MOST)
			fitting.clear();
		fitting.set(key, shown);
	}
	return shown;
}

/** @param {Timeline} timeline @param {Layout} layout */
function drawGutter(timeline, { tracks, charts, groups }) {
	const ink = timeline.ink;
	/** @type {(y: number, height: number, title: string, note: string) => void} */
	const entry = (y, height, title, note) => {
		const top = TOP + y - timeline.scroll;
		if (top > timeline.height || top + height < TOP)
			return;
		ink.font = FONT.replace("11px", "12px");
		ink.fillStyle = themed("text");
		ink.fillText(gutterText(ink, title, 8), 8, top + 8);
		if (height < 2 * ROW)
			return;
		ink.font = FONT;
		ink.fillStyle = themed("muted");
		ink.fillText(gutterText(ink, note, 22), 22, top + 23);
	};
	ink.fillStyle = themed("panel");
	ink.fillRect(0, TOP, GUTTER, timeline.height - TOP);
	ink.save();
	ink.beginPath();
	ink.rect(0, TOP, GUTTER - 4, timeline.height - TOP);
	ink.clip();
	for (const { lane, y, height } of tracks)
		entry(
			y,
			height,
			`${timeline.folded.has(lane.id) ? "▸" : "▾"} ${gutterName(lane, groups.length > 0)}`,
			groups.length ? "" : lane.note,
		);
	for (const { series, y, height } of charts)
		entry(y, height, `  ${series.name}`, measure(series.last, series.unit));
	ink.restore();
	ink.fillStyle = themed("line");
	ink.fillRect(GUTTER - 1, 0, 1, timeline.height);
}

/** @param {Timeline} timeline */
function drawRuler(timeline) {
	const { ink, view } = timeline;
	const step = tickStep(view.t1 - view.t0, timeline.plot);
	const relative = step < 1e6 && view.t0 > 1e9;
	const origin = relative ? Math.floor(view.t0 / (step * 10)) * step * 10 : 0;
	ink.fillStyle = themed("panel");
	ink.fillRect(0, MINIMAP, timeline.width, RULER);
	ink.fillStyle = themed("line");
	ink.fillRect(0, TOP - 1, timeline.width, 1);
	ink.font = FONT;
	ink.fillStyle = themed("muted");
	const from = view.t0 > 0 ? duration(view.t0) : "0 s";
	ink.fillText(relative ? `${(origin / 1e9).toFixed(6)} s` : `from ${from}`, 8, MINIMAP + 11);
	for (let t = Math.ceil(view.t0 / step) * step; t < view.t1; t += step) {
		const x = Math.round(timeline.xOf(t));
		ink.fillStyle = themed("line");
		ink.fillRect(x, MINIMAP, 1, RULER);
		const label = relative ? `+${tickLabel(t - origin, step)}` : tickLabel(t, step);
		ink.fillStyle = themed("muted");
		if (x + 4 + ink.measureText(label).width <= timeline.width)
			ink.fillText(label, x + 4, MINIMAP + 11);
	}
}

/** @param {Timeline} timeline */
function drawMinimap(timeline) {
	const { ink, view, plot } = timeline;
	const { end } = timeline.meta;
	ink.fillStyle = themed("panel");
	ink.fillRect(0, 0, timeline.width, MINIMAP);
	ink.fillStyle = themed("muted");
	ink.font = FONT;
	ink.fillText(`view ${duration(view.t1 - view.t0)}`, 8, 13);
	ink.globalAlpha = 0.55;
	const level = levelFor(end / plot);
	for (let i = 0; i * tileSpan(level) < end; i++)
		drawMinimapTile(timeline, level, i);
	ink.globalAlpha = 1;
	const left = GUTTER + (Math.max(0, view.t0) / end) * plot;
	const right = GUTTER + (Math.min(end, view.t1) / end) * plot;
	ink.fillStyle = themed("accent");
	ink.globalAlpha = 0.16;
	ink.fillRect(left, 0, Math.max(2, right - left), MINIMAP);
	ink.globalAlpha = 1;
	ink.fillRect(left, 0, 2, MINIMAP);
	ink.fillRect(Math.max(left, right - 2), 0, 2, MINIMAP);
	ink.fillStyle = themed("line");
	ink.fillRect(0, MINIMAP - 1, timeline.width, 1);
}

/**
 * The first row of the first track.
 * @param {Timeline} timeline
 * @param {number} level
 * @param {number} index
 */
function drawMinimapTile(timeline, level, index) {
	const tile = timeline.source.get(level, index);
	const row = tile?.tracks.find((one) => one.row <= 1);
	if (!tile || !row)
		return;
	const scale = timeline.plot / timeline.meta.end;
	const unit = unitOf(level);
	for (let k = 0; k < row.count; k++) {
		const x = GUTTER + (tile.t0 + row.x[k] * unit) * scale;
		timeline.ink.fillRect(x, 7, Math.max(1, row.w[k] * unit * scale - 0.5), BAR);
	}
}

/**
 * Cursor, hover, selection and range.
 * @param {Timeline} timeline
 */
export function drawOver(timeline) {
	const { overInk: ink, range, mouse } = timeline;
	ink.clearRect(0, 0, timeline.width, timeline.height);
	if (range) {
		const from = Math.max(timeline.xOf(range.t0), GUTTER);
		const to = Math.min(timeline.xOf(range.t1), timeline.width);
		ink.fillStyle = themed("accent");
		ink.globalAlpha = 0.13;
		ink.fillRect(from, MINIMAP, to - from, timeline.height);
		ink.globalAlpha = 1;
	}
	drawJoins(timeline);
	if (timeline.hovered)
		outline(timeline, timeline.hovered, themed("muted"), 1);
	if (timeline.selected)
		outline(timeline, timeline.selected, themed("text"), 2);
	if (mouse && mouse.x > GUTTER) {
		ink.fillStyle = themed("accent");
		ink.fillRect(mouse.x, 0, 1, timeline.height);
	}
}

/** @param {Timeline} timeline @param {Zone} zone @param {string} colour @param {number} width */
function outline(timeline, zone, colour, width) {
	const track = layoutOf(timeline).tracks.find((one) => one.lane.id === zone.lane);
	if (!track || zone.row >= track.rows)
		return;
	const x = Math.max(GUTTER, timeline.xOf(zone.start));
	const end = Math.min(timeline.width + 5, timeline.xOf(zone.start + zone.duration));
	const y = TOP + track.y + zone.row * ROW - timeline.scroll;
	if (y < TOP || end < GUTTER || x > timeline.width)
		return;
	timeline.overInk.strokeStyle = colour;
	timeline.overInk.lineWidth = width;
	timeline.overInk.strokeRect(Math.round(x) - 0.5, y - 0.5, Math.max(2, end - x), ROW);
}
