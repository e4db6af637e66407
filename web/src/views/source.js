// The Source tab: the files that the recording names, and the text of one with time, calls and allocations by line.
import { baseName, fileNamed, shortPath } from "../code/frames.js";
import { Listing } from "../code/listing.js";
import { el, emptyState } from "../dom.js";
import { bytes, counted, duration, percent } from "../format.js";
import { ranksLabel } from "../job/ranks.js";

/** @import { Source, SourceFile, SourceText, Tab } from "../types.js" */
/** @import { Shell } from "../shell.js" */

const AGAIN_MS = 5000; // while the program runs
const ALL_RANKS = "Of all ranks: a report has no lines by rank.";

/** @param {SourceFile} file */
const costOf = (file) => file.total_ns || file.line_self_ns || file.calls_self_ns || file.samples;

/**
 * The figure beside a file.
 * @param {SourceFile} file
 * @param {number} whole time of all samples
 */
function figureOf(file, whole) {
	if (file.total_ns && whole)
		return percent(file.total_ns / whole);
	if (file.samples && whole)
		return percent(file.samples / whole);
	const time = file.total_ns || file.line_self_ns || file.calls_self_ns;
	return time ? duration(time) : file.alloc_bytes ? bytes(file.alloc_bytes) : "";
}

/** The time that all samples stand for, or their number. @param {Source} source */
function sampledTime(source) {
	const { samples } = source.data();
	const ns = samples.reduce((sum, one) => sum + (one.time_ns ?? 0), 0);
	return ns || samples.reduce((sum, one) => sum + one.count, 0);
}

class SourceView {
	/** @param {Shell} shell */
	constructor(shell) {
		this.shell = shell;
		/** @type {SourceFile[]} */ this.files = [];
		/** @type {Listing|null} */ this.listing = null;
		/** @type {SourceText|null} */ this.file = null;
		this.closed = false;
		this.loadedAt = 0;
		/** The program ran when the lines were read. */
		this.ran = false;
		this.filter = el("input", { type: "search", placeholder: "Filter files", "aria-label": "Filter files" });
		this.list = el("div", { class: "files", role: "navigation", "aria-label": "Files" });
		this.find = el("input", { type: "search", placeholder: "Find in file   /", "aria-label": "Find in this file" });
		this.status = el("span", { class: "muted", role: "status" });
		this.path = el("span", { class: "path", title: "" });
		this.notes = el("div", { class: "notes" });
		this.place = el("div", { class: "place" });
		const button = (/** @type {string} */ text, /** @type {string} */ title, /** @type {() => void} */ onclick) =>
			el("button", { class: "button", text, title, "aria-label": title, onclick });
		this.node = el(
			"div",
			{ class: "full source" },
			el(
				"div",
				{ class: "bar" },
				this.find,
				this.status,
				button("↑", "Previous hot line ([)", () => this.listing?.nextHot(-1)),
				button("↓", "Next hot line (])", () => this.listing?.nextHot(1)),
				button("Hottest", "Hottest line (X)", () => this.goToHottest()),
				button("Flame graph", "This line in the flame graph (Enter)", () => this.openFlame()),
				this.path,
			),
			this.notes,
			el("div", { class: "split" }, el("div", { class: "side-list" }, this.filter, this.list), this.place),
		);
		this.listen();
		this.load();
	}

	listen() {
		this.filter.addEventListener("input", () => this.fillList());
		this.find.addEventListener("input", () => this.search());
		this.find.addEventListener("keydown", (e) => {
			if (e.key === "Enter")
				this.listing?.nextFound(e.shiftKey ? -1 : 1);
		});
		this.list.addEventListener("keydown", (e) => this.moveInList(e));
	}

	async load() {
		this.loadedAt = performance.now();
		this.ran = Boolean(this.shell.source.running);
		this.place.setAttribute("aria-busy", "true");
		try {
			this.files = await this.shell.source.sources();
			const wanted = this.shell.query.file;
			const file = wanted ? fileNamed(this.files, wanted) : this.files[0];
			const text = file ? await this.shell.source.sourceText(file.file) : null;
			if (!this.closed)
				this.show(text, wanted ?? "");
		} catch (why) {
			if (!this.closed)
				this.fail(/** @type {Error} */ (why).message);
		}
		this.place.removeAttribute("aria-busy");
	}

	/** @param {string} what */
	fail(what) {
		this.notes.replaceChildren(el("div", { class: "band", role: "alert", text: what }));
	}

	/** @param {SourceText|null} file @param {string} wanted the name that was asked for */
	show(file, wanted) {
		this.file = file;
		this.fillList();
		if (!file) {
			this.place.replaceChildren(nothing(wanted, this.files.length));
			return;
		}
		const [at, left, focused] = [this.listing?.line, this.listing?.node, document.activeElement];
		const scroll = left ? [left.scrollTop, left.scrollLeft] : null;
		this.listing?.close();
		this.listing = new Listing(file, {
			onmove: (line) => this.moved(line),
			onenter: () => this.openFlame(),
		});
		this.path.textContent = file.file;
		this.path.title = file.file;
		this.notes.replaceChildren(...this.notesOf(file, this.listing));
		this.place.replaceChildren(this.listing.node);
		this.search();
		if (scroll) {
			// Newer values of the same file: nothing moves.
			[this.listing.node.scrollTop, this.listing.node.scrollLeft] = scroll;
			this.listing.at = this.listing.numbers.indexOf(at ?? 1);
			this.listing.draw();
			if (focused === left)
				this.listing.node.focus({ preventScroll: true });
			return;
		}
		this.listing.go(Number(this.shell.query.line) || this.listing.hottest() || 1);
	}

	/** @param {SourceText} file @param {Listing} listing */
	notesOf(file, listing) {
		const band = (/** @type {string} */ text) => el("div", { class: "band", text });
		const moved = "The lines may have moved.";
		const whole = "Times are of the whole run; the selected range does not apply here.";
		/** @type {Node[]} */
		const notes = [];
		if (file.text === null)
			notes.push(band(`The text is not shown: ${file.why}. These are the lines that the recording names.`));
		else if (file.newer)
			notes.push(band(`This file was changed after the recording began. ${moved}`));
		if (listing.past)
			notes.push(band(`The recording names ${counted(listing.past, "line")} after its end. ${moved}`));
		const { ranks, source } = this.shell;
		const chosen = `Of ${ranksLabel(ranks, 60).toLowerCase()}.`;
		if (ranks)
			notes.push(el("p", { class: "tested", text: source.target ? chosen : ALL_RANKS }));
		if (this.shell.range)
			notes.push(el("p", { class: "tested", text: whole }));
		return notes;
	}

	// ---- the list of files

	fillList() {
		const words = this.filter.value.toLowerCase();
		const shown = this.files.filter((one) => one.file.toLowerCase().includes(words));
		const { ranks, source } = this.shell;
		// Samples of some ranks are no share of those of all.
		const whole = ranks && source.target ? 0 : sampledTime(source);
		const most = Math.max(1, ...this.files.map(costOf));
		const group = (/** @type {string} */ title, /** @type {boolean} */ own) => {
			const files = shown.filter((one) => one.own === own);
			return files.length
				? [el("h2", { text: title }), ...files.map((one) => this.fileButton(one, whole, most))]
				: [];
		};
		this.list.replaceChildren(...group("Your code", true), ...group("Libraries", false));
		this.list.querySelector("[aria-current]")?.scrollIntoView({ block: "nearest" });
	}

	/** @param {SourceFile} file @param {number} whole @param {number} most */
	fileButton(file, whole, most) {
		const current = file.file === this.file?.file;
		const folder = file.file.slice(0, file.file.length - baseName(file.file).length - 1);
		const figure = figureOf(file, whole);
		const heat = el("i", { class: "heat", "aria-hidden": "true" });
		heat.style.width = `${Math.round((100 * costOf(file)) / most)}%`;
		return el(
			"button",
			{
				class: "file",
				"aria-current": current ? "true" : undefined,
				title: file.file,
				onclick: () => this.shell.go("source", { file: file.file }),
			},
			el("span", { class: "name", text: shortPath(file.file) }),
			el("span", { class: "figure-of", text: figure }),
			el("span", { class: "folder", text: folder }),
			heat,
		);
	}

	/** Arrows go from file to file. @param {KeyboardEvent} e */
	moveInList(e) {
		if (e.key !== "ArrowDown" && e.key !== "ArrowUp")
			return;
		const buttons = [.../** @type {NodeListOf<HTMLElement>} */ (this.list.querySelectorAll("button"))];
		const at = buttons.indexOf(/** @type {HTMLElement} */ (document.activeElement));
		buttons[Math.max(0, Math.min(buttons.length - 1, at + (e.key === "ArrowDown" ? 1 : -1)))]?.focus();
		e.preventDefault();
		e.stopPropagation();
	}

	// ---- the lines

	/** @param {number} line */
	moved(line) {
		if (!this.file || !this.listing)
			return;
		this.shell.query.line = String(line);
		window.history.replaceState(null, "", this.shell.hash("source", { file: this.file.file, line }));
		this.shell.announce(this.listing.spoken());
		this.say();
	}

	search() {
		this.listing?.search(this.find.value);
		if (this.find.value && this.listing?.found.length && !this.listing.found.includes(this.listing.line))
			this.listing.nextFound(1);
		this.say();
	}

	/** "2 of 12 lines" */
	say() {
		const found = this.listing?.found ?? [];
		const at = found.indexOf(this.listing?.line ?? 0) + 1;
		const text = found.length ? `${at ? `${at} of ` : ""}${counted(found.length, "line")}` : "not found";
		this.status.textContent = this.find.value ? text : "";
	}

	goToHottest() {
		const line = this.listing?.hottest();
		if (line)
			this.listing?.go(line);
	}

	/** The frames of the current line. */
	openFlame() {
		if (!this.file || !this.listing)
			return;
		const samples = this.shell.source.data().samples.length > 0;
		const find = `(${shortPath(this.file.file)}:${this.listing.line})`;
		this.shell.go("flame", samples ? { of: "samples", find, zoom: 1 } : {});
	}

	/** @param {KeyboardEvent} e */
	key(e) {
		if (e.key === "/") {
			this.find.focus();
			return true;
		}
		const forButton = ["Enter", " "].includes(e.key) && e.target instanceof HTMLButtonElement;
		return !forButton && Boolean(this.listing?.key(e));
	}

	/** The document is newer: reads the lines again, now and then, and once more when the program has ended. */
	update() {
		const due = performance.now() - this.loadedAt > AGAIN_MS;
		if (this.ran && (due || !this.shell.source.running))
			this.load();
	}

	close() {
		this.closed = true;
		this.listing?.close();
	}
}

/** @param {string} wanted @param {number} files */
function nothing(wanted, files) {
	return wanted && files
		? emptyState(`The recording has no times for ${wanted}`, "Choose a file on the left.")
		: emptyState(
				"No lines of source recorded",
				"kymo run samples the stacks of Python programs. Record every Python call with",
				"kymo run --python -- python train.py",
			);
}

/** Whether the recording names lines of source. @param {Source} source */
const hasSource = (source) =>
	Boolean(source.data().sources?.length) ||
	source.data().samples.length > 0 ||
	(!source.data().sources && source.meta().names.some((name) => name.line > 0));

/** @type {Tab} */
export const source = {
	id: "source",
	title: "Source",
	has: hasSource,
	open: (shell) => new SourceView(shell),
};
