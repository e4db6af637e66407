// A field for SQL that completes names: tables, columns of the tables that are named, keywords and functions.
import { el } from "./util.js";

const WORDS = (
	"SELECT FROM WHERE GROUP BY ORDER BY LIMIT HAVING JOIN LEFT JOIN USING ON AS AND OR NOT IN IS NULL BETWEEN LIKE ILIKE CASE WHEN THEN ELSE END " +
	"DISTINCT WITH UNION ALL DESC ASC OVER PARTITION BY QUALIFY EXPLAIN SUMMARIZE VALUES FILTER EXCLUDE COLUMNS"
).split(" ");
const FUNCTIONS =
	"count sum avg min max median quantile_cont stddev mode list array_agg string_agg arg_max arg_min first last row_number lag lead rank date_trunc round floor ceil abs coalesce greatest least length lower upper substr replace regexp_extract regexp_matches unnest range list_reverse".split(
		" ",
	);
const LINE = 20;
const PAD = 9;
const MOST = 12;

/** @typedef {{text: string, kind: string}} Word */

/**
 * What may stand at the end of `before`; exported for its own sake.
 * @param {string} before
 * @param {string} whole
 * @param {any[]} tables
 * @returns {{from: number, words: Word[]}}
 */
export function complete(before, whole, tables) {
	const typed = /[\w.]*$/.exec(before)?.[0] ?? "";
	const from = before.length - typed.length;
	const low = typed.toLowerCase();
	const dot = typed.lastIndexOf(".");
	/** @type {Word[]} */ const all = [];
	const full = (/** @type {any} */ t) => `${t.schema}.${t.name}`;
	const named = tables.filter((t) => new RegExp(`\\b${t.schema}\\.${t.name}\\b`, "i").test(whole));
	if (dot >= 0) {
		const head = typed.slice(0, dot).toLowerCase();
		all.push(
			...tables.filter((t) => t.schema.toLowerCase() === head).map((t) => ({ text: full(t), kind: "table" })),
		);
		// An alias or the table itself: its columns.
		const alias = new RegExp(`([\\w]+\\.[\\w]+)\\s+(?:as\\s+)?${head.replace(/[^\w]/g, "")}\\b`, "i")
			.exec(whole)?.[1]
			.toLowerCase();
		const of = tables.find(
			(t) => full(t).toLowerCase() === alias || full(t).toLowerCase() === head || t.name.toLowerCase() === head,
		);
		all.push(
			...(of?.columns ?? []).map((/** @type {any} */ c) => ({
				text: `${typed.slice(0, dot)}.${c.name}`,
				kind: c.type,
			})),
		);
	} else if (typed) {
		const seen = new Set();
		for (const column of named.flatMap((t) => t.columns))
			if (!seen.has(column.name)) {
				seen.add(column.name);
				all.push({ text: column.name, kind: column.type });
			}
		all.push(
			...tables.map((t) => ({ text: full(t), kind: "table" })),
			...WORDS.map((text) => ({ text, kind: "" })),
			...FUNCTIONS.map((text) => ({ text, kind: "function" })),
		);
	} else {
		all.push(
			...(/\bfrom\s+$|\bjoin\s+$/i.test(before)
				? []
				: named.flatMap((t) => t.columns.map((/** @type {any} */ c) => ({ text: c.name, kind: c.type })))),
			...tables.map((t) => ({ text: full(t), kind: "table" })),
		);
	}
	const begins = all.filter((w) => w.text.toLowerCase().startsWith(low));
	const holds = all.filter(
		(w) => !w.text.toLowerCase().startsWith(low) && low.length > 1 && w.text.toLowerCase().includes(low),
	);
	return { from, words: [...begins, ...holds].filter((w) => w.text.toLowerCase() !== low).slice(0, MOST) };
}

/** @param {{tables: () => any[], onrun: () => void, onpast: (way: number) => void}} hooks */
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
	const list = el("ul", {
		class: "completion",
		id: "sql-words",
		role: "listbox",
		"aria-label": "Names",
		hidden: true,
	});
	/** @type {{from: number, words: Word[]}} */ let offer = { from: 0, words: [] };
	let at = 0;
	const hide = () => {
		list.hidden = true;
		area.removeAttribute("aria-activedescendant");
	};
	const mark = () => {
		[...list.children].forEach((one, i) => one.setAttribute("aria-selected", String(i === at)));
		area.setAttribute("aria-activedescendant", `sql-word-${at}`);
	};
	const take = () => {
		const word = offer.words[at];
		const end = area.selectionStart;
		if (word)
			area.setRangeText(word.text, offer.from, end, "end");
		hide();
	};
	const place = () => {
		const lines = area.value.slice(0, offer.from).split("\n");
		const ink = document.createElement("canvas").getContext("2d");
		if (ink)
			ink.font = getComputedStyle(area).font;
		const wide = ink ? ink.measureText("0").width : 8;
		list.style.left = `${Math.max(0, Math.min(PAD + lines[lines.length - 1].length * wide - area.scrollLeft, area.clientWidth - 240))}px`;
		list.style.top = `${PAD + lines.length * LINE - area.scrollTop}px`;
	};
	const show = (/** @type {boolean} */ asked) => {
		const before = area.value.slice(0, area.selectionStart);
		offer = complete(before, area.value, hooks.tables());
		if (!offer.words.length || (!asked && !/[\w.]$/.test(before))) {
			hide();
			return;
		}
		at = 0;
		list.replaceChildren(
			...offer.words.map((word, i) =>
				el(
					"li",
					{
						role: "option",
						id: `sql-word-${i}`,
						onmousedown: (/** @type {Event} */ e) => {
							e.preventDefault();
							at = i;
							take();
						},
					},
					word.text,
					el("small", { text: word.kind.toLowerCase() }),
				),
			),
		);
		place();
		list.hidden = false;
		mark();
	};
	area.addEventListener("input", () => show(false));
	area.addEventListener("blur", hide);
	area.addEventListener("keydown", (/** @type {KeyboardEvent} */ e) => {
		const open = !list.hidden;
		const step = e.key === "ArrowDown" ? 1 : e.key === "ArrowUp" ? -1 : 0;
		if (e.key === "Enter" && (e.ctrlKey || e.metaKey)) {
			hide();
			hooks.onrun();
		} else if (e.key === " " && e.ctrlKey) {
			show(true);
		} else if (step && e.ctrlKey) {
			hooks.onpast(-step);
		} else if (open && step) {
			at = (at + step + offer.words.length) % offer.words.length;
			mark();
		} else if (open && (e.key === "Enter" || e.key === "Tab")) {
			take();
		} else if (open && e.key === "Escape") {
			hide();
			e.stopPropagation();
		} else {
			return;
		}
		e.preventDefault();
	});
	const insert = (/** @type {string} */ text) => {
		area.focus();
		const before = area.value.slice(0, area.selectionStart);
		const gap = before && !/[\s(,]$/.test(before) ? " " : "";
		area.setRangeText(gap + text, area.selectionStart, area.selectionEnd, "end");
	};
	return { node: el("div", { class: "editor" }, area, list), area, insert };
}
