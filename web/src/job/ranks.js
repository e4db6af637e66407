// Ranks of a job: which there are, which are chosen, and how a choice is written: "0,3,8-15".

/** @import { RankRow, Source } from "../types.js" */

/**
 * The ranks of a list such as "0,3,8-15"; null: all.
 * @param {string} text
 * @returns {[number, number][]|null}
 */
export function rangesOf(text) {
	const parts = text.split(",").filter((part) => /^\s*\d+(\s*[-–]\s*\d+)?\s*$/.test(part));
	/** @type {[number, number][]} */
	const ranges = parts.map((part) => {
		const [from, to = from] = part.split(/[-–]/).map(Number);
		return [Math.min(from, to), Math.max(from, to)];
	});
	return ranges.length ? ranges : null;
}

/**
 * Whether a choice has a rank. Lanes without a rank belong to the choice of all only.
 * @param {string} text
 * @returns {(rank: number|null|undefined) => boolean}
 */
export function hasRank(text) {
	const ranges = rangesOf(text);
	if (!ranges)
		return () => true;
	return (rank) => typeof rank === "number" && ranges.some(([from, to]) => rank >= from && rank <= to);
}

/**
 * The shortest text for a choice, with neighbours joined.
 * @param {number[]} ranks
 */
export function ranksText(ranks) {
	const sorted = [...new Set(ranks)].sort((a, b) => a - b);
	/** @type {[number, number][]} */
	const ranges = [];
	for (const rank of sorted) {
		const last = ranges[ranges.length - 1];
		if (last && rank === last[1] + 1)
			last[1] = rank;
		else
			ranges.push([rank, rank]);
	}
	return ranges.map(([from, to]) => (from === to ? String(from) : `${from}-${to}`)).join(",");
}

/** A choice as it was typed, cleaned. @param {string} text */
export const cleanRanks = (text) =>
	(rangesOf(text) ?? [])
		.slice(0, 64)
		.map(([from, to]) => (from === to ? String(from) : `${from}-${to}`))
		.join(",");

/** For people. @param {string} text @param {number} [most] characters */
export function ranksLabel(text, most = 24) {
	if (!text)
		return "All ranks";
	const list = text.replaceAll(",", ", ").replaceAll("-", "–");
	const shown = list.length > most ? `${list.slice(0, most - 1)}…` : list;
	return `${/[,-]/.test(text) ? "Ranks" : "Rank"} ${shown}`;
}

/**
 * The ranks of a recording: those of its document, or those of its tracks until it has come.
 * @param {Source} source
 * @returns {RankRow[]}
 */
export function ranksOf(source) {
	const { ranks } = source.data();
	if (ranks.length > 1)
		return ranks;
	/** @type {Map<number, RankRow>} */
	const found = new Map();
	for (const { rank, host } of source.meta().lanes) {
		if (typeof rank === "number" && !found.has(rank))
			found.set(rank, { rank, host: host || null, state: null, times_last: null, cost_ns: null });
	}
	return [...found.values()].sort((a, b) => a.rank - b.rank);
}

/** Whether it is a job. @param {Source} source */
export const isJob = (source) => ranksOf(source).length > 1;
