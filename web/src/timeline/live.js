// Parts of the timeline that only a server has data for: open zones, steps and marks; and following a running program.
import { fillOf, labelOf, themed } from "../theme.js";
import { BAR, fittedLabel, GUTTER, LABEL_LEAST, ROW, TOP } from "./layout.js";

/** @import { OpenZone } from "../types.js" */
/** @import { Layout, Track } from "./layout.js" */
/** @import { Timeline } from "./timeline.js" */

/** @type {Map<string, CanvasPattern|null>} */
const hatches = new Map();

/**
 * Diagonal lines over a colour, for open zones.
 * @param {CanvasRenderingContext2D} ink
 * @param {string} colour
 */
function hatched(ink, colour) {
	let made = hatches.get(colour);
	if (made === undefined) {
		const tile = document.createElement("canvas");
		tile.width = tile.height = 8;
		const brush = /** @type {CanvasRenderingContext2D} */ (tile.getContext("2d"));
		brush.fillStyle = colour;
		brush.globalAlpha = 0.55;
		brush.fillRect(0, 0, 8, 8);
		brush.globalAlpha = 1;
		brush.strokeStyle = colour;
		brush.lineWidth = 2.5;
		brush.beginPath();
		for (const from of [-8, 0, 8]) {
			brush.moveTo(from - 1, 9);
			brush.lineTo(from + 9, -1);
		}
		brush.stroke();
		made = ink.createPattern(tile, "repeat");
		hatches.set(colour, made);
	}
	return made ?? colour;
}

/**
 * Open zones are hatched and reach to now; zones that ended after the newest tile was read are plain.
 * @param {Timeline} timeline
 * @param {Layout} layout
 */
export function drawOpen(timeline, { tracks }) {
	const { source } = timeline;
	const byLane = new Map(tracks.map((track) => [track.lane.id, track]));
	for (const zone of [...(source.closing ?? []), ...(source.open?.() ?? [])]) {
		const track = byLane.get(zone.lane);
		if (track && zone.row < track.rows)
			drawOpenZone(timeline, track, zone);
	}
}

/** @param {Timeline} timeline @param {Track} track @param {OpenZone} zone */
function drawOpenZone(timeline, track, zone) {
	const { source, ink } = timeline;
	const name = timeline.meta.names[zone.name];
	const y = Math.round(TOP + track.y + zone.row * ROW - timeline.scroll);
	const x = Math.max(GUTTER, Math.round(timeline.xOf(zone.start_ns)));
	const end = Math.min(timeline.width, Math.round(timeline.xOf(zone.end_ns ?? source.now?.() ?? 0)));
	const outside = end <= GUTTER || x >= timeline.width || y < TOP - ROW || y > timeline.height;
	if (!name || outside)
		return;
	const dimmed = timeline.isDimmed(zone.name);
	const colour = dimmed ? themed("line") : fillOf(name.name, name.source);
	ink.fillStyle = zone.end_ns ? colour : hatched(ink, colour);
	ink.fillRect(x, y, Math.max(1, end - x), BAR);
	const text = end - x >= LABEL_LEAST && !dimmed ? fittedLabel(timeline, zone.name, end - x - 8) : "";
	if (!text)
		return;
	if (!zone.end_ns) {
		ink.fillStyle = colour;
		ink.fillRect(x, y, ink.measureText(text).width + 8, BAR);
	}
	ink.fillStyle = labelOf(name.source);
	ink.fillText(text, x + 4, y + 8);
}

/** @param {Timeline} timeline @param {number} x */
function drawVertical({ ink, height }, x) {
	ink.beginPath();
	ink.moveTo(x, TOP);
	ink.lineTo(x, height);
	ink.stroke();
}

/**
 * Steps as dashed lines, marks as flags below the ruler.
 * @param {Timeline} timeline
 */
export function drawMarks(timeline) {
	const { source, ink, view } = timeline;
	if (!source.overlay)
		return;
	const { steps, marks } = source.overlay(view.t0, view.t1);
	const lineAt = (/** @type {number} */ t) => Math.round(timeline.xOf(t)) + 0.5;
	ink.lineWidth = 1;
	ink.strokeStyle = themed("muted");
	ink.globalAlpha = 0.55;
	ink.setLineDash([3, 3]);
	for (const { t } of steps) {
		if (t >= view.t0 && t <= view.t1)
			drawVertical(timeline, lineAt(t));
	}
	ink.setLineDash([]);
	ink.globalAlpha = 1;
	let free = GUTTER;
	for (const { t, name, text } of marks) {
		const x = lineAt(t);
		if (x >= GUTTER && x <= timeline.width)
			free = drawMark(timeline, x, text && text !== name ? `${name}: ${text}` : name, free);
	}
}

/**
 * @param {Timeline} timeline
 * @param {number} x
 * @param {string} text
 * @param {number} free px from which on there is room for a text
 * @returns {number} the same after this mark
 */
function drawMark(timeline, x, text, free) {
	const { ink, height } = timeline;
	ink.strokeStyle = themed("accent");
	drawVertical(timeline, x);
	ink.fillStyle = themed("accent");
	ink.fillRect(x - 2.5, TOP, 5, 5);
	if (x + 5 < free)
		return free;
	const shown = text.length > 28 ? `${text.slice(0, 27)}…` : text;
	const { width } = ink.measureText(shown);
	ink.fillStyle = themed("bg");
	ink.fillRect(x + 2, height - 17, width + 8, BAR);
	ink.fillStyle = themed("accent");
	ink.fillText(shown, x + 5, height - 9);
	return x + width + 14;
}

const WINDOW_NS = 10e9;
const FRAME_MS = 32;

/** Keeps the end in view while the program runs. */
export class Follow {
	/** @param {Timeline} timeline @param {(on: boolean) => void} onswitch */
	constructor(timeline, onswitch) {
		this.timeline = timeline;
		this.onswitch = onswitch;
		this.on = false;
		/** ns in view; null: the whole run, at most WINDOW_NS. @type {number|null} */ this.span = null;
		this.last = 0;
		this.frame = (/** @type {number} */ at) => {
			if (this.timeline.closed || !this.on)
				return;
			if (at - this.last >= FRAME_MS) {
				this.last = at;
				this.move();
			}
			requestAnimationFrame(this.frame);
		};
	}

	/** @param {boolean} on */
	set(on) {
		if (on === this.on)
			return;
		this.on = on;
		this.onswitch(on);
		if (on)
			requestAnimationFrame(this.frame);
	}

	move() {
		const { source, view, nsPerPixel, dirty } = this.timeline;
		// The view ends a little before now, so that the zones up to its edge have come.
		const now = (source.now?.() ?? 0) - Math.min(600, 100 + (source.delay?.() ?? 100)) * 1e6;
		const span = this.span ?? Math.min(Math.max(now, 1e6), WINDOW_NS);
		const t1 = Math.max(now, span);
		const t0 = Math.max(0, t1 - span);
		const moved = Math.max(Math.abs(t1 - view.t1), Math.abs(t0 - view.t0)) / nsPerPixel;
		if (moved < 0.5 && !dirty)
			return;
		this.timeline.view = { t0, t1: Math.max(t1, t0 + 100) };
		this.timeline.changed();
	}
}
