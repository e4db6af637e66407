// Memory over time, its peak, and the call sites that allocated it.
import { fileNamed } from "../code/frames.js";
import { el, emptyState, figure } from "../dom.js";
import { bytes, count, duration } from "../format.js";
import { selectedRange } from "../range.js";
import { table } from "../tables.js";
import { ranksNote, seriesCharts } from "./metrics.js";

/** @import { RunDocument, Site, Tab } from "../types.js" */
/** @import { Shell } from "../shell.js" */

const COMMAND = "kymo run --memory -- python train.py";

/**
 * The peak of allocated memory with its estimated share, and its growth: label, value and note.
 * @param {RunDocument} data
 * @returns {[string, string, string][]}
 */
function allocationFigures({ allocated: [peak], growth: [growth] }) {
	/** @type {[string, string, string][]} */
	const figures = [];
	if (peak) {
		const error = peak.error_bytes > 0 ? ` ± ${bytes(peak.error_bytes)}` : "";
		const estimated = Math.round((100 * peak.estimated_bytes) / Math.max(1, peak.peak_bytes));
		const note = `at ${duration(peak.at_ns)}, ${estimated} % estimated, ${peak.source}`;
		figures.push(["Peak, allocated", bytes(peak.peak_bytes) + error, note]);
	}
	if (growth) {
		const note = `since step ${growth.since_step}${growth.site ? `, at ${growth.site}` : ""}`;
		figures.push(["Grows", `${bytes(growth.step_bytes)} a step`, note]);
	}
	return figures;
}

/** @param {RunDocument} data */
function residentFigures({ memory_facts: facts }) {
	const grown = Math.max(0, (facts.last_bytes ?? 0) - (facts.early_bytes ?? 0));
	return [
		figure("Peak, resident", bytes(facts.peak_bytes), `at ${duration(facts.peak_at_ns)}`),
		figure("At the end", bytes(facts.last_bytes), ""),
		figure("After start-up", bytes(facts.early_bytes), `at ${duration(facts.early_at_ns)}`),
		figure(`Grown since ${duration(facts.early_at_ns)}`, bytes(grown), "to the end"),
		figure("Samples", count(facts.samples), ""),
	];
}

/**
 * Opens the source of a call site, "train.py:13".
 * @param {Shell} shell
 * @param {Site} site
 */
async function openSite(shell, { site }) {
	const [, name, line] = /^(.+):(\d+)$/.exec(site) ?? [];
	const file = name ? fileNamed(await shell.source.sources(), name) : undefined;
	if (file)
		shell.go("source", { file: file.file, line });
}

/** @param {Site[]} sites @param {number} peak bytes @param {Shell} shell */
function sitesCard(sites, peak, shell) {
	if (!sites.length)
		return el("p", { class: "muted" }, "To record which lines allocate: ", el("code", { text: COMMAND }));
	const rows = sites.map((site) => ({ ...site, share: peak > 0 ? (100 * site.at_peak_bytes) / peak : 0 }));
	const columns = [
		{ key: "site", title: "Site", text: true },
		{ key: "at_peak_bytes", title: "At peak", show: bytes },
		{ key: "share", title: "Share", show: (/** @type {number} */ v) => `${v.toFixed(1)} %` },
		{ key: "live_bytes", title: "At the end", show: bytes },
		{ key: "allocated_bytes", title: "Allocated", show: bytes },
		{ key: "count", title: "Count", show: count },
	];
	return el(
		"section",
		{ class: "card" },
		el("h2", { text: "Live at the peak, by call site" }, el("span", { text: "click a row to open its line" })),
		table(columns, rows, {
			sort: "at_peak_bytes",
			label: "Call sites",
			onclick: (row) => openSite(shell, row),
		}),
	);
}

/** @param {RunDocument} data */
function figures(data) {
	const { sites } = data;
	const allocations = sites.length ? count(sites.reduce((sum, site) => sum + site.count, 0)) : "not recorded";
	const allocated = allocationFigures(data);
	return el(
		"section",
		{ class: allocated.length ? "figures many" : "figures" },
		...residentFigures(data),
		...allocated.map(([label, value, note]) => figure(label, value, note)),
		figure("Allocations", allocations, ""),
	);
}

/** @type {Tab} */
export const memory = {
	id: "memory",
	title: "Memory",
	has: (source) => source.data().series.some((s) => s.group === "memory"),
	open(shell) {
		let closed = false;
		const whole = shell.source.data();
		const selected = shell.ranks
			? selectedRange(shell, () => {
					if (!closed)
						shell.open();
				})
			: null;
		const part = selected?.doc?.ofRange.series ? selected.doc : null;
		const data = part ?? whole;
		const { sites, allocated } = data;
		const peak = allocated[0];
		const list = data.series
			.filter((s) => s.group === "memory")
			.map((s) => (s.name === `Allocated, ${peak?.source}` ? { ...s, peak_ns: peak.at_ns } : s));
		if (!whole.series.some((s) => s.group === "memory"))
			return {
				node: emptyState(
					"No memory use recorded",
					"kymo run records resident memory once a second. Record allocations, too, with",
					COMMAND,
				),
			};
		const charts = seriesCharts(list, shell, list.length > 2 || sites.length ? 190 : 340);
		const spoken = allocationFigures(data).map(([label, value, note]) => `${label}: ${value} ${note}`);
		const note = "The charts show the selected range; figures and call sites are of the whole run.";
		return {
			node: el(
				"div",
				{ class: "page" },
				ranksNote(shell, selected, Boolean(part)),
				figures(data),
				shell.range ? el("p", { class: "muted", text: note }) : null,
				spoken.length ? el("p", { class: "sr said", text: spoken.join(". ") }) : null,
				charts.grid,
				sitesCard(sites, peak?.peak_bytes ?? 0, shell),
			),
			close: () => {
				closed = true;
				charts.close();
			},
		};
	},
};
