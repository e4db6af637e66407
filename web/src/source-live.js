// Zones that a server holds. Tiles are asked for when the timeline shows them, kept, and asked for again when rows have
// come. The old picture stays until the new one is there.
import { ApiError, get, getJson, postJson } from "./api.js";
import { completed, levelFor, tileSpan } from "./document.js";
import { baseName, frameOf } from "./code/frames.js";
import { FlameTree } from "./flame-tree.js";
import { isLive } from "./runs.js";
import { makeTile, readColumns, trackKey } from "./tiles.js";

/** @import { Column } from "./tiles.js" */
/** @import { Direction, FlameOf, Lane, Meta, Name, NameColumns, NameStats, OpenZone } from "./types.js" */
/** @import { Joins, Launch, Link, MapCells, MapQuestion, Partner } from "./types.js" */
/** @import { Overlay, Range, RangePart, Run, Series, Source, SourceFile, SourceText } from "./types.js" */
/** @import { Target, Tile, TileKey, Zone } from "./types.js" */

/**
 * @typedef {Object} KeptTile
 * @property {Tile|null} tile
 * @property {Map<number, Column>} columns
 * @property {boolean} stale rows have come since it was asked for
 * @property {number} asked performance.now() of the last request
 * @property {number} cost ms of the last request
 * @property {AbortController|null} abort while a request runs
 *
 * @typedef {Object} PackHeader
 * @property {number} gen
 * @property {Lane[]} lanes
 * @property {NameColumns & {from: number}} names
 * @property {OpenZone[]} open
 * @property {import("./types.js").ColumnHeader[]} tracks
 * @property {number} [indexed]
 * @property {number} [lanes_hidden]
 * @property {number} now_ns
 * @property {number} end_ns
 *
 * @typedef {Partial<Run> & {gen?: number, overhead_pct?: number} & Partial<import("./types.js").RowCounts>} StateEvent
 *
 * @typedef {Object} RowsEvent
 * @property {number} gen
 * @property {number} now_ns
 * @property {number} end_ns
 * @property {number} from_ns
 * @property {OpenZone[]} open
 * @property {[lane: number, row: number, start: number, duration: number, name: number][]} zones
 * @property {number} lanes how many
 * @property {number} names how many
 */

const TILES_KEPT = 256;
const REQUESTS_AT_ONCE = 4;
const AGAIN_MS = 120;
const LEVELS = 48;
const SERIES_MOST = 12;
/** @type {("emitted"|"kept"|"overwritten"|"dropped")[]} */
const LOSSES = ["emitted", "kept", "overwritten", "dropped"];
const key = (/** @type {number} */ level, /** @type {number} */ index) => `${level}/${index}`;

/**
 * Decodes an answer of /api/zones.
 * @param {ArrayBuffer} buffer
 * @returns {{header: PackHeader, columns: Map<number, Column>}}
 */
export function unpack(buffer) {
	const view = new DataView(buffer);
	const size = view.getUint32(4, true);
	if (view.getUint32(0, true) !== 0x31505a4b)
		throw new ApiError(
			"Cannot decode the zones from kymo serve",
			"The page and kymo serve may have different versions; reload the page.",
			0,
		);
	const header = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 8, size)));
	const bytes = new Uint8Array(buffer, 8 + size);
	return { header, columns: readColumns(header.tracks, bytes, 1) };
}

/** @param {string} text */
const quoted = (text) => `'${text.replaceAll("'", "''")}'`;

/** @param {Range|null} range */
const bounds = (range) => ({ from: range ? Math.round(range.t0) : null, to: range ? Math.round(range.t1) : null });

/** @param {Target} target */
const runOf = ({ program, command, state, duration_ns, rank, ranks, exit_code, signal }) => ({
	program,
	command,
	state,
	duration_ns,
	rank: rank ?? -1,
	ranks: ranks ?? 0,
	exit_code,
	signal,
});

/** @implements {Source} */
export class LiveSource {
	/** @param {Target} target */
	constructor(target) {
		this.target = target;
		this.id = target.id;
		this.blocks = completed({ run: [runOf(target)], recording: baseName(target.path ?? "") });
		/** Whether /api/run has answered. */
		this.read = false;
		/** A part of the document is here. */
		this.glimpsed = false;
		/** The document is older than the end of the run. */
		this.behind = false;
		/** @type {ApiError|null} */ this.failed = null;
		/** @type {(() => void)|null} */ this.onchange = null;
		/** @type {(() => void)|null} */ this.ondata = null;
		/** @type {(() => void)|null} */ this.onpulse = null;
		/** @type {Map<string, KeptTile>} */ this.tiles = new Map();
		/** @type {TileKey[]} */ this.wanted = [];
		/** Requests for tiles that run. */
		this.flying = 0;
		this.timer = 0;
		this.gen = 0;
		/** State and losses that are newer than the document. @type {StateEvent} */ this.newest = {};
		this.pulsing = false;
		this.pulseAt = 0;
		this.indexed = 1;
		this.lanesHidden = 0;
		this.ranks = "";
		this.joins = new LiveJoins(this);
		this.running = isLive(target);
		this.nowNs = target.duration_ns ?? 0;
		this.nowAt = performance.now();
		/** @type {OpenZone[]} */ this.opened = [];
		/** Zones that ended after the newest tile was read. @type {OpenZone[]} */ this.closing = [];
		this.newestEnd = 0;
		/** The end of the zone that `delays` measured last. */
		this.measured = 0;
		/** Milliseconds from the end of a zone to its picture, the last few. @type {number[]} */ this.delays = [];
		/** @type {Overlay & {key: string, asked: number, cost: number}} */
		this.over = { steps: [], marks: [], key: "", asked: 0, cost: 0 };
		this.overTimer = 0;
		const source = this;
		/** @type {Meta} */
		this.about = {
			lanes: [],
			names: [],
			get end() {
				return source.end();
			},
		};
	}

	/** The end of the recording, which moves while the program runs. */
	end() {
		return Math.max(1, this.now());
	}

	now() {
		return this.running ? this.nowNs + Math.min(2000, performance.now() - this.nowAt) * 1e6 : this.nowNs;
	}

	data() {
		return this.blocks;
	}

	meta() {
		return this.about;
	}

	open() {
		return this.opened;
	}

	/** Reads lanes and names. */
	async load() {
		await this.pack({ from: 0, to: 1, level: 0 });
	}

	/** Other ranks have other tracks. @param {string} ranks */
	setRanks(ranks) {
		if (ranks === this.ranks)
			return;
		this.ranks = ranks;
		this.forgetTiles();
		this.load().then(
			() => this.onchange?.(),
			() => {},
		);
	}

	forgetTiles() {
		for (const kept of this.tiles.values())
			kept.abort?.abort();
		this.tiles.clear();
	}

	/**
	 * Asks for the tiles of the whole run first, so that the timeline finds them when it is opened.
	 * @param {number} pixels
	 */
	prefetch(pixels) {
		const level = levelFor(this.end() / pixels);
		const last = Math.floor(this.end() / tileSpan(level));
		this.want(Array.from({ length: last + 1 }, (_, i) => /** @type {TileKey} */ ([level, i])));
	}

	/** Shows what takes little time of a recording that has ended, until everything is read. */
	async glimpse() {
		try {
			const data = await getJson("run", { target: this.id, partial: 1 });
			if (this.read)
				return;
			this.blocks = completed(data);
			this.glimpsed = true;
			this.ondata?.();
		} catch {
			// The whole document will say why.
		}
	}

	/** Reads the document of the run. */
	async refresh() {
		if (!this.read && !this.running && !this.glimpsed)
			await this.glimpse();
		try {
			const data = await getJson("run", { target: this.id });
			const had = this.blocks.series;
			// It was made before the program ended: a newer one will follow.
			this.behind = data.run?.[0]?.state === "live" && !this.running;
			this.blocks = completed(data);
			this.read = true;
			this.applyNewest();
			this.extendSeries(had);
			this.failed = null;
		} catch (why) {
			this.failed = /** @type {ApiError} */ (why);
		}
		this.ondata?.();
	}

	// ---- events of /api/tail

	/** @param {RowsEvent} rows */
	rows(rows) {
		if (this.startOver(rows.gen))
			return;
		this.clock(rows.now_ns, rows.end_ns);
		const keyOf = (/** @type {OpenZone} */ z) => `${z.lane}/${z.row}/${z.start_ns}`;
		const open = new Set(rows.open.map(keyOf));
		const ended = this.opened.filter((z) => !open.has(keyOf(z)));
		this.closing.push(...ended.map((z) => ({ ...z, end_ns: rows.now_ns })));
		this.opened = rows.open;
		for (const [, , start, duration] of rows.zones)
			this.newestEnd = Math.max(this.newestEnd, start + duration);
		for (const [name, kept] of this.tiles) {
			const [level, index] = name.split("/").map(Number);
			if ((index + 1) * tileSpan(level) > rows.from_ns)
				kept.stale = true;
		}
		if (rows.lanes > this.about.lanes.length || rows.names > this.about.names.length)
			this.load().catch(() => {});
		this.onchange?.();
	}

	/** @param {StateEvent} state */
	state(state) {
		this.startOver(state.gen ?? 0);
		this.running = isLive(state);
		this.newest = { ...this.newest, ...state };
		this.applyNewest();
		Object.assign(this.target, {
			state: state.state,
			exit_code: state.exit_code,
			signal: state.signal,
			duration_ns: state.duration_ns,
		});
		if (!this.running) {
			this.nowNs = Math.max(this.nowNs, state.duration_ns ?? 0);
			for (const kept of this.tiles.values())
				kept.stale = true;
		}
		this.onchange?.();
	}

	/** State and losses of the tail and of pulse() are newer than the document. */
	applyNewest() {
		const { run, losses } = this.blocks;
		const { newest } = this;
		if (newest.state)
			Object.assign(run, {
				state: this.running ? "live" : newest.state,
				exit_code: newest.exit_code,
				signal: newest.signal,
				...(this.running ? {} : { duration_ns: newest.duration_ns }),
			});
		for (const key of LOSSES) {
			if ((newest[key] ?? -1) >= (losses[key] ?? 0))
				losses[key] = newest[key];
		}
		this.blocks.overhead_pct = newest.overhead_pct ?? this.blocks.overhead_pct;
	}

	/** Reads losses and the newest values of the timeline's series, in one query, some seconds apart. */
	async pulse() {
		if (this.pulsing || performance.now() < this.pulseAt)
			return;
		this.pulsing = true;
		const began = performance.now();
		// The query below reads these; the other series come with the next document.
		const read = (/** @type {Series} */ s) => s.group === "counter" || s.name === "Resident memory";
		const series = this.blocks.series.filter((s) => s.timeline && read(s)).slice(0, SERIES_MOST);
		try {
			const sql = pulseSql(series);
			const { rows } = await postJson("query", { target: this.id, sql, limit: 10000, timeout_s: 5 });
			for (const [k, ts, value] of rows) {
				if (k < 0)
					this.newest[LOSSES[-1 - k]] = value;
				else
					addPoint(series[k], ts, value, value);
			}
			this.applyNewest();
			this.onpulse?.();
		} finally {
			this.pulsing = false;
			this.pulseAt = performance.now() + Math.max(900, 4 * (performance.now() - began));
		}
	}

	/**
	 * Adds the points that pulse() read and that a new document does not have yet.
	 * @param {Series[]} had
	 */
	extendSeries(had) {
		for (const series of this.blocks.series.filter((s) => s.timeline)) {
			const before = had.find((one) => one.name === series.name);
			const last = series.ts[series.ts.length - 1] ?? 0;
			before?.ts.forEach((ts, i) => {
				if (ts > last)
					addPoint(series, ts, before.low[i], before.high[i]);
			});
		}
	}

	/**
	 * A new generation has other times or ids: forgets all tiles and names.
	 * @param {number} gen
	 * @returns {boolean} whether it is a new one
	 */
	startOver(gen) {
		if (!gen || gen === this.gen)
			return false;
		const first = this.gen === 0;
		this.gen = gen;
		if (first)
			return false;
		this.about.names = [];
		this.closing = [];
		this.forgetTiles();
		this.load().then(
			() => this.onchange?.(),
			() => {},
		);
		return true;
	}

	/** @param {number} now @param {number} end */
	clock(now, end) {
		const at = Math.max(now ?? 0, end ?? 0);
		if (at < this.nowNs && this.running)
			return; // an older answer that came late
		this.nowNs = at;
		this.nowAt = performance.now();
	}

	// ---- tiles

	/** @param {Record<string, any>} params @param {AbortSignal} [signal] */
	async pack(params, signal) {
		const { ranks } = this;
		const asked = { target: this.id, names_from: this.about.names.length, ranks, partial: 1, ...params };
		const answer = await get("zones", asked, signal);
		const made = unpack(await answer.arrayBuffer());
		const { header } = made;
		if (ranks !== this.ranks)
			throw new DOMException("other ranks were chosen", "AbortError");
		if (this.gen && header.gen !== this.gen && header.names.from > 0) {
			this.startOver(header.gen);
			throw new DOMException("the recording has changed", "AbortError");
		}
		this.gen = header.gen;
		this.keepNames(header.names);
		this.about.lanes = [...header.lanes].sort((a, b) => (a.order ?? a.id) - (b.order ?? b.id));
		this.indexed = header.indexed ?? 1;
		this.lanesHidden = header.lanes_hidden ?? 0;
		this.opened = header.open;
		this.clock(header.now_ns, header.end_ns);
		return made;
	}

	/** @param {PackHeader["names"]} names */
	keepNames(names) {
		for (let i = 0; i < names.name.length; i++)
			this.about.names[names.from + i] ??= {
				name: names.name[i],
				source: names.source[i],
				file: names.file[i],
				line: names.line[i],
			};
	}

	/** @param {number} level @param {number} index */
	get(level, index) {
		return this.tiles.get(key(level, index))?.tile ?? null;
	}

	/** @param {TileKey[]} keys the most wanted first */
	want(keys) {
		this.wanted = keys;
		this.pump();
	}

	pump() {
		const now = performance.now();
		let later = Infinity;
		for (const [level, index] of this.wanted) {
			const kept = this.tiles.get(key(level, index));
			if (kept && (kept.abort || (kept.tile && !kept.stale)))
				continue;
			const wait = kept?.tile ? kept.asked + Math.max(AGAIN_MS, 3 * kept.cost) - now : 0;
			if (wait > 0) {
				later = Math.min(later, wait);
				continue;
			}
			if (this.flying >= REQUESTS_AT_ONCE && !this.makeRoom())
				return;
			this.ask(level, index);
		}
		if (later < Infinity && !this.timer)
			this.timer = window.setTimeout(() => {
				this.timer = 0;
				this.pump();
			}, later);
	}

	/** Cancels a request for a tile that is no longer wanted. */
	makeRoom() {
		const wanted = new Set(this.wanted.map(([level, index]) => key(level, index)));
		for (const [name, kept] of this.tiles)
			if (kept.abort && !wanted.has(name)) {
				kept.abort.abort();
				return true;
			}
		return false;
	}

	/** @param {number} level @param {number} index */
	async ask(level, index) {
		const name = key(level, index);
		const span = tileSpan(level);
		const began = performance.now();
		const abort = new AbortController();
		/** @type {KeptTile} */
		const kept = this.tiles.get(name) ?? {
			tile: null,
			columns: new Map(),
			stale: false,
			asked: 0,
			cost: 0,
			abort: null,
		};
		Object.assign(kept, { abort, stale: false, asked: began });
		this.tiles.delete(name);
		this.tiles.set(name, kept); // at the end: the oldest is forgotten first
		this.flying++;
		const newest = this.newestEnd;
		try {
			const { header, columns } = await this.pack(
				{ from: index * span, to: (index + 1) * span, level },
				abort.signal,
			);
			const t0 = index * span;
			kept.columns = columns;
			kept.tile = makeTile(columns.values(), level, t0);
			kept.stale ||= (header.indexed ?? 1) < 1;
			kept.cost = performance.now() - began;
			this.closing = this.closing.filter((z) => (z.end_ns ?? 0) > header.now_ns);
			if (newest && this.running && newest >= t0 && newest <= t0 + span)
				this.measure(newest);
		} catch (why) {
			if (!kept.tile)
				this.tiles.delete(name);
			kept.stale = true;
			kept.cost = /** @type {Error} */ (why).name === "AbortError" ? 0 : 500;
		}
		kept.abort = null;
		this.flying--;
		this.forget();
		this.onchange?.();
	}

	/**
	 * Measures the time from the end of the newest zone to its picture.
	 * @param {number} end
	 */
	measure(end) {
		const started = this.target.started_unix_ns;
		if (!started || end === this.measured)
			return;
		this.measured = end;
		this.delays.push(Math.max(0, Date.now() - (started + end) / 1e6));
		if (this.delays.length > 9)
			this.delays.shift();
	}

	/** The median of the last few delays in ms, or null. */
	delay() {
		const sorted = [...this.delays].sort((a, b) => a - b);
		return sorted.length ? sorted[sorted.length >> 1] : null;
	}

	forget() {
		for (const [name, kept] of this.tiles) {
			if (this.tiles.size <= TILES_KEPT)
				return;
			if (!kept.abort)
				this.tiles.delete(name);
		}
	}

	// ---- single zones

	/**
	 * The column of the finest tile that is here and covers t.
	 * @param {number} lane
	 * @param {number} row
	 * @param {number} t
	 */
	finest(lane, row, t) {
		for (let level = 0; level < LEVELS; level++) {
			const kept = this.tiles.get(key(level, Math.floor(Math.max(0, t) / tileSpan(level))));
			if (kept?.tile)
				return kept.columns.get(trackKey(lane, row)) ?? null;
		}
		return null;
	}

	/**
	 * The zone at t as far as it is here already, open ones included.
	 * @param {number} lane
	 * @param {number} row
	 * @param {number} t
	 * @param {number} slack
	 * @returns {Zone|null}
	 */
	glance(lane, row, t, slack) {
		const open = this.opened.find((z) => z.lane === lane && z.row === row && z.start_ns <= t);
		if (!open)
			return this.finest(lane, row, t)?.near(t, slack) ?? null;
		const { start_ns: start, name } = open;
		return { lane, row, start, duration: this.now() - start, name, n: 1, open: true };
	}

	/**
	 * The zone at t; of a merged piece, the longest one.
	 * @param {number} lane
	 * @param {number} row
	 * @param {number} t
	 * @param {number} slack
	 */
	async zone(lane, row, t, slack) {
		const longest = (/** @type {Column} */ column) => column.longestIn(0, column.count);
		let found = this.glance(lane, row, t, slack);
		if (!found && !this.finest(lane, row, t)) {
			const from = Math.max(0, Math.floor(t - slack));
			const { columns } = await this.pack({ from, to: Math.ceil(t + slack + 1), lanes: lane, width: 64 });
			found = this.pick(columns.get(trackKey(lane, row)), longest);
		}
		return this.single(found, longest);
	}

	/** @param {Column|undefined} column @param {(column: Column) => number} which */
	pick(column, which) {
		return column?.count ? column.zone(which(column)) : null;
	}

	/**
	 * Asks for finer pieces until one zone is left.
	 * @param {Zone|null} piece
	 * @param {(column: Column) => number} which
	 */
	async single(piece, which) {
		let found = piece;
		for (let tries = 0; found && found.n > 1 && tries < 6; tries++) {
			const { lane, row, start, duration } = found;
			const { columns } = await this.pack({
				from: Math.floor(start),
				to: Math.ceil(start + duration),
				lanes: lane,
				width: 4096,
			});
			const inside = this.pick(columns.get(trackKey(lane, row)), which);
			if (!inside || inside.n >= found.n)
				break;
			found = inside;
		}
		return found;
	}

	/**
	 * The next zone of a row from t on (1), or the previous one (−1).
	 * @param {number} lane
	 * @param {number} row
	 * @param {number} t
	 * @param {1|-1} way
	 * @param {number} [limit] where the search ends
	 */
	async seek(lane, row, t, way, limit = way > 0 ? this.end() : 0) {
		const inside = (/** @type {Column} */ c) =>
			way > 0 ? Math.min(c.count - 1, c.firstEndingAfter(t)) : c.count - 1;
		for (let reach = 1e5; ; reach *= 16) {
			const from = Math.floor(way > 0 ? t : Math.max(limit, t - reach));
			const to = Math.ceil(way > 0 ? Math.min(limit, t + reach) : t);
			const { columns } = await this.pack({ from, to, lanes: lane, width: 4096 });
			const piece = this.pick(columns.get(trackKey(lane, row)), (c) =>
				way > 0 ? nextFrom(c, t) : lastBefore(c, t),
			);
			if (piece)
				return this.single(piece, inside);
			if (way > 0 ? to >= limit : from <= limit)
				return null;
		}
	}

	/** @param {Zone} zone @param {Direction} direction @returns {Promise<Zone|null>} */
	async step(zone, direction) {
		const { lane, row, start, duration } = zone;
		switch (direction) {
			case "previous":
			case "next": {
				const found = await getJson("name", { target: this.id, id: zone.name, at: Math.round(start) });
				return found[direction] ? zoneOf(found[direction], zone.name) : null;
			}
			case "up":
				return row ? this.zone(lane, row - 1, start + duration / 2, 0) : null;
			case "down":
				return this.seek(lane, row + 1, start, 1, start + duration);
			case "right":
				return this.seek(lane, row, start + duration, 1);
			default:
				return this.seek(lane, row, start, -1);
		}
	}

	/** @param {number} name @param {Range|null} [range] @returns {Promise<NameStats>} */
	async name(name, range = null) {
		const found = await getJson("name", { target: this.id, id: name, ...bounds(range) });
		const { edges_ns: edges, counts } = found.histogram;
		return {
			count: found.count,
			total: found.total_ns,
			p50: found.p50_ns,
			p99: found.p99_ns,
			min: found.min_ns,
			max: found.max_ns,
			...bars(edges, counts),
			slowest: found.slowest.map((/** @type {ApiZone} */ zone) => zoneOf(zone, name)),
		};
	}

	/** @param {FlameOf} of @param {number|null} lane @param {Range|null} range */
	async flame(of, lane, range) {
		const sampled = of !== "zones";
		const thread = sampled && lane !== null ? this.about.lanes.find((l) => l.id === lane)?.tid : lane;
		const found = await getJson("flame", { target: this.id, of, thread, ranks: this.ranks, ...bounds(range) });
		const tree = new FlameTree(sampled ? "all samples" : "all threads", found.unit);
		tree.sampled = sampled;
		/** @type {{names: NameColumns, lanes: Lane[]}} */
		const { names, lanes } = found;
		const laneName = (/** @type {number} */ id) => {
			const lane = lanes.find((l) => l.id === id);
			return lane?.name || lane?.note || `track ${id}`;
		};
		for (const [name, parent, total] of found.nodes) {
			const [label, source] = name < 0 ? [laneName(-1 - name), ""] : [names.name[name], names.source[name]];
			// Each has its own key, so that node i is child i + 1 whatever the names are.
			const kind = sampled && parent >= 0 ? frameOf(label).kind : source;
			const node = tree.child(parent + 1, label, sampled && parent < 0 ? "" : kind, tree.label.length);
			tree.total[node] = total;
			tree.names[node] = { file: names.file[name], line: names.line[name] };
		}
		return tree.finish();
	}

	/** @returns {Promise<SourceFile[]>} */
	async sources() {
		return (await getJson("source", { target: this.id, ranks: this.ranks })).files;
	}

	/** @param {string} file @returns {Promise<SourceText>} */
	async sourceText(file) {
		return getJson("source", { target: this.id, ranks: this.ranks, file });
	}

	/** @param {Range} range @returns {Promise<RangePart>} */
	async rangePart(range) {
		const from = Math.max(0, Math.floor(range.t0));
		const found = await getJson("range", { target: this.id, from, to: Math.ceil(range.t1), ranks: this.ranks });
		return {
			...found,
			steps: found.steps[0]?.x ? found.steps[0] : undefined,
			step_facts: found.step_facts[0] ?? {},
			...(found.memory_facts ? { memory_facts: found.memory_facts[0] ?? {} } : {}),
		};
	}

	/** @param {MapQuestion} question @returns {Promise<MapCells>} */
	async map(question) {
		const answer = await get("map", { target: this.id, ranks: this.ranks, partial: 1, ...question });
		const buffer = await answer.arrayBuffer();
		const size = new DataView(buffer).getUint32(4, true);
		const header = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 8, size)));
		return { ...header, cells: new Int8Array(buffer, 8 + size) };
	}

	/**
	 * Steps and marks in view; asks for them when the view rests.
	 * @param {number} t0
	 * @param {number} t1
	 */
	overlay(t0, t1) {
		const from = Math.max(0, Math.floor(t0));
		const to = Math.ceil(t1);
		const span = to - from;
		const step = this.blocks.step_facts.median_ns;
		const wanted = `${Math.floor(from / (span / 8))}/${Math.round(Math.log2(span) * 4)}`;
		if (wanted !== this.over.key && !this.overTimer) {
			const wait = Math.max(200, this.over.asked + 6 * this.over.cost - performance.now());
			this.overTimer = window.setTimeout(() => {
				this.overTimer = 0;
				this.over.key = wanted;
				this.over.asked = performance.now();
				this.askOverlay(Math.max(0, from - span), to + span, Boolean(step && span / step < 150));
			}, wait);
		}
		return this.over;
	}

	/** @param {number} from @param {number} to @param {boolean} steps */
	async askOverlay(from, to, steps) {
		const within = `BETWEEN ${from} AND ${to}`;
		const marksSql = `SELECT ts_ns AS t, name, text FROM trace.marks WHERE ts_ns ${within}`;
		const stepsSql = `SELECT start_ns, NULL, step::VARCHAR FROM trace.steps WHERE start_ns ${within}`;
		const sql = `${steps ? `${marksSql} UNION ALL ${stepsSql}` : marksSql} ORDER BY t LIMIT 1000`;
		try {
			/** @type {{rows: [number, string|null, string][]}} */
			const { rows } = await postJson("query", { target: this.id, sql, limit: 1000, timeout_s: 5 });
			this.over.marks = rows
				.filter(([, name]) => name !== null)
				.map(([t, name, text]) => ({ t: Number(t), name: name ?? "", text }));
			this.over.steps = rows.filter(([, name]) => name === null).map(([t, , step]) => ({ t: Number(t), step }));
		} catch {
			// the zones are drawn without steps and marks
		}
		this.over.cost = performance.now() - this.over.asked;
		this.onchange?.();
	}
}

/** @implements {Joins} */
class LiveJoins {
	/** @param {LiveSource} source */
	constructor(source) {
		this.source = source;
	}

	/** @param {Record<string, string|number|undefined>} question */
	async ask(question) {
		const { id, ranks } = this.source;
		return (await getJson("joins", { target: id, ranks, ...question })).rows;
	}

	/** @param {number} rank @param {number} t @returns {Promise<Partner[]>} */
	partners(rank, t) {
		return this.ask({ of: "partners", ranks: String(rank), from: Math.round(t) });
	}

	/** @param {Range} range @returns {Promise<Partner[]>} */
	collectives(range) {
		return this.ask({ of: "collectives", ...wholeNs(range) });
	}

	/** @param {Range} range @param {number} [pid] @returns {Promise<Launch[]>} */
	launches(range, pid) {
		return this.ask({ of: "launches", ...wholeNs(range), pid });
	}

	/** @param {Range} range @param {number} pid @param {number} tid @returns {Promise<Launch[]>} */
	launched(range, pid, tid) {
		return this.ask({ of: "launched", ...wholeNs(range), pid, tid });
	}

	/** @param {Range} range @param {number} [pid] @param {number} [tid] @returns {Promise<Link[]>} */
	links(range, pid, tid) {
		return this.ask({ of: "links", ...wholeNs(range), pid, tid });
	}
}

/** @param {Range} range */
const wholeNs = ({ t0, t1 }) => ({ from: Math.max(0, Math.floor(t0)), to: Math.ceil(t1) });

/** @typedef {{lane: number, row: number, start_ns: number, duration_ns: number}} ApiZone */

/** @param {ApiZone} zone @param {number} name @returns {Zone} */
const zoneOf = ({ lane, row, start_ns: start, duration_ns: duration }, name) => ({
	lane,
	row,
	start,
	duration,
	name,
	n: 1,
});

/** @param {Column} column @param {number} t */
function nextFrom(column, t) {
	const i = column.firstEndingAfter(t);
	return i < column.count && column.start[i] < t ? i + 1 : i;
}

/** @param {Column} column @param {number} t */
function lastBefore(column, t) {
	const i = column.firstEndingAfter(t - 1);
	return i < column.count && column.start[i] < t && column.end[i] <= t ? i : i - 1;
}

/** @param {Series} series @param {number} ts @param {number} low @param {number} high */
function addPoint(series, ts, low, high) {
	series.ts.push(ts);
	series.low.push(low);
	series.high.push(high);
}

/**
 * Rows of (k, time, value): losses have a negative k, series their index.
 * @param {Series[]} series
 */
function pulseSql(series) {
	const losses = LOSSES.map(
		(key, i) => `SELECT ${-1 - i} AS k, 0::BIGINT AS t, sum(${key})::DOUBLE AS v FROM kymo.streams`,
	);
	const values = series.map((s, i) => {
		const after = `ts_ns > ${Math.round(s.ts[s.ts.length - 1] ?? 0)}`;
		return s.group === "counter"
			? `SELECT ${i}, ts_ns, value FROM trace.counters WHERE name = ${quoted(s.name)} AND ${after}`
			: `SELECT ${i}, ts_ns, rss_bytes FROM host.program WHERE ${after}`;
	});
	return `${[...losses, ...values].join(" UNION ALL ")} ORDER BY 1, 2`;
}

/**
 * The buckets of the server in equal steps of log(duration).
 * @param {number[]} edges
 * @param {number[]} counts
 */
function bars(edges, counts) {
	if (!counts.length)
		return { hist: [0], histFrom: 0, histTo: 1 };
	const from = Math.log(Math.max(1, edges[0]));
	const to = Math.log(Math.max(2, edges[edges.length - 1]));
	const bins = Math.min(60, counts.length);
	const hist = new Array(bins).fill(0);
	const place = (/** @type {number} */ v) => (bins * (Math.log(Math.max(1, v)) - from)) / (to - from || 1);
	counts.forEach((n, i) => {
		const a = place(edges[i]);
		const b = Math.max(a + 1e-9, place(edges[i + 1]));
		for (let k = Math.max(0, Math.floor(a)); k < Math.min(bins, Math.ceil(b)); k++)
			hist[k] += (n * Math.max(0, Math.min(k + 1, b) - Math.max(k, a))) / (b - a);
	});
	return { hist, histFrom: from, histTo: to };
}
