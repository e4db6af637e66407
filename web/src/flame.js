// Flame graph as an icicle: the root on top, a row of 20 px for each depth, children sorted by time. Search dims the
// other frames; a click zooms, a double click opens the source, Escape goes back.
import { frameOf } from "./code/frames.js";
import { moduleOf } from "./code/modules.js";
import { el, inkOf, placeTip, sizeCanvas } from "./dom.js";
import { count, counted, duration, percent } from "./format.js";
import { fillOf, labelOf, themed } from "./theme.js";

/** @import { Flame } from "./types.js" */

const ROW = 20;
const LABEL_LEAST = 30; // px; narrower frames have no text
const NARROW = 0.1; // of the graph
const FONT = '11px system-ui, "Segoe UI", Roboto, "DejaVu Sans", sans-serif';

/**
 * @typedef {Object} FlameHooks
 * @property {(text: string) => void} onfound
 * @property {(node: number) => void} [onfocus] a frame was chosen
 * @property {(node: number) => void} [onopen] the source of a frame is wanted
 */

/** @type {Flame} */
const NO_FLAME = { label: [], source: [], parent: [], total: [], self: [], unit: "ns" };

/** @type {Record<string, "up"|"down"|"left"|"right">} */
const MOVES = { ArrowUp: "up", ArrowDown: "down", ArrowLeft: "left", ArrowRight: "right", a: "left", d: "right" };

/**
 * A text cut to fit, with an ellipsis; "" if less than three characters fit. The first guess is nearly always right, so
 * few texts are measured.
 * @param {CanvasRenderingContext2D} ink
 * @param {string} text
 * @param {number} room
 */
export function shortened(ink, text, room) {
	const { width } = ink.measureText(text);
	if (width <= room)
		return text;
	let length = Math.min(text.length - 1, Math.floor((room / width) * text.length));
	while (length >= 3 && ink.measureText(`${text.slice(0, length)}…`).width > room)
		length--;
	return length >= 3 ? `${text.slice(0, length)}…` : "";
}

export class FlameGraph {
	/**
	 * @param {HTMLElement} host
	 * @param {FlameHooks} hooks
	 */
	constructor(host, hooks) {
		this.host = host;
		this.hooks = hooks;
		this.flame = NO_FLAME;
		/** @type {number[][]} */ this.children = [];
		/** @type {number[]} */ this.zoomed = [0];
		/** @type {{x: number, y: number, w: number, node: number}[]} */ this.boxes = [];
		this.find = "";
		this.focus = 0;
		this.width = 0;
		this.height = 0;
		this.canvas = el("canvas", { role: "img", tabindex: "0", "aria-label": "Flame graph" });
		this.tip = el("div", { class: "tip", hidden: true });
		host.append(this.canvas, this.tip);
		this.ink = inkOf(this.canvas);
		this.observer = new ResizeObserver(() => this.draw());
		this.observer.observe(host);
		this.listen();
	}

	close() {
		this.observer.disconnect();
	}

	/** @param {Flame} flame */
	show(flame) {
		this.flame = flame;
		this.children = flame.label.map(() => []);
		for (let i = 1; i < flame.label.length; i++)
			this.children[flame.parent[i]].push(i);
		for (const list of this.children)
			list.sort((a, b) => flame.total[b] - flame.total[a]);
		this.zoomed = [0];
		this.focus = 0;
		this.search(this.find);
	}

	/** The same frames in other colours. @param {Flame} flame */
	repaint(flame) {
		this.flame = flame;
		this.draw();
	}

	/** @param {string} text */
	search(text) {
		this.find = text.toLowerCase();
		if (this.flame !== NO_FLAME)
			this.hooks.onfound(this.found());
		this.draw();
	}

	/** @param {number} node */
	matches(node) {
		const { label } = this.flame;
		if (!this.find)
			return false;
		return label[node].toLowerCase().includes(this.find) || this.shown(node).toLowerCase().includes(this.find);
	}

	/** The label, without the folders of its file. @param {number} node */
	shown(node) {
		const { flame } = this;
		return flame.sampled && flame.source[node] ? frameOf(flame.label[node]).short : flame.label[node];
	}

	/** Chooses the largest frame that was found, and zooms to it if it is narrow. */
	goToFound() {
		let best = -1;
		for (let node = 1; node < this.flame.label.length; node++) {
			if (this.matches(node) && (best < 0 || this.flame.total[node] > this.flame.total[best]))
				best = node;
		}
		if (best < 0)
			return;
		if (this.share(this.flame.total[best]) < NARROW)
			this.zoomTo(best);
		else
			this.choose(best);
	}

	/** "15.4 % in 1 frame"; matches inside a match are not counted. */
	found() {
		if (!this.find)
			return "";
		let total = 0;
		let frames = 0;
		const walk = (/** @type {number} */ node) => {
			if (this.matches(node)) {
				total += this.flame.total[node];
				frames++;
				return;
			}
			this.children[node].forEach(walk);
		};
		walk(0);
		return frames ? `${percent(this.share(total))} in ${counted(frames, "frame")}` : "not found";
	}

	/** @param {number} amount */
	share(amount) {
		return amount / (this.flame.total[0] || 1);
	}

	/** @returns {boolean} false if it was not zoomed */
	back() {
		if (this.zoomed.length < 2)
			return false;
		this.zoomed.pop();
		this.draw();
		return true;
	}

	draw() {
		const box = this.host.getBoundingClientRect();
		const ink = this.ink;
		this.width = Math.max(200, box.width);
		this.height = Math.max(100, box.height);
		sizeCanvas(this.canvas, this.width, this.height);
		ink.font = FONT;
		ink.textBaseline = "middle";
		ink.fillStyle = themed("bg");
		ink.fillRect(0, 0, this.width, this.height);
		this.boxes = [];
		if (this.flame === NO_FLAME)
			return;
		const path = [];
		const top = this.zoomed[this.zoomed.length - 1];
		for (let node = top; node >= 0; node = this.flame.parent[node])
			path.unshift(node);
		path.forEach((node, row) => this.box(node, 0, row, this.width));
		this.boxesUnder(top, 0, path.length, this.width);
		this.paint();
	}

	/** @param {number} node @param {number} x @param {number} row @param {number} w */
	box(node, x, row, w) {
		this.boxes.push({ x, y: row * ROW, w, node });
	}

	/** @param {number} node @param {number} x @param {number} row @param {number} width */
	boxesUnder(node, x, row, width) {
		const { total } = this.flame;
		let left = x;
		for (const child of this.children[node]) {
			const w = (total[child] / (total[node] || 1)) * width;
			if (w < 0.5 || row * ROW > this.height)
				continue;
			this.box(child, left, row, w);
			this.boxesUnder(child, left, row + 1, w);
			left += w;
		}
	}

	paint() {
		const { flame, ink } = this;
		for (const { x, y, w, node } of this.boxes) {
			const source = flame.source[node];
			const dimmed = Boolean(this.find) && !this.matches(node);
			const [fill, label] = flame.paint?.(node) ?? [];
			ink.globalAlpha = dimmed ? 0.32 : 1;
			ink.fillStyle = fill ?? (source ? fillOf(flame.label[node], source) : themed("panel"));
			ink.fillRect(x, y, Math.max(0.5, w - 1), ROW - 1);
			ink.globalAlpha = 1;
			if (w < LABEL_LEAST)
				continue;
			// A dimmed frame has nearly the colour of the page, so its text has the colour of text on the page.
			ink.fillStyle = dimmed ? themed("muted") : (label ?? (source ? labelOf(source) : themed("text")));
			this.text(node, x, y, w);
		}
		const focused = this.boxes.find((box) => box.node === this.focus);
		if (focused && this.focus) {
			ink.strokeStyle = themed("text");
			ink.lineWidth = 2;
			ink.strokeRect(focused.x + 1, focused.y + 1, Math.max(2, focused.w - 3), ROW - 3);
		}
	}

	/** @param {number} node @param {number} x @param {number} y @param {number} w */
	text(node, x, y, w) {
		const { flame, ink } = this;
		const share = flame.note?.(node) ?? percent(this.share(flame.total[node]));
		const shareWidth = ink.measureText(share).width;
		const room = w - 10;
		const name = flame.caption?.(node) ?? this.shown(node);
		ink.fillText(shortened(ink, name, room), x + 5, y + ROW / 2);
		if (ink.measureText(name).width + shareWidth + 12 <= room)
			ink.fillText(share, x + w - shareWidth - 6, y + ROW / 2);
	}

	/** @param {{x: number, y: number}} at */
	nodeAt({ x, y }) {
		return this.boxes.find((b) => x >= b.x && x < b.x + b.w && y >= b.y && y < b.y + ROW)?.node ?? -1;
	}

	/** @param {number} node */
	describe(node) {
		const { flame } = this;
		if (flame.describe)
			return flame.describe(node);
		const amount = (/** @type {number} */ v) => (flame.unit === "ns" ? duration(v) : `${count(v)} samples`);
		const name = flame.source[node] ? `${this.shown(node)} (${flame.source[node]})` : flame.label[node];
		const total = `${amount(flame.total[node])}, ${percent(this.share(flame.total[node]))}`;
		return `${name}: ${total}; self ${amount(flame.self[node])}`;
	}

	/** The module and the file of a frame, for the tooltip. @param {number} node */
	placeText(node) {
		const { flame } = this;
		const place = flame.place?.(node);
		const module = moduleOf(flame, node);
		return [
			place ? `${place.file}:${place.line}` : "",
			module && module !== flame.source[node] ? `module ${module}` : "",
			place && this.hooks.onopen ? "double click opens the source" : "",
		]
			.filter(Boolean)
			.join(" · ");
	}

	/** @param {number} node */
	choose(node) {
		this.focus = node;
		this.hooks.onfocus?.(node);
		this.draw();
	}

	/** @param {number} node */
	zoomTo(node) {
		const at = this.zoomed.indexOf(node);
		if (at >= 0)
			this.zoomed.length = at + 1;
		else
			this.zoomed.push(node);
		this.choose(node);
	}

	/**
	 * Moves the focus: parent, first child, neighbours.
	 * @param {"up"|"down"|"left"|"right"} direction
	 */
	move(direction) {
		const { flame, focus } = this;
		if (flame === NO_FLAME)
			return "";
		const siblings = flame.parent[focus] >= 0 ? this.children[flame.parent[focus]] : [0];
		const at = siblings.indexOf(focus);
		const next = {
			up: flame.parent[focus],
			down: this.children[focus][0],
			left: siblings[at - 1],
			right: siblings[at + 1],
		}[direction];
		if (next !== undefined && next >= 0)
			this.choose(next);
		return this.describe(this.focus);
	}

	/**
	 * Arrows, A and D move the focus; W, F and Enter zoom; S and Escape go back; O opens the source.
	 * @param {KeyboardEvent} e
	 * @param {(text: string) => void} announce
	 * @returns {boolean} whether the key was used
	 */
	key(e, announce) {
		const key = e.key.length === 1 ? e.key.toLowerCase() : e.key;
		if (MOVES[key]) {
			announce(this.move(MOVES[key]));
			return true;
		}
		if (key === "w" || key === "f" || (key === "Enter" && e.target === this.canvas)) {
			this.zoomTo(this.focus);
			return true;
		}
		if (key === "o" && this.hooks.onopen) {
			this.hooks.onopen(this.focus);
			return true;
		}
		return (key === "Escape" && this.back()) || (key === "s" && (this.back(), true));
	}

	listen() {
		const { canvas, tip } = this;
		const place = (/** @type {MouseEvent} */ e) => {
			const box = canvas.getBoundingClientRect();
			return { x: e.clientX - box.left, y: e.clientY - box.top };
		};
		canvas.addEventListener("click", (e) => {
			const node = this.nodeAt(place(e));
			if (node >= 0)
				this.zoomTo(node);
		});
		canvas.addEventListener("dblclick", (e) => {
			const node = this.nodeAt(place(e));
			if (node >= 0)
				this.hooks.onopen?.(node);
		});
		canvas.addEventListener("mousemove", (e) => {
			const at = place(e);
			const node = this.nodeAt(at);
			tip.hidden = node < 0;
			if (node < 0)
				return;
			const more = this.placeText(node);
			tip.replaceChildren(
				el("span", { text: this.describe(node) }),
				more ? el("div", { class: "more", text: more }) : "",
			);
			placeTip(tip, at, this);
		});
		canvas.addEventListener("mouseleave", () => {
			tip.hidden = true;
		});
	}
}
