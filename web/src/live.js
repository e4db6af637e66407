// The live viewer: waits for programs, shows one at a time, and goes on when it ends.
import { getJson, listen } from "./api.js";
import { isLive, runDialog } from "./runs.js";
import { pillOf, Shell, signalName } from "./shell.js";
import { whole } from "./source.js";
import { LiveSource } from "./source-live.js";
import { GUTTER } from "./timeline-layout.js";
import { clock, el } from "./util.js";
import { compare } from "./views/compare-live.js";
import { devices } from "./views/devices.js";
import { flame } from "./views/flame.js";
import { memory, metrics } from "./views/metrics.js";
import { overview } from "./views/overview.js";
import { sql } from "./views/sql.js";
import { stacks } from "./views/stacks.js";
import { streams } from "./views/streams.js";
import { timeline } from "./views/timeline.js";
import { torch } from "./views/torch.js";
import { wait } from "./views/wait.js";

const TABS = [overview, timeline, flame, memory, metrics, torch, devices, compare, sql, stacks, streams];
const REFRESH_MS = 2500;
const SILENT_MS = 5000;

/** Nothing is open. */
const NOBODY = {
	id: "",
	target: null,
	running: false,
	data: () => NOTHING,
	meta: () => ({ end: 1, lanes: [], names: [] }),
	onchange: null,
};
const NOTHING = whole({ run: [{ program: "no recording yet", command: "", duration_ns: 0 }] });

/** Header, tabs and footer around whatever is open. */
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
			["R", "programs and recordings"],
			["Ctrl+Enter", "run the SQL"],
			["Ctrl+Space", "complete a name in SQL"],
			["Ctrl+↑ ↓", "earlier and later SQL"],
		];
	}

	fillRun() {
		if (!this.source.target) {
			this.run.replaceChildren(el("span", { class: "program", text: "no recording yet" }));
			return;
		}
		super.fillRun();
		const { target } = this.source;
		const [kind, said] = pillOf(this.source.running ? { ...target, duration_ns: this.source.now() } : target);
		this.run.setAttribute("aria-label", `Choose a recording; this is ${target.program}, ${said}`);
		this.run.querySelector(".pill")?.replaceWith(el("span", { class: `pill ${kind}`, text: said }));
	}

	fillFooter() {
		const about = this.app?.about;
		if (!this.source.target) {
			this.foot.replaceChildren(
				...(about
					? [
							el("span", {}, "Listening on ", el("b", { text: about.address })),
							el("span", {}, "Looking in ", el("b", { text: about.directory })),
							el("span", { class: "right", text: `kymo ${about.version}` }),
						]
					: []),
			);
			return;
		}
		super.fillFooter();
		this.fillDelay();
	}

	/** From a zone's end to its picture, where that is going on. */
	fillDelay() {
		const delay = this.source.running ? this.source.delay() : null;
		this.foot
			.querySelector(".detail")
			?.replaceChildren(...(delay === null ? [] : ["Delay ", el("b", { text: `${Math.round(delay)} ms` })]));
	}

	/** @param {string} id @param {Record<string, string|number>} [query] */
	hash(id, query) {
		return super.hash(this.source.id ? `${this.source.id}/${id}` : id, query);
	}

	route() {
		const [, id = ""] = /^#\/([^/?]+)\//.exec(location.hash) ?? [];
		if (this.app && id && id !== this.source.id)
			this.app.open(id);
		else
			super.route();
	}

	/** @param {any} source */
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

class App {
	/** @param {HTMLElement} root */
	constructor(root) {
		this.root = root;
		/** @type {any[]} */ this.targets = [];
		/** @type {any} */ this.about = null;
		/** @type {any} */ this.source = NOBODY;
		/** @type {() => void} */ this.stop = () => {};
		/** Live ones that were here when the page was opened or have been told of. @type {Set<string>} */ this.known =
			new Set();
		this.runs = runDialog(
			() => this.targets,
			() => this.source.id || null,
			(id) => this.open(id),
		);
		/** @type {any} */ this.shell = new LiveShell(root, NOBODY, [wait]);
		this.shell.app = this;
		document.addEventListener("keydown", (e) => {
			const typing = e.target instanceof HTMLElement && e.target.matches("input, textarea, select");
			if (
				e.key.toLowerCase() === "r" &&
				!typing &&
				!e.ctrlKey &&
				!e.metaKey &&
				!e.altKey &&
				!document.querySelector("dialog[open]")
			) {
				e.preventDefault();
				this.runs.show();
			}
		});
		this.heardAt = 0;
		setInterval(() => this.tick(), 1000);
		this.begin();
	}

	async begin() {
		try {
			this.list(await getJson("targets"));
			const [, id = ""] = /^#\/([^/?]+)\//.exec(location.hash) ?? [];
			const first =
				this.targets.find((t) => t.id === id) ??
				this.targets.find((t) => t.id === this.about.named) ??
				this.targets.find(isLive);
			if (first)
				await this.open(first.id);
		} catch (why) {
			this.serverThere(false);
		}
		if (!this.source.target)
			this.wait();
		this.root.setAttribute("data-ready", "yes");
	}

	/** Nothing to show: the tail tells when there is. */
	wait() {
		this.stop();
		this.source = NOBODY;
		this.stop = listen("tail", {}, { targets: (data) => this.list(data) }, (there) => this.serverThere(there));
		this.shell.show(NOBODY);
	}

	/** @param {any} data of /api/targets */
	list(data) {
		const fresh = data.targets.filter((/** @type {any} */ t) => isLive(t) && !this.known.has(t.id));
		this.about = data;
		this.targets = data.targets;
		for (const target of fresh)
			this.known.add(target.id);
		if (this.runs.dialog.open)
			this.runs.fill();
		if (!this.source.target) {
			this.shell.view?.update?.();
			this.shell.fillFooter();
			if (fresh.length && this.root.hasAttribute("data-ready"))
				this.open(fresh[0].id);
			return;
		}
		const same = this.targets.find((t) => t.id === this.source.id);
		if (same)
			Object.assign(this.source.target, same, { state: this.source.target.state });
		if (fresh.length && !fresh.some((/** @type {any} */ t) => t.id === this.source.id))
			this.notice("", `${fresh[0].program} has started`, { text: "Open it", act: () => this.open(fresh[0].id) });
	}

	/** @param {string} id */
	async open(id) {
		const target = this.targets.find((t) => t.id === id);
		if (!target) {
			this.notice("warn", "That recording is not here any more; choose another one (R)", null);
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
			source.foresee(Math.max(1, innerWidth - GUTTER));
		} catch (why) {
			this.notice("bad", `${/** @type {Error} */ (why).message}`, {
				text: "Try again",
				act: () => this.open(id),
			});
		}
		if (this.source !== source)
			return;
		const [, inHash = ""] = /^#\/([^/?]+)\//.exec(location.hash) ?? [];
		if (inHash !== id)
			history.replaceState(
				null,
				"",
				`#/${id}/${this.shell.source.target ? (this.shell.tab?.id ?? "overview") : "overview"}`,
			);
		this.shell.show(source);
		this.keepFresh(source);
	}

	/**
	 * Events of a source, from now on and from the state that it is in.
	 * @param {LiveSource} source
	 */
	hear(source) {
		const heard = (/** @type {(data: any) => void} */ act) => (/** @type {any} */ data) => {
			this.heardAt = performance.now();
			act(data);
		};
		this.stop();
		this.heardAt = performance.now();
		this.stop = listen(
			"tail",
			{ target: source.id },
			{
				rows: heard((data) => source.rows(data)),
				state: heard((data) => this.stateChanged(source, data)),
				targets: heard((data) => this.list(data)),
			},
			(there) => this.serverThere(there),
		);
	}

	/** @param {LiveSource} source */
	async keepFresh(source) {
		while (this.source === source) {
			const began = performance.now();
			const asked = source.running;
			if (!document.hidden || !source.read)
				await source.refresh();
			const cost = performance.now() - began;
			if (!asked && source.read && !source.behind)
				return; // it will not change any more
			await new Promise((done) => setTimeout(done, Math.min(2 * REFRESH_MS, Math.max(REFRESH_MS, cost))));
		}
	}

	/** @param {LiveSource} source @param {any} state */
	stateChanged(source, state) {
		const was = source.running;
		source.state(state);
		this.shell.fillRun();
		this.shell.fillFooter();
		if (!was || source.running)
			return;
		const { program } = source.target;
		const after = clock(state.duration_ns ?? 0);
		if (state.signal)
			this.notice(
				"bad",
				`✕ ${program} was killed by ${signalName(state.signal)} after ${after}. All that it recorded is here.`,
				{ text: "What it had open", act: () => this.shell.go("overview") },
			);
		else if (state.state === "lost")
			this.notice(
				"warn",
				`${program} is gone after ${after}; nobody saw how it ended. All that it recorded is here.`,
				null,
			);
		else
			this.notice("", `${program} ended with ${state.exit_code ?? "an unknown status"} after ${after}.`, null);
		this.shell.view?.update?.();
		source.refresh();
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
			this.gone = el(
				"div",
				{ class: "notice bad", role: "alert" },
				"kymo serve stopped; trying again every 2 s. The picture stays.",
			);
			document.body.append(this.gone);
		}
	}

	/** @param {string} kind @param {string} text @param {{text: string, act: () => void}|null} offer */
	notice(kind, text, offer) {
		this.told?.remove();
		const box = el(
			"div",
			{ class: `notice ${kind}`, role: kind === "bad" ? "alert" : "status" },
			el("span", { text }),
			offer
				? el("button", {
						class: "button",
						text: offer.text,
						onclick: () => {
							box.remove();
							offer.act();
						},
					})
				: null,
			el("button", { class: "button", "aria-label": "Close", text: "✕", onclick: () => box.remove() }),
		);
		this.told = box;
		document.body.append(box);
		if (!kind)
			setTimeout(() => box.remove(), 12000);
	}

	tick() {
		if (!this.source.running)
			return;
		// A connection that has gone silent is not always told to be lost, and a program that hangs says nothing
		// either.
		if (performance.now() - this.heardAt > SILENT_MS)
			this.hear(this.source);
		if (!document.hidden)
			this.source.pulse().then(
				() => this.shell.fillFooter(),
				() => {},
			);
		this.shell.fillRun();
		this.shell.fillDelay();
	}
}

new App(/** @type {HTMLElement} */ (document.getElementById("app")));
