// Elements without markup. Names are data, so text is set and never parsed.
import { legendSources, SAMPLE, shadeOf } from "./theme.js";

/**
 * Makes an element. Keys of `props` are attributes; `text` sets its text, `on…` adds a listener.
 * @template {keyof HTMLElementTagNameMap} K
 * @param {K} tag
 * @param {Record<string, any>} [props] null, undefined and false are left out
 * @param {...(Node|string|null|undefined|false)} children
 * @returns {HTMLElementTagNameMap[K]}
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
	for (const child of children) {
		if (child)
			node.append(child);
	}
	return node;
}

/** @param {HTMLCanvasElement} canvas */
export const inkOf = (canvas) => /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));

/**
 * Sizes a canvas to a box in CSS pixels, sharp on screens with more pixels.
 * @param {HTMLCanvasElement} canvas
 * @param {number} width
 * @param {number} height
 */
export function sizeCanvas(canvas, width, height) {
	const scale = window.devicePixelRatio || 1;
	canvas.width = Math.round(width * scale);
	canvas.height = Math.round(height * scale);
	canvas.style.width = `${width}px`;
	canvas.style.height = `${height}px`;
	inkOf(canvas).setTransform(scale, 0, 0, scale, 0, 0);
}

/**
 * Puts a tooltip beside the mouse, inside a box of that size.
 * @param {HTMLElement} tip
 * @param {{x: number, y: number}} mouse
 * @param {{width: number, height: number}} box
 */
export function placeTip(tip, mouse, box) {
	const above = mouse.y + 18 + tip.offsetHeight > box.height;
	tip.style.left = `${Math.max(0, Math.min(mouse.x + 12, box.width - tip.offsetWidth - 8))}px`;
	tip.style.top = `${above ? mouse.y - tip.offsetHeight - 8 : mouse.y + 18}px`;
}

/** @param {string} source @param {string} [name] */
export function swatch(source, name = "") {
	const node = el("span", { class: source === SAMPLE ? "swatch sample" : "swatch", "aria-hidden": "true" });
	node.style.background = `var(--${shadeOf(name, source)})`;
	return node;
}

/**
 * The sources with their colours.
 * @param {boolean} [sampled] zones were made of stack samples
 * @param {string[]} [sources]
 */
export function legend(sampled = false, sources = legendSources([])) {
	const title = "The program marked nothing: functions of stack samples in a row, which begin and end at a sample";
	return el(
		"div",
		{ class: "legend", "aria-label": "Colours of sources" },
		sampled ? el("span", { title }, swatch(SAMPLE), "stack samples") : null,
		...sources.map((source) => el("span", {}, swatch(source), source)),
	);
}

/**
 * A figure: label, value and note.
 * @param {string} label
 * @param {string} value
 * @param {string} note
 * @param {string} [tone] a class of the value
 */
export function figure(label, value, note, tone) {
	return el(
		"div",
		{ class: "figure", title: `${label}: ${value} ${note}`.trim() },
		el("div", { class: "label", text: label }),
		el("span", { class: tone ? `value ${tone}` : "value", text: value }),
		el("span", { class: "note", text: note }),
	);
}

/**
 * The page of a tab without data: what is missing, and the command that records it.
 * @param {string} what
 * @param {string} how
 * @param {string} [command]
 */
export function emptyState(what, how, command) {
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
