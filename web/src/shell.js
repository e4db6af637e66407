// Header, tabs, footer and the address: what surrounds the views. The address holds the tab, the range and what is
// selected, so that back, forward and copied links work.
import { heldKeys, helpDialog, typing } from "./keys.js";
import { clear, clock, count, duration, el, forgetTheme, percent, rangeText } from "./util.js";

/**
 * @typedef {Object} View
 * @property {Element} node
 * @property {() => void} [close]
 * @property {(e: KeyboardEvent) => boolean} [key] true: taken
 * @property {any} [timeline]
 * @property {() => void} [update] the document is newer; without it the view is opened again
 *
 * @typedef {Object} Tab
 * @property {string} id
 * @property {string} title
 * @property {boolean} [hidden] reached by a link only
 * @property {(source: any) => boolean} has
 * @property {(shell: Shell) => View} open
 */

const RANGES = 6; // that are remembered
const SIGNALS = {
	1: "SIGHUP",
	2: "SIGINT",
	3: "SIGQUIT",
	4: "SIGILL",
	6: "SIGABRT",
	7: "SIGBUS",
	8: "SIGFPE",
	9: "SIGKILL",
	11: "SIGSEGV",
	13: "SIGPIPE",
	15: "SIGTERM",
};

/** @param {number|string} signal */
export const signalName = (signal) =>
	typeof signal === "number" ? /** @type {any} */ ((SIGNALS)[signal] ?? `signal ${signal}`) : signal;

/**
 * How the run ended, in a word and a colour.
 * @param {any} run
 */
export function pillOf(run) {
	if (run.state === "live" || run.state === "running")
		return ["live", `● live ${clock(run.duration_ns)}`];
	if (run.state === "hung")
		return ["warn", `? no row for 10 s ${clock(run.duration_ns)}`];
	if (run.signal)
		return ["bad", `✕ killed by ${signalName(run.signal)} ${clock(run.duration_ns)}`];
	if (run.exit_code === null || run.exit_code === undefined)
		return [
			run.state === "lost" ? "warn" : "",
			`${run.state === "lost" ? "? " : ""}${run.state} ${clock(run.duration_ns)}`,
		];
	return [run.exit_code ? "bad" : "", `exit ${run.exit_code} ${clock(run.duration_ns)}`];
}

export class Shell {
	/** @param {HTMLElement} root @param {any} source @param {Tab[]} tabs */
	constructor(root, source, tabs) {
		this.root = root;
		this.source = source;
		this.tabs = tabs;
		/** @type {import("./source.js").Range} */ this.range = null;
		/** Those that were selected, the newest first. @type {{t0: number, t1: number}[]} */ this.ranges = [];
		/** @type {Record<string, string>} */ this.query = {};
		/** @type {View|null} */ this.view = null;
		this.dark = this.wantsDark();
		document.documentElement.classList.toggle("dark", this.dark);
		this.live = el("div", { class: "sr", "aria-live": "polite", role: "status" });
		this.main = el("main", { id: "main", tabindex: "-1" });
		this.nav = el("nav", { role: "tablist", "aria-label": "Views" });
		this.chip = el("button", { class: "button chip", hidden: true, onclick: () => this.setRange(null) });
		this.help = helpDialog(this.moreHelp());
		this.foot = el("footer");
		root.replaceChildren(this.header(), this.main, this.foot, this.live);
		this.fillFooter();
		window.addEventListener("hashchange", () => this.route());
		document.addEventListener("keydown", (e) => this.key(e));
		this.pressed = this.late = false;
		document.addEventListener(
			"pointerdown",
			() => {
				this.pressed = true;
			},
			true,
		);
		for (const end of ["pointerup", "pointercancel"])
			document.addEventListener(end, () => setTimeout(() => this.released()), true);
		heldKeys(() => this.view?.timeline ?? null);
		this.route();
	}

	wantsDark() {
		try {
			const kept = localStorage.getItem("kymo-theme");
			if (kept)
				return kept === "dark";
		} catch {
			// a file opened where storage is closed: the system's wish then
		}
		return matchMedia("(prefers-color-scheme: dark)").matches;
	}

	toggleTheme() {
		this.dark = !this.dark;
		document.documentElement.classList.toggle("dark", this.dark);
		try {
			localStorage.setItem("kymo-theme", this.dark ? "dark" : "light");
		} catch {
			// not remembered, then
		}
		forgetTheme();
		this.open();
	}

	header() {
		this.run = this.runNode();
		this.fillNav();
		this.fillRun();
		return el(
			"header",
			{},
			el("span", { class: "logo", text: "kymo" }),
			this.run,
			this.nav,
			this.chip,
			el("button", {
				class: "button",
				"aria-label": "Dark or light",
				title: "Dark or light (T)",
				text: "◐",
				onclick: () => this.toggleTheme(),
			}),
			el("button", {
				class: "button",
				"aria-label": "Keys",
				title: "Keys (?)",
				text: "?",
				onclick: () => this.help.showModal(),
			}),
		);
	}

	/** Tabs; in a narrow window a menu of them. */
	fillNav() {
		const shown = this.tabs.filter((t) => !t.hidden);
		this.select = el(
			"select",
			{
				class: "menu",
				"aria-label": "View",
				hidden: !shown.length,
				onchange: (/** @type {any} */ e) => this.go(e.target.value),
			},
			...shown.map((t) => el("option", { value: t.id, text: t.title })),
		);
		this.nav.replaceChildren(
			...shown.map((tab) =>
				el("button", {
					class: `tab${tab.has(this.source) ? "" : " empty"}`,
					role: "tab",
					id: `tab-${tab.id}`,
					text: tab.title,
					onclick: (/** @type {MouseEvent} */ e) => {
						this.go(tab.id);
						if (e.detail)
							// by mouse: Space and arrows are the view's then
							/** @type {HTMLElement} */
								(e.currentTarget).blur();
					},
				}),
			),
			this.select,
		);
	}

	/** What a click on the run does: nothing in a file. */
	runNode() {
		return el("span", { class: "run" });
	}
	/**
	 * Keys that only some pages have.
	 * @returns {[string, string][]}
	 */
	moreHelp() {
		return [];
	}

	fillRun() {
		const run = this.source.data().run;
		const [kind, said] = pillOf(run);
		this.run.title = run.command ?? "";
		this.run.replaceChildren(
			el("span", {
				class: "program",
				text: run.program + (run.rank >= 0 && run.ranks > 1 ? ` · rank ${run.rank} of ${run.ranks}` : ""),
			}),
			el("span", { class: `pill ${kind}`, text: said }),
		);
	}

	/** Losses and overhead, always. */
	fillFooter() {
		const { losses, overhead_pct: overhead, run, zones } = this.source.data();
		const known = losses.emitted !== undefined;
		const lost = losses.overwritten + losses.dropped > 0;
		const slow = overhead > 2;
		this.foot.replaceChildren(
			el(
				"a",
				{
					href: this.hash("streams"),
					class: lost ? "warn" : undefined,
					title: "What was recorded and what was lost",
				},
				"Rows ",
				el("b", { text: count(losses.kept) }),
				" kept of ",
				el("b", { text: count(losses.emitted) }),
				!known
					? ""
					: lost
						? ` · ▲ ${count(losses.overwritten)} overwritten · ${count(losses.dropped)} dropped`
						: " · none lost",
			),
			el(
				"a",
				{ href: this.hash("streams"), class: slow ? "warn" : undefined },
				"Overhead ",
				el("b", { text: overhead === null ? "not measured" : percent(overhead / 100) }),
				overhead === null ? "" : " of the run",
			),
			run.clock
				? el(
						"span",
						{},
						"Clock ",
						el("b", {
							text: `${run.clock === "tsc" ? "TSC" : run.clock}${run.clock_error_ns >= 0 ? ` ±${duration(run.clock_error_ns)}` : ""}`,
						}),
					)
				: "",
			el("span", { class: "detail", text: zones.detail, title: zones.detail }),
		);
	}

	/**
	 * The address of a tab.
	 * @param {string} id
	 * @param {Record<string, string|number>} [query]
	 */
	hash(id, query = {}) {
		const parts = Object.entries({
			...(this.range ? { t0: Math.round(this.range.t0), t1: Math.round(this.range.t1) } : {}),
			...query,
		});
		return `#/${id}${parts.length ? `?${parts.map(([k, v]) => `${k}=${encodeURIComponent(v)}`).join("&")}` : ""}`;
	}

	/** @param {string} id @param {Record<string, string|number>} [query] */
	go(id, query = {}) {
		const hash = this.hash(id, query);
		if (location.hash === hash)
			this.route();
		else
			location.hash = hash;
	}

	/** @param {import("./source.js").Range} range */
	setRange(range) {
		this.range = range;
		this.go(this.tab?.id ?? "overview");
	}

	route() {
		const [, id = "", text = ""] = /^#\/(?:[^/?]+\/)?([a-z]*)\??(.*)$/.exec(location.hash) ?? [];
		this.query = Object.fromEntries(new URLSearchParams(text));
		const t0 = Number(this.query.t0);
		const t1 = Number(this.query.t1);
		this.range = this.query.t1 !== undefined && t1 > t0 ? { t0, t1 } : null;
		if (this.range)
			this.ranges = [this.range, ...this.ranges.filter((one) => one.t0 !== t0 || one.t1 !== t1)].slice(0, RANGES);
		this.tab = this.tabs.find((t) => t.id === id) ?? this.tabs[0];
		this.open();
	}

	open() {
		this.view?.close?.();
		this.chip.hidden = !this.range;
		this.chip.textContent = this.range ? `${rangeText(this.range)} ✕` : "";
		this.chip.setAttribute("aria-label", `Clear the range ${this.chip.textContent}`);
		for (const button of this.nav.querySelectorAll(".tab"))
			button.setAttribute("aria-selected", String(button.id === `tab-${this.tab?.id}`));
		this.select.value = this.tab?.id ?? "";
		clear(this.main);
		this.view = this.tab?.open(this) ?? null;
		if (this.view && !this.view.node.isConnected)
			this.main.append(this.view.node);
		document.title = `${this.tab?.title} · ${this.source.data().run.program} · kymo`;
	}

	/** The document is newer: figures, footer and view, with the focus and the place where they were. */
	renew() {
		this.fillRun();
		this.fillFooter();
		for (const tab of this.tabs)
			document.getElementById(`tab-${tab.id}`)?.classList.toggle("empty", !tab.has(this.source));
		if (this.view?.update) {
			this.view.update();
			return;
		}
		if (this.pressed) {
			// a click on what is replaced between its two halves would be none
			this.late = true;
			return;
		}
		const focusable = "a, button, input, select, [tabindex], summary";
		const at = [...this.main.querySelectorAll(focusable)].indexOf(/** @type {any} */ (document.activeElement));
		const { scrollTop } = this.main;
		const opened = [...this.main.querySelectorAll("details")].map((one) => one.open);
		this.open();
		this.main.querySelectorAll("details").forEach((one, i) => {
			one.open = opened[i] ?? false;
		});
		this.main.scrollTop = scrollTop;
		if (at >= 0) /** @type {any} */
			(this.main.querySelectorAll(focusable)[at])?.focus({ preventScroll: true });
	}

	/** After the click itself. */
	released() {
		this.pressed = false;
		if (this.late) {
			this.late = false;
			this.renew();
		}
	}

	/**
	 * Reads it out.
	 * @param {string} text
	 */
	say(text) {
		this.live.textContent = text;
	}

	/** @param {KeyboardEvent} e */
	key(e) {
		if (e.key === "Escape" && typing(e)) {
			/** @type {HTMLElement} */ (e.target).blur();
			return;
		}
		if (typing(e) || e.ctrlKey || e.metaKey || e.altKey || document.querySelector("dialog[open]"))
			return;
		if (this.view?.key?.(e)) {
			e.preventDefault();
			return;
		}
		const shown = this.tabs.filter((t) => !t.hidden);
		const number = Number(e.key);
		if (number >= 1 && number <= shown.length)
			this.go(shown[number - 1].id);
		else if (e.key === "t" || e.key === "T")
			this.toggleTheme();
		else if (e.key === "?")
			this.help.showModal();
		else if (e.key === "Escape" && this.range)
			this.setRange(null);
	}
}
