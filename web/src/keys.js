// Keys: the list that `?` shows, keys that are held, and the test whether someone types.
import { el } from "./dom.js";

/** @import { Timeline } from "./timeline/timeline.js" */

/** @type {[string, string][]} */
export const HELP = [
	["W S, wheel", "zoom in and out at the cursor"],
	["A D, Shift+wheel", "pan left and right; dragging pans, too"],
	["Alt+wheel", "scroll the tracks"],
	["Shift+drag", "select a time range; all tabs then show it"],
	["F", "focus the selected zone or range; again, or without one: the whole run"],
	["Z", "fit the selected zone or range"],
	["← → ↑ ↓", "previous and next zone in the row, parent, first child"],
	["[ ]", "previous and next zone of the same name"],
	["X", "slowest zone of the same name"],
	["Enter", "show details"],
	["L", "show lines between ranks, arrows from launches and from forward to backward, for all in view"],
	["M", "mark the selected zone as the range; all tabs then show it"],
	["/", "find a name; Enter selects its slowest zone"],
	["O", "open the source of the selected zone or frame"],
	["Flame: W S, A D", "zoom to the selected frame and back, neighbours; F zooms, too"],
	["Source: ↑ ↓, [ ], X", "line, previous and next hot line, hottest line; Enter: flame graph"],
	["Esc", "clear the selection, or go back"],
	["1 – 9", "open a tab"],
	["T", "switch the theme"],
	["?", "show this list"],
];

/**
 * Whether the key goes to a field.
 * @param {Event} e
 */
export function typing(e) {
	const { target } = e;
	return target instanceof HTMLElement && (target.matches("input, textarea, select") || target.isContentEditable);
}

/**
 * W, A, S and D zoom and pan for as long as they are held.
 * @param {() => Timeline|null} timeline the one on screen, or null
 */
export function heldKeys(timeline) {
	/** @type {Set<string>} */
	const held = new Set();
	let last = 0;
	const frame = (/** @type {number} */ now) => {
		const one = timeline();
		const dt = Math.min(0.05, (now - last) / 1000);
		last = now;
		if (!one || !held.size) {
			held.clear();
			return;
		}
		const zoom = (held.has("s") ? 1 : 0) - (held.has("w") ? 1 : 0);
		const pan = (held.has("d") ? 1 : 0) - (held.has("a") ? 1 : 0);
		if (zoom)
			one.zoom(Math.exp(3 * dt * zoom));
		if (pan)
			one.pan(900 * dt * pan);
		requestAnimationFrame(frame);
	};
	document.addEventListener("keydown", (e) => {
		const key = e.key.toLowerCase();
		const modified = e.ctrlKey || e.metaKey || e.altKey;
		if (!["w", "a", "s", "d"].includes(key) || modified || typing(e) || !timeline())
			return;
		if (!held.size) {
			last = performance.now();
			requestAnimationFrame(frame);
		}
		held.add(key);
	});
	document.addEventListener("keyup", (e) => held.delete(e.key.toLowerCase()));
	window.addEventListener("blur", () => held.clear());
}

/**
 * The dialog with the list of keys.
 * @param {[string, string][]} [more] keys that only this page has
 */
export function helpDialog(more = []) {
	const dialog = el(
		"dialog",
		{ "aria-label": "Keys" },
		el("b", { text: "Keys" }),
		el(
			"dl",
			{},
			...[...HELP, ...more].flatMap(([key, what]) => [el("dt", { text: key }), el("dd", { text: what })]),
		),
		el("button", { class: "button", text: "Close", onclick: () => dialog.close() }),
	);
	document.body.append(dialog);
	return dialog;
}
