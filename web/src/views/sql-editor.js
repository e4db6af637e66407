// A field for SQL that completes names: tables, columns of the tables in the query, keywords and functions.
import { el, inkOf } from "../dom.js";

const KEYWORDS = (
	"SELECT FROM WHERE GROUP BY ORDER BY LIMIT HAVING JOIN LEFT JOIN USING ON AS AND OR NOT IN IS NULL BETWEEN LIKE " +
	"ILIKE CASE WHEN THEN ELSE END DISTINCT WITH UNION ALL DESC ASC OVER PARTITION BY QUALIFY EXPLAIN SUMMARIZE " +
	"VALUES FILTER EXCLUDE COLUMNS"
).split(" ");
const FUNCTIONS = (
	"count sum avg min max median quantile_cont stddev mode list array_agg string_agg arg_max arg_min first last " +
	"row_number lag lead rank date_trunc round floor ceil abs coalesce greatest least length lower upper substr " +
	"replace regexp_extract regexp_matches unnest range list_reverse"
).split(" ");
const LINE = 20;
const PAD = 9;
const LIST_WIDTH = 240;
const WORDS_MOST = 12;

/**
 * @typedef {{name: string, type: string, about?: string}} SchemaColumn
 * @typedef {{schema: string, name: string, about?: string, columns: SchemaColumn[]}} SchemaTable
 * @typedef {{text: string, kind: string}} Word
 */

/** @param {SchemaTable} table */
const fullName = (table) => `${table.schema}.${table.name}`;
/** @param {SchemaTable} table @returns {Word} */
const tableWord = (table) => ({ text: fullName(table), kind: "table" });

/**
 * Words after a dot: tables of a schema, or columns of a table or of its alias.
 * @param {string} typed
 * @param {string} whole
 * @param {SchemaTable[]} tables
 */
function wordsAfterDot(typed, whole, tables) {
	const head = typed.slice(0, typed.lastIndexOf("."));
	const low = head.toLowerCase();
	const alias = new RegExp(`([\\w]+\\.[\\w]+)\\s+(?:as\\s+)?${low.replace(/[^\w]/g, "")}\\b`, "i").exec(whole)?.[1];
	const names = [alias?.toLowerCase(), low];
	const table = tables.find((t) => names.includes(fullName(t).toLowerCase()) || t.name.toLowerCase() === low);
	const columns = (table?.columns ?? []).map(({ name, type }) => ({ text: `${head}.${name}`, kind: type }));
	return [...tables.filter((t) => t.schema.toLowerCase() === low).map(tableWord), ...columns];
}

/**
 * Columns of the tables that the query names.
 * @param {string} whole
 * @param {SchemaTable[]} tables
 */
function columnWords(whole, tables) {
	const named = tables.filter((t) => new RegExp(`\\b${t.schema}\\.${t.name}\\b`, "i").test(whole));
	/** @type {Map<string, Word>} */
	const words = new Map();
	for (const { name, type } of named.flatMap((t) => t.columns)) {
		if (!words.has(name))
			words.set(name, { text: name, kind: type });
	}
	return [...words.values()];
}

/**
 * @param {string} typed
 * @param {string} before
 * @param {string} whole
 * @param {SchemaTable[]} tables
 * @returns {Word[]}
 */
function candidates(typed, before, whole, tables) {
	if (typed.includes("."))
		return wordsAfterDot(typed, whole, tables);
	const tableNames = tables.map(tableWord);
	if (!typed)
		return /\b(from|join)\s+$/i.test(before) ? tableNames : [...columnWords(whole, tables), ...tableNames];
	return [
		...columnWords(whole, tables),
		...tableNames,
		...KEYWORDS.map((text) => ({ text, kind: "" })),
		...FUNCTIONS.map((text) => ({ text, kind: "function" })),
	];
}

/**
 * The words that may complete the end of `before`: first those that begin with it, then those that contain it.
 * @param {string} before
 * @param {string} whole
 * @param {SchemaTable[]} tables
 * @returns {{from: number, words: Word[]}}
 */
export function complete(before, whole, tables) {
	const typed = /[\w.]*$/.exec(before)?.[0] ?? "";
	const low = typed.toLowerCase();
	const begins = (/** @type {Word} */ word) => word.text.toLowerCase().startsWith(low);
	const contains = (/** @type {Word} */ word) => low.length > 1 && word.text.toLowerCase().includes(low);
	const all = candidates(typed, before, whole, tables);
	const words = [...all.filter(begins), ...all.filter((word) => !begins(word) && contains(word))];
	const others = words.filter((word) => word.text.toLowerCase() !== low);
	return { from: before.length - typed.length, words: others.slice(0, WORDS_MOST) };
}

/** The list of completions below the text that they complete. */
class Completion {
	/** @param {HTMLTextAreaElement} area @param {() => SchemaTable[]} tables */
	constructor(area, tables) {
		this.area = area;
		this.tables = tables;
		this.list = el("ul", {
			class: "completion",
			id: "sql-words",
			role: "listbox",
			"aria-label": "Names",
			hidden: true,
		});
		/** @type {{from: number, words: Word[]}} */
		this.offer = { from: 0, words: [] };
		this.at = 0;
	}

	get open() {
		return !this.list.hidden;
	}

	hide() {
		this.list.hidden = true;
		this.area.removeAttribute("aria-activedescendant");
	}

	/** @param {boolean} asked by a key: also where no word has begun */
	show(asked) {
		const before = this.area.value.slice(0, this.area.selectionStart);
		this.offer = complete(before, this.area.value, this.tables());
		if (!this.offer.words.length || (!asked && !/[\w.]$/.test(before))) {
			this.hide();
			return;
		}
		this.list.replaceChildren(...this.offer.words.map((word, i) => this.item(word, i)));
		this.place();
		this.list.hidden = false;
		this.choose(0);
	}

	/** @param {Word} word @param {number} i */
	item(word, i) {
		const onmousedown = (/** @type {Event} */ e) => {
			e.preventDefault();
			this.at = i;
			this.take();
		};
		const kind = el("small", { text: word.kind.toLowerCase() });
		return el("li", { role: "option", id: `sql-word-${i}`, onmousedown }, word.text, kind);
	}

	place() {
		const { area, list } = this;
		const lines = area.value.slice(0, this.offer.from).split("\n");
		const ink = inkOf(document.createElement("canvas"));
		ink.font = getComputedStyle(area).font;
		const wide = ink.measureText("0").width;
		const left = PAD + lines[lines.length - 1].length * wide - area.scrollLeft;
		list.style.left = `${Math.max(0, Math.min(left, area.clientWidth - LIST_WIDTH))}px`;
		list.style.top = `${PAD + lines.length * LINE - area.scrollTop}px`;
	}

	/** @param {number} at */
	choose(at) {
		const { length } = this.offer.words;
		this.at = (at + length) % length;
		[...this.list.children].forEach((one, i) => one.setAttribute("aria-selected", String(i === this.at)));
		this.area.setAttribute("aria-activedescendant", `sql-word-${this.at}`);
	}

	take() {
		const word = this.offer.words[this.at];
		if (word)
			this.area.setRangeText(word.text, this.offer.from, this.area.selectionStart, "end");
		this.hide();
	}
}

/**
 * @typedef {Object} EditorHooks
 * @property {() => SchemaTable[]} tables
 * @property {() => void} onrun
 * @property {(way: number) => void} onpast an earlier (1) or later (−1) query was asked for
 */

/**
 * @param {KeyboardEvent} e
 * @param {Completion} completion
 * @param {EditorHooks} hooks
 * @returns {boolean} whether the key was used
 */
function editorKey(e, completion, hooks) {
	const step = e.key === "ArrowDown" ? 1 : e.key === "ArrowUp" ? -1 : 0;
	if (e.key === "Enter" && (e.ctrlKey || e.metaKey)) {
		completion.hide();
		hooks.onrun();
	} else if (e.key === " " && e.ctrlKey) {
		completion.show(true);
	} else if (step && e.ctrlKey) {
		hooks.onpast(-step);
	} else if (completion.open && step) {
		completion.choose(completion.at + step);
	} else if (completion.open && (e.key === "Enter" || e.key === "Tab")) {
		completion.take();
	} else if (completion.open && e.key === "Escape") {
		completion.hide();
		e.stopPropagation();
	} else {
		return false;
	}
	return true;
}

/** @param {EditorHooks} hooks */
export function sqlEditor(hooks) {
	const area = el("textarea", {
		spellcheck: "false",
		autocapitalize: "off",
		autocomplete: "off",
		wrap: "off",
		"aria-label": "SQL",
		"aria-autocomplete": "list",
		"aria-controls": "sql-words",
	});
	const completion = new Completion(area, hooks.tables);
	area.addEventListener("input", () => completion.show(false));
	area.addEventListener("blur", () => completion.hide());
	area.addEventListener("keydown", (e) => {
		if (editorKey(e, completion, hooks))
			e.preventDefault();
	});
	const insert = (/** @type {string} */ text) => {
		area.focus();
		const before = area.value.slice(0, area.selectionStart);
		const gap = before && !/[\s(,]$/.test(before) ? " " : "";
		area.setRangeText(gap + text, area.selectionStart, area.selectionEnd, "end");
	};
	return { node: el("div", { class: "editor" }, area, completion.list), area, insert };
}
