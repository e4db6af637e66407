// The rank picker in the header: all ranks, one, or several. The choice is in the address, and every tab obeys it.
import { el } from "../dom.js";
import { count, duration } from "../format.js";
import { cleanRanks, hasRank, isJob, ranksLabel, ranksOf, ranksText } from "./ranks.js";

/** @import { RankRow } from "../types.js" */
/** @import { Shell } from "../shell.js" */

const LISTED_MOST = 2000;
const LATE_SHOWN = 3;

/** @param {RankRow} row */
function rankNote({ host, state, cost_ns: cost, times_last: last }) {
	const late = cost && last ? `last ${count(last)} ×, cost ${duration(cost)}` : "";
	const odd = state && !["running", "ended", "unknown"].includes(state) ? state : "";
	return [host ?? "", odd, late].filter(Boolean).join(" · ");
}

export class RankPicker {
	/** @param {Shell} shell */
	constructor(shell) {
		this.shell = shell;
		this.summary = el("summary", { class: "button", title: "Choose ranks" });
		this.input = el("input", {
			type: "text",
			placeholder: "0, 3, 8-15",
			"aria-label": "Ranks",
			onchange: () => this.choose(cleanRanks(this.input.value)),
		});
		this.list = el("div", { class: "list", role: "group", "aria-label": "Ranks" });
		this.buttons = el("div", { class: "row" });
		this.node = el(
			"details",
			{ class: "ranks", hidden: true },
			this.summary,
			el("div", { class: "panel" }, this.input, this.buttons, this.list),
		);
		this.node.addEventListener("toggle", () => this.fillList());
		document.addEventListener("pointerdown", (e) => {
			if (this.node.open && !this.node.contains(/** @type {Node} */ (e.target)))
				this.node.open = false;
		});
		this.node.addEventListener("keydown", (e) => {
			if (e.key !== "Escape")
				return;
			e.stopPropagation();
			this.node.open = false;
			this.summary.focus();
		});
	}

	/** Shows the choice; hidden unless the recording has several ranks. */
	fill() {
		const { ranks, source } = this.shell;
		this.node.hidden = !isJob(source) && !ranks;
		this.summary.textContent = `${ranksLabel(ranks)} ▾`;
		this.summary.classList.toggle("chip", Boolean(ranks));
		this.summary.setAttribute("aria-label", `${ranksLabel(ranks, 200)}; choose ranks`);
	}

	fillList() {
		const { ranks, source } = this.shell;
		if (!this.node.open)
			return;
		const rows = ranksOf(source);
		const chosen = hasRank(ranks);
		this.input.value = ranks.replaceAll(",", ", ");
		const late = rows
			.filter((row) => (row.cost_ns ?? 0) > 0)
			.sort((a, b) => (b.cost_ns ?? 0) - (a.cost_ns ?? 0))
			.slice(0, LATE_SHOWN);
		this.buttons.replaceChildren(
			el("button", { class: "button", text: "All", onclick: () => this.choose("") }),
			late.length
				? el("button", {
						class: "button",
						text: "Latest",
						title: `Ranks that others waited for the longest: ${late.map((row) => row.rank).join(", ")}`,
						onclick: () => this.choose(ranksText(late.map((row) => row.rank))),
					})
				: "",
		);
		this.list.replaceChildren(
			...rows.slice(0, LISTED_MOST).map((row) => this.entry(row, Boolean(ranks) && chosen(row.rank))),
		);
	}

	/** @param {RankRow} row @param {boolean} checked */
	entry(row, checked) {
		const box = el("input", { type: "checkbox", value: row.rank, checked });
		box.addEventListener("change", () => this.chooseBoxes());
		return el(
			"label",
			{},
			box,
			el("span", { text: `rank ${row.rank}` }),
			el("span", { class: "muted", text: rankNote(row) }),
		);
	}

	chooseBoxes() {
		/** @type {NodeListOf<HTMLInputElement>} */
		const boxes = this.list.querySelectorAll("input:checked");
		this.choose(ranksText([...boxes].map((box) => Number(box.value))));
	}

	/** @param {string} ranks */
	choose(ranks) {
		this.shell.setRanks(ranks);
		this.fillList();
	}
}
