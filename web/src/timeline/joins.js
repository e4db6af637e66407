// Lines between tracks: the ranks of a collective, arrows from launches to operations of devices, and from forward to
// backward operators.
import { el } from "../dom.js";
import { count, counted, duration } from "../format.js";
import { themed } from "../theme.js";
import { BAR, FONT, GUTTER, layoutOf, ROW, TOP } from "./layout.js";

/** @import { Launch, Link, Partner, Zone } from "../types.js" */
/** @import { Layout, Track } from "./layout.js" */
/** @import { Timeline } from "./timeline.js" */

const COLLECTIVE = /nccl|rccl|msccl|all_?reduce|all_?gather|reduce_?scatter|all_?to_?all|broadcast|barrier/i;
const ARROWS_MOST = 400;
const LINES_MOST = 400;
const HOVER_MS = 80;
const REST_MS = 250;
const KEPT = 64;

/** What is known of the ranks of a collective, the last to arrive first. */
export class Collective {
	/** @param {Partner[]} partners */
	constructor(partners) {
		this.partners = partners;
		this.last = partners[0];
		const middle = partners[partners.length >> 1];
		/** How long after the median it came. */
		this.late = this.last.arrival_ns - middle.arrival_ns;
		this.waited = partners.reduce((sum, one) => sum + (this.last.arrival_ns - one.arrival_ns), 0);
	}

	/** Who came last, and by how much. */
	sentence() {
		const { last, late, partners } = this;
		const waited = `${counted(partners.length - 1, "other rank")} waited ${duration(this.waited)} in all`;
		return `rank ${last.rank} came last, ${duration(late)} after the median; ${waited}`;
	}

	title() {
		const { op, group_name: group, seq, bytes } = this.last;
		return [`${op} ${count(seq)}`, group ? `group ${group}` : "", bytes ? `${count(bytes)} bytes` : ""]
			.filter(Boolean)
			.join(", ");
	}
}

/** The joins that a timeline shows: of the zone under the mouse, of the selected zone, and of all in view. */
export class Joined {
	/** @param {Timeline} timeline */
	constructor(timeline) {
		this.timeline = timeline;
		/** By rank and time. @type {Map<string, Promise<Collective|null>>} */ this.known = new Map();
		/** @type {Collective|null} */ this.hovered = null;
		/** @type {Collective|null} */ this.selected = null;
		/** Arrows of the selected zone. @type {Launch[]} */ this.arrows = [];
		/** From forward to backward, of the selected zone. @type {Link[]} */ this.links = [];
		/** Whether all in view are shown. */
		this.all = false;
		/** @type {Collective[]} */ this.lines = [];
		/** @type {Launch[]} */ this.launches = [];
		/** @type {Link[]} */ this.allLinks = [];
		this.asked = "";
		this.hoverTimer = 0;
		this.viewTimer = 0;
	}

	/** @param {Zone|null} zone */
	laneOf(zone) {
		return zone ? this.timeline.meta.lanes.find((lane) => lane.id === zone.lane) : undefined;
	}

	/** Whether a zone may be a collective. @param {Zone|null} zone */
	isCollective(zone) {
		const lane = this.laneOf(zone);
		if (!zone || !lane || zone.n > 1 || typeof lane.rank !== "number")
			return false;
		const name = this.timeline.meta.names[zone.name]?.name ?? "";
		return lane.kind === "collectives" || (lane.kind === "queue" && COLLECTIVE.test(name));
	}

	/** @param {Zone} zone @returns {Promise<Collective|null>} */
	collective(zone) {
		const rank = this.laneOf(zone)?.rank ?? 0;
		const key = `${rank}/${Math.round(zone.start)}`;
		let found = this.known.get(key);
		if (!found) {
			found = this.timeline.source.joins.partners(rank, zone.start).then(
				(partners) => (partners.length > 1 ? new Collective(partners) : null),
				() => null,
			);
			if (this.known.size >= KEPT)
				this.known.delete(/** @type {string} */ (this.known.keys().next().value));
			this.known.set(key, found);
		}
		return found;
	}

	/** @param {Zone|null} zone @param {() => void} shown */
	hover(zone, shown) {
		clearTimeout(this.hoverTimer);
		if (!zone || !this.isCollective(zone)) {
			this.hovered = null;
			return;
		}
		this.hoverTimer = window.setTimeout(async () => {
			const found = await this.collective(zone);
			if (this.timeline.hovered?.start !== zone.start || this.timeline.hovered.lane !== zone.lane)
				return;
			this.hovered = found;
			shown();
		}, HOVER_MS);
	}

	/** Of a zone that was selected. @param {Zone|null} zone */
	async select(zone) {
		const lane = this.laneOf(zone);
		this.selected = null;
		this.arrows = [];
		this.links = [];
		if (!zone || !lane)
			return null;
		const [collective, arrows, links] = await Promise.all([
			this.isCollective(zone) ? this.collective(zone) : null,
			this.launchesOf(zone).catch(() => []),
			this.linksOf(zone).catch(() => []),
		]);
		if (this.timeline.selected !== zone)
			return null;
		this.selected = collective;
		this.arrows = arrows;
		this.links = links;
		this.timeline.changed();
		return collective;
	}

	/** @param {Zone} zone @returns {Promise<Launch[]>} */
	async launchesOf(zone) {
		const lane = this.laneOf(zone);
		const { joins } = this.timeline.source;
		const range = { t0: zone.start, t1: zone.start + zone.duration };
		if (!lane || zone.n > 1 || !this.timeline.hasQueues())
			return [];
		if (lane.kind === "queue") {
			const all = await joins.launches({ t0: zone.start, t1: zone.start + 1 }, lane.pid);
			return all.filter((one) => Math.abs(one.start_ns - zone.start) < 1000 && queueName(one) === lane.name);
		}
		return lane.kind === "thread" ? joins.launched(range, lane.pid, lane.tid) : [];
	}

	/** @param {Zone} zone @returns {Promise<Link[]>} */
	async linksOf(zone) {
		const lane = this.laneOf(zone);
		if (!lane || zone.n > 1 || lane.kind !== "thread" || !this.timeline.hasQueues())
			return [];
		return this.timeline.source.joins.links(
			{ t0: zone.start, t1: zone.start + zone.duration },
			lane.pid,
			lane.tid,
		);
	}

	/** All in view, once the view rests. */
	askView() {
		const { view } = this.timeline;
		const key = `${Math.round(view.t0)} ${Math.round(view.t1)} ${this.timeline.source.ranks}`;
		if (!this.all || key === this.asked)
			return;
		clearTimeout(this.viewTimer);
		this.viewTimer = window.setTimeout(async () => {
			this.asked = key;
			const { joins } = this.timeline.source;
			const range = { t0: Math.max(0, view.t0), t1: view.t1 };
			const [partners, launches, links] = await Promise.all([
				joins.collectives(range).catch(() => []),
				this.timeline.hasQueues() ? joins.launches(range).catch(() => []) : [],
				this.timeline.hasQueues() ? joins.links(range).catch(() => []) : [],
			]);
			this.lines = collectivesOf(partners);
			this.launches = launches;
			this.allLinks = links;
			this.timeline.changed();
		}, REST_MS);
	}
}

/** As a track of a device is named. @param {Launch} launch */
const queueName = ({ queue, device }) => `${queue}, ${device}`.slice(0, 63);

/** @param {Partner[]} partners */
function collectivesOf(partners) {
	/** @type {Map<string, Partner[]>} */
	const sets = new Map();
	for (const one of partners) {
		const key = `${one.group_name} ${one.seq} ${one.op}`;
		sets.set(key, [...(sets.get(key) ?? []), one]);
	}
	return [...sets.values()]
		.filter((set) => set.length > 1)
		.slice(0, LINES_MOST)
		.map((set) => new Collective(set.sort((a, b) => b.arrival_ns - a.arrival_ns)));
}

/**
 * The track of a rank's collectives; without one, its first.
 * @param {Layout} layout
 * @param {number} rank
 */
function trackOf({ tracks }, rank) {
	const own = tracks.filter((track) => track.lane.rank === rank);
	return own.find((track) => track.lane.kind === "collectives") ?? own[0];
}

/**
 * A line from rank to rank through the arrivals, the last one marked.
 * @param {Timeline} timeline
 * @param {Collective} collective
 * @param {Layout} layout
 * @param {boolean} strong with marks and a label
 */
function drawCollective(timeline, { partners, last, late }, layout, strong) {
	const { overInk: ink } = timeline;
	const points = partners
		.map((one) => ({ one, track: trackOf(layout, one.rank) }))
		.filter(({ track }) => track)
		.map(({ one, track }) => ({
			one,
			x: timeline.xOf(one.arrival_ns),
			y: TOP + /** @type {Track} */ (track).y - timeline.scroll + BAR / 2,
		}))
		.sort((a, b) => a.y - b.y);
	if (points.length < 2)
		return;
	ink.globalAlpha = strong ? 1 : 0.45;
	ink.strokeStyle = themed(strong ? "text" : "muted");
	ink.lineWidth = strong ? 1.5 : 1;
	ink.beginPath();
	points.forEach(({ x, y }) => ink.lineTo(x, y));
	ink.stroke();
	ink.globalAlpha = 1;
	if (!strong)
		return;
	ink.strokeStyle = themed("bad");
	ink.setLineDash([4, 3]);
	ink.beginPath();
	ink.moveTo(timeline.xOf(last.arrival_ns), Math.min(...points.map((p) => p.y)));
	ink.lineTo(timeline.xOf(last.arrival_ns), Math.max(...points.map((p) => p.y)));
	ink.stroke();
	ink.setLineDash([]);
	for (const { one, x, y } of points) {
		ink.fillStyle = themed(one === last ? "bad" : "text");
		ink.beginPath();
		ink.arc(x, y, one === last ? 5 : 3, 0, 7);
		ink.fill();
		if (one === last)
			label(timeline, `rank ${one.rank} last, +${duration(late)}`, x + 8, y);
	}
}

/** @param {Timeline} timeline @param {string} text @param {number} x @param {number} y */
function label({ overInk: ink, width }, text, x, y) {
	ink.font = FONT;
	ink.textBaseline = "middle";
	const wide = ink.measureText(text).width;
	const left = Math.min(x, width - wide - 8);
	ink.fillStyle = themed("bg");
	ink.globalAlpha = 0.9;
	ink.fillRect(left - 3, y - 8, wide + 6, 16);
	ink.globalAlpha = 1;
	ink.fillStyle = themed("bad");
	ink.fillText(text, left, y);
}

/**
 * From the launch on its thread to the operation on its queue.
 * @param {Timeline} timeline
 * @param {Launch} launch
 * @param {Layout} layout
 */
function drawArrow(timeline, launch, { tracks }) {
	const host = tracks.find(
		({ lane }) => lane.kind === "thread" && lane.tid === launch.tid && lane.pid === launch.pid,
	);
	const device = tracks.find(
		({ lane }) => lane.kind === "queue" && lane.pid === launch.pid && lane.name === queueName(launch),
	);
	if (!host || !device)
		return;
	const y0 = TOP + host.y + (deepest(timeline, host, launch.queued_ns) + 1) * ROW - timeline.scroll - 1;
	const y1 = TOP + device.y - timeline.scroll;
	drawBent(timeline, timeline.xOf(launch.queued_ns), y0, timeline.xOf(launch.start_ns), y1);
}

/**
 * From the forward operator to the backward one, on threads of one process.
 * @param {Timeline} timeline
 * @param {Link} link
 * @param {Layout} layout
 */
function drawLink(timeline, link, { tracks }) {
	const trackAt = (/** @type {number} */ tid) =>
		tracks.find(({ lane }) => lane.kind === "thread" && lane.tid === tid && lane.pid === link.pid);
	const from = trackAt(link.from_tid);
	const to = trackAt(link.tid);
	if (!from || !to)
		return;
	const y0 = TOP + from.y + (deepest(timeline, from, link.from_ns) + 1) * ROW - timeline.scroll - 1;
	const y1 = TOP + to.y - timeline.scroll + (from === to ? BAR / 2 : 0);
	drawBent(timeline, timeline.xOf(link.from_ns), y0, timeline.xOf(link.to_ns), y1);
}

/**
 * An arrow that leaves and arrives upright.
 * @param {Timeline} timeline
 * @param {number} x0
 * @param {number} y0
 * @param {number} x1
 * @param {number} y1
 */
function drawBent({ overInk: ink, width }, x0, y0, x1, y1) {
	if (Math.max(x0, x1) < GUTTER || Math.min(x0, x1) > width)
		return;
	const bend = Math.max(20, Math.abs(y1 - y0) / 2) * (y1 > y0 ? 1 : -1);
	ink.beginPath();
	ink.moveTo(x0, y0);
	ink.bezierCurveTo(x0, y0 + bend, x1, y1 - bend, x1, y1);
	ink.moveTo(x1 - 3.5, y1 - 6 * Math.sign(bend));
	ink.lineTo(x1, y1);
	ink.lineTo(x1 + 3.5, y1 - 6 * Math.sign(bend));
	ink.stroke();
}

/** The lowest row of a track that has a zone at t. @param {Timeline} timeline @param {Track} track @param {number} t */
function deepest({ source }, { lane, rows }, t) {
	for (let row = rows - 1; row > 0 && source.glance; row--) {
		const zone = source.glance(lane.id, row, t, 0);
		if (zone && zone.start <= t && zone.start + zone.duration >= t)
			return row;
	}
	return source.glance ? 0 : rows - 1;
}

/** All joins, over the picture. @param {Timeline} timeline */
export function drawJoins(timeline) {
	const { joined, overInk: ink } = timeline;
	const strong = [joined.selected, joined.hovered].filter((one) => one !== null);
	const lines = joined.all ? joined.lines : [];
	const arrows = [...joined.arrows, ...(joined.all ? joined.launches.slice(0, ARROWS_MOST) : [])];
	const links = [...joined.links, ...(joined.all ? joined.allLinks : [])].slice(0, ARROWS_MOST);
	if (!strong.length && !lines.length && !arrows.length && !links.length)
		return;
	const layout = layoutOf(timeline);
	ink.save();
	ink.beginPath();
	ink.rect(GUTTER, TOP, timeline.plot, timeline.height - TOP);
	ink.clip();
	for (const one of lines)
		drawCollective(timeline, one, layout, false);
	ink.strokeStyle = themed("accent");
	ink.lineWidth = 1.25;
	for (const one of arrows)
		drawArrow(timeline, one, layout);
	ink.strokeStyle = themed("good");
	for (const one of links)
		drawLink(timeline, one, layout);
	for (const one of strong)
		drawCollective(timeline, one, layout, true);
	ink.restore();
}

/**
 * The ranks of a collective in the details, the last first.
 * @param {Collective} collective
 * @param {(rank: number) => void} onrank
 */
export function collectiveDetails(collective, onrank) {
	const { partners, last } = collective;
	const shown = partners.slice(0, 4);
	const rows = shown.map((one) =>
		el(
			"tr",
			{},
			el("td", {}, el("button", { class: "link", text: `rank ${one.rank}`, onclick: () => onrank(one.rank) })),
			el("td", {
				text: one === last ? "last" : `waited ${duration(last.arrival_ns - one.arrival_ns)} for it`,
			}),
		),
	);
	const more = partners.length - shown.length;
	return el(
		"div",
		{ class: "partners" },
		el("div", { class: "muted", text: `${collective.title()}: ${collective.sentence()}` }),
		el("table", { class: "compact", "aria-label": "Ranks of the collective" }, el("tbody", {}, ...rows)),
		more > 0 ? el("div", { class: "muted", text: `and ${counted(more, "rank")} that came earlier` }) : null,
	);
}
