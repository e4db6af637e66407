// The stacks of all threads of a running program, as `kymo backtrace` reads them from outside.
import { getJson } from "../api.js";
import { el, emptyState } from "../dom.js";
import { counted, duration } from "../format.js";
import { fileName } from "../runs.js";

/** @import { ApiFailure, Tab } from "../types.js" */
/** @import { Shell } from "../shell.js" */

/**
 * @typedef {Object} Frame
 * @property {string} func
 * @property {string} [file]
 * @property {number} [lineno]
 * @property {string} [frame_type]
 *
 * @typedef {Object} Thread
 * @property {string} thread name
 * @property {number} tid
 * @property {boolean} [gil] holds the GIL
 * @property {number} held_ns
 * @property {boolean} [missed] could not be read
 * @property {boolean} [python]
 * @property {Frame[]} frames
 */

/** @param {Frame} frame */
function frameNode({ func, file, lineno, frame_type: type }) {
	const place = file ? `${fileName(file)}:${lineno}` : (type ?? "");
	const title = `${file ?? ""}:${lineno ?? ""}`;
	return el("li", { title }, el("b", { text: func }), el("span", { text: place }));
}

/** @param {Thread} thread */
function threadCard(thread) {
	const notes = [
		`tid ${thread.tid}`,
		thread.gil ? "holds the GIL" : "",
		thread.held_ns > 1e9 ? `for ${duration(thread.held_ns)}` : "",
		thread.missed ? "could not be read" : "",
	];
	const none = thread.python === false ? "No Python frames in this thread" : "No frames";
	return el(
		"section",
		{ class: "card" },
		el("h2", { text: thread.thread || "thread" }, el("span", { text: notes.filter(Boolean).join(" · ") })),
		thread.frames.length ? el("ol", {}, ...thread.frames.map(frameNode)) : el("p", { class: "muted", text: none }),
	);
}

/** @param {Shell} shell */
function stacksView(shell) {
	const native = el("input", { type: "checkbox", id: "native" });
	const host = el("div", { class: "stacks" });
	const status = el("span", { class: "muted", role: "status" });
	const load = async () => {
		const began = performance.now();
		try {
			const found = await getJson("backtrace", { target: shell.source.id, native: native.checked ? 1 : null });
			/** @type {Thread[]} */
			const threads = Array.isArray(found) ? found : (found.threads ?? []);
			const took = duration((performance.now() - began) * 1e6);
			host.replaceChildren(...threads.map(threadCard));
			status.textContent = `${counted(threads.length, "thread")}, read in ${took}; the program was not stopped`;
		} catch (why) {
			const { message, hint } = /** @type {ApiFailure} */ (why);
			host.replaceChildren(
				el("p", { class: "bad", text: message }),
				hint ? el("p", { class: "muted", text: hint }) : "",
			);
		}
	};
	native.addEventListener("change", load);
	load();
	const bar = el(
		"div",
		{ class: "picks" },
		el("button", { class: "button", text: "Read again", onclick: load }),
		el("label", { for: "native" }, native, "native frames"),
		status,
	);
	const update = () => {
		if (shell.source.running)
			load();
	};
	return { update, node: el("div", { class: "page" }, bar, host) };
}

/** @type {Tab} */
export const stacks = {
	id: "stacks",
	title: "Stacks",
	has: (source) => Boolean(source.running),
	open(shell) {
		if (shell.source.running)
			return stacksView(shell);
		return {
			node: emptyState(
				"The program has ended",
				"Stacks are read while a program runs. Overview shows the zones that were open at the end, Flame the " +
					"samples. To see the stacks of a running program:",
				"kymo run --serve -- python train.py",
			),
		};
	},
};
