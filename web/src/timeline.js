// The zoomable timeline: two canvases, one for the picture and one for cursor, hover and selection. It draws from
// tiles that a source gives and draws nothing when nothing has changed.
import { levelFor, tileSpan, unitOf } from "./source.js";
import { drawMarks, drawOpen } from "./timeline-live.js";
import { clear, count, duration, el, fillOf, labelOf, measure, themed } from "./util.js";

/** @typedef {import("./source.js").Zone} Zone */

const GUTTER = 132, ROW = 16, GAP = 9, RULER = 22, MINIMAP = 26, SERIES = 49;
const TOP = RULER + MINIMAP;
const HEIGHTS = [4, 7, 11, 15];
/** A name that has not come yet. */
const UNKNOWN = { name: "", source: "c", file: "", line: 0 };
const FONT = '11px system-ui, "Segoe UI", Roboto, "DejaVu Sans", sans-serif';

/** @param {number} span @param {number} pixels */
function tickStep(span, pixels) {
	const raw = span / Math.max(2, pixels / 135), power = 10 ** Math.floor(Math.log10(raw));
	return [1, 2, 5, 10].map((n) => n * power).find((n) => n >= raw) ?? power * 10;
}

export class Timeline {
	/**
	 * @param {HTMLElement} host @param {import("./source.js").Source} source
	 * @param {{onselect: (zone: Zone|null) => void, onview: () => void, onrange: (range: {t0: number, t1: number}) => void}} hooks
	 */
	constructor(host, source, hooks) {
		this.host = host;
		this.source = source;
		this.hooks = hooks;
		this.meta = source.meta();
		this.view = { t0: 0, t1: this.meta.end };
		this.scroll = 0;
		/** @type {Set<number>} */ this.folded = new Set();
		/** @type {number|null} */ this.only = null;
		this.find = "";
		/** @type {Set<number>} */ this.found = new Set();
		/** @type {Zone|null} */ this.selected = null;
		/** @type {Zone|null} */ this.hovered = null;
		/** @type {{x: number, y: number}|null} */ this.mouse = null;
		/** @type {{t0: number, t1: number}|null} */ this.range = null;
		/** @type {import("./timeline-live.js").Follow|null} */ this.follow = null;
		this.dirty = true;
		/** @type {Map<number, {whole: number, text: string}>} */ this.widths = new Map();
		this.picture = el("canvas", { role: "img", "aria-label": "Timeline of zones by thread", tabindex: "0" });
		this.over = el("canvas", { class: "over", "aria-hidden": "true" });
		this.tip = el("div", { class: "tip", hidden: true });
		host.append(this.picture, this.over, this.tip);
		/** @type {CanvasRenderingContext2D} */ this.ink = this.picture.getContext("2d");
		/** @type {CanvasRenderingContext2D} */ this.overInk = this.over.getContext("2d");
		this.renew();
		this.observer = new ResizeObserver(() => this.resize());
		this.observer.observe(host);
		this.listen();
		this.resize();
	}

	/** The counters under the lanes, out of the newest document. */
	renew() {
		this.series = seriesOf(this.source.data());
		this.changed();
	}

	close() {
		this.observer.disconnect();
		this.closed = true;
	}

	resize() {
		const scale = window.devicePixelRatio || 1, box = this.host.getBoundingClientRect();
		this.width = Math.max(GUTTER + 50, box.width);
		this.height = Math.max(100, box.height);
		for (const canvas of [this.picture, this.over]) {
			canvas.width = Math.round(this.width * scale);
			canvas.height = Math.round(this.height * scale);
			canvas.style.width = `${this.width}px`;
			canvas.style.height = `${this.height}px`;
			canvas.getContext("2d").setTransform(scale, 0, 0, scale, 0, 0);
		}
		this.changed();
	}

	changed() {
		this.dirty = true;
		if (this.frame || this.closed)
			return;
		this.frame = requestAnimationFrame(() => {
			this.frame = 0;
			if (this.dirty && !this.closed)
				this.draw();
		});
	}

	// ---- geometry

	get plot() { return this.width - GUTTER; }
	get nsPerPixel() { return (this.view.t1 - this.view.t0) / this.plot; }
	/** @param {number} t */
	xOf(t) { return GUTTER + (t - this.view.t0) / this.nsPerPixel; }
	/** @param {number} x */
	timeAt(x) { return this.view.t0 + (x - GUTTER) * this.nsPerPixel; }

	/** Lanes and series with their places; y counts from the first lane. */
	layout() {
		/** @type {{lane?: any, series?: any, y: number, height: number, rows: number}[]} */
		const places = [];
		let y = 4;
		for (const lane of this.meta.lanes) {
			if (this.only !== null && lane.id !== this.only)
				continue;
			const rows = this.folded.has(lane.id) ? 1 : Math.max(1, lane.rows);
			const height = Math.max(rows * ROW, 2 * ROW) + GAP;
			places.push({ lane, y, height, rows });
			y += height;
		}
		for (const series of this.only === null ? this.series : []) {
			places.push({ series, y, height: SERIES, rows: 0 });
			y += SERIES;
		}
		this.content = y;
		return places;
	}

	/** @param {number} t0 @param {number} t1 */
	show(t0, t1) {
		const least = 100, most = this.meta.end * 1.02;
		let span = Math.min(Math.max(t1 - t0, least), most);
		let from = (t0 + t1) / 2 - span / 2;
		from = Math.min(Math.max(from, -0.01 * this.meta.end), Math.max(this.meta.end * 1.01 - span, -0.01 * this.meta.end));
		this.view = { t0: from, t1: from + span };
		this.follow?.set(false);
		this.changed();
		this.hooks.onview();
	}

	/** @param {number} factor below 1 zooms in @param {number} [x] */
	zoom(factor, x) {
		if (this.follow?.on) {
			this.follow.span = Math.min(Math.max((this.view.t1 - this.view.t0) * factor, 1000), this.meta.end * 1.02);
			this.follow.move();
			return;
		}
		const at = this.timeAt(x ?? this.mouse?.x ?? GUTTER + this.plot / 2);
		this.show(at - (at - this.view.t0) * factor, at + (this.view.t1 - at) * factor);
	}

	/** @param {number} pixels */
	pan(pixels) {
		const by = pixels * this.nsPerPixel;
		this.show(this.view.t0 + by, this.view.t1 + by);
	}

	fit() { this.show(0, this.meta.end); }

	/** Shows a zone with some room around it. @param {Zone} zone @param {boolean} [near] */
	reveal(zone, near = false) {
		const outside = zone.start < this.view.t0 || zone.start + zone.duration > this.view.t1;
		if (near || outside || zone.duration / this.nsPerPixel < 2) {
			const span = Math.max(zone.duration * (near ? 1.4 : 3), 2000);
			const middle = zone.start + zone.duration / 2;
			this.show(middle - span / 2, middle + span / 2);
		}
		const place = this.layout().find((p) => p.lane?.id === zone.lane);
		if (place) {
			const y = place.y + zone.row * ROW, room = this.height - TOP;
			if (y < this.scroll || y + 2 * ROW > this.scroll + room)
				this.scrollTo(y - room / 3);
		}
	}

	/** @param {number} y */
	scrollTo(y) {
		this.layout();
		this.scroll = Math.max(0, Math.min(y, (this.content ?? 0) - (this.height - TOP) + 20));
		this.changed();
	}

	/** @param {Zone|null} zone */
	select(zone) {
		this.selected = zone;
		this.hooks.onselect(zone);
		this.changed();
	}

	/** Finds names; the rest is dimmed. @param {string} text */
	search(text) {
		this.find = text.toLowerCase();
		this.found = new Set();
		this.meta.names.forEach((one, i) => {
			if (this.find && one.name.toLowerCase().includes(this.find))
				this.found.add(i);
		});
		this.changed();
	}

	// ---- drawing

	/** Tiles of the view at its level, and what each of them may paint; a missing one is taken from its nearest ancestor that is here, or from finer ones. */
	tiles() {
		const level = levelFor(this.nsPerPixel), span = tileSpan(level);
		const first = Math.max(0, Math.floor(this.view.t0 / span)), last = Math.max(first, Math.floor(this.view.t1 / span));
		/** @type {[number, number][]} */ const wanted = [];
		/** @type {{tile: import("./source.js").Tile, t0: number, t1: number}[]} */ const tiles = [];
		for (let i = first; i <= last; i++) {
			const found = this.substitutes(level, i);
			for (const tile of found)
				tiles.push({ tile, t0: found.length > 1 ? tile.t0 : i * span, t1: found.length > 1 ? tile.t0 + tileSpan(tile.level) : (i + 1) * span });
			wanted.push([level, i]);
		}
		const whole = levelFor(this.meta.end / this.plot);
		for (let i = 0; i * tileSpan(whole) < this.meta.end; i++)
			wanted.push([whole, i]);
		wanted.push([level, last + 1], [level + 2, Math.floor(first / 4)]);
		if (first)
			wanted.push([level, first - 1]);
		this.source.want(wanted);
		return tiles;
	}

	/** The tile, or what is nearest to it. @param {number} level @param {number} index @returns {import("./source.js").Tile[]} */
	substitutes(level, index) {
		const exact = this.source.get(level, index);
		if (exact)
			return [exact];
		for (let down = 1; down <= 2; down++) {
			const parts = Array.from({ length: 2 ** down }, (_, k) => this.source.get(level - down, index * 2 ** down + k));
			if (level >= down && parts.every(Boolean))
				return /** @type {any} */ (parts);
		}
		for (let up = 1; up < 48; up++) {
			const tile = this.source.get(level + up, Math.floor(index / 2 ** up));
			if (tile)
				return [tile];
		}
		return [];
	}

	draw() {
		const ink = this.ink;
		this.dirty = false;
		ink.font = FONT;
		ink.textBaseline = "middle";
		ink.fillStyle = themed("bg");
		ink.fillRect(0, 0, this.width, this.height);
		const places = this.layout();
		this.drawLanes(places);
		ink.save();
		ink.beginPath();
		ink.rect(GUTTER, TOP, this.plot, this.height - TOP);
		ink.clip();
		this.drawZones(places);
		drawOpen(this, places, { gutter: GUTTER, top: TOP, row: ROW });
		drawMarks(this, { gutter: GUTTER, top: TOP });
		for (const place of places)
			if (place.series)
				this.drawSeries(place);
		ink.restore();
		this.drawGutter(places);
		this.drawRuler();
		this.drawMinimap();
		this.drawOver();
	}

	/** @param {ReturnType<Timeline["layout"]>} places */
	drawLanes(places) {
		this.ink.fillStyle = themed("line");
		for (const place of places)
			this.ink.fillRect(GUTTER, Math.round(TOP + place.y + place.height - this.scroll - GAP / 2), this.plot, 1);
	}

	/** Gathers rectangles by colour, and labels, then paints each colour once. @param {ReturnType<Timeline["layout"]>} places */
	drawZones(places) {
		/** @type {Map<string, number[]>} */ const colours = new Map();
		/** @type {{x: number, y: number, w: number, name: number, right: boolean, key: number}[]} */ const labels = [];
		/** @type {Map<number, any>} */ const open = new Map();
		const byLane = new Map(places.filter((p) => p.lane).map((p) => [p.lane.id, p]));
		for (const { tile, t0, t1 } of this.tiles()) {
			const unit = unitOf(tile.level), from = Math.max(GUTTER - 2, Math.round(this.xOf(t0))), to = Math.min(this.width + 2, Math.round(this.xOf(t1)));
			for (const track of tile.tracks) {
				const place = byLane.get(track.lane);
				if (!place || track.row >= place.rows)
					continue;
				const y = Math.round(TOP + place.y + track.row * ROW - this.scroll);
				if (y < TOP - ROW || y > this.height)
					continue;
				this.gather(tile.t0, unit, track, y, { from, to }, colours, labels, open);
			}
		}
		for (const [colour, rects] of colours) {
			this.ink.fillStyle = colour;
			for (let i = 0; i < rects.length; i += 4)
				this.ink.fillRect(rects[i], rects[i + 1], rects[i + 2], rects[i + 3]);
		}
		for (const label of labels)
			this.drawLabel(label);
	}

	/** @param {number} t0 @param {number} unit @param {import("./source.js").Track} track @param {number} y @param {{from: number, to: number}} clip @param {Map<string, number[]>} colours @param {any[]} labels @param {Map<number, any>} open */
	gather(t0, unit, track, y, clip, colours, labels, open) {
		const scale = unit / this.nsPerPixel, shift = GUTTER + (t0 - this.view.t0) / this.nsPerPixel;
		const names = this.meta.names, key = track.lane * 256 + track.row;
		/** @type {number[]|null} */ let last = null;
		let lastHeight = 0, lastEnd = -1;
		for (let i = 0; i < track.count; i++) {
			let x = Math.round(shift + track.x[i] * scale), end = Math.round(shift + (track.x[i] + track.w[i]) * scale);
			if (end < clip.from || x >= clip.to)
				continue;
			x = Math.max(x, clip.from);
			end = Math.min(Math.max(end, x + 1), clip.to);
			const id = track.name[i], exact = track.n[i] === 1, cov = track.cov[i];
			const height = exact ? 15 : HEIGHTS[Math.min(3, cov >> 6)];
			if (end <= lastEnd && height <= lastHeight)
				continue; // adds no pixel
			const dim = this.find && !this.found.has(id);
			const one = names[id] ?? UNKNOWN, colour = dim ? themed("line") : fillOf(one.name, one.source);
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
			if (exact && (cov & 1) && before?.right && before.name === id) {
				before.w = end - before.x;
				before.right = Boolean(cov & 2);
			} else if (exact && (end - x >= 26 || cov & 2) && !dim) {
				const label = { x, y, w: end - x, name: id, right: Boolean(cov & 2), key };
				labels.push(label);
				open.set(key, label);
			}
		}
	}

	/** @param {{x: number, y: number, w: number, name: number}} label */
	drawLabel(label) {
		if (label.w < 26)
			return;
		const one = this.meta.names[label.name] ?? UNKNOWN, text = this.fitted(label.name, label.w - 8);
		if (!text)
			return;
		this.ink.fillStyle = labelOf(one.source);
		this.ink.fillText(text, Math.max(label.x, GUTTER) + 4, label.y + 8);
	}

	/** The name, or its last part, or a cut one; measured once per name. @param {number} id @param {number} room */
	fitted(id, room) {
		let known = this.widths.get(id);
		const name = this.meta.names[id]?.name ?? "";
		if (!known && name) {
			const tail = name.split(/::|\./).pop() || name;
			known = { whole: this.ink.measureText(name).width, text: tail };
			this.widths.set(id, known);
		}
		if (!known || known.whole <= room)
			return name;
		const each = known.whole / Math.max(1, name.length), fits = Math.floor(room / each);
		if (known.text.length <= fits)
			return known.text;
		return fits >= 5 ? `${known.text.slice(0, fits - 1)}…` : "";
	}

	/** @param {{series?: any, y: number}} place */
	drawSeries(place) {
		const { ts, low, high, min, max } = place.series, ink = this.ink;
		const base = TOP + place.y - this.scroll + 40, top = base - 34;
		if (base < TOP || top > this.height || !ts.length)
			return;
		const span = max - Math.min(0, min) || 1, yOf = (/** @type {number} */ v) => base - (34 * (v - Math.min(0, min))) / span;
		ink.beginPath();
		ink.moveTo(this.xOf(ts[0]), base);
		for (let i = 0; i < ts.length; i++)
			ink.lineTo(this.xOf(ts[i]), yOf(high[i]));
		ink.lineTo(this.xOf(ts[ts.length - 1]), base);
		ink.globalAlpha = 0.18;
		ink.fillStyle = themed("accent");
		ink.fill();
		ink.globalAlpha = 1;
		ink.beginPath();
		for (let i = 0; i < ts.length; i++) {
			ink.lineTo(this.xOf(ts[i]), yOf(high[i]));
			if (low[i] !== high[i])
				ink.lineTo(this.xOf(ts[i]), yOf(low[i]));
		}
		ink.strokeStyle = themed("accent");
		ink.lineWidth = 1.25;
		ink.stroke();
	}

	/** @param {ReturnType<Timeline["layout"]>} places */
	drawGutter(places) {
		const ink = this.ink;
		ink.fillStyle = themed("panel");
		ink.fillRect(0, TOP, GUTTER, this.height - TOP);
		ink.save();
		ink.beginPath();
		ink.rect(0, TOP, GUTTER - 4, this.height - TOP);
		ink.clip();
		for (const place of places) {
			const y = TOP + place.y - this.scroll;
			if (y > this.height || y + place.height < TOP)
				continue;
			const name = place.lane ? place.lane.name || `tid ${place.lane.tid}` : place.series.name;
			const mark = place.lane && this.folded.has(place.lane.id) ? "▸" : "▾";
			ink.font = FONT.replace("11px", "12px");
			ink.fillStyle = themed("text");
			ink.fillText(`${place.lane ? mark : " "} ${name}`, 8, y + 8);
			ink.font = FONT;
			ink.fillStyle = themed("muted");
			ink.fillText(place.lane ? place.lane.note : measure(place.series.last, place.series.unit), 22, y + 23);
		}
		ink.restore();
		ink.fillStyle = themed("line");
		ink.fillRect(GUTTER - 1, 0, 1, this.height);
	}

	drawRuler() {
		const ink = this.ink, step = tickStep(this.view.t1 - this.view.t0, this.plot);
		const relative = step < 1e6 && this.view.t0 > 1e9;
		const origin = relative ? Math.floor(this.view.t0 / (step * 10)) * step * 10 : 0;
		ink.fillStyle = themed("panel");
		ink.fillRect(0, MINIMAP, this.width, RULER);
		ink.fillStyle = themed("line");
		ink.fillRect(0, TOP - 1, this.width, 1);
		ink.font = FONT;
		ink.fillStyle = themed("muted");
		ink.fillText(relative ? `${(origin / 1e9).toFixed(6)} s` : duration(Math.max(0, this.view.t0)), 8, MINIMAP + 11);
		for (let t = Math.ceil(this.view.t0 / step) * step; t < this.view.t1; t += step) {
			const x = Math.round(this.xOf(t));
			ink.fillStyle = themed("line");
			ink.fillRect(x, MINIMAP, 1, RULER);
			ink.fillStyle = themed("muted");
			ink.fillText(relative ? `+${tickLabel(t - origin, step)}` : tickLabel(t, step), x + 4, MINIMAP + 11);
		}
	}

	drawMinimap() {
		const ink = this.ink, level = levelFor(this.meta.end / this.plot), tile = tileSpan(level);
		ink.fillStyle = themed("panel");
		ink.fillRect(0, 0, this.width, MINIMAP);
		ink.fillStyle = themed("muted");
		ink.font = FONT;
		ink.fillText(`view ${duration(this.view.t1 - this.view.t0)}`, 8, 13);
		ink.globalAlpha = 0.55;
		for (let i = 0; i * tile < this.meta.end; i++) {
			const one = this.source.get(level, i);
			for (const track of one?.tracks ?? []) {
				if (track.row > 1)
					continue;
				const unit = unitOf(level);
				for (let k = 0; one && k < track.count; k++) {
					const x = GUTTER + ((one.t0 + track.x[k] * unit) / this.meta.end) * this.plot;
					ink.fillRect(x, 7, Math.max(1, (track.w[k] * unit / this.meta.end) * this.plot - 0.5), 15);
				}
				break;
			}
		}
		ink.globalAlpha = 1;
		const left = GUTTER + (Math.max(0, this.view.t0) / this.meta.end) * this.plot;
		const right = GUTTER + (Math.min(this.meta.end, this.view.t1) / this.meta.end) * this.plot;
		ink.fillStyle = themed("accent");
		ink.globalAlpha = 0.16;
		ink.fillRect(left, 0, Math.max(2, right - left), MINIMAP);
		ink.globalAlpha = 1;
		ink.fillRect(left, 0, 2, MINIMAP);
		ink.fillRect(Math.max(left, right - 2), 0, 2, MINIMAP);
		ink.fillStyle = themed("line");
		ink.fillRect(0, MINIMAP - 1, this.width, 1);
	}

	/** Cursor, hover, selection, range. */
	drawOver() {
		const ink = this.overInk;
		ink.clearRect(0, 0, this.width, this.height);
		if (this.range) {
			const a = this.xOf(this.range.t0), b = this.xOf(this.range.t1);
			ink.fillStyle = themed("accent");
			ink.globalAlpha = 0.13;
			ink.fillRect(Math.max(a, GUTTER), MINIMAP, Math.min(b, this.width) - Math.max(a, GUTTER), this.height);
			ink.globalAlpha = 1;
		}
		for (const [zone, colour, width] of /** @type {[Zone|null, string, number][]} */ ([
			[this.hovered, themed("muted"), 1], [this.selected, themed("text"), 2]]))
			if (zone)
				this.outline(zone, colour, width);
		if (this.mouse && this.mouse.x > GUTTER) {
			ink.fillStyle = themed("accent");
			ink.fillRect(this.mouse.x, 0, 1, this.height);
		}
	}

	/** @param {Zone} zone @param {string} colour @param {number} width */
	outline(zone, colour, width) {
		const place = this.layout().find((p) => p.lane?.id === zone.lane);
		if (!place || zone.row >= place.rows)
			return;
		const x = Math.max(GUTTER, this.xOf(zone.start)), end = Math.min(this.width + 5, this.xOf(zone.start + zone.duration));
		const y = TOP + place.y + zone.row * ROW - this.scroll;
		if (y < TOP || end < GUTTER || x > this.width)
			return;
		this.overInk.strokeStyle = colour;
		this.overInk.lineWidth = width;
		this.overInk.strokeRect(Math.round(x) - 0.5, y - 0.5, Math.max(2, end - x), ROW);
	}

	// ---- the mouse

	/** @param {number} x @param {number} y @param {boolean} [exact] of a merged piece, its longest zone */
	async zoneAt(x, y, exact = true) {
		if (x < GUTTER || y < TOP)
			return null;
		const at = y - TOP + this.scroll;
		const place = this.layout().find((p) => p.lane && at >= p.y && at < p.y + p.rows * ROW);
		if (!place)
			return null;
		const row = Math.floor((at - place.y) / ROW), t = this.timeAt(x), slack = 2 * this.nsPerPixel;
		return this.source.glance && !exact ? this.source.glance(place.lane.id, row, t, slack) : this.source.zone(place.lane.id, row, t, slack);
	}

	listen() {
		/** @type {{x: number, y: number, t0: number, t1: number, scroll: number, kind: string, moved: boolean}|null} */
		let drag = null;
		const canvas = this.picture, place = (/** @type {MouseEvent} */ e) => {
			const box = canvas.getBoundingClientRect();
			return { x: e.clientX - box.left, y: e.clientY - box.top };
		};
		canvas.addEventListener("wheel", (/** @type {WheelEvent} */ e) => {
			e.preventDefault();
			const amount = e.deltaY || e.deltaX, { x } = place(e);
			if (e.altKey || x < GUTTER)
				this.scrollTo(this.scroll + amount);
			else if (e.shiftKey || Math.abs(e.deltaX) > Math.abs(e.deltaY))
				this.pan(amount);
			else
				this.zoom(Math.exp(Math.max(-1, Math.min(1, amount / 300))), x);
		}, { passive: false });
		canvas.addEventListener("pointerdown", (/** @type {PointerEvent} */ e) => {
			const at = place(e);
			canvas.setPointerCapture(e.pointerId);
			const kind = at.x < GUTTER ? "gutter" : at.y < MINIMAP ? "map" : e.shiftKey ? "range" : "pan";
			drag = { ...at, ...this.view, scroll: this.scroll, kind, moved: false };
			if (kind === "map")
				this.centre(at.x);
		});
		canvas.addEventListener("pointermove", (/** @type {PointerEvent} */ e) => {
			this.mouse = place(e);
			if (drag) {
				drag.moved ||= Math.abs(this.mouse.x - drag.x) + Math.abs(this.mouse.y - drag.y) > 3;
				this.dragged(drag);
			} else {
				this.hover();
			}
			this.drawOver();
		});
		canvas.addEventListener("pointerup", async (/** @type {PointerEvent} */ e) => {
			const was = drag, at = place(e);
			drag = null;
			if (was?.kind === "range" && this.range && was.moved)
				this.hooks.onrange(this.range);
			if (was && !was.moved && was.kind === "gutter")
				this.fold(at.y);
			if (was && !was.moved && was.kind === "pan")
				this.select(await this.zoneAt(at.x, at.y));
		});
		canvas.addEventListener("pointerleave", () => {
			this.mouse = null;
			this.hovered = null;
			this.tip.hidden = true;
			this.drawOver();
		});
		canvas.addEventListener("dblclick", async (/** @type {MouseEvent} */ e) => {
			const at = place(e), zone = await this.zoneAt(at.x, at.y);
			if (zone)
				this.reveal(zone, true);
		});
	}

	/** @param {number} x in the minimap */
	centre(x) {
		const half = (this.view.t1 - this.view.t0) / 2, at = ((x - GUTTER) / this.plot) * this.meta.end;
		this.show(at - half, at + half);
	}

	/** @param {{x: number, y: number, t0: number, t1: number, scroll: number, kind: string}} drag */
	dragged(drag) {
		const mouse = /** @type {{x: number, y: number}} */ (this.mouse), scale = (drag.t1 - drag.t0) / this.plot;
		if (drag.kind === "map")
			this.centre(mouse.x);
		if (drag.kind === "pan") {
			this.show(drag.t0 - (mouse.x - drag.x) * scale, drag.t1 - (mouse.x - drag.x) * scale);
			this.scrollTo(drag.scroll - (mouse.y - drag.y));
		}
		if (drag.kind === "range") {
			const a = this.timeAt(drag.x), b = this.timeAt(mouse.x);
			this.range = { t0: Math.max(0, Math.min(a, b)), t1: Math.max(a, b) };
		}
	}

	/** @param {number} y */
	fold(y) {
		const place = this.layout().find((p) => p.lane && y - TOP + this.scroll >= p.y && y - TOP + this.scroll < p.y + p.height);
		if (!place)
			return;
		if (!this.folded.delete(place.lane.id))
			this.folded.add(place.lane.id);
		this.changed();
	}

	async hover() {
		const mouse = this.mouse;
		if (!mouse)
			return;
		const zone = await this.zoneAt(mouse.x, mouse.y, false);
		if (this.mouse !== mouse)
			return;
		this.hovered = zone;
		this.tip.hidden = !zone;
		this.drawOver();
		if (!zone)
			return;
		const one = this.meta.names[zone.name] ?? UNKNOWN;
		clear(this.tip);
		this.tip.append(el("span", { text: `${one.name} (${one.source}) ${duration(zone.duration)}` }),
			el("div", { class: "more", text: zone.n > 1 ? `${count(zone.n)} zones, the longest has this name` : zone.open ? "open: it has not ended" :
				`at ${duration(zone.start)}${one.file ? ` · ${one.file}${one.line ? `:${one.line}` : ""}` : ""}` }));
		this.tip.style.left = `${Math.min(mouse.x + 12, this.width - this.tip.offsetWidth - 8)}px`;
		this.tip.style.top = `${mouse.y + 18 + this.tip.offsetHeight > this.height ? mouse.y - this.tip.offsetHeight - 8 : mouse.y + 18}px`;
	}
}

/** @param {number} t @param {number} step */
function tickLabel(t, step) {
	const [size, unit] = step >= 1e9 ? [1e9, "s"] : step >= 1e6 && t >= 1e9 ? [1e9, "s"] : step >= 1e6 ? [1e6, "ms"] :
		step >= 1e3 ? [1e3, "µs"] : [1, "ns"];
	const places = Math.max(0, Math.ceil(-Math.log10(step / Number(size))));
	return `${(t / Number(size)).toLocaleString("en-US", { minimumFractionDigits: places, maximumFractionDigits: places })} ${unit}`;
}

/** Resident memory and the program's own counters, under the lanes. @param {Record<string, any>} data */
function seriesOf(data) {
	const wanted = (data.series ?? []).filter((/** @type {any} */ s) => s.timeline).slice(0, 12);
	return wanted.map((/** @type {any} */ s) => ({ ...s, min: Math.min(...s.low), max: Math.max(...s.high),
		last: s.high[s.high.length - 1] }));
}
