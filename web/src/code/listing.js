// The text of a source file, with time and counts beside each line. Only the lines in view are elements, so that a
// file of a hundred thousand lines opens at once.
import { el } from "../dom.js";
import { bytes, count, duration } from "../format.js";

/** @import { LineValues, SourceText } from "../types.js" */

export const ROW = 18; // px; .listing .line has this height
const AROUND = 20; // lines above and below the view
const TAB = 4; // columns, as in theme.css
const VALUE = 74; // px, a column of values
const BARS = 62; // px

/** The order of numbers in SourceText.lines, after the line. @type {(keyof LineValues)[]} */
const VALUES = [
	"self_samples",
	"samples",
	"self_ns",
	"total_ns",
	"line_count",
	"line_ns",
	"line_self_ns",
	"calls",
	"calls_ns",
	"calls_self_ns",
	"alloc_bytes",
	"alloc_count",
	"peak_bytes",
];

/**
 * @typedef {Object} ListingColumn
 * @property {keyof LineValues} key
 * @property {string} title
 * @property {string} about
 * @property {(value: number) => string} show
 *
 * @typedef {LineValues & {line: number}} LineRow
 */

/**
 * Columns for a recording whose samples have times, and for an older one.
 * @type {[ListingColumn[], ListingColumn[]]}
 */
const SAMPLED = [
	[
		{
			key: "self_ns",
			title: "Self",
			about: "time of this line and of the libraries that it calls",
			show: duration,
		},
		{ key: "total_ns", title: "Total", about: "time of this line and of all that it calls", show: duration },
	],
	[
		{
			key: "self_samples",
			title: "Self",
			about: "samples of this line and of the libraries that it calls",
			show: count,
		},
		{ key: "samples", title: "Total", about: "samples of this line and of all that it calls", show: count },
	],
];

/** @type {ListingColumn[]} */
const RECORDED = [
	{ key: "line_ns", title: "Line time", about: "recorded line by line: time with what it calls", show: duration },
	{ key: "line_count", title: "Runs", about: "how often the line was executed", show: count },
	{
		key: "calls",
		title: "Calls",
		about: "zones that begin here: calls of the function, or regions",
		show: count,
	},
	{ key: "calls_ns", title: "Call time", about: "total time of these zones", show: duration },
	{ key: "alloc_bytes", title: "Allocated", about: "bytes that the line allocated in all", show: bytes },
	{ key: "peak_bytes", title: "At peak", about: "of them live at the peak of memory", show: bytes },
];

/** Characters that turn the direction of text, and so could make code look like other code. */
const DIRECTION = /[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g;

/**
 * The lines of a text, as Python and compilers count them.
 * @param {string} text
 */
export function linesOf(text) {
	const lines = text.split(/\r\n|\r|\n/);
	if (lines[lines.length - 1] === "")
		lines.pop();
	return lines.map((line) => line.replace(DIRECTION, (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, "0")}`));
}

/**
 * What is known of each line, by its number.
 * @param {SourceText} file
 * @returns {Map<number, LineRow>}
 */
export function rowsOf(file) {
	return new Map(
		file.lines.map(([line, ...values]) => [
			line,
			/** @type {LineRow} */ ({ line, ...Object.fromEntries(VALUES.map((key, i) => [key, values[i] ?? 0])) }),
		]),
	);
}

/**
 * What makes a line hot, and the part that is its own, by the best measure that a file has.
 * @type {[keyof LineValues, keyof LineValues][]}
 */
const HEATS = [
	["total_ns", "self_ns"],
	["samples", "self_samples"],
	["line_ns", "line_self_ns"],
	["calls_ns", "calls_self_ns"],
	["alloc_bytes", "alloc_bytes"],
	["calls", "calls"],
];

export class Listing {
	/**
	 * @param {SourceText} file
	 * @param {{onmove: (line: number) => void, onenter: (line: number) => void}} hooks
	 */
	constructor(file, hooks) {
		this.file = file;
		this.hooks = hooks;
		this.rows = rowsOf(file);
		const known = [...this.rows.keys()].sort((a, b) => a - b);
		/** Without a text, only lines that the recording knows. */
		this.text = file.text === null ? null : linesOf(file.text);
		/** The line numbers that are shown. */
		this.numbers = this.text ? this.text.map((_, i) => i + 1) : known;
		const past = this.text ? known.filter((line) => line > this.numbers.length) : [];
		/** Lines that the recording names and the file does not have. */
		this.past = past.length;
		this.timed = file.total_ns > 0;
		this.columns = [...SAMPLED[this.timed ? 0 : 1], ...RECORDED].filter(({ key }) =>
			[...this.rows.values()].some((row) => row[key] > 0),
		);
		this.heat = this.heats();
		/** Lines with time of their own or allocations, in the order of the file. */
		this.hot = known.filter((line) => line <= (this.numbers[this.numbers.length - 1] ?? 0) && this.isHot(line));
		this.at = 0; // index of the current line in numbers; -1: none
		this.find = "";
		/** @type {number[]} */ this.found = [];
		this.body = el("div", { class: "lines", role: "rowgroup" });
		this.node = this.grid();
		this.setWidths();
		this.observer = new ResizeObserver(() => this.draw());
		this.observer.observe(this.node);
		this.listen();
	}

	/** The lengths of bars: shares of the hottest line. */
	heats() {
		const [all, own] = HEATS.find(([key]) => this.mostOf(key) > 0) ?? HEATS[0];
		const most = this.mostOf(all) || 1;
		return new Map([...this.rows].map(([line, row]) => [line, { all: row[all] / most, own: row[own] / most }]));
	}

	/** @param {number} line */
	isHot(line) {
		const row = this.rows.get(line);
		const most = (/** @type {keyof LineValues} */ key) => this.mostOf(key) * 0.05;
		return (
			(this.heat.get(line)?.own ?? 0) > 0.02 ||
			(Boolean(row?.alloc_bytes) && (row?.alloc_bytes ?? 0) >= most("alloc_bytes")) ||
			(Boolean(row?.line_ns) && (row?.line_ns ?? 0) >= most("line_ns"))
		);
	}

	/** @param {keyof LineValues} key */
	mostOf(key) {
		let most = 0;
		for (const row of this.rows.values())
			most = Math.max(most, row[key]);
		return most;
	}

	grid() {
		const { columns } = this;
		const bars = "share of the hottest line; the dark part is time of the line itself";
		return el(
			"div",
			{
				class: "listing code",
				role: "grid",
				tabindex: "0",
				"aria-label": `Source of ${this.file.file}`,
				"aria-rowcount": String(this.numbers.length + 1),
				"aria-colcount": String(columns.length + 3),
				"aria-readonly": "true",
			},
			el(
				"div",
				{ class: "line head", role: "row", "aria-rowindex": "1" },
				...columns.map(({ title, about }) => el("span", { role: "columnheader", title: about, text: title })),
				el("span", { role: "columnheader", class: "bars", title: bars, "aria-label": "Heat" }),
				el("span", { role: "columnheader", class: "number", text: "Line" }),
				el("span", { role: "columnheader", class: "text", text: "Source" }),
			),
			this.body,
		);
	}

	/** All rows have the width of the longest line, so that they scroll together. */
	setWidths() {
		// In pixels, since the head has another font.
		const numbers = 8 * Math.max(4, String(this.numbers[this.numbers.length - 1] ?? 1).length) + 16;
		const longest = (this.text ?? []).reduce((most, line) => Math.max(most, columnsOf(line)), 20);
		const values = this.columns.map(() => `${VALUE}px`);
		this.node.style.setProperty("--columns", [...values, `${BARS}px`, `${numbers}px`, "1fr"].join(" "));
		this.node.style.setProperty(
			"--wide",
			`calc(${this.columns.length * VALUE + BARS + numbers + 24}px + ${longest}ch)`,
		);
		this.body.style.height = `${this.numbers.length * ROW}px`;
	}

	listen() {
		this.node.addEventListener("scroll", () => this.draw());
		this.node.addEventListener("click", (e) => {
			const row = /** @type {HTMLElement} */ (e.target).closest(".line[data-line]");
			if (row)
				this.go(Number(row.getAttribute("data-line")), false);
		});
	}

	close() {
		this.observer.disconnect();
	}

	draw() {
		const { scrollTop, clientHeight } = this.node;
		const first = Math.max(0, Math.floor(scrollTop / ROW) - AROUND);
		const last = Math.min(this.numbers.length, Math.ceil((scrollTop + clientHeight) / ROW) + AROUND);
		const rows = [];
		for (let i = first; i < last; i++)
			rows.push(this.row(i));
		this.body.replaceChildren(...rows);
	}

	/** @param {number} i */
	row(i) {
		const line = this.numbers[i];
		const row = this.rows.get(line);
		const { all = 0, own = 0 } = this.heat.get(line) ?? {};
		const current = i === this.at;
		const node = el(
			"div",
			{
				class: `line${current ? " current" : ""}`,
				role: "row",
				id: `line-${line}`,
				"data-line": String(line),
				"aria-rowindex": String(i + 2),
				"aria-selected": String(current),
			},
			...this.columns.map(({ key, show }) =>
				el("span", { role: "gridcell", class: "value", text: row?.[key] ? show(row[key]) : "" }),
			),
			bar(all, own),
			el("span", { role: "gridcell", class: "number", text: String(line) }),
			el("span", { role: "gridcell", class: "text" }, ...this.marked(this.text?.[i] ?? "")),
		);
		node.style.top = `${i * ROW}px`;
		if (own > 0.02)
			node.style.setProperty("--heat", `${Math.round(4 + 18 * own)}%`);
		return node;
	}

	/** The text of a line; what was found is marked. @param {string} text */
	marked(text) {
		if (!this.find)
			return [text];
		const parts = [];
		const lower = text.toLowerCase();
		let at = 0;
		for (let next = lower.indexOf(this.find); next >= 0; next = lower.indexOf(this.find, at)) {
			parts.push(text.slice(at, next), el("mark", { text: text.slice(next, next + this.find.length) }));
			at = next + this.find.length;
		}
		return [...parts, text.slice(at)];
	}

	/** The current line. */
	get line() {
		return this.numbers[this.at] ?? 0;
	}

	/**
	 * Makes a line the current one and shows it.
	 * @param {number} line
	 * @param {boolean} [middle] in the middle of the view
	 */
	go(line, middle = true) {
		let i = this.numbers.findIndex((one) => one >= line);
		if (i < 0)
			i = this.numbers.length - 1;
		this.moveTo(i, middle);
	}

	/** @param {number} i @param {boolean} [middle] */
	moveTo(i, middle = false) {
		this.at = Math.max(0, Math.min(this.numbers.length - 1, i));
		const top = this.at * ROW;
		const height = this.node.clientHeight - ROW; // without the head
		if (middle)
			this.node.scrollTop = top - height / 2;
		else if (top < this.node.scrollTop)
			this.node.scrollTop = top;
		else if (top + ROW > this.node.scrollTop + height)
			this.node.scrollTop = top + ROW - height;
		this.draw();
		this.node.setAttribute("aria-activedescendant", `line-${this.line}`);
		this.hooks.onmove(this.line);
	}

	/** The next hot line (1), or the one before (−1); around the ends. @param {1|-1} way */
	nextHot(way) {
		this.goAround(this.hot, way);
	}

	/** The hottest line by its own time. */
	hottest() {
		let best = 0;
		for (const [line, { own }] of this.heat) {
			if (own > (this.heat.get(best)?.own ?? 0))
				best = line;
		}
		return best || (this.hot[0] ?? 0);
	}

	/** @param {string} text @returns {number} how many lines have it */
	search(text) {
		this.find = text.toLowerCase();
		this.found = this.find
			? this.numbers.filter((_, i) => this.text?.[i].toLowerCase().includes(this.find))
			: [];
		this.draw();
		return this.found.length;
	}

	/** @param {1|-1} way */
	nextFound(way) {
		this.goAround(this.found, way);
	}

	/** @param {number[]} lines @param {1|-1} way */
	goAround(lines, way) {
		if (!lines.length)
			return;
		const after = lines.find((line) => line > this.line) ?? lines[0];
		const before = lines.findLast((line) => line < this.line) ?? lines[lines.length - 1];
		this.go(way > 0 ? after : before);
	}

	/** What a screen reader says of the current line. */
	spoken() {
		const row = this.rows.get(this.line);
		const values = this.columns
			.filter(({ key }) => row?.[key])
			.map(({ key, title, show }) => `${title} ${show(row?.[key] ?? 0)}`);
		return [`Line ${this.line}`, ...values, (this.text?.[this.at] ?? "").trim()].filter(Boolean).join(", ");
	}

	/**
	 * @param {KeyboardEvent} e
	 * @returns {boolean} whether the key was used
	 */
	key(e) {
		const page = Math.max(1, Math.floor(this.node.clientHeight / ROW) - 2);
		/** @type {Record<string, () => void>} */
		const acts = {
			ArrowDown: () => this.moveTo(this.at + 1),
			ArrowUp: () => this.moveTo(this.at - 1),
			PageDown: () => this.moveTo(this.at + page),
			PageUp: () => this.moveTo(this.at - page),
			Home: () => this.moveTo(0),
			End: () => this.moveTo(this.numbers.length - 1),
			"]": () => this.nextHot(1),
			"[": () => this.nextHot(-1),
			x: () => this.go(this.hottest()),
			Enter: () => this.hooks.onenter(this.line),
		};
		const act = acts[e.key.length === 1 ? e.key.toLowerCase() : e.key];
		act?.();
		return Boolean(act);
	}
}

/** How wide a line is, in characters. @param {string} line */
function columnsOf(line) {
	const tabs = line.split("\t").length - 1;
	return line.length + tabs * (TAB - 1);
}

/** @param {number} all @param {number} own */
function bar(all, own) {
	const node = el("span", { class: "bars", role: "gridcell" });
	for (const [name, share] of /** @type {[string, number][]} */ ([["all", all], ["own", own]])) {
		if (!share)
			continue;
		const part = el("i", { class: name });
		part.style.width = `${Math.max(2, Math.round(100 * share))}%`;
		node.append(part);
	}
	return node;
}
