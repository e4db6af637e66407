// A table whose headings are buttons: a click sorts by the column, a second one reverses the order.
import { el, swatch } from "./dom.js";

/**
 * @typedef {Object} TableColumn
 * @property {string} key of the row
 * @property {string} title
 * @property {(value: any, row: any) => string} [show] the text of a cell
 * @property {boolean} [text] left aligned, shortened with …
 * @property {boolean} [cut] right aligned, shortened with …
 * @property {boolean} [whole] the value itself is the tooltip, where show leaves something out
 * @property {boolean} [source] a swatch of row.source before the text
 * @property {(row: any) => number} [indent]
 * @property {(row: any) => Node} [node] an element in place of text
 * @property {(row: any) => string} [tone] a class of the cell
 *
 * @typedef {Object} TableOptions
 * @property {string} label
 * @property {string} [sort] key of the column
 * @property {boolean} [descending] true without it
 * @property {number} [limit] of rows
 * @property {boolean} [compact]
 * @property {(row: any) => void} [onclick]
 * @property {(row: any) => void} [ondblclick]
 */

/**
 * The order that a reader chose, by label; a view that is opened again with newer data keeps it.
 * @type {Map<string, {sort: string, descending: boolean}>}
 */
const chosenOrders = new Map();

/**
 * Missing values come last.
 * @param {any} a
 * @param {any} b
 */
function compareValues(a, b) {
	const noA = a === null || a === undefined;
	const noB = b === null || b === undefined;
	if (noA || noB)
		return Number(noA) - Number(noB);
	return typeof a === "string" ? a.localeCompare(b) : a - b;
}

/** @param {TableColumn} column @param {any} row */
function cell(column, row) {
	if (column.node)
		return el("td", { class: "picture" }, column.node(row));
	const value = row[column.key];
	const text = column.show ? column.show(value, row) : String(value ?? "–");
	const shortened = column.text || column.cut;
	const td = el("td", {
		class: column.text ? "text" : column.cut ? "cut" : column.tone?.(row),
		title: shortened ? `${column.whole ? value : text}${row.source ? ` (${row.source})` : ""}` : undefined,
	});
	if (column.indent)
		td.style.paddingLeft = `${8 + 14 * column.indent(row)}px`;
	if (column.source && row.source)
		td.append(swatch(row.source, text), el("span", { class: "sr", text: `${row.source}: ` }));
	td.append(text);
	return td;
}

/** @param {TableColumn[]} columns @param {any} row @param {TableOptions} options */
function bodyRow(columns, row, { onclick, ondblclick }) {
	const tr = el("tr", onclick ? { class: "click", tabindex: "0" } : {}, ...columns.map((c) => cell(c, row)));
	tr.addEventListener("click", () => onclick?.(row));
	tr.addEventListener("dblclick", () => ondblclick?.(row));
	tr.addEventListener("keydown", (e) => {
		if (e.key === "Enter")
			onclick?.(row);
	});
	return tr;
}

/**
 * @param {TableColumn[]} columns
 * @param {any[]} rows
 * @param {TableOptions} options
 */
export function table(columns, rows, options) {
	const order = chosenOrders.get(options.label) ?? {
		sort: options.sort ?? "",
		descending: options.descending ?? true,
	};
	const head = el("tr");
	const body = el("tbody");
	const heading = (/** @type {TableColumn} */ column) => {
		const { sort, descending } = order;
		const chosen = column.key === sort;
		const onclick = () => {
			order.descending = chosen ? !descending : !column.text;
			order.sort = column.key;
			chosenOrders.set(options.label, order);
			fill();
		};
		const text = chosen ? `${column.title} ${descending ? "▾" : "▴"}` : column.title;
		const aria = chosen ? (descending ? "descending" : "ascending") : "none";
		const button = el("button", { type: "button", text, onclick });
		return el("th", { scope: "col", class: column.text ? "text" : undefined, "aria-sort": aria }, button);
	};
	const sorted = () => {
		const { sort, descending } = order;
		if (!sort)
			return rows;
		return [...rows].sort((a, b) =>
			descending ? compareValues(b[sort], a[sort]) : compareValues(a[sort], b[sort]),
		);
	};
	const fill = () => {
		const shown = sorted().slice(0, options.limit ?? rows.length);
		body.replaceChildren(...shown.map((row) => bodyRow(columns, row, options)));
		head.replaceChildren(...columns.map(heading));
	};
	fill();
	const className = options.compact ? "compact" : undefined;
	return el("table", { "aria-label": options.label, class: className }, el("thead", {}, head), body);
}
