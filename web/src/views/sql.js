// The SQL tab: tables to the left, an editor, and the answer as a table or a chart.
import { getJson, post, postJson } from "../api.js";
import { barChart, lineChart } from "../charts.js";
import { el } from "../dom.js";
import { count, counted, duration } from "../format.js";
import { rankCondition, withCondition } from "../job/condition.js";
import { ranksLabel } from "../job/ranks.js";
import { table } from "../tables.js";
import { sqlEditor } from "./sql-editor.js";

/** @import { ApiFailure, Tab } from "../types.js" */
/** @import { Shell } from "../shell.js" */
/** @import { SchemaColumn, SchemaTable } from "./sql-editor.js" */

/**
 * The answer of /api/query.
 * @typedef {Object} Answer
 * @property {string} id
 * @property {SchemaColumn[]} columns
 * @property {any[][]} rows
 * @property {boolean} truncated
 * @property {number} elapsed_ns
 */

const FIRST_QUERY =
	"SELECT name, source, count, total_ns, p50_ns, p99_ns\nFROM trace.regions\nORDER BY total_ns DESC\nLIMIT 100";
const QUERIES_KEPT = 200;
const ROWS_SHOWN = 500;
const ROWS_MOST = 10000;
const BARS_MOST = 40;
const LINES_MOST = 5;
const RUN = "▶ Run Ctrl+Enter";
const NUMBER = /^(U?(TINY|SMALL|BIG|HUGE)?INT(EGER)?|DOUBLE|FLOAT|DECIMAL.*|REAL)$/;

/** Earlier queries, the newest first; the browser keeps them. */
const history = {
	/** @returns {string[]} */
	all() {
		try {
			return JSON.parse(localStorage.getItem("kymo-sql") ?? "[]");
		} catch {
			return [];
		}
	},
	/** @param {string} sql */
	add(sql) {
		const all = [sql, ...history.all().filter((one) => one !== sql)];
		try {
			localStorage.setItem("kymo-sql", JSON.stringify(all.slice(0, QUERIES_KEPT)));
		} catch {
			// not kept
		}
	},
};

/**
 * The query and its answer, while the page is open.
 * @type {{sql: string, answer: Answer|null, chart: boolean, condition: string}} condition: on ranks, in the query
 */
const memory = { sql: "", answer: null, chart: false, condition: "" };

/** @param {any} value @param {string} type */
function valueText(value, type) {
	if (value === null || value === undefined)
		return "–";
	if (typeof value === "number" && NUMBER.test(type))
		return Number.isInteger(value) ? value.toLocaleString("en-US") : String(Number(value.toPrecision(6)));
	return typeof value === "object" ? JSON.stringify(value) : String(value);
}

// ---- tables and columns

/** @param {SchemaColumn} column @param {(text: string) => void} insert */
function columnItem({ name, type, about }, insert) {
	const kind = el("small", { text: type.toLowerCase() });
	return el("li", {}, el("button", { title: about ?? "", onclick: () => insert(name) }, name, kind));
}

/** @param {SchemaTable} one @param {(text: string) => void} insert */
function tableItem(one, insert) {
	const columns = el("ul", { hidden: true }, ...one.columns.map((column) => columnItem(column, insert)));
	const more = el("button", {
		class: "more",
		"aria-label": `Columns of ${one.name}`,
		"aria-expanded": "false",
		text: "▸",
	});
	more.addEventListener("click", () => {
		columns.hidden = !columns.hidden;
		more.textContent = columns.hidden ? "▸" : "▾";
		more.setAttribute("aria-expanded", String(!columns.hidden));
	});
	const onclick = () => insert(`${one.schema}.${one.name}`);
	const name = el("button", { text: one.name, title: one.about ?? "", onclick });
	return [el("div", { class: "row" }, more, name), columns];
}

/** @param {SchemaTable[]} tables @param {(text: string) => void} insert */
function schemaList(tables, insert) {
	const list = el("nav", { class: "schema", "aria-label": "Tables" });
	let schema = "";
	for (const one of tables) {
		if (one.schema !== schema)
			list.append(el("h2", { text: one.schema }));
		schema = one.schema;
		list.append(...tableItem(one, insert));
	}
	return list;
}

// ---- answers

/** @param {Answer} answer */
const noRows = (answer) =>
	el("p", { class: "muted", text: `0 rows in ${duration(answer.elapsed_ns)}: no row of this recording matches.` });

/** @param {Answer} answer @param {HTMLElement} host */
function showTable(answer, host) {
	const columns = answer.columns.map(({ name, type }, i) => ({
		key: String(i),
		title: name,
		text: !NUMBER.test(type),
		show: (/** @type {any} */ value) => valueText(value, type),
	}));
	const rows = answer.rows.map((row) => ({ ...row }));
	// The id is part of the label so that an order chosen for another answer does not apply.
	host.replaceChildren(table(columns, rows, { label: `Result ${answer.id}`, compact: true, limit: ROWS_SHOWN }));
	if (!rows.length)
		host.append(noRows(answer));
	if (rows.length > ROWS_SHOWN) {
		const shown = `${count(ROWS_SHOWN)} of ${count(rows.length)} rows are shown`;
		const text = `${shown}. A click on a heading sorts all of them; CSV and Parquet hold all of them.`;
		host.append(el("p", { class: "muted", text }));
	}
}

/** @param {Answer} answer @param {HTMLElement} host @returns {() => void} closes the chart */
function showChart({ columns, rows, ...answer }, host) {
	const numbers = [...columns.keys()].filter((i) => NUMBER.test(columns[i].type));
	const names = columns.findIndex((column) => column.type === "VARCHAR");
	host.replaceChildren();
	if (!rows.length) {
		host.append(noRows({ columns, rows, ...answer }));
	} else if (!numbers.length) {
		host.append(el("p", { class: "muted", text: "A chart needs a column of numbers." }));
	} else if (names >= 0 || numbers.length === 1) {
		const nameOf = (/** @type {any[]} */ row, /** @type {number} */ i) => String(names >= 0 ? row[names] : i + 1);
		const bars = rows
			.slice(0, BARS_MOST)
			.map((row, i) => ({ name: nameOf(row, i), value: Number(row[numbers[0]]) }));
		host.append(barChart(bars, columns[numbers[0]].name));
	} else {
		return showLines(columns, rows, numbers, host);
	}
	return () => {};
}

/** @param {SchemaColumn[]} columns @param {any[][]} rows @param {number[]} numbers @param {HTMLElement} host */
function showLines(columns, rows, [x, ...ys], host) {
	const sorted = rows.filter((row) => row[x] !== null).sort((a, b) => a[x] - b[x]);
	const valuesOf = (/** @type {number} */ i) => sorted.map((row) => row[i]);
	const series = ys.slice(0, LINES_MOST).map((i) => ({ name: columns[i].name, values: valuesOf(i) }));
	return lineChart(host, valuesOf(x), series, columns[x].name, 360).close;
}

/** @param {Shell} shell @param {string} query @param {"csv"|"parquet"} format */
async function download(shell, query, format) {
	const answer = await post("query", { target: shell.source.id, sql: query, format, limit: 1000000, timeout_s: 60 });
	const link = el("a", { href: URL.createObjectURL(await answer.blob()), download: `kymo.${format}` });
	link.click();
	setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

class SqlView {
	/** @param {Shell} shell */
	constructor(shell) {
		this.shell = shell;
		/** @type {SchemaTable[]} */ this.tables = [];
		/** The id of the query that runs. @type {string|null} */ this.running = null;
		/** Index into the history; −1 is the draft. */
		this.ago = -1;
		this.draft = "";
		/** @type {() => void} */ this.closeChart = () => {};
		this.status = el("span", { class: "status", role: "status" });
		this.results = el("div", { class: "results", tabindex: "0", "aria-label": "Result" });
		this.limit = el(
			"select",
			{ "aria-label": "Time limit", title: "Time limit" },
			...[10, 60, 300].map((s) => el("option", { value: s, text: `${s} s` })),
		);
		this.go = this.button(RUN, () => (this.running ? this.cancel() : this.run()));
		this.editor = sqlEditor({
			tables: () => this.tables,
			onrun: () => this.run(),
			onpast: (way) => this.goBack(way),
		});
		this.ranksButton = this.button("", () => this.addRanks());
		this.asTable = this.button("Table", () => this.showAs(false));
		this.asChart = this.button("Chart", () => this.showAs(true));
		this.dialog = el("dialog", { class: "history", "aria-label": "Earlier queries" });
		this.side = el("div", { class: "schema" });
		this.node = el(
			"div",
			{ class: "sql" },
			this.side,
			el("div", { class: "console" }, this.editor.node, this.toolbar(), this.results, this.dialog),
		);
		this.loadSchema();
		this.start();
	}

	/** @param {string} text @param {() => void} onclick @param {string} [title] */
	button(text, onclick, title) {
		return el("button", { class: "button", text, onclick, title });
	}

	toolbar() {
		return el(
			"div",
			{ class: "tools" },
			this.go,
			this.button("History", () => this.showHistory()),
			this.limit,
			this.ranksButton,
			this.status,
			this.asTable,
			this.asChart,
			this.button("CSV", () => this.save("csv"), "All rows as csv"),
			this.button("Parquet", () => this.save("parquet"), "All rows as parquet"),
		);
	}

	start() {
		const { q } = this.shell.query;
		const moved = !q && this.followRanks();
		this.editor.area.value = q || memory.sql || FIRST_QUERY;
		this.fillRanks();
		this.say("read only · one SELECT");
		if (q || moved || !memory.answer) {
			queueMicrotask(() => this.run());
		} else {
			this.describe(memory.answer);
			this.draw();
		}
	}

	/**
	 * A query reads all ranks, unless it has a condition. The condition that was inserted here follows the choice.
	 * @returns {boolean} whether the query has changed
	 */
	followRanks() {
		const now = rankCondition(this.shell.ranks);
		const { condition, sql } = memory;
		if (!condition || now === condition || !sql.includes(condition))
			return false;
		memory.sql = sql.replace(condition, now || "true");
		memory.condition = now;
		return true;
	}

	fillRanks() {
		const { ranks } = this.shell;
		const condition = rankCondition(ranks);
		const there = Boolean(condition) && this.editor.area.value.includes(condition);
		this.ranksButton.hidden = !condition;
		this.ranksButton.disabled = there;
		this.ranksButton.textContent = there ? ranksLabel(ranks) : `All ranks are read: + WHERE ${condition}`;
		this.ranksButton.title = there
			? "The query has a condition on rank"
			: "SQL reads all ranks, whatever is chosen above. Adds a condition on rank to the query and runs it.";
	}

	addRanks() {
		memory.condition = rankCondition(this.shell.ranks);
		this.editor.area.value = withCondition(this.editor.area.value, memory.condition);
		this.fillRanks();
		this.run();
	}

	async loadSchema() {
		try {
			const found = await getJson("schema", { target: this.shell.source.id });
			this.tables = found.tables;
			this.side.replaceWith(schemaList(this.tables, this.editor.insert));
		} catch (why) {
			this.side.replaceChildren(el("p", { class: "bad", text: /** @type {Error} */ (why).message }));
		}
	}

	/** @param {string} text @param {boolean} [bad] */
	say(text, bad = false) {
		this.status.textContent = text;
		this.status.title = text;
		this.status.classList.toggle("bad", bad);
	}

	/** @param {Answer} answer */
	describe(answer) {
		const rows = `${answer.truncated ? "the first " : ""}${counted(answer.rows.length, "row")}`;
		this.say(`${rows} in ${duration(answer.elapsed_ns)} · read only · ${this.limit.value} s limit`);
	}

	/** @param {boolean} chart */
	showAs(chart) {
		memory.chart = chart;
		this.draw();
	}

	draw() {
		this.closeChart();
		this.closeChart = () => {};
		this.asTable.setAttribute("aria-pressed", String(!memory.chart));
		this.asChart.setAttribute("aria-pressed", String(memory.chart));
		if (!memory.answer)
			return;
		if (memory.chart)
			this.closeChart = showChart(memory.answer, this.results);
		else
			showTable(memory.answer, this.results);
	}

	/** @param {ApiFailure} why */
	fail(why) {
		this.closeChart();
		this.closeChart = () => {};
		this.say(why.status === 504 ? "Stopped" : "Failed", true);
		this.results.replaceChildren(
			el("pre", { text: why.message }),
			why.hint ? el("p", { class: "muted", text: why.hint }) : "",
		);
	}

	/** Asks again until the query has an answer: it may not have begun yet. */
	async cancel() {
		const id = this.running;
		while (id && this.running === id) {
			const { cancelled } = await postJson("cancel", { id }).catch(() => ({ cancelled: 0 }));
			await new Promise((done) => setTimeout(done, cancelled ? 2000 : 200));
		}
	}

	async run() {
		const sql = this.editor.area.value.trim();
		if (!sql || this.running)
			return;
		const id = `q${Date.now().toString(36)}${Math.random().toString(36).slice(2, 6)}`;
		this.running = id;
		this.ago = -1;
		this.go.textContent = "■ Cancel";
		this.say(`running · ${this.limit.value} s limit`);
		history.add(sql);
		this.fillRanks();
		const target = this.shell.source.id;
		try {
			/** @type {Answer} */
			const answer = await postJson("query", {
				target,
				sql,
				limit: ROWS_MOST,
				timeout_s: Number(this.limit.value),
				id,
			});
			memory.answer = answer;
			this.describe(answer);
			this.draw();
		} catch (why) {
			this.fail(/** @type {ApiFailure} */ (why));
		}
		this.running = null;
		this.go.textContent = RUN;
	}

	/** @param {"csv"|"parquet"} format */
	async save(format) {
		try {
			await download(this.shell, this.editor.area.value.trim(), format);
			this.say(`saved as kymo.${format}`);
		} catch (why) {
			this.fail(/** @type {ApiFailure} */ (why));
		}
	}

	/** @param {number} way 1: an earlier query, −1: a later one */
	goBack(way) {
		const all = history.all();
		const { area } = this.editor;
		if (this.ago < 0)
			this.draft = area.value;
		this.ago = Math.max(-1, Math.min(all.length - 1, this.ago + way));
		area.value = this.ago < 0 ? this.draft : all[this.ago];
	}

	showHistory() {
		const { area } = this.editor;
		const take = (/** @type {string} */ sql) => {
			area.value = sql;
			this.dialog.close();
			area.focus();
		};
		const queries = history
			.all()
			.map((sql) => el("button", { class: "past", text: sql, onclick: () => take(sql) }));
		this.dialog.replaceChildren(
			el("b", { text: "Earlier queries" }),
			...(queries.length ? queries : [el("p", { class: "muted", text: "None yet." })]),
			this.button("Close", () => this.dialog.close()),
		);
		this.dialog.showModal();
	}

	update() {} // an answer stays

	/** @param {KeyboardEvent} e */
	key(e) {
		if (e.key !== "/")
			return false;
		this.editor.area.focus();
		return true;
	}

	close() {
		this.closeChart();
		memory.sql = this.editor.area.value;
	}
}

/** @type {Tab} */
export const sql = {
	id: "sql",
	title: "SQL",
	has: () => true,
	open: (shell) => new SqlView(shell),
};
