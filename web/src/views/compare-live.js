// Two recordings are picked, the server compares them.
import { getJson } from "../api.js";
import { el } from "../util.js";
import { comparison } from "./compare.js";

/** @param {any} target */
const said = (target) => `${target.program}${target.ranks > 1 ? ` rank ${target.rank}` : ""} · pid ${target.pid} · ${target.path?.split("/").pop() ?? target.state}`;

/** @param {string} label @param {any[]} targets @param {string} chosen @param {(id: string) => void} onpick */
function picker(label, targets, chosen, onpick) {
	const select = el("select", { "aria-label": `Recording ${label}`, id: `pick-${label.toLowerCase()}`, onchange: () => onpick(select.value) }, el("option", { value: "", text: "choose…" }),
		...targets.map((t) => el("option", { value: t.id, text: said(t) })));
	select.value = chosen;
	return el("label", {}, label, select);
}

/** @type {import("../shell.js").Tab} */
export const compare = {
	id: "compare", title: "Compare", has: (source) => source.target !== null,
	open(/** @type {any} */ shell) {
		const targets = shell.app.targets.filter((/** @type {any} */ t) => !t.unreadable), a = shell.query.a ?? shell.source.id, b = shell.query.b ?? "";
		const choose = (/** @type {string} */ x, /** @type {string} */ y) => shell.go("compare", { a: x, b: y });
		const picks = el("div", { class: "picks" }, picker("A", targets, a, (id) => choose(id, b)), picker("B", targets, b, (id) => choose(a, id)),
			el("button", { class: "button", text: "⇄ swap", disabled: !b, onclick: () => choose(b, a) }));
		const host = el("div", { class: "compared" }), node = el("div", { class: "page" }, picks, host);
		if (!a || !b || a === b) {
			host.append(el("p", { class: "muted", text: targets.length < 2 ? "There is one recording only: record another one, and it appears in the list." : "Choose a second recording: what differs is told from noise, with an interval for each region." }));
			return { node, update: () => {} };
		}
		host.append(el("p", { class: "muted", text: "Comparing…" }));
		/** @type {import("../shell.js").View|null} */ let view = null;
		getJson("compare", { a, b }).then((doc) => {
			view = comparison(doc, { pick: picks, say: (text) => shell.say(text) });
			node.replaceWith(view.node);
		}, (why) => host.replaceChildren(el("section", { class: "verdict", role: "alert" }, el("h1", { text: "These cannot be compared." }), el("p", { text: why.message }), why.hint ? el("p", { text: why.hint }) : null)));
		return { node, update: () => {}, close: () => view?.close?.(), key: (/** @type {KeyboardEvent} */ e) => Boolean(view?.key?.(e)) };
	},
};
