/* The views of allocations: what catalog.c has rows for. Rows are packed (struct schema_alloc_row), live bytes are made of
   them, and a sample counts for as much as it stands for: 1 / (1 - exp(-size / mean)) allocations of its size. */
#ifndef KYMO_TABLES_CATALOG_ALLOC_H
#define KYMO_TABLES_CATALOG_ALLOC_H

/* A mean of 64 KiB: KYMO_MEMORY_MEAN. */
#define ALLOC_CHANCE "(1 - exp(size / -65536.0))"

/* rows: one for each allocation and free; session counts how often watching began before it. sign is 0 where it ended. */
#define ALLOC_ROWS \
	"taken AS MATERIALIZED (SELECT pid, ts_ns, (place & 7)::INTEGER AS code, place & 281474976710648 AS ptr, " \
	"(place >> 48)::INTEGER AS thread_id, (what & 1099511627775)::BIGINT AS size, (what >> 40)::INTEGER AS node " \
	"FROM kymo_scan('alloc.rows')), " \
	"began AS (SELECT pid, ts_ns AS began_ns, count(*) FILTER (code = 5) OVER (PARTITION BY pid ORDER BY ts_ns) AS session, " \
	"'malloc, ' || CASE WHEN size > 0 THEN 'sampled' ELSE 'exact' END || CASE WHEN node > 0 THEN ', from the start' " \
	"ELSE ', calls redirected' END AS source FROM taken WHERE code IN (4, 5)), " \
	"rows AS MATERIALIZED (SELECT t.*, coalesce(b.session, 0) AS session, b.source, CASE WHEN code IN (0, 2) THEN 1 " \
	"WHEN code IN (1, 3) THEN -1 ELSE 0 END AS sign, CASE WHEN code IN (2, 3) AND size > 0 THEN 1 / " ALLOC_CHANCE \
	" ELSE 1 END AS weight FROM taken t ASOF LEFT JOIN began b ON b.pid = t.pid AND b.began_ns <= t.ts_ns " \
	"WHERE t.code NOT IN (4, 5)), "

#define ALLOC_LIVE \
	"levels AS MATERIALIZED (SELECT pid, ts_ns, session, source, sign, CASE WHEN sign = 0 THEN 0 ELSE sum(sign * size * " \
	"weight) OVER (PARTITION BY pid, session ORDER BY ts_ns, sign DESC ROWS UNBOUNDED PRECEDING) END AS live_bytes " \
	"FROM rows), "

/* Each node that a row names, with its way up to the outermost caller. */
#define ALLOC_WAYS \
	"frames AS MATERIALIZED (SELECT pid, node, any_value(parent) AS parent, any_value(name) AS func, " \
	"any_value(name_file) AS file, any_value(lineno) AS lineno, any_value(name_source) AS source FROM " \
	"kymo_scan('alloc.frames') GROUP BY pid, node), " \
	"ways(pid, leaf, node, depth) AS (SELECT DISTINCT pid, node, node, 0 FROM rows WHERE node > 0 " \
	"UNION ALL SELECT w.pid, w.leaf, f.parent, w.depth + 1 FROM ways w JOIN frames f ON " \
	"f.pid = w.pid AND f.node = w.node WHERE f.parent > 0), " \
	"stacks AS MATERIALIZED (SELECT w.pid, w.leaf, list(f.func || CASE WHEN f.lineno > 0 THEN ' (' || f.file || ':' || " \
	"f.lineno || ')' WHEN f.file <> '' THEN ' (' || regexp_extract(f.file, '[^/]*$') || ')' ELSE '' END ORDER BY " \
	"w.depth) AS stack, coalesce(arg_min(regexp_extract(f.file, '[^/]*$') || ':' || f.lineno, w.depth) FILTER " \
	"(f.lineno > 0), arg_min(f.func, w.depth)) AS site, bool_or(f.file LIKE '%/libc10.so') AS tensor FROM ways w " \
	"JOIN frames f ON f.pid = w.pid AND f.node = w.node GROUP BY w.pid, w.leaf) "

#define ALLOC_STACK "LEFT JOIN stacks s ON s.pid = r.pid AND s.leaf = r.node"
/* Which of them is freed when: the next row of the same address. */
#define ALLOC_FATES \
	"fates AS (SELECT *, lead(ts_ns) OVER (PARTITION BY pid, session, ptr ORDER BY ts_ns, sign) AS freed_ns FROM rows " \
	"WHERE sign <> 0), "

#define ALLOC_FROM_ALLOCATIONS \
	"(WITH RECURSIVE " ALLOC_ROWS ALLOC_FATES ALLOC_WAYS \
	"SELECT r.*, s.stack, s.site, t.tid FROM fates r " ALLOC_STACK \
	" LEFT JOIN (SELECT pid, tid, row_number() OVER (PARTITION BY pid ORDER BY thread_id) AS thread_id FROM kymo_meta('threads')) t ON t.pid = r.pid AND t.thread_id = r.thread_id ORDER BY r.ts_ns)"

#define ALLOC_FROM_TIMELINE \
	"(WITH " ALLOC_ROWS ALLOC_LIVE "last AS (SELECT 1) SELECT * FROM levels ORDER BY ts_ns)"

/* What was live at a moment is the sum of all rows of its session until then. */
#define ALLOC_FROM_SITES \
	"(WITH RECURSIVE " ALLOC_ROWS ALLOC_LIVE \
	"tops AS (SELECT pid, arg_max(session, live_bytes) AS peak_session, arg_max(ts_ns, live_bytes) AS peak_ns, " \
	"max(session) AS last_session FROM levels WHERE sign <> 0 GROUP BY pid), " ALLOC_FATES \
		ALLOC_WAYS \
	"SELECT r.pid, s.stack, s.site, bool_or(s.tensor) AS tensor, round(sum(sign * size * weight) FILTER (r.session = " \
	"p.last_session)) AS live_bytes, round(coalesce(sum(sign * size * weight) FILTER (r.session = p.peak_session AND " \
	"r.ts_ns <= p.peak_ns), 0)) AS at_peak_bytes, round(2 * sqrt(greatest(0, coalesce(sum(sign * size * size * weight * " \
	"(weight - 1)) FILTER (r.session = p.peak_session AND r.ts_ns <= p.peak_ns), 0)))) AS at_peak_error_bytes, round(coalesce(sum(sign * size * weight) FILTER (r.session = p.peak_session AND r.ts_ns <= p.peak_ns AND weight > 1), 0)) AS at_peak_estimated_bytes, " \
	"round(sum(size * weight) FILTER (sign > 0)) AS allocated_bytes, round(sum(weight) FILTER (sign > 0)) AS count, " \
	"round(coalesce(sum(size * weight) FILTER (sign > 0 AND freed_ns - r.ts_ns < 1000000), 0)) AS churn_bytes " \
	"FROM fates r JOIN tops p ON p.pid = r.pid " ALLOC_STACK \
	" GROUP BY r.pid, s.stack, s.site ORDER BY at_peak_bytes DESC)"

#define ALLOC_FROM_LIVE \
	"(WITH RECURSIVE " ALLOC_ROWS ALLOC_FATES ALLOC_WAYS \
	", ends AS (SELECT pid, max(session) AS last_session FROM rows GROUP BY pid) " \
	"SELECT r.*, (SELECT duration_ns FROM kymo_meta('runs')) - r.ts_ns AS age_ns, s.stack, s.site, s.tensor FROM fates r " \
	"JOIN ends e ON e.pid = r.pid AND e.last_session = r.session " ALLOC_STACK \
	" WHERE r.sign > 0 AND r.freed_ns IS NULL ORDER BY r.size DESC)"

static const struct catalog_column alloc_allocations[] = {
	TS,
	MADE("kind", "VARCHAR", "CASE WHEN sign > 0 THEN 'alloc' ELSE 'free' END", "alloc or free"),
	AS_IS("ptr", "UBIGINT", "the address"),
	AS_IS("size", "BIGINT", "its bytes"),
	AS_IS("weight", "DOUBLE", "allocations that this sample stands for; 1: itself alone"),
	MADE("device", "VARCHAR", "NULL::VARCHAR", "the device; NULL for the host"),
	TID,
	AS_IS("stack", "VARCHAR[]", "frames, the innermost first"),
	MADE("lifetime_ns", "BIGINT", "CASE WHEN sign > 0 THEN freed_ns - ts_ns END",
	     "of an allocation: until it was freed; NULL where it was not"),
	AS_IS("site", "VARCHAR", "the innermost line of Python, else the innermost function"),
	PID,
};

static const struct catalog_column alloc_timeline[] = {
	TS,
	MADE("live_bytes", "BIGINT", "round(live_bytes)::BIGINT",
	     "allocated since watching began, and not freed; an estimate where it is sampled"),
	AS_IS("source", "VARCHAR",
	      "which allocator, how, and whether from the start or by redirected calls, which miss what the "
	      "constructors of libraries allocate that are loaded later"),
	PID,
};

static const struct catalog_column alloc_sites[] = {
	AS_IS("stack", "VARCHAR[]", "frames, the innermost first"),
	MADE("live_bytes", "BIGINT", "live_bytes::BIGINT", "allocated there and not freed"),
	MADE("at_peak_bytes", "BIGINT", "at_peak_bytes::BIGINT", "the same at the peak"),
	MADE("allocated_bytes", "BIGINT", "allocated_bytes::BIGINT", "allocated there in all"),
	MADE("count", "BIGINT", "count::BIGINT", "allocations"),
	MADE("at_peak_error_bytes", "BIGINT", "at_peak_error_bytes::BIGINT",
	     "how far at_peak_bytes may be off (two standard deviations); 0: exact"),
	MADE("at_peak_estimated_bytes", "BIGINT", "at_peak_estimated_bytes::BIGINT",
	     "of at_peak_bytes, what samples stand for and not themselves alone"),
	MADE("churn_bytes", "BIGINT", "churn_bytes::BIGINT",
	     "allocated there and freed within a millisecond"),
	AS_IS("site", "VARCHAR", "the innermost line of Python, else the innermost function"),
	AS_IS("tensor", "BOOLEAN", "whether it is memory of a tensor of torch"),
	PID,
};

static const struct catalog_column alloc_live[] = {
	AS_IS("size", "BIGINT", "its bytes"),
	AS_IS("weight", "DOUBLE", "allocations that this sample stands for; 1: itself alone"),
	AS_IS("age_ns", "BIGINT", "how long it had been there at the end"),
	AS_IS("ts_ns", "BIGINT", "when it was allocated, in ns since the recording began"),
	AS_IS("ptr", "UBIGINT", "the address"),
	AS_IS("site", "VARCHAR", "the innermost line of Python, else the innermost function"),
	AS_IS("tensor", "BOOLEAN", "whether it is memory of a tensor of torch"),
	AS_IS("stack", "VARCHAR[]", "frames, the innermost first"),
	PID,
};

static const struct catalog_column alloc_frames[] = {
	MADE("node", "BIGINT", "node::BIGINT", "the frame's number in its process"),
	MADE("parent", "BIGINT", "parent::BIGINT", "its caller's; 0: there is none"),
	MADE("func", "VARCHAR", "name", "the function"),
	MADE("file", "VARCHAR", "name_file", "where it is"),
	MADE("lineno", "INTEGER", "nullif(lineno, 0)::INTEGER",
	     "the line that allocates; NULL outside of Python"),
	PID,
};

static const struct catalog_column alloc_rows[] = {
	TS,
	AS_IS("place", "UBIGINT",
	      "the address, with the kind in its lowest three bits; above 48 the thread"),
	AS_IS("what", "UBIGINT", "the size in 40 bits, the frame's node above"),
	PID,
};

#endif
