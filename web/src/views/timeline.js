// The Timeline tab: search, threads, the timeline, and details of the selected zone.
import { shortPath } from "../code/frames.js";
import { el, emptyState, legend, sizeCanvas, inkOf, swatch } from "../dom.js";
import { count, counted, duration } from "../format.js";
import { legendSources, SAMPLE, themed } from "../theme.js";
import { isGrouped, laneName } from "../timeline/layout.js";
import { collectiveDetails } from "../timeline/joins.js";
import { Follow } from "../timeline/live.js";
import { Timeline } from "../timeline/timeline.js";

/** @import { Direction, Lane, Name, NameStats, RunDocument, Source, Tab, Zone } from "../types.js" */
/** @import { Shell } from "../shell.js" */
/** @import { Collective } from "../timeline/joins.js" */

const NAMES_ASKED = 16;

/**
 * Durations of all zones of a name; the bar of one zone is marked.
 * @param {HTMLCanvasElement} canvas
 * @param {NameStats} stats
 * @param {number} marked duration
 */
function drawHistogram(canvas, stats, marked) {
	const width = canvas.clientWidth || 300;
	const height = 92;
	const base = height - 14;
	sizeCanvas(canvas, width, height);
	const ink = inkOf(canvas);
	const { hist, histFrom: from, histTo: to } = stats;
	const most = Math.max(1, ...hist);
	const each = width / hist.length;
	const share = (Math.log(Math.max(1, marked)) - from) / (to - from || 1);
	const mark = Math.max(0, Math.min(hist.length - 1, Math.floor(hist.length * share)));
	hist.forEach((n, i) => {
		const tall = n ? Math.max(2, ((base - 2) * n) / most) : 0;
		ink.fillStyle = themed(i === mark ? "bad" : "accent");
		ink.fillRect(i * each, base - tall, Math.max(1, each - 1), tall);
	});
	ink.fillStyle = themed("line");
	ink.fillRect(0, base, width, 1);
	ink.fillStyle = themed("muted");
	ink.font = "11px system-ui";
	const end = duration(stats.max);
	ink.fillText(duration(stats.min), 0, height - 2);
	ink.fillText(end, width - ink.measureText(end).width, height - 2);
}

/** @param {[string, string|Node][]} pairs */
const definitions = (pairs) =>
	el("dl", {}, ...pairs.flatMap(([term, what]) => [el("dt", { text: term }), el("dd", {}, what)]));

/** Where a zone is in the source, as a link if its line is known. @param {Shell} shell @param {Name} name */
function placeNode(shell, { file, line }) {
	if (!file || !line)
		return file || "–";
	const text = `${shortPath(file)}:${line}`;
	return el("a", { href: shell.hash("source", { file, line }), text, title: `${file}:${line}: open the source (O)` });
}

/** @param {string} name */
const zonesSql = (name) =>
	`FROM trace.zones\nWHERE name = '${name.replaceAll("'", "''")}'\nORDER BY duration_ns DESC\nLIMIT 100`;

/** @param {Shell} shell @param {Zone} zone @param {Name} name @param {NameStats} stats */
function zoneDetails(shell, zone, name, stats) {
	const lane = shell.source.meta().lanes.find((one) => one.id === zone.lane);
	return el(
		"div",
		{},
		el("h3", {}, swatch(name.source, name.name), name.name),
		definitions([
			["source", name.source],
			["duration", duration(zone.duration)],
			["thread", lane ? laneName(lane) : "–"],
			["vs median", stats.p50 ? `× ${(zone.duration / stats.p50).toFixed(2)}` : "–"],
			["depth", String(zone.row)],
			["start", duration(zone.start)],
			["where", placeNode(shell, name)],
			zone.open ? ["state", "open"] : ["zones", count(zone.n)],
		]),
	);
}

/** @param {Shell} shell @param {Name} name @param {NameStats} stats */
function nameDetails(shell, name, stats) {
	const onclick = () => shell.go("sql", { q: zonesSql(name.name) });
	return el(
		"div",
		{},
		el("div", { class: "muted", text: "All zones of this name" }),
		definitions([
			["count", count(stats.count)],
			["total", duration(stats.total)],
			["p50", duration(stats.p50)],
			["p99", duration(stats.p99)],
		]),
		el("div", { class: "hint", text: "[ ] previous and next · X slowest · Z zoom" }),
		shell.app ? el("button", { class: "link", text: "Open in SQL", onclick }) : null,
	);
}

/** @param {RunDocument["losses"]} losses */
function lossBand({ zones_overwritten: zones }) {
	if (!zones)
		return null;
	const text = `The first ${counted(zones, "zone")} of the run were overwritten and are not shown.`;
	return el("div", { class: "band", text });
}

/** @param {Source} source */
const isSampled = (source) => source.meta().names.some((name) => name.source === SAMPLE);

/** The sources of a legend; those of a job include the ones of its collectives. @param {Source} source */
function jobSources(source) {
	const { lanes, names } = source.meta();
	const present = new Set(names.map((name) => name.source).filter(Boolean));
	return isGrouped(lanes) ? [...present] : legendSources(present);
}

/** @param {Lane} lane */
const optionName = (lane) => `${typeof lane.rank === "number" ? `rank ${lane.rank}: ` : ""}${laneName(lane)}`;

class TimelineView {
	/** @param {Shell} shell */
	constructor(shell) {
		const { source } = shell;
		this.shell = shell;
		this.source = source;
		this.stage = el("div", { class: "stage" });
		this.drawer = el("div", { class: "drawer", hidden: true, "aria-label": "Details" });
		this.find = el("input", { type: "search", placeholder: "Find a name   /", "aria-label": "Find a name" });
		this.found = el("span", { class: "muted" });
		this.threads = el("select", { "aria-label": "Threads" });
		this.lanesListed = 0;
		this.fillThreads();
		this.following = el("button", {
			class: "button",
			hidden: !source.running,
			"aria-pressed": "false",
			title: "Keep the end in view (Space)",
			text: "◉ Follow",
		});
		this.lines = el("button", {
			class: "button",
			hidden: true,
			"aria-pressed": "false",
			title: "Lines between ranks, arrows from launches and from forward to backward, for all in view (L)",
			text: "⤳ Lines",
			onclick: () => this.toggleLines(),
		});
		this.indexing = el("span", { class: "muted", role: "status" });
		this.node = el(
			"div",
			{ class: "full" },
			lossBand(source.data().losses),
			el(
				"div",
				{ class: "bar" },
				this.find,
				this.found,
				this.threads,
				this.following,
				this.lines,
				legend(isSampled(source), jobSources(source)),
				this.indexing,
				el("span", { class: "right muted hint-keys", text: "W S zoom · A D pan · F focus · ? keys" }),
			),
			this.stage,
			this.drawer,
		);
		shell.main.append(this.node);
		this.timeline = new Timeline(this.stage, source, {
			onselect: (zone) => this.showDetails(zone),
			onrange: (range) => shell.setRange(range),
		});
		this.keys = this.keyTable();
		this.showLines();
		this.find.value = shell.query.find ?? "";
		if (this.find.value)
			this.search();
		this.listen();
		this.goToAddress();
		this.startFollowing();
	}

	listen() {
		const { source, timeline } = this;
		this.find.addEventListener("input", () => this.search());
		this.find.addEventListener("keydown", (e) => {
			if (e.key === "Enter" && this.find.value)
				this.selectSlowestFound();
		});
		this.threads.addEventListener("change", () => {
			timeline.only = this.threads.value === "" ? null : Number(this.threads.value);
			timeline.changed();
		});
		this.following.addEventListener("click", (e) => {
			timeline.follow?.set(!timeline.follow.on);
			if (e.detail)
				this.following.blur();
		});
		this.previous = source.onchange;
		source.onchange = () => {
			const { indexed = 1 } = source;
			timeline.changed();
			this.showLines();
			if (indexed < 1)
				this.indexing.textContent = "reading devices and collectives…";
			if (!source.glance)
				this.goToAddress(); // the zones of a report are decoded after its page is shown
		};
		source.onpulse = () => timeline.renew();
	}

	/** The button is there if something can be joined. */
	showLines() {
		const { lanes } = this.source.meta();
		this.lines.hidden = !lanes.some((lane) => ["collectives", "queue"].includes(lane.kind));
		const hidden = this.source.lanesHidden ?? 0;
		this.indexing.textContent = hidden ? `${counted(hidden, "track")} left out; choose ranks` : "";
	}

	toggleLines() {
		const { joined } = this.timeline;
		joined.all = !joined.all;
		joined.asked = "";
		this.lines.setAttribute("aria-pressed", String(joined.all));
		this.timeline.changed();
	}

	startFollowing() {
		const { source, timeline, shell } = this;
		if (!source.open)
			return;
		timeline.follow = new Follow(timeline, (on) => this.following.setAttribute("aria-pressed", String(on)));
		if (source.running && !shell.query.v1 && !shell.query.sel && !shell.range)
			timeline.follow.set(true);
	}

	/** Lists the threads again if there are new ones. */
	fillThreads() {
		const { lanes } = this.source.meta();
		if (this.lanesListed === lanes.length)
			return;
		this.lanesListed = lanes.length;
		const chosen = this.threads.value;
		this.threads.replaceChildren(
			el("option", { value: "", text: "All threads" }),
			...lanes.map((lane) => el("option", { value: lane.id, text: optionName(lane) })),
		);
		this.threads.value = chosen;
	}

	/** The address names a view, a range or a zone. */
	async goToAddress() {
		const { timeline, shell } = this;
		const { v0, v1, sel, rank } = shell.query;
		timeline.range = shell.range;
		if (v1)
			timeline.show(Number(v0), Number(v1));
		else if (shell.range)
			timeline.show(shell.range.t0, shell.range.t1);
		if (rank !== undefined)
			timeline.scrollToRank(Number(rank));
		if (!sel)
			return;
		const [lane, row, t] = sel.split(".").map(Number);
		this.go(await this.source.zone(lane, row, t, 1000));
	}

	/**
	 * Selects a zone and shows it.
	 * @param {Zone|null|undefined} zone
	 */
	go(zone) {
		if (!zone)
			return;
		this.timeline.select(zone);
		this.timeline.reveal(zone);
	}

	/** @param {Zone|null} zone */
	async showDetails(zone) {
		const { drawer, shell } = this;
		if (!zone) {
			drawer.hidden = true;
			return;
		}
		const name = this.source.meta().names[zone.name];
		const { joined } = this.timeline;
		const [stats, collective] = await Promise.all([
			this.source.name(zone.name),
			joined.isCollective(zone) ? joined.collective(zone) : null,
		]);
		if (this.timeline.selected !== zone)
			return;
		const canvas = el("canvas", { role: "img", "aria-label": `Durations of ${name.name}, this one marked` });
		const caption = el("div", { class: "muted", text: "duration, log scale; this zone marked" });
		drawer.hidden = false;
		drawer.replaceChildren(
			zoneDetails(shell, zone, name, stats),
			nameDetails(shell, name, stats),
			collective
				? collectiveDetails(collective, (rank) => this.goToPartner(collective, rank))
				: el("div", {}, caption, canvas),
		);
		if (!collective)
			drawHistogram(canvas, stats, zone.duration);
		const lane = this.source.meta().lanes.find((one) => one.id === zone.lane);
		const thread = lane?.name || lane?.tid;
		shell.announce(`${name.name}, ${name.source}, ${duration(zone.duration)}, thread ${thread}`);
	}

	/** Selects the call of another rank. @param {Collective} collective @param {number} rank */
	async goToPartner({ partners }, rank) {
		const partner = partners.find((one) => one.rank === rank);
		const lane = this.source.meta().lanes.find((one) => one.rank === rank && one.kind === "collectives");
		if (!partner || !lane)
			return;
		for (let row = 0; row < lane.rows; row++) {
			const zone = await this.source.zone(lane.id, row, partner.arrival_ns + 1, 2000);
			if (zone && Math.abs(zone.start - partner.arrival_ns) < 2000) {
				this.go(zone);
				return;
			}
		}
	}

	search() {
		const { timeline } = this;
		timeline.search(this.find.value);
		const { size } = timeline.found;
		this.found.textContent = this.find.value ? `${counted(size, "name")}${size ? " · Enter: slowest" : ""}` : "";
	}

	/** Of the names that were found, but of NAMES_ASKED at most: each is a request. */
	async selectSlowestFound() {
		const names = [...this.timeline.found].slice(0, NAMES_ASKED);
		const stats = await Promise.all(names.map((name) => this.source.name(name)));
		const zones = stats.flatMap((one) => one.slowest.slice(0, 1));
		const [slowest] = zones.sort((a, b) => b.duration - a.duration);
		if (!slowest)
			return;
		this.find.blur(); // so that [ ] and X go on from here
		this.go(slowest);
	}

	// ---- keys

	/** @param {Direction} direction */
	async step(direction) {
		const from = this.timeline.selected;
		const to = from ? await this.source.step(from, direction) : null;
		if (this.timeline.selected === from)
			this.go(to);
	}

	/** Selects the zone in the middle of the view. */
	async selectFirst() {
		const { t0, t1 } = this.timeline.view;
		const [lane] = this.source.meta().lanes;
		const zone = lane && (await this.source.zone(lane.id, 0, (t0 + t1) / 2, t1 - t0));
		if (zone)
			this.timeline.select(zone);
	}

	async selectSlowest() {
		const { selected } = this.timeline;
		if (selected)
			this.go((await this.source.name(selected.name)).slowest[0]);
	}

	zoomToSelection() {
		const { timeline } = this;
		if (timeline.selected)
			timeline.reveal(timeline.selected, true);
		else if (timeline.range)
			timeline.show(timeline.range.t0, timeline.range.t1);
	}

	/** Fits the selected zone or range to the view; if it fits already, or without one, the whole run. */
	focusSelection() {
		const { timeline } = this;
		const { t0, t1 } = timeline.view;
		if (timeline.selected || timeline.range)
			this.zoomToSelection();
		const fitted = Math.abs(timeline.view.t0 - t0) + Math.abs(timeline.view.t1 - t1) < (t1 - t0) / 1000;
		if (fitted || !(timeline.selected || timeline.range))
			timeline.fit();
	}

	/** Opens the source of the selected zone. */
	openSource() {
		const { selected } = this.timeline;
		const { file, line } = (selected && this.source.meta().names[selected.name]) || { file: "", line: 0 };
		if (file && line)
			this.shell.go("source", { file, line });
	}

	/** Makes the selected zone the range. */
	selectRange() {
		const { selected } = this.timeline;
		if (selected)
			this.shell.setRange({ t0: selected.start, t1: selected.start + selected.duration });
	}

	/** @returns {Record<string, () => unknown>} */
	keyTable() {
		const { timeline } = this;
		const orFirst = (/** @type {() => unknown} */ act) => () => (timeline.selected ? act() : this.selectFirst());
		return {
			" ": () => timeline.follow?.set(!timeline.follow.on && Boolean(this.source.running)),
			"/": () => this.find.focus(),
			"[": () => this.step("previous"),
			"]": () => this.step("next"),
			f: () => this.focusSelection(),
			l: () => this.toggleLines(),
			m: () => this.selectRange(),
			o: () => this.openSource(),
			x: () => this.selectSlowest(),
			z: () => this.zoomToSelection(),
			ArrowLeft: orFirst(() => this.step("left")),
			ArrowRight: orFirst(() => this.step("right")),
			ArrowUp: () => this.step("up"),
			ArrowDown: orFirst(() => this.step("down")),
			Enter: orFirst(() => timeline.select(timeline.selected)),
		};
	}

	/** @param {KeyboardEvent} e */
	key(e) {
		if (e.key === "Escape") {
			const was = this.timeline.selected;
			if (was)
				this.timeline.select(null);
			return Boolean(was);
		}
		const act = this.keys[e.key.length === 1 ? e.key.toLowerCase() : e.key];
		const forButton = ["Enter", " "].includes(e.key) && e.target instanceof HTMLButtonElement;
		if (!act || forButton)
			return false;
		act();
		return true;
	}

	update() {
		const { timeline, source } = this;
		timeline.renew();
		this.fillThreads();
		this.following.hidden = !source.running;
		if (!source.running && timeline.follow?.on) {
			const span = timeline.view.t1 - timeline.view.t0;
			const end = timeline.meta.end * 1.01;
			timeline.show(end - span, end);
		}
	}

	close() {
		this.source.onchange = this.previous ?? null;
		this.source.onpulse = null;
		this.timeline.close();
	}
}

/** @type {Tab} */
export const timeline = {
	id: "timeline",
	title: "Timeline",
	has: (source) => source.meta().lanes.length > 0,
	open(shell) {
		const meta = shell.source.meta();
		if (meta.lanes.length)
			return new TimelineView(shell);
		const how =
			'Mark zones with KYMO_SCOPE("name") in C or kymo.region("name") in Python, ' +
			"record torch modules with --torch, or record every Python call with";
		return {
			node: emptyState("No zones recorded", how, "kymo run --python -- python train.py"),
			update: () => {
				if (meta.lanes.length)
					shell.open();
			},
		};
	},
};
