// The zoomable timeline: two canvases, one for the picture and one for cursor, hover and selection. It draws from
// tiles that a source gives and draws nothing when nothing has changed. What it looks like is in timeline-draw.js.
import { levelFor, tileSpan } from "./source.js";
import { drawPicture } from "./timeline-draw.js";
import { listen } from "./timeline-input.js";
import { GUTTER, placesOf, ROW, seriesOf, TOP } from "./timeline-layout.js";
import { el } from "./util.js";

/** @typedef {import("./source.js").Zone} Zone */

export class Timeline {
	/**
	 * @param {HTMLElement} host
	 * @param {import("./source.js").Source} source
	 * @param {{onselect: (zone: Zone|null) => void, onview: () => void, onrange: (range: {t0: number, t1: number}) =>
	 * void}} hooks
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
		listen(this);
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
		const scale = window.devicePixelRatio || 1;
		const box = this.host.getBoundingClientRect();
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
				drawPicture(this);
		});
	}

	// ---- geometry

	get plot() {
		return this.width - GUTTER;
	}
	get nsPerPixel() {
		return (this.view.t1 - this.view.t0) / this.plot;
	}
	/** @param {number} t */
	xOf(t) {
		return GUTTER + (t - this.view.t0) / this.nsPerPixel;
	}
	/** @param {number} x */
	timeAt(x) {
		return this.view.t0 + (x - GUTTER) * this.nsPerPixel;
	}

	/** @param {number} t0 @param {number} t1 */
	show(t0, t1) {
		const least = 100;
		const most = this.meta.end * 1.02;
		let span = Math.min(Math.max(t1 - t0, least), most);
		let from = (t0 + t1) / 2 - span / 2;
		from = Math.min(
			Math.max(from, -0.01 * this.meta.end),
			Math.max(this.meta.end * 1.01 - span, -0.01 * this.meta.end),
		);
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

	fit() {
		this.show(0, this.meta.end);
	}

	/**
	 * Shows a zone with some room around it.
	 * @param {Zone} zone
	 * @param {boolean} [near]
	 */
	reveal(zone, near = false) {
		const outside = zone.start < this.view.t0 || zone.start + zone.duration > this.view.t1;
		if (near || outside || zone.duration / this.nsPerPixel < 2) {
			const span = Math.max(zone.duration * (near ? 1.4 : 3), 2000);
			const middle = zone.start + zone.duration / 2;
			this.show(middle - span / 2, middle + span / 2);
		}
		const place = placesOf(this).find((p) => p.lane?.id === zone.lane);
		if (place) {
			const y = place.y + zone.row * ROW;
			const room = this.height - TOP;
			if (y < this.scroll || y + 2 * ROW > this.scroll + room)
				this.scrollTo(y - room / 3);
		}
	}

	/** @param {number} y */
	scrollTo(y) {
		placesOf(this);
		this.scroll = Math.max(0, Math.min(y, (this.content ?? 0) - (this.height - TOP) + 20));
		this.changed();
	}

	/** @param {Zone|null} zone */
	select(zone) {
		this.selected = zone;
		this.hooks.onselect(zone);
		this.changed();
	}

	/**
	 * Finds names; the rest is dimmed.
	 * @param {string} text
	 */
	search(text) {
		this.find = text.toLowerCase();
		this.found = new Set();
		this.meta.names.forEach((one, i) => {
			if (this.find && one.name.toLowerCase().includes(this.find))
				this.found.add(i);
		});
		this.changed();
	}

	// ---- tiles

	/**
	 * Tiles of the view at its level, and what each of them may paint; a missing one is taken from its nearest ancestor
	 * that is here, or from finer ones.
	 */
	tiles() {
		const level = levelFor(this.nsPerPixel);
		const span = tileSpan(level);
		const first = Math.max(0, Math.floor(this.view.t0 / span));
		const last = Math.max(first, Math.floor(this.view.t1 / span));
		/** @type {[number, number][]} */ const wanted = [];
		/** @type {{tile: import("./source.js").Tile, t0: number, t1: number}[]} */ const tiles = [];
		for (let i = first; i <= last; i++) {
			const found = this.substitutes(level, i);
			for (const tile of found)
				tiles.push({
					tile,
					t0: found.length > 1 ? tile.t0 : i * span,
					t1: found.length > 1 ? tile.t0 + tileSpan(tile.level) : (i + 1) * span,
				});
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

	/**
	 * The tile, or what is nearest to it.
	 * @param {number} level
	 * @param {number} index
	 * @returns {import("./source.js").Tile[]}
	 */
	substitutes(level, index) {
		const exact = this.source.get(level, index);
		if (exact)
			return [exact];
		for (let down = 1; down <= 2; down++) {
			const parts = Array.from({ length: 2 ** down }, (_, k) =>
				this.source.get(level - down, index * 2 ** down + k),
			);
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
}
