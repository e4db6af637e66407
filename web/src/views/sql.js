// SQL on the recording: tables to the left, an editor, and the answer as a table or a chart.
import { getJson, post, postJson } from "../api.js";
import { barChart, lineChart } from "../charts.js";
import { sqlEditor } from "../sql-editor.js";
import { table } from "../tables.js";
import { count, duration, el } from "../util.js";

const FIRST =
	"SELECT name, source, count, total_ns, p50_ns, p99_ns\nFROM trace.regions\nORDER BY total_ns DESC\nLIMIT 100";
const KEPT = 200;
const SHOWN = 500;
const MOST = 10000;
const NUMBER = /^(U?(TINY|SMALL|BIG|HUGE)?INT(EGER)?|DOUBLE|FLOAT|DECIMAL.*|REAL)$/;

/** Earlier queries, the newest first; kept by the browser. */
const past = {
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
		try {
			localStorage.setItem(
				"kymo-sql",
				JSON.stringify([sql, ...past.all().filter((one) => one !== sql)].slice(0, KEPT)),
			);
		} catch {
			// not remembered, then
		}
	},
};

/**
 * What was typed and answered, while the page is open.
 * @type {{sql: string, answer: any, chart: boolean}}
 */
const memory = { sql: "", answer: null, chart: false };

/** @param {any} value @param {string} type */
function shown(value, type) {
	if (value === null || value === undefined)
		return "–";
	if (typeof value === "number" && NUMBER.test(type))
		return Number.isInteger(value) ? value.toLocaleString("en-US") : String(Number(value.toPrecision(6)));
	return typeof value === "object" ? JSON.stringify(value) : String(value);
}

/** @param {any[]} tables @param {(text: string) => void} insert */
function schemaList(tables, insert) {
	const list = el("nav", { class: "schema", "aria-label": "Tables" });
	let schema = "";
	for (const one of tables) {
		if (one.schema !== schema)
			list.append(el("h2", { text: (schema = one.schema) }));
		const columns = el(
			"ul",
			{ hidden: true },
			...one.columns.map((/** @type {any} */ c) =>
				el(
					"li",
					{},
					el(
						"button",
						{ title: c.about ?? "", onclick: () => insert(c.name) },
						c.name,
						el("small", { text: c.type.toLowerCase() }),
					),
				),
			),
		);
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
		list.append(
			el(
				"div",
				{ class: "row" },
				more,
				el("button", {
					text: one.name,
					title: one.about ?? "",
					onclick: () => insert(`${one.schema}.${one.name}`),
				}),
			),
			columns,
		);
	}
	return list;
}

/**
 * In the place of the rows, too: a head with nothing below it looks like an answer that has not come.
 * @param {any} answer
 */
const noRows = (answer) =>
	el("p", {
		class: "muted",
		text: `0 rows in ${duration(answer.elapsed_ns)}: the query ran, and nothing in this recording matches it.`,
	});

/** @param {any} answer @param {HTMLElement} host */
function asTable(answer, host) {
	const columns = answer.columns.map((/** @type {any} */ c, /** @type {number} */ i) => ({
		key: String(i),
		title: c.name,
		text: !NUMBER.test(c.type),
		show: (/** @type {any} */ v) => shown(v, c.type),
	}));
	// A new answer is sorted as SQL sorted it: the label makes it another table.
	host.replaceChildren(
		table(
			columns,
			answer.rows.map((/** @type {any[]} */ r) => ({ ...r })),
			{ label: `Result ${answer.id}`, compact: true, limit: SHOWN },
		),
	);
	if (!answer.rows.length)
		host.append(noRows(answer));
	if (answer.rows.length > SHOWN)
		host.append(
			el("p", {
				class: "muted",
				text: `${count(SHOWN)} of ${count(answer.rows.length)} rows are shown; a click on a head sorts all of them, CSV has them all.`,
			}),
		);
}

/** @param {any} answer @param {HTMLElement} host @returns {() => void} */
function asChart(answer, host) {
	const numbers = answer.columns
		.map((/** @type {any} */ c, /** @type {number} */ i) => (NUMBER.test(c.type) ? i : -1))
		.filter((/** @type {number} */ i) => i >= 0);
	host.replaceChildren();
	if (!answer.rows.length || !numbers.length) {
		host.append(
			answer.rows.length
				? el("p", { class: "muted", text: "A chart needs a column of numbers." })
				: noRows(answer),
		);
		return () => {};
	}
	const text = answer.columns.findIndex((/** @type {any} */ c) => c.type === "VARCHAR");
	if (text >= 0 || numbers.length === 1) {
		host.append(
			barChart(
				answer.rows
					.slice(0, 40)
					.map((/** @type {any[]} */ r, /** @type {number} */ i) => ({
						name: text >= 0 ? String(r[text]) : String(i + 1),
						value: Number(r[numbers[0]]),
					})),
				answer.columns[numbers[0]].name,
			),
		);
		return () => {};
	}
	const [x, ...ys] = numbers;
	const rows = [...answer.rows].filter((r) => r[x] !== null).sort((a, b) => a[x] - b[x]);
	return lineChart(
		host,
		rows.map((r) => r[x]),
		ys
			.slice(0, 5)
			.map((/** @type {number} */ i) => ({ name: answer.columns[i].name, values: rows.map((r) => r[i]) })),
		answer.columns[x].name,
		360,
	).close;
}

/** @param {any} shell @param {string} query @param {"csv"|"parquet"} format */
async function download(shell, query, format) {
	const answer = await post("query", { target: shell.source.id, sql: query, format, limit: 1000000, timeout_s: 60 });
	const link = el("a", { href: URL.createObjectURL(await answer.blob()), download: `kymo.${format}` });
	link.click();
	setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

/** @type {import("../shell.js").Tab} */
export const sql = {
	id: "sql",
	title: "SQL",
	has: () => true,
	open(/** @type {any} */ shell) {
		/** @type {any[]} */ let tables = [];
		/** @type {string|null} */ let running = null;
		let ago = -1;
		let draft = "";
		/** @type {() => void} */ let closeChart = () => {};
		const status = el("span", { class: "status", role: "status" });
		const results = el("div", { class: "results", tabindex: "0", "aria-label": "Result" });
		const limit = el(
			"select",
			{ "aria-label": "Time limit", title: "Time limit" },
			...[10, 60, 300].map((s) => el("option", { value: s, text: `${s} s` })),
		);
		const go = el("button", {
			class: "button",
			text: "▶ Run Ctrl+Enter",
			onclick: () => (running ? cancel() : run()),
		});
		const editor = sqlEditor({
			tables: () => tables,
			onrun: () => run(),
			onpast: (way) => {
				const all = past.all();
				if (ago < 0)
					draft = editor.area.value;
				ago = Math.max(-1, Math.min(all.length - 1, ago + way));
				editor.area.value = ago < 0 ? draft : all[ago];
			},
		});
		const say = (/** @type {string} */ text, bad = false) => {
			status.textContent = status.title = text;
			status.classList.toggle("bad", bad);
		};
		const tell = () =>
			say(
				`${memory.answer.truncated ? "the first " : ""}${count(memory.answer.rows.length)} row${memory.answer.rows.length === 1 ? "" : "s"} in ${duration(memory.answer.elapsed_ns)} · read only · ${limit.value} s limit`,
			);
		const asked = el("button", {
			class: "button",
			"aria-pressed": String(!memory.chart),
			text: "Table",
			onclick: () => {
				memory.chart = false;
				draw();
			},
		});
		const charted = el("button", {
			class: "button",
			"aria-pressed": String(memory.chart),
			text: "Chart",
			onclick: () => {
				memory.chart = true;
				draw();
			},
		});
		const draw = () => {
			closeChart();
			closeChart = () => {};
			asked.setAttribute("aria-pressed", String(!memory.chart));
			charted.setAttribute("aria-pressed", String(memory.chart));
			if (!memory.answer)
				return;
			if (memory.chart)
				closeChart = asChart(memory.answer, results);
			else
				asTable(memory.answer, results);
		};
		const failed = (/** @type {any} */ why) => {
			closeChart();
			closeChart = () => {};
			say(why.status === 504 ? "Stopped" : "Not answered", true);
			results.replaceChildren(
				el("pre", { text: why.message }),
				why.hint ? el("p", { class: "muted", text: why.hint }) : "",
			);
		};
		const cancel = async () => {
			// It may not have begun yet: then it is asked again, until it has an answer.
			for (const mine = running; running && running === mine; ) {
				const { cancelled } = await postJson("cancel", { id: mine }).catch(() => ({ cancelled: 0 }));
				await new Promise((done) => setTimeout(done, cancelled ? 2000 : 200));
			}
		};
		const run = async () => {
			const query = editor.area.value.trim();
			if (!query || running)
				return;
			running = `q${Date.now().toString(36)}${Math.random().toString(36).slice(2, 6)}`;
			const mine = running;
			ago = -1;
			go.textContent = "■ Cancel";
			say(`running · ${limit.value} s limit`);
			past.add(query);
			try {
				memory.answer = await postJson("query", {
					target: shell.source.id,
					sql: query,
					limit: MOST,
					timeout_s: Number(limit.value),
					id: mine,
				});
				tell();
				draw();
			} catch (why) {
				failed(why);
			}
			running = null;
			go.textContent = "▶ Run Ctrl+Enter";
		};
		const save = (/** @type {"csv"|"parquet"} */ format) =>
			el("button", {
				class: "button",
				text: format === "csv" ? "CSV" : "Parquet",
				title: `All rows as ${format}`,
				onclick: () =>
					download(shell, editor.area.value.trim(), format).then(
						() => say(`saved as kymo.${format}`),
						failed,
					),
			});
		const history = el("dialog", { class: "history", "aria-label": "Earlier queries" });
		const showHistory = () => {
			const all = past.all();
			history.replaceChildren(
				el("b", { text: "Earlier queries" }),
				...(all.length
					? all.map((one) =>
							el("button", {
								class: "past",
								text: one,
								onclick: () => {
									editor.area.value = one;
									history.close();
									editor.area.focus();
								},
							}),
						)
					: [el("p", { class: "muted", text: "None yet." })]),
				el("button", { class: "button", text: "Close", onclick: () => history.close() }),
			);
			history.showModal();
		};
		const side = el("div", { class: "schema" }, el("p", { class: "muted", text: "" }));
		getJson("schema", { target: shell.source.id }).then(
			(found) => {
				tables = found.tables;
				node.firstChild?.replaceWith(schemaList(tables, editor.insert));
			},
			(why) => side.replaceChildren(el("p", { class: "bad", text: why.message })),
		);
		const node = el(
			"div",
			{ class: "sql" },
			side,
			el(
				"div",
				{ class: "console" },
				editor.node,
				el(
					"div",
					{ class: "tools" },
					go,
					el("button", { class: "button", text: "History", onclick: showHistory }),
					limit,
					status,
					asked,
					charted,
					save("csv"),
					save("parquet"),
				),
				results,
				history,
			),
		);
		editor.area.value = shell.query.q || memory.sql || FIRST;
		say("read only · one SELECT");
		if (shell.query.q || !memory.answer)
			queueMicrotask(run);
		else {
			tell();
			draw();
		}
		return {
			node,
			update: () => {},
			close: () => {
				closeChart();
				memory.sql = editor.area.value;
			},
			key: (e) => {
				if (e.key !== "/")
					return false;
				editor.area.focus();
				return true;
			},
		};
	},
};
