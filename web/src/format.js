// Values as text: durations, counts, bytes, shares, parameters of an address.

/** @import { Range } from "./types.js" */

/** @type {[number, string][]} */
const UNITS = [
	[1, "ns"],
	[1e3, "µs"],
	[1e6, "ms"],
	[1e9, "s"],
];
const HOUR_NS = 36e11;

/**
 * Three significant digits.
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
	if (size >= HOUR_NS)
		return `${digits(ns / HOUR_NS)} h`;
	let unit = UNITS[0];
	for (const one of UNITS) {
		if (size >= one[0] * 0.9995)
			unit = one;
	}
	return unit[0] === 1 ? `${Math.round(ns)} ns` : `${digits(ns / unit[0])} ${unit[1]}`;
}

/**
 * The length of a run: 4:34. By the rule of format_clock(), which writes the figures beside it.
 * @param {number} ns
 */
export function clock(ns) {
	if (ns < 59.95e9)
		return duration(ns);
	const seconds = Math.round(ns / 1e9);
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
 * 1 zone, 2,048 zones.
 * @param {number} value
 * @param {string} noun
 */
export const counted = (value, noun) => `${count(value)} ${noun}${value === 1 ? "" : "s"}`;

/**
 * Decimal units: 2.97 GB.
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
 * A share as a percentage: 16 %.
 * @param {number|null|undefined} share
 */
export function percent(share) {
	if (share === null || share === undefined || !Number.isFinite(share))
		return "–";
	const value = share * 100;
	const size = Math.abs(value);
	if (!size)
		return "0 %";
	if (size < 0.005)
		return "< 0.01 %";
	return `${value.toFixed(size >= 9.95 ? 0 : size >= 0.995 ? 1 : 2)} %`;
}

/** @param {Range} range */
export const rangeText = (range) => `${duration(range.t0)} – ${duration(range.t1)}`;

/**
 * A value of a metric with its unit.
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

/** A figure in a sentence, with its unit: not a digit of a path, a name or a version, and not the number of a rank. */
const BEFORE_FIGURE = /(?<![\w.,/:@=\\-])(?<!\b[Rr]anks? [\d, –-]*(?:and )?)/;
const NUMBER = /\d+(?:,\d{3})*(?:\.\d+)?(?: ?(?:%|[nµm]?s\b|min\b|h\b|[kMGT]?B\b))?(?![\w/]|[.,:-]\w)/;
const FIGURE = new RegExp(`(${BEFORE_FIGURE.source}${NUMBER.source})`);

/**
 * A sentence cut at its figures, which are the items with odd numbers.
 * @param {string} text
 */
export const cutAtFigures = (text) => text.split(FIGURE);

/**
 * Parameters of an address, with the question mark.
 * @param {Record<string, any>} params null and undefined are left out
 */
export function queryText(params) {
	const given = Object.entries(params).filter(([, value]) => value !== null && value !== undefined);
	return given.length ? `?${given.map(([key, value]) => `${key}=${encodeURIComponent(value)}`).join("&")}` : "";
}
