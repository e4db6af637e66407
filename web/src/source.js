// What a view may ask, whoever answers: a report's own blocks (source-embed.js) or a server (source-live.js).

/**
 * @typedef {Object} Lane
 * @property {number} id
 * @property {string} name
 * @property {string} kind "thread" or "queue"
 * @property {number} pid
 * @property {number} tid
 * @property {number} rows
 * @property {number|null} rank
 *
 * @typedef {Object} Name
 * @property {string} name
 * @property {string} source
 * @property {string} file
 * @property {number} line
 *
 * @typedef {Object} Track
 * One lane and row of a tile; x and w count 2^max(0, level-4) ns from the tile's beginning. cov: bits 7–2 hold 0…63,
 * bit 0 says that the piece continues to the left, bit 1 to the right.
 * @property {number} lane
 * @property {number} row
 * @property {number} count
 * @property {Uint32Array} name
 * @property {Uint16Array} x
 * @property {Uint16Array} w
 * @property {Uint16Array} n
 * @property {Uint8Array} cov
 *
 * @typedef {Object} Tile
 * @property {number} level
 * @property {number} t0
 * @property {Track[]} tracks
 *
 * @typedef {Object} Zone
 * @property {number} lane
 * @property {number} row
 * @property {number} start
 * @property {number} duration
 * @property {number} name index of names()
 * @property {number} n zones that it stands for
 * @property {boolean} [open] it has not ended
 *
 * @typedef {Object} NameStats
 * @property {number} count
 * @property {number} total
 * @property {number} p50
 * @property {number} p99
 * @property {number} min
 * @property {number} max
 * @property {number[]} hist
 * @property {number} histFrom
 * @property {number} histTo
 * @property {Zone[]} slowest
 *
 * @typedef {Object} Flame
 * A tree in columns; parents come before their children, the root is 0.
 * @property {string[]} label
 * @property {string[]} source
 * @property {number[]} parent
 * @property {number[]} total
 * @property {number[]} self
 * @property {"ns"|"samples"} unit
 * @property {(node: number) => string[]} [paint] fill and ink, where the source does not decide
 * @property {(node: number) => string} [note] at the right of a frame, in place of its share
 * @property {(node: number) => string} [caption] what is written on it, in place of its label
 * @property {(node: number) => string} [describe]
 *
 * @typedef {{t0: number, t1: number}|null} Range
 *
 * @typedef {Object} Source
 * @property {() => Record<string, any>} data  blocks by name, columns each
 * @property {() => {end: number, lanes: Lane[], names: Name[]}} meta
 * @property {(level: number, tile: number) => Tile|null} get  null: not here yet
 * @property {(keys: [number, number][]) => void} want  asks for tiles; onchange is called when they come
 * @property {(lane: number, row: number, t: number, slack: number) => Promise<Zone|null>} zone
 * @property {(zone: Zone, dir: "left"|"right"|"up"|"down"|"previous"|"next") => Promise<Zone|null>} step
 * @property {(name: number) => Promise<NameStats>} name
 * @property {(of: "zones"|"samples", lane: number|null, range: Range) => Promise<Flame>} flame
 * @property {(range: {t0: number, t1: number}) => Promise<any>} stretch what of data() is known of it, with zones,
 * threads and region_count
 * @property {null|(() => void)} onchange
 * Only where a server answers:
 * @property {(lane: number, row: number, t: number, slack: number) => Zone|null} [glance] what is here already
 * @property {() => {lane: number, row: number, name: number, start_ns: number}[]} [open] zones that have not ended
 * @property {(t0: number, t1: number) => {steps: any[], marks: any[]}} [overlay] steps and marks
 */

export const TILE_BUCKETS = 1024;

/**
 * Level of detail for a scale.
 * @param {number} nsPerPixel
 */
export const levelFor = (nsPerPixel) => Math.max(0, Math.floor(Math.log2(nsPerPixel)));
/** @param {number} level */
export const unitOf = (level) => 2 ** Math.max(0, level - 4);
/** @param {number} level */
export const tileSpan = (level) => 2 ** level * TILE_BUCKETS;

/**
 * Blocks are lists of rows; these have one. What is not there yet is empty.
 * @param {Record<string, any>} data
 */
export function whole(data) {
	for (const one of ["run", "losses", "steps", "step_facts", "memory_facts"])
		data[one] = data[one]?.[0] ?? {};
	for (const list of [
		"verdicts",
		"figures",
		"streams",
		"overhead",
		"regions",
		"parts",
		"slowest",
		"open",
		"counters",
		"modules",
		"queues",
		"models",
		"launches",
		"samples",
		"sites",
		"series",
	])
		data[list] ??= [];
	if (!data.steps.x)
		data.steps = { x: [], min: [], med: [], max: [], worst_start_ns: [] };
	data.zones ??= { detail: "", merged_ns: 0 };
	data.overhead_pct ??= null;
	return data;
}
