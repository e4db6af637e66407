// The page while there is nothing to show: a command to copy, a field for an address, and earlier recordings.
import { el } from "../dom.js";
import { fileName, runList } from "../runs.js";

/** @import { Tab, Target } from "../types.js" */
/** @import { Shell } from "../shell.js" */

const COMMAND = "kymo run -- python train.py";
const RECENT = 6;
const HOST_PORT = /^(?:http:\/\/)?([A-Za-z0-9_.-]+|\[[0-9A-Fa-f:]+\]):(\d{1,5})\/?$/;

/** @param {Shell} shell */
function copyButton(shell) {
	const button = el("button", { class: "button", "aria-label": "Copy the command", text: "Copy" });
	button.addEventListener("click", async () => {
		try {
			await navigator.clipboard.writeText(COMMAND);
			button.textContent = "Copied";
			shell.announce("Copied");
		} catch {
			button.textContent = "Select it";
		}
	});
	return button;
}

/** @param {Target} target @param {string} text */
const isNamed = (target, text) =>
	[String(target.pid), target.id, target.program, target.path, fileName(target.path)].includes(text);

/**
 * A field for a pid, the name of a recording, or the host:port of another viewer.
 * @param {Shell} shell
 */
function addressField(shell) {
	const input = el("input", {
		type: "text",
		placeholder: "pid, recording or host:port",
		"aria-label": "Open a pid, a recording or the address of another viewer",
		autocomplete: "off",
		spellcheck: "false",
	});
	const error = el("p", { class: "bad", role: "alert" });
	const open = () => {
		const text = input.value.trim();
		if (!text)
			return;
		const address = HOST_PORT.exec(text);
		if (address) {
			location.assign(`http://${address[1]}:${address[2]}/`);
			return;
		}
		const found = shell.app?.targets.find((target) => isNamed(target, text));
		if (found)
			shell.app?.open(found.id);
		else
			error.textContent =
				`No recording here is called ${text}. kymo ls lists them; to open one from another place: ` +
				"kymo serve PATH";
	};
	input.addEventListener("keydown", (e) => {
		if (e.key === "Enter")
			open();
	});
	return [el("div", { class: "open" }, input, el("button", { class: "button", text: "Open", onclick: open })), error];
}

/** @type {Tab} */
export const wait = {
	id: "wait",
	title: "Waiting",
	hidden: true,
	has: () => true,
	open(shell) {
		const recent = el("div", { class: "recent" });
		const fill = () => {
			const targets = shell.app?.targets.slice(0, RECENT) ?? [];
			recent.replaceChildren(...(targets.length ? [runList(targets, null, (id) => shell.app?.open(id))] : []));
		};
		fill();
		return {
			update: fill,
			node: el(
				"div",
				{ class: "wait" },
				el("h1", { text: "Waiting for a program" }),
				el("p", { text: "Run this in another terminal; the recording then opens here." }),
				el("div", { class: "line" }, el("code", { text: COMMAND }), copyButton(shell)),
				el("p", {}, "Or open a finished recording: ", el("code", { text: "kymo serve run.kymo" })),
				...addressField(shell),
				recent,
			),
		};
	},
};
