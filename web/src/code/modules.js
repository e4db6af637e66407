// Colours of a flame graph by module: the costliest modules have colours of their own, the others share one.
import { el } from "../dom.js";
import { counted, percent } from "../format.js";
import { themed } from "../theme.js";
import { frameOf, moduleOfFile } from "./frames.js";

/** @import { Flame } from "../types.js" */

/** Shades of the theme, the most different ones first; each has a label colour with enough contrast. */
const SHADES = ["c-1", "python-1", "device-1", "torch-1", "line-1", "c-3", "python-3", "device-3", "torch-3", "line-3"];
const LISTED = 8;

/**
 * The module of a frame; "" for a thread.
 * @param {Flame} flame
 * @param {number} node
 */
export function moduleOf(flame, node) {
	const source = flame.source[node];
	if (!source)
		return "";
	if (flame.sampled)
		return frameOf(flame.label[node]).module || source;
	const file = flame.place?.(node)?.file;
	return file && file.includes(".") ? moduleOfFile(file) : source;
}

/**
 * Self time of each module, the costliest first.
 * @param {Flame} flame
 */
export function moduleTimes(flame) {
	/** @type {Map<string, number>} */
	const times = new Map();
	flame.label.forEach((_, node) => {
		const module = moduleOf(flame, node);
		if (module)
			times.set(module, (times.get(module) ?? 0) + flame.self[node]);
	});
	return [...times].sort((a, b) => b[1] - a[1] || a[0].localeCompare(b[0]));
}

/**
 * The same graph, painted by module.
 * @param {Flame} flame
 * @returns {Flame}
 */
export function paintedByModule(flame) {
	const shades = new Map(moduleTimes(flame).map(([module], i) => [module, SHADES[i]]));
	/** @type {Flame} */
	const painted = Object.create(flame);
	painted.paint = (node) => {
		const module = moduleOf(flame, node);
		if (!module)
			return [];
		const shade = shades.get(module);
		return shade ? [themed(shade), themed(`${shade.split("-")[0]}-label`)] : [themed("same"), themed("text")];
	};
	return painted;
}

/** @param {Flame} flame */
export function moduleLegend(flame) {
	const times = moduleTimes(flame);
	const all = times.reduce((sum, [, time]) => sum + time, 0) || 1;
	const item = (/** @type {string} */ name, /** @type {string} */ colour, /** @type {number} */ time) => {
		const box = el("span", { class: "swatch", "aria-hidden": "true" });
		box.style.background = `var(--${colour})`;
		return el("span", { title: `${name}: ${percent(time / all)} self` }, box, name);
	};
	const others = times.slice(SHADES.length).reduce((sum, [, time]) => sum + time, 0);
	return el(
		"div",
		{ class: "legend modules", "aria-label": "Colours of modules" },
		...times.slice(0, LISTED).map(([name, time], i) => item(name, SHADES[i], time)),
		times.length > SHADES.length ? item(counted(times.length - SHADES.length, "other"), "same", others) : null,
	);
}
