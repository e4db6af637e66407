// Keys are rows of one list: what `?` shows is what works. None fires while somebody types.
import { el } from "./util.js";

/** @type {[string, string][]} */
export const HELP = [
	["W S, wheel", "zoom in and out at the cursor"],
	["A D, Shift+wheel", "move left and right; drag moves too"],
	["Alt+wheel", "scroll the lanes"],
	["Shift+drag", "select a range of time; every tab obeys it"],
	["F, Z", "show all; show the selected zone or range"],
	["← → ↑ ↓", "previous and next zone in the row, parent and child"],
	["[ ]", "previous and next zone of the same name"],
	["X", "the slowest zone of that name"],
	["Enter", "details"],
	["M", "make the selected zone the range"],
	["/", "find a name; Enter goes to its slowest zone"],
	["Esc", "clear, or go back"],
	["1 – 9", "tabs"],
	["T", "dark and light"],
	["?", "this list"],
];

/** @param {Event} e */
export function typing(e) {
	const target = /** @type {HTMLElement} */ (e.target);
	return target instanceof HTMLElement && (target.matches("input, textarea, select") || target.isContentEditable);
}

/**
 * Keys that are held: zoom and move smoothly.
 * @param {() => any} timeline the one on screen, or null
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
		if (!"wasd".includes(key) || key.length !== 1 || typing(e) || e.ctrlKey || e.metaKey || e.altKey || !timeline())
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
 * The list of keys.
 * @param {[string, string][]} [more] those that only this page has
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
