// The mouse in the timeline: wheel, drags, clicks, and the tooltip.
import { el, placeTip } from "../dom.js";
import { count, duration } from "../format.js";
import { drawOver } from "./draw.js";
import { GUTTER, layoutOf, MINIMAP, ROW, TOP, UNKNOWN } from "./layout.js";

/** @import { Name, Zone } from "../types.js" */
/** @import { Timeline } from "./timeline.js" */

/** @typedef {{x: number, y: number}} Point */
/** @typedef {"gutter"|"map"|"range"|"pan"} DragKind */
/** @typedef {Point & {t0: number, t1: number, scroll: number, kind: DragKind, moved: boolean}} Drag */

/**
 * @param {Timeline} timeline
 * @param {Point} at
 * @param {boolean} [single] of a merged piece, its longest zone
 */
async function zoneAt(timeline, { x, y }, single = true) {
	if (x < GUTTER || y < TOP)
		return null;
	const at = y - TOP + timeline.scroll;
	const track = layoutOf(timeline).tracks.find((one) => at >= one.y && at < one.y + one.rows * ROW);
	if (!track)
		return null;
	const row = Math.floor((at - track.y) / ROW);
	const t = timeline.timeAt(x);
	const slack = 2 * timeline.nsPerPixel;
	const { source } = timeline;
	return source.glance && !single
		? source.glance(track.lane.id, row, t, slack)
		: source.zone(track.lane.id, row, t, slack);
}

/** @param {Timeline} timeline @param {WheelEvent} e @param {number} x */
function wheel(timeline, e, x) {
	const amount = e.deltaY || e.deltaX;
	e.preventDefault();
	if (e.altKey || x < GUTTER)
		timeline.scrollTo(timeline.scroll + amount);
	else if (e.shiftKey || Math.abs(e.deltaX) > Math.abs(e.deltaY))
		timeline.pan(amount);
	else
		timeline.zoom(Math.exp(Math.max(-1, Math.min(1, amount / 300))), x);
}

/** @param {Point} at @param {boolean} shift @returns {DragKind} */
function dragKind(at, shift) {
	if (at.x < GUTTER)
		return "gutter";
	if (at.y < MINIMAP)
		return "map";
	return shift ? "range" : "pan";
}

/** @param {Timeline} timeline */
export function listen(timeline) {
	/** @type {Drag|null} */
	let drag = null;
	const canvas = timeline.picture;
	const place = (/** @type {MouseEvent} */ e) => {
		const box = canvas.getBoundingClientRect();
		return { x: e.clientX - box.left, y: e.clientY - box.top };
	};
	canvas.addEventListener("wheel", (e) => wheel(timeline, e, place(e).x), { passive: false });
	canvas.addEventListener("pointerdown", (e) => {
		const at = place(e);
		canvas.setPointerCapture(e.pointerId);
		const kind = dragKind(at, e.shiftKey);
		drag = { ...at, ...timeline.view, scroll: timeline.scroll, kind, moved: false };
		if (kind === "map")
			centre(timeline, at.x);
	});
	canvas.addEventListener("pointermove", (e) => {
		const mouse = place(e);
		timeline.mouse = mouse;
		if (drag) {
			drag.moved ||= Math.abs(mouse.x - drag.x) + Math.abs(mouse.y - drag.y) > 3;
			dragTo(timeline, drag, mouse);
		} else {
			hover(timeline);
		}
		drawOver(timeline);
	});
	canvas.addEventListener("pointerup", (e) => {
		const was = drag;
		drag = null;
		if (was)
			drop(timeline, was, place(e));
	});
	canvas.addEventListener("pointerleave", () => {
		timeline.mouse = null;
		timeline.hovered = null;
		timeline.joined.hover(null, () => {});
		timeline.tip.hidden = true;
		drawOver(timeline);
	});
	canvas.addEventListener("dblclick", async (e) => {
		const zone = await zoneAt(timeline, place(e));
		if (zone)
			timeline.reveal(zone, true);
	});
}

/** @param {Timeline} timeline @param {number} x in the minimap */
function centre(timeline, x) {
	const half = (timeline.view.t1 - timeline.view.t0) / 2;
	const at = ((x - GUTTER) / timeline.plot) * timeline.meta.end;
	timeline.show(at - half, at + half);
}

/** @param {Timeline} timeline @param {Drag} drag @param {Point} mouse */
function dragTo(timeline, drag, mouse) {
	if (drag.kind === "map")
		centre(timeline, mouse.x);
	if (drag.kind === "pan") {
		const by = ((mouse.x - drag.x) * (drag.t1 - drag.t0)) / timeline.plot;
		timeline.show(drag.t0 - by, drag.t1 - by);
		timeline.scrollTo(drag.scroll - (mouse.y - drag.y));
	}
	if (drag.kind === "range") {
		const a = timeline.timeAt(drag.x);
		const b = timeline.timeAt(mouse.x);
		timeline.range = { t0: Math.max(0, Math.min(a, b)), t1: Math.max(a, b) };
	}
}

/** @param {Timeline} timeline @param {Drag} drag @param {Point} at */
async function drop(timeline, drag, at) {
	if (drag.moved) {
		if (drag.kind === "range" && timeline.range)
			timeline.hooks.onrange(timeline.range);
	} else if (drag.kind === "gutter") {
		fold(timeline, at.y);
	} else if (drag.kind === "pan") {
		timeline.select(await zoneAt(timeline, at));
	}
}

/** @param {Timeline} timeline @param {number} y */
function fold(timeline, y) {
	const at = y - TOP + timeline.scroll;
	const { tracks, groups } = layoutOf(timeline);
	const group = groups.find((one) => at >= one.y && at < one.y + one.height);
	const track = tracks.find((one) => at >= one.y && at < one.y + one.height);
	if (group && !timeline.foldedRanks.delete(group.rank))
		timeline.foldedRanks.add(group.rank);
	if (group)
		timeline.changed();
	if (!track)
		return;
	if (!timeline.folded.delete(track.lane.id))
		timeline.folded.add(track.lane.id);
	timeline.changed();
}

/** @param {Zone} zone @param {Name} name */
function tipNote(zone, name) {
	if (zone.n > 1)
		return `${count(zone.n)} zones; the name is that of the longest`;
	if (zone.open)
		return "open: has not ended";
	const place = name.file ? ` · ${name.file}${name.line ? `:${name.line}` : ""}` : "";
	return `at ${duration(zone.start)}${place}`;
}

/** @param {Timeline} timeline */
async function hover(timeline) {
	const { mouse, tip } = timeline;
	if (!mouse)
		return;
	const zone = await zoneAt(timeline, mouse, false);
	if (timeline.mouse !== mouse)
		return;
	timeline.hovered = zone;
	tip.hidden = !zone;
	const name = (zone && timeline.meta.names[zone.name]) || UNKNOWN;
	timeline.joined.hover(zone, () => {
		const found = timeline.joined.hovered;
		tip.append(found ? el("div", { class: "more", text: found.sentence() }) : "");
		placeTip(tip, timeline.mouse ?? mouse, timeline);
		drawOver(timeline);
	});
	drawOver(timeline);
	if (!zone)
		return;
	tip.replaceChildren(
		el("span", { text: `${name.name} (${name.source}) ${duration(zone.duration)}` }),
		el("div", { class: "more", text: tipNote(zone, name) }),
	);
	placeTip(tip, mouse, timeline);
}
