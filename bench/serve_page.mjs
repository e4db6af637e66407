// The live viewer's page on a large recording, in a real browser; prints what it finds as lines of JSON for
// bench/serve.py:
//   node serve_page.mjs PLAYWRIGHT CHROMIUM http://127.0.0.1:PORT/[#/ID/timeline | #/ID/ranks]
import { mkdtempSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";

const SECONDS = 3; // of moving, each way
const [playwright, chromium, url] = process.argv.slice(2);
const { chromium: browserType } = createRequire(import.meta.url)(playwright);
const profile = mkdtempSync(join(tmpdir(), "kymo-bench-"));
const context = await browserType.launchPersistentContext(profile, {
	executablePath: chromium,
	headless: true,
	viewport: { width: 1280, height: 720 },
	args: [
		"--no-sandbox",
		"--disable-gpu",
		"--no-first-run",
		"--disable-background-networking",
		"--disable-component-update",
		"--disable-sync",
	],
});
const page = await context.newPage();
const found = (key, value) => console.log(JSON.stringify({ key, value }));

/** Whether the timeline holds colours of zones, not only of its frame. */
const isDrawn = () => {
	/** @type {HTMLCanvasElement|null} */
	const canvas = document.querySelector(".stage canvas");
	const colours = new Set();
	if (!canvas?.width)
		return false;
	const { data } = /** @type {any} */ (canvas.getContext("2d")).getImageData(140, 30, canvas.width - 150, 300);
	for (let i = 0; i < data.length; i += 16)
		colours.add((data[i] << 16) | (data[i + 1] << 8) | data[i + 2]);
	return colours.size > 4;
};

/** Whether the map of step × rank holds colours of cells. */
const isMapDrawn = () => {
	/** @type {HTMLCanvasElement|null} */
	const canvas = document.querySelector(".stage.map canvas");
	const colours = new Set();
	if (!canvas?.width)
		return false;
	const { data } = /** @type {any} */ (canvas.getContext("2d")).getImageData(140, 30, canvas.width - 150, 100);
	for (let i = 0; i < data.length; i += 16)
		colours.add((data[i] << 16) | (data[i + 1] << 8) | data[i + 2]);
	return colours.size > 1; // that of the usual cell and those of others
};

/** Milliseconds a frame while the mouse does something again and again. */
async function frames(move) {
	await page.evaluate(() => {
		/** @type {number[]} */
		const seen = [];
		/** @type {any} */ (window).benchFrames = seen;
		const next = (at) => {
			seen.push(at);
			if (/** @type {any} */ (window).benchFrames === seen)
				requestAnimationFrame(next);
		};
		requestAnimationFrame(next);
	});
	for (let i = 0, end = Date.now() + SECONDS * 1000; Date.now() < end; i++)
		await move(i);
	const seen = await page.evaluate(() => {
		const all = /** @type {any} */ (window).benchFrames;
		/** @type {any} */ (window).benchFrames = null;
		return all;
	});
	return (seen.at(-1) - seen[0]) / (seen.length - 1);
}

/** Seconds since the page was asked for, once it is so. */
async function after(isSo) {
	await page.waitForFunction(isSo, null, { timeout: 120000, polling: 20 });
	return (await page.evaluate(() => performance.now())) / 1000;
}

/** One that is named: it opens by itself. */
async function first() {
	await page.waitForFunction(() => performance.getEntriesByName("first-contentful-paint").length, null, {
		timeout: 120000,
	});
	const painted = await page.evaluate(() => performance.getEntriesByName("first-contentful-paint")[0].startTime);
	const tabs = await after(() => document.querySelector("#tab-timeline"));
	await page.click("#tab-timeline");
	found("serve.paint.zones", await after(isDrawn));
	found("serve.paint.tabs", tabs);
	found("serve.paint", painted / 1000);
	await page.click("#tab-overview");
	found("serve.paint.facts", await after(() => document.querySelector(".figure")));
	await page.click("#tab-timeline");
	await page.mouse.move(640, 300);
	found("serve.zoom", await frames((i) => page.mouse.wheel(0, i % 60 < 40 ? -120 : 120)));
	await page.mouse.down();
	found("serve.pan", await frames((i) => page.mouse.move(640 + 400 * Math.sin(i / 20), 300)));
	await page.mouse.up();
}

/** The map of a job: until its cells are visible, and a frame's time while it is zoomed and moved. */
async function map() {
	found("jobs.map.paint", await after(isMapDrawn));
	await page.mouse.move(640, 250);
	found("jobs.map.zoom", await frames((i) => page.mouse.wheel(0, i % 60 < 40 ? -120 : 120)));
	await page.mouse.down();
	found("jobs.map.pan", await frames((i) => page.mouse.move(640 + 400 * Math.sin(i / 20), 250)));
	await page.mouse.up();
}

try {
	await page.goto(url);
	if (url.endsWith("/ranks"))
		await map();
	else if (url.includes("#"))
		found("serve.paint.listed", await after(isDrawn));
	else
		await first();
} finally {
	await context.close();
	rmSync(profile, { recursive: true, force: true });
}
