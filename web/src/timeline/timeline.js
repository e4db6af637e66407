// The zoomable timeline: two canvases, one for the picture and one for cursor, hover and selection. It draws from the
// tiles of a source, and only when something has changed. draw.js draws it.
import { levelFor, tileSpan } from "../document.js";
import { el, inkOf, sizeCanvas } from "../dom.js";
import { drawPicture } from "./draw.js";
import { listen } from "./input.js";
import { Joined } from "./joins.js";
import { GUTTER, isGrouped, layoutOf, ROW, seriesOf, TOP } from "./layout.js";

/** @import { Range, Source, Tile, TileKey, Zone } from "../types.js" */
/** @import { ShownSeries } from "./layout.js" */
/** @import { Follow } from "./live.js" */

/**
 * @typedef {Object} TimelineHooks
 * @property {(zone: Zone|null) => void} onselect
 * @property {(range: Range) => void} onrange
 */

const VIEW_LEAST_NS = 100;

export class Timeline {
	/** @param {HTMLElement} host @param {Source} source @param {TimelineHooks} hooks */
	constructor(host, source, hooks) {
		this.host = host;
		this.source = source;
		this.hooks = hooks;
		this.meta = source.meta();
		/** @type {Range} */ this.view = { t0: 0, t1: this.meta.end };
		this.scroll = 0;
		this.width = 0;
		this.height = 0;
		/** Ids of lanes that show one row. @type {Set<number>} */ this.folded = new Set();
		/** Ranks that show one track. @type {Set<number|null>} */ this.foldedRanks = new Set();
		/** The only lane that is shown. @type {number|null} */ this.only = null;
		this.find = "";
		/** Ids of the names that match. @type {Set<number>} */ this.found = new Set();
		/** @type {Zone|null} */ this.selected = null;
		/** @type {Zone|null} */ this.hovered = null;
		/** @type {{x: number, y: number}|null} */ this.mouse = null;
		/** @type {Range|null} */ this.range = null;
		/** @type {Follow|null} */ this.follow = null;
		/** @type {ShownSeries[]} */ this.series = [];
		/** Widths of names in px. @type {Map<number, number>} */ this.widths = new Map();
		this.joined = new Joined(this);
		/** Lanes that were folded or left open at first. @type {Set<number>} */ this.settled = new Set();
		this.dirty = true;
		this.frame = 0;
		this.closed = false;
		this.picture = el("canvas", { role: "img", "aria-label": "Timeline of zones by thread", tabindex: "0" });
		this.over = el("canvas", { class: "over", "aria-hidden": "true" });
		this.tip = el("div", { class: "tip", hidden: true });
		host.append(this.picture, this.over, this.tip);
		this.ink = inkOf(this.picture);
		this.overInk = inkOf(this.over);
		this.renew();
		this.observer = new ResizeObserver(() => this.resize());
		this.observer.observe(host);
		listen(this);
		this.resize();
	}

	hasQueues() {
		return this.meta.lanes.some((lane) => lane.kind === "queue");
	}

	/** In a job, only the main thread of a rank, its device and its collectives are open at first. */
	settle() {
		const { lanes } = this.meta;
		if (!isGrouped(lanes))
			return;
		/** @type {Map<number|null, number>} */
		const mains = new Map();
		for (const lane of lanes) {
			const rank = lane.rank ?? null;
			if (lane.kind === "thread" && !mains.has(rank))
				mains.set(rank, lane.id);
		}
		for (const lane of lanes) {
			if (!this.settled.has(lane.id) && lane.kind === "thread" && mains.get(lane.rank ?? null) !== lane.id)
				this.folded.add(lane.id);
			this.settled.add(lane.id);
		}
	}

	/** Reads the series from the newest document. */
	renew() {
		this.series = seriesOf(this.source.data());
		this.changed();
	}

	close() {
		this.observer.disconnect();
		this.closed = true;
	}

	resize() {
		const box = this.host.getBoundingClientRect();
		this.width = Math.max(GUTTER + 50, box.width);
		this.height = Math.max(100, box.height);
		sizeCanvas(this.picture, this.width, this.height);
		sizeCanvas(this.over, this.width, this.height);
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
		const { end } = this.meta;
		const span = Math.min(Math.max(t1 - t0, VIEW_LEAST_NS), end * 1.02);
		const least = -0.01 * end;
		const most = Math.max(end * 1.01 - span, least);
		const from = Math.min(Math.max((t0 + t1) / 2 - span / 2, least), most);
		this.view = { t0: from, t1: from + span };
		this.follow?.set(false);
		this.changed();
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
	 * @param {boolean} [near] zooms to it even if it is in view
	 */
	reveal(zone, near = false) {
		const outside = zone.start < this.view.t0 || zone.start + zone.duration > this.view.t1;
		if (near || outside || zone.duration / this.nsPerPixel < 2) {
			const span = Math.max(zone.duration * (near ? 1.4 : 3), 2000);
			const middle = zone.start + zone.duration / 2;
			this.show(middle - span / 2, middle + span / 2);
		}
		const track = layoutOf(this).tracks.find((one) => one.lane.id === zone.lane);
		if (track) {
			const y = track.y + zone.row * ROW;
			const room = this.height - TOP;
			if (y < this.scroll || y + 2 * ROW > this.scroll + room)
				this.scrollTo(y - room / 3);
		}
	}

	/** @param {number} rank */
	scrollToRank(rank) {
		this.settle();
		const group = layoutOf(this).groups.find((one) => one.rank === rank);
		if (group)
			this.scrollTo(group.y);
	}

	/** @param {number} y */
	scrollTo(y) {
		const most = layoutOf(this).height - (this.height - TOP) + 20;
		this.scroll = Math.max(0, Math.min(y, most));
		this.changed();
	}

	/** @param {Zone|null} zone */
	select(zone) {
		this.selected = zone;
		this.joined.select(zone);
		this.hooks.onselect(zone);
		this.changed();
	}

	/**
	 * Finds names; zones of other names are dimmed.
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

	/** @param {number} name */
	isDimmed(name) {
		return Boolean(this.find) && !this.found.has(name);
	}

	// ---- tiles

	/**
	 * The tiles to draw, each with the time that it covers. A tile that is missing is replaced by a coarser one or by
	 * finer ones.
	 */
	tiles() {
		const level = levelFor(this.nsPerPixel);
		const span = tileSpan(level);
		const first = Math.max(0, Math.floor(this.view.t0 / span));
		const last = Math.max(first, Math.floor(this.view.t1 / span));
		/** @type {{tile: Tile, t0: number, t1: number}[]} */
		const tiles = [];
		for (let i = first; i <= last; i++) {
			const found = this.substitutes(level, i);
			if (found.length === 1)
				tiles.push({ tile: found[0], t0: i * span, t1: (i + 1) * span });
			else
				tiles.push(...found.map((tile) => ({ tile, t0: tile.t0, t1: tile.t0 + tileSpan(tile.level) })));
		}
		this.source.want(this.wantedTiles(level, first, last));
		return tiles;
	}

	/**
	 * The tiles in view, those of the minimap, and neighbours.
	 * @param {number} level
	 * @param {number} first
	 * @param {number} last
	 */
	wantedTiles(level, first, last) {
		/** @type {TileKey[]} */
		const wanted = [];
		for (let i = first; i <= last; i++)
			wanted.push([level, i]);
		const whole = levelFor(this.meta.end / this.plot);
		for (let i = 0; i * tileSpan(whole) < this.meta.end; i++)
			wanted.push([whole, i]);
		wanted.push([level, last + 1], [level + 2, Math.floor(first / 4)]);
		if (first)
			wanted.push([level, first - 1]);
		return wanted;
	}

	/**
	 * The tile, or the nearest finer or coarser ones that are here.
	 * @param {number} level
	 * @param {number} index
	 * @returns {Tile[]}
	 */
	substitutes(level, index) {
		const exact = this.source.get(level, index);
		if (exact)
			return [exact];
		for (let down = 1; down <= Math.min(2, level); down++) {
			const parts = Array.from({ length: 2 ** down }, (_, k) =>
				this.source.get(level - down, index * 2 ** down + k),
			).filter((tile) => tile !== null);
			if (parts.length === 2 ** down)
				return parts;
		}
		for (let up = 1; up < 48; up++) {
			const tile = this.source.get(level + up, Math.floor(index / 2 ** up));
			if (tile)
				return [tile];
		}
		return [];
	}
}
