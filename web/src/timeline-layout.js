// Where things are in the timeline: sizes in pixels, lanes and counters with their places, names that fit, ticks of the
// ruler.

/** @typedef {import("./timeline.js").Timeline} Timeline */

export const GUTTER = 132;
export const ROW = 16;
export const GAP = 9;
export const RULER = 22;
export const MINIMAP = 26;
export const SERIES = 49;
export const TOP = RULER + MINIMAP;
export const FONT = '11px system-ui, "Segoe UI", Roboto, "DejaVu Sans", sans-serif';
/** A name that has not come yet. */
export const UNKNOWN = { name: "", source: "c", file: "", line: 0 };

/**
 * Lanes and series with their places; y counts from the first lane.
 * @param {Timeline} timeline
 */
export function placesOf(timeline) {
	/** @type {{lane?: any, series?: any, y: number, height: number, rows: number}[]} */
	const places = [];
	let y = 4;
	for (const lane of timeline.meta.lanes) {
		if (timeline.only !== null && lane.id !== timeline.only)
			continue;
		const rows = timeline.folded.has(lane.id) ? 1 : Math.max(1, lane.rows);
		const height = Math.max(rows * ROW, 2 * ROW) + GAP;
		places.push({ lane, y, height, rows });
		y += height;
	}
	for (const series of timeline.only === null ? timeline.series : []) {
		places.push({ series, y, height: SERIES, rows: 0 });
		y += SERIES;
	}
	timeline.content = y;
	return places;
}

/**
 * The name, or its last part, or a cut one; measured once per name.
 * @param {Timeline} timeline
 * @param {number} id
 * @param {number} room
 */
export function fitted(timeline, id, room) {
	let known = timeline.widths.get(id);
	const name = timeline.meta.names[id]?.name ?? "";
	if (!known && name) {
		const tail = name.split(/::|\./).pop() || name;
		known = { whole: timeline.ink.measureText(name).width, text: tail };
		timeline.widths.set(id, known);
	}
	if (!known || known.whole <= room)
		return name;
	const each = known.whole / Math.max(1, name.length);
	const fits = Math.floor(room / each);
	if (known.text.length <= fits)
		return known.text;
	return fits >= 5 ? `${known.text.slice(0, fits - 1)}…` : "";
}

/**
 * Resident memory and the program's own counters, under the lanes.
 * @param {Record<string, any>} data
 */
export function seriesOf(data) {
	const wanted = (data.series ?? []).filter((/** @type {any} */ s) => s.timeline).slice(0, 12);
	return wanted.map((/** @type {any} */ s) => ({
		...s,
		min: Math.min(...s.low),
		max: Math.max(...s.high),
		last: s.high[s.high.length - 1],
	}));
}

/** @param {number} span @param {number} pixels */
export function tickStep(span, pixels) {
	const raw = span / Math.max(2, pixels / 135);
	const power = 10 ** Math.floor(Math.log10(raw));
	return [1, 2, 5, 10].map((n) => n * power).find((n) => n >= raw) ?? power * 10;
}

/** @param {number} t @param {number} step */
export function tickLabel(t, step) {
	const [size, unit] =
		step >= 1e9
			? [1e9, "s"]
			: step >= 1e6 && t >= 1e9
				? [1e9, "s"]
				: step >= 1e6
					? [1e6, "ms"]
					: step >= 1e3
						? [1e3, "µs"]
						: [1, "ns"];
	const places = Math.max(0, Math.ceil(-Math.log10(step / Number(size))));
	return `${(t / Number(size)).toLocaleString("en-US", { minimumFractionDigits: places, maximumFractionDigits: places })} ${unit}`;
}
