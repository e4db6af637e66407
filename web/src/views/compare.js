// A comparison of two recordings: the verdict, differences with their intervals, and a flame graph of the changes. The
// document is what `kymo compare -f json` prints, refusals included.
import { el, figure } from "../dom.js";
import { difference, differenceLegend, signed } from "../flame-diff.js";
import { FlameGraph } from "../flame.js";
import { bytes, count, duration, percent } from "../format.js";
import { fileName } from "../runs.js";
import { table } from "../tables.js";

/** @import { ComparedRun, ComparedValue, Comparison, ComparisonRow, Tab, View } from "../types.js" */
/** @import { TableColumn } from "../tables.js" */

/**
 * @typedef {"regions"|"modules"|"flame"} PartName
 *
 * @typedef {Object} Hooks
 * @property {string} [show] the part that is shown
 * @property {(show: PartName) => void} [onshow] another part was chosen; without it the view changes by itself
 * @property {(text: string) => void} [announce] for screen readers
 * @property {Element} [pick] chooses A and B; without it their names are shown
 *
 * @typedef {View & {find?: HTMLInputElement}} Part
 */

const ROWS_MOST = 1000;
const LEGEND =
	"B ÷ A of the time; bar: 95 % interval; grey: not significant; detectable: the change found in 95 of 100 tests";

/** @param {number|null} ratio */
function times(ratio) {
	if (ratio === null)
		return "–";
	return ratio >= 100 ? count(ratio) : ratio.toFixed(3);
}

/** @param {ComparisonRow} row */
const changeOf = (row) => (row.b ?? 0) - (row.a ?? 0);
/** @param {ComparisonRow} row */
const differs = (row) => row.significant || row.apart;
/** @param {ComparisonRow} row */
const toneOf = (row) => (!differs(row) ? "muted" : changeOf(row) > 0 ? "slower" : "faster");

/**
 * The ratio, or "new" or "gone" if one side has no time.
 * @param {ComparisonRow} row
 */
function ratioText(row) {
	const arrow = differs(row) ? (changeOf(row) > 0 ? "▲ " : "▼ ") : "";
	if (row.a === null && row.b === null)
		return "–";
	if (!row.a)
		return `${arrow}new`;
	return row.b ? `${arrow}${times(row.ratio)}` : `${arrow}gone`;
}

/** @param {ComparisonRow} row */
const intervalText = (row) => (row.lo === null || row.hi === null ? "–" : `${times(row.lo)} – ${times(row.hi)}`);

/**
 * How far the bars reach to either side of 1, as a logarithm. Significant intervals fit; others may be cut.
 * @param {ComparisonRow[]} rows
 */
function reachOf(rows) {
	const ends = rows
		.filter((row) => differs(row) || row.kind === "step")
		.flatMap((row) => [row.lo, row.hi])
		.map((end) => (end ? Math.abs(Math.log(end)) : 0));
	return Math.min(Math.log(4), Math.max(Math.log(1.02), 1.15 * Math.max(0, ...ends)));
}

/**
 * The interval as a bar with the ratio as a dot, around the line of 1.
 * @param {ComparisonRow} row
 * @param {number} reach
 */
function intervalBar(row, reach) {
	const box = el("span", { class: `interval ${toneOf(row)}`, "aria-hidden": "true" }, el("i", { class: "one" }));
	if (!row.lo || !row.hi || !row.ratio)
		return box;
	const at = (/** @type {number} */ x) => Math.max(0, Math.min(100, 50 + (50 * Math.log(x)) / reach));
	const line = el("i", { class: "line" });
	const dot = el("i", { class: "dot" });
	line.style.left = `${at(row.lo)}%`;
	line.style.width = `${at(row.hi) - at(row.lo)}%`;
	dot.style.left = `${at(row.ratio)}%`;
	box.append(line, Math.abs(Math.log(row.ratio)) <= reach ? dot : "");
	box.classList.toggle("cut-low", Math.log(row.lo) < -reach);
	box.classList.toggle("cut-high", Math.log(row.hi) > reach);
	return box;
}

/** @param {Comparison} doc @param {boolean} modules */
function nameTitle(doc, modules) {
	if (modules)
		return "Module and stage";
	return doc.time === "total" ? "Region, total time" : "Region, self time";
}

/** @param {Comparison} doc @param {ComparisonRow[]} rows @param {string} find */
function rowTable(doc, rows, find) {
	const reach = reachOf(rows);
	const end = Math.exp(reach).toFixed(2);
	const modules = rows.some((row) => row.kind === "module");
	const per = modules ? "call" : doc.unit === "run" ? "run" : "step";
	const wanted = find.toLowerCase();
	const shown = rows
		.filter((row) => row.name.toLowerCase().includes(wanted))
		.map((row) => ({ ...row, change: changeOf(row), source: row.source === "module" ? "torch" : row.source }));
	/** @type {TableColumn[]} */
	const columns = [
		{ key: "name", title: nameTitle(doc, modules), text: true, source: true },
		{ key: "a", title: "A", show: duration },
		{ key: "b", title: "B", show: duration },
		{ key: "change", title: `Change per ${per}`, show: (v) => signed(v), tone: toneOf },
		{ key: "ratio", title: "B ÷ A", show: (_, row) => ratioText(row), tone: (row) => `strong ${toneOf(row)}` },
		{ key: "lo", title: "95 % interval", show: (_, row) => intervalText(row) },
		{ key: "hi", title: `${(1 / Number(end)).toFixed(2)} to ${end}`, node: (row) => intervalBar(row, reach) },
		{ key: "could_see", title: "Detectable", show: percent, tone: () => "muted" },
	];
	return table(columns, shown, { label: "What changed", limit: ROWS_MOST });
}

/** @param {Comparison} doc @param {ComparisonRow[]} rows @returns {Part} */
function tablePart(doc, rows) {
	const find = el("input", { type: "search", placeholder: "Find   /", "aria-label": "Find a name" });
	const place = el("div");
	const more = rows.length > ROWS_MOST ? `; the first ${count(ROWS_MOST)} of ${count(rows.length)}` : "";
	const fill = () => place.replaceChildren(rowTable(doc, rows, find.value));
	find.addEventListener("input", fill);
	fill();
	const heading = el("h2", { text: "By change of time" }, el("span", { text: LEGEND + more }));
	return { find, node: el("section", { class: "card" }, el("div", { class: "headline" }, heading, find), place) };
}

/**
 * The flame graph of changes; frames of regions without a significant change are grey.
 * @param {Comparison} doc
 * @param {"both"|"a"|"b"} width
 */
function flameOf(doc, width) {
	const keyOf = (/** @type {string} */ source, /** @type {string} */ name) => `${source}\n${name}`;
	const significant = new Set(
		doc.rows.filter((row) => row.kind === "region" && differs(row)).map((row) => keyOf(row.source, row.name)),
	);
	return difference(doc.flame, {
		width,
		sure: (source, name) => significant.has(keyOf(source, name)),
		a: "in A",
		b: "in B",
	});
}

/** @param {Comparison} doc @param {Hooks} hooks @returns {Part} */
function flamePart(doc, hooks) {
	const status = el("span", { class: "muted", role: "status" });
	const stage = el("div", { class: "stage" });
	const find = el("input", { type: "search", placeholder: "Search   /", "aria-label": "Search frames" });
	const width = el(
		"select",
		{ "aria-label": "Width of a frame" },
		el("option", { value: "both", text: "Width: mean of A and B" }),
		el("option", { value: "a", text: "Width: time in A" }),
		el("option", { value: "b", text: "Width: time in B" }),
	);
	const graph = new FlameGraph(stage, {
		onfound: (text) => {
			status.textContent = text;
		},
	});
	const show = () => graph.show(flameOf(doc, /** @type {"both"|"a"|"b"} */ (width.value)));
	width.addEventListener("change", show);
	find.addEventListener("input", () => graph.search(find.value));
	show();
	const bar = el(
		"div",
		{ class: "bar" },
		find,
		status,
		width,
		el("span", { class: "muted hint-keys", text: "time per step" }),
		differenceLegend("the same, or not significant"),
	);
	return {
		node: el("section", { class: "card flames" }, bar, stage),
		find,
		close: () => graph.close(),
		key: (e) => graph.key(e, (text) => hooks.announce?.(text)),
	};
}

// ---- the page

/** @param {ComparedRun[]} runs @param {"steps"|"warmup"} key */
const sum = (runs, key) => runs.reduce((total, run) => total + run[key], 0);

/**
 * The runs of one side.
 * @param {Comparison} doc
 * @param {"a"|"b"} side
 */
function sideNode(doc, side) {
	const runs = doc.runs.filter((run) => run.side === side);
	const name = runs.length === 1 ? fileName(runs[0].path.replace(/\/+$/, "")) : `${runs.length} runs`;
	const warmup = sum(runs, "warmup");
	const steps = `${count(sum(runs, "steps"))} steps${warmup ? ` (without ${count(warmup)} of warm-up)` : ""}`;
	return el(
		"span",
		{ class: "button side", title: runs.map((run) => `${run.path}\n${run.command}`).join("\n") },
		el("b", { text: side.toUpperCase() }),
		` ${name}`,
		el("span", { class: "muted", text: ` ${steps}` }),
	);
}

/** @param {Comparison} doc */
function verdictSection(doc) {
	if (!doc.sentence)
		return el(
			"section",
			{ class: "verdict refused" },
			el("h1", { text: "These recordings are not comparable." }),
			el("p", {}, el("b", { text: "Because: " }), `${doc.why}.`),
			el("p", {}, "To compare them nevertheless: ", el("code", { text: "kymo compare --anyway" })),
		);
	const step = doc.rows[0];
	const kind = !differs(step) ? "unsure" : changeOf(step) > 0 ? "" : "fine";
	const notes = doc.notes.map((text) => el("p", { class: text.startsWith("--anyway") ? "warn" : undefined, text }));
	return el(
		"section",
		{ class: `verdict ${kind}` },
		el("h1", { text: doc.sentence }),
		el("p", {}, el("b", { text: "Because: " }), doc.because),
		...notes,
	);
}

/** @param {{a: number|null, b: number|null}} value @param {(v: number) => string} show */
const pairText = ({ a, b }, show) => (a === null || b === null ? "–" : `${show(a)} → ${show(b)}`);
/** @param {ComparedValue} value */
const timesText = ({ ratio }) => (ratio === null ? "not recorded" : `× ${ratio.toFixed(3)}`);

/** @param {Comparison} doc */
function figures(doc) {
	const step = doc.rows[0];
	const differ = doc.rows.filter((row) => differs(row)).length;
	const rate = (/** @type {number} */ v) => (v >= 100 ? count(v) : v.toPrecision(3));
	const tone = toneOf(step) === "muted" ? "" : toneOf(step);
	const stepTimes = intervalText(step) === "–" ? "" : `× ${times(step.ratio)}`;
	return el(
		"div",
		{ class: "figures five" },
		figure("Step, mean", pairText(step, duration), stepTimes, tone),
		figure("Steps per second", pairText(doc.throughput, rate), timesText(doc.throughput)),
		figure("Peak memory", pairText(doc.memory, bytes), timesText(doc.memory)),
		figure("Significant", count(differ), `of ${count(doc.rows.length)} tested`),
		figure("Detectable", percent(doc.could_see), "of a step"),
	);
}

/** @param {Comparison} doc @param {Hooks} [hooks] @returns {View} */
export function comparison(doc, hooks = {}) {
	const body = el("div", { class: "compared" });
	const pick = hooks.pick ?? el("span", { class: "chips" }, sideNode(doc, "a"), sideNode(doc, "b"));
	if (!doc.sentence) {
		body.append(verdictSection(doc));
		return { node: el("div", { class: "page compare" }, el("div", { class: "chips" }, pick), body) };
	}
	const modules = doc.rows.filter((row) => row.kind === "module");
	const regions = doc.rows.filter((row) => row.kind !== "module");
	/** @type {[PartName, string, () => Part][]} */
	const parts = [["regions", `Regions ${count(regions.length)}`, () => tablePart(doc, regions)]];
	if (modules.length)
		parts.push(["modules", `Modules ${count(modules.length)}`, () => tablePart(doc, modules)]);
	if (doc.flame.name.length)
		parts.push(["flame", "Flame difference", () => flamePart(doc, hooks)]);
	/** @type {Part|null} */
	let part = null;
	const buttons = parts.map(([id, text]) =>
		el("button", {
			class: "button",
			id: `show-${id}`,
			"aria-pressed": "false",
			text,
			onclick: () => (hooks.onshow ? hooks.onshow(id) : show(id)),
		}),
	);
	const show = (/** @type {string|undefined} */ which) => {
		const [id, , open] = parts.find(([name]) => name === which) ?? parts[0];
		part?.close?.();
		part = open();
		body.replaceChildren(part.node);
		for (const button of buttons)
			button.setAttribute("aria-pressed", String(button.id === `show-${id}`));
	};
	show(hooks.show);
	const chips = el("div", { class: "chips" }, pick, el("span", { class: "chips" }, ...buttons));
	return {
		node: el("div", { class: "page compare" }, chips, verdictSection(doc), figures(doc), body),
		close: () => part?.close?.(),
		key: (e) => {
			if (e.key === "/") {
				part?.find?.focus();
				return true;
			}
			return Boolean(part?.key?.(e));
		},
	};
}

/** @type {Tab} */
export const compare = {
	id: "compare",
	title: "Compare",
	has: (source) => Boolean(source.data().compare),
	open: (shell) =>
		comparison(/** @type {Comparison} */ (shell.source.data().compare), {
			show: shell.query.show,
			announce: (text) => shell.announce(text),
			onshow: (show) => shell.go("compare", { show }),
		}),
};
