// The document of a run, complete, and the scale of tiles.

/** @import { RunDocument } from "./types.js" */

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
 * Whether stack samples tell more than zones: the program marked nothing itself, and garbage collections are zones.
 * @param {Pick<RunDocument, "samples"|"regions">} data
 */
export const isUnmarked = (data) =>
	data.samples.length > 0 && data.regions.every((region) => region.name.startsWith("gc (generation "));

const SINGLE_ROWS = ["run", "losses", "steps", "step_facts", "memory_facts"];
const LISTS = [
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
	"native",
	"sites",
	"series",
	"allocated",
	"growth",
	"ranks",
	"breakdown",
];

/**
 * Blocks are lists of rows; those with one row become that row. Missing blocks become empty ones.
 * @param {Record<string, any>} data as it came; changed in place
 * @returns {RunDocument}
 */
export function completed(data) {
	for (const name of SINGLE_ROWS)
		data[name] = data[name]?.[0] ?? {};
	for (const name of LISTS)
		data[name] ??= [];
	if (!data.steps.x)
		data.steps = { x: [], min: [], med: [], max: [], worst_start_ns: [] };
	data.zones ??= { detail: "", merged_ns: 0, quantum_ns: 1, end_ns: 0 };
	data.overhead_pct ??= null;
	return /** @type {RunDocument} */ (data);
}
