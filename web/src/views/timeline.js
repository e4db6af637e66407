// The timeline's bar, its drawer of details, and its keys.
import { Timeline } from "../timeline.js";
import { Follow } from "../timeline-live.js";
import { clear, count, duration, el, legend, nothing, swatch, themed } from "../util.js";

/**
 * Durations of one name, log scale, with this zone marked.
 * @param {HTMLCanvasElement} canvas
 * @param {any} stats
 * @param {number} mark
 */
function histogram(canvas, stats, mark) {
	const scale = window.devicePixelRatio || 1;
	const width = canvas.clientWidth || 380;
	const height = canvas.clientHeight || 92;
	canvas.width = width * scale;
	canvas.height = height * scale;
	const ink = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
	const most = Math.max(1, ...stats.hist);
	const each = width / stats.hist.length;
	const span = stats.histTo - stats.histFrom || 1;
	const marked = Math.min(
		stats.hist.length - 1,
		Math.floor((stats.hist.length * (Math.log(Math.max(1, mark)) - stats.histFrom)) / span),
	);
	ink.scale(scale, scale);
	stats.hist.forEach((/** @type {number} */ n, /** @type {number} */ i) => {
		const tall = n ? Math.max(2, ((height - 16) * n) / most) : 0;
		ink.fillStyle = i === marked ? themed("bad") : themed("accent");
		ink.fillRect(i * each, height - 14 - tall, Math.max(1, each - 1), tall);
	});
	ink.fillStyle = themed("line");
	ink.fillRect(0, height - 14, width, 1);
	ink.fillStyle = themed("muted");
	ink.font = "11px system-ui";
	ink.fillText(duration(stats.min), 0, height - 2);
	const end = duration(stats.max);
	ink.fillText(end, width - ink.measureText(end).width, height - 2);
}

/**
 * @param {any} shell
 * @param {import("../source.js").Zone} zone
 * @param {HTMLElement} drawer
 * @param {() => boolean} wanted
 */
async function details(shell, zone, drawer, wanted) {
	const meta = shell.source.meta();
	const name = meta.names[zone.name];
	const lane = meta.lanes.find((/** @type {any} */ l) => l.id === zone.lane);
	const pairs = (/** @type {[string, string][]} */ list) =>
		el("dl", {}, ...list.flatMap(([k, v]) => [el("dt", { text: k }), el("dd", { text: v })]));
	const here = Boolean(shell.source.glance); // a server answers: of all zones, not of those in a file
	const stats = await shell.source.name(zone.name);
	if (!wanted())
		return;
	const vs = stats.p50 ? `× ${(zone.duration / stats.p50).toFixed(2)}` : "–";
	const canvas = el("canvas", { role: "img", "aria-label": `Durations of ${name.name}, this one marked` });
	clear(drawer);
	drawer.hidden = false;
	drawer.append(
		el(
			"div",
			{},
			el("h3", {}, swatch(name.source, name.name), name.name),
			pairs([
				["source", name.source],
				["duration", duration(zone.duration)],
				["thread", lane?.name || `tid ${lane?.tid}`],
				["vs median", vs],
				["depth", String(zone.row)],
				["start", duration(zone.start)],
				["where", name.file ? `${name.file}${name.line ? `:${name.line}` : ""}` : "–"],
				[zone.open ? "state" : "zones", zone.open ? "open" : count(zone.n)],
			]),
		),
		el(
			"div",
			{},
			el("div", {
				class: "muted",
				text: here ? "All zones of this name" : "All zones of this name in the report",
			}),
			pairs([
				["count", count(stats.count)],
				["total", duration(stats.total)],
				["p50", duration(stats.p50)],
				["p99", duration(stats.p99)],
			]),
			el("div", { class: "hint", text: "[ ] previous and next · X slowest · Z zoom to it" }),
			here
				? el("button", {
						class: "link",
						text: "Open in SQL",
						onclick: () =>
							shell.go("sql", {
								q: `FROM trace.zones\nWHERE name = '${name.name.replaceAll("'", "''")}'\nORDER BY duration_ns DESC\nLIMIT 100`,
							}),
					})
				: null,
		),
		el("div", {}, el("div", { class: "muted", text: "duration, log scale; this zone marked" }), canvas),
	);
	histogram(canvas, stats, zone.duration);
	shell.say(`${name.name}, ${name.source}, ${duration(zone.duration)}, thread ${lane?.name || lane?.tid}`);
}

/** @param {any} losses */
function lostBand(losses) {
	return losses.zones_overwritten
		? el("div", {
				class: "band",
				text: `${count(losses.zones_overwritten)} zones before the first that is shown were overwritten: what is missing there was recorded, and is gone`,
			})
		: null;
}

/** @param {any} timeline @param {any} shell @param {HTMLInputElement} find */
function keysOf(timeline, shell, find) {
	const walk = async (/** @type {string} */ dir) => {
		const from = timeline.selected;
		const to = from ? await shell.source.step(from, dir) : null;
		if (to && timeline.selected === from) {
			// nobody has chosen another or none meanwhile
			timeline.select(to);
			timeline.reveal(to);
		}
	};
	const first = async () => {
		const middle = (timeline.view.t0 + timeline.view.t1) / 2;
		const lane = timeline.meta.lanes[0];
		const zone = lane && (await shell.source.zone(lane.id, 0, middle, timeline.view.t1 - timeline.view.t0));
		if (zone)
			timeline.select(zone);
	};
	const slowest = async () => {
		const zone = timeline.selected && (await shell.source.name(timeline.selected.name)).slowest[0];
		if (zone) {
			timeline.select(zone);
			timeline.reveal(zone);
		}
	};
	/** @type {Record<string, () => any>} */
	const keys = {
		" ": () => timeline.follow?.set(!timeline.follow.on && shell.source.running),
		f: () => timeline.fit(),
		"/": () => find.focus(),
		x: slowest,
		"[": () => walk("previous"),
		"]": () => walk("next"),
		ArrowLeft: () => (timeline.selected ? walk("left") : first()),
		ArrowRight: () => (timeline.selected ? walk("right") : first()),
		ArrowUp: () => walk("up"),
		ArrowDown: () => (timeline.selected ? walk("down") : first()),
		Enter: () => (timeline.selected ? timeline.select(timeline.selected) : first()),
		z: () =>
			timeline.selected
				? timeline.reveal(timeline.selected, true)
				: timeline.range && timeline.show(timeline.range.t0, timeline.range.t1),
		m: () =>
			timeline.selected &&
			shell.setRange({ t0: timeline.selected.start, t1: timeline.selected.start + timeline.selected.duration }),
	};
	return (/** @type {KeyboardEvent} */ e) => {
		if (e.key === "Escape") {
			if (!timeline.selected)
				return false;
			timeline.select(null);
			return true;
		}
		const act = keys[e.key.length === 1 ? e.key.toLowerCase() : e.key];
		if (!act || (["Enter", " "].includes(e.key) && e.target instanceof HTMLButtonElement))
			return false;
		act();
		return true;
	};
}

/** @type {import("../shell.js").Tab} */
export const timeline = {
	id: "timeline",
	title: "Timeline",
	has: (source) => source.meta().lanes.length > 0,
	open(shell) {
		const data = shell.source.data();
		const meta = shell.source.meta();
		if (!meta.lanes.length)
			return {
				update: () => meta.lanes.length && shell.open(),
				node: nothing(
					"No zones were recorded",
					'Zones are what a program marks, KYMO_SCOPE("name") in C and kymo.region("name") in Python, modules of torch, and every call of Python with',
					"kymo run --python -- python train.py",
				),
			};
		const stage = el("div", { class: "stage" });
		const drawer = el("div", { class: "drawer", hidden: true, "aria-label": "Details" });
		const find = el("input", { type: "search", placeholder: "Find a name   /", "aria-label": "Find a name" });
		const threads = el("select", { "aria-label": "Threads" });
		const found = el("span", { class: "muted" });
		let lanes = 0;
		const fillThreads = () => {
			if (lanes === meta.lanes.length)
				return;
			lanes = meta.lanes.length;
			const chosen = threads.value;
			threads.replaceChildren(
				el("option", { value: "", text: "All threads" }),
				...meta.lanes.map((/** @type {any} */ l) =>
					el("option", { value: l.id, text: l.name || `tid ${l.tid}` }),
				),
			);
			threads.value = chosen;
		};
		fillThreads();
		const following = el("button", {
			class: "button",
			hidden: !shell.source.running,
			"aria-pressed": "false",
			title: "Keep the end in view (Space)",
			text: "◉ Follow",
			onclick: (/** @type {MouseEvent} */ e) => {
				made.follow?.set(!made.follow.on);
				if (e.detail)
					following.blur();
			},
		});
		const reading = el("span", { class: "muted", role: "status" });
		const node = el(
			"div",
			{ class: "full" },
			lostBand(data.losses),
			el(
				"div",
				{ class: "bar" },
				find,
				found,
				threads,
				following,
				legend(),
				reading,
				el("span", { class: "right muted hint-keys", text: "W S zoom · A D pan · F fit · ? keys" }),
			),
			stage,
			drawer,
		);
		shell.main.append(node);
		const made = new Timeline(stage, shell.source, {
			onselect: (zone) =>
				zone ? details(shell, zone, drawer, () => made.selected === zone) : (drawer.hidden = true),
			onview: () => {},
			onrange: (range) => shell.setRange(range),
		});
		const search = () => {
			made.search(find.value);
			found.textContent = find.value
				? `${count(made.found.size)} name${made.found.size === 1 ? "" : "s"}${made.found.size ? " · Enter: slowest" : ""}`
				: "";
		};
		find.addEventListener("input", search);
		/** Of the names that were found, but of so many at most: each is a question. */
		const goToSlowest = async () => {
			const of = await Promise.all([...made.found].slice(0, 16).map((name) => shell.source.name(name)));
			const zone = of
				.map((one) => one.slowest[0])
				.filter(Boolean)
				.sort((a, b) => b.duration - a.duration)[0];
			if (!zone)
				return;
			find.blur(); // so that [ ] and X go on from here
			made.select(zone);
			made.reveal(zone);
		};
		find.addEventListener("keydown", (e) => {
			if (e.key === "Enter" && find.value)
				goToSlowest();
		});
		find.value = shell.query.find ?? "";
		if (find.value)
			search();
		threads.addEventListener("change", () => {
			made.only = threads.value === "" ? null : Number(threads.value);
			made.changed();
		});
		const previous = shell.source.onchange;
		shell.source.onchange = () => {
			made.changed();
			const { indexed = 1 } = shell.source;
			reading.textContent = indexed < 1 ? `indexing zones ${Math.floor(100 * indexed)} %` : "";
			if (!shell.source.glance)
				goTo(); // the zones of a file come later than its page
		};
		const goTo = async () => {
			const { v0, v1, sel } = shell.query;
			made.range = shell.range;
			if (v1)
				made.show(Number(v0), Number(v1));
			else if (shell.range)
				made.show(shell.range.t0, shell.range.t1);
			if (sel) {
				const [lane, row, t] = sel.split(".").map(Number);
				const zone = await shell.source.zone(lane, row, t, 1000);
				if (zone) {
					made.select(zone);
					made.reveal(zone);
				}
			}
		};
		goTo();
		if (shell.source.open) {
			made.follow = new Follow(made, (on) => following.setAttribute("aria-pressed", String(on)));
			if (shell.source.running && !shell.query.v1 && !shell.query.sel && !shell.range)
				made.follow.set(true);
		}
		shell.source.onpulse = () => made.renew();
		const update = () => {
			made.renew();
			fillThreads();
			following.hidden = !shell.source.running;
			if (!shell.source.running && made.follow?.on) {
				const span = made.view.t1 - made.view.t0;
				made.show(made.meta.end * 1.01 - span, made.meta.end * 1.01); // where it ended
			}
		};
		return {
			node,
			timeline: made,
			update,
			key: keysOf(made, shell, find),
			close: () => {
				shell.source.onchange = previous;
				shell.source.onpulse = null;
				made.close();
			},
		};
	},
};
