// The Compare tab of the live viewer: two recordings are chosen, the server compares them.
import { getJson } from "../api.js";
import { el } from "../dom.js";
import { ranksLabel } from "../job/ranks.js";
import { fileName } from "../runs.js";
import { comparison } from "./compare.js";

/** @import { ApiFailure, Comparison, Tab, Target, View } from "../types.js" */
/** @import { Shell } from "../shell.js" */

/** @param {Target} target */
function optionText(target) {
	const rank = (target.ranks ?? 0) > 1 ? ` rank ${target.rank}` : "";
	const pid = target.pid ? `· pid ${target.pid} ` : "";
	return `${target.program}${rank} ${pid}· ${fileName(target.path) || target.state}`;
}

/** @param {string} label @param {Target[]} targets @param {string} chosen @param {(id: string) => void} onpick */
function picker(label, targets, chosen, onpick) {
	const select = el(
		"select",
		{ "aria-label": `Recording ${label}`, id: `pick-${label.toLowerCase()}`, onchange: () => onpick(select.value) },
		el("option", { value: "", text: "choose…" }),
		...targets.map((target) => el("option", { value: target.id, text: optionText(target) })),
	);
	select.value = chosen;
	return el("label", {}, label, select);
}

/**
 * The last answer, which going back or changing the theme asks for again.
 * @type {{key: string, doc: Comparison|null}}
 */
const kept = { key: "", doc: null };

/** @param {string} a @param {string} b @param {string} ranks @returns {Promise<Comparison>} */
async function ask(a, b, ranks) {
	const key = `${a} ${b} ${ranks}`;
	if (kept.key === key && kept.doc)
		return kept.doc;
	const doc = await getJson("compare", { a, b, ranks });
	Object.assign(kept, { key, doc });
	return doc;
}

/** @param {Element} pick @param {...Node} parts */
const page = (pick, ...parts) => el("div", { class: "page compare" }, pick, ...parts);

/** @param {Shell} shell @param {Target[]} targets @param {string} a @param {string} b */
function pickers(shell, targets, a, b) {
	const choose = (/** @type {string} */ x, /** @type {string} */ y) => shell.go("compare", { a: x, b: y });
	return el(
		"div",
		{ class: "picks" },
		picker("A", targets, a, (id) => choose(id, b)),
		picker("B", targets, b, (id) => choose(a, id)),
		el("button", { class: "button", text: "⇄ swap", disabled: !b, onclick: () => choose(b, a) }),
	);
}

/** @param {ApiFailure} why */
const refusal = (why) =>
	el(
		"section",
		{ class: "verdict refused", role: "alert" },
		el("h1", { text: "These recordings are not comparable." }),
		el("p", { text: why.message }),
		why.hint ? el("p", { text: why.hint }) : null,
	);

/** @type {Tab} */
export const compare = {
	id: "compare",
	title: "Compare",
	has: (source) => source.target !== null,
	open(shell) {
		const targets = (shell.app?.targets ?? []).filter((target) => !target.unreadable);
		const { a = shell.source.id ?? "", b = "", show } = shell.query;
		const pick = pickers(shell, targets, a, b);
		const host = el("div", { class: "full" });
		const note = (/** @type {string} */ text) => el("p", { class: "muted", text });
		if (!a || !b || a === b) {
			const text =
				targets.length < 2
					? "There is only one recording. Record another one; it then appears in the list."
					: "Choose a second recording. Differences are tested for significance and shown with intervals.";
			host.append(page(pick, note(text)));
			return { node: host, update: () => {} };
		}
		/** @type {View|null} */
		let made = null;
		let closed = false;
		const of = shell.ranks ? `${ranksLabel(shell.ranks, 60)} of both. ` : "";
		if (of)
			pick.append(el("span", { class: "muted of-ranks", text: of }));
		host.append(page(pick, note("Comparing…")));
		ask(a, b, shell.ranks).then(
			(doc) => {
				if (closed)
					return;
				made = comparison(doc, {
					pick,
					show,
					onshow: (which) => shell.go("compare", { a, b, show: which }),
					announce: (text) => shell.announce(text),
				});
				host.replaceChildren(made.node);
			},
			(why) => host.replaceChildren(page(pick, refusal(why))),
		);
		return {
			node: host,
			update: () => {},
			key: (e) => Boolean(made?.key?.(e)),
			close: () => {
				closed = true;
				made?.close?.();
			},
		};
	},
};
