// A flame graph coloured by change between two sides, A and B: two recordings, or two ranges of one.
import { el } from "./dom.js";
import { duration } from "./format.js";
import { themed } from "./theme.js";

/** @import { Flame, FlamePair } from "./types.js" */

/**
 * @typedef {Object} DifferenceOptions
 * @property {"both"|"a"|"b"} width the side that gives frames their width
 * @property {string} a how the tooltip names side A: "in A"
 * @property {string} b
 * @property {(source: string, name: string, frame: number) => boolean} [sure] whether the change of a frame is
 * significant; all are without it
 * @property {(amount: number) => string} [show] a duration without it
 */

/** @param {number} amount */
const signOf = (amount) => (amount > 0 ? "+" : amount < 0 ? "−" : "±");
/** @param {number} amount @param {(amount: number) => string} [show] */
export const signed = (amount, show = duration) => signOf(amount) + show(Math.abs(amount));

/** @param {string} colour #rrggbb */
const rgbOf = (colour) => [1, 3, 5].map((at) => Number.parseInt(colour.slice(at, at + 2), 16));

/**
 * Relative luminance as WCAG defines it.
 * @param {number[]} rgb
 */
function luminance(rgb) {
	const [r, g, b] = rgb.map((v) => (v / 255 <= 0.04045 ? v / 255 / 12.92 : ((v / 255 + 0.055) / 1.055) ** 2.4));
	return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}

/**
 * A colour between two, and black or white text with a contrast of at least 4.5 to 1.
 * @param {string} from
 * @param {string} to
 * @param {number} by
 */
function blend(from, to, by) {
	const end = rgbOf(to);
	const mixed = rgbOf(from).map((v, i) => Math.round(v + (end[i] - v) * by));
	return [`rgb(${mixed.join(",")})`, luminance(mixed) > 0.179 ? "#000000" : "#ffffff"];
}

/**
 * The tree with a colour for each frame: red where its own time grew, blue where it shrank, grey where it is the same.
 * @param {FlamePair} pair
 * @param {DifferenceOptions} options
 * @returns {Flame}
 */
export function difference(pair, { width, sure = () => true, show = duration, a, b }) {
	const widths = (/** @type {number[]} */ x, /** @type {number[]} */ y) =>
		x.map((v, i) => (width === "a" ? v : width === "b" ? y[i] : (v + y[i]) / 2));
	const ofRoot = (/** @type {number[]} */ list) => list.reduce((sum, v, i) => sum + (pair.parent[i] < 0 ? v : 0), 0);
	const aTotal = [ofRoot(pair.a_total), ...pair.a_total];
	const bTotal = [ofRoot(pair.b_total), ...pair.b_total];
	const aSelf = [0, ...pair.a_self];
	const bSelf = [0, ...pair.b_self];
	const label = ["all threads", ...pair.name];
	const source = ["", ...pair.source];
	const isSure = (/** @type {number} */ node) => sure(source[node], label[node], node - 1);
	const most = aSelf.reduce((top, v, i) => Math.max(top, Math.abs(bSelf[i] - v)), 0);
	// Change of a frame's own time, −1 to 1; 0 if it is small or not significant.
	const shift = (/** @type {number} */ node) => {
		const by = node && isSure(node) ? bSelf[node] - aSelf[node] : 0;
		const strength = Math.sqrt(Math.abs(by) / (most || 1));
		return strength < 0.08 ? 0 : Math.sign(by) * strength;
	};
	const change = (/** @type {number[]} */ from, /** @type {number[]} */ to, /** @type {number} */ node) =>
		signed(to[node] - from[node], show);
	return {
		label,
		source,
		parent: [-1, ...pair.parent.map((p) => p + 1)],
		total: widths(aTotal, bTotal),
		self: widths(aSelf, bSelf),
		unit: "ns",
		paint(node) {
			const by = shift(node);
			return blend(themed("same"), themed(by > 0 ? "more" : "less"), by ? 0.3 + 0.7 * Math.abs(by) : 0);
		},
		caption: (node) => (shift(node) ? `${shift(node) > 0 ? "▲" : "▼"} ${label[node]}` : label[node]),
		note: (node) => change(aTotal, bTotal, node),
		describe(node) {
			const name = source[node] ? `${label[node]} (${source[node]})` : label[node];
			const total = `${show(aTotal[node])} ${a}, ${show(bTotal[node])} ${b}, ${change(aTotal, bTotal, node)}`;
			if (!node)
				return `${name}: ${total}`;
			const self = `${show(aSelf[node])} to ${show(bSelf[node])}, ${change(aSelf, bSelf, node)}`;
			return `${name}: ${total}; self ${self}${isSure(node) ? "" : " (not significant)"}`;
		},
	};
}

const CHANCE_Z = 2.576; // 1 % of the frames that are the same on both sides count as different

/**
 * Whether two counts of events differ by more than chance. If the rate were the same, each event would fall into B with
 * a probability of B's share of the time.
 * @param {number} a
 * @param {number} aTime
 * @param {number} b
 * @param {number} bTime
 */
export function countsDiffer(a, aTime, b, bTime) {
	const share = bTime / (aTime + bTime);
	const all = a + b;
	return all > 0 && Math.abs(b - all * share) > CHANCE_Z * Math.sqrt(all * share * (1 - share));
}

/**
 * Two trees as one: frames with the same path of names are the same.
 * @param {Flame} a
 * @param {number} aScale each amount is multiplied by it
 * @param {Flame} b
 * @param {number} bScale
 * @returns {FlamePair}
 */
export function pairOf(a, aScale, b, bScale) {
	/** @type {FlamePair} */
	const pair = { name: [], source: [], parent: [], a_total: [], b_total: [], a_self: [], b_self: [] };
	/** @type {Map<string, number>} */
	const known = new Map();
	const place = (/** @type {number} */ parent, /** @type {string} */ source, /** @type {string} */ name) => {
		const key = `${parent}\n${source}\n${name}`;
		const found = known.get(key) ?? pair.name.length;
		if (found === pair.name.length) {
			known.set(key, found);
			pair.name.push(name);
			pair.source.push(source);
			pair.parent.push(parent);
			for (const column of [pair.a_total, pair.b_total, pair.a_self, pair.b_self])
				column.push(0);
		}
		return found;
	};
	/** @type {(flame: Flame, scale: number, total: number[], self: number[]) => void} */
	const add = (flame, scale, total, self) => {
		const at = [-1];
		for (let i = 1; i < flame.label.length; i++) {
			at[i] = place(at[flame.parent[i]], flame.source[i], flame.label[i]);
			total[at[i]] += flame.total[i] * scale;
			self[at[i]] += flame.self[i] * scale;
		}
	};
	add(a, aScale, pair.a_total, pair.a_self);
	add(b, bScale, pair.b_total, pair.b_self);
	return pair;
}

/** @param {string} same the meaning of grey */
export function differenceLegend(same) {
	const box = (/** @type {string} */ name, /** @type {string} */ text) => {
		const swatch = el("span", { class: "swatch", "aria-hidden": "true" });
		swatch.style.background = `var(--${name})`;
		return el("span", {}, swatch, text);
	};
	return el(
		"div",
		{ class: "right legend" },
		box("more", "▲ more self time"),
		box("less", "▼ less self time"),
		box("same", same),
	);
}
