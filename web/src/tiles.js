// The pieces of a timeline, as a report embeds them and as a server sends them: rows are decoded from byte planes, and
// tiles are cut from them by the rule of the server: a bucket is 2^level ns; zones shorter than a bucket are merged
// with their neighbours.
import { TILE_BUCKETS, tileSpan, unitOf } from "./document.js";

/** @import { ColumnHeader, Tile, TileRow, Zone } from "./types.js" */

const BLOCK = 16; // zones; the longest of each block is kept

/** A key for a row of a track. @param {number} lane @param {number} row */
export const trackKey = (lane, row) => lane * 65536 + row;

/** The zones of one row of a track, sorted by start. */
export class Column {
	/**
	 * @param {ColumnHeader} header
	 * @param {Uint8Array} bytes
	 * @param {number} at
	 * @param {number} quantum ns of a unit
	 */
	constructor(header, bytes, at, quantum) {
		const n = header.count;
		this.lane = header.lane;
		this.row = header.row;
		this.count = n;
		this.bytes = 0;
		const plane = (/** @type {number} */ width) => {
			const out = new Float64Array(n);
			const from = at + this.bytes;
			for (let p = width - 1; p >= 0; p--) {
				for (let i = 0, o = from + p * n; i < n; i++, o++)
					out[i] = out[i] * 256 + bytes[o];
			}
			this.bytes += width * n;
			return out;
		};
		const gap = plane(header.gap_bytes);
		const duration = plane(header.duration_bytes);
		this.name = Uint32Array.from(plane(header.name_bytes));
		/** Zones in each piece; null if each is one. */
		this.n = header.merged ? plane(4) : null;
		const busy = header.merged ? plane(header.duration_bytes) : duration;
		/** Busy time before each piece. */
		this.busy = new Float64Array(n + 1);
		this.start = gap;
		this.end = duration;
		for (let i = 0, clock = (header.base_ns ?? 0) / quantum; i < n; i++) {
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

	/** @param {number} i @returns {Zone|null} null if there is no such piece */
	zone(i) {
		if (i < 0 || i >= this.count)
			return null;
		return {
			lane: this.lane,
			row: this.row,
			start: this.start[i],
			duration: this.length(i),
			name: this.name[i],
			n: this.stands(i),
		};
	}

	/**
	 * The piece at t, or the nearest one within slack.
	 * @param {number} t
	 * @param {number} slack
	 */
	near(t, slack) {
		const i = this.firstEndingAfter(t);
		if (i < this.count && this.start[i] - t <= slack)
			return this.zone(i);
		return i > 0 && t - this.end[i - 1] <= slack ? this.zone(i - 1) : null;
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
	 * The first piece that ends after t.
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
	 * The first piece from i on that starts at or after t, by galloping.
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

/** The pieces of a row in a tile, in growing arrays. */
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

/**
 * The pieces of a column in the tile that begins at t0.
 * @param {Column} column
 * @param {number} level
 * @param {number} t0
 * @returns {TileRow}
 */
function cut(column, level, t0) {
	const bucket = 2 ** level;
	const t1 = t0 + bucket * TILE_BUCKETS;
	const pieces = new Pieces();
	let i = column.firstEndingAfter(t0);
	while (i < column.count && column.start[i] < t1) {
		let j = i + 1;
		if (column.length(i) < bucket) {
			j = column.firstStartingFrom(i, (Math.floor(column.start[i] / bucket) + 1) * bucket);
			if (j - i > 1 && column.length(j - 1) >= bucket)
				j--; // only the last one can be that long
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

/**
 * Decodes the columns of rows, which follow each other in `bytes`.
 * @param {ColumnHeader[]} headers
 * @param {Uint8Array} bytes
 * @param {number} quantum ns of a unit
 * @returns {Map<number, Column>} by trackKey()
 */
export function readColumns(headers, bytes, quantum) {
	const columns = new Map();
	let at = 0;
	for (const header of headers) {
		const column = new Column(header, bytes, at, quantum);
		at += column.bytes;
		columns.set(trackKey(column.lane, column.row), column);
	}
	return columns;
}

/**
 * The tile that begins at t0.
 * @param {Iterable<Column>} columns
 * @param {number} level
 * @param {number} t0
 * @returns {Tile}
 */
export function makeTile(columns, level, t0) {
	const rows = Array.from(columns, (column) => cut(column, level, t0));
	return { level, t0, tracks: rows.filter((row) => row.count) };
}
