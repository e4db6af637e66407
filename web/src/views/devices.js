// Queues of devices, what held them up, models, and who launched what.
import { stretchOf } from "../stretch.js";
import { table } from "../tables.js";
import { count, duration, el, nothing, percent, rangeText } from "../util.js";

const time = (v) => duration(v);

/** What a queue's time went to, and the colour of each. */
const SPENT = [
	["busy", "busy_ns", "var(--device-1)"],
	["host late", "host_late_ns", "var(--python-1)"],
	["synchronisation", "sync_ns", "var(--torch-1)"],
	["dependency", "dependency_ns", "var(--c-1)"],
	["launch", "launch_ns", "var(--line-1)"],
];

/**
 * Busy, the causes of its gaps, and what is before its first operation or after its last.
 * @param {any} row
 */
function spent(row) {
	const all = row.busy_ns + row.idle_ns;
	const said = SPENT.map(([name, key]) => `${name} ${percent(all ? row[key] / all : 0)}`).join(", ");
	const bar = el("div", { class: "spent", role: "img", "aria-label": said, title: said });
	let rest = all;
	for (const [, key, colour] of SPENT) {
		const node = el("div");
		node.style.flexGrow = String(row[key]);
		node.style.background = colour;
		rest -= row[key];
		bar.append(node);
	}
	const nothing = el("div");
	nothing.style.flexGrow = String(Math.max(0, rest));
	bar.append(nothing);
	return bar;
}

const key = () =>
	el(
		"p",
		{ class: "key" },
		...SPENT.map(([name, , colour]) => {
			const square = el("i");
			square.style.background = colour;
			return el("span", {}, square, name);
		}),
	);

const QUEUES = [
	{ key: "queue", title: "Queue", text: true, show: (v, row) => `${v}, ${row.device}` },
	{ key: "utilisation", title: "Time", text: true, node: spent },
	{ key: "busy_ns", title: "Busy", show: time },
	{ key: "idle_ns", title: "Idle", show: time },
	{ key: "utilisation", title: "%", show: percent },
	{ key: "overlap", title: "Overlap", show: percent },
	{ key: "ops", title: "Ops", show: count },
	{ key: "gaps", title: "Gaps", show: count },
	{ key: "longest_gap_ns", title: "Longest", show: time },
	{ key: "host_late_ns", title: "Host late", show: time },
	{ key: "sync_ns", title: "Sync", show: time },
	{ key: "dependency_ns", title: "Depends", show: time },
	{ key: "launch_ns", title: "Launch", show: time },
];
const MODELS = [
	{ key: "model", title: "Model", text: true },
	{ key: "device", title: "Device" },
	{ key: "core", title: "Core" },
	{ key: "executions", title: "Executions", show: count },
	{ key: "p50_ns", title: "p50", show: time },
	{ key: "p99_ns", title: "p99", show: time },
	{ key: "min_ns", title: "Shortest", show: time },
	{ key: "max_ns", title: "Longest", show: time },
	{ key: "total_ns", title: "Total", show: time },
];
const LAUNCHES = [
	{ key: "name", title: "Operation", text: true },
	{ key: "module", title: "Module", text: true },
	{ key: "function", title: "Function", text: true },
	{ key: "zone", title: "Zone", text: true },
	{ key: "ops", title: "Ops", show: count },
	{ key: "p50_ns", title: "p50", show: time },
	{ key: "total_ns", title: "Total", show: time },
];

const card = (title, about, columns, rows, sort, ...more) =>
	rows.length
		? el(
				"section",
				{ class: "card" },
				el("h2", { text: title }, el("span", { text: about })),
				table(columns, rows, { sort, label: title }),
				...more,
			)
		: null;

/** @type {import("../shell.js").Tab} */
export const devices = {
	id: "devices",
	title: "Devices",
	has: (source) => source.data().queues.length > 0 || (source.data().models ?? []).some((m) => m.device !== "cpu"),
	open(shell) {
		let closed = false;
		const whole = shell.source.data();
		const stretch = stretchOf(shell, () => {
			if (!closed)
				shell.open();
		});
		const told = stretch?.doc?.follows.queues ? stretch.doc.follows : null;
		const { queues, models = [], launches = [] } = told ?? whole;
		if (!whole.queues.length && !whole.models.length)
			return {
				node: nothing(
					"No device was recorded",
					"Queues of accelerators are recorded by",
					"kymo run --device -- python train.py",
				),
			};
		const none = this.has(shell.source)
			? null
			: el("p", {
					class: "muted",
					text: "No device was recorded. Queues of accelerators are recorded by kymo run --device -- python train.py",
				});
		const of = !stretch
			? ""
			: stretch.failed
				? `whole run, since the range could not be read (${stretch.failed.message}); `
				: !stretch.doc
					? "reading the range… "
					: told
						? `in the selected range, ${rangeText(/** @type {any} */ (shell.range))}; `
						: "whole run; ";
		const idle =
			told && !models.length && !launches.length && !queues.some((/** @type {any} */ q) => q.ops)
				? el("p", { class: "muted", text: "No operation of a device ran in this range." })
				: null;
		return {
			close: () => {
				closed = true;
			},
			node: el(
				"div",
				{ class: "page" },
				...[
					none,
					idle,
					card("Models", `${of}latency of their runs`, MODELS, models, "total_ns"),
					card(
						"Queues",
						`${of}busy, and what the gaps between operations come to by cause`,
						QUEUES,
						queues,
						"busy_ns",
						key(),
					),
					card(
						"Launches",
						`${of}which module, function and zone gave the device its work`,
						LAUNCHES,
						launches,
						"total_ns",
					),
				].filter(Boolean),
			),
		};
	},
};
