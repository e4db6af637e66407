// Zones that a server holds: tiles are asked for as they are looked at, kept, and asked for again when rows have come.
// The old picture stays until the new one is there.
import { ApiError, get, getJson, postJson } from "./api.js";
import { levelFor, tileSpan, whole } from "./source.js";
import { Column, cut, FlameTree } from "./source-embed.js";

/** @typedef {import("./source.js").Zone} Zone */
/** @typedef {import("./source.js").Range} Range */
/**
 * @typedef {{tile: import("./source.js").Tile|null, columns: Map<number, Column>, stale: boolean, asked: number, cost:
 * number, abort: AbortController|null}} Kept
 */

const KEPT = 256;
const AT_ONCE = 4;
const AGAIN_MS = 120;
const LOSSES = ["emitted", "kept", "overwritten", "dropped"];
const key = (/** @type {number} */ level, /** @type {number} */ index) => `${level}/${index}`;
const trackOf = (/** @type {number} */ lane, /** @type {number} */ row) => lane * 65536 + row;

/**
 * A zone pack: its header and its columns.
 * @param {ArrayBuffer} buffer
 */
export function unpack(buffer) {
	const view = new DataView(buffer);
	const size = view.getUint32(4, true);
	if (view.getUint32(0, true) !== 0x31505a4b)
		throw new ApiError(
			"The zones that kymo serve sent cannot be read",
			"The page and kymo serve may be of two versions: load the page again.",
			0,
		);
	const header = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 8, size)));
	const bytes = new Uint8Array(buffer, 8 + size);
	const columns = new Map();
	let at = 0;
	for (const about of header.tracks) {
		const column = new Column(about, bytes, at, 1);
		at += column.bytes;
		columns.set(trackOf(column.lane, column.row), column);
	}
	return { header, columns };
}

/** @implements {import("./source.js").Source} */
export class LiveSource {
	/** @param {any} target a row of /api/targets */
	constructor(target) {
		this.target = target;
		this.id = target.id;
		this.blocks = whole({
			run: [
				{
					program: target.program,
					command: target.command,
					state: target.state,
					duration_ns: target.duration_ns,
					rank: target.rank ?? -1,
					ranks: target.ranks ?? 0,
					exit_code: target.exit_code,
					signal: target.signal,
				},
			],
		});
		/** Whether /api/run has answered. */
		this.read = false;
		this.behind = false;
		/** @type {ApiError|null} */ this.failed = null;
		/** @type {null|(() => void)} */ this.onchange = null;
		/** @type {null|(() => void)} */ this.ondata = null;
		/** @type {Map<string, Kept>} */ this.tiles = new Map();
		/** @type {[number, number][]} */ this.wanted = [];
		this.flying = 0;
		this.gen = 0;
		/** @type {any} */ this.told = {};
		this.pulsing = false;
		this.pulseAt = 0;
		/** @type {null|(() => void)} */ this.onpulse = null;
		this.indexed = 1;
		this.running = target.state === "running" || target.state === "hung";
		this.nowNs = target.duration_ns ?? 0;
		this.nowAt = performance.now();
		/** @type {{lane: number, row: number, name: number, start_ns: number}[]} */ this.opened = [];
		/** Zones that have ended since the last tile came. @type {any[]} */ this.closing = [];
		this.newestEnd = 0;
		/** Milliseconds from a zone's end to its picture, the last few. @type {number[]} */ this.delays = [];
		/** @type {{steps: any[], marks: any[], key: string, asked: number, cost: number}} */
		this.over = { steps: [], marks: [], key: "", asked: 0, cost: 0 };
		const source = this;
		this.about = {
			lanes: /** @type {any[]} */ ([]),
			names: /** @type {any[]} */ ([]),
			get end() {
				return source.end();
			},
		};
	}

	/** The recording's end, which moves while the program runs. */
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

	/** Lanes and names, so that the views know them. */
	async load() {
		await this.pack({ from: 0, to: 1, level: 0 });
	}

	/**
	 * The picture of all of it, before anything else is asked: the first look at the timeline finds it.
	 * @param {number} pixels
	 */
	foresee(pixels) {
		const level = levelFor(this.end() / pixels);
		const last = Math.floor(this.end() / tileSpan(level));
		this.want(Array.from({ length: last + 1 }, (_, i) => [level, i]));
	}

	/** The document of the report; its tables. */
	async refresh() {
		try {
			const data = await getJson("run", { target: this.id });
			const had = this.blocks.series;
			// Of the time before it ended: there will be a newer one.
			this.behind = data.run?.[0]?.state === "live" && !this.running;
			this.blocks = whole(data);
			this.read = true;
			this.tell();
			this.lengthen(had);
			this.failed = null;
		} catch (why) {
			this.failed = /** @type {ApiError} */ (why);
		}
		this.ondata?.();
	}

	// ---- what the tail tells

	/** @param {any} rows */
	rows(rows) {
		if (this.newer(rows.gen))
			return;
		this.clock(rows.now_ns, rows.end_ns);
		const open = new Set(rows.open.map((/** @type {any} */ z) => `${z.lane}/${z.row}/${z.start_ns}`));
		const ended = this.opened.filter((z) => !open.has(`${z.lane}/${z.row}/${z.start_ns}`));
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

	/** @param {any} state */
	state(state) {
		this.newer(state.gen);
		this.running = state.state === "running" || state.state === "hung";
		this.told = { ...this.told, ...state };
		this.tell();
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

	/** What the tail and the pulse told is newer than the document. */
	tell() {
		const { run, losses } = this.blocks;
		const { told } = this;
		if (told.state)
			Object.assign(run, {
				state: this.running ? "live" : told.state,
				exit_code: told.exit_code,
				signal: told.signal,
				...(this.running ? {} : { duration_ns: told.duration_ns }),
			});
		for (const one of LOSSES)
			if (told[one] >= (losses[one] ?? 0))
				losses[one] = told[one];
		this.blocks.overhead_pct = told.overhead_pct ?? this.blocks.overhead_pct;
	}

	/**
	 * Some seconds apart while it runs, in one question: losses, and what the counters and the memory have become
	 * since.
	 */
	async pulse() {
		if (this.pulsing || performance.now() < this.pulseAt)
			return;
		this.pulsing = true;
		const began = performance.now();
		const series = this.blocks.series.filter((/** @type {any} */ s) => s.timeline).slice(0, 12);
		const text = (/** @type {string} */ name) => `'${name.replaceAll("'", "''")}'`;
		const sql = [
			...LOSSES.map(
				(one, i) => `SELECT ${-1 - i} AS k, 0::BIGINT AS t, sum(${one})::DOUBLE AS v FROM kymo.streams`,
			),
			...series.map(
				(/** @type {any} */ s, /** @type {number} */ i) =>
					`SELECT ${i}, ts_ns, ${s.group === "counter" ? `value FROM trace.counters WHERE name = ${text(s.name)} AND` : "rss_bytes FROM host.process WHERE"} ts_ns > ${Math.round(s.ts[s.ts.length - 1] ?? 0)}`,
			),
		];
		try {
			const { rows } = await postJson("query", {
				target: this.id,
				sql: `${sql.join(" UNION ALL ")} ORDER BY 1, 2`,
				limit: 10000,
				timeout_s: 5,
			});
			for (const [k, ts, value] of rows)
				if (k < 0)
					this.told[LOSSES[-1 - k]] = value;
				else
					for (const [column, one] of [
						["ts", ts],
						["low", value],
						["high", value],
					])
						series[k][column].push(one);
			this.tell();
			this.onpulse?.();
		} finally {
			this.pulsing = false;
			this.pulseAt = performance.now() + Math.max(900, 4 * (performance.now() - began));
		}
	}

	/**
	 * A document that was overtaken by the pulse gets what it does not know yet.
	 * @param {any[]} had
	 */
	lengthen(had) {
		for (const series of this.blocks.series.filter((/** @type {any} */ s) => s.timeline)) {
			const before = had.find((one) => one.name === series.name);
			const last = series.ts[series.ts.length - 1] ?? 0;
			for (let i = 0; before && i < before.ts.length; i++)
				if (before.ts[i] > last)
					for (const column of ["ts", "low", "high"])
						series[column].push(before[column][i]);
		}
	}

	/**
	 * Times or ids are others now: what was kept is of no use.
	 * @param {number} gen
	 */
	newer(gen) {
		if (!gen || gen === this.gen)
			return false;
		const first = this.gen === 0;
		this.gen = gen;
		if (first)
			return false;
		this.about.names = [];
		this.closing = [];
		for (const kept of this.tiles.values())
			kept.abort?.abort();
		this.tiles.clear();
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
			return; // an answer that was overtaken
		this.nowNs = at;
		this.nowAt = performance.now();
	}

	// ---- tiles

	/** @param {Record<string, any>} params @param {AbortSignal} [signal] */
	async pack(params, signal) {
		const answer = await get("zones", { target: this.id, names_from: this.about.names.length, ...params }, signal);
		const made = unpack(await answer.arrayBuffer());
		const { header } = made;
		if (this.gen && header.gen !== this.gen && header.names.from > 0) {
			this.newer(header.gen);
			throw new DOMException("the recording has changed", "AbortError");
		}
		this.gen = header.gen;
		this.keepNames(header.names);
		this.about.lanes = [...header.lanes].sort((a, b) => (a.order ?? a.id) - (b.order ?? b.id));
		this.indexed = header.indexed ?? 1;
		this.opened = header.open;
		this.clock(header.now_ns, header.end_ns);
		return made;
	}

	/** @param {any} names */
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

	/** @param {[number, number][]} keys the most wanted first */
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
			if (this.flying >= AT_ONCE && !this.makeRoom())
				return;
			this.ask(level, index);
		}
		if (later < Infinity && !this.timer)
			this.timer = setTimeout(() => {
				this.timer = 0;
				this.pump();
			}, later);
	}

	/** Gives up a question whose answer nobody waits for any more. */
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
		this.tiles.set(name, kept); // the newest last: the oldest goes first
		this.flying++;
		const newest = this.newestEnd;
		try {
			const { header, columns } = await this.pack(
				{ from: index * span, to: (index + 1) * span, level },
				abort.signal,
			);
			const t0 = index * span;
			kept.columns = columns;
			kept.tile = {
				level,
				t0,
				tracks: [...columns.values()].map((column) => cut(column, level, t0)).filter((t) => t.count),
			};
			kept.stale ||= header.indexed < 1;
			kept.cost = performance.now() - began;
			this.closing = this.closing.filter((z) => z.end_ns > header.now_ns);
			if (newest && this.running && newest >= t0 && newest <= t0 + span)
				this.measure(newest);
		} catch (why) {
			if (!kept.tile)
				this.tiles.delete(name);
			kept.stale = true;
			kept.cost = /** @type {any} */ (why).name === "AbortError" ? 0 : 500;
		}
		kept.abort = null;
		this.flying--;
		this.forget();
		this.onchange?.();
	}

	/**
	 * How long after its end the newest zone is on screen.
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

	/** The middle one of the last few delays in ms, or null. */
	delay() {
		const sorted = [...this.delays].sort((a, b) => a - b);
		return sorted.length ? sorted[sorted.length >> 1] : null;
	}

	forget() {
		for (const [name, kept] of this.tiles) {
			if (this.tiles.size <= KEPT)
				return;
			if (!kept.abort)
				this.tiles.delete(name);
		}
	}

	// ---- single zones

	/**
	 * The finest column that is here and holds t.
	 * @param {number} lane
	 * @param {number} row
	 * @param {number} t
	 */
	finest(lane, row, t) {
		for (let level = 0; level < 48; level++) {
			const kept = this.tiles.get(key(level, Math.floor(Math.max(0, t) / tileSpan(level))));
			if (kept?.tile)
				return kept.columns.get(trackOf(lane, row)) ?? null;
		}
		return null;
	}

	/** @param {Column|null|undefined} column @param {number} i @returns {Zone|null} */
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

	/**
	 * What lies at t, as far as it is here; open ones, too.
	 * @param {number} lane
	 * @param {number} row
	 * @param {number} t
	 * @param {number} slack
	 */
	glance(lane, row, t, slack) {
		const open = this.opened.find((z) => z.lane === lane && z.row === row && z.start_ns <= t);
		if (open)
			return {
				lane,
				row,
				start: open.start_ns,
				duration: this.now() - open.start_ns,
				name: open.name,
				n: 1,
				open: true,
			};
		const column = this.finest(lane, row, t);
		if (!column)
			return null;
		const i = column.firstEndingAfter(t);
		if (i < column.count && column.start[i] - t <= slack)
			return this.at(column, i);
		return i > 0 && t - column.end[i - 1] <= slack ? this.at(column, i - 1) : null;
	}

	/**
	 * The zone at t: of a merged piece, the longest.
	 * @param {number} lane
	 * @param {number} row
	 * @param {number} t
	 * @param {number} slack
	 */
	async zone(lane, row, t, slack) {
		let found = this.glance(lane, row, t, slack);
		if (!found && !this.finest(lane, row, t)) {
			const { columns } = await this.pack({
				from: Math.max(0, Math.floor(t - slack)),
				to: Math.ceil(t + slack + 1),
				lanes: lane,
				width: 64,
			});
			found = this.pick(columns.get(trackOf(lane, row)), (column) => column.longestIn(0, column.count));
		}
		return this.single(found, (column) => column.longestIn(0, column.count));
	}

	/** @param {Column|undefined} column @param {(column: Column) => number} which */
	pick(column, which) {
		return column?.count ? this.at(column, which(column)) : null;
	}

	/**
	 * Opens a merged piece until one zone is left.
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
			const inside = this.pick(columns.get(trackOf(lane, row)), which);
			if (!inside || inside.n >= found.n)
				break;
			found = inside;
		}
		return found;
	}

	/**
	 * The next zone of a row from t on, or the one before.
	 * @param {number} lane
	 * @param {number} row
	 * @param {number} t
	 * @param {number} way
	 * @param {number} [limit]
	 */
	async seek(lane, row, t, way, limit = way > 0 ? this.end() : 0) {
		for (let reach = 1e5; ; reach *= 16) {
			const from = Math.floor(way > 0 ? t : Math.max(limit, t - reach));
			const to = Math.ceil(way > 0 ? Math.min(limit, t + reach) : t);
			const { columns } = await this.pack({ from, to, lanes: lane, width: 4096 });
			const column = columns.get(trackOf(lane, row));
			const which = (/** @type {Column} */ c) => {
				if (way > 0) {
					const i = c.firstEndingAfter(t);
					return i < c.count && c.start[i] < t ? i + 1 : i;
				}
				const i = c.firstEndingAfter(t - 1);
				return i < c.count && c.start[i] < t && c.end[i] <= t ? i : i - 1;
			};
			const piece = column?.count ? this.at(column, which(column)) : null;
			if (piece)
				return this.single(piece, (c) =>
					way > 0 ? Math.min(c.count - 1, c.firstEndingAfter(t)) : c.count - 1,
				);
			if (way > 0 ? to >= limit : from <= limit)
				return null;
		}
	}

	/** @param {Zone} zone @param {string} dir */
	async step(zone, dir) {
		const end = zone.start + zone.duration;
		if (dir === "previous" || dir === "next") {
			const found = (await getJson("name", { target: this.id, id: zone.name, at: Math.round(zone.start) }))[dir];
			return found
				? {
						lane: found.lane,
						row: found.row,
						start: found.start_ns,
						duration: found.duration_ns,
						name: zone.name,
						n: 1,
					}
				: null;
		}
		if (dir === "up")
			return zone.row ? this.zone(zone.lane, zone.row - 1, zone.start + zone.duration / 2, 0) : null;
		if (dir === "down")
			return this.seek(zone.lane, zone.row + 1, zone.start, 1, end);
		return dir === "right"
			? this.seek(zone.lane, zone.row, end, 1)
			: this.seek(zone.lane, zone.row, zone.start, -1);
	}

	/** @param {number} name @param {Range} [range] */
	async name(name, range = null) {
		const found = await getJson("name", {
			target: this.id,
			id: name,
			from: range ? Math.round(range.t0) : null,
			to: range ? Math.round(range.t1) : null,
		});
		const { edges_ns: edges, counts } = found.histogram;
		return {
			count: found.count,
			total: found.total_ns,
			p50: found.p50_ns,
			p99: found.p99_ns,
			min: found.min_ns,
			max: found.max_ns,
			...bars(edges, counts),
			slowest: found.slowest.map((/** @type {any} */ z) => ({
				lane: z.lane,
				row: z.row,
				start: z.start_ns,
				duration: z.duration_ns,
				name,
				n: 1,
			})),
		};
	}

	/** @param {"zones"|"samples"} of @param {number|null} lane @param {Range} range */
	async flame(of, lane, range) {
		const thread = of === "samples" && lane !== null ? this.about.lanes.find((l) => l.id === lane)?.tid : lane;
		const found = await getJson("flame", {
			target: this.id,
			of,
			thread,
			from: range ? Math.round(range.t0) : null,
			to: range ? Math.round(range.t1) : null,
		});
		const tree = new FlameTree(of === "samples" ? "all samples" : "all threads", found.unit);
		const { names, lanes } = found;
		for (const [name, parent, total] of found.nodes) {
			const lane = name < 0 ? lanes.find((/** @type {any} */ l) => l.id === -1 - name) : null;
			const one =
				name < 0
					? [lane?.name || lane?.note || `lane ${-1 - name}`, ""]
					: [names.name[name], names.source[name]];
			// A key of its own for each, so that node i is child i + 1 whatever the names are.
			tree.total[tree.child(parent + 1, one[0], one[1], tree.label.length)] = total;
		}
		return tree.finish();
	}

	/**
	 * Regions, steps, modules and samples of a stretch of time.
	 * @param {{t0: number, t1: number}} range
	 */
	async stretch(range) {
		const found = await getJson("range", {
			target: this.id,
			from: Math.max(0, Math.floor(range.t0)),
			to: Math.ceil(range.t1),
		});
		return {
			...found,
			steps: found.steps[0]?.x ? found.steps[0] : { x: [] },
			step_facts: found.step_facts[0] ?? {},
		};
	}

	/**
	 * Steps and marks in view; asked for when the view rests.
	 * @param {number} t0
	 * @param {number} t1
	 */
	overlay(t0, t1) {
		const from = Math.max(0, Math.floor(t0));
		const to = Math.ceil(t1);
		const now = performance.now();
		const span = to - from;
		const step = this.blocks.step_facts.median_ns;
		const wanted = `${Math.floor(from / (span / 8))}/${Math.round(Math.log2(span) * 4)}`;
		if (wanted !== this.over.key && !this.overTimer)
			this.overTimer = setTimeout(
				() => {
					this.overTimer = 0;
					this.over.key = wanted;
					this.over.asked = performance.now();
					this.askOverlay(Math.max(0, from - span), to + span, step && span / step < 150);
				},
				Math.max(200, this.over.asked + 6 * this.over.cost - now),
			);
		return this.over;
	}

	/** @param {number} from @param {number} to @param {boolean} steps */
	async askOverlay(from, to, steps) {
		const within = `BETWEEN ${from} AND ${to}`;
		const marks = `SELECT ts_ns AS t, name, text FROM trace.marks WHERE ts_ns ${within}`;
		const sql = steps
			? `${marks} UNION ALL SELECT start_ns, NULL, step::VARCHAR FROM trace.steps WHERE start_ns ${within}`
			: marks;
		try {
			const { rows } = await postJson("query", {
				target: this.id,
				sql: `${sql} ORDER BY t LIMIT 1000`,
				limit: 1000,
				timeout_s: 5,
			});
			this.over.marks = rows
				.filter((/** @type {any[]} */ r) => r[1] !== null)
				.map(([t, name, text]) => ({ t: Number(t), name, text }));
			this.over.steps = rows
				.filter((/** @type {any[]} */ r) => r[1] === null)
				.map(([t, , step]) => ({ t: Number(t), step }));
		} catch {
			// marks are an extra: the zones are drawn without them
		}
		this.over.cost = performance.now() - this.over.asked;
		this.onchange?.();
	}
}

/**
 * Equal steps of log(duration) out of the server's buckets.
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
