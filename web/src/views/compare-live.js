// Two recordings are picked, the server compares them; the comparison is drawn as the offline page draws it.
import { getJson } from "../api.js";
import { el } from "../util.js";
import { comparison } from "./compare.js";

/** @param {any} target */
const said = (target) =>
	`${target.program}${target.ranks > 1 ? ` rank ${target.rank}` : ""} ${target.pid ? `· pid ${target.pid} ` : ""}· ${target.path?.split("/").pop() ?? target.state}`;

/** @param {string} label @param {any[]} targets @param {string} chosen @param {(id: string) => void} onpick */
function picker(label, targets, chosen, onpick) {
	const select = el(
		"select",
		{ "aria-label": `Recording ${label}`, id: `pick-${label.toLowerCase()}`, onchange: () => onpick(select.value) },
		el("option", { value: "", text: "choose…" }),
		...targets.map((t) => el("option", { value: t.id, text: said(t) })),
	);
	select.value = chosen;
	return el("label", {}, label, select);
}

/**
 * The last answer: back and a change of theme need no second one.
 * @type {{key: string, doc: any}}
 */
const kept = { key: "", doc: null };

/** @param {string} a @param {string} b */
async function ask(a, b) {
	if (kept.key !== `${a} ${b}`)
		Object.assign(kept, { doc: await getJson("compare", { a, b }), key: `${a} ${b}` });
	return kept.doc;
}

/** @type {import("../shell.js").Tab} */
export const compare = {
	id: "compare",
	title: "Compare",
	has: (source) => source.target !== null,
	open(/** @type {any} */ shell) {
		const targets = shell.app.targets.filter((/** @type {any} */ t) => !t.unreadable);
		const a = shell.query.a ?? shell.source.id;
		const b = shell.query.b ?? "";
		const show = shell.query.show;
		const choose = (/** @type {string} */ x, /** @type {string} */ y) => shell.go("compare", { a: x, b: y });
		const pick = el(
			"div",
			{ class: "picks" },
			picker("A", targets, a, (id) => choose(id, b)),
			picker("B", targets, b, (id) => choose(a, id)),
			el("button", { class: "button", text: "⇄ swap", disabled: !b, onclick: () => choose(b, a) }),
		);
		const host = el("div", { class: "full" });
		const page = (/** @type {...any} */ ...parts) => el("div", { class: "page compare" }, pick, ...parts);
		/** @type {any} */ let made = null;
		let closed = false;
		if (!a || !b || a === b) {
			host.append(
				page(
					el("p", {
						class: "muted",
						text:
							targets.length < 2
								? "There is one recording only: record another one, and it appears in the list."
								: "Choose a second recording: what differs is told from noise, with an interval for each region.",
					}),
				),
			);
			return { node: host, update: () => {} };
		}
		host.append(page(el("p", { class: "muted", text: "Comparing…" })));
		ask(a, b).then(
			(doc) => {
				if (closed)
					return;
				made = comparison(doc, {
					pick,
					show,
					onshow: (which) => shell.go("compare", { a, b, show: which }),
					say: (text) => shell.say(text),
				});
				host.replaceChildren(made.node);
			},
			(why) =>
				host.replaceChildren(
					page(
						el(
							"section",
							{ class: "verdict refused", role: "alert" },
							el("h1", { text: "These cannot be compared." }),
							el("p", { text: why.message }),
							why.hint ? el("p", { text: why.hint }) : null,
						),
					),
				),
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
