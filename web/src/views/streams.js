// What was recorded, what was lost, and what recording cost: where the footer leads.
import { table } from "../tables.js";
import { count, duration, el } from "../util.js";

/** @type {import("../shell.js").Tab} */
export const streams = {
	id: "streams",
	title: "Losses and overhead",
	hidden: true,
	has: () => true,
	open(shell) {
		const data = shell.source.data();
		return {
			node: el(
				"div",
				{ class: "page" },
				el(
					"section",
					{ class: "card" },
					el("h2", { text: "Rows" }, el("span", { text: "emitted = kept + overwritten + dropped" })),
					table(
						[
							{ key: "table_name", title: "Table", text: true },
							...["emitted", "kept", "overwritten", "dropped"].map((key) => ({
								key,
								title: key,
								show: count,
							})),
						],
						data.streams,
						{ sort: "emitted", label: "Rows of each table", compact: true },
					),
				),
				el(
					"section",
					{ class: "card" },
					el("h2", { text: "What recording cost" }),
					table(
						[
							{ key: "source", title: "Source", text: true },
							{ key: "events", title: "Events", show: count },
							{
								key: "cost_ns_per_event",
								title: "Each",
								show: (v) => (v === null ? "–" : v < 1000 ? `${v.toFixed(1)} ns` : duration(v)),
							},
							{ key: "total_ns", title: "In all", show: (v) => duration(v) },
							{ key: "pct", title: "% of the run", show: (v) => (v === null ? "–" : v.toFixed(2)) },
						],
						data.overhead,
						{ sort: "total_ns", label: "Overhead", compact: true },
					),
				),
				data.zones.detail
					? el(
							"section",
							{ class: "card" },
							el("h2", { text: "Zones in this file" }),
							el("p", { text: data.zones.detail }),
						)
					: null,
			),
		};
	},
};
