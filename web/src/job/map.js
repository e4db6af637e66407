// The map of step × rank on a canvas. It draws the cells that are here, stretched to the view, and asks for the cells
// of the view when it rests; so panning and zooming never wait.
import { el, inkOf, placeTip, sizeCanvas } from "../dom.js";
import { count, duration } from "../format.js";
import { FONT, GUTTER } from "../timeline/layout.js";
import { themed } from "../theme.js";

/** @import { MapCells, MapOf, MapView, Source } from "../types.js" */

const RULER = 22;
const NONE = -128;
const LEVELS = 100; // a cell's value for the median duration above the median
const ROW_MOST = 26;
const STEPS_LEAST = 4;
const REST_MS = 70;

/** @param {string} colour "#rrggbb" @returns {[number, number, number]} */
const rgbOf = (colour) => [1, 3, 5].map((i) => parseInt(colour.slice(i, i + 2), 16)).reduce(
	(all, v) => [...all, v],
	/** @type {any} */ ([]),
);

/**
 * The colours of values from −127 to 127, as one number each, for a canvas in little endian.
 * @returns {Uint32Array} index: value + 128
 */
export function mapColours() {
	const [less, same, more, none] = ["less", "same", "more", "bg"].map((name) => rgbOf(themed(name)));
	const table = new Uint32Array(256);
	for (let value = -128; value < 128; value++) {
		const end = value < 0 ? less : more;
		// Small differences are noise in every job: the root would paint it, a straight line hardly shows 10 %.
		const share = Math.min(1, Math.abs(value) / LEVELS) ** 0.8;
		const [r, g, b] = value === NONE ? none : same.map((v, i) => Math.round(v + (end[i] - v) * share));
		table[value + 128] = (255 << 24) | (b << 16) | (g << 8) | r;
	}
	return table;
}

/** The cells as a picture of one pixel each. @param {MapCells} cells */
function pictureOf(cells) {
	const canvas = el("canvas");
	canvas.width = Math.max(1, cells.columns);
	canvas.height = Math.max(1, cells.rows);
	if (!cells.columns || !cells.rows)
		return canvas;
	const ink = inkOf(canvas);
	const image = ink.createImageData(cells.columns, cells.rows);
	const pixels = new Uint32Array(image.data.buffer);
	const colours = mapColours();
	for (let i = 0; i < pixels.length; i++)
		pixels[i] = colours[cells.cells[i] + 128];
	ink.putImageData(image, 0, 0);
	return canvas;
}

/**
 * @typedef {Object} MapHooks
 * @property {(cell: {rank: number, step: number, start_ns: number, duration_ns: number}) => void} onopen
 * @property {(cells: MapCells) => void} oncells
 *
 * @typedef {{cells: MapCells, picture: HTMLCanvasElement}} Layer
 */

export class RankMap {
	/** @param {HTMLElement} host @param {Source} source @param {MapOf} of @param {MapHooks} hooks */
	constructor(host, source, of, hooks) {
		this.host = host;
		this.source = source;
		this.of = of;
		this.hooks = hooks;
		/** Steps and places of ranks in view. @type {MapView} */ this.view = { s0: 0, s1: 1, r0: 0, r1: 1 };
		/** The whole map, and the part that was asked for last. @type {Layer|null} */ this.whole = null;
		/** @type {Layer|null} */ this.part = null;
		/** @type {{x: number, y: number}|null} */ this.mouse = null;
		/** @type {{x: number, y: number, view: MapView, moved: boolean}|null} */ this.drag = null;
		this.width = 0;
		this.height = 0;
		this.frame = 0;
		this.timer = 0;
		this.tipTimer = 0;
		this.asked = 0;
		this.closed = false;
		this.canvas = el("canvas", {
			role: "img",
			tabindex: "0",
			"aria-label": "Map of steps and ranks; arrow keys move, + and - zoom, Enter opens the timeline",
		});
		this.tip = el("div", { class: "tip", hidden: true });
		host.append(this.canvas, this.tip);
		this.ink = inkOf(this.canvas);
		this.listen();
		this.observer = new ResizeObserver(() => this.resize());
		this.observer.observe(host);
		this.resize();
	}

	close() {
		this.closed = true;
		this.observer.disconnect();
		clearTimeout(this.timer);
		clearTimeout(this.tipTimer);
	}

	// ---- geometry

	get plot() {
		return Math.max(1, this.width - GUTTER);
	}

	/** Height of all ranks in view. */
	get tall() {
		return Math.min(Math.max(1, this.height - RULER), (this.view.r1 - this.view.r0) * ROW_MOST);
	}

	/** @param {number} step */
	xOf(step) {
		return GUTTER + ((step - this.view.s0) / (this.view.s1 - this.view.s0)) * this.plot;
	}

	/** @param {number} place of a rank */
	yOf(place) {
		return RULER + ((place - this.view.r0) / (this.view.r1 - this.view.r0)) * this.tall;
	}

	/** @param {{x: number, y: number}} at @returns {{step: number, place: number}|null} */
	cellAt({ x, y }) {
		const { s0, s1, r0, r1 } = this.view;
		const step = Math.floor(s0 + ((x - GUTTER) / this.plot) * (s1 - s0));
		const place = Math.floor(r0 + ((y - RULER) / this.tall) * (r1 - r0));
		const all = this.whole?.cells;
		if (!all || x < GUTTER || y < RULER || step < all.first || step >= all.end)
			return null;
		return place >= 0 && place < all.ranks.length ? { step, place } : null;
	}

	// ---- data

	/** Reads the whole map again. @param {boolean} [fit] */
	async load(fit = true) {
		const asked = ++this.asked;
		const size = { columns: Math.ceil(this.plot), rows: Math.ceil(this.height) };
		const cells = await this.source.map({ of: this.of, ...size });
		if (this.closed || asked !== this.asked)
			return;
		this.whole = { cells, picture: pictureOf(cells) };
		this.part = null;
		if (fit)
			this.view = {
				s0: cells.first,
				s1: Math.max(cells.end, cells.first + 1),
				r0: 0,
				r1: Math.max(1, cells.ranks.length),
			};
		this.hooks.oncells(cells);
		this.changed();
	}

	/** Asks for the cells of the view, once it rests. */
	askSoon() {
		clearTimeout(this.timer);
		this.timer = window.setTimeout(() => this.ask(), REST_MS);
	}

	async ask() {
		const all = this.whole?.cells;
		if (!all || this.closed)
			return;
		const from = Math.max(all.first, Math.floor(this.view.s0));
		const to = Math.min(all.end, Math.ceil(this.view.s1));
		const first_rank = Math.max(0, Math.floor(this.view.r0));
		const end_rank = Math.min(all.ranks.length, Math.ceil(this.view.r1));
		const exact = all.columns >= all.end - all.first && all.rows >= all.ranks.length;
		const same = from === all.first && to === all.end && !first_rank && end_rank === all.ranks.length;
		if (exact || same) {
			this.part = null;
			this.changed();
			return;
		}
		const asked = ++this.asked;
		const columns = Math.ceil(this.plot);
		const rows = Math.ceil(this.height);
		const cells = await this.source.map({ of: this.of, columns, rows, from, to, first_rank, end_rank });
		if (this.closed || asked !== this.asked)
			return;
		this.part = { cells, picture: pictureOf(cells) };
		this.changed();
	}

	// ---- drawing

	resize() {
		const box = this.host.getBoundingClientRect();
		this.width = Math.max(GUTTER + 50, box.width);
		this.height = Math.max(80, box.height);
		sizeCanvas(this.canvas, this.width, this.height);
		this.changed();
	}

	changed() {
		if (this.frame || this.closed)
			return;
		this.frame = requestAnimationFrame(() => {
			this.frame = 0;
			if (!this.closed)
				this.draw();
		});
	}

	/** Colours of another theme. */
	repaint() {
		for (const layer of [this.whole, this.part]) {
			if (layer)
				layer.picture = pictureOf(layer.cells);
		}
		this.changed();
	}

	draw() {
		const { ink } = this;
		ink.fillStyle = themed("bg");
		ink.fillRect(0, 0, this.width, this.height);
		ink.save();
		ink.beginPath();
		ink.rect(GUTTER, RULER, this.plot, this.tall);
		ink.clip();
		ink.imageSmoothingEnabled = false;
		for (const layer of [this.whole, this.part]) {
			if (layer)
				this.drawLayer(layer);
		}
		ink.restore();
		this.drawRanks();
		this.drawSteps();
		this.drawHover();
	}

	/** @param {Layer} layer */
	drawLayer({ cells, picture }) {
		if (!cells.columns || !cells.rows)
			return;
		const x = this.xOf(cells.from);
		const y = this.yOf(cells.first_rank);
		this.ink.drawImage(picture, x, y, this.xOf(cells.to) - x, this.yOf(cells.end_rank) - y);
	}

	drawRanks() {
		const { ink } = this;
		const all = this.whole?.cells;
		ink.fillStyle = themed("panel");
		ink.fillRect(0, 0, GUTTER - 1, this.height);
		if (!all)
			return;
		ink.font = FONT;
		ink.textBaseline = "middle";
		ink.fillStyle = themed("text");
		const each = this.tall / (this.view.r1 - this.view.r0);
		const every = Math.max(1, Math.ceil(13 / each));
		for (let i = Math.floor(this.view.r0); i < Math.min(all.ranks.length, this.view.r1); i++) {
			const y = this.yOf(i) + Math.max(each, 13) / 2;
			if (i % every || y < RULER + 4 || y > RULER + this.tall)
				continue;
			ink.fillText(`rank ${all.ranks[i]}`, 8, y);
		}
	}

	drawSteps() {
		const { ink } = this;
		ink.fillStyle = themed("panel");
		ink.fillRect(0, 0, this.width, RULER);
		ink.fillStyle = themed("line");
		ink.fillRect(0, RULER - 1, this.width, 1);
		ink.font = FONT;
		ink.textBaseline = "middle";
		const raw = (this.view.s1 - this.view.s0) / Math.max(2, this.plot / 110);
		const power = 10 ** Math.floor(Math.log10(Math.max(1, raw)));
		const each = Math.max(1, [1, 2, 5, 10].map((n) => n * power).find((n) => n >= raw) ?? power * 10);
		ink.fillStyle = themed("muted");
		ink.fillText("step", 8, RULER / 2);
		for (let step = Math.ceil(this.view.s0 / each) * each; step < this.view.s1; step += each) {
			const x = Math.round(this.xOf(step));
			ink.fillStyle = themed("line");
			ink.fillRect(x, 0, 1, RULER);
			ink.fillStyle = themed("muted");
			const label = count(step);
			if (x + 4 + ink.measureText(label).width < this.width)
				ink.fillText(label, x + 4, RULER / 2);
		}
	}

	drawHover() {
		const cell = this.mouse && this.cellAt(this.mouse);
		if (!cell)
			return;
		const x = this.xOf(cell.step);
		const y = this.yOf(cell.place);
		this.ink.strokeStyle = themed("text");
		this.ink.lineWidth = 1;
		this.ink.strokeRect(
			Math.round(x) - 0.5,
			Math.round(y) - 0.5,
			Math.max(2, this.xOf(cell.step + 1) - x),
			Math.max(2, this.yOf(cell.place + 1) - y),
		);
	}

	// ---- input

	/** @param {Partial<MapView>} view */
	show(view) {
		const all = this.whole?.cells;
		if (!all)
			return;
		const next = { ...this.view, ...view };
		const steps = [all.first, Math.max(all.end, all.first + 1)];
		const [s0, s1] = within([next.s0, next.s1], steps, STEPS_LEAST);
		const [r0, r1] = within([next.r0, next.r1], [0, Math.max(1, all.ranks.length)], 1);
		this.view = { s0, s1, r0, r1 };
		this.changed();
		this.askSoon();
	}

	fit() {
		const all = this.whole?.cells;
		if (all)
			this.show({ s0: all.first, s1: all.end, r0: 0, r1: all.ranks.length });
	}

	/** @param {number} factor @param {{x: number, y: number}} at @param {boolean} ranks of ranks, too */
	zoom(factor, at, ranks) {
		const { s0, s1, r0, r1 } = this.view;
		const step = s0 + ((at.x - GUTTER) / this.plot) * (s1 - s0);
		const place = r0 + ((at.y - RULER) / this.tall) * (r1 - r0);
		const steps = { s0: step - (step - s0) * factor, s1: step + (s1 - step) * factor };
		this.show(ranks ? { r0: place - (place - r0) * factor, r1: place + (r1 - place) * factor } : steps);
	}

	listen() {
		const { canvas } = this;
		const place = (/** @type {MouseEvent} */ e) => {
			const box = canvas.getBoundingClientRect();
			return { x: e.clientX - box.left, y: e.clientY - box.top };
		};
		canvas.addEventListener(
			"wheel",
			(e) => {
				e.preventDefault();
				const amount = e.deltaY || e.deltaX;
				const at = place(e);
				if (e.shiftKey) {
					const by = (amount / this.plot) * (this.view.s1 - this.view.s0);
					this.show({ s0: this.view.s0 + by, s1: this.view.s1 + by });
				} else {
					this.zoom(Math.exp(Math.max(-1, Math.min(1, amount / 300))), at, e.altKey || at.x < GUTTER);
				}
			},
			{ passive: false },
		);
		canvas.addEventListener("pointerdown", (e) => {
			canvas.setPointerCapture(e.pointerId);
			this.drag = { ...place(e), view: { ...this.view }, moved: false };
		});
		canvas.addEventListener("pointermove", (e) => this.move(place(e)));
		canvas.addEventListener("pointerup", (e) => {
			const was = this.drag;
			this.drag = null;
			if (was && !was.moved)
				this.open(this.cellAt(place(e)));
		});
		canvas.addEventListener("pointerleave", () => {
			this.mouse = null;
			this.tip.hidden = true;
			this.changed();
		});
	}

	/** @param {{x: number, y: number}} mouse */
	move(mouse) {
		const { drag } = this;
		this.mouse = mouse;
		if (drag) {
			drag.moved ||= Math.abs(mouse.x - drag.x) + Math.abs(mouse.y - drag.y) > 3;
			const steps = ((mouse.x - drag.x) / this.plot) * (drag.view.s1 - drag.view.s0);
			const ranks = ((mouse.y - drag.y) / this.tall) * (drag.view.r1 - drag.view.r0);
			if (drag.moved)
				this.show({
					s0: drag.view.s0 - steps,
					s1: drag.view.s1 - steps,
					r0: drag.view.r0 - ranks,
					r1: drag.view.r1 - ranks,
				});
			return;
		}
		this.changed();
		const cell = this.cellAt(mouse);
		this.tip.hidden = true;
		clearTimeout(this.tipTimer);
		if (cell)
			this.tipTimer = window.setTimeout(() => this.describe(cell, mouse), 60);
	}

	/** @param {{step: number, place: number}} cell */
	async stepOf({ step, place }) {
		// As wide as a pixel: the step that gave the cell its colour.
		const wide = Math.max(1, Math.ceil((this.view.s1 - this.view.s0) / this.plot));
		const { worst } = await this.source.map({
			of: this.of,
			columns: 1,
			rows: 1,
			from: step,
			to: step + wide,
			first_rank: place,
			end_rank: place + 1,
		});
		return worst ?? null;
	}

	/** @param {{step: number, place: number}} cell @param {{x: number, y: number}} mouse */
	async describe(cell, mouse) {
		const worst = await this.stepOf(cell);
		if (!worst || this.mouse !== mouse || this.closed)
			return;
		this.tip.replaceChildren(
			el("span", { text: `rank ${worst.rank}, step ${count(worst.step)}: ${duration(worst.duration_ns)}` }),
			el("div", { class: "more", text: describeStep(worst) }),
		);
		this.tip.hidden = false;
		placeTip(this.tip, mouse, this);
	}

	/** @param {{step: number, place: number}|null} cell */
	async open(cell) {
		const worst = cell && (await this.stepOf(cell));
		if (worst && !this.closed)
			this.hooks.onopen(worst);
	}

	/** @param {KeyboardEvent} e */
	key(e) {
		const { s0, s1, r0, r1 } = this.view;
		const by = (s1 - s0) / 5;
		const down = Math.max(1, (r1 - r0) / 5);
		const middle = { x: GUTTER + this.plot / 2, y: RULER + this.tall / 2 };
		/** @type {Record<string, () => void>} */
		const acts = {
			ArrowLeft: () => this.show({ s0: s0 - by, s1: s1 - by }),
			ArrowRight: () => this.show({ s0: s0 + by, s1: s1 + by }),
			ArrowUp: () => this.show({ r0: r0 - down, r1: r1 - down }),
			ArrowDown: () => this.show({ r0: r0 + down, r1: r1 + down }),
			"+": () => this.zoom(0.7, middle, false),
			"-": () => this.zoom(1 / 0.7, middle, false),
			f: () => this.fit(),
			Enter: () => void this.open(this.cellAt(this.mouse ?? middle)),
		};
		const act = acts[e.key];
		act?.();
		return Boolean(act);
	}
}

/** A stretch inside another, at least so long. @param {number[]} stretch @param {number[]} all @param {number} least */
function within([a, b], [low, high], least) {
	const span = Math.min(Math.max(b - a, Math.min(least, high - low)), high - low);
	const from = Math.min(Math.max(a, low), high - span);
	return [from, from + span];
}

/** @param {NonNullable<MapCells["worst"]>} worst */
function describeStep({ duration_ns: took, median_ns: median, wait_ns: wait, median_wait_ns: medianWait }) {
	const signed = (/** @type {number} */ part) => `${part < 0 ? "−" : "+"}${Math.abs(Math.round(100 * part))} %`;
	const length = `median of the ranks ${duration(median)} (${signed(took / Math.max(1, median) - 1)})`;
	if (wait === null || medianWait === null)
		return length;
	return `${length}; waited ${duration(wait)} in collectives, median ${duration(medianWait)}`;
}
