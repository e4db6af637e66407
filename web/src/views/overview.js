// The first screen: one sentence, its evidence, six figures, and where to look next.
import { stepChart } from "../charts.js";
import { stretchOf } from "../stretch.js";
import { table } from "../tables.js";
import { clear, clock, count, duration, el, legend, percent, rangeText } from "../util.js";

/** Colours of the parts of a step: by what each mostly is. */
const PARTS = { data: "python", forward: "torch", backward: "torch", optimizer: "c", other: "line" };

/**
 * Its numbers are links to the tab that shows them, with the name looked for.
 * @param {any} one
 * @param {string} text
 * @param {any} shell
 */
function linked(one, text, shell) {
	if (!one.view)
		return [text];
	const [tab, words] = one.view.split("?");
	const query = { ...Object.fromEntries(new URLSearchParams(words ?? "")), ...(one.find ? { find: one.find } : {}) };
	return text
		.split(/((?<![\w.])\d[\d,.]*\d*(?![\da-z])(?: ?(?:%|[nµm]?s\b|min\b|h\b|[kMGT]?B\b))?)/)
		.map((piece, i) => (i % 2 ? el("a", { href: shell.hash(tab, query), title: one.sql, text: piece }) : piece));
}

/** @param {any} data @param {any} shell */
function verdict(data, shell) {
	const [first = { text: "Nothing to say yet" }, ...others] = data.verdicts;
	const more = others.length
		? el(
				"details",
				{},
				el("summary", { text: `${others.length} more` }),
				el(
					"ul",
					{},
					...others.map((/** @type {any} */ v) =>
						el(
							"li",
							{},
							...linked(v, v.text, shell),
							v.try ? el("span", { class: "muted", text: ` Try: ${v.try}.` }) : null,
						),
					),
				),
			)
		: null;
	return el(
		"section",
		{ class: `verdict${first.name ? "" : " fine"}`, "aria-label": "Verdict" },
		el("h1", {}, ...linked(first, first.text, shell)),
		el(
			"p",
			{},
			first.evidence ? el("b", { text: "Evidence: " }) : null,
			...(first.evidence ? linked(first, `${first.evidence}. `, shell) : []),
			first.try ? el("b", { text: "Try: " }) : null,
			first.try ? `${first.try}.` : null,
		),
		openZones(data),
		more,
	);
}

/**
 * In place of the verdict, which is one of the whole run: what is shown, and the way back.
 * @param {any} data
 * @param {any} shell
 */
function rangeVerdict(data, shell) {
	const { text, evidence, share } = data.said;
	const merged = shell.source.data().zones.merged_ns > 0;
	return el(
		"section",
		{ class: "verdict ranged", "aria-label": "Selected range" },
		el("h1", { text: `${rangeText(shell.range)}: ${text}.` }),
		el(
			"p",
			{},
			evidence ? el("b", { text: "Evidence: " }) : null,
			evidence ? `${evidence}. ` : null,
			`All below is of this range, ${share} of the run${merged ? "; about, since short zones are merged in this file" : ""}. `,
			el("button", { class: "link", text: "Show the whole run (Esc)", onclick: () => shell.setRange(null) }),
		),
	);
}

/**
 * What the program was in when it ended, or is in.
 * @param {any} data
 */
function openZones(data) {
	/** @type {Map<string, string[]>} */ const threads = new Map();
	for (const { thread, name, age_ns: age } of data.open)
		threads.set(thread, [...(threads.get(thread) ?? []), `${name}${age === null ? "" : ` ${duration(age)}`}`]);
	if (!threads.size)
		return null;
	return el(
		"p",
		{ class: "open" },
		el("b", { text: data.run.state === "live" ? "Open now: " : "Open at the end: " }),
		[...threads]
			.slice(0, 3)
			.map(([thread, names]) => `${thread} in ${names.slice(-4).join(" > ")}`)
			.join("; ") + (threads.size > 3 ? `; ${threads.size - 3} more threads` : ""),
	);
}

/** @param {any} data */
function figures(data) {
	return el(
		"section",
		{ class: "figures", "aria-label": "Figures" },
		...data.figures.map((/** @type {any} */ f) =>
			el(
				"div",
				{ class: "figure" },
				el("div", { class: "label", text: f.label }),
				el("span", { class: "value", text: f.value }),
				el("span", { class: "note", text: f.note }),
			),
		),
	);
}

/** @param {any} data @param {import("../shell.js").Shell} shell @param {(() => void)[]} closers */
function stepsCard(data, shell, closers) {
	const card = el("section", { class: "card" });
	const steps = data.steps;
	if (!steps.x.length)
		return card;
	const each = Math.max(1, Math.round(data.step_facts.count / steps.x.length));
	const host = el("div", { class: "chart" });
	const note = el("span");
	card.append(el("h2", { text: "Step time" }, note), host);
	queueMicrotask(() => {
		const made = stepChart(host, steps, 208, (i) => {
			const at = steps.worst_start_ns[i];
			const took = steps.max[i];
			shell.go("timeline", { v0: Math.round(at - took * 0.3), v1: Math.round(at + took * 1.3) });
		});
		note.textContent = `${each > 1 ? `median and range of ${count(each)} steps each` : "each step"}, ${made.unit} · click a spike to open it in the timeline`;
		closers.push(made.close);
	});
	card.append(parts(data), slowest(data, shell));
	return card;
}

/** @param {any} data */
function parts(data) {
	const total = data.parts.reduce((/** @type {number} */ a, /** @type {any} */ p) => a + p.ns, 0);
	if (!total)
		return el("span");
	const bar = el("div", {
		class: "parts",
		role: "img",
		"aria-label": data.parts.map((/** @type {any} */ p) => `${p.name} ${percent(p.ns / total)}`).join(", "),
	});
	for (const part of data.parts) {
		const source = /** @type {any} */ (PARTS)[part.name] ?? "c";
		const share = part.ns / total;
		const node = el("div", {
			class: "part",
			title: `${part.name}: ${percent(share)}, ${duration(part.ns / Math.max(1, data.step_facts.count))} a step`,
			text: share > 0.09 ? `${part.name} ${percent(share)}` : "",
		});
		node.style.flexGrow = String(share);
		node.style.flexBasis = "0";
		node.style.background = `var(--${source}-${part.name === "backward" ? 3 : 1})`;
		node.style.color = `var(--${source}-label)`;
		bar.append(node);
	}
	return el(
		"div",
		{},
		el(
			"h2",
			{ text: "Where a step goes" },
			el("span", { text: `share of step time, all steps${data.follows ? " of the range" : ""}` }),
		),
		bar,
	);
}

/** @param {any} data @param {import("../shell.js").Shell} shell */
function slowest(data, shell) {
	const rows = data.slowest;
	if (!rows.length)
		return el("span");
	return table(
		[
			{ key: "step", title: "Slowest steps", text: true, show: (v) => `step ${count(v)}` },
			{ key: "start_ns", title: "At", show: (v) => duration(v) },
			{ key: "duration_ns", title: "Took", show: (v) => duration(v) },
			{ key: "times", title: "× median", show: (v) => v.toFixed(1) },
			{
				key: "inside",
				title: "Longest inside",
				cut: true,
				show: (v, row) => (v ? `${v} ${duration(row.inside_ns)}` : "–"),
			},
		],
		rows.map((r) => ({ ...r, times: r.duration_ns / (data.step_facts.median_ns || 1) })),
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

/**
 * Functions by samples, where stacks were recorded and zones were not.
 * @param {any} data
 */
function functionRows(data) {
	/** @type {Map<string, {name: string, source: string, own: number, all: number}>} */ const found = new Map();
	let total = 0;
	for (const { stack, count: seen } of data.samples) {
		const frames = new Set(stack.map((/** @type {string} */ frame) => frame.replace(/:\d+\)$/, ")")));
		total += seen;
		for (const name of frames) {
			const one = found.get(name) ?? { name, source: "python", own: 0, all: 0 };
			one.all += seen;
			one.own += stack[0].replace(/:\d+\)$/, ")") === name ? seen : 0;
			found.set(name, one);
		}
	}
	return [...found.values()].map((one) => ({ ...one, share: one.own / (total || 1) }));
}

/** @param {any} data @param {string} sort @param {string} title */
function functionsCard(data, sort, title) {
	const whose = !data.follows ? "" : data.follows.samples ? " in the range" : ", whole run";
	return el(
		"section",
		{ class: "card" },
		el("h2", { text: title }, el("span", { text: `samples of all threads${whose}; no zones were recorded` })),
		table(
			[
				{ key: "name", title: "Function", text: true, source: true },
				{ key: "own", title: "Own", show: count },
				{ key: "share", title: "% own", show: (v) => (100 * v).toFixed(1) },
				{ key: "all", title: "With callees", show: count },
			],
			functionRows(data),
			{ sort, label: title, limit: 16, compact: true },
		),
	);
}

/**
 * What would fill a table of regions.
 * @param {any} data
 */
const noRegions = (data) =>
	data.follows
		? el("p", { class: "muted", text: "No zones in this range." })
		: el(
				"p",
				{ class: "muted" },
				"No zone has ended, and no Python stack was sampled. Every call of Python is a zone with ",
				el("code", { text: "kymo run --python -- python train.py" }),
				".",
			);

/**
 * Without steps: how the time is shared out.
 * @param {any} data
 */
function shares(data) {
	if (!data.regions.length && data.samples.length)
		return functionsCard(data, "own", "Functions by their own samples");
	// Top regions have their own time beside it: here it is with what they call.
	const about = data.follows
		? `of the range, ${duration(data.run.duration_ns)}`
		: `of ${clock(data.run.duration_ns)}; no steps were marked`;
	return el(
		"section",
		{ class: "card" },
		el("h2", { text: "Time with what they call" }, el("span", { text: about })),
		data.regions.length
			? table(
					[
						{ key: "name", title: "Region", text: true, source: true },
						{ key: "total_ns", title: "Total", show: (v) => duration(v) },
						{ key: "mean_ns", title: "Mean", show: (v) => duration(v) },
						{ key: "max_ns", title: "Most", show: (v) => duration(v) },
					],
					data.regions.map((r) => ({ ...r, mean_ns: r.total_ns / (r.count || 1) })),
					{ sort: "total_ns", label: "Time with what they call", limit: 14, compact: true },
				)
			: noRegions(data),
	);
}

/** @param {any} data @param {import("../shell.js").Shell} shell */
function regionsCard(data, shell) {
	if (!data.regions.length && data.samples.length)
		return functionsCard(data, "all", "Functions with what they call");
	const run = data.run.duration_ns || 1;
	const rows = data.regions.map((r) => ({ ...r, share: r.self_ns / run }));
	const about = el("span", { text: data.follows ? "zones in the range" : "exact totals, whole run" });
	const names = shell.source.meta().names;
	const pick = async (/** @type {any} */ row, /** @type {boolean} */ go) => {
		const id = names.findIndex((/** @type {any} */ n) => n.name === row.name && n.source === row.source);
		if (id < 0)
			return;
		const stats = await shell.source.name(id, shell.range);
		const slow = stats.slowest[0];
		clear(about);
		about.append(
			`${row.name}: least ${duration(row.min_ns)}, p90 ${duration(row.p90_ns)}, most ${duration(row.max_ns)}`,
		);
		if (go && slow)
			shell.go("timeline", { sel: `${slow.lane}.${slow.row}.${Math.round(slow.start + slow.duration / 2)}` });
	};
	if (!rows.length)
		return el("section", { class: "card" }, el("h2", { text: "Top regions" }), noRegions(data));
	return el(
		"section",
		{ class: "card" },
		el("h2", { text: "Top regions" }, about),
		table(
			[
				{ key: "name", title: "Region", text: true, source: true },
				{ key: "self_ns", title: "Self", show: (v) => duration(v) },
				{ key: "share", title: data.follows ? "% range" : "% run", show: (v) => (100 * v).toFixed(1) },
				{ key: "count", title: "Count", show: count },
				{ key: "p50_ns", title: "p50", show: (v) => duration(v) },
				{ key: "p99_ns", title: "p99", show: (v) => duration(v) },
			],
			rows,
			{
				sort: "self_ns",
				label: "Top regions",
				limit: 14,
				compact: true,
				onclick: (row) => pick(row, false),
				ondblclick: (row) => pick(row, true),
			},
		),
		el("p"),
		legend(),
	);
}

/** @param {string} text @param {string} more */
const bones = (text, more) =>
	el(
		"div",
		{ class: "page", "aria-busy": "true" },
		el("section", { class: "verdict fine" }, el("h1", { text }), el("p", { text: more })),
		el("div", { class: "bone short" }),
		el("div", { class: "columns" }, el("div", { class: "bone" }), el("div", { class: "bone" })),
	);

/** @param {any} failed @param {() => void} retry */
const refused = (failed, retry) =>
	el(
		"div",
		{ class: "page" },
		el(
			"section",
			{ class: "verdict", role: "alert" },
			el("h1", { text: `${failed.message}.` }),
			el("p", { text: failed.hint ?? "The other tabs may work." }),
			el("button", { class: "button", text: "Try again", onclick: retry }),
		),
	);

/** @type {import("../shell.js").Tab} */
export const overview = {
	id: "overview",
	title: "Overview",
	has: () => true,
	open(shell) {
		const { source } = shell;
		const previous = source.onchange;
		/** @type {(() => void)[]} */ const closers = [];
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
		if (source.read === false)
			return {
				close,
				node: source.failed
					? refused(source.failed, () => source.refresh())
					: bones("Reading the recording…", "The timeline is there already."),
			};
		const stretch = stretchOf(shell, again);
		if (stretch && !source.glance)
			source.onchange = again; // the zones of a file come later than its page
		if (stretch && !stretch.doc)
			return {
				close,
				node: stretch.failed
					? refused(stretch.failed, stretch.retry)
					: bones(`${rangeText(/** @type {any} */ (shell.range))}…`, "Reading the range."),
			};
		const data = stretch?.doc ?? source.data();
		const left = data.steps.x.length ? stepsCard(data, shell, closers) : shares(data);
		return {
			close,
			node: el(
				"div",
				{ class: "page" },
				stretch ? rangeVerdict(data, shell) : verdict(data, shell),
				figures(data),
				el("div", { class: "columns" }, left, regionsCard(data, shell)),
			),
		};
	},
};
