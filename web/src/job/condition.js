// The chosen ranks as a condition in SQL, and a query with such a condition.
import { rangesOf } from "./ranks.js";

/**
 * "rank BETWEEN 3 AND 4"; "" for all ranks.
 * @param {string} ranks "0,3,8-15"
 */
export function rankCondition(ranks) {
	const parts = (rangesOf(ranks) ?? []).map(([from, to]) =>
		from === to ? `rank = ${from}` : `rank BETWEEN ${from} AND ${to}`,
	);
	return parts.length > 1 ? `(${parts.join(" OR ")})` : (parts[0] ?? "");
}

const WORDS = /'(?:[^']|'')*'|"(?:[^"]|"")*"|--[^\n]*|[()]|\b[a-z_]+\b/gi;
const ENDS = ["GROUP", "HAVING", "QUALIFY", "WINDOW", "ORDER", "LIMIT", "OFFSET", "UNION", "EXCEPT", "INTERSECT"];

/**
 * Where the WHERE of the outermost SELECT begins (or −1) and where its condition ends.
 * @param {string} sql
 */
function placeOfWhere(sql) {
	let depth = 0;
	let from = false;
	let where = -1;
	for (const { 0: word, index } of sql.matchAll(WORDS)) {
		const upper = word.toUpperCase();
		depth += word === "(" ? 1 : word === ")" ? -1 : 0;
		if (depth)
			continue;
		from ||= upper === "FROM";
		if (from && upper === "WHERE" && where < 0)
			where = index;
		else if (from && ENDS.includes(upper))
			return { where, end: index };
	}
	return { where, end: sql.replace(/[\s;]+$/, "").length };
}

/**
 * The query with one more condition on its outermost SELECT.
 * @param {string} sql
 * @param {string} condition
 */
export function withCondition(sql, condition) {
	const { where, end } = placeOfWhere(sql);
	const rest = sql.slice(end);
	if (where < 0)
		return `${sql.slice(0, end).trimEnd()}\nWHERE ${condition}${rest.trim() ? `\n${rest}` : rest}`;
	const had = sql.slice(where + "WHERE".length, end).trim();
	return `${sql.slice(0, where)}WHERE (${had}) AND ${condition}${rest.trim() ? `\n${rest}` : rest}`;
}
