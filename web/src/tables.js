// A table whose heads are buttons: a click sorts, a second one turns it round.
import { el, swatch } from "./util.js";

/**
 * @typedef {Object} TableColumn
 * @property {string} key
 * @property {string} title
 * @property {(value: any, row: any) => string} [show]
 * @property {boolean} [text] left, cut with …
 * @property {boolean} [source] a swatch of row.source before it
 * @property {(row: any) => number} [indent]
 * @property {boolean} [cut] right, cut with …
 * @property {(row: any) => Node} [node] a picture in place of text
 * @property {(row: any) => string} [tone] a class
 */

/**
 * How each table was sorted by hand; a view that is opened again with newer figures stays sorted so.
 * @type {Map<string, {sort: string, descending: boolean}>}
 */
const remembered = new Map();

/** @param {any} a @param {any} b */
function order(a, b) {
	if (a === null || a === undefined)
		return b === null || b === undefined ? 0 : 1;
	if (b === null || b === undefined)
		return -1;
	return typeof a === "string" ? a.localeCompare(b) : a - b;
}

/**
 * @param {TableColumn[]} columns
 * @param {any[]} rows
 * @param {{sort?: string, descending?: boolean, limit?: number, label: string, compact?: boolean, onclick?: (row: any)
 * => void, ondblclick?: (row: any) => void}} options
 * @returns {HTMLTableElement}
 */
export function table(columns, rows, options) {
	const kept = remembered.get(options.label);
	let sort = kept?.sort ?? options.sort ?? "";
	let descending = kept?.descending ?? options.descending ?? true;
	const head = el("tr");
	const body = el("tbody");
	const made = el(
		"table",
		{ "aria-label": options.label, class: options.compact ? "compact" : undefined },
		el("thead", {}, head),
		body,
	);
	const cell = (/** @type {TableColumn} */ column, /** @type {any} */ row) => {
		if (column.node)
			return el("td", { class: "picture" }, column.node(row));
		const value = row[column.key];
		const said = column.show ? column.show(value, row) : String(value ?? "–");
		const td = el("td", {
			class: column.text ? "text" : column.cut ? "cut" : column.tone?.(row),
			title: column.text || column.cut ? `${said}${row.source ? ` (${row.source})` : ""}` : undefined,
		});
		if (column.indent)
			td.style.paddingLeft = `${8 + 14 * column.indent(row)}px`;
		if (column.source && row.source)
			td.append(swatch(row.source, said), el("span", { class: "sr", text: `${row.source}: ` }));
		td.append(said);
		return td;
	};
	const fill = () => {
		const sorted = sort
			? [...rows].sort((a, b) => (descending ? order(b[sort], a[sort]) : order(a[sort], b[sort])))
			: rows;
		body.replaceChildren(
			...sorted.slice(0, options.limit ?? rows.length).map((row) => {
				const tr = el(
					"tr",
					options.onclick ? { class: "click", tabindex: "0" } : {},
					...columns.map((c) => cell(c, row)),
				);
				tr.addEventListener("click", () => options.onclick?.(row));
				tr.addEventListener("dblclick", () => options.ondblclick?.(row));
				tr.addEventListener("keydown", (/** @type {KeyboardEvent} */ e) => {
					if (e.key === "Enter")
						options.onclick?.(row);
				});
				return tr;
			}),
		);
		head.replaceChildren(
			...columns.map((column) => {
				const chosen = column.key === sort;
				return el(
					"th",
					{
						scope: "col",
						class: column.text ? "text" : undefined,
						"aria-sort": chosen ? (descending ? "descending" : "ascending") : "none",
					},
					el("button", {
						type: "button",
						text: chosen ? `${column.title} ${descending ? "▾" : "▴"}` : column.title,
						onclick: () => {
							descending = chosen ? !descending : !column.text;
							sort = column.key;
							remembered.set(options.label, { sort, descending });
							fill();
						},
					}),
				);
			}),
		);
	};
	fill();
	return made;
}
