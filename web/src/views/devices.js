// Queues of devices.
import { table } from "../tables.js";
import { count, duration, el, nothing, percent } from "../util.js";

/** @type {import("../shell.js").Tab} */
export const devices = {
	id: "devices", title: "Devices", has: (source) => source.data().queues.length > 0,
	open(shell) {
		const rows = shell.source.data().queues;
		if (!rows.length)
			return { node: nothing("No device was recorded", "Queues of accelerators are recorded by", "kymo run --device -- python train.py") };
		return { node: el("div", { class: "page" }, el("section", { class: "card" }, el("h2", { text: "Queues" }), table([
			{ key: "device", title: "Device", text: true }, { key: "queue", title: "Queue" }, { key: "busy_ns", title: "Busy", show: (v) => duration(v) },
			{ key: "idle_ns", title: "Idle", show: (v) => duration(v) }, { key: "utilisation", title: "Utilisation", show: percent },
			{ key: "overlap", title: "Overlap", show: percent }, { key: "ops", title: "Operations", show: count }], rows, { sort: "busy_ns", label: "Queues" }))) };
	},
};
