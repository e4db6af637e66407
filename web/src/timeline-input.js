// The mouse in the timeline: wheel, drags, clicks, and what it points at.
import { drawOver } from "./timeline-draw.js";
import { GUTTER, MINIMAP, placesOf, ROW, TOP, UNKNOWN } from "./timeline-layout.js";
import { clear, count, duration, el } from "./util.js";

/** @typedef {import("./timeline.js").Timeline} Timeline */

/**
 * @param {Timeline} timeline
 * @param {number} x
 * @param {number} y
 * @param {boolean} [exact] of a merged piece, its longest zone
 */
async function zoneAt(timeline, x, y, exact = true) {
	if (x < GUTTER || y < TOP)
		return null;
	const at = y - TOP + timeline.scroll;
	const place = placesOf(timeline).find((p) => p.lane && at >= p.y && at < p.y + p.rows * ROW);
	if (!place)
		return null;
	const row = Math.floor((at - place.y) / ROW);
	const t = timeline.timeAt(x);
	const slack = 2 * timeline.nsPerPixel;
	return timeline.source.glance && !exact
		? timeline.source.glance(place.lane.id, row, t, slack)
		: timeline.source.zone(place.lane.id, row, t, slack);
}

/** @param {Timeline} timeline */
export function listen(timeline) {
	/** @type {{x: number, y: number, t0: number, t1: number, scroll: number, kind: string, moved: boolean}|null} */
	let drag = null;
	const canvas = timeline.picture;
	const place = (/** @type {MouseEvent} */ e) => {
		const box = canvas.getBoundingClientRect();
		return { x: e.clientX - box.left, y: e.clientY - box.top };
	};
	canvas.addEventListener(
		"wheel",
		(/** @type {WheelEvent} */ e) => {
			e.preventDefault();
			const amount = e.deltaY || e.deltaX;
			const { x } = place(e);
			if (e.altKey || x < GUTTER)
				timeline.scrollTo(timeline.scroll + amount);
			else if (e.shiftKey || Math.abs(e.deltaX) > Math.abs(e.deltaY))
				timeline.pan(amount);
			else
				timeline.zoom(Math.exp(Math.max(-1, Math.min(1, amount / 300))), x);
		},
		{ passive: false },
	);
	canvas.addEventListener("pointerdown", (/** @type {PointerEvent} */ e) => {
		const at = place(e);
		canvas.setPointerCapture(e.pointerId);
		const kind = at.x < GUTTER ? "gutter" : at.y < MINIMAP ? "map" : e.shiftKey ? "range" : "pan";
		drag = { ...at, ...timeline.view, scroll: timeline.scroll, kind, moved: false };
		if (kind === "map")
			centre(timeline, at.x);
	});
	canvas.addEventListener("pointermove", (/** @type {PointerEvent} */ e) => {
		timeline.mouse = place(e);
		if (drag) {
			drag.moved ||= Math.abs(timeline.mouse.x - drag.x) + Math.abs(timeline.mouse.y - drag.y) > 3;
			dragged(timeline, drag);
		} else {
			hover(timeline);
		}
		drawOver(timeline);
	});
	canvas.addEventListener("pointerup", async (/** @type {PointerEvent} */ e) => {
		const was = drag;
		const at = place(e);
		drag = null;
		if (was?.kind === "range" && timeline.range && was.moved)
			timeline.hooks.onrange(timeline.range);
		if (was && !was.moved && was.kind === "gutter")
			fold(timeline, at.y);
		if (was && !was.moved && was.kind === "pan")
			timeline.select(await zoneAt(timeline, at.x, at.y));
	});
	canvas.addEventListener("pointerleave", () => {
		timeline.mouse = null;
		timeline.hovered = null;
		timeline.tip.hidden = true;
		drawOver(timeline);
	});
	canvas.addEventListener("dblclick", async (/** @type {MouseEvent} */ e) => {
		const at = place(e);
		const zone = await zoneAt(timeline, at.x, at.y);
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

/**
 * @param {Timeline} timeline
 * @param {{x: number, y: number, t0: number, t1: number, scroll: number, kind: string}} drag
 */
function dragged(timeline, drag) {
	const mouse = /** @type {{x: number, y: number}} */ (timeline.mouse);
	const scale = (drag.t1 - drag.t0) / timeline.plot;
	if (drag.kind === "map")
		centre(timeline, mouse.x);
	if (drag.kind === "pan") {
		timeline.show(drag.t0 - (mouse.x - drag.x) * scale, drag.t1 - (mouse.x - drag.x) * scale);
		timeline.scrollTo(drag.scroll - (mouse.y - drag.y));
	}
	if (drag.kind === "range") {
		const a = timeline.timeAt(drag.x);
		const b = timeline.timeAt(mouse.x);
		timeline.range = { t0: Math.max(0, Math.min(a, b)), t1: Math.max(a, b) };
	}
}

/** @param {Timeline} timeline @param {number} y */
function fold(timeline, y) {
	const place = placesOf(timeline).find(
		(p) => p.lane && y - TOP + timeline.scroll >= p.y && y - TOP + timeline.scroll < p.y + p.height,
	);
	if (!place)
		return;
	if (!timeline.folded.delete(place.lane.id))
		timeline.folded.add(place.lane.id);
	timeline.changed();
}

/** @param {Timeline} timeline */
async function hover(timeline) {
	const mouse = timeline.mouse;
	if (!mouse)
		return;
	const zone = await zoneAt(timeline, mouse.x, mouse.y, false);
	if (timeline.mouse !== mouse)
		return;
	timeline.hovered = zone;
	timeline.tip.hidden = !zone;
	drawOver(timeline);
	if (!zone)
		return;
	const one = timeline.meta.names[zone.name] ?? UNKNOWN;
	clear(timeline.tip);
	timeline.tip.append(
		el("span", { text: `${one.name} (${one.source}) ${duration(zone.duration)}` }),
		el("div", {
			class: "more",
			text:
				zone.n > 1
					? `${count(zone.n)} zones, the longest has this name`
					: zone.open
						? "open: it has not ended"
						: `at ${duration(zone.start)}${one.file ? ` · ${one.file}${one.line ? `:${one.line}` : ""}` : ""}`,
		}),
	);
	timeline.tip.style.left = `${Math.min(mouse.x + 12, timeline.width - timeline.tip.offsetWidth - 8)}px`;
	timeline.tip.style.top = `${mouse.y + 18 + timeline.tip.offsetHeight > timeline.height ? mouse.y - timeline.tip.offsetHeight - 8 : mouse.y + 18}px`;
}
