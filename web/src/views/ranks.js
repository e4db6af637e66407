// The Ranks tab: the map of step × rank, and the ranks with what they cost the others.
import { el, emptyState } from "../dom.js";
import { count, counted, duration } from "../format.js";
import { hasRank, isJob, ranksOf } from "../job/ranks.js";
import { mapColours, RankMap } from "../job/map.js";
import { table } from "../tables.js";

/** @import { MapCells, MapOf, Tab } from "../types.js" */
/** @import { Shell } from "../shell.js" */

const NO_STEPS = "No steps recorded: mark them with kymo.step(), or record the training loop with kymo run --torch.";

/** @type {Record<MapOf, {option: string, title: string, less: string, more: string}>} */
const VALUES = {
	duration: {
		option: "Step duration",
		title: "Duration of each step, beside the median of the ranks",
		less: "shorter",
		more: "longer",
	},
	wait: {
		option: "Wait in collectives",
		title: "Time that each rank waited, beside the median of the ranks",
		less: "comes late",
		more: "waits more",
	},
};

/** The colours, from one median duration below the median to one above it. @param {MapOf} of */
function mapLegend(of) {
	const bar = el("canvas", { role: "img", "aria-label": "Colours of the map", width: 201, height: 1 });
	const ink = bar.getContext("2d");
	const colours = mapColours();
	for (let value = -100; value <= 100 && ink; value++) {
		const c = colours[value + 128];
		ink.fillStyle = `rgb(${c & 255} ${(c >> 8) & 255} ${(c >> 16) & 255})`;
		ink.fillRect(value + 100, 0, 1, 1);
	}
	const { less, more } = VALUES[of];
	return el(
		"div",
		{ class: "scale", title: "Per cent of the median duration of the step" },
		el("span", { text: `${less} −100 %` }),
		bar,
		el("span", { text: `+100 % ${more}` }),
	);
}

const COLUMNS = [
	{ key: "rank", title: "Rank" },
	{ key: "host", title: "Host", text: true, show: (/** @type {string|null} */ v) => v ?? "–" },
	{ key: "state", title: "State", text: true, show: (/** @type {string|null} */ v) => v ?? "–" },
	{ key: "times_last", title: "Came last", show: (/** @type {number|null} */ v) => (v === null ? "–" : count(v)) },
	{ key: "collectives", title: "Collectives", show: (/** @type {number|null} */ v) => (v ? count(v) : "–") },
	{ key: "cost_ns", title: "Lateness", show: (/** @type {number|null} */ v) => (v ? duration(v) : "–") },
	{ key: "waited_ns", title: "Others waited", show: (/** @type {number|null} */ v) => (v ? duration(v) : "–") },
];

class RanksView {
	/** @param {Shell} shell */
	constructor(shell) {
		this.shell = shell;
		/** @type {MapOf} */ this.of = shell.query.of === "wait" ? "wait" : "duration";
		this.stage = el("div", { class: "stage map" });
		this.status = el("span", { class: "muted", role: "status", text: "Reading the steps…" });
		this.values = el(
			"select",
			{ "aria-label": "Colour", onchange: () => this.choose() },
			...Object.entries(VALUES).map(([value, { option }]) =>
				el("option", { value, text: option, selected: value === this.of }),
			),
		);
		this.legend = el("span", {}, mapLegend(this.of));
		this.node = el(
			"div",
			{ class: "full ranks-page" },
			el(
				"div",
				{ class: "bar" },
				this.values,
				this.status,
				el("span", { class: "right" }, this.legend),
			),
			this.stage,
			this.ranksTable(),
		);
		shell.main.append(this.node);
		this.map = new RankMap(this.stage, shell.source, this.of, {
			onopen: (cell) => this.open(cell),
			oncells: (cells) => this.describe(cells),
		});
		this.load();
	}

	ranksTable() {
		const chosen = hasRank(this.shell.ranks);
		const rows = ranksOf(this.shell.source).filter((row) => chosen(row.rank));
		const late = rows.some((row) => row.cost_ns);
		const columns = late ? COLUMNS : COLUMNS.slice(0, 3);
		return el(
			"section",
			{ class: "card under" },
			table(columns, rows, {
				label: "Ranks",
				sort: late ? "cost_ns" : "rank",
				descending: late,
				limit: 200,
				compact: true,
				onclick: (row) => this.shell.setRanks(String(row.rank)),
			}),
		);
	}

	async load() {
		try {
			await this.map.load();
			this.retry();
		} catch (why) {
			this.status.classList.add("bad");
			this.status.textContent = /** @type {Error} */ (why).message;
		}
	}

	/** Collectives may be read after the steps. */
	retry() {
		const { cells } = this.map.whole ?? {};
		if (cells?.complete === false && !this.map.closed)
			setTimeout(() => this.map.closed || this.load(), 300);
	}

	/** @param {MapCells} cells */
	describe(cells) {
		const { title } = VALUES[this.of];
		const steps = cells.end - cells.first;
		const size = `${counted(cells.ranks.length, "rank")} × ${counted(steps, "step")}`;
		const hidden = cells.hidden ? `; ${count(cells.hidden)} steps are left out` : "";
		const missing = this.of === "wait" && !cells.waits ? "No collective with several ranks was recorded." : "";
		const none = steps ? "" : NO_STEPS;
		this.status.textContent = none || missing || `${title}; ${size}${hidden}`;
	}

	/** @param {{rank: number, step: number, start_ns: number, duration_ns: number}} cell */
	open({ rank, step, start_ns: start, duration_ns: took }) {
		const { shell } = this;
		shell.announce(`rank ${rank}, step ${step}`);
		// The tracks of a job with many ranks are not all there.
		if (!shell.source.meta().lanes.some((lane) => lane.rank === rank))
			shell.ranks = String(rank);
		this.shell.go("timeline", {
			v0: Math.round(start - took * 0.1),
			v1: Math.round(start + took * 1.1),
			rank,
		});
	}

	choose() {
		this.of = /** @type {MapOf} */ (this.values.value);
		window.history.replaceState(null, "", this.shell.hash("ranks", { of: this.of }));
		this.map.of = this.of;
		this.legend.replaceChildren(mapLegend(this.of));
		this.load();
	}

	/** @param {KeyboardEvent} e */
	key(e) {
		return document.activeElement !== this.values && this.map.key(e);
	}

	update() {
		if (this.shell.source.running)
			this.map.load(false).catch(() => {});
		this.node.querySelector(".under")?.replaceWith(this.ranksTable());
	}

	close() {
		this.map.close();
	}
}

/** @type {Tab} */
export const ranks = {
	id: "ranks",
	title: "Ranks",
	has: isJob,
	only: isJob,
	open(shell) {
		if (isJob(shell.source))
			return new RanksView(shell);
		return {
			node: emptyState(
				"One process without ranks",
				"Ranks of a job are recorded together by",
				"kymo run -- torchrun train.py",
			),
			update: () => {
				if (isJob(shell.source))
					shell.open();
			},
		};
	},
};
