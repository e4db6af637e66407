// Device queues with idle time by cause, models, and the code that launched the operations.
import { el, emptyState } from "../dom.js";
import { count, duration, percent, rangeText } from "../format.js";
import { ranksLabel } from "../job/ranks.js";
import { selectedRange } from "../range.js";
import { table } from "../tables.js";

/** @import { Queue, RunDocument, Source, Tab } from "../types.js" */
/** @import { Shell } from "../shell.js" */
/** @import { TableColumn } from "../tables.js" */

const NO_DEVICE = "No device operations recorded";
const HOW = "Record the queues of accelerators with";
const COMMAND = "kymo run --device -- python train.py";

/**
 * Parts of a queue's time, with their colours.
 * @type {[string, "busy_ns"|"host_late_ns"|"sync_ns"|"dependency_ns"|"launch_ns", string][]}
 */
const PARTS = [
	["busy", "busy_ns", "var(--device-1)"],
	["host late", "host_late_ns", "var(--python-1)"],
	["synchronisation", "sync_ns", "var(--torch-1)"],
	["dependency", "dependency_ns", "var(--c-1)"],
	["launch", "launch_ns", "var(--line-1)"],
];

/**
 * A bar of busy time and idle time by cause. The rest is before the first operation and after the last.
 * @param {Queue} queue
 */
function timeBar(queue) {
	const all = queue.busy_ns + queue.idle_ns;
	const text = PARTS.map(([name, key]) => `${name} ${percent(all ? queue[key] / all : 0)}`).join(", ");
	const bar = el("div", { class: "spent", role: "img", "aria-label": text, title: text });
	const add = (/** @type {number} */ ns, /** @type {string} */ colour) => {
		const part = el("div");
		part.style.flexGrow = String(Math.max(0, ns));
		part.style.background = colour;
		bar.append(part);
	};
	for (const [, key, colour] of PARTS)
		add(queue[key], colour);
	add(
		PARTS.reduce((rest, [, key]) => rest - queue[key], all),
		"",
	);
	return bar;
}

function timeKey() {
	const entries = PARTS.map(([name, , colour]) => {
		const square = el("i");
		square.style.background = colour;
		return el("span", {}, square, name);
	});
	return el("p", { class: "key" }, ...entries);
}

/** @type {TableColumn[]} */
const QUEUES = [
	{ key: "queue", title: "Queue", text: true, show: (v, row) => `${v}, ${row.device}` },
	{ key: "utilisation", title: "Time", text: true, node: timeBar },
	{ key: "busy_ns", title: "Busy", show: duration },
	{ key: "idle_ns", title: "Idle", show: duration },
	{ key: "utilisation", title: "%", show: percent },
	{ key: "overlap", title: "Overlap", show: percent },
	{ key: "ops", title: "Ops", show: count },
	{ key: "gaps", title: "Gaps", show: count },
	{ key: "longest_gap_ns", title: "Longest", show: duration },
	{ key: "host_late_ns", title: "Host late", show: duration },
	{ key: "sync_ns", title: "Sync", show: duration },
	{ key: "dependency_ns", title: "Depends", show: duration },
	{ key: "launch_ns", title: "Launch", show: duration },
];
/** @type {TableColumn[]} */
const MODELS = [
	{ key: "model", title: "Model", text: true },
	{ key: "device", title: "Device" },
	{ key: "core", title: "Core" },
	{ key: "executions", title: "Executions", show: count },
	{ key: "p50_ns", title: "p50", show: duration },
	{ key: "p99_ns", title: "p99", show: duration },
	{ key: "min_ns", title: "Shortest", show: duration },
	{ key: "max_ns", title: "Longest", show: duration },
	{ key: "total_ns", title: "Total", show: duration },
];
/** @type {TableColumn[]} */
const LAUNCHES = [
	{ key: "name", title: "Operation", text: true },
	{ key: "module", title: "Module", text: true },
	{ key: "function", title: "Function", text: true },
	{ key: "zone", title: "Zone", text: true },
	{ key: "ops", title: "Ops", show: count },
	{ key: "p50_ns", title: "p50", show: duration },
	{ key: "total_ns", title: "Total", show: duration },
];

/**
 * @param {string} title
 * @param {string} about
 * @param {TableColumn[]} columns
 * @param {any[]} rows no card without rows
 * @param {string} sort
 * @param {...Node} more
 */
function card(title, about, columns, rows, sort, ...more) {
	if (!rows.length)
		return null;
	const heading = el("h2", { text: title }, el("span", { text: about }));
	return el("section", { class: "card" }, heading, table(columns, rows, { sort, label: title }), ...more);
}

/**
 * The words that say which time a table is of, for its note.
 * @param {Shell} shell
 * @param {ReturnType<typeof selectedRange>} selected
 * @param {boolean} isRange the table is of the range
 */
export function timeNote(shell, selected, isRange) {
	if (!selected)
		return "";
	const ranks = shell.ranks ? ranksLabel(shell.ranks).toLowerCase() : "";
	if (!shell.range && selected.doc)
		return isRange ? `${ranks}; ` : "all ranks; ";
	if (selected.failed)
		return `whole run (cannot read the range: ${selected.failed.message}); `;
	if (!selected.doc)
		return "reading the range… ";
	if (!isRange || !shell.range)
		return "whole run; ";
	return `${ranks ? `${ranks}, ` : ""}selected range, ${rangeText(shell.range)}; `;
}

/** @param {Source} source */
function hasDevice(source) {
	const { queues, models } = source.data();
	return queues.length > 0 || models.some((model) => model.device !== "cpu");
}

/** @param {Pick<RunDocument, "queues"|"models"|"launches">} data @param {string} note */
const cards = ({ queues, models, launches }, note) => [
	card("Models", `${note}latency of their executions`, MODELS, models, "total_ns"),
	card("Queues", `${note}utilisation, with idle time by cause`, QUEUES, queues, "busy_ns", timeKey()),
	card(
		"Launches",
		`${note}operations by the module, function and zone that launched them`,
		LAUNCHES,
		launches,
		"total_ns",
	),
];

/** @type {Tab} */
export const devices = {
	id: "devices",
	title: "Devices",
	has: hasDevice,
	open(shell) {
		const whole = shell.source.data();
		if (!whole.queues.length && !whole.models.length)
			return { node: emptyState(NO_DEVICE, HOW, COMMAND) };
		let closed = false;
		const selected = selectedRange(shell, () => {
			if (!closed)
				shell.open();
		});
		const part = selected?.doc?.ofRange;
		const { queues = [], models = [], launches = [] } = part?.queues ? part : whole;
		const isRange = Boolean(part?.queues);
		const idle = isRange && !models.length && !launches.length && !queues.some((queue) => queue.ops);
		return {
			close: () => {
				closed = true;
			},
			node: el(
				"div",
				{ class: "page" },
				hasDevice(shell.source) ? null : el("p", { class: "muted", text: `${NO_DEVICE}. ${HOW} ${COMMAND}` }),
				idle ? el("p", { class: "muted", text: "No device operation ran in this range." }) : null,
				...cards({ queues, models, launches }, timeNote(shell, selected, isRange)),
			),
		};
	},
};
