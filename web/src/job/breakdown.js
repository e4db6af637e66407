// Where the time of each rank's devices goes, as a bar per rank.
import { el } from "../dom.js";
import { duration, percent } from "../format.js";
import { hasRank } from "./ranks.js";

/** @import { Breakdown, RunDocument } from "../types.js" */
/** @import { Shell } from "../shell.js" */

const SHOWN_MOST = 8;
/** @type {[string, "computation_ns"|"communication_ns"|"memory_ns"|"idle_ns", string][]} */
const PARTS = [
	["compute", "computation_ns", "var(--device-1)"],
	["exposed communication", "communication_ns", "var(--line-1)"],
	["copies", "memory_ns", "var(--c-1)"],
	["idle", "idle_ns", "var(--same)"],
];

/** @param {Breakdown} row */
function describe(row) {
	const share = (/** @type {number} */ ns) => percent(row.total_ns ? ns / row.total_ns : 0);
	return PARTS.map(([name, key]) => `${name} ${duration(row[key])} (${share(row[key])})`).join(", ");
}

/** @param {Breakdown} row @param {number} longest @param {Shell} shell */
function barOf(row, longest, shell) {
	const bar = el("div", { class: "spent", role: "img", "aria-label": describe(row), title: describe(row) });
	bar.style.width = `${(100 * row.total_ns) / Math.max(1, longest)}%`;
	for (const [, key, colour] of PARTS) {
		const part = el("div");
		part.style.flexGrow = String(Math.max(0, row[key]));
		part.style.background = colour;
		bar.append(part);
	}
	const { rank, device } = row;
	const label = rank === null ? device : `rank ${rank}`;
	return el(
		"div",
		{ class: "bar-of-rank" },
		rank === null
			? el("span", { text: label, title: device })
			: el("button", { class: "link", text: label, title: device, onclick: () => shell.setRanks(String(rank)) }),
		el("div", { class: "track" }, bar),
		el("span", { class: "muted", text: `idle ${percent(row.total_ns ? row.idle_ns / row.total_ns : 0)}` }),
	);
}

/**
 * Many ranks: those with the most idle and exposed time.
 * @param {RunDocument} data
 * @param {Shell} shell
 */
export function breakdownCard(data, shell) {
	const chosen = hasRank(shell.ranks);
	const rows = data.breakdown.filter((row) => chosen(row.rank));
	if (!rows.length || (rows.length < 2 && rows[0].rank === null))
		return null;
	const lost = (/** @type {Breakdown} */ row) => (row.idle_ns + row.communication_ns) / Math.max(1, row.total_ns);
	const worst = rows.length > SHOWN_MOST ? [...rows].sort((a, b) => lost(b) - lost(a)).slice(0, SHOWN_MOST) : rows;
	const shown = [...worst].sort((a, b) => (a.rank ?? -1) - (b.rank ?? -1));
	const longest = Math.max(...shown.map((row) => row.total_ns));
	const key = PARTS.map(([name, , colour]) => {
		const square = el("i");
		square.style.background = colour;
		return el("span", {}, square, name);
	});
	const about =
		shown.length < rows.length
			? `the ${SHOWN_MOST} of ${rows.length} with the most time not computing`
			: "whole run, first to last operation";
	return el(
		"section",
		{ class: "card breakdown", "aria-label": "Device time by rank" },
		el("h2", { text: "Device time by rank" }, el("span", { text: about }), el("span", { class: "key" }, ...key)),
		el("div", { class: "bars" }, ...shown.map((row) => barOf(row, longest, shell))),
	);
}
