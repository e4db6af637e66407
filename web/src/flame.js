// Flame graph, as an icicle: the root on top, a row of 20 px per depth, children by their time. Search dims the rest;
// a click zooms, Escape goes back.
import { clear, count, duration, el, fillOf, labelOf, percent, themed } from "./util.js";

const ROW = 20;
const FONT = '11px system-ui, "Segoe UI", Roboto, "DejaVu Sans", sans-serif';

export class FlameGraph {
	/** @param {HTMLElement} host @param {{onsay: (text: string) => void}} hooks */
	constructor(host, hooks) {
		this.host = host;
		this.hooks = hooks;
		/** @type {import("./source.js").Flame|null} */ this.flame = null;
		/** @type {number[][]} */ this.children = [];
		/** @type {number[]} */ this.zoomed = [0];
		/** @type {{x: number, y: number, w: number, node: number}[]} */ this.boxes = [];
		this.find = "";
		this.hovered = -1;
		this.focus = 0;
		this.canvas = el("canvas", { role: "img", tabindex: "0", "aria-label": "Flame graph" });
		this.tip = el("div", { class: "tip", hidden: true });
		host.append(this.canvas, this.tip);
		/** @type {CanvasRenderingContext2D} */ this.ink = this.canvas.getContext("2d");
		this.observer = new ResizeObserver(() => this.draw());
		this.observer.observe(host);
		this.listen();
	}

	close() {
		this.observer.disconnect();
	}

	/** @param {import("./source.js").Flame} flame */
	show(flame) {
		this.flame = flame;
		this.children = flame.label.map(() => []);
		for (let i = 1; i < flame.label.length; i++)
			this.children[flame.parent[i]].push(i);
		for (const list of this.children)
			list.sort((a, b) => flame.total[b] - flame.total[a]);
		this.zoomed = [0];
		this.search(this.find);
	}

	/** @param {string} text */
	search(text) {
		this.find = text.toLowerCase();
		if (this.flame)
			this.hooks.onsay(this.found());
		this.draw();
	}

	/** @param {number} node */
	matches(node) {
		return Boolean(this.find) && Boolean(this.flame?.label[node].toLowerCase().includes(this.find));
	}

	/** "15.4 % in 1 frame"; what lies inside of a match is not counted twice. */
	found() {
		const flame = this.flame;
		if (!flame || !this.find)
			return "";
		let total = 0;
		let frames = 0;
		const walk = (/** @type {number} */ node) => {
			if (this.matches(node)) {
				total += flame.total[node];
				frames++;
				return;
			}
			this.children[node].forEach(walk);
		};
		walk(0);
		if (!frames)
			return "not found";
		return `${percent(total / (flame.total[0] || 1))} in ${count(frames)} frame${frames === 1 ? "" : "s"}`;
	}

	/** @returns {boolean} whether there was something to go back from */
	back() {
		if (this.zoomed.length < 2)
			return false;
		this.zoomed.pop();
		this.draw();
		return true;
	}

	draw() {
		const scale = window.devicePixelRatio || 1;
		const box = this.host.getBoundingClientRect();
		const ink = this.ink;
		this.width = Math.max(200, box.width);
		this.height = Math.max(100, box.height);
		this.canvas.width = Math.round(this.width * scale);
		this.canvas.height = Math.round(this.height * scale);
		this.canvas.style.width = `${this.width}px`;
		this.canvas.style.height = `${this.height}px`;
		ink.setTransform(scale, 0, 0, scale, 0, 0);
		ink.font = FONT;
		ink.textBaseline = "middle";
		ink.fillStyle = themed("bg");
		ink.fillRect(0, 0, this.width, this.height);
		this.boxes = [];
		if (!this.flame)
			return;
		const path = [];
		const top = this.zoomed[this.zoomed.length - 1];
		for (let node = top; node >= 0; node = this.flame.parent[node])
			path.unshift(node);
		path.forEach((node, row) => this.box(node, 0, row, this.width));
		this.under(top, 0, path.length, this.width);
		this.paint();
	}

	/** @param {number} node @param {number} x @param {number} row @param {number} w */
	box(node, x, row, w) {
		this.boxes.push({ x, y: row * ROW, w, node });
	}

	/** @param {number} node @param {number} x @param {number} row @param {number} width */
	under(node, x, row, width) {
		const flame = /** @type {import("./source.js").Flame} */ (this.flame);
		let left = x;
		for (const child of this.children[node]) {
			const w = (flame.total[child] / (flame.total[node] || 1)) * width;
			if (w < 0.5 || row * ROW > /** @type {number} */ (this.height))
				continue;
			this.box(child, left, row, w);
			this.under(child, left, row + 1, w);
			left += w;
		}
	}

	paint() {
		const flame = /** @type {import("./source.js").Flame} */ (this.flame);
		const ink = this.ink;
		for (const { x, y, w, node } of this.boxes) {
			const source = flame.source[node];
			const match = this.matches(node);
			const [fill, label] = flame.paint?.(node) ?? [];
			ink.globalAlpha = this.find && !match ? 0.32 : 1;
			ink.fillStyle = fill ?? (source ? fillOf(flame.label[node], source) : themed("panel"));
			ink.fillRect(x, y, Math.max(0.5, w - 1), ROW - 1);
			ink.globalAlpha = 1;
			if (w < 30)
				continue;
			// What is dimmed lies nearly on the background: its text is the page's own.
			ink.fillStyle =
				this.find && !match ? themed("muted") : (label ?? (source ? labelOf(source) : themed("text")));
			this.text(node, x, y, w);
		}
		const chosen = this.boxes.find((box) => box.node === this.focus);
		if (chosen && this.focus) {
			ink.strokeStyle = themed("text");
			ink.lineWidth = 2;
			ink.strokeRect(chosen.x + 1, chosen.y + 1, Math.max(2, chosen.w - 3), ROW - 3);
		}
	}

	/** @param {number} node @param {number} x @param {number} y @param {number} w */
	text(node, x, y, w) {
		const flame = /** @type {import("./source.js").Flame} */ (this.flame);
		const ink = this.ink;
		const share = flame.note?.(node) ?? percent(flame.total[node] / (flame.total[0] || 1));
		const shareWidth = ink.measureText(share).width;
		const room = w - 10;
		const name = flame.caption?.(node) ?? flame.label[node];
		const width = ink.measureText(name).width;
		if (width + shareWidth + 12 <= room) {
			ink.fillText(name, x + 5, y + ROW / 2);
			ink.fillText(share, x + w - shareWidth - 6, y + ROW / 2);
			return;
		}
		const fits = Math.floor((room / Math.max(1, width)) * name.length);
		if (width <= room)
			ink.fillText(name, x + 5, y + ROW / 2);
		else if (fits >= 4)
			ink.fillText(`${name.slice(0, fits - 1)}…`, x + 5, y + ROW / 2);
	}

	/** @param {MouseEvent} e */
	nodeAt(e) {
		const box = this.canvas.getBoundingClientRect();
		const x = e.clientX - box.left;
		const y = e.clientY - box.top;
		const found = this.boxes.find((b) => x >= b.x && x < b.x + b.w && y >= b.y && y < b.y + ROW);
		return found ? found.node : -1;
	}

	/** @param {number} node */
	describe(node) {
		const flame = /** @type {import("./source.js").Flame} */ (this.flame);
		if (flame.describe)
			return flame.describe(node);
		const amount = (/** @type {number} */ v) => (flame.unit === "ns" ? duration(v) : `${count(v)} samples`);
		return (
			`${flame.label[node]}${flame.source[node] ? ` (${flame.source[node]})` : ""}: ${amount(flame.total[node])}, ` +
			`${percent(flame.total[node] / (flame.total[0] || 1))}; own ${amount(flame.self[node])}`
		);
	}

	/** @param {number} node */
	zoomTo(node) {
		const at = this.zoomed.indexOf(node);
		if (at >= 0)
			this.zoomed.length = at + 1;
		else
			this.zoomed.push(node);
		this.focus = node;
		this.draw();
	}

	/**
	 * Moves the chosen frame: parent, first child, neighbours.
	 * @param {"up"|"down"|"left"|"right"} dir
	 */
	move(dir) {
		const flame = this.flame;
		if (!flame)
			return "";
		const beside = flame.parent[this.focus] >= 0 ? this.children[flame.parent[this.focus]] : [0];
		const at = beside.indexOf(this.focus);
		const next = {
			up: flame.parent[this.focus],
			down: this.children[this.focus][0],
			left: beside[at - 1],
			right: beside[at + 1],
		}[dir];
		if (next !== undefined && next >= 0)
			this.focus = next;
		this.draw();
		return this.describe(this.focus);
	}

	listen() {
		this.canvas.addEventListener("click", (/** @type {MouseEvent} */ e) => {
			const node = this.nodeAt(e);
			if (node >= 0)
				this.zoomTo(node);
		});
		this.canvas.addEventListener("mousemove", (/** @type {MouseEvent} */ e) => {
			const node = this.nodeAt(e);
			this.tip.hidden = node < 0;
			if (node < 0)
				return;
			clear(this.tip);
			this.tip.append(el("span", { text: this.describe(node) }));
			const box = this.canvas.getBoundingClientRect();
			const x = e.clientX - box.left;
			const y = e.clientY - box.top;
			this.tip.style.left = `${Math.max(0, Math.min(x + 12, box.width - this.tip.offsetWidth - 8))}px`;
			this.tip.style.top = `${y + 18 + this.tip.offsetHeight > box.height ? y - this.tip.offsetHeight - 8 : y + 18}px`;
		});
		this.canvas.addEventListener("mouseleave", () => {
			this.tip.hidden = true;
		});
	}
}
