// The timeline's picture: zones out of tiles, lanes, ruler, minimap and counters; and, on a canvas over it, what moves
// with the mouse.
import { levelFor, tileSpan, unitOf } from "./source.js";
import {
	fitted,
	FONT,
	GAP,
	GUTTER,
	MINIMAP,
	placesOf,
	ROW,
	RULER,
	tickLabel,
	tickStep,
	TOP,
	UNKNOWN,
} from "./timeline-layout.js";
import { drawMarks, drawOpen } from "./timeline-live.js";
import { duration, fillOf, labelOf, measure, themed } from "./util.js";

/** @typedef {import("./timeline.js").Timeline} Timeline */
/** @typedef {import("./source.js").Zone} Zone */

const HEIGHTS = [4, 7, 11, 15];

/** @param {Timeline} timeline */
export function drawPicture(timeline) {
	const ink = timeline.ink;
	timeline.dirty = false;
	ink.font = FONT;
	ink.textBaseline = "middle";
	ink.fillStyle = themed("bg");
	ink.fillRect(0, 0, timeline.width, timeline.height);
	const places = placesOf(timeline);
	drawLanes(timeline, places);
	ink.save();
	ink.beginPath();
	ink.rect(GUTTER, TOP, timeline.plot, timeline.height - TOP);
	ink.clip();
	drawZones(timeline, places);
	drawOpen(timeline, places, { gutter: GUTTER, top: TOP, row: ROW });
	drawMarks(timeline, { gutter: GUTTER, top: TOP });
	for (const place of places)
		if (place.series)
			drawSeries(timeline, place);
	ink.restore();
	drawGutter(timeline, places);
	drawRuler(timeline);
	drawMinimap(timeline);
	drawOver(timeline);
}

/** @param {Timeline} timeline @param {ReturnType<typeof placesOf>} places */
function drawLanes(timeline, places) {
	timeline.ink.fillStyle = themed("line");
	for (const place of places)
		timeline.ink.fillRect(
			GUTTER,
			Math.round(TOP + place.y + place.height - timeline.scroll - GAP / 2),
			timeline.plot,
			1,
		);
}

/**
 * Gathers rectangles by colour, and labels, then paints each colour once.
 * @param {Timeline} timeline
 * @param {ReturnType<typeof placesOf>} places
 */
function drawZones(timeline, places) {
	/** @type {Map<string, number[]>} */ const colours = new Map();
	/** @type {{x: number, y: number, w: number, name: number, right: boolean, key: number}[]} */ const labels = [];
	/** @type {Map<number, any>} */ const open = new Map();
	const byLane = new Map(places.filter((p) => p.lane).map((p) => [p.lane.id, p]));
	for (const { tile, t0, t1 } of timeline.tiles()) {
		const unit = unitOf(tile.level);
		const from = Math.max(GUTTER - 2, Math.round(timeline.xOf(t0)));
		const to = Math.min(timeline.width + 2, Math.round(timeline.xOf(t1)));
		for (const track of tile.tracks) {
			const place = byLane.get(track.lane);
			if (!place || track.row >= place.rows)
				continue;
			const y = Math.round(TOP + place.y + track.row * ROW - timeline.scroll);
			if (y < TOP - ROW || y > timeline.height)
				continue;
			gather(timeline, tile.t0, unit, track, y, { from, to }, colours, labels, open);
		}
	}
	for (const [colour, rects] of colours) {
		timeline.ink.fillStyle = colour;
		for (let i = 0; i < rects.length; i += 4)
			timeline.ink.fillRect(rects[i], rects[i + 1], rects[i + 2], rects[i + 3]);
	}
	for (const label of labels)
		drawLabel(timeline, label);
}

/**
 * @param {Timeline} timeline
 * @param {number} t0
 * @param {number} unit
 * @param {import("./source.js").Track} track
 * @param {number} y
 * @param {{from: number, to: number}} clip
 * @param {Map<string, number[]>} colours
 * @param {any[]} labels
 * @param {Map<number, any>} open
 */
function gather(timeline, t0, unit, track, y, clip, colours, labels, open) {
	const scale = unit / timeline.nsPerPixel;
	const shift = GUTTER + (t0 - timeline.view.t0) / timeline.nsPerPixel;
	const names = timeline.meta.names;
	const key = track.lane * 256 + track.row;
	/** @type {number[]|null} */ let last = null;
	let lastHeight = 0;
	let lastEnd = -1;
	for (let i = 0; i < track.count; i++) {
		let x = Math.round(shift + track.x[i] * scale);
		let end = Math.round(shift + (track.x[i] + track.w[i]) * scale);
		if (end < clip.from || x >= clip.to)
			continue;
		x = Math.max(x, clip.from);
		end = Math.min(Math.max(end, x + 1), clip.to);
		const id = track.name[i];
		const exact = track.n[i] === 1;
		const cov = track.cov[i];
		const height = exact ? 15 : HEIGHTS[Math.min(3, cov >> 6)];
		if (end <= lastEnd && height <= lastHeight)
			continue; // adds no pixel
		const dim = timeline.find && !timeline.found.has(id);
		const one = names[id] ?? UNKNOWN;
		const colour = dim ? themed("line") : fillOf(one.name, one.source);
		let rects = colours.get(colour);
		if (!rects)
			colours.set(colour, (rects = []));
		const at = rects.length;
		if (rects === last && x <= lastEnd && height === lastHeight && !exact) {
			rects[at - 2] = end - rects[at - 4];
		} else {
			const gap = exact && end - x > 3 && !(cov & 2) ? 1 : 0;
			rects.push(x, y + 15 - height, end - x - gap, height);
		}
		last = exact ? null : rects;
		lastHeight = height;
		lastEnd = end;
		const before = open.get(key);
		if (exact && cov & 1 && before?.right && before.name === id) {
			before.w = end - before.x;
			before.right = Boolean(cov & 2);
		} else if (exact && (end - x >= 26 || cov & 2) && !dim) {
			const label = { x, y, w: end - x, name: id, right: Boolean(cov & 2), key };
			labels.push(label);
			open.set(key, label);
		}
	}
}

/** @param {Timeline} timeline @param {{x: number, y: number, w: number, name: number}} label */
function drawLabel(timeline, label) {
	if (label.w < 26)
		return;
	const one = timeline.meta.names[label.name] ?? UNKNOWN;
	const text = fitted(timeline, label.name, label.w - 8);
	if (!text)
		return;
	timeline.ink.fillStyle = labelOf(one.source);
	timeline.ink.fillText(text, Math.max(label.x, GUTTER) + 4, label.y + 8);
}

/** @param {Timeline} timeline @param {{series?: any, y: number}} place */
function drawSeries(timeline, place) {
	const { ts, low, high, min, max } = place.series;
	const ink = timeline.ink;
	const base = TOP + place.y - timeline.scroll + 40;
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

/** @param {Timeline} timeline @param {ReturnType<typeof placesOf>} places */
function drawGutter(timeline, places) {
	const ink = timeline.ink;
	ink.fillStyle = themed("panel");
	ink.fillRect(0, TOP, GUTTER, timeline.height - TOP);
	ink.save();
	ink.beginPath();
	ink.rect(0, TOP, GUTTER - 4, timeline.height - TOP);
	ink.clip();
	for (const place of places) {
		const y = TOP + place.y - timeline.scroll;
		if (y > timeline.height || y + place.height < TOP)
			continue;
		const name = place.lane ? place.lane.name || `tid ${place.lane.tid}` : place.series.name;
		const mark = place.lane && timeline.folded.has(place.lane.id) ? "▸" : "▾";
		ink.font = FONT.replace("11px", "12px");
		ink.fillStyle = themed("text");
		ink.fillText(`${place.lane ? mark : " "} ${name}`, 8, y + 8);
		ink.font = FONT;
		ink.fillStyle = themed("muted");
		ink.fillText(place.lane ? place.lane.note : measure(place.series.last, place.series.unit), 22, y + 23);
	}
	ink.restore();
	ink.fillStyle = themed("line");
	ink.fillRect(GUTTER - 1, 0, 1, timeline.height);
}

/** @param {Timeline} timeline */
function drawRuler(timeline) {
	const ink = timeline.ink;
	const step = tickStep(timeline.view.t1 - timeline.view.t0, timeline.plot);
	const relative = step < 1e6 && timeline.view.t0 > 1e9;
	const origin = relative ? Math.floor(timeline.view.t0 / (step * 10)) * step * 10 : 0;
	ink.fillStyle = themed("panel");
	ink.fillRect(0, MINIMAP, timeline.width, RULER);
	ink.fillStyle = themed("line");
	ink.fillRect(0, TOP - 1, timeline.width, 1);
	ink.font = FONT;
	ink.fillStyle = themed("muted");
	ink.fillText(
		relative ? `${(origin / 1e9).toFixed(6)} s` : duration(Math.max(0, timeline.view.t0)),
		8,
		MINIMAP + 11,
	);
	for (let t = Math.ceil(timeline.view.t0 / step) * step; t < timeline.view.t1; t += step) {
		const x = Math.round(timeline.xOf(t));
		ink.fillStyle = themed("line");
		ink.fillRect(x, MINIMAP, 1, RULER);
		ink.fillStyle = themed("muted");
		ink.fillText(relative ? `+${tickLabel(t - origin, step)}` : tickLabel(t, step), x + 4, MINIMAP + 11);
	}
}

/** @param {Timeline} timeline */
function drawMinimap(timeline) {
	const ink = timeline.ink;
	const level = levelFor(timeline.meta.end / timeline.plot);
	const tile = tileSpan(level);
	ink.fillStyle = themed("panel");
	ink.fillRect(0, 0, timeline.width, MINIMAP);
	ink.fillStyle = themed("muted");
	ink.font = FONT;
	ink.fillText(`view ${duration(timeline.view.t1 - timeline.view.t0)}`, 8, 13);
	ink.globalAlpha = 0.55;
	for (let i = 0; i * tile < timeline.meta.end; i++) {
		const one = timeline.source.get(level, i);
		for (const track of one?.tracks ?? []) {
			if (track.row > 1)
				continue;
			const unit = unitOf(level);
			for (let k = 0; one && k < track.count; k++) {
				const x = GUTTER + ((one.t0 + track.x[k] * unit) / timeline.meta.end) * timeline.plot;
				ink.fillRect(x, 7, Math.max(1, ((track.w[k] * unit) / timeline.meta.end) * timeline.plot - 0.5), 15);
			}
			break;
		}
	}
	ink.globalAlpha = 1;
	const left = GUTTER + (Math.max(0, timeline.view.t0) / timeline.meta.end) * timeline.plot;
	const right = GUTTER + (Math.min(timeline.meta.end, timeline.view.t1) / timeline.meta.end) * timeline.plot;
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
 * Cursor, hover, selection, range.
 * @param {Timeline} timeline
 */
export function drawOver(timeline) {
	const ink = timeline.overInk;
	ink.clearRect(0, 0, timeline.width, timeline.height);
	if (timeline.range) {
		const a = timeline.xOf(timeline.range.t0);
		const b = timeline.xOf(timeline.range.t1);
		ink.fillStyle = themed("accent");
		ink.globalAlpha = 0.13;
		ink.fillRect(Math.max(a, GUTTER), MINIMAP, Math.min(b, timeline.width) - Math.max(a, GUTTER), timeline.height);
		ink.globalAlpha = 1;
	}
	for (const [zone, colour, width] of /** @type {[Zone|null, string, number][]} */ ([
		[timeline.hovered, themed("muted"), 1],
		[timeline.selected, themed("text"), 2],
	]))
		if (zone)
			outline(timeline, zone, colour, width);
	if (timeline.mouse && timeline.mouse.x > GUTTER) {
		ink.fillStyle = themed("accent");
		ink.fillRect(timeline.mouse.x, 0, 1, timeline.height);
	}
}

/** @param {Timeline} timeline @param {Zone} zone @param {string} colour @param {number} width */
function outline(timeline, zone, colour, width) {
	const place = placesOf(timeline).find((p) => p.lane?.id === zone.lane);
	if (!place || zone.row >= place.rows)
		return;
	const x = Math.max(GUTTER, timeline.xOf(zone.start));
	const end = Math.min(timeline.width + 5, timeline.xOf(zone.start + zone.duration));
	const y = TOP + place.y + zone.row * ROW - timeline.scroll;
	if (y < TOP || end < GUTTER || x > timeline.width)
		return;
	timeline.overInk.strokeStyle = colour;
	timeline.overInk.lineWidth = width;
	timeline.overInk.strokeRect(Math.round(x) - 0.5, y - 0.5, Math.max(2, end - x), ROW);
}
