// The flame graph's bar: of what, of which thread, in which range, and compared with which other one.
import { countsDiffer, difference, differenceLegend, sides } from "../flame-diff.js";
import { FlameGraph } from "../flame.js";
import { el, legend, nothing, rangeText } from "../util.js";

/**
 * What a difference of two ranges is worth.
 * @type {Record<string, string>}
 */
const TESTED = {
	zones: "Not tested against noise: every difference between the two ranges is coloured. kymo compare tests what differs between recordings.",
	samples:
		"Coloured where the counts of samples differ by more than chance explains (99 %, each frame by itself), grey elsewhere. kymo compare tests what differs between recordings.",
};

const keyOf = (/** @type {{t0: number, t1: number}} */ range) => `${Math.round(range.t0)}-${Math.round(range.t1)}`;

/**
 * The range in the address that the selected one is compared with.
 * @param {any} shell
 * @returns {import("../source.js").Range}
 */
function otherRange(shell) {
	const [t0, t1] = (shell.query.vs ?? "").split("-").map(Number);
	return shell.range && t1 > t0 ? { t0, t1 } : null;
}

/**
 * What the selected range can be compared with: its neighbours, all of it, ranges that were selected before.
 * @param {any} shell
 */
function compareSelect(shell) {
	const { range, source, ranges } = shell;
	const other = otherRange(shell);
	const end = source.meta().end;
	if (!range)
		return el(
			"select",
			{
				"aria-label": "Compare with",
				disabled: true,
				title: "Select a range in the timeline first (Shift+drag), then compare it with another one",
			},
			el("option", { text: "Compare with…" }),
		);
	const length = range.t1 - range.t0;
	const earlier = [...ranges, ...(other ? [other] : [])].map((one) => [`with ${rangeText(one)}`, one]);
	/** @type {Map<string, string>} */ const options = new Map();
	for (const [text, one] of /** @type {[string, {t0: number, t1: number}][]} */ ([
		["with the time before it", { t0: Math.max(0, range.t0 - length), t1: range.t0 }],
		["with the time after it", { t0: range.t1, t1: Math.min(end, range.t1 + length) }],
		["with the whole run", { t0: 0, t1: end }],
		...earlier,
	]))
		if (one.t1 - one.t0 >= 1 && keyOf(one) !== keyOf(range) && !options.has(keyOf(one)))
			options.set(keyOf(one), text);
	const select = el(
		"select",
		{ "aria-label": "Compare with" },
		el("option", { value: "", text: other ? "Compare with nothing" : "Compare with…" }),
		...[...options].map(([value, text]) => el("option", { value, text })),
	);
	select.value = other ? keyOf(other) : "";
	return select;
}

/** @type {import("../shell.js").Tab} */
export const flame = {
	id: "flame",
	title: "Flame",
	has: (source) => source.meta().lanes.length > 0 || source.data().samples.length > 0,
	open(shell) {
		const meta = shell.source.meta();
		const samples = shell.source.data().samples.length > 0;
		if (!meta.lanes.length && !samples)
			return {
				node: nothing(
					"Nothing to draw a flame graph of",
					"Zones or Python stacks fill it: kymo run samples the stacks of a Python program, and has a zone for every call of it with",
					"kymo run --python -- python train.py",
				),
			};
		const stage = el("div", { class: "stage" });
		const said = el("span", { class: "muted", role: "status" });
		const find = el("input", { type: "search", placeholder: "Search   /", "aria-label": "Search frames" });
		const of = el(
			"select",
			{ "aria-label": "Of what" },
			meta.lanes.length ? el("option", { value: "zones", text: "Zones" }) : null,
			samples ? el("option", { value: "samples", text: "Samples" }) : null,
		);
		const threads = el(
			"select",
			{ "aria-label": "Threads" },
			el("option", { value: "", text: "All threads" }),
			...meta.lanes.map((/** @type {any} */ l) => el("option", { value: l.id, text: l.name || `tid ${l.tid}` })),
		);
		const hint = el("span", { class: "muted hint-keys" });
		const compared = compareSelect(shell);
		const other = otherRange(shell);
		const tested = el("p", { class: "tested", hidden: true });
		const ranged = el("span", { class: "button", title: "Shift+drag in the timeline selects a range" });
		const node = el(
			"div",
			{ class: "full" },
			el(
				"div",
				{ class: "bar" },
				find,
				said,
				of,
				threads,
				ranged,
				compared,
				hint,
				other ? differenceLegend("the same") : el("span", { class: "right" }, legend()),
			),
			tested,
			stage,
		);
		shell.main.append(node);
		const graph = new FlameGraph(stage, {
			onsay: (text) => {
				said.textContent = text;
			},
		});
		const merged = shell.source.data().zones.merged_ns > 0;
		/** Samples in a file are sums over the whole run. */
		const follows = () => Boolean(shell.range) && (of.value === "zones" || Boolean(shell.source.glance));
		const ask = (/** @type {import("../source.js").Range} */ range) =>
			shell.source.flame(of.value, threads.value === "" ? null : Number(threads.value), range);
		/** A second of the one beside a second of the other: they need not be as long. */
		const compare = async (
			/** @type {{t0: number, t1: number}} */ a,
			/** @type {{t0: number, t1: number}} */ b,
		) => {
			const [before, now] = await Promise.all([ask(a), ask(b)]);
			const samples = of.value === "samples";
			const aTime = (a.t1 - a.t0) / 1e9;
			const bTime = (b.t1 - b.t0) / 1e9;
			const both = sides(before, 1 / aTime, now, 1 / bTime);
			return difference(both, {
				width: "both",
				a: "a second there",
				b: "here",
				...(samples
					? {
							show: (/** @type {number} */ v) => `${v.toFixed(1)} samples`,
							sure: (_, __, frame) =>
								countsDiffer(both.a_self[frame] * aTime, aTime, both.b_self[frame] * bTime, bTime),
						}
					: {}),
			});
		};
		const load = async () => {
			said.classList.remove("bad");
			const parts = of.value === "zones" && merged && (threads.value !== "" || shell.range);
			const differs = other && follows();
			ranged.textContent = follows() ? "Selected range" : "Whole run";
			hint.textContent = differs
				? `${of.value === "samples" ? "samples" : "time"} per second, here − there`
				: parts
					? "about: short zones are merged in this file"
					: "click zooms · Esc goes back";
			tested.hidden = !differs;
			tested.textContent = TESTED[of.value] ?? "";
			if (differs)
				node.querySelector(".legend")?.replaceWith(
					differenceLegend(of.value === "samples" ? "the same, or chance" : "the same"),
				);
			try {
				graph.show(differs ? await compare(other, /** @type {any} */ (shell.range)) : await ask(shell.range));
			} catch (why) {
				said.classList.add("bad");
				said.textContent = /** @type {Error} */ (why).message;
			}
		};
		of.addEventListener("change", load);
		threads.addEventListener("change", load);
		find.addEventListener("input", () => graph.search(find.value));
		compared.addEventListener("change", () =>
			shell.go("flame", {
				...(compared.value ? { vs: compared.value } : {}),
				of: of.value,
				...(threads.value ? { thread: threads.value } : {}),
			}),
		);
		if (shell.query.of === "samples" && samples)
			of.value = "samples";
		if (meta.lanes.some((/** @type {any} */ l) => String(l.id) === shell.query.thread))
			threads.value = shell.query.thread;
		find.value = shell.query.find ?? "";
		graph.search(find.value);
		const previous = shell.source.onchange;
		if (!shell.source.glance)
			shell.source.onchange = load; // the zones of a file come later than its page
		load();
		/** @type {Record<string, "up"|"down"|"left"|"right">} */
		const arrows = { ArrowUp: "up", ArrowDown: "down", ArrowLeft: "left", ArrowRight: "right" };
		// A newer one replaces the whole picture, never one that somebody has zoomed into.
		const update = () => {
			if (shell.source.running && graph.zoomed.length < 2 && graph.tip.hidden)
				load();
		};
		return {
			node,
			update,
			close: () => {
				shell.source.onchange = previous;
				graph.close();
			},
			key: (e) => {
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
				if (e.key !== "Escape" || graph.back())
					return e.key === "Escape";
				if (!other || !compared.value)
					// gone already, and the address not read yet
					return false;
				compared.value = "";
				compared.dispatchEvent(new Event("change"));
				return true;
			},
		};
	},
};
