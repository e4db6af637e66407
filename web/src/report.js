// The page of a report: it holds all its data and needs no network.
import { showComparison } from "./compare-page.js";
import { Shell } from "./shell.js";
import { EmbedSource } from "./source-embed.js";
import { compare } from "./views/compare.js";
import { devices } from "./views/devices.js";
import { flame } from "./views/flame.js";
import { memory } from "./views/memory.js";
import { metrics } from "./views/metrics.js";
import { overview } from "./views/overview.js";
import { ranks } from "./views/ranks.js";
import { source as sourceTab } from "./views/source.js";
import { streams } from "./views/streams.js";
import { timeline } from "./views/timeline.js";
import { torch } from "./views/torch.js";

const text = (/** @type {string} */ id) => document.getElementById(id)?.textContent ?? "";
const root = /** @type {HTMLElement} */ (document.getElementById("app"));

try {
	const data = JSON.parse(text("kymo-data"));
	if (data.run)
		showReport(data);
	else
		showComparison(root, data.compare);
} catch (why) {
	const what = "The file may be truncated; write it again with kymo report -f html.";
	root.textContent = `Cannot show this report: ${why}. ${what}`;
}

/** @param {Record<string, any>} data */
function showReport(data) {
	const source = new EmbedSource(data);
	new Shell(root, source, [
		overview,
		timeline,
		ranks,
		flame,
		sourceTab,
		memory,
		metrics,
		torch,
		devices,
		...(data.compare ? [compare] : []),
		streams,
	]);
	source.load(text("kymo-zones")).then(
		() => root.setAttribute("data-ready", "yes"),
		(why) => {
			root.setAttribute("data-ready", "no");
			root.querySelector("footer .detail")?.replaceChildren(
				`Cannot read the zones of this file: ${why}. Write the report again.`,
			);
		},
	);
}
