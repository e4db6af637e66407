// Numbers as people read them, and DOM without markup: names are data, so text is set, never parsed.

const UNITS = [
	[1, "ns"],
	[1e3, "µs"],
	[1e6, "ms"],
	[1e9, "s"],
];

/**
 * Three digits:
 * @param {number} value
 */
function digits(value) {
	const size = Math.abs(value);
	return value.toFixed(size >= 99.95 || value === 0 ? 0 : size >= 9.995 ? 1 : 2);
}

/**
 * 84.9 µs.
 * @param {number|null|undefined} ns
 */
export function duration(ns) {
	if (ns === null || ns === undefined || Number.isNaN(ns))
		return "–";
	const size = Math.abs(ns);
	if (size >= 36e11)
		return `${digits(ns / 36e11)} h`;
	let unit = UNITS[0];
	for (const one of UNITS)
		if (size >= one[0] * 0.9995)
			unit = one;
	return unit[0] === 1 ? `${Math.round(ns)} ns` : `${digits(ns / unit[0])} ${unit[1]}`;
}

/**
 * 4:34 for a run.
 * @param {number} ns
 */
export function clock(ns) {
	const seconds = Math.floor(ns / 1e9);
	if (seconds < 60)
		return duration(ns);
	const two = (/** @type {number} */ n) => String(n).padStart(2, "0");
	const hours = Math.floor(seconds / 3600);
	const minutes = Math.floor(seconds / 60) % 60;
	return hours ? `${hours}:${two(minutes)}:${two(seconds % 60)}` : `${minutes}:${two(seconds % 60)}`;
}

/**
 * 20,787.
 * @param {number|null|undefined} value
 */
export function count(value) {
	return value === null || value === undefined ? "–" : Math.round(value).toLocaleString("en-US");
}

/**
 * Decimal: 2.97 GB.
 * @param {number|null|undefined} value
 */
export function bytes(value) {
	if (value === null || value === undefined)
		return "–";
	const units = ["B", "kB", "MB", "GB", "TB"];
	let at = 0;
	let left = value;
	while (Math.abs(left) >= 999.5 && at < units.length - 1) {
		left /= 1000;
		at++;
	}
	return at ? `${digits(left)} ${units[at]}` : `${Math.round(left)} B`;
}

/**
 * Of a share: 16 %.
 * @param {number|null|undefined} share
 */
export function percent(share) {
	if (share === null || share === undefined || !Number.isFinite(share))
		return "–";
	const value = share * 100;
	const size = Math.abs(value);
	return `${size >= 9.95 ? value.toFixed(0) : size >= 0.995 ? value.toFixed(1) : size ? value.toFixed(2) : "0"} %`;
}

/** @param {{t0: number, t1: number}} range */
export const rangeText = (range) => `${duration(range.t0)} – ${duration(range.t1)}`;

/**
 * A value of a metric by its unit.
 * @param {number|null|undefined} value
 * @param {string} unit
 */
export function measure(value, unit) {
	if (value === null || value === undefined)
		return "–";
	if (unit === "bytes")
		return bytes(value);
	if (unit === "bytes/s")
		return `${bytes(value)}/s`;
	if (unit === "%")
		return `${digits(value)} %`;
	const size = Math.abs(value);
	return size && (size < 0.001 || size >= 1e6) ? value.toPrecision(3) : String(Number(value.toPrecision(4)));
}

/**
 * An element. Attributes by name; `text` for its text, `class`, and on… for listeners.
 * @param {string} tag
 * @param {Record<string, any>} [props]
 * @param {...(Node|string|null|undefined|false)} children
 * @returns {any}
 */
export function el(tag, props = {}, ...children) {
	const node = document.createElement(tag);
	for (const [key, value] of Object.entries(props)) {
		if (value === undefined || value === null || value === false)
			continue;
		if (key === "text")
			node.textContent = value;
		else if (key.startsWith("on"))
			node.addEventListener(key.slice(2), value);
		else
			node.setAttribute(key, value === true ? "" : String(value));
	}
	for (const child of children)
		if (child)
			node.append(child);
	return node;
}

/** @param {Element} node */
export function clear(node) {
	node.replaceChildren();
}

export const SOURCES = ["c", "python", "line", "torch", "device"];

/**
 * FNV-1a; picks one of three shades.
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
 * A custom property of the theme; canvases read it.
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

export function forgetTheme() {
	variables = new Map();
}

/** @param {string} source */
const known = (source) => (SOURCES.includes(source) ? source : "c");
/** @param {string} name @param {string} source */
export const fillOf = (name, source) => themed(`${known(source)}-${(hash(name) % 3) + 1}`);
/** @param {string} source */
export const labelOf = (source) => themed(`${known(source)}-label`);

/** @param {string} source @param {string} [name] */
export function swatch(source, name = "") {
	const node = el("span", { class: "swatch", "aria-hidden": "true" });
	node.style.background = `var(--${known(source)}-${(hash(name) % 3) + 1})`;
	return node;
}

/** The words beside the colours. */
export function legend() {
	return el(
		"div",
		{ class: "legend", "aria-label": "Colours of sources" },
		...SOURCES.map((source) => el("span", {}, swatch(source), source)),
	);
}

/**
 * A page for what was not recorded.
 * @param {string} what
 * @param {string} how
 * @param {string} [command]
 */
export function nothing(what, how, command) {
	return el(
		"div",
		{ class: "page" },
		el(
			"div",
			{ class: "nothing" },
			el("b", { text: what }),
			el("span", { text: how }),
			command ? el("p", {}, el("code", { text: command })) : null,
		),
	);
}
