// The page of `kymo compare -f html`: one tab, and a frame that speaks of two recordings.
import { Shell } from "./shell.js";
import { count, el } from "./util.js";
import { compare } from "./views/compare.js";

class CompareShell extends Shell {
	header() {
		const { runs } = this.source.data().compare;
		const one = runs[0];
		const button = (/** @type {string} */ label, /** @type {string} */ text, /** @type {() => void} */ onclick) =>
			el("button", { class: "button", "aria-label": label, title: label, text, onclick });
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
			el("span", { class: "run", title: one.command }, el("span", { class: "program", text: one.program })),
			this.nav,
			button("Dark or light", "◐", () => this.toggleTheme()),
			button("Keys", "?", () => this.help.showModal()),
		);
	}

	/** What each side lost: a comparison of holes is none. */
	losses() {
		const { runs } = this.source.data().compare;
		return [
			...["a", "b"].map((side) => {
				const mine = runs.filter((/** @type {any} */ r) => r.side === side);
				const sum = (/** @type {string} */ key) =>
					mine.reduce((/** @type {number} */ n, /** @type {any} */ r) => n + (r[key] ?? 0), 0);
				const lost = sum("zones_lost");
				return el(
					"span",
					{ class: lost ? "warn" : undefined },
					`${side.toUpperCase()} `,
					el("b", { text: count(sum("zones")) }),
					" zones and steps",
					lost ? ` · ▲ ${count(lost)} lost` : " · none lost",
				);
			}),
			el("span", { class: "detail", text: "Made by kymo compare; opens offline" }),
		];
	}

	fillFooter() {
		this.foot.replaceChildren(...this.losses());
	}
}

/** @param {HTMLElement} root @param {any} doc */
export function showComparison(root, doc) {
	new CompareShell(root, { data: () => ({ compare: doc, run: { program: doc.runs[0].program } }) }, [compare]);
	root.setAttribute("data-ready", "yes");
}
