// Requests to the server; docs/api.md describes them.
import { queryText } from "./format.js";

/** What failed, and what to do. */
export class ApiError extends Error {
	/** @param {string} what @param {string|null} hint @param {number} status 0: no answer */
	constructor(what, hint, status) {
		super(what);
		this.hint = hint;
		this.status = status;
	}
}

/** @param {string} path @param {Record<string, any>} [params] */
export const address = (path, params = {}) => `/api/${path}${queryText(params)}`;

/** @param {Response} answer */
async function refusal(answer) {
	try {
		const { error, hint } = await answer.json();
		return new ApiError(error, hint, answer.status);
	} catch {
		return new ApiError(`kymo serve answered ${answer.status} ${answer.statusText}`, null, answer.status);
	}
}

/** @param {string} url @param {RequestInit} options */
async function ask(url, options) {
	let answer;
	try {
		answer = await fetch(url, options);
	} catch (why) {
		if (/** @type {Error} */ (why).name === "AbortError")
			throw why;
		throw new ApiError("kymo serve does not answer", "Start it again; this page then reconnects.", 0);
	}
	if (!answer.ok)
		throw await refusal(answer);
	return answer;
}

/** @param {string} path @param {Record<string, any>} [params] @param {AbortSignal} [signal] */
export const get = (path, params, signal) => ask(address(path, params), { signal });
/** @param {string} path @param {Record<string, any>} [params] @param {AbortSignal} [signal] @returns {Promise<any>} */
export const getJson = async (path, params, signal) => (await get(path, params, signal)).json();
/** @param {string} path @param {any} body @param {AbortSignal} [signal] */
export const post = (path, body, signal) =>
	ask(address(path), {
		method: "POST",
		headers: { "Content-Type": "application/json" },
		body: JSON.stringify(body),
		signal,
	});
/** @param {string} path @param {any} body @param {AbortSignal} [signal] @returns {Promise<any>} */
export const postJson = async (path, body, signal) => (await post(path, body, signal)).json();

/**
 * Server-sent events; reconnects.
 * @param {string} path
 * @param {Record<string, any>} params
 * @param {Record<string, (data: any) => void>} handlers
 * @param {(there: boolean) => void} onserver
 * @returns {() => void} closes the connection
 */
export function listen(path, params, handlers, onserver) {
	/** @type {EventSource|null} */ let events = null;
	let timer = 0;
	let ended = false;
	const start = () => {
		const made = new EventSource(address(path, params));
		events = made;
		made.onopen = () => onserver(true);
		made.onerror = () => {
			onserver(false);
			// The browser reconnects after a lost connection, but not after a refusal.
			if (made.readyState === EventSource.CLOSED && !ended)
				timer = window.setTimeout(start, 2000);
		};
		for (const [name, act] of Object.entries(handlers))
			made.addEventListener(name, (e) => act(JSON.parse(/** @type {MessageEvent} */ (e).data)));
	};
	start();
	return () => {
		ended = true;
		clearTimeout(timer);
		events?.close();
	};
}
