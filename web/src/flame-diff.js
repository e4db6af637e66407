// A flame graph by what changed between two sides, A and B: of two recordings, or of two stretches of one.
import { duration, el, themed } from "./util.js";

/**
 * @typedef {Object} Sides
 * A tree in columns, without a root: parent −1 is one. As `kymo compare -f json` has it.
 * @property {string[]} name
 * @property {string[]} source
 * @property {number[]} parent
 * @property {number[]} a_total
 * @property {number[]} b_total
 * @property {number[]} a_self
 * @property {number[]} b_self
 *
 * @typedef {Object} How
 * @property {"both"|"a"|"b"} width by whose time a frame is wide
 * @property {string} a what is said of A, as "in A"
 * @property {string} b
 * @property {(source: string, name: string, frame: number) => boolean} [sure] whether its change is more than noise;
 * without it all is taken as it is
 * @property {(amount: number) => string} [show] a time unless told
 */

/** @param {number} amount @param {(amount: number) => string} [show] */
export const signed = (amount, show = duration) => (amount > 0 ? "+" : amount < 0 ? "−" : "±") + show(Math.abs(amount));

const parts = (/** @type {string} */ colour) => [1, 3, 5].map((at) => Number.parseInt(colour.slice(at, at + 2), 16));
const bright = (/** @type {number[]} */ rgb) => {
	const [r, g, b] = rgb.map((v) => (v / 255 <= 0.04045 ? v / 255 / 12.92 : ((v / 255 + 0.055) / 1.055) ** 2.4));
	return 0.2126 * r + 0.7152 * g + 0.0722 * b;
};

/**
 * Between two colours, and the ink that is read best on it: never below 4.5 to 1.
 * @param {string} from
 * @param {string} to
 * @param {number} by
 */
function blend(from, to, by) {
	const a = parts(from);
	const b = parts(to);
	const mixed = a.map((v, i) => Math.round(v + (b[i] - v) * by));
	return [`rgb(${mixed.join(",")})`, bright(mixed) > 0.179 ? "#000000" : "#ffffff"];
}

/**
 * The tree with a colour for each frame: red where its own time grew, blue where it shrank, grey where it is the same.
 * @param {Sides} of
 * @param {How} how
 * @returns {import("./source.js").Flame}
 */
export function difference(of, { width, sure = () => true, show = duration, a, b }) {
	const both = (/** @type {number[]} */ x, /** @type {number[]} */ y) =>
		x.map((v, i) => (width === "a" ? v : width === "b" ? y[i] : (v + y[i]) / 2));
	const tops = (/** @type {number[]} */ list) => list.reduce((sum, v, i) => sum + (of.parent[i] < 0 ? v : 0), 0);
	const aTotal = [tops(of.a_total), ...of.a_total];
	const bTotal = [tops(of.b_total), ...of.b_total];
	const aSelf = [0, ...of.a_self];
	const bSelf = [0, ...of.b_self];
	const label = ["all threads", ...of.name];
	const source = ["", ...of.source];
	let most = 0;
	for (let i = 1; i < label.length; i++)
		most = Math.max(most, Math.abs(bSelf[i] - aSelf[i]));
	// How its own time changed: 0 where that is nothing, or cannot be told from noise.
	const shift = (/** @type {number} */ node) => {
		const by = node && sure(source[node], label[node], node - 1) ? bSelf[node] - aSelf[node] : 0;
		const strength = Math.sqrt(Math.abs(by) / (most || 1));
		return strength < 0.08 ? 0 : Math.sign(by) * strength;
	};
	return {
		label,
		source,
		parent: [-1, ...of.parent.map((p) => p + 1)],
		total: both(aTotal, bTotal),
		self: both(aSelf, bSelf),
		unit: "ns",
		paint(node) {
			const by = shift(node);
			return blend(themed("same"), themed(by > 0 ? "more" : "less"), by ? 0.3 + 0.7 * Math.abs(by) : 0);
		},
		caption: (node) => (shift(node) ? `${shift(node) > 0 ? "▲" : "▼"} ${label[node]}` : label[node]),
		note: (node) => signed(bTotal[node] - aTotal[node], show),
		describe(node) {
			const own = node
				? `; itself ${show(aSelf[node])} to ${show(bSelf[node])}, ${signed(bSelf[node] - aSelf[node], show)}`
				: "";
			const doubt = node && !sure(source[node], label[node], node - 1) ? " (cannot be told from noise)" : "";
			return `${label[node]}${source[node] ? ` (${source[node]})` : ""}: ${show(aTotal[node])} ${a}, ${show(bTotal[node])} ${b}, ${signed(bTotal[node] - aTotal[node], show)}${own}${doubt}`;
		},
	};
}

const CHANCE_Z = 2.576; // of 100 frames that are the same in both, one is taken for different

/**
 * Whether two counts, made over two lengths of time, differ by more than chance: were the rate the same, each of all of
 * them would fall
 * into the second with its share of the time.
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
 * Two trees as one: frames of the same names above them are the same.
 * @param {import("./source.js").Flame} a
 * @param {number} aBy each amount times that
 * @param {import("./source.js").Flame} b
 * @param {number} bBy
 * @returns {Sides}
 */
export function sides(a, aBy, b, bBy) {
	/** @type {Sides} */ const of = {
		name: [],
		source: [],
		parent: [],
		a_total: [],
		b_total: [],
		a_self: [],
		b_self: [],
	};
	/** @type {Map<string, number>} */ const known = new Map();
	const place = (/** @type {number} */ parent, /** @type {string} */ source, /** @type {string} */ name) => {
		const key = `${parent}\n${source}\n${name}`;
		const found = known.get(key) ?? of.name.length;
		if (found === of.name.length) {
			known.set(key, found);
			of.name.push(name);
			of.source.push(source);
			of.parent.push(parent);
			for (const column of [of.a_total, of.b_total, of.a_self, of.b_self])
				column.push(0);
		}
		return found;
	};
	const add = (
		/** @type {import("./source.js").Flame} */ flame,
		/** @type {number} */ by,
		/** @type {number[]} */ total,
		/** @type {number[]} */ self,
	) => {
		const at = [-1];
		for (let i = 1; i < flame.label.length; i++) {
			at[i] = place(at[flame.parent[i]], flame.source[i], flame.label[i]);
			total[at[i]] += flame.total[i] * by;
			self[at[i]] += flame.self[i] * by;
		}
	};
	add(a, aBy, of.a_total, of.a_self);
	add(b, bBy, of.b_total, of.b_self);
	return of;
}

/** @param {string} same what grey stands for */
export function differenceLegend(same) {
	const box = (/** @type {string} */ name, /** @type {string} */ text) => {
		const swatch = el("span", { class: "swatch", "aria-hidden": "true" });
		swatch.style.background = `var(--${name})`;
		return el("span", {}, swatch, text);
	};
	return el(
		"div",
		{ class: "right legend" },
		box("more", "▲ more itself"),
		box("less", "▼ less itself"),
		box("same", same),
	);
}
