// Where every thread of a running program is now: the stacks that `kymo backtrace` reads from outside.
import { getJson } from "../api.js";
import { duration, el, nothing } from "../util.js";

/** @param {any} thread */
function card(thread) {
	const note = [
		`tid ${thread.tid}`,
		thread.gil ? "holds the GIL" : "",
		thread.held_ns > 1e9 ? `for ${duration(thread.held_ns)}` : "",
		thread.missed ? "could not be read" : "",
	]
		.filter(Boolean)
		.join(" · ");
	return el(
		"section",
		{ class: "card" },
		el("h2", { text: thread.thread || "thread" }, el("span", { text: note })),
		thread.frames.length
			? el(
					"ol",
					{},
					...thread.frames.map((/** @type {any} */ f) =>
						el(
							"li",
							{ title: `${f.file ?? ""}:${f.lineno ?? ""}` },
							el("b", { text: f.func }),
							el("span", {
								text: f.file ? `${f.file.split("/").pop()}:${f.lineno}` : (f.frame_type ?? ""),
							}),
						),
					),
				)
			: el("p", { class: "muted", text: thread.python === false ? "No Python in this thread" : "No frames" }),
	);
}

/** @type {import("../shell.js").Tab} */
export const stacks = {
	id: "stacks",
	title: "Stacks",
	has: (source) => Boolean(source.running),
	open(/** @type {any} */ shell) {
		if (!shell.source.running)
			return {
				node: nothing(
					"The program has ended",
					"What it was in when it ended is in Overview, and its samples are in Flame; where its threads are is read while it runs:",
					"kymo run --serve -- python train.py",
				),
			};
		const native = el("input", { type: "checkbox", id: "native" });
		const host = el("div", { class: "stacks" });
		const status = el("span", { class: "muted", role: "status" });
		const load = async () => {
			const began = performance.now();
			try {
				const found = await getJson("backtrace", {
					target: shell.source.id,
					native: native.checked ? 1 : null,
				});
				const threads = Array.isArray(found) ? found : (found.threads ?? []);
				host.replaceChildren(...threads.map(card));
				status.textContent = `${threads.length} thread${threads.length === 1 ? "" : "s"}, read in ${duration((performance.now() - began) * 1e6)}; the program was not stopped`;
			} catch (why) {
				const { message, hint } = /** @type {any} */ (why);
				host.replaceChildren(
					el("p", { class: "bad", text: message }),
					hint ? el("p", { class: "muted", text: hint }) : "",
				);
			}
		};
		native.addEventListener("change", load);
		load();
		return {
			update: () => (shell.source.running ? load() : undefined),
			node: el(
				"div",
				{ class: "page" },
				el(
					"div",
					{ class: "picks" },
					el("button", { class: "button", text: "Read again", onclick: load }),
					el("label", { for: "native" }, native, "native frames"),
					status,
				),
				host,
			),
		};
	},
};
