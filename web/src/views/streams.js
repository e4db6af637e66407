// Recorded and lost rows, and the cost of recording; the footer links here.
import { el } from "../dom.js";
import { count, duration } from "../format.js";
import { table } from "../tables.js";

/** @import { RunDocument, Tab } from "../types.js" */

/** @param {number|null} ns */
const costText = (ns) => (ns !== null && ns < 1000 ? `${ns.toFixed(1)} ns` : duration(ns));

/** @param {RunDocument} data */
function rowsCard({ streams: rows }) {
	const columns = [
		{ key: "table_name", title: "Table", text: true },
		...["emitted", "kept", "overwritten", "dropped"].map((key) => ({ key, title: key, show: count })),
	];
	return el(
		"section",
		{ class: "card" },
		el("h2", { text: "Rows" }, el("span", { text: "emitted = kept + overwritten + dropped" })),
		table(columns, rows, { sort: "emitted", label: "Rows of each table", compact: true }),
	);
}

/** @param {RunDocument} data */
function overheadCard({ overhead }) {
	const columns = [
		{ key: "source", title: "Source", text: true },
		{ key: "events", title: "Events", show: count },
		{ key: "cost_ns_per_event", title: "Per event", show: costText },
		{ key: "total_ns", title: "Total", show: duration },
		{
			key: "pct",
			title: "% of the run",
			show: (/** @type {number|null} */ v) => (v === null ? "–" : v.toFixed(2)),
		},
	];
	return el(
		"section",
		{ class: "card" },
		el("h2", { text: "Overhead of recording" }),
		table(columns, overhead, { sort: "total_ns", label: "Overhead", compact: true }),
	);
}

/** @param {RunDocument} data */
function detailCard({ zones: { detail } }) {
	if (!detail)
		return null;
	return el("section", { class: "card" }, el("h2", { text: "Zones in this file" }), el("p", { text: detail }));
}

/** @type {Tab} */
export const streams = {
	id: "streams",
	title: "Losses and overhead",
	hidden: true,
	has: () => true,
	open(shell) {
		const data = shell.source.data();
		return { node: el("div", { class: "page" }, rowsCard(data), overheadCard(data), detailCard(data)) };
	},
};
