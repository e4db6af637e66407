// The Flame tab: a bar that chooses zones or samples, thread, range and another range to compare with; and the graph.
import { fileNamed } from "../code/frames.js";
import { moduleLegend, paintedByModule } from "../code/modules.js";
import { isUnmarked } from "../document.js";
import { el, emptyState, legend } from "../dom.js";
import { countsDiffer, difference, differenceLegend, pairOf } from "../flame-diff.js";
import { FlameGraph } from "../flame.js";
import { duration, percent, rangeText } from "../format.js";
import { legendSources } from "../theme.js";
import { laneName } from "../timeline/layout.js";

/** @import { Flame, FlameOf, Range, Tab } from "../types.js" */
/** @import { Shell } from "../shell.js" */

/** How differences between two ranges are tested. */
const TESTED = {
	zones:
		"Not tested for significance: every difference between the two ranges is coloured. " +
		"kymo compare tests differences between recordings.",
	samples:
		"Frames are coloured where the counts of samples differ by more than chance (99 %, each frame alone). " +
		"kymo compare tests differences between recordings.",
};

/** @param {Range} range */
const keyOf = (range) => `${Math.round(range.t0)}-${Math.round(range.t1)}`;

/**
 * The range that the address names to compare the selected one with.
 * @param {Shell} shell
 * @returns {Range|null}
 */
function otherRange(shell) {
	const [t0, t1] = (shell.query.vs ?? "").split("-").map(Number);
	return shell.range && t1 > t0 ? { t0, t1 } : null;
}

/**
 * The ranges that the selected one can be compared with: its neighbours, the whole run, ranges selected before.
 * @param {Shell} shell
 * @param {Range} range
 * @param {Range|null} other
 */
function comparable({ source, ranges }, range, other) {
	const { end } = source.meta();
	const length = range.t1 - range.t0;
	const earlier = [...ranges, ...(other ? [other] : [])];
	/** @type {[string, Range][]} */
	const candidates = [
		["with the time before it", { t0: Math.max(0, range.t0 - length), t1: range.t0 }],
		["with the time after it", { t0: range.t1, t1: Math.min(end, range.t1 + length) }],
		["with the whole run", { t0: 0, t1: end }],
		...earlier.map((one) => /** @type {[string, Range]} */ ([`with ${rangeText(one)}`, one])),
	];
	/** @type {Map<string, string>} */
	const options = new Map();
	for (const [text, one] of candidates) {
		if (one.t1 - one.t0 >= 1 && keyOf(one) !== keyOf(range) && !options.has(keyOf(one)))
			options.set(keyOf(one), text);
	}
	return options;
}

/** @param {Shell} shell */
function compareSelect(shell) {
	const { range } = shell;
	const other = otherRange(shell);
	if (!range)
		return el(
			"select",
			{
				"aria-label": "Compare with",
				disabled: true,
				title: "To compare two ranges, first select one in the timeline (Shift+drag)",
			},
			el("option", { text: "Compare with…" }),
		);
	const options = [...comparable(shell, range, other)].map(([value, text]) => el("option", { value, text }));
	const none = el("option", { value: "", text: other ? "Compare with nothing" : "Compare with…" });
	const select = el("select", { "aria-label": "Compare with" }, none, ...options);
	select.value = other ? keyOf(other) : "";
	return select;
}

/**
 * The difference of two ranges per second, since they may have different lengths.
 * @param {(range: Range) => Promise<Flame>} ask
 * @param {Range} a
 * @param {Range} b
 * @param {boolean} samples
 */
async function compareRanges(ask, a, b, samples) {
	const [before, now] = await Promise.all([ask(a), ask(b)]);
	const aTime = (a.t1 - a.t0) / 1e9;
	const bTime = (b.t1 - b.t0) / 1e9;
	const pair = pairOf(before, 1 / aTime, now, 1 / bTime);
	/** @type {import("../flame-diff.js").DifferenceOptions} */
	const options = { width: "both", a: "per second there", b: "here" };
	if (samples) {
		// A sample stands for about 10 ms; in the first second for less, which only makes the test stricter.
		const each = now.unit === "ns" ? 1e7 : 1;
		if (each === 1)
			options.show = (v) => `${v.toFixed(1)} samples`;
		options.sure = (_, __, frame) =>
			countsDiffer((pair.a_self[frame] * aTime) / each, aTime, (pair.b_self[frame] * bTime) / each, bTime);
	}
	return difference(pair, options);
}

class FlameView {
	/** @param {Shell} shell */
	constructor(shell) {
		this.shell = shell;
		const { lanes } = shell.source.meta();
		const { samples, native } = shell.source.data();
		const unmarked = isUnmarked(shell.source.data());
		this.stage = el("div", { class: "stage" });
		this.status = el("span", { class: "muted", role: "status" });
		this.find = el("input", { type: "search", placeholder: "Search   /", "aria-label": "Search frames" });
		this.of = el(
			"select",
			{ "aria-label": "Zones or samples" },
			lanes.length ? el("option", { value: "zones", text: "Zones" }) : null,
			samples.length ? el("option", { value: "samples", text: "Samples", selected: unmarked }) : null,
			native.length
				? el("option", { value: "native", text: "CPU samples", title: "Python and native frames, on a CPU" })
				: null,
		);
		this.threads = el(
			"select",
			{ "aria-label": "Threads" },
			el("option", { value: "", text: "All threads" }),
			...lanes.map((lane) => el("option", { value: lane.id, text: laneName(lane) })),
		);
		this.colours = el(
			"select",
			{ "aria-label": "Colours", title: "What the colours of frames stand for" },
			el("option", { value: "", text: "Colour: source" }),
			el("option", { value: "module", text: "Colour: module" }),
		);
		this.modules = el("div", { class: "legendrow", hidden: true });
		this.strip = el("div", { class: "strip", hidden: true, "aria-label": "Selected frame" });
		/** As it came, without the paint of modules. @type {Flame|null} */ this.flame = null;
		this.hint = el("span", { class: "muted hint-keys" });
		this.compared = compareSelect(shell);
		this.other = otherRange(shell);
		this.tested = el("p", { class: "tested", hidden: true });
		this.time = el("span", { class: "button", title: "Shift+drag in the timeline selects a range" });
		this.node = el(
			"div",
			{ class: "full" },
			el(
				"div",
				{ class: "bar" },
				this.find,
				this.status,
				this.of,
				this.threads,
				this.time,
				this.other ? null : this.colours,
				this.compared,
				this.hint,
				this.other ? differenceLegend("the same") : el("span", { class: "right" }, legend()),
			),
			this.modules,
			this.tested,
			this.stage,
			this.strip,
		);
		shell.main.append(this.node);
		this.graph = new FlameGraph(this.stage, {
			onfound: (text) => {
				this.status.textContent = text;
				this.hint.hidden = Boolean(text); // there is no room for both
			},
			onfocus: (node) => this.describeFrame(node),
			onopen: (node) => this.openSource(node),
		});
		this.restore();
		this.listen();
		this.load();
	}

	/** Reads the choices from the address. */
	restore() {
		const { query } = this.shell;
		if ([...this.of.options].some((one) => one.value === query.of))
			this.of.value = query.of;
		if (this.shell.source.meta().lanes.some((lane) => String(lane.id) === query.thread))
			this.threads.value = query.thread;
		this.colours.value = query.colour === "module" ? "module" : "";
		this.find.value = query.find ?? "";
		this.graph.search(this.find.value);
	}

	listen() {
		this.of.addEventListener("change", () => this.load());
		this.threads.addEventListener("change", () => this.load());
		this.find.addEventListener("input", () => this.graph.search(this.find.value));
		this.colours.addEventListener("change", () => {
			this.keepAddress();
			this.paint();
		});
		this.compared.addEventListener("change", () => {
			this.shell.go("flame", { ...this.choices(), vs: this.compared.value || undefined });
		});
		this.previous = this.shell.source.onchange;
		if (!this.shell.source.glance)
			this.shell.source.onchange = () => this.load(); // the zones of a report are decoded after its page is shown
	}

	/** What the address holds. */
	choices() {
		return {
			of: this.of.value,
			thread: this.threads.value || undefined,
			colour: this.colours.value || undefined,
			find: this.find.value || undefined,
		};
	}

	/** Writes the choices to the address; the graph stays as it is. */
	keepAddress() {
		const vs = this.shell.query.vs;
		window.history.replaceState(null, "", this.shell.hash("flame", { ...this.choices(), vs }));
	}

	/** Shows the graph in the colours that were chosen. */
	paint() {
		const { flame } = this;
		if (!flame || this.other)
			return;
		const byModule = this.colours.value === "module";
		this.graph.repaint(byModule ? paintedByModule(flame) : flame);
		const kinds = [...new Set(flame.source)].filter(Boolean);
		this.modules.hidden = !byModule;
		this.modules.replaceChildren(byModule ? moduleLegend(flame) : "");
		const sources = this.node.querySelector(".bar .right");
		sources?.replaceChildren(legend(false, this.samples ? kinds : legendSources(kinds)));
		sources?.toggleAttribute("hidden", byModule);
	}

	/**
	 * Under the graph: the chosen frame, its file, and a link to its source.
	 * @param {number} node
	 */
	describeFrame(node) {
		const { graph, shell } = this;
		const { flame } = graph;
		const place = flame.place?.(node) ?? null;
		this.strip.hidden = !flame.source[node] || Boolean(flame.describe); // a difference has no total
		if (this.strip.hidden)
			return;
		const amount = (/** @type {number} */ v) => (flame.unit === "ns" ? duration(v) : `${v} samples`);
		const total = `total ${amount(flame.total[node])}, ${percent(graph.share(flame.total[node]))}`;
		const text = `${total}; self ${amount(flame.self[node])}`;
		this.strip.replaceChildren(
			el("b", { text: graph.shown(node) }),
			el("span", { text }),
			place
				? el("a", {
						href: shell.hash("source", { file: place.file, line: place.line }),
						text: `${place.file}:${place.line}`,
						title: "Open the source (O)",
					})
				: el("span", { class: "muted", text: "its file is not known" }),
		);
	}

	/** @param {number} node */
	async openSource(node) {
		const place = this.graph.flame.place?.(node);
		if (!place)
			return;
		const file = fileNamed(await this.shell.source.sources(), place.file)?.file ?? place.file;
		this.shell.go("source", { file, line: place.line });
	}

	get samples() {
		return this.of.value !== "zones";
	}

	/** The selected range, if the graph can be of it: a report has samples as totals of the whole run only. */
	get range() {
		return !this.samples || this.shell.source.glance ? this.shell.range : null;
	}

	/** @param {Range|null} range */
	ask(range) {
		const lane = this.threads.value === "" ? null : Number(this.threads.value);
		return this.shell.source.flame(/** @type {FlameOf} */ (this.of.value), lane, range);
	}

	/** @param {boolean} differs */
	hintText(differs) {
		if (differs)
			return `${this.samples ? "samples" : "time"} per second, here − there`;
		const merged = this.shell.source.data().zones.merged_ns > 0;
		const part = this.threads.value !== "" || this.shell.range;
		return !this.samples && merged && part
			? "approximate: short zones are merged in this file"
			: "click zooms · double click: source";
	}

	async load() {
		const { range, other, samples } = this;
		const differs = Boolean(other && range);
		this.status.classList.remove("bad");
		this.time.textContent = range ? "Selected range" : "Whole run";
		this.hint.textContent = this.hintText(differs);
		this.tested.hidden = !differs;
		this.tested.textContent = samples ? TESTED.samples : TESTED.zones;
		if (differs)
			this.node
				.querySelector(".legend")
				?.replaceWith(differenceLegend(samples ? "the same, or not significant" : "the same"));
		try {
			const ask = (/** @type {Range|null} */ one) => this.ask(one);
			this.flame = other && range ? await compareRanges(ask, other, range, samples) : await ask(range);
			this.graph.show(this.flame);
			this.paint();
			this.strip.hidden = true;
			if (this.shell.query.zoom && this.find.value)
				this.graph.goToFound();
		} catch (why) {
			this.status.classList.add("bad");
			this.status.textContent = /** @type {Error} */ (why).message;
		}
	}

	/** Newer data replaces the graph, unless a reader has zoomed into it or points at a frame. */
	update() {
		if (this.shell.source.running && this.graph.zoomed.length < 2 && this.graph.tip.hidden)
			this.load();
	}

	/** @param {KeyboardEvent} e */
	key(e) {
		if (e.key === "/") {
			this.find.focus();
			return true;
		}
		if (this.graph.key(e, (text) => this.shell.announce(text)))
			return true;
		// The value is empty once Escape was pressed and the new address has not been read yet.
		if (e.key !== "Escape" || !this.other || !this.compared.value)
			return false;
		this.compared.value = "";
		this.compared.dispatchEvent(new Event("change"));
		return true;
	}

	close() {
		this.shell.source.onchange = this.previous ?? null;
		this.graph.close();
	}
}

/** @type {Tab} */
export const flame = {
	id: "flame",
	title: "Flame",
	has: (source) => source.meta().lanes.length > 0 || source.data().samples.length + source.data().native.length > 0,
	open(shell) {
		if (!this.has(shell.source))
			return {
				node: emptyState(
					"No zones and no stack samples recorded",
					"kymo run samples the stacks of Python programs. Record every Python call as a zone with",
					"kymo run --python -- python train.py",
				),
			};
		return new FlameView(shell);
	},
};
