// Zones that a report holds. Tiles are cut from them on demand.
import { completed, tileSpan } from "./document.js";
import { EmbedJoins, cutMap } from "./job/embed.js";
import { hasRank } from "./job/ranks.js";
import { frameOf } from "./code/frames.js";
import { FlameTree } from "./flame-tree.js";
import { quantiles } from "./hist.js";
import { SAMPLE } from "./theme.js";
import { makeTile, readColumns, trackKey } from "./tiles.js";

/** @import { Column } from "./tiles.js" */
/** @import { Direction, FlameOf, Lane, Meta, Name, NameStats, Range, RangePart } from "./types.js" */
/** @import { MapCells, MapQuestion, Region, Samples, Source, Tile, Zone } from "./types.js" */

const TILES_KEPT = 256;
const SLOWEST_KEPT = 20;
const BARS = 60;

/** @param {string} text base64 */
function unbase64(text) {
	const native = /** @type {any} */ (Uint8Array).fromBase64; // newer than the types of TypeScript
	if (native)
		return /** @type {Uint8Array<ArrayBuffer>} */ (native.call(Uint8Array, text));
	const raw = atob(text);
	const out = new Uint8Array(raw.length);
	for (let i = 0; i < raw.length; i++)
		out[i] = raw.charCodeAt(i);
	return out;
}

/** @param {Uint8Array<ArrayBuffer>} packed raw deflate */
async function inflate(packed) {
	const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
	return new Uint8Array(await new Response(stream).arrayBuffer());
}

/** @param {Float64Array} sorted durations @param {number} [tick] ns */
const statsOf = (sorted, tick) => {
	const [p50, p99] = quantiles(sorted, [0.5, 0.99], tick);
	return {
		count: sorted.length,
		total: sorted.reduce((a, b) => a + b, 0),
		p50: p50 ?? NaN,
		p99: p99 ?? NaN,
		min: sorted[0],
		max: sorted[sorted.length - 1],
	};
};

/** Totals of regions in a range, by name and source. */
class RegionTotals {
	/** @param {FlameTree} tree gives total and self times @param {number} [tick] ns */
	constructor(tree, tick) {
		this.tick = tick;
		/** @type {Map<string, Region & {durations: number[]}>} */
		this.regions = new Map();
		tree.label.forEach((name, i) => {
			if (!tree.source[i] || ["device", SAMPLE].includes(tree.source[i]))
				return;
			const region = this.region(name, tree.source[i]);
			region.self_ns += tree.self[i];
			region.total_ns += tree.total[i];
		});
	}

	/** @param {string} name @param {string} source */
	region(name, source) {
		const key = `${source}\n${name}`;
		let made = this.regions.get(key);
		if (!made) {
			const empty = { min_ns: null, max_ns: null, p50_ns: null, p90_ns: null, p99_ns: null };
			made = { name, source, self_ns: 0, total_ns: 0, count: 0, durations: [], ...empty };
			this.regions.set(key, made);
		}
		return made;
	}

	/** @param {Name} name @param {Column} column @param {number} i */
	count({ name, source }, column, i) {
		const region = this.region(name, source);
		region.count += column.stands(i);
		if (column.stands(i) === 1)
			region.durations.push(column.length(i));
	}

	/** @returns {Region[]} by self time */
	rows() {
		return [...this.regions.values()]
			.filter((region) => region.count)
			.map(({ durations, ...region }) => {
				if (!durations.length)
					return region;
				const shares = [0, 0.5, 0.9, 0.99, 1];
				const [min_ns, p50_ns, p90_ns, p99_ns, max_ns] = quantiles(durations, shares, this.tick);
				return { ...region, min_ns, max_ns, p50_ns, p90_ns, p99_ns };
			})
			.sort((a, b) => b.self_ns - a.self_ns);
	}
}

/** @param {Lane} lane */
const isThread = (lane) => lane.kind === "thread" || lane.kind === "task";
/** Collectives and critical paths repeat time of other tracks. @param {Lane} lane */
const isRepeat = (lane) => lane.kind === "collectives" || lane.kind === "critical";

/** @param {Lane} lane */
const laneName = (lane) => lane.name || `tid ${lane.tid}`;

/** @implements {Source} */
export class EmbedSource {
	/** @param {Record<string, any>} data the document in the page */
	constructor(data) {
		this.blocks = completed(data);
		/** @type {(() => void)|null} */
		this.onchange = null;
		/** @type {Column[]} */
		this.columns = [];
		/** @type {Map<number, Column>} */
		this.byTrack = new Map();
		/** @type {Map<string, Tile>} */
		this.tiles = new Map();
		/** The chosen ranks. */
		this.ranks = "";
		this.joins = new EmbedJoins(this);
		const { run, zones, lanes = [], names = { name: [], source: [], file: [], line: [] } } = this.blocks;
		/** @type {Meta} */
		this.about = {
			end: Math.max(1, run.duration_ns, zones.end_ns),
			lanes,
			names: names.name.map((name, i) => ({
				name,
				source: names.source[i],
				file: names.file[i],
				line: names.line[i],
			})),
		};
	}

	/**
	 * Decodes the zones; everything else is there before.
	 * @param {string} text base64
	 */
	async load(text) {
		const bytes = text ? await inflate(unbase64(text.trim())) : new Uint8Array();
		this.byTrack = readColumns(this.blocks.tracks ?? [], bytes, this.blocks.zones.quantum_ns);
		this.columns = [...this.byTrack.values()];
		this.tiles.clear();
		this.onchange?.();
	}

	data() {
		return this.blocks;
	}

	meta() {
		return this.about;
	}

	/** @param {string} ranks */
	setRanks(ranks) {
		this.ranks = ranks;
	}

	/** @param {MapQuestion} question @returns {Promise<MapCells>} */
	async map(question) {
		const whole = this.blocks.maps?.find((one) => one.of === question.of) ?? this.blocks.maps?.[0];
		return cutMap(whole, question, this.ranks);
	}

	want() {} // every tile can be cut at once

	/** @param {number} level @param {number} index */
	get(level, index) {
		const key = `${level}/${index}`;
		let tile = this.tiles.get(key);
		if (!tile) {
			tile = makeTile(this.columns, level, index * tileSpan(level));
			if (this.tiles.size > TILES_KEPT)
				this.tiles.delete(/** @type {string} */ (this.tiles.keys().next().value));
			this.tiles.set(key, tile);
		}
		return tile;
	}

	/** @param {number} lane @param {number} row */
	track(lane, row) {
		return this.byTrack.get(trackKey(lane, row));
	}

	/** @param {number} lane @param {number} row @param {number} t @param {number} slack */
	async zone(lane, row, t, slack) {
		return this.track(lane, row)?.near(t, slack) ?? null;
	}

	/** @param {Zone} zone @param {Direction} direction */
	async step(zone, direction) {
		switch (direction) {
			case "previous":
			case "next":
				return this.sameName(zone, direction === "next" ? 1 : -1);
			case "up":
				return this.zone(zone.lane, zone.row - 1, zone.start + zone.duration / 2, 0);
			case "down":
				return this.firstChild(zone);
			default: {
				const column = this.track(zone.lane, zone.row);
				return column?.zone(column.firstEndingAfter(zone.start) + (direction === "right" ? 1 : -1)) ?? null;
			}
		}
	}

	/** @param {Zone} zone */
	firstChild(zone) {
		const column = this.track(zone.lane, zone.row + 1);
		const child = column?.zone(column.firstEndingAfter(zone.start)) ?? null;
		return child && child.start < zone.start + zone.duration ? child : null;
	}

	/**
	 * The nearest zone of the same name after it (1) or before it (−1).
	 * @param {Zone} zone
	 * @param {1|-1} way
	 */
	sameName(zone, way) {
		/** @type {Zone|null} */
		let best = null;
		for (const column of this.columns) {
			let i = Math.min(column.firstEndingAfter(zone.start), column.count - 1);
			const passed = () => column.name[i] !== zone.name || (column.start[i] - zone.start) * way <= 0;
			while (i >= 0 && i < column.count && passed())
				i += way;
			const found = column.zone(i);
			if (found && (!best || (found.start - best.start) * way < 0))
				best = found;
		}
		return best;
	}

	/**
	 * Statistics of the document, which are of all zones; the histogram and the slowest are of those in the page.
	 * @param {number} name
	 * @returns {Promise<NameStats>}
	 */
	async name(name) {
		const { durations, slowest } = this.zonesOf(name);
		const stats = this.regionStats(this.about.names[name]) ?? statsOf(durations, this.blocks.zones.tick_ns);
		const low = Math.log(Math.max(1, stats.min || 1));
		const high = Math.log(Math.max(2, stats.max || 2));
		const hist = new Array(BARS).fill(0);
		for (const one of durations) {
			const share = high > low ? (Math.log(Math.max(1, one)) - low) / (high - low) : 0;
			hist[Math.max(0, Math.min(BARS - 1, Math.floor(BARS * share)))]++;
		}
		return { ...stats, hist, histFrom: low, histTo: high, slowest };
	}

	/** @param {number} name @returns {{durations: Float64Array, slowest: Zone[]}} */
	zonesOf(name) {
		/** @type {Zone[]} */
		const slowest = [];
		/** @type {number[]} */
		const durations = [];
		for (const column of this.columns) {
			for (let i = 0; i < column.count; i++) {
				if (column.name[i] !== name || column.stands(i) !== 1)
					continue;
				durations.push(column.length(i));
				if (slowest.length < SLOWEST_KEPT || column.length(i) > slowest[slowest.length - 1].duration) {
					slowest.push(/** @type {Zone} */ (column.zone(i)));
					slowest.sort((a, b) => b.duration - a.duration);
					slowest.length = Math.min(slowest.length, SLOWEST_KEPT);
				}
			}
		}
		return { durations: Float64Array.from(durations).sort(), slowest };
	}

	/** @param {Name} name */
	regionStats({ name, source }) {
		const region = this.blocks.regions.find((one) => one.name === name && one.source === source);
		if (!region)
			return null;
		return {
			count: region.count,
			total: region.total_ns,
			p50: region.p50_ns ?? NaN,
			p99: region.p99_ns ?? NaN,
			min: region.min_ns ?? NaN,
			max: region.max_ns ?? NaN,
		};
	}

	/** @param {FlameOf} of @param {number|null} lane @param {Range|null} range */
	async flame(of, lane, range) {
		return of === "zones" ? this.flameOfZones(lane, range) : this.flameOfSamples(this.blocks[of]);
	}

	/** @param {Samples[]} samples */
	flameOfSamples(samples) {
		// By time, since samples have different periods; older recordings have only their number.
		const weighted = samples.some((one) => (one.time_ns ?? 0) > 0);
		const tree = new FlameTree("all samples", weighted ? "ns" : "samples");
		tree.sampled = true;
		for (const { thread, stack, count, time_ns } of samples) {
			const value = weighted ? (time_ns ?? 0) : count;
			let node = 0;
			for (const frame of [thread, ...[...stack].reverse()]) {
				node = tree.child(node, frame, node ? frameOf(frame).kind : "", frame);
				tree.total[node] += value;
			}
		}
		return tree.finish();
	}

	/**
	 * The flame graph that the report holds. It is of all zones; those in the page may be merged.
	 * @param {[number, number, number][]} rows name or -1 - lane, parent, ns
	 */
	flameAsWritten(rows) {
		const tree = new FlameTree("all threads", "ns");
		const { names, lanes } = this.about;
		for (const [name, parent, total] of rows) {
			const one = name < 0 ? { name: laneName(lanes[-1 - name]), source: "" } : names[name];
			const node = tree.child(parent + 1, one.name, one.source, name);
			tree.total[node] = total;
			tree.names[node] = names[name];
		}
		return tree.finish();
	}

	/** @param {number|null} only @param {Range|null} range */
	flameOfZones(only, range) {
		if (this.blocks.flame && only === null && !range && !this.ranks)
			return this.flameAsWritten(this.blocks.flame);
		const tree = new FlameTree("all threads", "ns");
		const chosen = hasRank(this.ranks);
		for (const lane of this.about.lanes) {
			if (only !== null ? lane.id !== only : !chosen(lane.rank) || isRepeat(lane))
				continue;
			const top = tree.child(0, laneName(lane), "", `lane ${lane.id}`);
			/** @type {Int32Array|null} */ let above = null;
			/** @type {Column|null} */ let parents = null;
			for (let row = 0; row < lane.rows; row++) {
				const column = this.track(lane.id, row);
				if (!column)
					continue; // no zones of this depth were kept: deeper ones hang on the depth above it
				above = this.flameRow(tree, column, parents, above, top, range);
				parents = column;
			}
		}
		return tree.finish();
	}

	async sources() {
		return this.blocks.sources ?? [];
	}

	/** @param {string} file */
	async sourceText(file) {
		return this.blocks.sources?.find((one) => one.file === file) ?? null;
	}

	/**
	 * Regions of a range, from the zones in the page. Steps and samples are in the page as totals only.
	 * @param {Range} range
	 * @returns {Promise<RangePart>}
	 */
	async rangePart(range) {
		const regions = new RegionTotals(this.flameOfZones(null, range), this.blocks.zones.tick_ns);
		const chosen = hasRank(this.ranks);
		const others = this.about.lanes.filter((lane) => !isThread(lane) || !chosen(lane.rank));
		const queues = new Set(others.map((lane) => lane.id));
		const threads = new Set();
		let zones = 0;
		for (const column of this.columns.filter((c) => !queues.has(c.lane))) {
			for (let i = column.firstEndingAfter(range.t0); i < column.count && column.start[i] < range.t1; i++) {
				const name = this.about.names[column.name[i]];
				if (name.source === SAMPLE)
					continue;
				threads.add(column.lane);
				zones += column.stands(i);
				regions.count(name, column, i);
			}
		}
		const rows = regions.rows();
		return { zones, threads: threads.size, region_count: rows.length, regions: rows };
	}

	/**
	 * @param {FlameTree} tree
	 * @param {Column} column
	 * @param {Column|null} parents
	 * @param {Int32Array|null} above
	 * @param {number} top
	 * @param {Range|null} range
	 */
	flameRow(tree, column, parents, above, top, range) {
		const nodes = new Int32Array(column.count).fill(-1);
		const names = this.about.names;
		const from = range ? range.t0 : -1;
		const to = range ? range.t1 : Infinity;
		for (let i = range ? column.firstEndingAfter(from) : 0, p = 0; i < column.count && column.start[i] < to; i++) {
			const middle = (column.start[i] + column.end[i]) / 2;
			let parent = top;
			if (parents && above) {
				while (p < parents.count && parents.end[p] < middle)
					p++;
				if (p < parents.count && parents.start[p] <= middle && above[p] >= 0)
					parent = above[p];
			}
			const id = column.name[i];
			const node = tree.child(parent, names[id].name, names[id].source, id);
			tree.names[node] = names[id];
			const length = column.length(i);
			const share = length ? (Math.min(column.end[i], to) - Math.max(column.start[i], from)) / length : 0;
			tree.total[node] += (column.busy[i + 1] - column.busy[i]) * Math.min(1, share);
			nodes[i] = node;
		}
		return nodes;
	}
}
