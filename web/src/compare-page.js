// The page of `kymo compare -f html`: one tab, and a header and footer for two recordings.
import { baseName } from "./code/frames.js";
import { el } from "./dom.js";
import { count } from "./format.js";
import { completed } from "./document.js";
import { Shell } from "./shell.js";
import { NO_SOURCE } from "./no-source.js";
import { compare } from "./views/compare.js";

/** @import { ComparedRun, Comparison } from "./types.js" */

class CompareShell extends Shell {
	header() {
		const { program, command } = this.comparison().runs[0];
		this.select = el(
			"select",
			{ class: "menu", hidden: true, "aria-label": "View" },
			el("option", { value: "compare", text: "Compare" }),
		);
		this.nav.append(el("span", { class: "tab", id: "tab-compare", role: "tab", text: "Compare" }), this.select);
		return el(
			"header",
			{},
			el("span", { class: "logo", text: "kymo" }),
			el("span", { class: "run", title: command }, el("span", { class: "program", text: program })),
			this.nav,
			...this.buttons(),
		);
	}

	/** @returns {Comparison} */
	comparison() {
		return /** @type {Comparison} */ (this.source.data().compare);
	}

	fillFooter() {
		this.foot.replaceChildren(
			this.zonesOf("a"),
			this.zonesOf("b"),
			el("span", { class: "detail", text: "Written by kymo compare; needs no network" }),
		);
	}

	/**
	 * How many zones one side has, and how many it lost.
	 * @param {"a"|"b"} side
	 */
	zonesOf(side) {
		const runs = this.comparison().runs.filter((run) => run.side === side);
		const sum = (/** @type {"zones"|"zones_lost"} */ key) =>
			runs.reduce((/** @type {number} */ n, /** @type {ComparedRun} */ run) => n + (run[key] ?? 0), 0);
		const lost = sum("zones_lost");
		return el(
			"span",
			{ class: lost ? "warn" : undefined },
			`${side.toUpperCase()} `,
			el("b", { text: count(sum("zones")) }),
			" zones and steps",
			lost ? ` · ▲ ${count(lost)} lost` : " · none lost",
		);
	}
}

/** @param {HTMLElement} root @param {Comparison} doc */
export function showComparison(root, doc) {
	const names = ["a", "b"].map((side) => baseName(doc.runs.find((run) => run.side === side)?.path ?? ""));
	const data = completed({ run: [{ program: names.join(" · "), duration_ns: 0 }], compare: doc });
	new CompareShell(root, { ...NO_SOURCE, data: () => data }, [compare]);
	root.setAttribute("data-ready", "yes");
}
