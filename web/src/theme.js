// Colours of the theme, for canvases: theme.css defines them as custom properties.

/** Sources of zones; each has three shades and a label colour. */
export const SOURCES = ["c", "python", "line", "torch", "device", "itt", "nvtx", "op", "xla"];
/** Those of a legend: the usual ones, and of the others those that are there. @param {Iterable<string>} present */
export function legendSources(present) {
	const there = new Set(present);
	return SOURCES.filter((source, i) => i < 5 || there.has(source));
}
/** The source of zones that a report makes of stack samples: paler, with an edge, since their times are not exact. */
export const SAMPLE = "sample";

/**
 * FNV-1a.
 * @param {string} name
 */
function hash(name) {
	let value = 0x811c9dc5;
	for (let i = 0; i < name.length; i++)
		value = Math.imul(value ^ name.charCodeAt(i), 0x01000193);
	return value >>> 0;
}

/** @type {Map<string, string>} */
let variables = new Map();

/**
 * The value of a custom property. Reading one from the style is slow, so each is read once.
 * @param {string} name
 */
export function themed(name) {
	let value = variables.get(name);
	if (value === undefined) {
		value = getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
		variables.set(name, value);
	}
	return value;
}

/** The theme has changed. */
export function forgetTheme() {
	variables = new Map();
}

/** Sources that share the colours of another: they are in tracks of their own. @type {Record<string, string>} */
const ALIKE = {
	collective: "line",
	wait: "torch",
	launch: "python",
	kernel: "device",
	copy: "device",
	host: "c",
	mark: "c",
};

/** @param {string} source */
const known = (source) => ALIKE[source] ?? (source === SAMPLE || SOURCES.includes(source) ? source : "c");

/**
 * The property with the colour of a region; its name picks one of three shades.
 * @param {string} name
 * @param {string} source
 */
export const shadeOf = (name, source) => `${known(source)}-${(hash(name) % 3) + 1}`;
/** @param {string} name @param {string} source */
export const fillOf = (name, source) => themed(shadeOf(name, source));
/** @param {string} source */
export const labelOf = (source) => themed(`${known(source)}-label`);
