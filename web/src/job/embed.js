// The map and the joins that a report holds.
import { hasRank } from "./ranks.js";

/** @import { Joins, Launch, Link, MapCells, MapQuestion, Partner, Range, RunDocument } from "../types.js" */

const NONE = -128;

/** @param {string} text base64 */
const bytesOf = (text) => Int8Array.from(atob(text), (c) => (c.charCodeAt(0) << 24) >> 24);

/** @type {WeakMap<object, Int8Array>} */
const decoded = new WeakMap();

/**
 * The rows of the chosen ranks. A report holds the map at one resolution, so its columns stay; a question of one cell
 * is answered with the step of its column.
 * @param {NonNullable<RunDocument["maps"]>[number]|undefined} whole
 * @param {MapQuestion} question
 * @param {string} chosen
 * @returns {MapCells}
 */
export function cutMap(whole, question, chosen) {
	if (!whole)
		throw new Error("This report holds no steps of ranks.");
	let cells = decoded.get(whole);
	if (!cells) {
		cells = bytesOf(whole.cells);
		decoded.set(whole, cells);
	}
	const has = hasRank(chosen);
	const places = whole.ranks.map((rank, i) => ({ rank, i })).filter(({ rank }) => has(rank));
	const perRow = whole.ranks.length / Math.max(1, whole.rows);
	const rowOf = (/** @type {number} */ place) => Math.min(whole.rows - 1, Math.floor(place / perRow));
	const rows = places.map(({ i }) => rowOf(i));
	const out = new Int8Array(rows.length * whole.columns).fill(NONE);
	rows.forEach((row, i) =>
		out.set(cells.subarray(row * whole.columns, (row + 1) * whole.columns), i * whole.columns),
	);
	const ranks = places.map(({ rank }) => rank);
	const made = { ...whole, ranks, rows: rows.length, first_rank: 0, end_rank: ranks.length, cells: out };
	return { ...made, worst: question.columns === 1 ? stepOf(whole, made, question) : null };
}

/**
 * @param {NonNullable<RunDocument["maps"]>[number]} whole
 * @param {MapCells} made
 * @param {MapQuestion} question
 */
function stepOf(whole, made, { from = 0, first_rank = 0 }) {
	const steps = Math.max(1, whole.to - whole.from);
	const column = Math.max(0, Math.min(whole.columns - 1, Math.floor(((from - whole.from) * whole.columns) / steps)));
	const value = made.cells[first_rank * whole.columns + column];
	const start = whole.starts[column];
	if (value === NONE || start === undefined)
		return null;
	// The duration of this rank is known as a distance to the median, which is that of the column.
	const median = whole.ends[column] - start;
	const took = whole.of === "duration" ? median * (1 + value / 100) : median;
	const step = whole.from + Math.floor((column * steps) / whole.columns);
	return {
		rank: made.ranks[first_rank],
		step,
		start_ns: start,
		duration_ns: took,
		median_ns: median,
		wait_ns: null,
		median_wait_ns: null,
	};
}

/** @implements {Joins} */
export class EmbedJoins {
	/** @param {{data(): RunDocument, ranks: string}} source */
	constructor(source) {
		this.source = source;
	}

	get joined() {
		return this.source.data().joined ?? { collectives: [], launches: [], links: [] };
	}

	/** @param {number} rank @param {number} t @returns {Promise<Partner[]>} */
	async partners(rank, t) {
		const near = this.joined.collectives.filter((one) => one.rank === rank && Math.abs(one.arrival_ns - t) <= 1000);
		const [found] = near.sort((a, b) => Math.abs(a.arrival_ns - t) - Math.abs(b.arrival_ns - t));
		if (!found)
			return [];
		return this.joined.collectives
			.filter((one) => one.seq === found.seq && one.group_name === found.group_name)
			.sort((a, b) => b.arrival_ns - a.arrival_ns);
	}

	/** @param {Range} range @returns {Promise<Partner[]>} */
	async collectives({ t0, t1 }) {
		const has = hasRank(this.source.ranks);
		return this.joined.collectives.filter(
			(one) => has(one.rank) && one.arrival_ns < t1 && (one.end_ns ?? one.arrival_ns) >= t0,
		);
	}

	/** @param {Range} range @param {number} [pid] @returns {Promise<Launch[]>} */
	async launches({ t0, t1 }, pid) {
		const has = hasRank(this.source.ranks);
		return this.joined.launches.filter(
			(one) =>
				has(one.rank) && one.start_ns < t1 && one.end_ns >= t0 && (pid === undefined || one.pid === pid),
		);
	}

	/** @param {Range} range @param {number} pid @param {number} tid @returns {Promise<Launch[]>} */
	async launched({ t0, t1 }, pid, tid) {
		return this.joined.launches.filter(
			(one) => one.pid === pid && one.tid === tid && one.queued_ns >= t0 && one.queued_ns <= t1,
		);
	}

	/** @param {Range} range @param {number} [pid] @param {number} [tid] @returns {Promise<Link[]>} */
	async links({ t0, t1 }, pid, tid) {
		const has = hasRank(this.source.ranks);
		const at = (/** @type {number} */ t, /** @type {number} */ thread) =>
			t >= t0 && t <= t1 && (tid === undefined || thread === tid);
		return this.joined.links.filter(
			(one) =>
				has(one.rank) &&
				(pid === undefined || one.pid === pid) &&
				(at(one.from_ns, one.from_tid) || at(one.to_ns, one.tid)),
		);
	}
}
