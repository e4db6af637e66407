// The first screen: the verdict with its evidence, six figures, steps and top regions.
import { stepChart } from "../charts.js";
import { fileNamed, findText, frameOf, shortPath } from "../code/frames.js";
import { linesOf } from "../code/listing.js";
import { isUnmarked } from "../document.js";
import { el, figure, legend } from "../dom.js";
import { clock, count, cutAtFigures, duration, percent, rangeText } from "../format.js";
import { breakdownCard } from "../job/breakdown.js";
import { ranksLabel } from "../job/ranks.js";
import { selectedRange } from "../range.js";
import { table } from "../tables.js";
import { legendSources } from "../theme.js";

/** @import { ApiFailure, Place, RangeDocument, Region, RunDocument, Samples, Tab, Verdict } from "../types.js" */
/** @import { Shell } from "../shell.js" */

/** The document of the run, or of the selected range. @typedef {RunDocument & Partial<RangeDocument>} Shown */

/**
 * Source whose colour each part of a step has.
 * @type {Record<string, string>}
 */
const PARTS = { data: "python", forward: "torch", backward: "torch", optimizer: "c", other: "line" };
const PART_LABEL_LEAST = 0.09; // share of the bar
const CHART_HEIGHT = 208;

/**
 * The figures of a verdict link to the tab that shows them.
 * @param {Verdict} verdict
 * @param {string} text
 * @param {Shell} shell
 */
function linked(verdict, text, shell) {
	if (!verdict.view)
		return [text];
	const [tab, words] = verdict.view.split("?");
	const query = { ...Object.fromEntries(new URLSearchParams(words ?? "")), find: verdict.find || undefined };
	const link = (/** @type {string} */ number) =>
		el("a", { href: shell.hash(tab, query), title: verdict.sql, text: number });
	return cutAtFigures(text).map((piece, i) => (i % 2 ? link(piece) : piece));
}

/**
 * The line of source of a place, if its text is here.
 * @param {Place} place
 * @param {Shell} shell
 */
function sourceLine({ file, line }, shell) {
	const node = el("code", { class: "excerpt", hidden: true });
	const show = async () => {
		const found = fileNamed(await shell.source.sources(), file);
		const text = found && (await shell.source.sourceText(found.file))?.text;
		const words = text ? linesOf(text)[line - 1]?.trim() : "";
		node.hidden = !words;
		node.textContent = words ?? "";
	};
	show().catch(() => {}); // the place is shown without it
	return node;
}

/**
 * Where a finding is: the function in the flame graph, its line in the source, its share.
 * @param {Verdict} verdict
 * @param {Shell} shell
 * @param {boolean} [excerpt] with the text of the line
 */
function whereNode({ where }, shell, excerpt = false) {
	if (!where)
		return null;
	const samples = shell.source.data().samples.length > 0;
	const flame = { of: samples ? "samples" : "zones", find: findText(where, samples), zoom: 1 };
	const link = (/** @type {string} */ href, /** @type {string} */ text, /** @type {string} */ title) =>
		el("a", { href, text, title });
	return el(
		"p",
		{ class: "where" },
		el("b", { text: "Where: " }),
		link(shell.hash("flame", flame), where.function, "Show the function in the flame graph"),
		"  ",
		where.line > 0
			? link(
					shell.hash("source", { file: where.file, line: where.line }),
					`${shortPath(where.file)}:${where.line}`,
					`${where.file}:${where.line}: open the source`,
				)
			: where.file,
		where.share ? ` ${percent(where.share)}` : null,
		excerpt && where.line > 0 ? sourceLine(where, shell) : null,
	);
}

/**
 * The query behind a finding: a link to the SQL tab of the viewer, or the text.
 * @param {Verdict} verdict
 * @param {Shell} shell
 */
function sqlNode({ sql }, shell) {
	if (!sql)
		return null;
	if (shell.app)
		return el("a", { class: "sql", href: shell.hash("sql", { q: sql }), text: "SQL", title: sql });
	return el("details", { class: "sql" }, el("summary", { text: "SQL" }), el("pre", { text: `kymo query "${sql}"` }));
}

/** @param {Verdict[]} verdicts @param {Shell} shell */
function otherVerdicts(verdicts, shell) {
	if (!verdicts.length)
		return null;
	const items = verdicts.map((one) =>
		el(
			"li",
			{},
			...linked(one, one.text, shell),
			whereNode(one, shell),
			one.try ? el("span", { class: "muted", text: ` Try: ${one.try}. ` }) : null,
			sqlNode(one, shell),
		),
	);
	return el("details", {}, el("summary", { text: `${verdicts.length} more` }), el("ul", {}, ...items));
}

/** @param {Shown} data @param {Shell} shell */
function verdictSection(data, shell) {
	/** @type {Verdict} */
	const none = { text: shell.source.read === false ? "The findings are being computed…" : "No verdict yet" };
	const [first = none, ...others] = data.verdicts;
	return el(
		"section",
		{ class: `verdict${first.name ? "" : " fine"}`, "aria-label": "Verdict" },
		el("h1", {}, ...linked(first, first.text, shell)),
		whereNode(first, shell, true),
		el(
			"p",
			{},
			first.evidence ? el("b", { text: "Evidence: " }) : null,
			...(first.evidence ? linked(first, `${first.evidence}. `, shell) : []),
			first.try ? el("b", { text: "Try: " }) : null,
			first.try ? `${first.try}. ` : null,
			sqlNode(first, shell),
		),
		openZones(data),
		otherVerdicts(others, shell),
	);
}

/**
 * In place of the verdict, which is of the whole run: a summary of the range, and the way back.
 * @param {RangeDocument} data
 * @param {Shell} shell
 */
function rangeSection(data, shell) {
	const { text, evidence, share } = data.summary;
	const merged = data.zones.merged_ns > 0 ? "; approximate, because short zones are merged in this file" : "";
	const chosen = [shell.ranks ? ranksLabel(shell.ranks) : "", shell.range ? rangeText(shell.range) : ""];
	const what = shell.range ? `this range, ${share} of the run` : "these ranks";
	const whole = () => (shell.range ? shell.setRange(null) : shell.setRanks(""));
	return el(
		"section",
		{ class: "verdict ranged", "aria-label": "Selected range" },
		el("h1", { text: `${chosen.filter(Boolean).join(", ")}: ${text}.` }),
		el(
			"p",
			{},
			evidence ? el("b", { text: "Evidence: " }) : null,
			evidence ? `${evidence}. ` : null,
			`Everything below is of ${what}${merged}. `,
			el("button", {
				class: "link",
				text: shell.range ? "Show the whole run (Esc)" : "Show all ranks",
				onclick: whole,
			}),
		),
	);
}

/**
 * The zones that are open, or that were open when the program ended, by thread.
 * @param {Shown} data
 */
function openZones(data) {
	/** @type {Map<string, string[]>} */
	const threads = new Map();
	for (const { thread, name, age_ns: age } of data.open)
		threads.set(thread, [...(threads.get(thread) ?? []), `${name}${age === null ? "" : ` ${duration(age)}`}`]);
	if (!threads.size)
		return null;
	const shown = [...threads].slice(0, 3).map(([thread, names]) => `${thread} in ${names.slice(-4).join(" > ")}`);
	return el(
		"p",
		{ class: "open" },
		el("b", { text: data.run.state === "live" ? "Open now: " : "Open at the end: " }),
		shown.join("; ") + (threads.size > 3 ? `; ${threads.size - 3} more threads` : ""),
	);
}

/** @param {Shown} data */
function figures(data) {
	const list = data.figures.map(({ label, value, note }) => figure(label, value, note));
	return el("section", { class: "figures", "aria-label": "Figures" }, ...list);
}

// ---- steps

/** @param {Shown} data @param {Shell} shell @param {(() => void)[]} closers */
function stepsCard(data, shell, closers) {
	const { steps } = data;
	const each = Math.max(1, Math.round((data.step_facts.count ?? 0) / steps.x.length));
	const host = el("div", { class: "chart" });
	const note = el("span");
	const pick = (/** @type {number} */ i) => {
		const at = steps.worst_start_ns[i];
		const took = steps.max[i];
		shell.go("timeline", { v0: Math.round(at - took * 0.3), v1: Math.round(at + took * 1.3) });
	};
	// The chart needs the width of its card, which is known once the card is in the page.
	queueMicrotask(() => {
		const chart = stepChart(host, steps, CHART_HEIGHT, pick);
		const what = each > 1 ? `median and range of ${count(each)} steps each` : "each step";
		const opens = each > 1 ? "its slowest step" : "the step";
		note.textContent = `${what}, ${chart.unit} · click a point to open ${opens} in the timeline`;
		closers.push(chart.close);
	});
	return el(
		"section",
		{ class: "card" },
		el("h2", { text: "Step time" }, note),
		host,
		partsBar(data),
		slowestSteps(data, shell),
	);
}

/** @param {{name: string, ns: number}} part @param {number} share @param {number} steps */
function partNode({ name, ns }, share, steps) {
	const source = PARTS[name] ?? "c";
	const node = el("div", {
		class: "part",
		title: `${name}: ${percent(share)}, ${duration(ns / Math.max(1, steps))} a step`,
		text: share > PART_LABEL_LEAST ? `${name} ${percent(share)}` : "",
	});
	node.style.flexGrow = String(share);
	node.style.background = `var(--${source}-${name === "backward" ? 3 : 1})`;
	node.style.color = `var(--${source}-label)`;
	return node;
}

/** @param {Shown} data */
function partsBar(data) {
	const total = data.parts.reduce((sum, part) => sum + part.ns, 0);
	if (!total)
		return null;
	const label = data.parts.map((part) => `${part.name} ${percent(part.ns / total)}`).join(", ");
	const nodes = data.parts.map((part) => partNode(part, part.ns / total, data.step_facts.count ?? 0));
	const about = `share of step time, all steps${data.ofRange ? " of the range" : ""}`;
	return el(
		"div",
		{},
		el("h2", { text: "Step time by phase" }, el("span", { text: about })),
		el("div", { class: "parts", role: "img", "aria-label": label }, ...nodes),
	);
}

/** @param {Shown} data @param {Shell} shell */
function slowestSteps(data, shell) {
	if (!data.slowest.length)
		return null;
	const median = data.step_facts.median_ns || 1;
	const columns = [
		{ key: "step", title: "Slowest steps", text: true, show: (/** @type {number} */ v) => `step ${count(v)}` },
		{ key: "start_ns", title: "At", show: duration },
		{ key: "duration_ns", title: "Took", show: duration },
		{ key: "times", title: "× median", show: (/** @type {number} */ v) => v.toFixed(1) },
		{
			key: "inside",
			title: "Longest zone inside",
			cut: true,
			show: (/** @type {string|null} */ v, /** @type {any} */ row) =>
				v ? `${v} ${duration(row.inside_ns)}` : "–",
		},
	];
	return table(
		columns,
		data.slowest.map((row) => ({ ...row, times: row.duration_ns / median })),
		{
			label: "Slowest steps",
			compact: true,
			limit: 5,
			onclick: (row) =>
				shell.go("timeline", {
					v0: Math.round(row.start_ns - row.duration_ns * 0.2),
					v1: Math.round(row.start_ns + row.duration_ns * 1.2),
				}),
		},
	);
}

// ---- regions, or functions where only stacks were sampled

/**
 * A frame without its line: all lines of a function count together.
 * @param {string} frame
 */
const functionOf = (frame) => frame.replace(/:\d+\)$/, ")");

/**
 * A function with the name of its file, without the folders.
 * @param {string} name
 */
const withoutFolders = (name) => name.replace(/ \((?!<).*\/([^/]*\))$/, " ($1");

/** @param {Samples[]} samples */
function functionRows(samples) {
	/** @type {Map<string, {name: string, source: string, own: number, all: number}>} */
	const found = new Map();
	let total = 0;
	for (const { stack, count: taken } of samples) {
		total += taken;
		const kinds = new Map(stack.map((frame) => [functionOf(frame), frameOf(frame).kind]));
		for (const [name, source] of kinds) {
			const one = found.get(name) ?? { name, source, own: 0, all: 0 };
			one.all += taken;
			one.own += functionOf(stack[0]) === name ? taken : 0;
			found.set(name, one);
		}
	}
	return [...found.values()].map((one) => ({ ...one, share: one.own / (total || 1) }));
}

/**
 * Opens the line of a function that has most of its samples.
 * @param {Shown} data
 * @param {string} name of functionOf()
 * @param {Shell} shell
 */
function openFunction({ samples }, name, shell) {
	/** @type {Map<string, number>} */
	const lines = new Map();
	for (const { stack, count: taken } of samples) {
		for (const frame of stack.filter((one) => functionOf(one) === name))
			lines.set(frame, (lines.get(frame) ?? 0) + taken);
	}
	const [[frame] = [""]] = [...lines].sort((a, b) => b[1] - a[1]);
	const { place } = frameOf(frame);
	if (place)
		shell.go("source", { file: place.file, line: place.line });
}

/** @param {Shown} data @param {string} sort @param {string} title @param {Shell} shell */
function functionsCard(data, sort, title, shell) {
	const time = !data.ofRange ? "" : data.ofRange.samples ? " in the range" : ", whole run";
	const columns = [
		{ key: "name", title: "Function", text: true, source: true, show: withoutFolders, whole: true },
		{ key: "own", title: "Self", show: count },
		{ key: "share", title: "% self", show: (/** @type {number} */ v) => (100 * v).toFixed(1) },
		{ key: "all", title: "Total", show: count },
	];
	return el(
		"section",
		{ class: "card" },
		el("h2", { text: title }, el("span", { text: `samples of all threads${time}; no marked zones` })),
		table(columns, functionRows(data.samples), {
			sort,
			label: title,
			limit: 16,
			compact: true,
			onclick: (row) => openFunction(data, row.name, shell),
		}),
	);
}

/** @param {Shown} data */
const noRegions = (data) =>
	data.ofRange
		? el("p", { class: "muted", text: "No zones in this range." })
		: el(
				"p",
				{ class: "muted" },
				"No zones and no Python stacks recorded. Record every Python call as a zone with ",
				el("code", { text: "kymo run --python -- python train.py" }),
				".",
			);

/**
 * Regions by total time, where there are no steps. The card beside it has self times.
 * @param {Shown} data
 * @param {Shell} shell
 */
function totalsCard(data, shell) {
	if (isUnmarked(data))
		return functionsCard(data, "own", "Functions by self samples", shell);
	const about = data.ofRange
		? `of the range, ${duration(data.run.duration_ns)}`
		: `of ${clock(data.run.duration_ns)}; no steps recorded`;
	const columns = [
		{ key: "name", title: "Region", text: true, source: true },
		{ key: "total_ns", title: "Total", show: duration },
		{ key: "mean_ns", title: "Mean", show: duration },
		{ key: "max_ns", title: "Longest", show: duration },
	];
	const rows = data.regions.map((region) => ({ ...region, mean_ns: region.total_ns / (region.count || 1) }));
	const options = { sort: "total_ns", label: "Total time by region", limit: 14, compact: true };
	return el(
		"section",
		{ class: "card" },
		el("h2", { text: "Total time by region" }, el("span", { text: about })),
		rows.length ? table(columns, rows, options) : noRegions(data),
	);
}

/** @param {Shown} data @param {Shell} shell */
function regionsCard(data, shell) {
	if (isUnmarked(data))
		return functionsCard(data, "all", "Functions by total samples", shell);
	if (!data.regions.length)
		return el("section", { class: "card" }, el("h2", { text: "Top regions" }), noRegions(data));
	const about = el("span", { text: data.ofRange ? "zones in the range" : "exact totals, whole run" });
	const describe = (/** @type {Region} */ row) => {
		const { min_ns: min, p90_ns: p90, max_ns: max } = row;
		about.textContent = `${row.name}: shortest ${duration(min)}, p90 ${duration(p90)}, longest ${duration(max)}`;
	};
	const columns = [
		{ key: "name", title: "Region", text: true, source: true },
		{ key: "self_ns", title: "Self", show: duration },
		{
			key: "share",
			title: data.ofRange ? "% range" : "% run",
			show: (/** @type {number} */ v) => (100 * v).toFixed(1),
		},
		{ key: "count", title: "Count", show: count },
		{ key: "p50_ns", title: "p50", show: duration },
		{ key: "p99_ns", title: "p99", show: duration },
	];
	const run = data.run.duration_ns || 1;
	const rows = data.regions.map((region) => ({ ...region, share: region.self_ns / run }));
	return el(
		"section",
		{ class: "card" },
		el("h2", { text: "Top regions" }, about),
		table(columns, rows, {
			sort: "self_ns",
			label: "Top regions",
			limit: 14,
			compact: true,
			onclick: describe,
			ondblclick: (row) => showSlowest(row, shell),
		}),
		el("p"),
		legend(false, legendSources(rows.map((row) => row.source))),
	);
}

/**
 * Selects the slowest zone of a region in the timeline.
 * @param {Region} region
 * @param {Shell} shell
 */
async function showSlowest(region, shell) {
	const { names } = shell.source.meta();
	const id = names.findIndex((one) => one.name === region.name && one.source === region.source);
	const zone = id < 0 ? null : (await shell.source.name(id, shell.range)).slowest[0];
	if (zone)
		shell.go("timeline", { sel: `${zone.lane}.${zone.row}.${Math.round(zone.start + zone.duration / 2)}` });
}

// ---- the page

/** @param {string} text @param {string} more */
const loading = (text, more) =>
	el(
		"div",
		{ class: "page", "aria-busy": "true" },
		el("section", { class: "verdict fine" }, el("h1", { text }), el("p", { text: more })),
		el("div", { class: "bone short" }),
		el("div", { class: "columns" }, el("div", { class: "bone" }), el("div", { class: "bone" })),
	);

/** @param {ApiFailure} failed @param {() => void} retry */
const failure = (failed, retry) =>
	el(
		"div",
		{ class: "page" },
		el(
			"section",
			{ class: "verdict", role: "alert" },
			el("h1", { text: `${failed.message}.` }),
			el("p", { text: failed.hint ?? "Other tabs may work." }),
			el("button", { class: "button", text: "Try again", onclick: retry }),
		),
	);

/** @type {Tab} */
export const overview = {
	id: "overview",
	title: "Overview",
	has: () => true,
	open(shell) {
		const { source } = shell;
		const previous = source.onchange;
		/** @type {(() => void)[]} */
		const closers = [];
		let closed = false;
		const again = () => {
			if (!closed)
				shell.open();
		};
		const close = () => {
			closed = true;
			source.onchange = previous;
			closers.forEach((one) => one());
		};
		if (source.read === false && (!source.glimpsed || source.failed)) {
			const node = source.failed
				? failure(source.failed, () => source.refresh?.())
				: loading("Reading the recording…", "The timeline can be opened already.");
			return { close, node };
		}
		const selected = selectedRange(shell, again);
		if (selected && !source.glance)
			source.onchange = again; // the zones of a report are decoded after its page is shown
		if (selected && !selected.doc) {
			const node = selected.failed
				? failure(selected.failed, selected.retry)
				: loading(`${shell.range ? rangeText(shell.range) : ranksLabel(shell.ranks)}…`, "Reading.");
			return { close, node };
		}
		const doc = selected?.doc ?? null;
		/** @type {Shown} */
		const data = doc ?? source.data();
		const left = data.steps.x.length ? stepsCard(data, shell, closers) : totalsCard(data, shell);
		return {
			close,
			node: el(
				"div",
				{ class: "page" },
				doc ? rangeSection(doc, shell) : verdictSection(data, shell),
				figures(data),
				breakdownCard(data, shell),
				el("div", { class: "columns" }, left, regionsCard(data, shell)),
			),
		};
	},
};
