// The frame around the views: header, tabs, footer and the address. The address holds the tab, the range and the
// selection, so back, forward and copied links work.
import { el } from "./dom.js";
import { clock, count, duration, percent, queryText, rangeText } from "./format.js";
import { RankPicker } from "./job/picker.js";
import { cleanRanks, ranksOf } from "./job/ranks.js";
import { heldKeys, helpDialog, typing } from "./keys.js";
import { forgetTheme } from "./theme.js";

/** @import { App, Range, Run, RunDocument, Source, Tab, View } from "./types.js" */

const RANGES_KEPT = 6;
const FOCUSABLE = "a, button, input, select, [tabindex], summary";
/** @type {Record<number, string>} */
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
export const signalName = (signal) => (typeof signal === "number" ? (SIGNALS[signal] ?? `signal ${signal}`) : signal);

/**
 * The state of a run as a class and a text.
 * @param {Run} run
 */
export function stateOf(run) {
	const length = clock(run.duration_ns);
	if (run.state === "live" || run.state === "running")
		return ["live", `● live ${length}`];
	if (run.state === "hung")
		return ["warn", `? no rows for 10 s ${length}`];
	if (run.signal)
		return ["bad", `✕ killed by ${signalName(run.signal)} ${length}`];
	if (run.exit_code !== null && run.exit_code !== undefined)
		return [run.exit_code ? "bad" : "", `exit ${run.exit_code} ${length}`];
	return run.state === "lost" ? ["warn", `? lost ${length}`] : ["", `${run.state} ${length}`];
}

/** @returns {"dark"|"light"|null} null where storage is closed, as in some files that are opened from disk */
function storedTheme() {
	try {
		return /** @type {"dark"|"light"|null} */ (localStorage.getItem("kymo-theme"));
	} catch {
		return null;
	}
}

/** @param {"dark"|"light"} theme */
function storeTheme(theme) {
	try {
		localStorage.setItem("kymo-theme", theme);
	} catch {
		// not kept
	}
}

function wantsDark() {
	const stored = storedTheme();
	return stored ? stored === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
}

export class Shell {
	/** @param {HTMLElement} root @param {Source} source @param {Tab[]} tabs */
	constructor(root, source, tabs) {
		this.root = root;
		this.source = source;
		this.tabs = tabs;
		/** The live viewer; null in a report. @type {App|null} */ this.app = null;
		/** @type {Range|null} */ this.range = null;
		/** Ranges that were selected, the newest first. @type {Range[]} */ this.ranges = [];
		/** The chosen ranks, "0,3,8-15"; "": all. */
		this.ranks = "";
		/** @type {Record<string, string>} */ this.query = {};
		/** @type {Tab|undefined} */ this.tab = undefined;
		/** @type {View|null} */ this.view = null;
		this.dark = wantsDark();
		document.documentElement.classList.toggle("dark", this.dark);
		this.live = el("div", { class: "sr", "aria-live": "polite", role: "status" });
		this.main = el("main", { id: "main", tabindex: "-1" });
		this.nav = el("nav", { role: "tablist", "aria-label": "Views" });
		this.select = el("select");
		this.run = this.runNode();
		this.picker = new RankPicker(this);
		this.chip = el("button", { class: "button chip", hidden: true, onclick: () => this.setRange(null) });
		this.help = helpDialog(this.moreHelp());
		this.foot = el("footer");
		/** A pointer button is down; whether an update waits for its release. */
		this.pressed = false;
		this.updateWaits = false;
		root.replaceChildren(this.header(), this.main, this.foot, this.live);
		this.fillFooter();
		this.listen();
		this.route();
	}

	listen() {
		window.addEventListener("hashchange", () => this.route());
		document.addEventListener("keydown", (e) => this.key(e));
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
	}

	toggleTheme() {
		this.dark = !this.dark;
		document.documentElement.classList.toggle("dark", this.dark);
		storeTheme(this.dark ? "dark" : "light");
		forgetTheme();
		this.open();
	}

	header() {
		this.fillNav();
		this.fillRun();
		const logo = el("span", { class: "logo", text: "kymo" });
		return el("header", {}, logo, this.run, this.nav, this.picker.node, this.chip, ...this.buttons());
	}

	buttons() {
		const button = (
			/** @type {string} */ label,
			/** @type {string} */ key,
			/** @type {string} */ text,
			/** @type {() => void} */ onclick,
		) => el("button", { class: "button", "aria-label": label, title: `${label} (${key})`, text, onclick });
		return [
			button("Switch theme", "T", "◐", () => this.toggleTheme()),
			button("Keys", "?", "?", () => this.help.showModal()),
		];
	}

	shownTabs() {
		return this.tabs.filter((t) => !t.hidden && (t.only?.(this.source) ?? true));
	}

	/** Tabs; a narrow window shows them as a menu. */
	fillNav() {
		const shown = this.shownTabs();
		this.select = el(
			"select",
			{ class: "menu", "aria-label": "View", hidden: !shown.length, onchange: () => this.go(this.select.value) },
			...shown.map((t) => el("option", { value: t.id, text: t.title })),
		);
		this.nav.replaceChildren(...shown.map((tab) => this.tabButton(tab)), this.select);
	}

	/** @param {Tab} tab */
	tabButton(tab) {
		const button = el("button", {
			class: `tab${tab.has(this.source) ? "" : " empty"}`,
			role: "tab",
			id: `tab-${tab.id}`,
			text: tab.title,
		});
		button.addEventListener("click", (e) => {
			this.go(tab.id);
			// After a click by mouse, Space and arrows belong to the view.
			if (e.detail)
				button.blur();
		});
		return button;
	}

	/**
	 * The name of the run in the header; a click does nothing in a report.
	 * @returns {HTMLElement}
	 */
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
		const { run } = this.source.data();
		const [kind, text] = stateOf(run);
		const ranks = ranksOf(this.source).length;
		const one = (run.ranks ?? 0) > 1 && (run.rank ?? -1) >= 0 ? ` · rank ${run.rank} of ${run.ranks}` : "";
		const rank = ranks > 1 ? ` · ${count(ranks)} ranks` : one;
		this.run.title = run.command ?? "";
		this.run.replaceChildren(
			el("span", { class: "program", text: run.program + rank }),
			el("span", { class: `pill ${kind}`, text }),
		);
	}

	/** Lost rows, overhead and clock. */
	fillFooter() {
		const { losses, overhead_pct: overhead, run, zones } = this.source.data();
		this.foot.replaceChildren(
			this.rowsLink(losses),
			el(
				"a",
				{ href: this.hash("streams"), class: overhead !== null && overhead > 2 ? "warn" : undefined },
				"Overhead ",
				el("b", { text: overhead === null ? "not measured" : percent(overhead / 100) }),
				overhead === null ? "" : " of the run",
			),
			run.clock ? el("span", {}, "Clock ", el("b", { text: clockText(run) })) : "",
			el("span", { class: "detail", text: zones.detail, title: zones.detail }),
		);
	}

	/** @param {RunDocument["losses"]} losses */
	rowsLink(losses) {
		const lost = (losses.overwritten ?? 0) + (losses.dropped ?? 0) > 0;
		const lostText = lost
			? ` · ▲ ${count(losses.overwritten)} overwritten · ${count(losses.dropped)} dropped`
			: " · none lost";
		return el(
			"a",
			{ href: this.hash("streams"), class: lost ? "warn" : undefined, title: "Recorded and lost rows" },
			"Rows ",
			el("b", { text: count(losses.kept) }),
			" kept of ",
			el("b", { text: count(losses.emitted) }),
			losses.emitted === undefined ? "" : lostText,
		);
	}

	/**
	 * The address of a tab.
	 * @param {string} id
	 * @param {Record<string, string|number|undefined>} [query]
	 */
	hash(id, query = {}) {
		const range = this.range ? { t0: Math.round(this.range.t0), t1: Math.round(this.range.t1) } : {};
		const ranks = this.ranks ? { ranks: this.ranks } : {};
		return `#/${id}${queryText({ ...range, ...ranks, ...query })}`;
	}

	/** @param {string} id @param {Record<string, string|number|undefined>} [query] */
	go(id, query = {}) {
		const hash = this.hash(id, query);
		if (location.hash === hash)
			this.route();
		else
			location.hash = hash;
	}

	/** @param {Range|null} range */
	setRange(range) {
		this.range = range;
		this.go(this.tab?.id ?? "overview");
	}

	/** @param {string} ranks "0,3,8-15"; "": all */
	setRanks(ranks) {
		const { t0: _, t1: __, ranks: ___, ...rest } = this.query;
		this.ranks = ranks;
		this.go(this.tab?.id ?? "overview", rest);
	}

	route() {
		const [, id = "", text = ""] = /^#\/(?:[^/?]+\/)?([a-z]*)\??(.*)$/.exec(location.hash) ?? [];
		this.query = Object.fromEntries(new URLSearchParams(text));
		const t0 = Number(this.query.t0);
		const t1 = Number(this.query.t1);
		this.range = this.query.t1 !== undefined && t1 > t0 ? { t0, t1 } : null;
		if (this.range) {
			const others = this.ranges.filter((one) => one.t0 !== t0 || one.t1 !== t1);
			this.ranges = [this.range, ...others].slice(0, RANGES_KEPT);
		}
		this.ranks = cleanRanks(this.query.ranks ?? "");
		this.source.setRanks(this.ranks);
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
		this.picker.fill();
		this.main.replaceChildren();
		this.view = this.tab?.open(this) ?? null;
		if (this.view && !this.view.node.isConnected)
			this.main.append(this.view.node);
		document.title = this.title();
	}

	/** Names the recording, as several pages may be open. */
	title() {
		const { run, recording } = this.source.data();
		return [this.tab?.title, run.program, recording, "kymo"].filter(Boolean).join(" · ");
	}

	/** The document is newer: fills header, footer and view again, and keeps focus and scroll position. */
	renew() {
		this.fillRun();
		this.fillFooter();
		document.title = this.title();
		this.picker.fill();
		if (this.nav.querySelectorAll(".tab").length !== this.shownTabs().length)
			this.renewNav();
		for (const tab of this.tabs)
			document.getElementById(`tab-${tab.id}`)?.classList.toggle("empty", !tab.has(this.source));
		// An element that is replaced between press and release gets no click, so the update waits.
		if (this.view?.update)
			this.view.update();
		else if (this.pressed)
			this.updateWaits = true;
		else
			this.reopen();
	}

	/** Tabs have come with the document. */
	renewNav() {
		this.fillNav();
		document.getElementById(`tab-${this.tab?.id}`)?.setAttribute("aria-selected", "true");
		this.select.value = this.tab?.id ?? "";
	}

	reopen() {
		const focusable = () => [.../** @type {NodeListOf<HTMLElement>} */ (this.main.querySelectorAll(FOCUSABLE))];
		const at = focusable().indexOf(/** @type {HTMLElement} */ (document.activeElement));
		const { scrollTop } = this.main;
		const opened = [...this.main.querySelectorAll("details")].map((one) => one.open);
		this.open();
		this.main.querySelectorAll("details").forEach((one, i) => {
			one.open = opened[i] ?? false;
		});
		this.main.scrollTop = scrollTop;
		if (at >= 0)
			focusable()[at]?.focus({ preventScroll: true });
	}

	/** Called after the click. */
	released() {
		this.pressed = false;
		if (this.updateWaits) {
			this.updateWaits = false;
			this.renew();
		}
	}

	/**
	 * For screen readers.
	 * @param {string} text
	 */
	announce(text) {
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
		const shown = this.shownTabs();
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

/** @param {Run} run */
function clockText(run) {
	const error = run.clock_error_ns ?? -1;
	return `${run.clock === "tsc" ? "TSC" : run.clock}${error >= 0 ? ` ±${duration(error)}` : ""}`;
}
