// Opens reports in headless Chromium and prints what it saw as JSON on stdout; test_*.py check it.
//   node driver.mjs PLAYWRIGHT CHROMIUM CHECK REPORT SCREENSHOTS
import { createRequire } from "node:module";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const [playwright, chromium, check, report, shots] = process.argv.slice(2);
const { chromium: browserType } = createRequire(import.meta.url)(playwright);
const profile = mkdtempSync(join(tmpdir(), "kymo-web-"));
const context = await browserType.launchPersistentContext(profile, {
	executablePath: chromium,
	headless: true,
	viewport: { width: 1280, height: 720 },
	args: [
		"--no-sandbox",
		"--disable-gpu",
		"--disable-quic",
		"--no-first-run",
		"--disable-background-networking",
		"--disable-component-update",
		"--disable-sync",
	],
});
const page = await context.newPage();
/** @type {{errors: string[], requests: string[]}} */
const seen = { errors: [], requests: [] };
page.on("console", (m) => {
	if (["error", "warning"].includes(m.type()))
		seen.errors.push(m.text());
});
page.on("pageerror", (e) => seen.errors.push(String(e)));
page.on("request", (r) => {
	if (!r.url().startsWith("file:") && !r.url().startsWith("data:"))
		seen.requests.push(r.url());
});
page.on("dialog", (d) => {
	seen.errors.push(`dialog: ${d.message()}`);
	d.dismiss();
});

/** Whether a canvas holds more than one colour, and how many. */
const colours = (selector) =>
	page.evaluate((s) => {
		const canvas = document.querySelector(s);
		if (!canvas || !canvas.width)
			return 0;
		const data = /** @type {any} */ (canvas.getContext("2d")).getImageData(0, 0, canvas.width, canvas.height).data;
		const set = new Set();
		for (let i = 0; i < data.length; i += 16)
			set.add((data[i] << 16) | (data[i + 1] << 8) | data[i + 2]);
		return set.size;
	}, selector);
const text = (selector) => page.locator(selector).first().innerText();
const shot = (name) => page.screenshot({ path: join(shots, `${name}.png`) });
const tab = async (name) => {
	await page.click(`#tab-${name}`);
	await page.waitForTimeout(250);
};
const dark = async (on) => {
	if (on !== (await page.evaluate(() => document.documentElement.classList.contains("dark"))))
		await page.keyboard.press("t");
	await page.waitForTimeout(150);
};
/** Whether the page scrolls sideways, and whether its main part scrolls. */
const overflow = () =>
	page.evaluate(() => {
		const main = /** @type {HTMLElement} */ (document.querySelector("main"));
		return [document.documentElement.scrollWidth > innerWidth, main.scrollHeight > main.clientHeight + 1];
	});
const picture = (selector) => page.evaluate((s) => document.querySelector(s).toDataURL().length, selector);

async function open() {
	const began = Date.now();
	await page.goto(pathToFileURL(report).href);
	await page.waitForSelector("#app[data-ready]");
	await page.evaluate(() => new Promise((r) => requestAnimationFrame(() => requestAnimationFrame(r))));
	return { ms: Date.now() - began, ready: await page.getAttribute("#app", "data-ready") };
}

const checks = {
	async tour() {
		const out = { open: await open() };
		await dark(false);
		out.verdict = await text(".verdict h1");
		out.figures = await page.locator(".figure .label").allInnerTexts();
		out.footer = await text("footer");
		out.chart = await colours(".uplot canvas");
		out.overflow = await overflow();
		const names = () => page.locator("table[aria-label='Top regions'] tbody td:first-child").allInnerTexts();
		const head = (t) => page.locator("table[aria-label='Top regions'] th button", { hasText: t });
		out.bySelf = await names();
		await head("Count").click();
		out.byCount = await page.locator("table[aria-label='Top regions'] tbody td:nth-child(4)").allInnerTexts();
		await head("Count").click();
		out.byCountUp = await page.locator("table[aria-label='Top regions'] tbody td:nth-child(4)").allInnerTexts();
		await head("Self").click();
		await shot("overview-light");
		await dark(true);
		await shot("overview-dark");
		await tab("timeline");
		out.timeline = await colours(".stage canvas");
		await shot("timeline-full-dark");
		const before = await picture(".stage canvas");
		await page.mouse.move(700, 300);
		for (let i = 0; i < 8; i++)
			await page.mouse.wheel(0, -300);
		await page.waitForTimeout(250);
		out.wheel = (await picture(".stage canvas")) !== before;
		await shot("timeline-steps-dark");
		const zoomed = await picture(".stage canvas");
		await page.keyboard.down("w");
		await page.waitForTimeout(900);
		await page.keyboard.up("w");
		out.keys = (await picture(".stage canvas")) !== zoomed;
		await dark(false);
		await page.mouse.move(700, 142);
		await page.mouse.click(700, 142);
		await page.waitForTimeout(300);
		out.drawer = (await page.locator(".drawer h3").count()) ? await text(".drawer h3") : "";
		out.said = await page.locator("[aria-live]").first().innerText();
		await page.keyboard.press("ArrowDown");
		await page.waitForTimeout(200);
		out.child = (await page.locator(".drawer h3").count()) ? await text(".drawer h3") : "";
		await shot("timeline-detail-light");
		await page.keyboard.press("Escape");
		const fitted = await picture(".stage canvas");
		await page.keyboard.press("f");
		await page.waitForTimeout(200);
		out.fit = (await picture(".stage canvas")) !== fitted;
		await tab("flame");
		out.flame = await colours(".stage canvas");
		await dark(true);
		await shot("flame-dark");
		await dark(false);
		await page.keyboard.press("/");
		await page.keyboard.type("aten::mm");
		await page.waitForTimeout(200);
		out.found = await text(".bar [role=status]");
		await shot("flame-search-light");
		await page.keyboard.press("Escape");
		for (const name of ["memory", "metrics", "torch", "devices"]) {
			await tab(name);
			await page.waitForTimeout(200);
			out[name] = { text: (await text("main")).slice(0, 400), chart: await colours(".uplot canvas") };
			await shot(`${name}-light`);
		}
		await page.click("footer a");
		await page.waitForTimeout(200);
		out.streams = (await text("main")).slice(0, 300);
		await page.keyboard.press("?");
		out.help = await page.locator("dialog[open] dt").count();
		await page.keyboard.press("Escape");
		await page.keyboard.press("1");
		await page.waitForTimeout(100);
		out.first = await page.title();
		await page.setViewportSize({ width: 800, height: 700 });
		await page.waitForTimeout(200);
		out.narrow = [await page.locator(".menu").isVisible(), (await overflow())[0]];
		return out;
	},
	/** The Devices tab, and a track for each queue. */
	async devices() {
		const out = { open: await open() };
		const cells = (label) =>
			page
				.locator(`table[aria-label='${label}'] tbody tr`)
				.evaluateAll((rows) => rows.map((r) => [...r.cells].map((c) => c.innerText)));
		await tab("devices");
		out.models = await cells("Models");
		out.queues = await cells("Queues");
		out.launches = await cells("Launches");
		out.spent = await page.locator(".spent").evaluateAll((all) => all.map((bar) => bar.getAttribute("aria-label")));
		await shot("devices");
		await tab("timeline");
		out.timeline = await colours(".stage canvas");
		await shot("timeline-devices");
		return out;
	},
	/** The Memory tab: what it says of allocations, and the mark of the peak. */
	async allocations() {
		const out = { open: await open() };
		await tab("memory");
		await page.waitForTimeout(300);
		out.figures = await page.locator(".figure").allInnerTexts();
		out.cut = await page
			.locator(".figure")
			.evaluateAll((all) => all.filter((f) => f.scrollWidth > f.clientWidth).map((f) => f.innerText));
		out.fifth = await page
			.locator("table[aria-label='Call sites'] tbody tr")
			.nth(4)
			.evaluate((row) => row.getBoundingClientRect().bottom);
		out.said = await text("p.said");
		out.red = await page.locator(".uplot canvas").evaluateAll((all) =>
			all.map((canvas) => {
				const { data } = /** @type {any} */ (canvas.getContext("2d")).getImageData(
					0,
					0,
					canvas.width,
					canvas.height,
				);
				let red = 0;
				for (let i = 0; i < data.length; i += 4)
					red += data[i + 3] > 128 && data[i] > data[i + 1] + 60 && data[i] > data[i + 2] + 60 ? 1 : 0;
				return red;
			}),
		);
		out.sites = await page
			.locator("table[aria-label='Call sites'] tbody tr")
			.evaluateAll((rows) => rows.map((r) => [...r.cells].map((c) => c.innerText)));
		await shot("memory-allocations");
		return out;
	},
	/** The first screen of the middle third of the run, then of all of it. */
	async ranged() {
		const out = { open: await open() };
		const end = await page.evaluate(
			() => JSON.parse(document.getElementById("kymo-data")?.textContent ?? "").run[0].duration_ns,
		);
		const cells = () =>
			page
				.locator("table[aria-label='Top regions'] tbody tr")
				.evaluateAll((rows) => rows.map((r) => [...r.cells].map((c) => c.lastChild.textContent)));
		[out.from, out.to] = [Math.round(end / 3), Math.round((2 * end) / 3)];
		await page.evaluate(
			([from, to]) => {
				location.hash = `#/overview?t0=${from}&t1=${to}`;
			},
			[out.from, out.to],
		);
		await page.waitForSelector(".verdict.ranged");
		out.said = await text(".verdict h1");
		out.figures = await page.locator(".figure").allInnerTexts();
		out.regions = await cells();
		await shot("overview-range");
		await page.keyboard.press("Escape");
		await page.waitForSelector(".verdict:not(.ranged)");
		out.whole = await cells();
		out.address = await page.evaluate(() => location.hash);
		return out;
	},
	/** Follows every figure of the verdicts and reads the search of the tab that it leads to. */
	async links() {
		/** @type {{open: any, links: any[]}} */
		const out = { open: await open(), links: [] };
		const links = await page
			.locator(".verdict h1 a")
			.evaluateAll((all) => all.map((a) => [a.textContent, a.getAttribute("href"), a.title]));
		for (const [number, href, sql] of links) {
			await page.evaluate((hash) => {
				location.hash = hash;
			}, href);
			await page.waitForTimeout(250);
			out.links.push({
				number,
				href,
				sql,
				tab: await page.getAttribute(".tab[aria-selected=true]", "id"),
				find: (await page.locator("input[type=search]").count())
					? await page.inputValue("input[type=search]")
					: null,
				bar: (await page.locator(".bar").count()) ? await text(".bar") : "",
			});
		}
		return out;
	},
	async hostile() {
		const out = { open: await open() };
		out.names = await page.locator("table[aria-label='Top regions'] tbody td:first-child").allInnerTexts();
		out.scripts = await page.locator("script").count();
		out.hacked = await page.evaluate(() => /** @type {any} */ (window).hacked ?? null);
		for (const name of ["timeline", "flame", "metrics"]) {
			await tab(name);
			await page.mouse.move(700, 142);
			await page.waitForTimeout(200);
		}
		out.hackedLater = await page.evaluate(() => /** @type {any} */ (window).hacked ?? null);
		await shot("hostile");
		return out;
	},
	async speed() {
		const out = { open: await open() };
		out.timings = await page.evaluate(() => performance.now());
		await tab("timeline");
		out.timeline = await colours(".stage canvas");
		await shot("million-timeline");
		out.frame = await page.evaluate(
			() =>
				new Promise((done) => {
					const began = performance.now();
					requestAnimationFrame(() => requestAnimationFrame(() => done(performance.now() - began)));
				}),
		);
		await tab("flame");
		out.flame = await colours(".stage canvas");
		await shot("million-flame");
		return out;
	},
	async opened() {
		return { open: await open() };
	},
	async compared() {
		const out = { open: await open() };
		await dark(false);
		const names = () =>
			page
				.locator("table[aria-label='What changed'] tbody td:first-child")
				.evaluateAll((list) => list.map((td) => td.lastChild.textContent));
		const column = (n) => page.locator(`table[aria-label='What changed'] tbody td:nth-child(${n})`).allInnerTexts();
		const head = (t) => page.locator("table[aria-label='What changed'] th button", { hasText: t });
		out.title = await page.title();
		out.verdict = await text(".verdict h1");
		out.because = await text(".verdict p");
		out.sides = await page.locator(".side").allInnerTexts();
		out.figures = await page.locator(".figure").allInnerTexts();
		out.footer = await text("footer");
		out.overflow = (await overflow())[0];
		out.names = await names();
		out.ratios = await column(5);
		out.tones = await page.locator(".interval").evaluateAll((list) => list.map((e) => e.className));
		out.bars = await page
			.locator("tbody tr:nth-child(2) .interval")
			.evaluate((e) =>
				[...e.querySelectorAll(".line, .dot")].map((i) =>
					Math.round(i.getBoundingClientRect().left - e.getBoundingClientRect().left),
				),
			);
		await shot("compare-light");
		await head("B ÷ A").click();
		out.byRatio = await column(5);
		await head("B ÷ A").click();
		out.byRatioUp = await column(5);
		await page.keyboard.press("/");
		await page.keyboard.type("SOFT");
		out.filtered = await names();
		await page.keyboard.press("Escape");
		await dark(true);
		await shot("compare-dark");
		await page.click("#show-flame");
		await page.waitForTimeout(300);
		out.address = await page.evaluate(() => location.hash);
		out.flame = await colours(".stage canvas");
		await shot("compare-flame-dark");
		await dark(false);
		[out.red, out.blue] = await page.evaluate(() => {
			const canvas = /** @type {HTMLCanvasElement} */ (document.querySelector(".stage canvas"));
			const data = /** @type {any} */ (canvas.getContext("2d")).getImageData(
				0,
				0,
				canvas.width,
				canvas.height,
			).data;
			let red = 0;
			let blue = 0;
			for (let i = 0; i < data.length; i += 4) {
				red += Number(data[i] - data[i + 2] > 60);
				blue += Number(data[i + 2] - data[i] > 60);
			}
			return [red, blue];
		});
		await shot("compare-flame-light");
		const before = await picture(".stage canvas");
		await page.keyboard.press("/");
		await page.keyboard.type("softmax");
		await page.waitForTimeout(200);
		out.found = await text(".flames [role=status]");
		out.dimmed = (await picture(".stage canvas")) !== before;
		await shot("compare-flame-search-light");
		await page.keyboard.press("Escape");
		const canvas = await page.locator(".stage canvas").boundingBox();
		await page.mouse.move(canvas.x + 40, canvas.y + 30);
		await page.waitForTimeout(150);
		out.tip = await text(".tip");
		await page.mouse.click(canvas.x + 40, canvas.y + 30);
		const zoomed = await picture(".stage canvas");
		await page.keyboard.press("Escape");
		await page.waitForTimeout(100);
		out.back = (await picture(".stage canvas")) !== zoomed;
		await page.keyboard.press("ArrowDown");
		out.said = await page.locator("[aria-live]").first().innerText();
		await page.goBack();
		await page.waitForTimeout(200);
		out.again = (await names()).length;
		out.scripts = await page.locator("script").count();
		out.hacked = await page.evaluate(() => /** @type {any} */ (window).hacked ?? null);
		await page.setViewportSize({ width: 800, height: 700 });
		await page.waitForTimeout(200);
		out.narrow = (await overflow())[0];
		await shot("compare-narrow");
		return out;
	},
	async refused() {
		const out = { open: await open() };
		out.verdict = await text(".verdict h1");
		out.because = await text(".verdict p");
		out.tables = await page.locator("table").count();
		await shot("compare-refused");
		return out;
	},
	async colours() {
		await open();
		const read = () =>
			page.evaluate(() =>
				Object.fromEntries(
					[
						.../** @type {Iterable<CSSStyleRule>} */ (
							/** @type {unknown} */ (document.styleSheets[0].cssRules)
						),
					]
						.filter((r) => r.selectorText === ":root" || r.selectorText === ":root.dark")
						.map((r) => [
							r.selectorText,
							Object.fromEntries(
								[...r.style]
									.filter((n) => n.startsWith("--"))
									.map((n) => [n.slice(2), r.style.getPropertyValue(n).trim()]),
							),
						]),
				),
			);
		return await read();
	},
};

let result;
try {
	result = await checks[check]();
} catch (why) {
	result = { failed: String(why) };
	await shot("failed").catch(() => {});
}
console.log(JSON.stringify({ ...result, ...seen }));
await context.close();
rmSync(profile, { recursive: true, force: true });
