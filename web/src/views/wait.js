// Before there is anything to show: the one line to type, an address, and what has been recorded already.
import { el } from "../util.js";
import { runList } from "../runs.js";

const LINE = "kymo run -- python train.py";

/** @param {any} shell */
function copyButton(shell) {
	const button = el("button", { class: "button", "aria-label": "Copy the line", text: "Copy" });
	button.addEventListener("click", async () => {
		try {
			await navigator.clipboard.writeText(LINE);
			button.textContent = "Copied";
			shell.say("Copied");
		} catch {
			button.textContent = "Select it";
		}
	});
	return button;
}

/**
 * A pid, a recording's name, or another viewer's host:port.
 * @param {any} shell
 */
function addressField(shell) {
	const input = el("input", {
		type: "text",
		placeholder: "pid, recording or host:port",
		"aria-label": "Open a pid, a recording or another viewer's address",
		autocomplete: "off",
		spellcheck: "false",
	});
	const said = el("p", { class: "bad", role: "alert" });
	const open = () => {
		const text = input.value.trim();
		if (!text)
			return;
		const at = /^(?:http:\/\/)?([A-Za-z0-9_.-]+|\[[0-9A-Fa-f:]+\]):(\d{1,5})\/?$/.exec(text);
		if (at) {
			location.assign(`http://${at[1]}:${at[2]}/`);
			return;
		}
		const found = shell.app.targets.find(
			(/** @type {any} */ t) =>
				String(t.pid) === text ||
				t.id === text ||
				t.program === text ||
				t.path === text ||
				t.path?.split("/").pop() === text,
		);
		if (found)
			shell.app.open(found.id);
		else
			said.textContent = `Nothing here is called ${text}: kymo ls shows what there is. A finished one elsewhere: kymo serve PATH`;
	};
	input.addEventListener("keydown", (/** @type {KeyboardEvent} */ e) => {
		if (e.key === "Enter")
			open();
	});
	return [el("div", { class: "open" }, input, el("button", { class: "button", text: "Open", onclick: open })), said];
}

/** @type {import("../shell.js").Tab} */
export const wait = {
	id: "wait",
	title: "Waiting",
	hidden: true,
	has: () => true,
	open(/** @type {any} */ shell) {
		const recent = el("div", { class: "recent" });
		const fill = () => {
			const dead = shell.app?.targets ?? [];
			recent.replaceChildren(
				...(dead.length ? [runList(dead.slice(0, 6), null, (id) => shell.app.open(id))] : []),
			);
		};
		fill();
		return {
			update: fill,
			node: el(
				"div",
				{ class: "wait" },
				el("h1", { text: "Waiting for a program" }),
				el("p", { text: "Type this in another terminal. It appears here by itself." }),
				el("div", { class: "line" }, el("code", { text: LINE }), copyButton(shell)),
				el("p", {}, "or open a finished one: ", el("code", { text: "kymo serve run.kymo" })),
				...addressField(shell),
				recent,
			),
		};
	},
};
