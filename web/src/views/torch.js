// Modules of a PyTorch model, as a tree by their names.
import { el, emptyState } from "../dom.js";
import { count, duration } from "../format.js";
import { selectedRange } from "../range.js";
import { table } from "../tables.js";
import { timeNote } from "./devices.js";

/** @import { Module, Tab } from "../types.js" */
/** @import { TableColumn } from "../tables.js" */

const show = (/** @type {number|null} */ ns) => (ns ? duration(ns) : "–");
const megabytes = (/** @type {number|null} */ value) => (value === null ? "–" : `${value.toFixed(1)} MB`);

/** @param {Module[]} rows @returns {TableColumn[]} */
const columns = (rows) => [
	{ key: "module", title: "Module", text: true, indent: (row) => row.depth },
	{ key: "calls", title: "Calls", show: count },
	{ key: "forward_ns", title: "Forward", show },
	{ key: "backward_ns", title: "Backward", show },
	{ key: "step_ns", title: "Step", show },
	{ key: "self_ns", title: "Self", show },
	{ key: "total_ns", title: "Total", show },
	...(rows.some((row) => row.device_ns) ? [{ key: "device_ns", title: "Device", show }] : []),
	{ key: "max_allocated", title: "Device memory", show: megabytes },
];

const noDeviceMemory = () =>
	el(
		"p",
		{ class: "muted" },
		"Device memory is the peak that torch allocated on a CUDA device; torch used no CUDA device in this run. ",
		"To record host allocations, which the Memory tab shows: ",
		el("code", { text: "kymo run --memory -- python train.py" }),
	);

/** @type {Tab} */
export const torch = {
	id: "torch",
	title: "Torch",
	has: (source) => source.data().modules.length > 0,
	open(shell) {
		const whole = shell.source.data().modules;
		if (!whole.length)
			return {
				node: emptyState(
					"No torch modules recorded",
					"Record the modules of a model with",
					"kymo run --torch -- python train.py",
				),
			};
		let closed = false;
		const selected = selectedRange(shell, () => {
			if (!closed)
				shell.open();
		});
		const part = selected?.doc?.ofRange.modules;
		const rows = part ?? whole;
		const time = timeNote(shell, selected, Boolean(part));
		const note = `${time}self time is without inner modules; click a heading to sort`;
		const modules = table(columns(rows), rows, {
			label: "Torch modules",
			compact: true,
			onclick: () => shell.go("flame"),
		});
		return {
			close: () => {
				closed = true;
			},
			node: el(
				"div",
				{ class: "page" },
				el(
					"section",
					{ class: "card" },
					el("h2", { text: "Modules" }, el("span", { text: note })),
					modules,
					rows.length ? null : el("p", { class: "muted", text: "No module ran in this range." }),
					whole.every((row) => row.max_allocated === null) ? noDeviceMemory() : null,
				),
			),
		};
	},
};
