// The list of programs and recordings: running ones first, ranks of one job under one heading.
import { pillOf } from "./shell.js";
import { bytes, count, el } from "./util.js";

/** @param {any} target */
export const isLive = (target) => target.state === "running" || target.state === "hung";

/** @param {any} target */
function when(target) {
	const at = new Date(target.started_unix_ns / 1e6);
	const today = new Date().toDateString() === at.toDateString();
	return today
		? at.toLocaleTimeString("en-GB")
		: `${at.toLocaleDateString("en-CA")} ${at.toLocaleTimeString("en-GB").slice(0, 5)}`;
}

/** @param {any} target @param {string|null} chosen @param {(id: string) => void} onopen */
function row(target, chosen, onopen) {
	const since = isLive(target)
		? { ...target, duration_ns: Math.max(0, Date.now() * 1e6 - target.started_unix_ns) }
		: target;
	const [kind, said] = target.unreadable ? ["bad", "unreadable"] : pillOf(since);
	const ranked = target.ranks > 1;
	const where =
		target.command && target.command !== target.program ? target.command : (target.path?.split("/").pop() ?? "");
	const about = target.unreadable ?? [target.name, where].filter(Boolean).join(" · ");
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
		el(
			"span",
			{ class: `what${ranked ? " rank" : ""}` },
			ranked ? `rank ${target.rank} of ${target.ranks}` : (target.program ?? "?"),
			about && !ranked ? el("span", { text: about }) : null,
		),
		el("span", { class: `pill ${kind}`, text: said }),
		el("span", { class: "number", text: `pid ${target.pid}` }),
		el("span", { class: "number", text: when(target) }),
		el("span", { class: "number", text: target.steps ? `${count(target.steps)} steps` : bytes(target.bytes) }),
	);
}

/**
 * Those of one job have the same program and began within a second.
 * @param {any[]} targets
 */
function jobs(targets) {
	/** @type {any[][]} */ const found = [];
	for (const target of targets) {
		const job =
			target.ranks > 1
				? found.find(
						([one]) =>
							one.ranks === target.ranks &&
							one.program === target.program &&
							Math.abs(one.started_unix_ns - target.started_unix_ns) < 1e9,
					)
				: undefined;
		if (job)
			job.push(target);
		else
			found.push([target]);
	}
	return found;
}

/** @param {any[]} targets @param {string|null} chosen @param {(id: string) => void} onopen */
export function runList(targets, chosen, onopen) {
	const list = el("div", { class: "runlist", role: "group", "aria-label": "Programs and recordings" });
	for (const [title, some] of /** @type {[string, any[]][]} */ ([
		["Running", targets.filter(isLive)],
		["Finished", targets.filter((t) => !isLive(t))],
	])) {
		if (!some.length)
			continue;
		list.append(el("h2", { text: title }));
		for (const job of jobs(some)) {
			if (job[0].ranks > 1)
				list.append(el("h2", { text: `${job[0].program}, ${job[0].ranks} ranks` }));
			for (const target of [...job].sort((a, b) => (a.rank ?? 0) - (b.rank ?? 0)))
				list.append(row(target, chosen, onopen));
		}
	}
	return list;
}

/**
 * A dialog of them with a field that narrows it.
 * @param {() => any[]} targets
 * @param {() => string|null} chosen
 * @param {(id: string) => void} onopen
 */
export function runDialog(targets, chosen, onopen) {
	const find = el("input", { type: "search", placeholder: "Filter", "aria-label": "Filter recordings" });
	const host = el("div");
	const dialog = el("dialog", { class: "runs", "aria-label": "Recordings" }, find, host);
	const open = (/** @type {string} */ id) => {
		dialog.close();
		onopen(id);
	};
	const fill = () => {
		const text = find.value.toLowerCase();
		const some = targets().filter((t) =>
			[t.program, t.name, t.command, t.path, t.pid, t.state].join(" ").toLowerCase().includes(text),
		);
		host.replaceChildren(
			some.length
				? runList(some, chosen(), open)
				: el("p", {
						class: "muted",
						text: text ? "None like that" : "Nothing has been recorded yet: kymo run -- python train.py",
					}),
		);
	};
	find.addEventListener("input", fill);
	find.addEventListener("keydown", (/** @type {KeyboardEvent} */ e) => {
		if (e.key === "Enter")
			host.querySelector("button.target:not([disabled])")?.click();
	});
	dialog.addEventListener("click", (/** @type {MouseEvent} */ e) => {
		if (e.target === dialog)
			dialog.close();
	});
	document.body.append(dialog);
	return {
		dialog,
		fill,
		show: () => {
			find.value = "";
			fill();
			dialog.showModal();
		},
	};
}
