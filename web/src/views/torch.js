// Modules of a PyTorch model, as the tree that their names are.
import { stretchOf } from "../stretch.js";
import { table } from "../tables.js";
import { count, duration, el, nothing, rangeText } from "../util.js";

/** @type {import("../shell.js").Tab} */
export const torch = {
	id: "torch",
	title: "Torch",
	has: (source) => source.data().modules.length > 0,
	open(shell) {
		let closed = false;
		const whole = shell.source.data().modules;
		const stretch = stretchOf(shell, () => {
			if (!closed)
				shell.open();
		});
		const rows = stretch?.doc?.follows.modules ?? whole;
		if (!whole.length)
			return {
				node: nothing(
					"No torch modules were recorded",
					"Modules are recorded once torch is imported:",
					"kymo run --torch -- python train.py",
				),
			};
		const show = (/** @type {any} */ v) => (v ? duration(v) : "–");
		const megabytes = (/** @type {any} */ v) => (v === null ? "–" : `${v.toFixed(1)} MB`);
		const on_device = rows.some((/** @type {any} */ r) => r.device_ns)
			? [{ key: "device_ns", title: "Device", show }]
			: [];
		const made = table(
			[
				{ key: "module", title: "Module", text: true, indent: (r) => r.depth },
				{ key: "calls", title: "Calls", show: count },
				{ key: "forward_ns", title: "Forward", show },
				{ key: "backward_ns", title: "Backward", show },
				{ key: "step_ns", title: "Step", show },
				{ key: "self_ns", title: "Self", show },
				{ key: "total_ns", title: "Total", show },
				...on_device,
				{ key: "max_allocated", title: "Device memory", show: megabytes },
			],
			rows,
			{ label: "Torch modules", compact: true, onclick: () => shell.go("flame") },
		);
		const of = !stretch
			? ""
			: !stretch.doc
				? "reading the range… "
				: stretch.doc.follows.modules
					? `in the selected range, ${rangeText(/** @type {any} */ (shell.range))}; `
					: "whole run; ";
		const unmeasured = whole.every((/** @type {any} */ r) => r.max_allocated === null)
			? el(
					"p",
					{ class: "muted" },
					"Device memory is the peak of what torch holds on a CUDA device, and torch used none in this run. What the program allocates on the host is in the Memory tab after ",
					el("code", { text: "kymo run --memory -- python train.py" }),
					".",
				)
			: null;
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
					el(
						"h2",
						{ text: "Modules" },
						el("span", { text: `${of}self: without the modules inside; click a head to sort` }),
					),
					made,
					rows.length ? null : el("p", { class: "muted", text: "No module ran in this range." }),
					unmeasured,
				),
			),
		};
	},
};
