// The source of a page that shows no recording: the live viewer while it waits, and a comparison.
import { completed } from "./document.js";

/** @import { MapCells, NameStats, Source } from "./types.js" */

const NOTHING = completed({ run: [{ program: "no recording yet", command: "", duration_ns: 0 }] });
/** @type {NameStats} */
const NO_STATS = {
	count: 0,
	total: 0,
	p50: NaN,
	p99: NaN,
	min: NaN,
	max: NaN,
	hist: [0],
	histFrom: 0,
	histTo: 1,
	slowest: [],
};

/** @type {MapCells} */
const NO_MAP = {
	first: 0,
	end: 0,
	from: 0,
	to: 0,
	first_rank: 0,
	end_rank: 0,
	columns: 0,
	rows: 0,
	of: "duration",
	waits: false,
	hidden: 0,
	ranks: [],
	cells: new Int8Array(),
};

/** @type {Source} */
export const NO_SOURCE = {
	id: "",
	target: null,
	running: false,
	data: () => NOTHING,
	meta: () => ({ end: 1, lanes: [], names: [] }),
	get: () => null,
	want: () => {},
	zone: async () => null,
	step: async () => null,
	name: async () => NO_STATS,
	flame: async () => ({ label: [], source: [], parent: [], total: [], self: [], unit: "ns" }),
	rangePart: async () => ({ zones: 0, threads: 0, region_count: 0 }),
	sources: async () => [],
	sourceText: async () => null,
	map: async () => NO_MAP,
	joins: {
		partners: async () => [],
		collectives: async () => [],
		launches: async () => [],
		launched: async () => [],
		links: async () => [],
	},
	ranks: "",
	setRanks: () => {},
	onchange: null,
};
