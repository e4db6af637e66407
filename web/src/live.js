// The live viewer: waits for programs, shows one at a time, and keeps showing it when it ends.
import { getJson, listen } from "./api.js";
import { el } from "./dom.js";
import { clock } from "./format.js";
import { typing } from "./keys.js";
import { NO_SOURCE } from "./no-source.js";
import { isLive, runDialog } from "./runs.js";
import { Shell, signalName, stateOf } from "./shell.js";
import { LiveSource } from "./source-live.js";
import { GUTTER } from "./timeline/layout.js";
import { compare } from "./views/compare-live.js";
import { devices } from "./views/devices.js";
import { flame } from "./views/flame.js";
import { memory } from "./views/memory.js";
import { metrics } from "./views/metrics.js";
import { overview } from "./views/overview.js";
import { ranks } from "./views/ranks.js";
import { source as sourceTab } from "./views/source.js";
import { sql } from "./views/sql.js";
import { stacks } from "./views/stacks.js";
import { streams } from "./views/streams.js";
import { timeline } from "./views/timeline.js";
import { torch } from "./views/torch.js";
import { wait } from "./views/wait.js";

/** @import { Source, Target, TargetList } from "./types.js" */
/** @import { StateEvent } from "./source-live.js" */

const TABS = [
	overview,
	timeline,
	ranks,
	flame,
	sourceTab,
	memory,
	metrics,
	torch,
	devices,
	compare,
	sql,
	stacks,
	streams,
];
const REFRESH_MS = 2500;
const SILENT_MS = 5000;
const NOTICE_MS = 12000;

/** The id of a recording in the address. */
const idInAddress = () => /^#\/([^/?]+)\//.exec(location.hash)?.[1] ?? "";

/** Header, tabs and footer around the recording that is open. */
class LiveShell extends Shell {
	runNode() {
		return el("button", {
			class: "run",
			type: "button",
			"aria-haspopup": "dialog",
			"aria-label": "Choose a recording",
			onclick: () => this.app?.runs.show(),
		});
	}

	/** @returns {[string, string][]} */
	moreHelp() {
		return [
			["Space", "follow the end of a running program, or stop"],
			["R", "list programs and recordings"],
			["Ctrl+Enter", "run the SQL"],
			["Ctrl+Space", "complete a name in SQL"],
			["Ctrl+↑ ↓", "earlier and later SQL"],
		];
	}

	fillRun() {
		const { target, running, now } = this.source;
		if (!target) {
			this.run.replaceChildren(el("span", { class: "program", text: "no recording yet" }));
			return;
		}
		super.fillRun();
		const [kind, text] = stateOf(running && now ? { ...target, duration_ns: this.source.now?.() ?? 0 } : target);
		this.run.setAttribute("aria-label", `Choose a recording; this is ${target.program}, ${text}`);
		this.run.querySelector(".pill")?.replaceWith(el("span", { class: `pill ${kind}`, text }));
	}

	fillFooter() {
		if (this.source.target) {
			super.fillFooter();
			this.fillDelay();
			return;
		}
		const about = this.app?.about;
		this.foot.replaceChildren();
		if (about)
			this.foot.append(
				el("span", {}, "Listening on ", el("b", { text: about.address })),
				el("span", {}, "Watching ", el("b", { text: about.directory })),
				el("span", { class: "right", text: `kymo ${about.version}` }),
			);
	}

	/** The time from the end of a zone to its picture, while the program runs. */
	fillDelay() {
		const delay = this.source.running ? (this.source.delay?.() ?? null) : null;
		const text = delay === null ? [] : ["Delay ", el("b", { text: `${Math.round(delay)} ms` })];
		this.foot.querySelector(".detail")?.replaceChildren(...text);
	}

	/** @param {string} id @param {Record<string, string|number|undefined>} [query] */
	hash(id, query) {
		return super.hash(this.source.id ? `${this.source.id}/${id}` : id, query);
	}

	route() {
		const id = idInAddress();
		if (this.app && id && id !== this.source.id)
			this.app.open(id);
		else
			super.route();
	}

	/** @param {Source} source */
	show(source) {
		this.view?.close?.();
		this.view = null;
		this.source = source;
		this.ranges = [];
		this.tabs = source.target ? TABS : [wait];
		this.fillNav();
		this.fillRun();
		this.fillFooter();
		this.route();
	}
}

class LiveApp {
	/** @param {HTMLElement} root */
	constructor(root) {
		this.root = root;
		/** @type {Target[]} */ this.targets = [];
		/** @type {TargetList|null} */ this.about = null;
		/** @type {LiveSource|null} */ this.source = null;
		/** Closes the connection to /api/tail. @type {() => void} */ this.stop = () => {};
		/** Ids of the programs that this page has listed. @type {Set<string>} */ this.known = new Set();
		/** @type {HTMLElement|null} */ this.gone = null;
		/** @type {HTMLElement|null} */ this.noticeNode = null;
		/** performance.now() of the last event. */
		this.heardAt = 0;
		this.runs = runDialog(
			() => this.targets,
			() => this.source?.id ?? null,
			(id) => this.open(id),
		);
		this.shell = new LiveShell(root, NO_SOURCE, [wait]);
		this.shell.app = this;
		document.addEventListener("keydown", (e) => this.key(e));
		setInterval(() => this.tick(), 1000);
		this.begin();
	}

	/** @param {KeyboardEvent} e */
	key(e) {
		const modified = e.ctrlKey || e.metaKey || e.altKey;
		if (e.key.toLowerCase() !== "r" || modified || typing(e) || document.querySelector("dialog[open]"))
			return;
		e.preventDefault();
		this.runs.show();
	}

	async begin() {
		try {
			/** @type {TargetList} */
			const list = await getJson("targets");
			this.list(list);
			const id = idInAddress();
			const first =
				this.targets.find((t) => t.id === id) ??
				this.targets.find((t) => t.id === list.named) ??
				this.targets.find(isLive);
			if (first)
				await this.open(first.id);
		} catch {
			this.serverThere(false);
		}
		if (!this.source)
			this.wait();
		this.root.setAttribute("data-ready", "yes");
	}

	/** Nothing to show; an event of the tail lists programs when there are any. */
	wait() {
		this.stop();
		this.source = null;
		this.stop = listen("tail", {}, { targets: (data) => this.list(data) }, (there) => this.serverThere(there));
		this.shell.show(NO_SOURCE);
	}

	/** @param {TargetList} data */
	list(data) {
		const fresh = data.targets.filter((t) => isLive(t) && !this.known.has(t.id));
		this.about = data;
		this.targets = data.targets;
		for (const target of fresh)
			this.known.add(target.id);
		if (this.runs.dialog.open)
			this.runs.fill();
		if (this.source)
			this.listBeside(this.source, fresh);
		else
			this.listWaiting(fresh);
	}

	/** @param {Target[]} fresh programs that have started */
	listWaiting(fresh) {
		this.shell.view?.update?.();
		this.shell.fillFooter();
		if (fresh.length && this.root.hasAttribute("data-ready"))
			this.open(fresh[0].id);
	}

	/** @param {LiveSource} source that is open @param {Target[]} fresh */
	listBeside(source, fresh) {
		const same = this.targets.find((t) => t.id === source.id);
		if (same)
			Object.assign(source.target, same, { state: source.target.state });
		if (fresh.length && !fresh.some((t) => t.id === source.id))
			this.notice("", `${fresh[0].program} has started`, { text: "Open it", act: () => this.open(fresh[0].id) });
	}

	/** @param {string} id */
	async open(id) {
		const target = this.targets.find((t) => t.id === id);
		if (!target) {
			this.notice("warn", "This recording no longer exists. Choose another one (R).", null);
			return;
		}
		const source = new LiveSource({ ...target });
		this.stop();
		this.source = source;
		source.ondata = () => {
			if (this.source === source)
				this.shell.renew();
		};
		this.hear(source);
		try {
			await source.load();
			source.prefetch(Math.max(1, innerWidth - GUTTER));
		} catch (why) {
			const retry = { text: "Try again", act: () => this.open(id) };
			this.notice("bad", /** @type {Error} */ (why).message, retry);
		}
		if (this.source !== source)
			return;
		if (idInAddress() !== id) {
			const tab = this.shell.source.target ? (this.shell.tab?.id ?? "overview") : "overview";
			window.history.replaceState(null, "", `#/${id}/${tab}`);
		}
		this.shell.show(source);
		this.keepFresh(source);
	}

	/**
	 * Connects to the events of a source.
	 * @param {LiveSource} source
	 */
	hear(source) {
		/** @type {<T>(act: (data: T) => void) => (data: T) => void} */
		const heard = (act) => (data) => {
			this.heardAt = performance.now();
			act(data);
		};
		this.stop();
		this.heardAt = performance.now();
		this.stop = listen(
			"tail",
			{ target: source.id },
			{
				rows: heard((data) => source.rows(/** @type {any} */ (data))),
				state: heard((data) => this.stateChanged(source, /** @type {StateEvent} */ (data))),
				targets: heard((data) => this.list(/** @type {TargetList} */ (data))),
			},
			(there) => this.serverThere(there),
		);
	}

	/** @param {LiveSource} source */
	async keepFresh(source) {
		while (this.source === source) {
			const began = performance.now();
			const ran = source.running;
			if (!document.hidden || !source.read)
				await source.refresh();
			if (!ran && source.read && !source.behind)
				return; // it will not change any more
			const cost = performance.now() - began;
			await new Promise((done) => setTimeout(done, Math.min(2 * REFRESH_MS, Math.max(REFRESH_MS, cost))));
		}
	}

	/** @param {LiveSource} source @param {StateEvent} state */
	stateChanged(source, state) {
		const ran = source.running;
		source.state(state);
		this.shell.fillRun();
		this.shell.fillFooter();
		if (!ran || source.running)
			return;
		this.noticeEnd(source.target.program, state);
		this.shell.view?.update?.();
		source.refresh();
	}

	/** @param {string} program @param {StateEvent} state */
	noticeEnd(program, state) {
		const after = clock(state.duration_ns ?? 0);
		if (state.signal) {
			const text = `✕ ${program} was killed by ${signalName(state.signal)} after ${after}.`;
			this.notice("bad", `${text} All recorded rows are kept.`, {
				text: "Open zones",
				act: () => this.shell.go("overview"),
			});
		} else if (state.state === "lost") {
			this.notice("warn", `${program} is gone after ${after}; its exit status is unknown.`, null);
		} else {
			const status =
				state.exit_code === null || state.exit_code === undefined ? "an unknown status" : state.exit_code;
			this.notice("", `${program} exited with ${status} after ${after}.`, null);
		}
	}

	/** @param {boolean} there */
	serverThere(there) {
		if (there && this.gone) {
			this.gone.remove();
			this.gone = null;
			getJson("targets").then(
				(data) => this.list(data),
				() => {},
			);
		} else if (!there && !this.gone) {
			const text = "kymo serve does not answer; trying again every 2 s. The last picture stays.";
			this.gone = el("div", { class: "notice bad", role: "alert" }, text);
			document.body.append(this.gone);
		}
	}

	/** @param {""|"warn"|"bad"} kind @param {string} text @param {{text: string, act: () => void}|null} offer */
	notice(kind, text, offer) {
		this.noticeNode?.remove();
		const accept = () => {
			box.remove();
			offer?.act();
		};
		const box = el(
			"div",
			{ class: `notice ${kind}`, role: kind === "bad" ? "alert" : "status" },
			el("span", { text }),
			offer ? el("button", { class: "button", text: offer.text, onclick: accept }) : null,
			el("button", { class: "button", "aria-label": "Close", text: "✕", onclick: () => box.remove() }),
		);
		this.noticeNode = box;
		document.body.append(box);
		if (!kind)
			setTimeout(() => box.remove(), NOTICE_MS);
	}

	tick() {
		const { source } = this;
		if (!source?.running)
			return;
		// A lost connection is not always reported, and a program that hangs sends no events either.
		if (performance.now() - this.heardAt > SILENT_MS)
			this.hear(source);
		if (!document.hidden)
			source.pulse().then(
				() => this.shell.fillFooter(),
				() => {},
			);
		this.shell.fillRun();
		this.shell.fillDelay();
	}
}

new LiveApp(/** @type {HTMLElement} */ (document.getElementById("app")));
