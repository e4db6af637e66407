// A page that a test drives, one JSON line for each call and each answer:
//   node remote.mjs PLAYWRIGHT CHROMIUM SCREENSHOTS      {"do":"click","args":["#tab-flame"]}  ->  {"value":null}
// Every call that waits does so for a condition, at most WAIT ms.
import { createRequire } from "node:module";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";

const WAIT = 60000;
const [playwright, chromium, shots] = process.argv.slice(2);
const { chromium: browserType } = createRequire(import.meta.url)(playwright);
const profile = mkdtempSync(join(tmpdir(), "kymo-web-"));
const context = await browserType.launchPersistentContext(profile, {
	executablePath: chromium,
	headless: true,
	viewport: { width: 1280, height: 720 },
	acceptDownloads: true,
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
context.setDefaultTimeout(WAIT);
const page = await context.newPage();
/** @type {{errors: string[], requests: string[], refused: string[]}} */
const seen = { errors: [], requests: [], refused: [] };
page.on("console", (m) => {
	if (["error", "warning"].includes(m.type()) && !m.text().startsWith("Canvas2D: Multiple readback"))
		seen.errors.push(m.text());
});
page.on("response", (r) => {
	if (r.status() >= 400)
		seen.refused.push(`${r.status()} ${r.request().method()} ${r.url().slice(new URL(r.url()).origin.length)}`);
});
page.on("pageerror", (e) => seen.errors.push(String(e)));
page.on("request", (r) => {
	if (!r.url().startsWith("http://127.0.0.1:") && !r.url().startsWith("data:") && !r.url().startsWith("blob:"))
		seen.requests.push(r.url());
});
page.on("dialog", (d) => {
	seen.errors.push(`dialog: ${d.message()}`);
	d.dismiss();
});

async function poll(look, what, fine) {
	for (const end = Date.now() + WAIT; ; ) {
		const found = await look(what);
		if (fine(found))
			return found;
		if (Date.now() > end)
			throw new Error(`after ${WAIT / 1000} s it is still ${JSON.stringify(found)}`);
		await page.waitForTimeout(100);
	}
}

const calls = {
	open: (url) =>
		page
			.goto(url)
			.then(() => page.waitForSelector("#app[data-ready]"))
			.then(() => null),
	click: (selector) => page.click(selector),
	mouse: (x, y) => page.mouse.click(x, y),
	move: (x, y) => page.mouse.move(x, y),
	wheel: (dx, dy) => page.mouse.wheel(dx, dy),
	drag: async (x0, y0, x1, y1, shift) => {
		if (shift)
			await page.keyboard.down("Shift");
		await page.mouse.move(x0, y0);
		await page.mouse.down();
		await page.mouse.move((x0 + x1) / 2, y1);
		await page.mouse.move(x1, y1);
		await page.mouse.up();
		if (shift)
			await page.keyboard.up("Shift");
	},
	press: (key) => page.keyboard.press(key),
	type: (text) => page.keyboard.type(text),
	fill: (selector, text) => page.fill(selector, text),
	choose: (selector, value) => page.selectOption(selector, value),
	text: (selector) => page.locator(selector).first().innerText(),
	texts: (selector) => page.locator(selector).allInnerTexts(),
	count: (selector) => page.locator(selector).count(),
	see: (selector) => page.waitForSelector(selector).then(() => null),
	gone: (selector) => page.waitForSelector(selector, { state: "hidden" }).then(() => null),
	/** Until the text of an element matches. */
	says: (selector, pattern) =>
		poll(
			(s) => page.evaluate((one) => document.querySelector(one)?.innerText ?? "", s),
			selector,
			(text) => new RegExp(pattern).test(text),
		),
	/** Until an expression is true. The page's policy forbids eval, so it is asked from here. */
	until: (js) => poll((one) => page.evaluate(one), js, Boolean),
	js: (js) => page.evaluate(js),
	theme: async (dark) => {
		if (dark !== (await page.evaluate(() => document.documentElement.classList.contains("dark"))))
			await page.keyboard.press("t");
		return page
			.waitForFunction((d) => document.documentElement.classList.contains("dark") === d, dark)
			.then(() => null);
	},
	size: (width, height) => page.setViewportSize({ width, height }),
	save: async (selector, path) => {
		const [download] = await Promise.all([page.waitForEvent("download"), page.click(selector)]);
		await download.saveAs(path);
		return download.suggestedFilename();
	},
	shot: async (name) => {
		await page.evaluate(() => new Promise((r) => requestAnimationFrame(() => requestAnimationFrame(r))));
		await page.screenshot({ path: join(shots, `${name}.png`) });
	},
	seen: () => seen,
};

console.log(JSON.stringify({ value: "ready" }));
for await (const line of createInterface({ input: process.stdin })) {
	const { do: name, args } = JSON.parse(line);
	try {
		console.log(JSON.stringify({ value: (await calls[name](...args)) ?? null }));
	} catch (why) {
		await calls.shot("live-failed").catch(() => {});
		console.log(JSON.stringify({ failed: `${name} ${JSON.stringify(args)}: ${why}` }));
	}
}
await context.close();
rmSync(profile, { recursive: true, force: true });
