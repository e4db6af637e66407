// What only a running program or a server has: zones that are still open, steps and marks, and following the end.
import { fitted } from "./timeline-layout.js";
import { fillOf, labelOf, themed } from "./util.js";

/** @type {Map<string, CanvasPattern|null>} */
const hatches = new Map();

/**
 * Diagonal lines over a colour: it has not ended.
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
 * Open zones, hatched to now; those that ended since the last tile came, plain.
 * @param {any} timeline
 * @param {any[]} places
 * @param {{gutter: number, top: number, row: number}} sizes
 */
export function drawOpen(timeline, places, { gutter, top, row }) {
	const { source, ink, meta } = timeline;
	if (!source.open)
		return;
	const byLane = new Map(places.filter((p) => p.lane).map((p) => [p.lane.id, p]));
	const now = source.now();
	for (const zone of [...source.closing, ...source.open()]) {
		const place = byLane.get(zone.lane);
		const name = meta.names[zone.name];
		if (!place || !name || zone.row >= place.rows)
			continue;
		const y = Math.round(top + place.y + zone.row * row - timeline.scroll);
		const x = Math.max(gutter, Math.round(timeline.xOf(zone.start_ns)));
		const end = Math.min(timeline.width, Math.round(timeline.xOf(zone.end_ns ?? now)));
		if (end <= gutter || x >= timeline.width || y < top - row || y > timeline.height)
			continue;
		const dim = timeline.find && !timeline.found.has(zone.name);
		const colour = dim ? themed("line") : fillOf(name.name, name.source);
		ink.fillStyle = zone.end_ns ? colour : hatched(ink, colour);
		ink.fillRect(x, y, Math.max(1, end - x), 15);
		const text = end - x >= 26 && !dim ? fitted(timeline, zone.name, end - x - 8) : "";
		if (!text)
			continue;
		if (!zone.end_ns) {
			ink.fillStyle = colour;
			ink.fillRect(x, y, ink.measureText(text).width + 8, 15);
		}
		ink.fillStyle = labelOf(name.source);
		ink.fillText(text, x + 4, y + 8);
	}
}

/**
 * Steps as dashed lines, marks as flags under the ruler.
 * @param {any} timeline
 * @param {{gutter: number, top: number}} sizes
 */
export function drawMarks(timeline, { gutter, top }) {
	const { source, ink, view } = timeline;
	if (!source.overlay)
		return;
	const { steps, marks } = source.overlay(view.t0, view.t1);
	const line = (/** @type {number} */ x) => {
		ink.beginPath();
		ink.moveTo(x, top);
		ink.lineTo(x, timeline.height);
		ink.stroke();
	};
	ink.lineWidth = 1;
	ink.strokeStyle = themed("muted");
	ink.globalAlpha = 0.55;
	ink.setLineDash([3, 3]);
	for (const one of steps)
		if (one.t >= view.t0 && one.t <= view.t1)
			line(Math.round(timeline.xOf(one.t)) + 0.5);
	ink.setLineDash([]);
	ink.globalAlpha = 1;
	let free = gutter;
	for (const one of marks) {
		const x = Math.round(timeline.xOf(one.t)) + 0.5;
		const text = one.text && one.text !== one.name ? `${one.name}: ${one.text}` : one.name;
		if (x < gutter || x > timeline.width)
			continue;
		ink.strokeStyle = themed("accent");
		line(x);
		ink.fillStyle = themed("accent");
		ink.fillRect(x - 2.5, top, 5, 5);
		const width = Math.min(160, ink.measureText(text).width);
		if (x + 5 < free)
			continue;
		free = x + width + 14;
		const said = text.length > 28 ? `${text.slice(0, 27)}…` : text;
		ink.fillStyle = themed("bg");
		ink.fillRect(x + 2, timeline.height - 17, width + 8, 15);
		ink.fillStyle = themed("accent");
		ink.fillText(said, x + 5, timeline.height - 9);
	}
}

const WINDOW = 10e9;

/** Keeps the end in view while the program runs. */
export class Follow {
	/** @param {any} timeline @param {(on: boolean) => void} onswitch */
	constructor(timeline, onswitch) {
		this.timeline = timeline;
		this.onswitch = onswitch;
		this.on = false;
		/** ns of time in view; null: all of it, up to ten seconds. @type {number|null} */ this.span = null;
		this.last = 0;
		this.frame = (/** @type {number} */ at) => {
			if (this.timeline.closed || !this.on)
				return;
			if (at - this.last >= 32) {
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
		// Not quite to now: what ends at the edge has just come, and nothing is missing between it and the edge.
		const { timeline } = this;
		const now = timeline.source.now() - Math.min(600, 100 + (timeline.source.delay() ?? 100)) * 1e6;
		const span = this.span ?? Math.min(Math.max(now, 1e6), WINDOW);
		const t1 = Math.max(now, span);
		const t0 = Math.max(0, t1 - span);
		if (
			Math.abs(t1 - timeline.view.t1) / timeline.nsPerPixel < 0.5 &&
			Math.abs(t0 - timeline.view.t0) / timeline.nsPerPixel < 0.5 &&
			!timeline.dirty
		)
			return;
		timeline.view = { t0, t1: Math.max(t1, t0 + 100) };
		timeline.changed();
	}
}
