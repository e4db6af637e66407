// The structures that pass between modules. Keys with underscores are those of the JSON documents that docs/api.md
// describes; times are ns since the recording began.

import type { Shell } from "./shell.js";
import type { Timeline } from "./timeline/timeline.js";

/** A stretch of time; t0 < t1. */
export interface Range {
	t0: number;
	t1: number;
}

// ---- tracks, zones and tiles

/** A track of the timeline: one thread, task or device queue, with a row for each depth. */
export interface Lane {
	id: number;
	pid: number;
	tid: number;
	rows: number;
	/** From "queue" on, its zones were not made by a thread. */
	kind: "thread" | "task" | "queue" | "collectives" | "critical" | "samples";
	name: string;
	note: string;
	rank?: number | null;
	host?: string;
	/** Place among the tracks; the id where there is none. */
	order?: number;
}

/** A name of zones: a region, with the place in the source code where there is one. */
export interface Name {
	name: string;
	source: string;
	file: string;
	line: number;
}

/** Names as the documents hold them. */
export interface NameColumns {
	name: string[];
	source: string[];
	file: string[];
	line: number[];
}

/** The header of one encoded column: a lane and row, and how many bytes its numbers have. */
export interface ColumnHeader {
	lane: number;
	row: number;
	count: number;
	gap_bytes: number;
	duration_bytes: number;
	name_bytes: number;
	merged: boolean;
	base_ns?: number;
}

/** One zone, or a merged piece of `n` zones with the name of the longest. */
export interface Zone {
	lane: number;
	row: number;
	start: number;
	duration: number;
	/** Index into Meta.names. */
	name: number;
	n: number;
	/** It has not ended. */
	open?: boolean;
}

/** A zone that has not ended, or that ended (`end_ns`) after the newest tile was read. */
export interface OpenZone {
	lane: number;
	row: number;
	name: number;
	start_ns: number;
	end_ns?: number;
}

/**
 * The pieces of one row of a track in a tile. x and w count 2^max(0, level − 4) ns from the beginning of the tile.
 * cov: bits 7–2 hold the covered share as 0…63; bit 0 is set if the piece begins before the tile, bit 1 if it ends
 * after it.
 */
export interface TileRow {
	lane: number;
	row: number;
	count: number;
	name: Uint32Array;
	x: Uint16Array;
	w: Uint16Array;
	n: Uint16Array;
	cov: Uint8Array;
}

export interface Tile {
	level: number;
	t0: number;
	tracks: TileRow[];
}

/** Level of detail and index of a tile. */
export type TileKey = [level: number, index: number];

export interface Meta {
	/** The end of the recording; it moves while the program runs. */
	readonly end: number;
	lanes: Lane[];
	names: Name[];
}

/** Statistics of all zones of one name. The histogram has equal steps of log(duration). */
export interface NameStats {
	count: number;
	total: number;
	p50: number;
	p99: number;
	min: number;
	max: number;
	hist: number[];
	histFrom: number;
	histTo: number;
	slowest: Zone[];
}

// ---- jobs

/** A rank of a job, with what its lateness cost; null where it is not known. */
export interface RankRow {
	rank: number;
	host: string | null;
	state: string | null;
	times_last: number | null;
	cost_ns: number | null;
	waited_ns?: number | null;
	collectives?: number | null;
}

/** Time of a rank's device. */
export interface Breakdown {
	rank: number | null;
	device: string;
	total_ns: number;
	computation_ns: number;
	communication_ns: number;
	memory_ns: number;
	idle_ns: number;
}

export type MapOf = "duration" | "wait";

/** Steps s0 to s1 and places of ranks r0 to r1. */
export interface MapView {
	s0: number;
	s1: number;
	r0: number;
	r1: number;
}

export interface MapQuestion {
	of: MapOf;
	columns: number;
	rows: number;
	from?: number;
	to?: number;
	first_rank?: number;
	end_rank?: number;
}

/** A part of the map of step and rank. A cell: per cent of the median duration above the median; −128: no step. */
export interface MapCells {
	/** Steps of the whole map: first to end − 1. */
	first: number;
	end: number;
	/** Steps and places of ranks of this part. */
	from: number;
	to: number;
	first_rank: number;
	end_rank: number;
	columns: number;
	rows: number;
	of: MapOf;
	/** Whether waits are known. */
	waits: boolean;
	hidden: number;
	/** All chosen ranks. */
	ranks: number[];
	cells: Int8Array;
	complete?: boolean;
	/** The step of the part that is farthest from the median. */
	worst?: {
		rank: number;
		step: number;
		start_ns: number;
		duration_ns: number;
		median_ns: number;
		wait_ns: number | null;
		median_wait_ns: number | null;
	} | null;
}

/** A rank in a collective. */
export interface Partner {
	rank: number;
	host: string | null;
	group_name: string | null;
	seq: number;
	op: string;
	bytes: number | null;
	arrival_ns: number;
	end_ns: number | null;
	wait_ns: number | null;
}

/** An operation of a device and its launch. */
export interface Launch {
	rank: number | null;
	host: string | null;
	pid: number;
	tid: number;
	device: string;
	queue: string;
	name: string;
	queued_ns: number;
	start_ns: number;
	end_ns: number;
}

/** A forward operator and the backward operator that belongs to it. */
export interface Link {
	rank: number | null;
	host: string | null;
	pid: number;
	from_tid: number;
	tid: number;
	from_name: string;
	to_name: string;
	from_ns: number;
	to_ns: number;
}

/** What joins zones of different tracks. */
export interface Joins {
	/** The ranks of the collective that a rank reached at t, the last first. */
	partners(rank: number, t: number): Promise<Partner[]>;
	/** Collectives of a time range, those that ranks waited for the longest first. */
	collectives(range: Range): Promise<Partner[]>;
	/** The launches of operations that ran in a time range; of one process, if it is given. */
	launches(range: Range, pid?: number): Promise<Launch[]>;
	/** The operations that a thread launched in a time range. */
	launched(range: Range, pid: number, tid: number): Promise<Launch[]>;
	/** Forward and backward operators of which one began in a time range; on one thread, if it is given. */
	links(range: Range, pid?: number, tid?: number): Promise<Link[]>;
}

// ---- source code

/** A place in source code. A finding has its share of the time, too. */
export interface Place {
	function: string;
	file: string;
	line: number;
	share?: number;
}

/** A frame of a sampled stack. */
export interface Frame {
	name: string;
	kind: "python" | "native";
	/** Module, package or library; "" where it is unknown. */
	module: string;
	/** The label without folders. */
	short: string;
	place: Place | null;
}

/** What is known of a line, or of a file: 0 where nothing is. */
export interface LineValues {
	/** Samples of it and of the libraries that it calls, and all samples with a frame here. */
	self_samples: number;
	samples: number;
	self_ns: number;
	total_ns: number;
	/** Of lines that were recorded one by one. */
	line_count: number;
	line_ns: number;
	line_self_ns: number;
	/** Of zones that begin here: functions, regions. */
	calls: number;
	calls_ns: number;
	calls_self_ns: number;
	alloc_bytes: number;
	alloc_count: number;
	peak_bytes: number;
}

/** A source file that the recording names. */
export interface SourceFile extends LineValues {
	file: string;
	/** The program's own code, not a library. */
	own: boolean;
}

/** A source file with its lines and its text. */
export interface SourceText extends SourceFile {
	/** Line, then LineValues in their order. */
	lines: number[][];
	/** null: it is not here, and why says the reason. */
	text: string | null;
	/** It was changed after the recording began. */
	newer: boolean;
	why: string;
}

// ---- flame graphs

/** native: samples of threads on a CPU, with frames of Python and of native code. */
export type FlameOf = "zones" | "samples" | "native";

/** A tree in columns. Parents come before their children; the root is 0. */
export interface Flame {
	label: string[];
	source: string[];
	parent: number[];
	total: number[];
	self: number[];
	unit: "ns" | "samples";
	/** Frames are those of stack samples: "function (file:line)". */
	sampled?: boolean;
	/** Where the code of a frame is. */
	place?(node: number): Place | null;
	/** Fill and text colour, where the source of a frame does not decide. */
	paint?(node: number): string[];
	/** The text at the right of a frame, in place of its share. */
	note?(node: number): string;
	/** The text on a frame, in place of its label. */
	caption?(node: number): string;
	/** The text of the tooltip. */
	describe?(node: number): string;
}

/** Two trees as one, in columns, without a root: parent −1 is the root. As `kymo compare -f json` prints it. */
export interface FlamePair {
	name: string[];
	source: string[];
	parent: number[];
	a_total: number[];
	b_total: number[];
	a_self: number[];
	b_self: number[];
}

// ---- the document of a run

export interface Run {
	program: string;
	command?: string;
	state?: string;
	exit_code?: number | null;
	signal?: number | string | null;
	duration_ns: number;
	rank?: number | null;
	ranks?: number | null;
	clock?: string;
	clock_error_ns?: number;
}

export interface Verdict {
	name?: string;
	text: string;
	evidence?: string;
	try?: string;
	sql?: string;
	/** The place in the program's own code. */
	where?: Place | null;
	/** Tab and query that show the evidence: "flame" or "flame?of=samples". */
	view?: string;
	find?: string;
}

export interface Figure {
	label: string;
	value: string;
	note: string;
}

export interface RowCounts {
	emitted: number;
	kept: number;
	overwritten: number;
	dropped: number;
}

export interface Region {
	name: string;
	source: string;
	count: number;
	self_ns: number;
	total_ns: number;
	min_ns: number | null;
	max_ns: number | null;
	p50_ns: number | null;
	p90_ns: number | null;
	p99_ns: number | null;
}

/** Steps in groups of equal size. */
export interface Steps {
	x: number[];
	min: number[];
	med: number[];
	max: number[];
	worst_start_ns: number[];
}

export interface StepFacts {
	count: number;
	median_ns: number;
	p99_ns: number;
	total_ns: number;
	slow: number;
}

export interface SlowStep {
	step: number;
	start_ns: number;
	duration_ns: number;
	inside: string | null;
	inside_ns: number | null;
}

export interface Module {
	module: string;
	depth: number;
	calls: number;
	forward_ns: number;
	backward_ns: number;
	step_ns: number;
	self_ns: number;
	total_ns: number;
	device_ns: number | null;
	max_allocated: number | null;
}

export interface Queue {
	device: string;
	queue: string;
	busy_ns: number;
	idle_ns: number;
	utilisation: number;
	overlap: number;
	ops: number;
	gaps: number;
	longest_gap_ns: number;
	host_late_ns: number;
	sync_ns: number;
	dependency_ns: number;
	launch_ns: number;
}

/** A measurement over time; each point has the least and the most of its stretch of time. */
export interface Series {
	name: string;
	unit: string;
	group: string;
	/** Whether the timeline shows it, too. */
	timeline: boolean;
	ts: number[];
	low: number[];
	high: number[];
	/** Where the chart marks the peak. */
	peak_ns?: number;
}

/** Stacks that are equal, of one thread; the innermost frame first. */
export interface Samples {
	thread: string;
	stack: string[];
	count: number;
	/** Time that the samples stand for; null in older recordings. */
	time_ns?: number | null;
}

export interface Site {
	site: string;
	at_peak_bytes: number;
	live_bytes: number;
	allocated_bytes: number;
	count: number;
}

/** `kymo-data` of a report, or the answer of /api/run, after `completed()` of document.js. */
export interface RunDocument {
	run: Run;
	/** Name of the recording's directory or file. */
	recording?: string;
	losses: Partial<RowCounts> & { zones_overwritten?: number };
	steps: Steps;
	step_facts: Partial<StepFacts>;
	memory_facts: Partial<{
		peak_bytes: number;
		peak_at_ns: number;
		early_bytes: number;
		early_at_ns: number;
		last_bytes: number;
		samples: number;
	}>;
	verdicts: Verdict[];
	figures: Figure[];
	streams: ({ table_name: string } & RowCounts)[];
	overhead: { source: string; events: number; cost_ns_per_event: number; total_ns: number; pct: number }[];
	overhead_pct: number | null;
	regions: Region[];
	parts: { name: string; ns: number }[];
	slowest: SlowStep[];
	open: { thread: string; name: string; age_ns: number | null }[];
	counters: Record<string, any>[];
	modules: Module[];
	queues: Queue[];
	models: { model: string; device: string; [column: string]: any }[];
	launches: Record<string, any>[];
	samples: Samples[];
	/** CPU time by stack, with native frames. */
	native: Samples[];
	sites: Site[];
	series: Series[];
	allocated: { peak_bytes: number; error_bytes: number; estimated_bytes: number; at_ns: number; source: string }[];
	ranks: RankRow[];
	breakdown: Breakdown[];
	growth: { step_bytes: number; since_step: number; site: string | null }[];
	zones: { detail: string; merged_ns: number; quantum_ns: number; tick_ns?: number; end_ns: number };
	compare?: Comparison;
	// Only in a report, which holds its zones and its source:
	/** The map of step and rank, of durations and of waits. */
	maps?: (Omit<MapCells, "cells"> & { cells: string; starts: number[]; ends: number[] })[];
	joined?: { collectives: Partner[]; launches: Launch[]; links: Link[] };
	sources?: SourceText[];
	lanes?: Lane[];
	names?: NameColumns;
	tracks?: ColumnHeader[];
	/** Name or −1 − lane, parent, ns. */
	flame?: [number, number, number][];
}

/** The part of a RunDocument that is known for a range. A report counts zones only; a server has all of it. */
export type RangePart = Omit<Partial<RunDocument>, "zones"> & { zones: number; threads: number; region_count: number };

/** A RunDocument with the values of a range in place of those of the whole run. */
export type RangeDocument = RunDocument & {
	/** What the range has of its own; the rest is of the whole run. */
	ofRange: RangePart;
	summary: { text: string; evidence: string; share: string };
};

// ---- comparisons: what `kymo compare -f json` prints

export interface ComparisonRow {
	kind: "step" | "region" | "module";
	name: string;
	source: string;
	a: number | null;
	b: number | null;
	ratio: number | null;
	lo: number | null;
	hi: number | null;
	p_corrected: number | null;
	could_see: number | null;
	significant: boolean;
	/** The values of A and B hardly overlap. */
	apart: boolean;
}

export interface ComparedValue {
	a: number | null;
	b: number | null;
	ratio: number | null;
}

export interface ComparedRun {
	side: "a" | "b";
	path: string;
	program: string;
	command: string;
	steps: number;
	warmup: number;
	zones: number | null;
	zones_lost: number | null;
}

export interface Comparison {
	/** Why the runs are not comparable; then there is no sentence. */
	why: string | null;
	sentence: string | null;
	because: string;
	notes: string[];
	could_see: number | null;
	time: "self" | "total";
	unit: "step" | "run";
	runs: ComparedRun[];
	rows: ComparisonRow[];
	memory: ComparedValue;
	throughput: ComparedValue;
	flame: FlamePair;
}

// ---- sources, tabs and views

export type Direction = "left" | "right" | "up" | "down" | "previous" | "next";

/** What answers the questions of the views: the blocks of a report (source-embed.js) or a server (source-live.js). */
export interface Source {
	data(): RunDocument;
	meta(): Meta;
	/** A tile; null if it is not here yet. */
	get(level: number, index: number): Tile | null;
	/** Asks for tiles, the most wanted first; onchange is called when they come. */
	want(keys: TileKey[]): void;
	/** The zone at t, or the nearest one within slack. */
	zone(lane: number, row: number, t: number, slack: number): Promise<Zone | null>;
	step(zone: Zone, direction: Direction): Promise<Zone | null>;
	name(name: number, range?: Range | null): Promise<NameStats>;
	flame(of: FlameOf, lane: number | null, range: Range | null): Promise<Flame>;
	rangePart(range: Range): Promise<RangePart>;
	/** The source files that the recording names, own code first, then by time. */
	sources(): Promise<SourceFile[]>;
	/** One of them, by its name. */
	sourceText(file: string): Promise<SourceText | null>;
	/** A part of the map of step and rank. */
	map(question: MapQuestion): Promise<MapCells>;
	joins: Joins;
	/** The chosen ranks, "0,3,8-15"; "": all. */
	ranks: string;
	setRanks(ranks: string): void;
	onchange: (() => void) | null;

	/** Columns of zones in the page; only in a report. */
	columns?: unknown[];

	// Only where a server answers:
	id?: string;
	target?: Target | null;
	/** Whether the program runs. */
	running?: boolean;
	/** Whether /api/run has answered. */
	read?: boolean;
	/** Not read yet, but a part of it is here. */
	glimpsed?: boolean;
	failed?: ApiFailure | null;
	/** Share of the zones that the server has indexed. */
	indexed?: number;
	/** Tracks that are left out of the timeline. */
	lanesHidden?: number;
	/** Zones that ended after the newest tile was read. */
	closing?: OpenZone[];
	refresh?(): Promise<void>;
	now?(): number;
	/** Milliseconds from the end of a zone to its picture. */
	delay?(): number | null;
	/** The zone at t, as far as it is here already. */
	glance?(lane: number, row: number, t: number, slack: number): Zone | null;
	/** Zones that have not ended. */
	open?(): OpenZone[];
	overlay?(t0: number, t1: number): Overlay;
	onpulse?: (() => void) | null;
}

/** Steps and marks in view. */
export interface Overlay {
	steps: { t: number; step: string }[];
	marks: { t: number; name: string; text: string }[];
}

export interface ApiFailure {
	message: string;
	hint?: string | null;
	status?: number;
}

/** A row of /api/targets. */
export interface Target extends Run {
	id: string;
	name: string | null;
	pid: number;
	path: string | null;
	started_unix_ns: number;
	bytes: number;
	steps: number | null;
	unreadable: string | null;
}

/** The answer of /api/targets. */
export interface TargetList {
	targets: Target[];
	address: string;
	directory: string;
	version: string;
	named: string | null;
}

/** The live viewer, as its views see it. */
export interface App {
	targets: Target[];
	about: TargetList | null;
	runs: { show(): void };
	open(id: string): void;
}

/** What a tab shows while it is open. */
export interface View {
	node: Element;
	close?(): void;
	/** True: the key was used. */
	key?(e: KeyboardEvent): boolean;
	/** The document is newer. Without it the view is opened again. */
	update?(): void;
	timeline?: Timeline;
}

export interface Tab {
	id: string;
	title: string;
	/** Reached by a link only. */
	hidden?: boolean;
	/** Shown only where this is true. */
	only?(source: Source): boolean;
	/** Whether the recording has data for it. */
	has(source: Source): boolean;
	open(shell: Shell): View;
}
