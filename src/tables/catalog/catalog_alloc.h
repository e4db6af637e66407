/* The views of allocations: what catalog.c has rows for. Rows are packed (struct schema_alloc_row),
   live bytes are made of them, and a sample counts for as much as it stands for: 1 / (1 - exp(-size
   / mean)) allocations of its size. */
#ifndef KYMO_TABLES_CATALOG_CATALOG_ALLOC_H
#define KYMO_TABLES_CATALOG_CATALOG_ALLOC_H

/* What a row is made of: base/schema.h. A mean of 64 KiB: KYMO_MEMORY_MEAN. */
#define ALLOC_PTR "place & 281474976710648"
#define ALLOC_SIZE "(what & 1099511627775)::BIGINT"
#define ALLOC_NODE "(what >> 40)::INTEGER"
#define ALLOC_SIGN "CASE WHEN place & 7 > 3 THEN 0 WHEN place & 1 = 0 THEN 1 ELSE -1 END"
#define ALLOC_WEIGHT \
	"CASE WHEN place & 7 IN (2, 3) AND what & 1099511627775 > 0 THEN 1 / (1 - exp((what & " \
	"1099511627775) / -65536.0)) " \
	"ELSE 1 END"

/* What redirected calls do not see: objects that are loaded later call the real functions until
   their constructors are done. */
#define ALLOC_MISSED " (missed: constructors of libraries loaded later)"

/* rows: one for each allocation and free, still packed, since there may be millions; session counts
   how often watching began before it. Joined by ranges, which keeps neither side in memory but the
   few beginnings. */
#define ALLOC_ROWS \
	"sessions AS MATERIALIZED (SELECT pid, ts_ns AS began_ns, lead(ts_ns, 1, " \
	"9223372036854775807) OVER w AS until_ns, " \
	"(count(*) FILTER (place & 7 = 5) OVER w)::INTEGER AS session, (row_number() OVER " \
	"())::INTEGER AS part, 'malloc, ' || CASE WHEN what & 1099511627775 > 0 THEN " \
	"'sampled' ELSE 'exact' END || CASE WHEN what >> 40 > 0 THEN ', from the start' ELSE ', " \
	"calls redirected" ALLOC_MISSED "' END AS source FROM (SELECT pid, ts_ns, place, what " \
					"FROM kymo_scan('alloc.rows') WHERE place & 7 IN (4, 5)) " \
	"WINDOW w AS (PARTITION BY pid ORDER BY ts_ns)), " \
	"rows AS (SELECT t.pid, t.ts_ns, t.place, t.what, coalesce(s.session, 0) AS session, " \
	"s.part FROM " \
	"kymo_scan('alloc.rows') t LEFT JOIN sessions s ON s.pid = t.pid AND t.ts_ns >= " \
	"s.began_ns AND t.ts_ns < s.until_ns " \
	"WHERE t.place & 7 NOT IN (4, 5)), "

/* What is live after each row: of one that ends a session, nothing. Only what is needed goes
   through the sorting. */
#define ALLOC_LEVELS \
	"levels AS (SELECT pid, ts_ns, session, part, CASE WHEN rank = 2 THEN 0 ELSE sum(bytes) " \
	"OVER (PARTITION BY pid, session " \
	"ORDER BY ts_ns, rank ROWS UNBOUNDED PRECEDING) END AS live_bytes FROM (SELECT pid, " \
	"ts_ns, session, part, CASE WHEN " \
	"place & 7 > 3 THEN 2 ELSE place & 1 END::UTINYINT AS rank, (" ALLOC_SIGN \
	") * (" ALLOC_SIZE ") * (" ALLOC_WEIGHT ") AS bytes FROM rows)), "
/* Which of them is freed when: the next row of the same address. */
#define ALLOC_FREED \
	"lead(ts_ns) OVER (PARTITION BY pid, session, " ALLOC_PTR " ORDER BY ts_ns, place & 1 " \
								  "DESC)"
#define ALLOC_FATES \
	"fates AS (SELECT pid, session, ts_ns, place, what, " ALLOC_FREED \
	" AS freed_ns FROM rows WHERE place & 7 < 4), "

/* The stacks that rows name: others are parts of them. */
#define ALLOC_WAYS \
	"stacks AS (SELECT * FROM kymo_sites() WHERE (pid, node) IN (SELECT DISTINCT " \
	"pid, " ALLOC_NODE " FROM kymo_scan('alloc.rows') WHERE place & 7 < 4)) "

#define ALLOC_STACK "LEFT JOIN stacks s ON s.pid = r.pid AND s.node = r.node"
/* The rows of fates, unpacked. */
#define ALLOC_TOLD \
	"told AS (SELECT pid, session, ts_ns, " ALLOC_PTR \
	" AS ptr, (place >> 48)::INTEGER AS thread_id, " ALLOC_SIZE " AS size, " ALLOC_NODE \
	" AS node, " ALLOC_SIGN " AS sign, " ALLOC_WEIGHT " AS weight, freed_ns FROM fates), "

#define ALLOC_FROM_ALLOCATIONS \
	"(WITH " ALLOC_ROWS ALLOC_FATES ALLOC_TOLD ALLOC_WAYS \
	"SELECT r.*, s.stack, s.site, t.tid FROM told r " ALLOC_STACK \
	" LEFT JOIN (SELECT pid, tid, row_number() OVER (PARTITION BY pid ORDER BY thread_id) AS " \
	"thread_id FROM kymo_meta('threads')) t ON t.pid = r.pid AND t.thread_id = r.thread_id)"

#define ALLOC_FROM_TIMELINE \
	"(WITH " ALLOC_ROWS ALLOC_LEVELS \
	"last AS (SELECT 1) SELECT l.pid, l.ts_ns, l.live_bytes, s.source FROM levels l LEFT " \
	"JOIN sessions s ON s.part = l.part)"

/* What was live at a moment is the sum of all rows of its session until then. */
#define ALLOC_FROM_SITES \
	"(WITH " ALLOC_ROWS ALLOC_LEVELS \
	"tops AS MATERIALIZED (SELECT pid, arg_max(session, live_bytes) AS peak_session, " \
	"arg_max(ts_ns, live_bytes) AS peak_ns, " \
	"max(session) AS last_session FROM levels GROUP BY pid), " ALLOC_FATES ALLOC_TOLD \
	"nodes AS (SELECT r.pid, r.node, sum(sign * size * weight) FILTER (r.session = " \
	"p.last_session) AS live_bytes, " \
	"sum(sign * size * weight) FILTER (r.session = p.peak_session AND r.ts_ns <= p.peak_ns) " \
	"AS at_peak_bytes, " \
	"sum(sign * size * size * weight * (weight - 1)) FILTER (r.session = p.peak_session AND " \
	"r.ts_ns <= p.peak_ns) AS " \
	"at_peak_variance, sum(sign * size * weight) FILTER (r.session = p.peak_session AND " \
	"r.ts_ns <= p.peak_ns AND weight > 1) " \
	"AS at_peak_estimated_bytes, sum(size * weight) FILTER (sign > 0) AS allocated_bytes, " \
	"sum(weight) FILTER (sign > 0) AS " \
	"count, sum(size * weight) FILTER (sign > 0 AND freed_ns - r.ts_ns < 1000000) AS " \
	"churn_bytes FROM told r JOIN tops p ON " \
	"p.pid = r.pid GROUP BY r.pid, r.node), " ALLOC_WAYS \
	"SELECT r.pid, s.stack, s.site, bool_or(s.tensor) AS tensor, " \
	"round(coalesce(sum(live_bytes), 0)) AS live_bytes, " \
	"round(coalesce(sum(at_peak_bytes), 0)) AS at_peak_bytes, round(2 * sqrt(greatest(0, " \
	"coalesce(sum(at_peak_variance), " \
	"0)))) AS at_peak_error_bytes, round(coalesce(sum(at_peak_estimated_bytes), 0)) AS " \
	"at_peak_estimated_bytes, " \
	"round(sum(allocated_bytes)) AS allocated_bytes, round(sum(count)) AS count, " \
	"round(coalesce(sum(churn_bytes), 0)) AS " \
	"churn_bytes FROM nodes r " ALLOC_STACK \
	" GROUP BY r.pid, s.stack, s.site ORDER BY at_peak_bytes DESC)"

#define ALLOC_FROM_LIVE \
	"(WITH " ALLOC_ROWS ALLOC_FATES ALLOC_TOLD ALLOC_WAYS \
	", ends AS (SELECT pid, max(session) AS last_session FROM rows GROUP BY pid) " \
	"SELECT r.*, (SELECT duration_ns FROM kymo_meta('runs')) - r.ts_ns AS age_ns, s.stack, " \
	"s.site, s.tensor FROM told r " \
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
	      "which allocator, how, and whether from the start or by redirected calls, which miss "
	      "what the "
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
