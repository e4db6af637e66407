// Queues of devices, what held them up, and models.
import { table } from "../tables.js";
import { count, duration, el, nothing, percent } from "../util.js";

const time = (v) => duration(v);

const QUEUES = [
	{ key: "device", title: "Device", text: true }, { key: "queue", title: "Queue" }, { key: "busy_ns", title: "Busy", show: time },
	{ key: "idle_ns", title: "Idle", show: time }, { key: "utilisation", title: "Utilisation", show: percent },
	{ key: "overlap", title: "Overlap", show: percent }, { key: "ops", title: "Operations", show: count }, { key: "gaps", title: "Gaps", show: count },
	{ key: "host_late_ns", title: "Host late", show: time }, { key: "sync_ns", title: "Synchronisation", show: time },
	{ key: "dependency_ns", title: "Dependency", show: time }, { key: "launch_ns", title: "Launch", show: time }];
const MODELS = [
	{ key: "model", title: "Model", text: true }, { key: "device", title: "Device" }, { key: "core", title: "Core" },
	{ key: "executions", title: "Executions", show: count }, { key: "p50_ns", title: "p50", show: time }, { key: "p99_ns", title: "p99", show: time },
	{ key: "min_ns", title: "Shortest", show: time }, { key: "max_ns", title: "Longest", show: time }, { key: "total_ns", title: "Total", show: time }];

const card = (title, columns, rows, sort) => rows.length
	? el("section", { class: "card" }, el("h2", { text: title }), table(columns, rows, { sort, label: title })) : null;

/** @type {import("../shell.js").Tab} */
export const devices = {
	id: "devices", title: "Devices", has: (source) => source.data().queues.length > 0 || (source.data().models ?? []).some((m) => m.device !== "cpu"),
	open(shell) {
		const { queues, models = [] } = shell.source.data();
		if (!queues.length && !models.length)
			return { node: nothing("No device was recorded", "Queues of accelerators are recorded by", "kymo run --device -- python train.py") };
		return { node: el("div", { class: "page" }, ...[card("Models", MODELS, models, "total_ns"), card("Queues", QUEUES, queues, "busy_ns")].filter(Boolean)) };
	},
};
