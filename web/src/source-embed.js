// Zones that lie in the page: columns out of byte planes, tiles computed as they are asked for (the same rule as a
// server's: one bucket is 2^level ns, what is shorter than a bucket is merged with its neighbours).
import { TILE_BUCKETS, tileSpan, unitOf, whole } from "./source.js";

/** @typedef {import("./source.js").Zone} Zone */
/** @typedef {import("./source.js").Range} Range */

const BLOCK = 16;

/** @param {string} text base64 */
function unbase64(text) {
	const made = /** @type {any} */ (Uint8Array).fromBase64;
	if (made)
		return made.call(Uint8Array, text);
	const raw = atob(text);
	const out = new Uint8Array(raw.length);
	for (let i = 0; i < raw.length; i++)
		out[i] = raw.charCodeAt(i);
	return out;
}

/** @param {Uint8Array} packed raw deflate */
async function inflate(packed) {
	const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
	return new Uint8Array(await new Response(stream).arrayBuffer());
}

/** One lane and row. */
export class Column {
	/** @param {Record<string, any>} about @param {Uint8Array} bytes @param {number} at @param {number} quantum */
	constructor(about, bytes, at, quantum) {
		const n = about.count;
		this.lane = about.lane;
		this.row = about.row;
		this.count = n;
		this.bytes = 0;
		const plane = (/** @type {number} */ width) => {
			const out = new Float64Array(n);
			const from = at + this.bytes;
			for (let p = width - 1; p >= 0; p--)
				for (let i = 0, o = from + p * n; i < n; i++, o++)
					out[i] = out[i] * 256 + bytes[o];
			this.bytes += width * n;
			return out;
		};
		const gap = plane(about.gap_bytes);
		const duration = plane(about.duration_bytes);
		const name = plane(about.name_bytes);
		/** How many zones each stands for, and their time; absent where each is one. */
		this.n = about.merged ? plane(4) : null;
		const busy = about.merged ? plane(about.duration_bytes) : duration;
		this.start = gap;
		this.end = duration;
		this.name = Uint32Array.from(name);
		this.busy = new Float64Array(n + 1);
		for (let i = 0, clock = (about.base_ns ?? 0) / quantum; i < n; i++) {
			this.busy[i + 1] = this.busy[i] + busy[i] * quantum;
			clock += gap[i];
			this.start[i] = clock * quantum;
			clock += duration[i];
			this.end[i] = clock * quantum;
		}
		this.longest = new Uint32Array(Math.ceil(n / BLOCK));
		for (let b = 0; b < this.longest.length; b++)
			this.longest[b] = this.scanLongest(b * BLOCK, Math.min(n, (b + 1) * BLOCK));
	}

	/** @param {number} i */
	length(i) {
		return this.end[i] - this.start[i];
	}
	/** @param {number} i */
	stands(i) {
		return this.n ? this.n[i] : 1;
	}

	/**
	 * First that ends after t.
	 * @param {number} t
	 */
	firstEndingAfter(t) {
		let low = 0;
		let high = this.count;
		while (low < high) {
			const middle = (low + high) >> 1;
			if (this.end[middle] > t)
				high = middle;
			else
				low = middle + 1;
		}
		return low;
	}

	/**
	 * First at or after i that starts at or after t, by galloping.
	 * @param {number} i
	 * @param {number} t
	 */
	firstStartingFrom(i, t) {
		let step = 1;
		let low = i;
		while (low + step < this.count && this.start[low + step] < t) {
			low += step;
			step *= 2;
		}
		let high = Math.min(this.count, low + step);
		low++;
		while (low < high) {
			const middle = (low + high) >> 1;
			if (this.start[middle] < t)
				low = middle + 1;
			else
				high = middle;
		}
		return low;
	}

	/** @param {number} from @param {number} to */
	scanLongest(from, to) {
		let best = from;
		for (let i = from + 1; i < to; i++)
			if (this.end[i] - this.start[i] > this.end[best] - this.start[best])
				best = i;
		return best;
	}

	/** @param {number} from @param {number} to */
	longestIn(from, to) {
		const first = Math.ceil(from / BLOCK);
		const last = Math.floor(to / BLOCK);
		if (last <= first)
			return this.scanLongest(from, to);
		let best = this.scanLongest(from, Math.max(from + 1, first * BLOCK));
		for (let b = first; b < last; b++)
			if (this.length(this.longest[b]) > this.length(best))
				best = this.longest[b];
		if (last * BLOCK < to) {
			const tail = this.scanLongest(last * BLOCK, to);
			if (this.length(tail) > this.length(best))
				best = tail;
		}
		return best;
	}
}

/** Pieces of a track in a tile, in growing arrays. */
class Pieces {
	constructor() {
		/** @type {number[]} */ this.name = [];
		/** @type {number[]} */ this.x = [];
		/** @type {number[]} */ this.w = [];
		/** @type {number[]} */ this.n = [];
		/** @type {number[]} */ this.cov = [];
	}

	/** @param {Column} column @param {number} i @param {number} j @param {number} t0 @param {number} level */
	add(column, i, j, t0, level) {
		const unit = unitOf(level);
		const span = tileSpan(level);
		const start = column.start[i];
		const end = column.end[j - 1];
		const from = Math.max(start, t0);
		const to = Math.min(end, t0 + span);
		const x = Math.floor((from - t0) / unit);
		const right = Math.ceil((to - t0) / unit);
		let n = 0;
		let longest = i;
		if (j - i === 1) {
			n = column.stands(i);
		} else {
			for (let k = i; k < j && column.n; k++)
				n += column.n[k];
			n = n || j - i;
			longest = column.longestIn(i, j);
		}
		const busy = column.busy[j] - column.busy[i];
		const cover = n === 1 || end <= start ? 63 : Math.min(63, Math.round((63 * busy) / (end - start)));
		this.name.push(column.name[longest]);
		this.x.push(Math.min(65535, x));
		this.w.push(Math.min(65535, Math.max(1, right - x)));
		this.n.push(Math.min(65535, n));
		this.cov.push((cover << 2) | (start < t0 ? 1 : 0) | (end > t0 + span ? 2 : 0));
	}
}

/** @param {Column} column @param {number} level @param {number} t0 */
export function cut(column, level, t0) {
	const bucket = 2 ** level;
	const t1 = t0 + bucket * TILE_BUCKETS;
	const pieces = new Pieces();
	let i = column.firstEndingAfter(t0);
	while (i < column.count && column.start[i] < t1) {
		let j = i + 1;
		if (column.length(i) < bucket) {
			j = column.firstStartingFrom(i, (Math.floor(column.start[i] / bucket) + 1) * bucket);
			if (j - i > 1 && column.length(j - 1) >= bucket)
				j--; // a long one may only be the last
		}
		pieces.add(column, i, j, t0, level);
		i = j;
	}
	return {
		lane: column.lane,
		row: column.row,
		count: pieces.x.length,
		name: Uint32Array.from(pieces.name),
		x: Uint16Array.from(pieces.x),
		w: Uint16Array.from(pieces.w),
		n: Uint16Array.from(pieces.n),
		cov: Uint8Array.from(pieces.cov),
	};
}

/** A tree of (parent, label) in columns. */
export class FlameTree {
	/** @param {string} root @param {"ns"|"samples"} unit */
	constructor(root, unit) {
		this.unit = unit;
		/** @type {string[]} */ this.label = [root];
		/** @type {string[]} */ this.source = [""];
		/** @type {number[]} */ this.parent = [-1];
		/** @type {number[]} */ this.total = [0];
		/** @type {number[]} */ this.self = [0];
		/** @type {Map<string|number, number>[]} */ this.children = [new Map()];
	}

	/** @param {number} parent @param {string} label @param {string} source @param {string|number} key */
	child(parent, label, source, key) {
		const known = this.children[parent].get(key);
		if (known !== undefined)
			return known;
		const id = this.label.length;
		this.children[parent].set(key, id);
		this.label.push(label);
		this.source.push(source);
		this.parent.push(parent);
		this.total.push(0);
		this.self.push(0);
		this.children.push(new Map());
		return id;
	}

	/** Own time, and the time of frames that only hold others. */
	finish() {
		const inside = new Float64Array(this.label.length);
		for (let i = this.label.length - 1; i >= 0; i--) {
			this.total[i] = Math.max(this.total[i], inside[i]);
			this.self[i] = this.total[i] - inside[i];
			if (i)
				inside[this.parent[i]] += this.total[i];
		}
		return this;
	}
}

/** @implements {import("./source.js").Source} */
export class EmbedSource {
	/** @param {Record<string, any>} data */
	constructor(data) {
		this.blocks = whole(data);
		this.onchange = null;
		/** @type {Column[]} */
		this.columns = [];
		/** @type {Map<number, Column>} */
		this.byTrack = new Map();
		/** @type {Map<string, import("./source.js").Tile>} */
		this.tiles = new Map();
		const names = data.names;
		this.about = {
			end: Math.max(1, data.run.duration_ns, data.zones.end_ns),
			lanes: data.lanes,
			names: names.name.map((/** @type {string} */ name, /** @type {number} */ i) => ({
				name,
				source: names.source[i],
				file: names.file[i],
				line: names.line[i],
			})),
		};
	}

	/**
	 * Opens the zones; everything else is there before.
	 * @param {string} text base64
	 */
	async load(text) {
		const bytes = text ? await inflate(unbase64(text.trim())) : new Uint8Array();
		let at = 0;
		for (const about of this.blocks.tracks) {
			const column = new Column(about, bytes, at, this.blocks.zones.quantum_ns);
			at += column.bytes;
			this.columns.push(column);
			this.byTrack.set(column.lane * 256 + column.row, column);
		}
		this.tiles.clear();
		this.onchange?.();
	}

	data() {
		return this.blocks;
	}
	meta() {
		return this.about;
	}
	want() {} // all of it is here

	/** @param {number} level @param {number} index */
	get(level, index) {
		const key = `${level}/${index}`;
		let tile = this.tiles.get(key);
		if (!tile) {
			const t0 = index * tileSpan(level);
			tile = { level, t0, tracks: this.columns.map((column) => cut(column, level, t0)).filter((t) => t.count) };
			if (this.tiles.size > 256)
				this.tiles.delete(/** @type {string} */ (this.tiles.keys().next().value));
			this.tiles.set(key, tile);
		}
		return tile;
	}

	/** @param {Column} column @param {number} i @returns {Zone|null} */
	at(column, i) {
		if (!column || i < 0 || i >= column.count)
			return null;
		return {
			lane: column.lane,
			row: column.row,
			start: column.start[i],
			duration: column.length(i),
			name: column.name[i],
			n: column.stands(i),
		};
	}

	/** @param {number} lane @param {number} row @returns {Column|undefined} */
	track(lane, row) {
		return this.byTrack.get(lane * 256 + row);
	}

	/**
	 * The zone at t, or the nearest within slack.
	 * @param {number} lane
	 * @param {number} row
	 * @param {number} t
	 * @param {number} slack
	 */
	async zone(lane, row, t, slack) {
		const column = this.track(lane, row);
		if (!column)
			return null;
		const i = column.firstEndingAfter(t);
		if (i < column.count && column.start[i] <= t)
			return this.at(column, i);
		if (i < column.count && column.start[i] - t <= slack)
			return this.at(column, i);
		return i > 0 && t - column.end[i - 1] <= slack ? this.at(column, i - 1) : null;
	}

	/** @param {Zone} zone @param {string} dir */
	async step(zone, dir) {
		const middle = zone.start + zone.duration / 2;
		if (dir === "previous" || dir === "next")
			return this.sameName(zone, dir === "next" ? 1 : -1);
		if (dir === "up" || dir === "down") {
			const column = this.track(zone.lane, zone.row + (dir === "up" ? -1 : 1));
			if (!column)
				return null;
			if (dir === "up")
				return this.zone(zone.lane, zone.row - 1, middle, 0);
			const i = column.firstEndingAfter(zone.start);
			return i < column.count && column.start[i] < zone.start + zone.duration ? this.at(column, i) : null;
		}
		const column = this.track(zone.lane, zone.row);
		const i = column ? column.firstEndingAfter(zone.start) : 0;
		return column ? this.at(column, i + (dir === "right" ? 1 : -1)) : null;
	}

	/** @param {Zone} zone @param {number} way */
	sameName(zone, way) {
		/** @type {Zone|null} */
		let best = null;
		for (const column of this.columns) {
			let i = column.firstEndingAfter(zone.start);
			if (way > 0)
				while (i < column.count && (column.name[i] !== zone.name || column.start[i] <= zone.start))
					i++;
			else
				for (
					i = Math.min(i, column.count - 1);
					i >= 0 && (column.name[i] !== zone.name || column.start[i] >= zone.start);

				)
					i--;
			const found = this.at(column, i);
			if (found && (!best || (found.start - best.start) * way < 0))
				best = found;
		}
		return best;
	}

	/**
	 * Of the zones in the page.
	 * @param {number} name
	 */
	async name(name) {
		/** @type {Zone[]} */
		const all = [];
		/** @type {number[]} */
		const durations = [];
		for (const column of this.columns)
			for (let i = 0; i < column.count; i++)
				if (column.name[i] === name && column.stands(i) === 1) {
					durations.push(column.length(i));
					if (all.length < 20 || column.length(i) > all[all.length - 1].duration) {
						all.push(/** @type {Zone} */ (this.at(column, i)));
						all.sort((a, b) => b.duration - a.duration);
						all.length = Math.min(all.length, 20);
					}
				}
		const sorted = Float64Array.from(durations).sort();
		const quantile = (/** @type {number} */ q) =>
			sorted.length ? sorted[Math.min(sorted.length - 1, Math.floor(q * sorted.length))] : NaN;
		const low = Math.log(Math.max(1, sorted[0] ?? 1));
		const high = Math.log(Math.max(2, sorted[sorted.length - 1] ?? 2));
		const hist = new Array(60).fill(0);
		for (const one of sorted)
			hist[high > low ? Math.min(59, Math.floor((60 * (Math.log(Math.max(1, one)) - low)) / (high - low))) : 0]++;
		return {
			count: sorted.length,
			total: sorted.reduce((a, b) => a + b, 0),
			p50: quantile(0.5),
			p99: quantile(0.99),
			min: sorted[0],
			max: sorted[sorted.length - 1],
			hist,
			histFrom: low,
			histTo: high,
			slowest: all,
		};
	}

	/** @param {"zones"|"samples"} of @param {number|null} lane @param {Range} range */
	async flame(of, lane, range) {
		return of === "samples" ? this.flameOfSamples() : this.flameOfZones(lane, range);
	}

	flameOfSamples() {
		const tree = new FlameTree("all samples", "samples");
		for (const { thread, stack, count } of this.blocks.samples) {
			let node = 0;
			for (const frame of [thread, ...[...stack].reverse()]) {
				node = tree.child(node, frame, node ? "python" : "", frame);
				tree.total[node] += count;
			}
		}
		return tree.finish();
	}

	/**
	 * Made of all zones by who wrote the report, where the page has merged ones.
	 * @param {[number, number, number][]} rows name or -1 - lane, parent, ns
	 */
	flameAsWritten(rows) {
		const tree = new FlameTree("all threads", "ns");
		const { names, lanes } = this.about;
		for (const [name, parent, total] of rows) {
			const one =
				name < 0 ? { name: lanes[-1 - name].name || `tid ${lanes[-1 - name].tid}`, source: "" } : names[name];
			tree.total[tree.child(parent + 1, one.name, one.source, name)] = total;
		}
		return tree.finish();
	}

	/** @param {number|null} only @param {Range} range */
	flameOfZones(only, range) {
		if (this.blocks.flame && only === null && !range)
			return this.flameAsWritten(this.blocks.flame);
		const tree = new FlameTree("all threads", "ns");
		for (const lane of this.about.lanes) {
			if (only !== null && lane.id !== only)
				continue;
			const top = tree.child(0, lane.name || `tid ${lane.tid}`, "", `lane ${lane.id}`);
			/** @type {Int32Array|null} */ let above = null;
			/** @type {Column|null} */ let parents = null;
			for (let row = 0; row < lane.rows; row++) {
				const column = this.track(lane.id, row);
				if (!column)
					continue; // a depth of which nothing was kept: its zones hang on what is above it
				above = this.flameRow(tree, column, parents, above, top, range);
				parents = column;
			}
		}
		return tree.finish();
	}

	/**
	 * Regions of a stretch of time, out of the zones in the page; steps and samples are not here one by one.
	 * @param {{t0: number, t1: number}} range
	 */
	async stretch(range) {
		const tree = this.flameOfZones(null, range);
		const queues = new Set(
			this.about.lanes.filter((/** @type {any} */ l) => l.kind === "queue").map((/** @type {any} */ l) => l.id),
		);
		/** @type {Map<string, {name: string, source: string, self_ns: number, total_ns: number, count: number, durations: number[]}>} */ const regions =
			new Map();
		const find = (/** @type {string} */ name, /** @type {string} */ source) => {
			const key = `${source}\n${name}`;
			const made = regions.get(key) ?? { name, source, self_ns: 0, total_ns: 0, count: 0, durations: [] };
			regions.set(key, made);
			return made;
		};
		tree.label.forEach((name, i) => {
			if (!tree.source[i] || tree.source[i] === "device")
				return;
			const one = find(name, tree.source[i]);
			one.self_ns += tree.self[i];
			one.total_ns += tree.total[i];
		});
		const threads = new Set();
		let zones = 0;
		for (const column of this.columns.filter((c) => !queues.has(c.lane)))
			for (let i = column.firstEndingAfter(range.t0); i < column.count && column.start[i] < range.t1; i++) {
				const { name, source } = this.about.names[column.name[i]];
				const one = find(name, source);
				threads.add(column.lane);
				zones += column.stands(i);
				one.count += column.stands(i);
				if (column.stands(i) === 1)
					one.durations.push(column.length(i));
			}
		const rows = [...regions.values()]
			.filter((one) => one.count)
			.map(({ durations, ...one }) => {
				const sorted = Float64Array.from(durations).sort();
				const at = (/** @type {number} */ q) =>
					sorted.length ? sorted[Math.ceil(q * sorted.length) - 1] : null;
				return {
					...one,
					min_ns: sorted[0] ?? null,
					max_ns: sorted[sorted.length - 1] ?? null,
					p50_ns: at(0.5),
					p90_ns: at(0.9),
					p99_ns: at(0.99),
				};
			})
			.sort((a, b) => b.self_ns - a.self_ns);
		return { zones, threads: threads.size, region_count: rows.length, regions: rows };
	}

	/**
	 * @param {FlameTree} tree
	 * @param {Column} column
	 * @param {Column|null} parents
	 * @param {Int32Array|null} above
	 * @param {number} top
	 * @param {Range} range
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
			const length = column.length(i);
			const share = length ? (Math.min(column.end[i], to) - Math.max(column.start[i], from)) / length : 0;
			tree.total[node] += (column.busy[i + 1] - column.busy[i]) * Math.min(1, share);
			nodes[i] = node;
		}
		return nodes;
	}
}
