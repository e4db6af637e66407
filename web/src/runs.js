// The list of programs and recordings: running ones first, ranks of one job under one heading.
import { el } from "./dom.js";
import { bytes, count } from "./format.js";
import { stateOf } from "./shell.js";

/** @import { Target } from "./types.js" */

/** @param {{state?: string}} target */
export const isLive = (target) => target.state === "running" || target.state === "hung";

/** @param {string|null} path */
export const fileName = (path) => path?.split("/").pop() ?? "";

/** @param {Target} target */
function startText(target) {
	const at = new Date(target.started_unix_ns / 1e6);
	const time = at.toLocaleTimeString("en-GB");
	const today = new Date().toDateString() === at.toDateString();
	return today ? time : `${at.toLocaleDateString("en-CA")} ${time.slice(0, 5)}`;
}

/** @param {Target} target */
function stateNow(target) {
	if (target.unreadable)
		return ["bad", "unreadable"];
	const age = Math.max(0, Date.now() * 1e6 - target.started_unix_ns);
	return stateOf(isLive(target) ? { ...target, duration_ns: age } : target);
}

/** @param {Target} target */
function nameNode(target) {
	if ((target.ranks ?? 0) > 1 && (target.rank ?? null) !== null)
		return el("span", { class: "what rank", text: `rank ${target.rank} of ${target.ranks}` });
	const command = target.command && target.command !== target.program ? target.command : fileName(target.path);
	const about = target.unreadable ?? [target.name, command].filter(Boolean).join(" · ");
	return el("span", { class: "what" }, target.program ?? "?", about ? el("span", { text: about }) : null);
}

/** @param {Target} target @param {string|null} chosen @param {(id: string) => void} onopen */
function targetRow(target, chosen, onopen) {
	const [kind, state] = stateNow(target);
	return el(
		"button",
		{
			class: "target",
			type: "button",
			"aria-current": String(target.id === chosen),
			title: [target.command, target.path, target.unreadable].filter(Boolean).join("\n"),
			"data-id": target.id,
			disabled: Boolean(target.unreadable),
			onclick: () => onopen(target.id),
		},
		nameNode(target),
		el("span", { class: `pill ${kind}`, text: state }),
		el("span", { class: "number", text: `pid ${target.pid}` }),
		el("span", { class: "number", text: startText(target) }),
		el("span", { class: "number", text: target.steps ? `${count(target.steps)} steps` : bytes(target.bytes) }),
	);
}

/**
 * Ranks of one job have the same program and number of ranks, and began within a second.
 * @param {Target} a
 * @param {Target} b
 */
const sameJob = (a, b) =>
	(a.ranks ?? 0) > 1 &&
	a.ranks === b.ranks &&
	(a.rank ?? null) !== null &&
	(b.rank ?? null) !== null &&
	a.program === b.program &&
	Math.abs(a.started_unix_ns - b.started_unix_ns) < 1e9;

/** @param {Target[]} targets */
function jobsOf(targets) {
	/** @type {Target[][]} */
	const jobs = [];
	for (const target of targets) {
		const job = jobs.find(([first]) => sameJob(target, first));
		if (job)
			job.push(target);
		else
			jobs.push([target]);
	}
	return jobs;
}

/** @param {Target[]} targets @param {string|null} chosen @param {(id: string) => void} onopen */
export function runList(targets, chosen, onopen) {
	const list = el("div", { class: "runlist", role: "group", "aria-label": "Programs and recordings" });
	/** @type {[string, Target[]][]} */
	const groups = [
		["Running", targets.filter(isLive)],
		["Finished", targets.filter((t) => !isLive(t))],
	];
	for (const [title, some] of groups) {
		if (!some.length)
			continue;
		list.append(el("h2", { text: title }));
		for (const job of jobsOf(some)) {
			if ((job[0].ranks ?? 0) > 1 && (job[0].rank ?? null) !== null)
				list.append(el("h2", { text: `${job[0].program}, ${job[0].ranks} ranks` }));
			for (const target of [...job].sort((a, b) => (a.rank ?? 0) - (b.rank ?? 0)))
				list.append(targetRow(target, chosen, onopen));
		}
	}
	return list;
}

/** @param {Target} target @param {string} text in lower case */
function matches(target, text) {
	const { program, name, command, path, pid, state } = target;
	return [program, name, command, path, pid, state].join(" ").toLowerCase().includes(text);
}

/**
 * A dialog with the list and a filter.
 * @param {() => Target[]} targets
 * @param {() => string|null} chosen
 * @param {(id: string) => void} onopen
 */
export function runDialog(targets, chosen, onopen) {
	const filter = el("input", { type: "search", placeholder: "Filter", "aria-label": "Filter recordings" });
	const host = el("div");
	const dialog = el("dialog", { class: "runs", "aria-label": "Recordings" }, filter, host);
	const open = (/** @type {string} */ id) => {
		dialog.close();
		onopen(id);
	};
	const fill = () => {
		const text = filter.value.toLowerCase();
		const some = targets().filter((t) => matches(t, text));
		const none = text
			? "No recording matches the filter."
			: "No recordings yet. Record one: kymo run -- python train.py";
		host.replaceChildren(some.length ? runList(some, chosen(), open) : el("p", { class: "muted", text: none }));
	};
	filter.addEventListener("input", fill);
	filter.addEventListener("keydown", (e) => {
		/** @type {HTMLButtonElement|null} */
		const first = host.querySelector("button.target:not([disabled])");
		if (e.key === "Enter")
			first?.click();
	});
	dialog.addEventListener("click", (e) => {
		if (e.target === dialog)
			dialog.close();
	});
	document.body.append(dialog);
	const show = () => {
		filter.value = "";
		fill();
		dialog.showModal();
	};
	return { dialog, fill, show };
}
