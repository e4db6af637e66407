// The flame graph's bar: of what, of which thread, in which range.
import { FlameGraph } from "../flame.js";
import { el, legend, nothing } from "../util.js";

/** @type {import("../shell.js").Tab} */
export const flame = {
	id: "flame", title: "Flame", has: (source) => source.meta().lanes.length > 0 || source.data().samples.length > 0,
	open(shell) {
		const meta = shell.source.meta(), samples = shell.source.data().samples.length > 0;
		if (!meta.lanes.length && !samples)
			return { node: nothing("Nothing to draw a flame graph of", "Zones and Python stacks are recorded by", "kymo run -- python train.py") };
		const stage = el("div", { class: "stage" }), said = el("span", { class: "muted", role: "status" });
		const find = el("input", { type: "search", placeholder: "Search   /", "aria-label": "Search frames" });
		const of = el("select", { "aria-label": "Of what" }, meta.lanes.length ? el("option", { value: "zones", text: "Zones" }) : null,
			samples ? el("option", { value: "samples", text: "Samples" }) : null);
		const threads = el("select", { "aria-label": "Threads" }, el("option", { value: "", text: "All threads" }),
			...meta.lanes.map((/** @type {any} */ l) => el("option", { value: l.id, text: l.name || `tid ${l.tid}` })));
		const hint = el("span", { class: "muted hint-keys" });
		const node = el("div", { class: "full" }, el("div", { class: "bar" }, find, said, of, threads,
			el("span", { class: "button", text: shell.range ? "Selected range" : "Whole run", title: "Shift+drag in the timeline selects a range" }),
			hint, el("span", { class: "right" }, legend())), stage);
		shell.main.append(node);
		const graph = new FlameGraph(stage, { onsay: (text) => { said.textContent = text; } });
		const merged = shell.source.data().zones.merged_ns > 0;
		const load = async () => {
			said.classList.remove("bad");
			const parts = of.value === "zones" && merged && (threads.value !== "" || shell.range);
			hint.textContent = parts ? "about: short zones are merged in this file" : "click zooms · Esc goes back";
			try {
				graph.show(await shell.source.flame(of.value, threads.value === "" ? null : Number(threads.value), shell.range));
			} catch (why) {
				said.classList.add("bad");
				said.textContent = /** @type {Error} */ (why).message;
			}
		};
		of.addEventListener("change", load);
		threads.addEventListener("change", load);
		find.addEventListener("input", () => graph.search(find.value));
		if (shell.query.of === "samples" && samples)
			of.value = "samples";
		find.value = shell.query.find ?? "";
		graph.search(find.value);
		const previous = shell.source.onchange;
		if (!shell.source.glance)
			shell.source.onchange = load; // the zones of a file come later than its page
		load();
		/** @type {Record<string, "up"|"down"|"left"|"right">} */
		const arrows = { ArrowUp: "up", ArrowDown: "down", ArrowLeft: "left", ArrowRight: "right" };
		// A newer one replaces the whole picture, never one that somebody has zoomed into.
		const update = () => { if (shell.source.running && graph.zoomed.length < 2 && graph.tip.hidden) load(); };
		return { node, update, close: () => { shell.source.onchange = previous; graph.close(); }, key: (e) => {
			if (e.key === "/") {
				find.focus();
				return true;
			}
			if (arrows[e.key]) {
				shell.say(graph.move(arrows[e.key]));
				return true;
			}
			if (e.key === "Enter" && e.target === graph.canvas) {
				graph.zoomTo(graph.focus);
				return true;
			}
			return e.key === "Escape" && graph.back();
		} };
	},
};
