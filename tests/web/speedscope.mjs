// Opens profiles in speedscope's own page, in headless Chromium, and tells what its table of frames shows, as JSON on
// stdout.
//   node speedscope.mjs PLAYWRIGHT CHROMIUM INDEX PROFILE…
import { createRequire } from "node:module";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { pathToFileURL } from "node:url";

const [playwright, chromium, index, ...profiles] = process.argv.slice(2);
const { chromium: browserType } = createRequire(import.meta.url)(playwright);
const folder = mkdtempSync(join(tmpdir(), "kymo-speedscope-"));
const context = await browserType.launchPersistentContext(join(folder, "profile"), {
	executablePath: chromium,
	headless: true,
	args: [
		"--no-sandbox",
		"--use-angle=swiftshader",
		"--enable-unsafe-swiftshader",
		"--no-first-run",
		"--disable-background-networking",
		"--disable-component-update",
		"--disable-sync",
	],
});

/**
 * As speedscope's own command does: a script beside the page hands it the file.
 * @param {string} profile
 * @param {number} number
 */
async function look(profile, number) {
	/** @type {{errors: string[], rows: string[][], text: string}} */
	const seen = { errors: [], rows: [], text: "" };
	const page = await context.newPage();
	const script = join(folder, `profile-${number}.js`);
	page.on("pageerror", (why) => seen.errors.push(String(why)));
	page.on("dialog", (dialog) => {
		seen.errors.push(dialog.message());
		dialog.dismiss();
	});
	try {
		const words = [basename(profile), readFileSync(profile).toString("base64")].map((word) => JSON.stringify(word));
		writeFileSync(script, `speedscope.loadFileFromBase64(${words.join(", ")})`);
		await page.goto(`${pathToFileURL(index).href}#view=sandwich&localProfilePath=${script}`);
		await page.waitForFunction(() => document.querySelectorAll("table tr").length > 1, null, { timeout: 60_000 });
		seen.rows = await page.evaluate(() =>
			[.../** @type {NodeListOf<HTMLTableRowElement>} */ (document.querySelectorAll("table tr"))].map((row) =>
				[...row.cells].map((cell) => cell.innerText.trim()),
			),
		);
	} catch (why) {
		seen.errors.push(String(why));
	}
	seen.text = await page.evaluate(() => document.body.innerText).catch(() => "");
	await page.close();
	return seen;
}

/** @type {Awaited<ReturnType<typeof look>>[]} */
const seen = [];
for (const [number, profile] of profiles.entries())
	seen.push(await look(profile, number));
console.log(JSON.stringify(seen));
await context.close();
rmSync(folder, { recursive: true, force: true });
