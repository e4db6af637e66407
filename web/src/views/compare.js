// Two recordings side by side: the verdict, what changed and how sure that is, the flame graph by what changed. The
// document is what `kymo compare -f json` prints; a refusal is one, too.
import { difference, differenceLegend, signed } from "../flame-diff.js";
import { FlameGraph } from "../flame.js";
import { table } from "../tables.js";
import { bytes, count, duration, el, percent } from "../util.js";

const ROWS_MOST = 1000;

/**
 * @typedef {Object} Row
 * @property {"step"|"region"|"module"} kind
 * @property {string} name
 * @property {string} source
 * @property {number|null} a
 * @property {number|null} b
 * @property {number|null} ratio
 * @property {number|null} lo
 * @property {number|null} hi
 * @property {number|null} p_corrected
 * @property {number|null} could_see
 * @property {boolean} significant
 *
 * @typedef {Object} Hooks
 * @property {string} [show] "regions", "modules" or "flame"
 * @property {(show: string) => void} [onshow] another one was
 * chosen; without it the view changes by itself
 * @property {(text: string) => void} [say] reads it out
 * @property {Element} [pick] what chooses A and B; without it their names stand there
 */

const last = (/** @type {string} */ path) => path.replace(/\/+$/, "").split("/").pop() || path;
const times = (/** @type {number|null} */ ratio) =>
	ratio === null ? "–" : ratio >= 100 ? count(ratio) : ratio.toFixed(3);
const change = (/** @type {Row} */ row) => (row.b ?? 0) - (row.a ?? 0);
const toneOf = (/** @type {Row} */ row) => (!row.significant ? "muted" : change(row) > 0 ? "slower" : "faster");

/**
 * The ratio in words; what was not there on one side has none.
 * @param {Row} row
 */
function ratioText(row) {
	if (row.a === null && row.b === null)
		return "–";
	if (!row.a)
		return row.significant ? "▲ new" : "new";
	if (!row.b)
		return row.significant ? "▼ gone" : "gone";
	return `${row.significant ? (change(row) > 0 ? "▲ " : "▼ ") : ""}${times(row.ratio)}`;
}

const intervalText = (/** @type {Row} */ row) =>
	row.lo === null || row.hi === null ? "–" : `${times(row.lo)} – ${times(row.hi)}`;

/**
 * How far the bars reach to either side of 1, as a logarithm: what is real fits; what is noise may be cut.
 * @param {Row[]} rows
 */
function reach(rows) {
	const sure = rows.filter((row) => row.significant || row.kind === "step");
	const ends = sure
		.flatMap((row) => [row.lo, row.hi])
		.filter((x) => x)
		.map((x) => Math.abs(Math.log(/** @type {number} */ (x))));
	return Math.min(Math.log(4), Math.max(Math.log(1.02), 1.15 * Math.max(0, ...ends)));
}

/**
 * The interval as a bar with the ratio as a dot, around the line of 1.
 * @param {Row} row
 * @param {number} far
 */
function bar(row, far) {
	const box = el("span", { class: `interval ${toneOf(row)}`, "aria-hidden": "true" }, el("i", { class: "one" }));
	if (!row.lo || !row.hi || !row.ratio)
		return box;
	const at = (/** @type {number} */ x) => Math.max(0, Math.min(100, 50 + (50 * Math.log(x)) / far));
	const from = at(row.lo);
	const to = at(row.hi);
	const line = el("i", { class: "line" });
	const dot = el("i", { class: "dot" });
	line.style.left = `${from}%`;
	line.style.width = `${to - from}%`;
	dot.style.left = `${at(row.ratio)}%`;
	// Cut where the picture ends; the numbers beside it say how far it goes.
	box.append(line, Math.abs(Math.log(row.ratio)) <= far ? dot : "");
	box.classList.toggle("cut-low", Math.log(row.lo) < -far);
	box.classList.toggle("cut-high", Math.log(row.hi) > far);
	return box;
}

/** @param {any} doc @param {Row[]} rows @param {string} find */
function rowTable(doc, rows, find) {
	const far = reach(rows);
	const per = doc.unit === "run" ? "run" : "step";
	const end = Math.exp(far).toFixed(2);
	const wanted = find.toLowerCase();
	const shown = rows
		.filter((row) => row.name.toLowerCase().includes(wanted))
		.map((row) => ({ ...row, change: change(row), source: row.source === "module" ? "torch" : row.source }));
	return table(
		[
			{
				key: "name",
				title: rows.some((row) => row.kind === "module")
					? "Module and stage"
					: doc.time === "total"
						? "Region, with what is inside"
						: "Region, itself",
				text: true,
				source: true,
			},
			{ key: "a", title: "A", show: duration },
			{ key: "b", title: "B", show: duration },
			{
				key: "change",
				title: `Change per ${rows.some((row) => row.kind === "module") ? "call" : per}`,
				show: (v) => signed(v),
				tone: toneOf,
			},
			{ key: "ratio", title: "B ÷ A", show: (_, row) => ratioText(row), tone: (row) => `strong ${toneOf(row)}` },
			{ key: "lo", title: "95 % interval", show: (_, row) => intervalText(row) },
			{ key: "hi", title: `${(1 / Number(end)).toFixed(2)} to ${end}`, node: (row) => bar(row, far) },
			{ key: "could_see", title: "Could see", show: percent, tone: () => "muted" },
		],
		shown,
		{ label: "What changed", limit: ROWS_MOST },
	);
}

/* ---- flame ---- */

/**
 * By what changed; grey, too, what cannot be told from noise.
 * @param {any} doc
 * @param {"both"|"a"|"b"} width
 */
function flameOf(doc, width) {
	const key = (/** @type {string} */ source, /** @type {string} */ name) => `${source}\n${name}`;
	const real = new Set(
		doc.rows
			.filter((/** @type {Row} */ r) => r.kind === "region" && r.significant)
			.map((/** @type {Row} */ r) => key(r.source, r.name)),
	);
	return difference(doc.flame, { width, sure: (source, name) => real.has(key(source, name)), a: "in A", b: "in B" });
}

/** @param {any} doc @param {Hooks} hooks */
function flamePart(doc, hooks) {
	const said = el("span", { class: "muted", role: "status" });
	const stage = el("div", { class: "stage" });
	const find = el("input", { type: "search", placeholder: "Search   /", "aria-label": "Search frames" });
	const width = el(
		"select",
		{ "aria-label": "Width of a frame" },
		...[
			["both", "Width: mean of A and B"],
			["a", "Width: time in A"],
			["b", "Width: time in B"],
		].map(([value, text]) => el("option", { value, text })),
	);
	const graph = new FlameGraph(stage, {
		onsay: (text) => {
			said.textContent = text;
		},
	});
	width.addEventListener("change", () => graph.show(flameOf(doc, width.value)));
	find.addEventListener("input", () => graph.search(find.value));
	graph.show(flameOf(doc, "both"));
	/** @type {Record<string, "up"|"down"|"left"|"right">} */
	const arrows = { ArrowUp: "up", ArrowDown: "down", ArrowLeft: "left", ArrowRight: "right" };
	return {
		node: el(
			"section",
			{ class: "card flames" },
			el(
				"div",
				{ class: "bar" },
				find,
				said,
				width,
				el("span", { class: "muted hint-keys", text: "time per step" }),
				differenceLegend("the same, or noise"),
			),
			stage,
		),
		find,
		close: () => graph.close(),
		theme: () => graph.draw(),
		key(/** @type {KeyboardEvent} */ e) {
			if (arrows[e.key]) {
				hooks.say?.(graph.move(arrows[e.key]));
				return true;
			}
			if (e.key === "Enter" && e.target === graph.canvas) {
				graph.zoomTo(graph.focus);
				return true;
			}
			return e.key === "Escape" && graph.back();
		},
	};
}

/* ---- the page ---- */

/**
 * The runs of one side in a few words.
 * @param {any} doc
 * @param {"a"|"b"} side
 */
function sideText(doc, side) {
	const runs = doc.runs.filter((/** @type {any} */ run) => run.side === side);
	const steps = runs.reduce((/** @type {number} */ n, /** @type {any} */ r) => n + r.steps, 0);
	const warm = runs.reduce((/** @type {number} */ n, /** @type {any} */ r) => n + r.warmup, 0);
	return {
		title: runs.map((/** @type {any} */ r) => `${r.path}\n${r.command}`).join("\n"),
		name: runs.length === 1 ? last(runs[0].path) : `${runs.length} runs`,
		steps: `${count(steps)} steps${warm ? ` (${count(warm)} of warm-up left out)` : ""}`,
	};
}

/** @param {any} doc */
function verdict(doc) {
	if (!doc.sentence)
		return el(
			"section",
			{ class: "verdict refused" },
			el("h1", { text: "These cannot be compared." }),
			el("p", {}, el("b", { text: "Because: " }), `${doc.why}.`),
			el("p", {}, "To compare them all the same: ", el("code", { text: "kymo compare --anyway" })),
		);
	const step = doc.rows[0];
	const kind = !step.significant ? "unsure" : change(step) > 0 ? "" : "fine";
	return el(
		"section",
		{ class: `verdict ${kind}` },
		el("h1", { text: doc.sentence }),
		el("p", {}, el("b", { text: "Because: " }), doc.because),
		...doc.notes.map((/** @type {string} */ text) =>
			el("p", { class: text.startsWith("--anyway") ? "warn" : undefined, text }),
		),
	);
}

/** @param {any} doc */
function figures(doc) {
	const step = doc.rows[0];
	const differ = doc.rows.filter((/** @type {Row} */ r) => r.significant).length;
	const pair = (/** @type {any} */ of, /** @type {(v: any) => string} */ show) =>
		of.a === null || of.b === null ? "–" : `${show(of.a)} → ${show(of.b)}`;
	const by = (/** @type {any} */ of) => (of.ratio === null ? "not recorded" : `× ${of.ratio.toFixed(3)}`);
	const rate = (/** @type {number} */ v) => (v >= 100 ? count(v) : v.toPrecision(3));
	/** @type {[string, string, string, string][]} */
	const list = [
		["Step, mean", pair(step, duration), intervalText(step) === "–" ? "" : `× ${times(step.ratio)}`, toneOf(step)],
		["Steps per second", pair(doc.throughput, rate), by(doc.throughput), ""],
		["Peak memory", pair(doc.memory, bytes), by(doc.memory), ""],
		["Differ", count(differ), `of ${count(doc.rows.length)} tested`, ""],
		["Could have seen", percent(doc.could_see), "of a step", ""],
	];
	return el(
		"div",
		{ class: "figures five" },
		...list.map(([label, value, note, tone]) =>
			el(
				"div",
				{ class: "figure", title: `${label}: ${value} ${note}` },
				el("div", { class: "label", text: label }),
				el("span", { class: `value ${tone === "muted" ? "" : tone}`, text: value }),
				el("span", { class: "note", text: note }),
			),
		),
	);
}

/** @param {any} doc @param {Hooks} [hooks] @returns {import("../shell.js").View} */
export function comparison(doc, hooks = {}) {
	const node = el("div", { class: "page compare" });
	const chips = el("div", { class: "chips" });
	const body = el("div", { class: "compared" });
	const side = (/** @type {"a"|"b"} */ which) => {
		const said = sideText(doc, which);
		return el(
			"span",
			{ class: "button side", title: said.title },
			el("b", { text: which.toUpperCase() }),
			` ${said.name}`,
			el("span", { class: "muted", text: ` ${said.steps}` }),
		);
	};
	if (!doc.sentence) {
		chips.append(hooks.pick ?? el("span", { class: "chips" }, side("a"), side("b")));
		body.append(verdict(doc));
		node.append(chips, body);
		return { node };
	}
	/** @type {Row[]} */ const all = doc.rows;
	const modules = all.filter((row) => row.kind === "module");
	const regions = all.filter((row) => row.kind !== "module");
	/** @type {any} */ let part = null;
	const openTable = (/** @type {Row[]} */ rows) => {
		const find = el("input", { type: "search", placeholder: "Find   /", "aria-label": "Find a name" });
		const place = el("div");
		const more = rows.length > ROWS_MOST ? `; the first ${count(ROWS_MOST)} of ${count(rows.length)}` : "";
		const fill = () => place.replaceChildren(rowTable(doc, rows, find.value));
		find.addEventListener("input", fill);
		fill();
		return {
			find,
			node: el(
				"section",
				{ class: "card" },
				el(
					"div",
					{ class: "headline" },
					el(
						"h2",
						{ text: "By change of time" },
						el("span", {
							text: `time in B ÷ time in A; bar = 95 % interval; grey = cannot be told from noise; could see = what would have been found 95 times in 100${more}`,
						}),
					),
					find,
				),
				place,
			),
		};
	};
	const show = (/** @type {string} */ which) => {
		part?.close?.();
		part = which === "flame" ? flamePart(doc, hooks) : openTable(which === "modules" ? modules : regions);
		body.replaceChildren(part.node);
		for (const button of chips.querySelectorAll("[aria-pressed]"))
			button.setAttribute("aria-pressed", String(button.id === `show-${which}`));
	};
	const choice = (/** @type {string} */ id, /** @type {string} */ title, /** @type {boolean} */ there) =>
		there
			? el("button", {
					class: "button",
					id: `show-${id}`,
					"aria-pressed": "false",
					text: title,
					onclick: () => (hooks.onshow ? hooks.onshow(id) : show(id)),
				})
			: null;
	chips.append(
		hooks.pick ?? el("span", { class: "chips" }, side("a"), side("b")),
		el(
			"span",
			{ class: "chips" },
			...[
				choice("regions", `Regions ${count(regions.length)}`, true),
				choice("modules", `Modules ${count(modules.length)}`, modules.length > 0),
				choice("flame", "Flame difference", doc.flame.name.length > 0),
			].filter((c) => c),
		),
	);
	node.append(chips, verdict(doc), figures(doc), body);
	show(
		hooks.show === "flame" && doc.flame.name.length
			? "flame"
			: hooks.show === "modules" && modules.length
				? "modules"
				: "regions",
	);
	return {
		node,
		close: () => part?.close?.(),
		theme: () => part?.theme?.(),
		key: (e) => {
			if (e.key === "/") {
				part?.find?.focus();
				return true;
			}
			return Boolean(part?.key?.(e));
		},
	};
}

/** @type {import("../shell.js").Tab} */
export const compare = {
	id: "compare",
	title: "Compare",
	has: (source) => Boolean(source.data().compare),
	open: (shell) =>
		comparison(shell.source.data().compare, {
			show: shell.query.show,
			say: (text) => shell.say(text),
			onshow: (show) => shell.go("compare", { show }),
		}),
};
